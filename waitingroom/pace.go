package waitingroom

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// paceEvery is how often it is said what the sale did, and the pace is steered.
const paceEvery = time.Second

// pace says what the sale of an open room did here, hears what it did elsewhere, and
// steers the room by all of it, unless another node has.
func (r *Rooms) pace(ctx context.Context, room *Room, h *hall) error {
	if room.State != Open {
		h.heard(sale{})
		return nil
	}
	if time.Since(h.saidAt) < paceEvery {
		return nil
	}
	h.saidAt = time.Now()
	limits := room.Terms.Slow
	did := sale{h.meters[Holding].figures(limits.Hold, h.saidAt), h.meters[Paying].figures(limits.Checkout, h.saidAt)}
	var p paced
	err := r.warmly(ctx, room.Event, func() (err error) {
		p, err = r.o.Line.of(room).say(ctx, room.Event, r.node, did)
		return err
	})
	if err != nil {
		return err
	}
	h.heard(p.did)
	is := p.steering.steer(p.now, p.did, limits)
	if is == p.steering {
		return nil
	}
	mine, err := r.o.Line.of(room).steer(ctx, room.Event, p, is)
	if err != nil || !mine {
		return err
	}
	switch was := p.factor; {
	case was == 1 && is.factor < 1:
		r.o.Log.WarnContext(ctx, "a room lets in fewer: its sale is slow", "event", room.Event, "step", is.why,
			"holds p99 ms", p.did.Holds.P99, "checkout p99 ms", p.did.Checkout.P99, "failed", p.did.Holds.Failed+p.did.Checkout.Failed)
	case was < 1 && is.factor == 1:
		r.o.Log.InfoContext(ctx, "a room lets in as many as it should again", "event", room.Event)
	}
	return nil
}

func (h *hall) heard(did sale) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.did = did
}

func (h *hall) measured() *sale {
	h.mu.Lock()
	defer h.mu.Unlock()
	did := h.did
	return &did
}

// paced is how the pace of a room stands, and what its sale did.
type paced struct {
	steering
	now     time.Time
	steered string // when, as Redis has it
	did     sale
}

// say notes what a sale did on a node.
func (l *Line) say(ctx context.Context, event, node string, did sale) (p paced, err error) {
	got, err := l.run(ctx, paceScript, []string{roomKey(event), didKey(event)}, node, encode(did))
	if err != nil {
		return p, err
	}
	p.now, p.steered, p.why = moment(got[0]), text(got[1]), text(got[4])
	for at, to := range map[int]*float64{2: &p.factor, 3: &p.bad} {
		if *to, err = strconv.ParseFloat(text(got[at]), 64); err != nil {
			return p, fmt.Errorf("pace of %s: %w", event, err)
		}
	}
	for at, to := range map[int]*time.Time{5: &p.cut, 6: &p.rose, 7: &p.calm} {
		ms, err := strconv.ParseInt(text(got[at]), 10, 64)
		if err != nil {
			return p, fmt.Errorf("pace of %s: %w", event, err)
		}
		if ms > 0 {
			*to = time.UnixMilli(ms).UTC()
		}
	}
	for _, said := range got[8:] {
		var one sale
		if err := json.Unmarshal([]byte(text(said)), &one); err != nil {
			return p, fmt.Errorf("pace of %s: %w", event, err)
		}
		p.did = p.did.and(one)
	}
	return p, nil
}

// steer sets the pace of a room, and says false when another node did since p.
func (l *Line) steer(ctx context.Context, event string, p paced, s steering) (mine bool, err error) {
	ms := func(t time.Time) int64 {
		if t.IsZero() {
			return 0
		}
		return t.UnixMilli()
	}
	got, err := l.run(ctx, steerScript, []string{roomKey(event)}, p.steered,
		strconv.FormatFloat(s.factor, 'f', 4, 64), strconv.FormatFloat(s.bad, 'f', 4, 64), s.why, ms(s.cut), ms(s.rose), ms(s.calm))
	return err == nil && got[0] == "steered", err
}
