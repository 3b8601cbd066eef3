package seatmap

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Chart is the geometry of a venue. It is immutable and named by the SHA-256
// of the very bytes it is served as. Lengths are in the chart's own units, y
// grows downwards.
type Chart struct {
	Name       string     `json:"name"`
	Width      float64    `json:"width"`
	Height     float64    `json:"height"`
	Focal      Point      `json:"focal"`            // where the audience looks: nearer is better
	Stage      *Shape     `json:"stage,omitempty"`  // what they look at
	Shapes     []Shape    `json:"shapes,omitempty"` // other outlines, drawn under the seats
	Categories []Category `json:"categories"`       // what prices are set for
	Sections   []Section  `json:"sections"`
	Areas      []Area     `json:"areas,omitempty"` // general admission, sold by counter
	Seats      int        `json:"seats"`           // size of the index space: above every I; not every index has a seat
}

// Point is a place on the chart.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Shape is an outline to draw. Points is a closed polygon.
type Shape struct {
	Label  string  `json:"label,omitempty"`
	Color  string  `json:"color,omitempty"` // CSS colour
	Points []Point `json:"points"`
}

// Category groups seats of one price.
type Category struct {
	Name  string `json:"name"`
	Color string `json:"color,omitempty"` // CSS colour
}

// Section is a part of the house: a stand, a balcony, a box.
type Section struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Rows []Row  `json:"rows"`
}

// Row lists its seats in neighbour order. Two seats that follow each other are
// neighbours unless the second says Break: adjacency is data, not arithmetic
// on the numbers.
type Row struct {
	Label string `json:"label"`
	Seats []Seat `json:"seats"`
}

// Seat is one numbered seat.
type Seat struct {
	TicketID   string  `json:"ticketId"` // stable id used at the API, unique in the chart
	I          int     `json:"i"`        // index in maps and changes
	Label      string  `json:"label"`    // what is printed on it, within its row
	X          float64 `json:"x"`
	Y          float64 `json:"y"`
	Category   string  `json:"category"`
	Break      bool    `json:"break,omitempty"`      // an aisle, a pillar or a gap lies between this seat and the one before it
	Accessible bool    `json:"accessible,omitempty"` // a wheelchair space
	Companion  bool    `json:"companion,omitempty"`  // beside an accessible space, for who comes along
	Restricted bool    `json:"restricted,omitempty"` // restricted view
}

// Area is a general-admission area: places without numbers, sold by counter.
type Area struct {
	ID       string  `json:"id"`
	Name     string  `json:"name"`
	Category string  `json:"category"`
	Capacity int     `json:"capacity"`
	Points   []Point `json:"points"` // closed polygon
}

// Each calls f for every seat of the chart, in the order it is written.
func (c *Chart) Each(f func(section *Section, row *Row, seat *Seat)) {
	for si := range c.Sections {
		s := &c.Sections[si]
		for ri := range s.Rows {
			r := &s.Rows[ri]
			for i := range r.Seats {
				f(s, r, &r.Seats[i])
			}
		}
	}
}

// Encode returns the bytes a chart is served as and their SHA-256 in hex.
func (c *Chart) Encode() (body []byte, sha string, err error) {
	body, err = json.Marshal(c)
	if err != nil {
		return nil, "", fmt.Errorf("encode chart %q: %w", c.Name, err)
	}
	sum := sha256.Sum256(body)
	return body, hex.EncodeToString(sum[:]), nil
}

// DecodeChart reads the bytes Encode wrote.
func DecodeChart(body []byte) (*Chart, error) {
	c := new(Chart)
	if err := json.Unmarshal(body, c); err != nil {
		return nil, fmt.Errorf("decode chart: %w", err)
	}
	return c, nil
}
