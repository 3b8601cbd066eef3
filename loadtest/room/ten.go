package room

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"seatcast/loadtest/peers"
	"seatcast/waitingroom/draw"
)

// tenOClock is what a draw costs, and learning the places.
type tenOClock struct {
	joins  spent
	memory int64         // of Redis for the tickets, before the draw
	frozen time.Duration // from the time it was to close
	drawn  time.Duration // likewise
	shards int
	shard  spent // everybody's place, from the shards
	mine   spent // the same, from the line
	took   []time.Duration
}

// byGuess is what a join takes as long as none was measured.
const byGuess = 500 * time.Microsecond

const tenOClockEvent = "ten-o-clock"

func (b *bench) tenOClock(ctx context.Context, rounds []round) (*tenOClock, error) {
	t := new(tenOClock)
	a := byGuess
	for _, r := range rounds {
		a = max(a, r.joins.wall/time.Duration(b.o.Fans))
	}
	if err := b.house.Open(ctx, tenOClockEvent); err != nil {
		return nil, err
	}
	before, err := b.meter(ctx)
	if err != nil {
		return nil, err
	}
	joins := time.Now().Add(3 * time.Second).Truncate(time.Second)
	closes := joins.Add(10*time.Second + 2*a*time.Duration(b.o.Fans)).Truncate(time.Second)
	if err := b.room(ctx, tenOClockEvent, map[string]any{"rate": 0, "burst": 1, "cap": 1000, "sessionSeconds": 300,
		"joinsAt": joins.UTC().Format(time.RFC3339), "closesAt": closes.UTC().Format(time.RFC3339),
		"opensAt": closes.Add(time.Hour).UTC().Format(time.RFC3339)}); err != nil {
		return nil, err
	}
	select {
	case <-time.After(time.Until(joins)):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if t.joins, err = b.during(ctx, func() error {
		_, err := b.crowd.each(ctx, 0, b.o.Fans, b.crowd.join)
		return err
	}); err != nil {
		return nil, err
	}
	for i := range b.crowd.fans {
		if !b.crowd.fans[i].Draw {
			return nil, fmt.Errorf("fan %d was too late for the draw: %v were too few for %d", i, t.joins.wall, b.o.Fans)
		}
	}
	if err := b.writtenDown(ctx); err != nil {
		return nil, err
	}
	full, err := b.meter(ctx)
	if err != nil {
		return nil, err
	}
	t.memory = full.memory - before.memory
	if err := b.isDrawn(ctx, closes); err != nil {
		return nil, err
	}
	ranks, err := b.learn(ctx, t, closes)
	if err != nil {
		return nil, err
	}
	return t, errors.Join(b.agree(ranks), t.noneRanked(b.o.Fans), b.ends(ctx))
}

// writtenDown waits until nothing of the list is in Redis alone.
func (b *bench) writtenDown(ctx context.Context) error {
	for began := time.Now(); ; {
		n, err := b.rdb.LLen(ctx, "new:{"+b.crowd.event+"}").Result()
		if err != nil || n == 0 {
			return err
		}
		if time.Since(began) > time.Minute {
			return fmt.Errorf("%d tickets are not written down after %v", n, time.Since(began).Round(time.Second))
		}
		if err := peers.Wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// isDrawn waits until the draw is over.
func (b *bench) isDrawn(ctx context.Context, closes time.Time) error {
	return b.until(ctx, time.Until(closes)+2*time.Minute, "the list is drawn", func(f frame) bool {
		return f.Draw.State == "drawn"
	})
}

// published is what the page of a draw says of it.
type published struct {
	Tickets           int
	Shards            int
	FrozenAt, DrawnAt time.Time
}

// learn has everybody learn their place from the shards, and then from the line.
// It returns the ranks by ticket.
func (b *bench) learn(ctx context.Context, t *tenOClock, closes time.Time) (ranks map[string]int64, err error) {
	var (
		d      published
		shards []draw.Shard
	)
	if t.shard, err = b.during(ctx, func() error {
		if err := b.crowd.ask(ctx, http.MethodGet, "/v1/queue/"+b.crowd.event+"/draw", "", nil, &d); err != nil {
			return err
		}
		shards = make([]draw.Shard, d.Shards)
		_, err := b.crowd.each(ctx, 0, d.Shards, func(ctx context.Context, n int) error {
			return b.crowd.ask(ctx, http.MethodGet, "/v1/queue/"+b.crowd.event+"/draw/shards/"+strconv.Itoa(n), "", nil, &shards[n])
		})
		return err
	}); err != nil {
		return nil, err
	}
	if d.Tickets != b.o.Fans {
		return nil, fmt.Errorf("%d joined the draw, and %d tickets are on its list", b.o.Fans, d.Tickets)
	}
	t.frozen, t.drawn, t.shards = d.FrozenAt.Sub(closes), d.DrawnAt.Sub(closes), d.Shards
	ranks = make(map[string]int64, b.o.Fans)
	for _, s := range shards {
		for _, ticket := range s.Tickets {
			ranks[ticket.ID.String()] = int64(ticket.Rank)
		}
	}
	t.mine, err = b.during(ctx, func() (err error) {
		t.took, err = b.crowd.each(ctx, 0, b.o.Fans, b.crowd.join)
		return err
	})
	return ranks, err
}

// agree says whether everybody has the rank that was drawn for their ticket.
func (b *bench) agree(ranks map[string]int64) error {
	for i, f := range b.crowd.fans {
		if rank := ranks[f.Ticket]; rank != f.Number {
			return fmt.Errorf("fan %d has place %d, and its ticket %s was drawn %d", i, f.Number, f.Ticket, rank)
		}
	}
	return b.crowd.whole(b.o.Fans)
}

// rankings are the commands that look a rank up.
var rankings = []string{"zrank", "zrevrank", "zcount"}

// noneRanked says whether somebody was ranked for each who asked: looks at the
// room itself count too, a few a second.
func (t *tenOClock) noneRanked(fans int) error {
	for _, s := range []spent{t.shard, t.mine} {
		var n int64
		for _, name := range rankings {
			n += s.calls[name]
		}
		if looks := int64(s.wall.Seconds()+1) * 10 * ticksASecond; n > looks && n > int64(fans)/10 {
			return fmt.Errorf("while %d fans learnt their place Redis was asked for a rank %d times", fans, n)
		}
	}
	return nil
}
