package fanout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"seatcast/loadtest/peers"
	"seatcast/loadtest/proc"
	"seatcast/loadtest/reader"
	"seatcast/loadtest/report"
)

// bench is what all rounds share.
type bench struct {
	o       *Options
	dir     string
	server  proc.Cores
	reader  proc.Cores
	house   *peers.House
	changes peers.Changes
	bar     *report.Bar
	notes   []string
	look    time.Duration     // between two looks at memory that comes to rest
	missing map[string]string // why, by server
}

// Run measures and prints. It returns an error when seatcast failed a check.
func Run(ctx context.Context, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	b := &bench{o: &o, look: 500 * time.Millisecond, missing: make(map[string]string)}
	if err := b.cores(); err != nil {
		return err
	}
	report.Say(o.Err, "starting private Redis, Postgres and NATS, and putting 60,000 seats on sale\n")
	return peers.InHouse(ctx, peers.HouseOptions{Program: o.Program}, func(h *peers.House, dir string) (err error) {
		b.house, b.dir = h, dir
		if b.changes, err = peers.NewChanges(h.Chart, o.size()); err != nil {
			return err
		}
		return b.measure(ctx)
	})
}

// measure runs the mode.
func (b *bench) measure(ctx context.Context) error {
	switch b.o.Mode {
	case Dead:
		return b.dead(ctx)
	case Herd:
		return b.herds(ctx)
	case Churn:
		return b.churn(ctx)
	case Drain:
		return b.drain(ctx)
	case Saturate:
		return b.saturate(ctx)
	default:
		return b.plain(ctx)
	}
}

// cores gives the server the first core and everything else the others.
func (b *bench) cores() error {
	all, err := proc.Allowed()
	if err != nil {
		return err
	}
	b.server, b.reader = all[:1], all[:1]
	if len(all) == 1 {
		b.notes = append(b.notes, "there is one core only: server and readers share it, and no figure means anything")
		return nil
	}
	b.reader = all[1:2]
	return proc.Stay(all[1:])
}

// scene is one server with its sessions.
type scene struct {
	server peers.Server
	reader *reader.Reader
	opened reader.Opened
	rss    float64 // bytes a session
	before proc.Usage
	rested proc.Usage

	published int // changes so far
}

// openWithin is how long all sessions may take to be on.
const openWithin = 2 * time.Minute

// open starts a server and a reader, and has dead of the sessions never read.
// The caller must close the scene.
func (b *bench) open(ctx context.Context, name string, dead int) (_ *scene, err error) {
	dir, err := os.MkdirTemp(b.dir, name+"-")
	if err != nil {
		return nil, err
	}
	s := &scene{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.server, err = peers.Start(ctx, name, b.setup(dir)); err != nil {
		return nil, err
	}
	if s.reader, err = b.startReader(dir); err != nil {
		return nil, err
	}
	if s.before, err = proc.Of(s.server.Pid()); err != nil {
		return nil, err
	}
	join := reader.Join{Target: s.server.Target(), Conns: b.o.Conns, Dead: dead, Window: 512}
	if s.opened, err = s.reader.Open(ctx, join, openWithin); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s.rested, err = rest(ctx, s.server.Pid(), b.look)
	s.rss = float64(s.rested.RSS-s.before.RSS) / float64(b.o.Conns)
	return s, err
}

func (b *bench) setup(dir string) peers.Setup {
	return peers.Setup{Dir: dir, On: b.server, WS: b.o.WS, Changes: b.changes, Self: b.o.Self, House: b.house}
}

func (b *bench) startReader(dir string) (*reader.Reader, error) {
	r, err := reader.Start(proc.Command{Name: "reader", Path: b.o.Self, Args: []string{"reader"}, Dir: dir, On: b.reader})
	if err == nil {
		r.Progress = b.bar.At
	}
	return r, err
}

// close ends sessions and server.
func (s *scene) close() (err error) {
	if s.reader != nil {
		err = s.reader.Stop()
	}
	if s.server != nil {
		err = errors.Join(err, s.server.Stop())
	}
	return err
}

// rest waits until the memory of a process does not change any more, or has
// changed for long enough.
func rest(ctx context.Context, pid int, look time.Duration) (u proc.Usage, err error) {
	var last int64
	for range 10 {
		select {
		case <-ctx.Done():
			return u, ctx.Err()
		case <-time.After(look):
		}
		if u, err = proc.Of(pid); err != nil {
			return u, err
		}
		if change := u.RSS - last; last > 0 && max(change, -change) < last/200 {
			return u, nil
		}
		last = u.RSS
	}
	return u, nil
}
