package seatmap_test

import (
	"encoding/json"
	"testing"
	"time"

	"seatcast/seatmap"
)

func TestParseBookingIDUndoesBookingID(t *testing.T) {
	const event, token = "derby-2027", "AbZ_-09AbZ_-09AbZ_-09AbZ_-09AbZ_"
	e, tok, ok := seatmap.ParseBookingID(seatmap.BookingID(event, token))
	if e != event || tok != token || !ok {
		t.Errorf("got %q %q %v", e, tok, ok)
	}
	for _, bad := range []string{"", ".", "derby", "derby.", ".token", "derby.to.ken", "derby.to}ken", "derby.to ken",
		"DERBY.token", "der\x00by.token", "der}by.token", "\xff.token"} {
		if _, _, ok := seatmap.ParseBookingID(bad); ok {
			t.Errorf("%q passes for a booking id", bad)
		}
	}
}

func sale() *seatmap.Sale {
	chart := &seatmap.Chart{
		Sections: []seatmap.Section{{ID: "n", Name: "North", Rows: []seatmap.Row{{Label: "A", Seats: []seatmap.Seat{
			{TicketID: "n-a-1", I: 0, Label: "1", Category: "gold"},
			{TicketID: "n-a-2", I: 1, Label: "2", Category: "tin"},
		}}}}},
		Areas: []seatmap.Area{{ID: "pit", Name: "Pit", Category: "tin", Capacity: 9}},
		Seats: 2,
	}
	return &seatmap.Sale{Event: "derby", Chart: chart, Index: chart.Index(), Currency: "EUR",
		Prices: map[string]int64{"gold": 9000, "tin": 2500}, Terms: seatmap.Terms{Grace: 30 * time.Second}}
}

func TestQuoteAddsUp(t *testing.T) {
	q, err := sale().Quote([]int{0, 1}, map[string]int{"pit": 3})
	if err != nil {
		t.Fatal(err)
	}
	if want := (seatmap.Money{Amount: 9000 + 2500 + 3*2500, Currency: "EUR"}); q.Total != want {
		t.Errorf("total %+v, want %+v", q.Total, want)
	}
	if q.Seats[1].TicketID != "n-a-2" || q.Seats[1].Section != "North" || q.Seats[1].Row != "A" {
		t.Errorf("second seat is %+v", q.Seats[1])
	}
}

func TestQuoteRefusesWhatIsNotForSale(t *testing.T) {
	s := sale()
	if _, err := s.Quote([]int{2}, nil); err == nil {
		t.Error("a seat outside the chart has a price")
	}
	if _, err := s.Quote(nil, map[string]int{"moat": 1}); err == nil {
		t.Error("an area outside the chart has a price")
	}
	delete(s.Prices, "tin")
	if _, err := s.Quote([]int{1}, nil); err == nil {
		t.Error("a category without a price has one")
	}
}

func TestBookingShowsTheDeadlineWithoutTheGrace(t *testing.T) {
	s := sale()
	q, _ := s.Quote([]int{0}, nil)
	quote, _ := json.Marshal(q)
	until := time.Date(2027, 5, 1, 10, 8, 30, 0, time.UTC)
	b, err := s.Booking(seatmap.Basket{Event: "derby", Token: "t", State: seatmap.BasketHeld, Quote: quote, Until: until, Cap: until})
	if err != nil {
		t.Fatal(err)
	}
	if want := until.Add(-30 * time.Second); !b.ExpiresAt.Equal(want) || !b.Cap.Equal(want) {
		t.Errorf("shows %v and %v, want %v", b.ExpiresAt, b.Cap, want)
	}
	if b.BookingID != "derby.t" || b.Total != q.Total {
		t.Errorf("shows %+v", b)
	}
}
