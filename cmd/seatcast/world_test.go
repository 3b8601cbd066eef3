package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// world is everything the stores of a house hold, by name: each key of Redis
// with its end, each table of Postgres. Two worlds are equal when nothing has
// happened between them.
type world map[string]string

func (h *house) world() world {
	h.t.Helper()
	ctx := context.Background()
	w := world{}
	for _, key := range h.rdb.Keys(ctx, "*").Val() {
		w["key "+key] = fmt.Sprintf("%v until %v", h.value(ctx, key), h.rdb.PExpireTime(ctx, key).Val())
	}
	var tables []string
	for _, table := range []string{"events", "seats", "areas", "bookings", "attempts", "tickets", "buyers",
		"webhook_inbox", "sandbox_payments", "sandbox_webhooks", "sandbox_refunds"} {
		tables = append(tables, `SELECT '`+table+`', coalesce(string_agg(t::text, E'\n' ORDER BY t::text), '') FROM `+table+` t`)
	}
	rows, err := h.pool.Query(ctx, strings.Join(tables, " UNION ALL "))
	if err != nil {
		h.t.Fatal(err)
	}
	var table, text string
	if _, err := pgx.ForEachRow(rows, []any{&table, &text}, func() error { w["table "+table] = text; return nil }); err != nil {
		h.t.Fatal(err)
	}
	w["jobs"] = fmt.Sprint(h.count(ctx, `SELECT count(*) FROM river_job WHERE kind = ANY($1)`, jobKinds))
	return w
}

// value is what a key of Redis holds: not its DUMP, which a mere read of a hash
// may reorder.
func (h *house) value(ctx context.Context, key string) any {
	switch kind := h.rdb.Type(ctx, key).Val(); kind {
	case "string":
		return fmt.Sprintf("%q", h.rdb.Get(ctx, key).Val())
	case "hash":
		return h.rdb.HGetAll(ctx, key).Val() // printed in the order of its fields
	case "zset":
		return h.rdb.ZRangeWithScores(ctx, key, 0, -1).Val()
	case "stream":
		return h.rdb.XRange(ctx, key, "-", "+").Val()
	default:
		h.t.Fatalf("key %s is a %s: the tests cannot read it", key, kind)
		return nil
	}
}

// jobKinds are the jobs that somebody's request leads to.
var jobKinds = []string{"capture", "void", "refund", "reconcile"}

// quiet waits until nothing of ours has anything left to do.
func (h *house) quiet() {
	h.t.Helper()
	eventually(h.t, 20*time.Second, "every job is done, every webhook delivered and every sale mirrored", func() bool {
		return h.count(context.Background(), `
			SELECT (SELECT count(*) FROM river_job WHERE kind = ANY($1) AND state <> 'completed') + (SELECT count(*) FROM sandbox_webhooks WHERE sent_at IS NULL)
				+ (SELECT count(*) FROM seats WHERE mirror_due) + (SELECT count(*) FROM areas WHERE mirror_due)
				+ (SELECT count(*) FROM bookings WHERE mirror_due)`, jobKinds) == 0
	})
}

// unchanged fails when anything happened since before. It returns the world as
// it is now.
func (h *house) unchanged(t testing.TB, before world) world {
	t.Helper()
	now := h.world()
	for name, is := range now {
		if was, there := before[name]; !there {
			t.Errorf("there is a new %s: %.200s", name, is)
		} else if was != is {
			t.Errorf("%s changed: %.300s", name, changedLines(was, is))
		}
	}
	for name := range before {
		if _, there := now[name]; !there {
			t.Errorf("%s is gone", name)
		}
	}
	return now
}

func changedLines(was, is string) string {
	old := map[string]bool{}
	for line := range strings.SplitSeq(was, "\n") {
		old[line] = true
	}
	var all []string
	for line := range strings.SplitSeq(is, "\n") {
		if !old[line] {
			all = append(all, line)
		}
	}
	return strings.Join(all, " | ")
}
