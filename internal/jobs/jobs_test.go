package jobs_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"seatcast/internal/devstack/devtest"
	"seatcast/internal/jobs"
	"seatcast/web"
)

func TestMain(m *testing.M) { devtest.Main(m) }

type house struct {
	*jobs.Queue
	t    *testing.T
	pool *pgxpool.Pool
	echo *echo.Echo
}

func setup(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, pool: devtest.Postgres(t), echo: web.New(web.Options{Log: slog.New(slog.DiscardHandler)})}
	var err error
	if h.Queue, err = jobs.New(h.pool, []string{"capture", "void", "refund"}, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	h.MountAdmin(h.echo.Group("/v1/admin", web.AsOperator("ann")))
	return h
}

// job puts a job into the queue that has failed so often.
func (h *house) job(kind, state string, failed int) (id int64) {
	h.t.Helper()
	err := h.pool.QueryRow(h.t.Context(), `INSERT INTO river_job (kind, state, args, queue, max_attempts, scheduled_at, finalized_at, errors)
		VALUES ($1, $2::river_job_state, '{"attempt":"at_1"}', 'checkout', 10000, now() + interval '1 minute',
			CASE WHEN $2 IN ('discarded', 'cancelled', 'completed') THEN now() END,
			ARRAY(SELECT jsonb_build_object('at', now(), 'attempt', n, 'error', 'failure ' || n, 'trace', '') FROM generate_series(1, $3) n))
		RETURNING id`, kind, state, failed).Scan(&id)
	if err != nil {
		h.t.Fatal(err)
	}
	return id
}

func (h *house) call(method, path string, status int, v any) {
	h.t.Helper()
	w := httptest.NewRecorder()
	h.echo.ServeHTTP(w, httptest.NewRequest(method, "/v1/admin"+path, nil))
	if w.Code != status {
		h.t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	if v != nil {
		if err := json.Unmarshal(w.Body.Bytes(), v); err != nil {
			h.t.Fatal(err)
		}
	}
}

func TestJobsThatGetNowhereAreListedPageByPage(t *testing.T) {
	h := setup(t)
	h.job("capture", "retryable", 4)
	h.job("capture", "completed", 9)
	stuck := h.job("capture", "retryable", 5)
	dead := h.job("void", "discarded", 1)
	h.job("void", "cancelled", 0)
	var p jobs.Page
	h.call(http.MethodGet, "/jobs?limit=2", http.StatusOK, &p)
	if len(p.Jobs) != 2 || p.Next != dead || p.Jobs[0].ID != stuck || p.Jobs[0].Tries != 5 || p.Jobs[0].LastError != "failure 5" ||
		p.Jobs[0].NextAt == nil || p.Jobs[0].Since == nil || string(p.Jobs[0].Args) != `{"attempt":"at_1"}` || p.Jobs[1].NextAt != nil {
		t.Errorf("listed are %+v", p)
	}
	h.call(http.MethodGet, fmt.Sprintf("/jobs?limit=2&after=%d", p.Next), http.StatusOK, &p)
	if len(p.Jobs) != 1 || p.Jobs[0].State != "cancelled" {
		t.Errorf("then %+v", p)
	}
	for query, want := range map[string]int{"kind=capture": 1, "state=discarded": 1, "state=retryable": 2, "state=completed": 1, "kind=none": 0} {
		p = jobs.Page{}
		h.call(http.MethodGet, "/jobs?"+query, http.StatusOK, &p)
		if len(p.Jobs) != want || p.Jobs == nil {
			t.Errorf("%s: %d", query, len(p.Jobs))
		}
	}
	for _, bad := range []string{"state=lost", "after=x", "limit=0", "limit=201"} {
		h.call(http.MethodGet, "/jobs?"+bad, http.StatusBadRequest, nil)
	}
}

func TestAJobIsTriedNowWhenAnOperatorSaysSo(t *testing.T) {
	h := setup(t)
	for _, state := range []string{"retryable", "discarded", "cancelled", "scheduled"} {
		id := h.job("capture", state, 7)
		h.call(http.MethodPost, fmt.Sprintf("/jobs/%d/retry", id), http.StatusAccepted, nil)
		var ready bool
		err := h.pool.QueryRow(t.Context(), `SELECT state = 'available' AND scheduled_at <= clock_timestamp() AND finalized_at IS NULL FROM river_job WHERE id = $1`, id).Scan(&ready)
		if err != nil || !ready {
			t.Errorf("one that was %s is not tried now, %v", state, err)
		}
	}
	for state, code := range map[string]string{"running": "job_running", "completed": "job_done"} {
		var p struct{ Code string }
		h.call(http.MethodPost, fmt.Sprintf("/jobs/%d/retry", h.job("capture", state, 1)), http.StatusConflict, &p)
		if p.Code != code {
			t.Errorf("one that is %s: %s", state, p.Code)
		}
	}
	h.call(http.MethodPost, "/jobs/99999/retry", http.StatusNotFound, nil)
	h.call(http.MethodPost, "/jobs/x/retry", http.StatusNotFound, nil)
}

func TestAJobWithATwinInTheQueueIsNotMadeTwice(t *testing.T) {
	h := setup(t)
	dead, twin := h.job("capture", "discarded", 7), h.job("capture", "retryable", 1)
	_, err := h.pool.Exec(t.Context(), `UPDATE river_job SET unique_key = 'k', unique_states = B'11110101' WHERE id = ANY($1)`, []int64{dead, twin})
	if err != nil {
		t.Fatal(err)
	}
	var p struct{ Code string }
	h.call(http.MethodPost, fmt.Sprintf("/jobs/%d/retry", dead), http.StatusConflict, &p)
	if p.Code != "job_queued" {
		t.Errorf("it is %s", p.Code)
	}
}

func TestJobsAreCountedByKindAndState(t *testing.T) {
	h := setup(t)
	h.job("capture", "retryable", 6)
	h.job("capture", "retryable", 1)
	h.job("void", "discarded", 1)
	late := h.job("void", "available", 0)
	if _, err := h.pool.Exec(t.Context(), `UPDATE river_job SET scheduled_at = now() - interval '1 hour' WHERE id = $1`, late); err != nil {
		t.Fatal(err)
	}
	if err := h.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	reg := prometheus.NewRegistry()
	reg.MustRegister(h)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = m.GetGauge().GetValue()
		}
	}
	for name, want := range map[string]float64{"jobs capture retryable": 2, "jobs void available": 1, "jobs void discarded": 1,
		"jobs_stuck capture": 1, "jobs_stuck void": 1, "jobs_oldest_due_seconds capture": 0} {
		if n, there := got[name]; !there || n != want {
			t.Errorf("%s is %v, not %v", name, n, want)
		}
	}
	if age := got["jobs_oldest_due_seconds void"]; age < 3600 || age > 4000 {
		t.Errorf("the oldest is due since %v s", age)
	}
}
