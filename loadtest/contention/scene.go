package contention

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"seatcast/loadtest/contention/front"
	"seatcast/loadtest/peers"
	"seatcast/loadtest/proc"
)

// scene is one strategy's server, fresh, with everybody connected.
type scene struct {
	strategy  string
	child     *proc.Child // a front; nil for seatcast
	api       *peers.API  // seatcast; nil for a front
	addr      string
	served    []process // by whom: what is counted
	buyers    []*line
	bystander []*line
	opened    int64   // when everybody was connected, in nanoseconds of the wall clock
	ledger    []grant // every hold since then
}

// process is one of those that serve.
type process struct {
	name string
	pid  int
}

// bystanders are the lines of the bystander, more than she needs while answers
// come within a second.
const bystanders = 64

// open starts a strategy's server and connects everybody. The caller must
// close the scene.
func (b *bench) open(ctx context.Context, strategy string) (_ *scene, err error) {
	s := &scene{strategy: strategy}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	dir, err := os.MkdirTemp(b.dir, strategy+"-")
	if err != nil {
		return nil, err
	}
	if strategy == Seatcast {
		err = s.startSeatcast(ctx, b, dir)
	} else {
		err = s.startFront(ctx, b, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strategy, err)
	}
	for i := range b.o.Buyers + bystanders {
		l, err := dial(ctx, s.addr, peers.Event, b.tokens[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strategy, err)
		}
		if i < b.o.Buyers {
			s.buyers = append(s.buyers, l)
		} else {
			s.bystander = append(s.bystander, l)
		}
	}
	s.opened = time.Now().UnixNano()
	return s, nil
}

func (s *scene) startSeatcast(ctx context.Context, b *bench, dir string) (err error) {
	if s.api, err = b.house.StartAPI(ctx, dir, b.server); err != nil {
		return err
	}
	s.addr = s.api.Addr()
	s.served = []process{{"api", s.api.Pid()}, {"redis", b.stores.Redis}, {"postgres", b.stores.Postgres}, {"nats", b.stores.NATS}}
	return nil
}

func (s *scene) startFront(ctx context.Context, b *bench, dir string) (err error) {
	o := front.Options{Strategy: s.strategy, Event: peers.Event, Key: b.house.SessionKey(), Seats: b.o.Seats, Hot: b.o.Hot, Hold: b.o.Hold,
		Postgres: b.database, Pool: b.o.Pool, Transaction: b.o.Transaction, RoundTrips: b.o.RoundTrips, Redis: b.house.RedisURL()}
	config, err := json.Marshal(o)
	if err != nil {
		return err
	}
	s.child, err = proc.Start(proc.Command{Name: s.strategy, Path: b.o.Self, Args: []string{"front", string(config)}, Dir: dir, On: b.server, Out: true})
	if err != nil {
		return err
	}
	if s.addr, err = peers.FirstLine(ctx, s.child); err != nil {
		return err
	}
	s.served = []process{{"front", s.child.Pid()}}
	switch s.strategy {
	case Naive, Postgres:
		s.served = append(s.served, process{"postgres", b.stores.Postgres})
	case Redis:
		s.served = append(s.served, process{"redis", b.stores.Redis})
	}
	return nil
}

// stopWithin is how long a front may take to stop.
const stopWithin = 10 * time.Second

func (s *scene) close() (err error) {
	for _, l := range append(s.buyers, s.bystander...) {
		l.close()
	}
	if s.api != nil {
		return s.api.Stop()
	}
	return s.child.Stop(stopWithin)
}
