package seatmap

import (
	"math"
	"strconv"
)

// Theatre is a house of exactly 1,350 seats: stalls, dress circle, balcony and
// eight boxes. Its numbers are the old way: odd to the left, even to the
// right, counted outwards from the aisles, 101 up in the middle, and no row I
// or O. Two pillars hold the dress circle and hide some of the stage.
func Theatre() *Chart {
	d := &draft{c: Chart{
		Focal: Point{0, 0},
		Stage: &Shape{Label: "Stage", Color: "#5b4a42", Points: []Point{{-190, -150}, {190, -150}, {190, -10}, {0, 14}, {-190, -10}}},
		Categories: []Category{{"Stalls", "#a23b48"}, {"Rear stalls", "#d08c60"}, {"Dress circle", "#2e86ab"},
			{"Balcony", "#588157"}, {"Boxes", "#b8860b"}},
	}}
	d.floor(house{id: "stalls", name: "Stalls", front: 430, rows: 18, middle: 14,
		side:  func(k int) int { return 8 + k/3 },
		price: func(k int) string { return []string{"Stalls", "Rear stalls"}[k/12] }})
	d.pillars()
	d.floor(house{id: "circle", name: "Dress circle", front: 730, rows: 9, middle: 16,
		side:  func(k int) int { return 11 + k/2 },
		price: func(int) string { return "Dress circle" }})
	d.floor(house{id: "balcony", name: "Balcony", front: 910, rows: 8, middle: 14,
		side:  func(k int) int { return 11 + k/3 },
		price: func(int) string { return "Balcony" }})
	d.boxes()
	d.c.Sections[0].Rows[17].welcome(6)
	d.c.Sections[1].Rows[8].welcome(4)
	d.c.Sections[2].Rows[0].welcome(2)
	return d.finish("Theatre")
}

// house is one floor of a theatre: curved rows in three blocks.
type house struct {
	id, name string
	front    float64 // radius of its first row
	rows     int
	middle   int             // seats of the middle block
	side     func(k int) int // seats of each side block in row k
	price    func(k int) string
}

const (
	curveCenter  = -390.0 // rows are arcs around a point behind the stage
	theatreDepth = 14.0
	theatreAisle = 16.0
)

func (d *draft) floor(h house) {
	s := d.section(h.id, h.name)
	for k := range h.rows {
		side := h.side(k)
		r := h.front + float64(k)*theatreDepth
		row := s.row(letters(k), h.price(k), arc(r, side, h.middle, side))
		for i := range row.Seats {
			seat := &row.Seats[i]
			seat.Label = oldNumber(i, side, h.middle)
			seat.Break = i == side || i == side+h.middle
		}
	}
}

// arc returns the places of a row in blocks with aisles between them.
func arc(r float64, blocks ...int) []Point {
	length := float64(len(blocks)-1) * theatreAisle
	for _, n := range blocks {
		length += float64(n) * seatPitch
	}
	var ps []Point
	at := -length/2 + seatPitch/2
	for _, n := range blocks {
		for range n {
			sin, cos := math.Sincos(at / r)
			ps = append(ps, Point{r * sin, curveCenter + r*cos})
			at += seatPitch
		}
		at += theatreAisle
	}
	return ps
}

// oldNumber returns the number of the i-th seat of a row of three blocks.
func oldNumber(i, side, middle int) string {
	switch {
	case i < side:
		return strconv.Itoa(2*(side-i) - 1)
	case i < side+middle:
		return strconv.Itoa(101 + i - side)
	default:
		return strconv.Itoa(2 * (i - side - middle + 1))
	}
}

// pillars stand in rows L and M of the stalls; whoever sits right behind one
// sees less.
func (d *draft) pillars() {
	rows := d.c.Sections[0].Rows
	pillar := map[string]bool{"7": true, "8": true}
	for i := range rows {
		row := &rows[i]
		switch row.Label {
		case "L", "M":
			row.drop(func(_ int, s *Seat) bool { return pillar[s.Label] })
		case "N", "P":
			for k := range row.Seats {
				row.Seats[k].Restricted = pillar[row.Seats[k].Label]
			}
		}
	}
}

// boxes hang on the side walls, four a side, six seats each, which see the
// stage from the side.
func (d *draft) boxes() {
	const wall, first, pitch = 268.0, -10.0, 78.0
	for i, name := range []string{"A", "B", "C", "D", "E", "F", "G", "H"} {
		side, k := -1.0, float64(i)
		if i >= 4 {
			side, k = 1, k-4
		}
		var at []Point
		for n := range 6 {
			at = append(at, Point{side * (wall + 6*k), first + k*pitch + float64(n)*seatPitch})
		}
		row := d.section("box-"+name, "Box "+name).row("Box "+name, "Boxes", at)
		for n := range row.Seats {
			row.Seats[n].Restricted = k == 0
		}
	}
}
