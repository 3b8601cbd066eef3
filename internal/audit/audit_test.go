package audit_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"seatcast/internal/audit"
	"seatcast/internal/devstack/devtest"
	"seatcast/web"
)

func TestMain(m *testing.M) { devtest.Main(m) }

func setup(t *testing.T) (*audit.Log, *pgxpool.Pool) {
	pool := devtest.Postgres(t)
	return audit.New(pool), pool
}

func begin(t *testing.T, l *audit.Log, c web.Call) int64 {
	t.Helper()
	id, err := l.Begin(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestACallIsReadBackWithItsOutcomeAndOneCutShortHasNone(t *testing.T) {
	l, _ := setup(t)
	done := begin(t, l, web.Call{ID: "r1", Operator: "ada", From: "10.0.0.7", Method: "POST", Path: "/v1/admin/events/opera/kill", Event: "opera", Body: []byte(`{"reason":"a pillar"}`)})
	if err := l.End(t.Context(), done, web.Outcome{Status: http.StatusConflict, Code: "seats_sold", Replayed: true}); err != nil {
		t.Fatal(err)
	}
	begin(t, l, web.Call{Operator: "bob", Method: "POST", Path: "/cut", Event: "opera", Body: []byte("a\x00\xff")})
	page, err := l.Read(t.Context(), audit.Query{Limit: 10})
	if err != nil || len(page.Calls) != 2 || page.Next != 0 {
		t.Fatalf("%+v, %v", page, err)
	}
	cut, first := page.Calls[0], page.Calls[1]
	if cut.Outcome != nil || cut.Operator != "bob" || cut.Body != "a\uFFFD\uFFFD" || cut.BodyBytes != 3 {
		t.Errorf("what was cut short is %+v", cut)
	}
	if o := first.Outcome; first.ID != done || first.Address != "10.0.0.7" || first.Body != `{"reason":"a pillar"}` || first.At.IsZero() ||
		o == nil || o.Status != http.StatusConflict || o.Code != "seats_sold" || !o.Replayed || o.At.Before(first.At) {
		t.Errorf("the first is %+v, %+v", first, o)
	}
}

func TestTheRecordCannotBeChanged(t *testing.T) {
	l, pool := setup(t)
	id := begin(t, l, web.Call{Operator: "ada", Method: "POST", Path: "/kill"})
	if err := l.End(t.Context(), id, web.Outcome{Status: http.StatusOK}); err != nil {
		t.Fatal(err)
	}
	if err := l.End(t.Context(), id, web.Outcome{Status: http.StatusConflict}); err == nil {
		t.Error("a call has two outcomes")
	}
	for _, change := range []string{
		`UPDATE admin_calls SET operator = 'bob'`, `DELETE FROM admin_calls`, `TRUNCATE admin_calls CASCADE`,
		`UPDATE admin_outcomes SET status = 500`, `DELETE FROM admin_outcomes`, `TRUNCATE admin_outcomes`,
	} {
		if _, err := pool.Exec(t.Context(), change); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v", change, err)
		}
	}
}

func TestALongBodyIsKeptInPart(t *testing.T) {
	l, _ := setup(t)
	begin(t, l, web.Call{Operator: "ada", Method: "POST", Path: "/kill", Body: []byte(strings.Repeat("x", web.BodyLimit))})
	page, err := l.Read(t.Context(), audit.Query{Limit: 10})
	if err != nil || len(page.Calls[0].Body) != 16<<10 || page.Calls[0].BodyBytes != web.BodyLimit {
		t.Errorf("%d of %d bytes, %v", len(page.Calls[0].Body), page.Calls[0].BodyBytes, err)
	}
}

func TestTheRecordIsReadNewestFirstPageByPageOfOneEvent(t *testing.T) {
	l, _ := setup(t)
	e := web.New(web.Options{Log: slog.New(slog.DiscardHandler)})
	l.MountAdmin(e.Group("/v1/admin", web.AsOperator("ada")))
	get := func(query string, status int) (p audit.Page) {
		t.Helper()
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/admin/audit?"+query, nil))
		if w.Code != status {
			t.Fatalf("%s: %d %s", query, w.Code, w.Body)
		}
		if status == http.StatusOK {
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
				t.Fatal(err)
			}
		}
		return p
	}
	if p := get("", http.StatusOK); p.Calls == nil {
		t.Error("an empty record is null")
	}
	for n := range 10 {
		for _, c := range []web.Call{{Method: "POST", Event: "opera"}, {Method: "POST", Event: "circus"}, {Method: "GET", Event: "opera"}} {
			c.Operator, c.Path = "ada", strconv.Itoa(n)
			begin(t, l, c)
		}
	}
	var seen []string
	before := ""
	for range 4 {
		p := get("event=opera&limit=3"+before, http.StatusOK)
		for _, c := range p.Calls {
			if c.Event != "opera" || c.Method != "POST" {
				t.Errorf("asked for changes of opera, and got %+v", c)
			}
			seen = append(seen, c.Path)
		}
		before = "&before=" + strconv.FormatInt(p.Next, 10)
	}
	if got := strings.Join(seen, ""); got != "9876543210" {
		t.Errorf("read %s", got)
	}
	if p := get("limit=200&reads=true", http.StatusOK); len(p.Calls) != 30 || p.Next != 0 {
		t.Errorf("%d calls in all, next %d", len(p.Calls), p.Next)
	}
	for _, bad := range []string{"before=x", "before=-1", "limit=0", "limit=201", "reads=often"} {
		get(bad, http.StatusBadRequest)
	}
}
