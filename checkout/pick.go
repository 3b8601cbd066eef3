package checkout

import (
	"fmt"
	"net/http"
	"slices"

	"seatcast/seatmap"
	"seatcast/web"
)

// mostPicked is how many seats one call of an operator changes.
const mostPicked = 5000

// pick says which seats an operator means: by name, or all that match every
// other field.
type pick struct {
	TicketIDs []string `json:"ticketIds"`
	Section   string   `json:"section"` // id or name
	Row       string   `json:"row"`     // of the section
	Category  string   `json:"category"`
}

func (p pick) empty() bool { return len(p.TicketIDs) == 0 && !p.matches() }

func (p pick) matches() bool { return p.Section+p.Row+p.Category != "" }

// seats are those meant, ascending: one at least. Its errors are ready to be
// returned.
func (p pick) seats(sale *seatmap.Sale) ([]int, error) {
	switch {
	case p.empty():
		return nil, web.Bad("empty_selection", "say which seats are meant: ticketIds, or any of section, row and category")
	case p.matches() && len(p.TicketIDs) > 0:
		return nil, web.Bad("bad_request", "say which seats are meant by ticketIds or by section, row and category, not both")
	case p.Row != "" && p.Section == "":
		return nil, web.Bad("bad_request", "a row is one of a section: name that too")
	case p.matches():
		return p.matching(sale)
	}
	if len(p.TicketIDs) > mostPicked {
		return nil, tooManyPicked(len(p.TicketIDs))
	}
	seats, unknown, twice := sale.Index.Named(p.TicketIDs)
	if len(unknown) > 0 {
		return nil, refuse("unknown_seat", "this event has no such seats", map[string]any{"seats": unknown})
	}
	if len(twice) > 0 {
		return nil, refuse("duplicate_seat", "name each seat once", map[string]any{"seats": twice})
	}
	return seats, nil
}

func (p pick) matching(sale *seatmap.Sale) (seats []int, err error) {
	sale.Chart.Each(func(section *seatmap.Section, row *seatmap.Row, seat *seatmap.Seat) {
		if p.match(section, row, seat) {
			seats = append(seats, seat.I)
		}
	})
	switch {
	case len(seats) == 0:
		return nil, refuse("no_such_seats", "no seat of this event is in that section, row and category", nil)
	case len(seats) > mostPicked:
		return nil, tooManyPicked(len(seats))
	}
	slices.Sort(seats)
	return seats, nil
}

func (p pick) match(section *seatmap.Section, row *seatmap.Row, seat *seatmap.Seat) bool {
	return (p.Section == "" || p.Section == section.ID || p.Section == section.Name) &&
		(p.Row == "" || p.Row == row.Label) && (p.Category == "" || p.Category == seat.Category)
}

func tooManyPicked(n int) error {
	return refuse("too_many_seats", fmt.Sprintf("these are %d seats, and one call changes at most %d: name fewer at a time", n, mostPicked), nil)
}

func refuse(code, detail string, extra map[string]any) *web.Problem {
	return &web.Problem{Status: http.StatusUnprocessableEntity, Code: code, Detail: detail, Extra: extra}
}

// named are seats as the API calls them.
func named(sale *seatmap.Sale, seats []int) []string {
	ids := make([]string, 0, len(seats))
	for _, i := range seats {
		if at, ok := sale.Index.At(i); ok {
			ids = append(ids, at.Seat.TicketID)
		}
	}
	return ids
}
