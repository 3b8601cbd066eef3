package room

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"github.com/redis/go-redis/v9"

	"seatcast/loadtest/contention/front"
	"seatcast/loadtest/peers"
	"seatcast/loadtest/proc"
	"seatcast/loadtest/report"
)

// bench is what all rounds share.
type bench struct {
	o        *Options
	dir      string
	server   proc.Cores
	client   proc.Cores
	house    *peers.House
	stores   peers.Stores
	rdb      *redis.Client
	node     *peers.API
	operator string // session
	crowd    *crowd
	bar      *report.Bar
	notes    []string
}

// Run measures and prints. It returns an error when a place was given twice or lost.
func Run(ctx context.Context, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	b := &bench{o: &o}
	if err := b.cores(); err != nil {
		return err
	}
	report.Say(o.Err, "starting private Redis, Postgres and NATS, and minting %d sessions\n", o.Fans)
	in := peers.HouseOptions{Program: o.Program, Chart: front.Hall(100), StoresOn: b.server, RedisTCP: true, NoAPI: true}
	return peers.InHouse(ctx, in, func(h *peers.House, dir string) error {
		b.house, b.dir = h, dir
		return b.run(ctx)
	})
}

// cores gives the servers the first core and the fans the others.
func (b *bench) cores() error {
	all, err := proc.Allowed()
	if err != nil {
		return err
	}
	b.server, b.client = all[:1], all[:1]
	if len(all) == 1 {
		b.notes = append(b.notes, "there is one core only: servers and fans share it, and no time means anything")
		return nil
	}
	b.client = all[1:]
	runtime.GOMAXPROCS(len(b.client))
	return proc.Stay(b.client)
}

func (b *bench) run(ctx context.Context) (err error) {
	if b.stores, err = b.house.Pids(ctx); err != nil {
		return err
	}
	o, err := redis.ParseURL(b.house.RedisURL())
	if err != nil {
		return err
	}
	b.rdb = redis.NewClient(o)
	defer func() { _ = b.rdb.Close() }() // nothing is buffered in it
	if b.operator, err = front.Mint(b.house.SessionKey(), "operator", sessionsFor, "operator"); err != nil {
		return err
	}
	if b.crowd, err = newCrowd(b.house.SessionKey(), b.o); err != nil {
		return err
	}
	if b.node, err = b.house.StartWhole(ctx, "node", b.dir, b.server, "SEATCAST_SESSION_CLAIMS=user=sub,roles=roles",
		"SEATCAST_QUEUE_PER_ADDRESS=-1"); err != nil {
		return err
	}
	defer func() {
		b.crowd.client.CloseIdleConnections()
		err = errors.Join(err, b.node.Stop())
	}()
	b.crowd.addr = b.node.Addr()
	steps := b.o.Pairs
	if b.o.Draw {
		steps++
	}
	b.bar = report.NewBar(b.o.Err, int64(steps))
	defer b.bar.End()
	return b.measure(ctx)
}

func (b *bench) measure(ctx context.Context) error {
	var rounds []round
	for pair := range b.o.Pairs {
		b.bar.What(fmt.Sprintf("pair %d of %d", pair+1, b.o.Pairs))
		r, err := b.round(ctx, pair)
		if err != nil {
			return err
		}
		rounds = append(rounds, r)
		b.bar.Done(1)
		b.bar.Line("pair %d of %d: %.1f µs a join, Redis %.1f; ZADD NX %.1f\n", pair+1, b.o.Pairs,
			us(r.joins.server+r.joins.redis, b.o.Fans), us(r.joins.redis, b.o.Fans), us(r.zadds.redis, b.o.Fans))
	}
	var ten *tenOClock
	if b.o.Draw {
		b.bar.What("ten o'clock")
		var err error
		if ten, err = b.tenOClock(ctx, rounds); err != nil {
			return err
		}
		b.bar.Done(1)
	}
	b.bar.End()
	return b.finish(rounds, ten)
}

// room makes the waiting room of an event.
func (b *bench) room(ctx context.Context, event string, terms map[string]any) error {
	body, err := json.Marshal(terms)
	if err != nil {
		return err
	}
	if err := b.crowd.ask(ctx, http.MethodPut, "/v1/admin/rooms/"+event, b.operator, body, nil); err != nil {
		return err
	}
	b.crowd.comes(event)
	return nil
}

// ends ends a room: it is looked at once a second from then on.
func (b *bench) ends(ctx context.Context) error {
	return b.crowd.ask(ctx, http.MethodPost, "/v1/admin/rooms/"+b.crowd.event+"/over", b.operator, nil, nil)
}

// frame is what is looked at of a frame.
type frame struct {
	State string
	Draw  struct{ State string } // empty: there is none
}

// until waits for a frame.
func (b *bench) until(ctx context.Context, within time.Duration, what string, is func(frame) bool) error {
	var f frame
	for began := time.Now(); time.Since(began) < within; {
		f = frame{}
		if err := b.crowd.ask(ctx, http.MethodGet, "/v1/queue/"+b.crowd.event, "", nil, &f); err != nil {
			return err
		}
		if is(f) {
			return nil
		}
		if err := peers.Wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("not within %v: %s; the last frame is %+v", within, what, f)
}
