package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
)

// reachSubject is where nodes say that Postgres answers them.
const reachSubject = "seatcast.reach.postgres"

const (
	reachEvery = 2 * time.Second // how often each says so
	reachStale = 5 * time.Second // what was said says nothing after it
)

// peers knows whether Postgres answers this node, and whether it answers others:
// a node that misses it alone should be given no requests, and when it answers
// nobody all of them still should. What others say comes over NATS, so that without
// NATS, too, no node believes itself alone.
type peers struct {
	st     *stores
	log    *slog.Logger
	node   string
	mine   atomic.Int64 // Unix nanoseconds: when Postgres answered this node last
	theirs atomic.Int64 // when another node said so last; 0: never
}

// newPeers is told of stores that were opened, and answered, just now.
func newPeers(st *stores, log *slog.Logger) *peers {
	p := &peers{st: st, log: log, node: rand.Text()}
	p.mine.Store(time.Now().UnixNano())
	return p
}

// alone says that Postgres answers others and has been silent here for a while.
func (p *peers) alone() bool {
	now := time.Now().UnixNano()
	return now-p.mine.Load() > int64(reachStale) && now-p.theirs.Load() < int64(reachStale)
}

// Run asks Postgres, and tells and hears of its answers, until ctx ends.
func (p *peers) Run(ctx context.Context) error {
	sub, err := p.st.hear.Subscribe(reachSubject, func(m *nats.Msg) {
		if string(m.Data) != p.node {
			p.theirs.Store(time.Now().UnixNano())
		}
	})
	if err != nil {
		return fmt.Errorf("hear of other nodes: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // the connection is closed next
	tick := time.NewTicker(reachEvery)
	defer tick.Stop()
	for {
		p.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (p *peers) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if err := p.st.pool.Ping(ctx); err != nil {
		return // /readyz and whoever needs it tell
	}
	p.mine.Store(time.Now().UnixNano())
	if err := p.st.say.Publish(reachSubject, []byte(p.node)); err != nil {
		p.log.DebugContext(ctx, "other nodes are not told that Postgres answers", "err", err)
	}
}

// seen is a metric.
func (p *peers) seen() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "postgres_seen_timestamp_seconds",
		Help: "When Postgres answered this node last, in Unix time; it is asked every two seconds."},
		func() float64 { return float64(p.mine.Load()) / float64(time.Second) })
}
