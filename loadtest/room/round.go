package room

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"time"

	"seatcast/loadtest/peers"
)

// round is what a pair costs.
type round struct {
	joins spent
	took  []time.Duration // of every join, ascending
	ticks [4]spent        // of so long: without the room, and by how many waited
	zadds spent
}

// ticksASecond is how often a room that is open is looked at.
const ticksASecond = 4

func (b *bench) round(ctx context.Context, pair int) (r round, err error) {
	yardstick := func() (err error) {
		r.zadds, err = b.during(ctx, func() error { return b.zadd(ctx) })
		if err == nil {
			err = b.rdb.Del(ctx, yardstickKey).Err()
		}
		return err
	}
	if pair%2 == 1 {
		if err := yardstick(); err != nil {
			return r, err
		}
	}
	if err := b.joining(ctx, pair, &r); err != nil {
		return r, err
	}
	if pair%2 == 0 {
		err = yardstick()
	}
	return r, err
}

// joining has everybody join, part by part, and looks whether each has a place.
func (b *bench) joining(ctx context.Context, pair int, r *round) error {
	event := "room-" + strconv.Itoa(pair+1)
	if err := b.house.Open(ctx, event); err != nil {
		return err
	}
	idle := func(row int) (err error) {
		r.ticks[row], err = b.during(ctx, func() error { return peers.Wait(ctx, b.o.Idle) })
		return err
	}
	if err := idle(0); err != nil {
		return err
	}
	past := time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)
	if err := b.room(ctx, event, map[string]any{"rate": 60, "burst": 1, "cap": 1000, "sessionSeconds": 300,
		"joinsAt": past, "opensAt": past}); err != nil {
		return err
	}
	if err := b.until(ctx, 20*time.Second, "the room is open", func(f frame) bool { return f.State == "open" }); err != nil {
		return err
	}
	joined := 0
	for part, until := range b.o.parts() {
		var took []time.Duration
		cost, err := b.during(ctx, func() (err error) {
			took, err = b.crowd.each(ctx, joined, until, b.crowd.join)
			return err
		})
		if err != nil {
			return err
		}
		r.joins, r.took, joined = r.joins.plus(cost), append(r.took, took...), until
		if err := b.crowd.whole(joined); err != nil {
			return err
		}
		if err := b.kept(ctx, joined); err != nil {
			return err
		}
		if err := peers.Wait(ctx, time.Second); err != nil { // what joining has left to do
			return err
		}
		if err := idle(1 + part); err != nil {
			return err
		}
	}
	return b.ends(ctx)
}

// kept says of everybody who has joined whether they are in the line.
func (b *bench) kept(ctx context.Context, joined int) error {
	n, err := b.rdb.ZCard(ctx, "q:{"+b.crowd.event+"}").Result()
	switch {
	case err != nil:
		return fmt.Errorf("who is in the line: %w", err)
	case n != int64(joined):
		return fmt.Errorf("%d have joined, and %d are in the line: places are lost", joined, n)
	}
	return nil
}

const yardstickKey = "yardstick"

// zadd has redis-benchmark add as many members as there are fans, as long as
// theirs are, on as many connections.
func (b *bench) zadd(ctx context.Context) error {
	host, port, err := net.SplitHostPort(b.rdb.Options().Addr)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "redis-benchmark", "-h", host, "-p", port, "-q", "-c", strconv.Itoa(b.o.Conns), "-n", strconv.Itoa(b.o.Fans),
		"-r", "1000000000", "ZADD", yardstickKey, "NX", "__rand_int__", "0123456789__rand_int__")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("redis-benchmark, which comes with redis-tools: %w\n%s", err, out)
	}
	// Of so many members out of so many some are alike: fewer than one in a hundred.
	n, err := b.rdb.ZCard(ctx, yardstickKey).Result()
	switch {
	case err != nil:
		return fmt.Errorf("what redis-benchmark has added: %w", err)
	case n < int64(b.o.Fans)*99/100:
		return fmt.Errorf("redis-benchmark was to add %d members, and there are %d", b.o.Fans, n)
	}
	return nil
}
