package room

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"seatcast/loadtest/report"
)

// Result is what --json has: medians over pairs, and ratios within them. Times
// are microseconds of CPU unless their name says otherwise.
type Result struct {
	Fans  int       `json:"fans"`
	Conns int       `json:"conns"`
	Pairs int       `json:"pairs"`
	Join  *Join     `json:"join"`  // null: no pair was measured
	Ticks []Tick    `json:"ticks"` // of a room nobody watches
	Draw  *TenClock `json:"draw"`  // null: none was held
	Again int64     `json:"sent_again"`
	Notes []string  `json:"notes"`
}

// Join is what a join costs, beside a ZADD NX.
type Join struct {
	Server      float64 `json:"server_us"`
	Redis       float64 `json:"redis_us"`
	Yardstick   float64 `json:"zadd_redis_us"`
	RedisRatio  ratio   `json:"redis_ratio"` // Redis for a join, over Redis for a ZADD
	AllRatio    ratio   `json:"all_ratio"`   // server and Redis for a join, over that
	PerSecond   float64 `json:"joins_a_second"`
	ZAddASecond float64 `json:"zadds_a_second"`
	P50Ms       float64 `json:"p50_ms"`
	P99Ms       float64 `json:"p99_ms"`
	Bytes       float64 `json:"redis_bytes_a_fan"`
	Yard        float64 `json:"zadd_bytes_a_member"`
}

// Tick is what a server that does nothing else costs from one look at a room to the
// next, with so many who wait in it; without the room in the first row.
type Tick struct {
	Waiting int     `json:"waiting"`
	Server  float64 `json:"server_us"`
	Redis   float64 `json:"redis_us"`
	Ratio   ratio   `json:"ratio"` // to the row with the fewest who wait, server and Redis
}

// TenClock is what a draw costs.
type TenClock struct {
	JoinServer float64 `json:"join_server_us"`
	JoinRedis  float64 `json:"join_redis_us"`
	Bytes      float64 `json:"redis_bytes_a_ticket"`
	FrozenMs   float64 `json:"frozen_ms"` // after the list closed
	DrawnMs    float64 `json:"drawn_ms"`  // likewise
	Shards     int     `json:"shards"`

	ByShard Learnt  `json:"by_shard"`
	ByJoin  Learnt  `json:"by_join"`
	P99Ms   float64 `json:"by_join_p99_ms"`
}

// Learnt is what it costs that everybody learns their place.
type Learnt struct {
	Server  float64 `json:"server_us_a_fan"`
	Redis   float64 `json:"redis_us_a_fan"`
	Seconds float64 `json:"took_s"`

	Calls map[string]int64 `json:"redis_calls"` // of everybody, by command
}

type ratio struct {
	Mid float64 `json:"median"`
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

func ratioOf(of, to []float64) ratio {
	r, _ := report.Ratios(of, to)
	return ratio(r)
}

func (r ratio) String() string { return report.Ratio(r).String() }

func (b *bench) result(rounds []round, t *tenOClock) Result {
	n := b.o.Fans
	r := Result{Fans: n, Conns: b.o.Conns, Pairs: len(rounds), Ticks: []Tick{}, Again: b.crowd.again.Load(), Notes: append([]string{}, b.notes...)}
	if len(rounds) > 0 {
		r.Join = joinOf(rounds, n)
		r.Ticks = ticksOf(rounds, b.o.parts(), b.o.Idle)
	}
	if t != nil {
		r.Draw = &TenClock{JoinServer: us(t.joins.server, n), JoinRedis: us(t.joins.redis, n), Bytes: float64(t.memory) / float64(n),
			FrozenMs: ms(t.frozen), DrawnMs: ms(t.drawn), Shards: t.shards, ByShard: learnt(t.shard, n), ByJoin: learnt(t.mine, n), P99Ms: at(t.took, 99)}
	}
	return r
}

func joinOf(rounds []round, fans int) *Join {
	each := func(of func(round) float64) []float64 { return report.Each(rounds, of) }
	server := each(func(r round) float64 { return us(r.joins.server, fans) })
	redis := each(func(r round) float64 { return us(r.joins.redis, fans) })
	all := each(func(r round) float64 { return us(r.joins.server+r.joins.redis, fans) })
	zadd := each(func(r round) float64 { return us(r.zadds.redis, fans) })
	mid := func(of func(round) float64) float64 { return report.MedianOf(rounds, of) }
	return &Join{Server: report.Median(server), Redis: report.Median(redis), Yardstick: report.Median(zadd),
		RedisRatio: ratioOf(redis, zadd), AllRatio: ratioOf(all, zadd),
		PerSecond:   mid(func(r round) float64 { return float64(fans) / r.joins.wall.Seconds() }),
		ZAddASecond: mid(func(r round) float64 { return float64(fans) / r.zadds.wall.Seconds() }),
		P50Ms:       mid(func(r round) float64 { return at(r.took, 50) }), P99Ms: mid(func(r round) float64 { return at(r.took, 99) }),
		Bytes: mid(func(r round) float64 { return float64(r.joins.memory) / float64(fans) }),
		Yard:  mid(func(r round) float64 { return float64(r.zadds.memory) / float64(fans) })}
}

func ticksOf(rounds []round, waiting [3]int, idle time.Duration) (all []Tick) {
	looks := int(idle.Seconds() * ticksASecond)
	both := func(row int) []float64 {
		return report.Each(rounds, func(r round) float64 { return us(r.ticks[row].server+r.ticks[row].redis, looks) })
	}
	for row, n := range append([]int{0}, waiting[:]...) {
		all = append(all, Tick{n, report.MedianOf(rounds, func(r round) float64 { return us(r.ticks[row].server, looks) }),
			report.MedianOf(rounds, func(r round) float64 { return us(r.ticks[row].redis, looks) }), ratioOf(both(row), both(1))})
	}
	return all
}

func learnt(s spent, fans int) Learnt {
	return Learnt{us(s.server, fans), us(s.redis, fans), s.wall.Seconds(), s.calls}
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

// at is a percentile of times in order, in milliseconds.
func at(times []time.Duration, percent int) float64 { return ms(times[(len(times)-1)*percent/100]) }

// finish prints and writes what was measured.
func (b *bench) finish(rounds []round, t *tenOClock) error {
	for i := range rounds {
		slices.Sort(rounds[i].took)
	}
	r := b.result(rounds, t)
	b.print(r)
	if b.o.JSON == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(b.o.JSON, append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	return nil
}

func (b *bench) print(r Result) {
	report.Say(b.o.Out, "%d fans on %d connections, %d pairs; seatcast and Redis on core %d, fans on %v\n", r.Fans, r.Conns, r.Pairs, b.server[0], []int(b.client))
	w := tabwriter.NewWriter(b.o.Out, 0, 0, 2, ' ', 0)
	line := func(what, format string, a ...any) { report.Say(w, "%s\t"+format+"\n", append([]any{what}, a...)...) }
	if j := r.Join; j != nil {
		report.Say(w, "\na join\n")
		line("  CPU", "%.1f µs: seatcast %.1f, Redis %.1f", j.Server+j.Redis, j.Server, j.Redis)
		line("  a ZADD NX of redis-benchmark", "%.1f µs of Redis", j.Yardstick)
		line("  Redis, join / ZADD NX", "%v", j.RedisRatio)
		line("  all, join / ZADD NX", "%v", j.AllRatio)
		line("  a second", "%.0f joins; %.0f ZADD NX", j.PerSecond, j.ZAddASecond)
		line("  answered after", "p50 %.1f ms, p99 %.1f ms", j.P50Ms, j.P99Ms)
		line("  memory of Redis", "%.0f bytes a fan; %.0f a member of the ZADD's", j.Bytes, j.Yard)
	}
	if len(r.Ticks) > 0 {
		report.Say(w, "\na tick, nobody watches, all the server does included\n")
	}
	for _, t := range r.Ticks {
		what := fmt.Sprintf("  %d wait", t.Waiting)
		if t.Waiting == 0 {
			what = "  there is no such room"
		}
		line(what, "%.0f µs: seatcast %.0f, Redis %.0f; to the fewest %v", t.Server+t.Redis, t.Server, t.Redis, t.Ratio)
	}
	if d := r.Draw; d != nil {
		report.Say(w, "\nten o'clock\n")
		line("  a join of the draw", "%.1f µs: seatcast %.1f, Redis %.1f; %.0f bytes of Redis", d.JoinServer+d.JoinRedis, d.JoinServer, d.JoinRedis, d.Bytes)
		line("  the list is frozen", "after %.1f s", d.FrozenMs/1000)
		line("  drawn, and everybody has a place", "after %.1f s", d.DrawnMs/1000)
		for _, way := range []struct {
			name string
			Learnt
		}{{fmt.Sprintf("  places by %d shards, each asked for once", d.Shards), d.ByShard}, {"  places by sending the receipt", d.ByJoin}} {
			l := way.Learnt
			line(way.name, "%.2f µs a fan: seatcast %.2f, Redis %.2f; all in %.1f s", l.Server+l.Redis, l.Server, l.Redis, l.Seconds)
			var n int64
			for _, name := range rankings {
				n += l.Calls[name]
			}
			line("", "Redis looked a rank up %d times for %d fans", n, r.Fans)
		}
	}
	_ = w.Flush() // a terminal that has gone
	if r.Again > 0 {
		report.Say(b.o.Out, "\n! %d answers were 429 or 503, for having come too early or being too many, and these requests were sent again\n", r.Again)
	}
	for _, n := range r.Notes {
		report.Say(b.o.Out, "\n! %s\n", n)
	}
}
