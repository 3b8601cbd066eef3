package holds_test

import (
	"testing"
	"time"

	"seatcast/seatmap"
)

// What the map shows as free was given back, exchanged, ran out or was put back
// on sale: servers are told which, and who did it.
func TestAChangeSaysWhySeatsWereReleased(t *testing.T) {
	t.Parallel()
	h := setup(t, 20)
	ctx := t.Context()
	says := func(why seatmap.Why, tag string, released ...int) {
		t.Helper()
		c := h.last()
		if c.Why != why || c.Tag != tag || len(c.Released) != len(released) || len(released) > 0 && c.Released[0] != released[0] {
			t.Errorf("the last change is %+v, not %s of %v by %q", c, why, released, tag)
		}
	}
	ann := h.takes("ann", 1, 2)
	tag := ann.Token[:6]
	says("", tag)
	b, err := h.store.Swap(ctx, h.swaps(ann, 2, 3))
	h.must(err)
	says(seatmap.Swapped, tag, 1)
	b, err = h.store.Swap(ctx, h.swaps(b, 2))
	h.must(err)
	says(seatmap.Swapped, tag, 3)
	h.must(h.store.Release(ctx, h.event, b.Token, b.User))
	says(seatmap.GivenBack, tag, 2)

	r := h.asks("bob", 4)
	r.Terms.Hold, r.Terms.Grace = time.Millisecond, 0
	_, err = h.store.Take(ctx, r)
	h.must(err)
	h.eventually("the end of the hold is told", func() bool {
		h.must(h.store.Lapse(ctx, h.event))
		return h.seatmap().At(4) == seatmap.Available
	})
	says(seatmap.Lapsed, "", 4)

	h.must(h.store.Spend(ctx, h.event, seatmap.Marks{Closed: []int{5}}))
	says("", "")
	h.must(h.store.Restore(ctx, h.event, seatmap.Marks{Closed: []int{5}}))
	says(seatmap.Restored, "", 5)
	h.must(h.store.Restore(ctx, h.event, seatmap.Marks{Areas: map[string]int{"floor": 3}}))
	says("", "")
}
