package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatcast/seatmap"
	"seatcast/web"
)

// logged writes n changes of three seats each into the log, spread over a stadium.
func (h *house) logged(b *testing.B, n int) {
	ctx := context.Background()
	last, err := h.rdb.Get(ctx, seatmap.SeqKey(h.event)).Int64()
	if err != nil {
		b.Fatal(err)
	}
	for done := 0; done < n; {
		_, err := h.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for range min(1000, n-done) {
				i := done * 7919 % 59_990
				c := seatmap.Change{N: last + 1, Prev: last, At: last / 1000, Reserved: []int{i, i + 1, i + 2}, Until: time.Now().UnixMilli(), Tag: fmt.Sprintf("%06d", i)}
				body, err := json.Marshal(c)
				if err != nil {
					return err
				}
				p.Set(ctx, seatmap.HoldKey(h.event, i), fmt.Sprintf("%06d-and-the-rest-of-its-43-letters-of-token", i), time.Minute)
				p.XAdd(ctx, &redis.XAddArgs{Stream: seatmap.LogKey(h.event), ID: strconv.FormatInt(c.N, 10) + "-0", Values: []any{"c", body}})
				p.Set(ctx, seatmap.SeqKey(h.event), c.N, 0)
				last, done = c.N, done+1
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRecord says how fast one recorder follows: entries a second, of
// changes of three seats.
func BenchmarkRecord(b *testing.B) {
	h := setup(b)
	h.record()
	const changes = 20_000
	var busy float64 // Redis, µs
	for b.Loop() {
		b.StopTimer()
		h.logged(b, changes)
		before := h.readTime(b)
		b.StartTimer()
		h.record()
		b.StopTimer()
		busy += h.readTime(b) - before
		b.StartTimer()
	}
	b.ReportMetric(busy/changes/float64(b.N), "redis-µs/change")
	b.ReportMetric(3*changes*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
	var bytes, rows int64
	if err := h.pool.QueryRow(context.Background(), `SELECT pg_total_relation_size('seat_log'), count(*) FROM seat_log`).Scan(&bytes, &rows); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(bytes)/float64(rows), "B/entry")
}

// readTime is how long Redis has worked on commands that only read, in µs.
func (h *house) readTime(b *testing.B) (sum float64) {
	text, err := h.rdb.Info(context.Background(), "commandstats").Result()
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.FieldsSeq(text) {
		name, stats, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":")
		if name != "xrange" && name != "mget" && name != "get" {
			continue
		}
		_, usec, _ := strings.Cut(stats, "usec=")
		usec, _, _ = strings.Cut(usec, ",")
		n, err := strconv.ParseFloat(usec, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += n
	}
	return sum
}

// BenchmarkHistory asks what has happened to a seat, of three million entries of
// an event of sixty thousand seats, and what it was at a moment.
func BenchmarkHistory(b *testing.B) {
	h := setup(b)
	h.record()
	h.exec(`INSERT INTO seat_log (event_id, i, n, at, until, seen, what, holder)
		SELECT $1, (k::bigint * 7919) % 60000, k, now() - interval '1 hour' + k * interval '1 millisecond', now(), false,
			CASE WHEN k / 60000 % 2 = 0 THEN 'held' ELSE 'lapsed' END, 'abcdef-and-the-rest-of-its-43-letters-of-token'
		FROM generate_series(1, 3000000) k`, h.event)
	h.exec(`VACUUM ANALYZE seat_log`)
	e := web.New(web.Options{Log: slog.New(slog.DiscardHandler)})
	h.mount(e)
	for name, query := range map[string]string{"page": "", "moment": "?at=" + time.Now().Add(-30*time.Minute).UTC().Format(time.RFC3339)} {
		b.Run(name, func(b *testing.B) {
			k := 0
			for b.Loop() {
				w := httptest.NewRecorder()
				k++
				e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, fmt.Sprintf("/v1/admin/events/%s/seats/A%d/history%s", h.event, k%(seats-1), query), nil))
				if w.Code != http.StatusOK {
					b.Fatal(w.Body)
				}
			}
		})
	}
	b.Run("known", func(b *testing.B) { // of all seats, after a gap
		for b.Loop() {
			h.exec(`SELECT s.i, l.what, l.holder FROM generate_series(0, 59999) AS s (i), LATERAL (
				SELECT what, holder FROM seat_log WHERE event_id = $1 AND i = s.i ORDER BY n DESC LIMIT 1) l`, h.event)
		}
	})
}
