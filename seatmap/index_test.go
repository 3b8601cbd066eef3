package seatmap_test

import (
	"testing"

	"seatcast/seatmap"
)

func TestIndexFindsSeatsAndAreasByEitherName(t *testing.T) {
	c := &seatmap.Chart{
		Sections: []seatmap.Section{{ID: "s", Name: "Stalls", Rows: []seatmap.Row{{Label: "A", Seats: []seatmap.Seat{
			{TicketID: "a1", I: 0, Label: "1"},
			{TicketID: "a3", I: 2, Label: "3"},
		}}}}},
		Areas: []seatmap.Area{{ID: "floor", Capacity: 40}},
		Seats: 3,
	}
	x := c.Index()

	if seat, ok := x.Seat("a3"); !ok || seat.I != 2 {
		t.Errorf(`Seat("a3") = %+v, %v; want index 2`, seat, ok)
	}
	if _, ok := x.Seat("a2"); ok {
		t.Error(`Seat("a2") found a seat nobody drew`)
	}
	ref, ok := x.At(2)
	if !ok || ref.Seat.TicketID != "a3" || ref.Row.Label != "A" || ref.Section.Name != "Stalls" {
		t.Errorf("At(2) = %+v, %v; want a3 in row A of Stalls", ref, ok)
	}
	for _, i := range []int{-1, 1, 3} {
		if _, ok := x.At(i); ok {
			t.Errorf("At(%d) found a seat outside the chart or in a hole", i)
		}
	}
	if area, ok := x.Area("floor"); !ok || area.Capacity != 40 {
		t.Errorf(`Area("floor") = %+v, %v; want capacity 40`, area, ok)
	}
}
