package crash

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"seatcast/checkout"
	"seatcast/seatmap"
)

// gate stands before and after each step a desk takes: a call of its provider
// or of its holds, a commit of its database. It writes down the steps of each
// sale, and at the point where a sale is to be killed lets nothing of it pass any
// more. So many sales can be stopped, each at its point, before the process is
// killed; for each of them that is as if it had been killed there.
type gate struct {
	mu       sync.Mutex
	sales    map[string]*sale // by event, booking, attempt and payment
	inFlight map[*pgx.Conn]*transaction
}

// sale is what the gate knows of one: it has an event of its own.
type sale struct {
	point  string // where it is stopped; "": nowhere
	steps  []string
	counts map[string]int
	frozen chan struct{} // closed when it is
	ice    bool
}

type transaction struct{ of *sale }

func newGate() *gate {
	return &gate{sales: map[string]*sale{}, inFlight: map[*pgx.Conn]*transaction{}}
}

// watch has a sale written down, and stopped at a point.
func (g *gate) watch(event, booking, point string) *sale {
	s := &sale{point: point, counts: map[string]int{}, frozen: make(chan struct{})}
	g.know(s, event, booking)
	return s
}

func (g *gate) know(s *sale, names ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range names {
		if name != "" {
			g.sales[name] = s
		}
	}
}

func (g *gate) of(name string) *sale {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sales[name]
}

// step is one side of a step. It never returns in a sale that is stopped.
func (g *gate) step(s *sale, label string) {
	if s == nil {
		return
	}
	g.mu.Lock()
	if !s.ice {
		s.counts[label]++
		name := fmt.Sprintf("%s #%d", label, s.counts[label])
		s.steps = append(s.steps, name)
		if name == s.point {
			s.ice = true
			close(s.frozen)
		}
	}
	stopped := s.ice
	g.mu.Unlock()
	if stopped {
		select {}
	}
}

func (g *gate) told(s *sale) (steps []string, stopped bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(s.steps), s.ice
}

// around is a step with both its sides.
func around[T any](g *gate, s *sale, label string, do func() (T, error)) (T, error) {
	g.step(s, "before "+label)
	v, err := do()
	g.step(s, "after "+label)
	return v, err
}

// gatedProvider is a provider behind a gate.
type gatedProvider struct {
	checkout.Provider
	g *gate
}

func (p gatedProvider) Create(ctx context.Context, c checkout.Charge) (checkout.Payment, error) {
	s := p.g.of(c.Booking)
	p.g.know(s, c.Key)
	p.g.step(s, "before Create")
	got, err := p.Provider.Create(ctx, c)
	p.g.know(s, got.ID)
	p.g.step(s, "after Create")
	return got, err
}

func (p gatedProvider) Get(ctx context.Context, id string) (checkout.Payment, error) {
	return around(p.g, p.g.of(id), "Get", func() (checkout.Payment, error) { return p.Provider.Get(ctx, id) })
}

func (p gatedProvider) Capture(ctx context.Context, id string) (checkout.Payment, error) {
	return around(p.g, p.g.of(id), "Capture", func() (checkout.Payment, error) { return p.Provider.Capture(ctx, id) })
}

func (p gatedProvider) Void(ctx context.Context, id string) (checkout.Payment, error) {
	return around(p.g, p.g.of(id), "Void", func() (checkout.Payment, error) { return p.Provider.Void(ctx, id) })
}

func (p gatedProvider) Refund(ctx context.Context, r checkout.Refund) (checkout.RefundAnswer, error) {
	return around(p.g, p.g.of(r.Payment), "Refund", func() (checkout.RefundAnswer, error) { return p.Provider.Refund(ctx, r) })
}

// gatedHolds are holds behind a gate.
type gatedHolds struct {
	checkout.Holds
	g *gate
}

func (h gatedHolds) Extend(ctx context.Context, event, token, user string, by, grace time.Duration) (seatmap.Basket, error) {
	return around(h.g, h.g.of(event), "Extend", func() (seatmap.Basket, error) { return h.Holds.Extend(ctx, event, token, user, by, grace) })
}

func (h gatedHolds) Seal(ctx context.Context, event, token string) (seatmap.Basket, error) {
	return around(h.g, h.g.of(event), "Seal", func() (seatmap.Basket, error) { return h.Holds.Seal(ctx, event, token) })
}

func (h gatedHolds) Release(ctx context.Context, event, token, user string) error {
	_, err := around(h.g, h.g.of(event), "Release", func() (any, error) { return nil, h.Holds.Release(ctx, event, token, user) })
	return err
}

func (h gatedHolds) Spend(ctx context.Context, event string, m seatmap.Marks) error {
	_, err := around(h.g, h.g.of(event), "Spend", func() (any, error) { return nil, h.Holds.Spend(ctx, event, m) })
	return err
}

func (h gatedHolds) Restore(ctx context.Context, event string, m seatmap.Marks) error {
	_, err := around(h.g, h.g.of(event), "Restore", func() (any, error) { return nil, h.Holds.Restore(ctx, event, m) })
	return err
}

// As a tracer of connections the gate stands before and after each commit, and
// each write outside of a transaction.

var _ pgx.QueryTracer = (*gate)(nil)

type query struct {
	of    *sale
	label string // of what is committed; "": nothing is
}

// TraceQueryStart implements pgx.QueryTracer.
func (g *gate) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	sql := strings.ToLower(strings.TrimSpace(data.SQL))
	var q query
	g.mu.Lock()
	tx := g.inFlight[conn]
	switch {
	case strings.HasPrefix(sql, "begin"):
		g.inFlight[conn] = &transaction{}
	case sql == "commit" || sql == "rollback":
		delete(g.inFlight, conn)
		if sql == "commit" && tx != nil {
			q = query{of: tx.of, label: "commit in " + caller()}
		}
	default:
		of := g.meantLocked(data.Args)
		if tx != nil && tx.of == nil {
			tx.of = of
		}
		if tx == nil && (strings.HasPrefix(sql, "insert") || strings.HasPrefix(sql, "update") || strings.HasPrefix(sql, "delete")) {
			q = query{of: of, label: "write in " + caller()}
		}
	}
	g.mu.Unlock()
	if q.of == nil || slices.Contains([]string{"commit in auditEvent", "commit in Check"}, q.label) { // these come when they like
		return context.WithValue(ctx, query{}, query{})
	}
	g.step(q.of, "before "+q.label)
	return context.WithValue(ctx, query{}, q)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (g *gate) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if q, _ := ctx.Value(query{}).(query); q.of != nil {
		g.step(q.of, "after "+q.label)
	}
}

// meantLocked is the sale a statement is about. An attempt it names beside is
// that sale's from now on.
func (g *gate) meantLocked(args []any) (of *sale) {
	var names []string
	for _, arg := range args {
		switch v := arg.(type) {
		case string:
			names = append(names, v)
		case []string:
			names = append(names, v...)
		}
	}
	for _, name := range names {
		if s := g.sales[name]; s != nil {
			of = s
		}
	}
	for _, name := range names {
		if of != nil && strings.HasPrefix(name, "at_") {
			g.sales[name] = of
		}
	}
	return of
}

// caller is the function of checkout that runs a statement.
func caller() string {
	pc := make([]uintptr, 64)
	frames := runtime.CallersFrames(pc[:runtime.Callers(2, pc)])
	for {
		f, more := frames.Next()
		if _, name, is := strings.Cut(f.Function, "seatcast/checkout."); is {
			name, _, _ = strings.Cut(strings.NewReplacer("(*Store).", "", "(*Desk).", "").Replace(name), ".")
			return name
		}
		if !more {
			return "the job queue"
		}
	}
}
