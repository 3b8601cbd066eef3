package front

import (
	"fmt"
	"strconv"

	"seatcast/seatmap"
)

// A row of a hall, and how many rows a section has.
const (
	rowSeats    = 50
	sectionRows = 20
)

// Hall is a chart of so many seats in straight rows.
func Hall(seats int) *seatmap.Chart {
	c := &seatmap.Chart{Name: "Hall", Width: rowSeats*10 + 40, Focal: seatmap.Point{X: rowSeats * 5}, Seats: seats,
		Categories: []seatmap.Category{{Name: "Seat", Color: "#2e86ab"}}}
	for i := range seats {
		row, section := i/rowSeats, i/rowSeats/sectionRows
		if section == len(c.Sections) {
			id := fmt.Sprintf("hall%d", section+1)
			c.Sections = append(c.Sections, seatmap.Section{ID: id, Name: id})
		}
		s := &c.Sections[section]
		if row%sectionRows == len(s.Rows) {
			s.Rows = append(s.Rows, seatmap.Row{Label: strconv.Itoa(row%sectionRows + 1)})
		}
		r := &s.Rows[row%sectionRows]
		label := strconv.Itoa(i%rowSeats + 1)
		r.Seats = append(r.Seats, seatmap.Seat{TicketID: s.ID + "-" + r.Label + "-" + label, I: i, Label: label,
			X: float64(20 + i%rowSeats*10), Y: float64(20 + row*10), Category: "Seat"})
	}
	c.Height = float64(seats/rowSeats*10 + 50)
	return c
}

// Tickets are the names of a hall's seats, by index.
func Tickets(c *seatmap.Chart) []string {
	ids := make([]string, c.Seats)
	c.Each(func(_ *seatmap.Section, _ *seatmap.Row, s *seatmap.Seat) { ids[s.I] = s.TicketID })
	return ids
}
