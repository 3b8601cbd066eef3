package seatmap

import (
	"math"
	"strconv"
)

// bowl is stands around a field: four straight sides and four round corners.
// Its front row runs along a rectangle of half extents a and b whose corners
// have radius r; a row further back runs parallel to it.
type bowl struct{ a, b, r float64 }

// rowAt returns where the seats of a block's row are that lies so far behind
// the front row.
type rowAt func(depth float64) []Point

// straight cuts a side into blocks of so many seats a row. Sides count
// clockwise from the top: 0 top, 1 right, 2 bottom, 3 left.
func (b bowl) straight(side int, widths []int) []rowAt {
	length, front := 2*(b.a-b.r), b.b
	if side%2 == 1 {
		length, front = 2*(b.b-b.r), b.a
	}
	total := 0
	for _, w := range widths {
		total += w
	}
	gap := (length - float64(total)*seatPitch) / float64(len(widths))
	var blocks []rowAt
	from := -length / 2
	for _, w := range widths {
		first := from + (gap+seatPitch)/2
		from += gap + float64(w)*seatPitch
		blocks = append(blocks, func(depth float64) []Point {
			ps := make([]Point, w)
			for i := range ps {
				ps[i] = turn(Point{first + float64(i)*seatPitch, -(front + depth)}, side)
			}
			return ps
		})
	}
	return blocks
}

// corner cuts the corner after a side into n blocks of equal angle, which hold
// more seats the further back the row.
func (b bowl) corner(side, n int) []rowAt {
	center := Point{b.a - b.r, -(b.b - b.r)}
	if side%2 == 1 {
		center = Point{b.b - b.r, -(b.a - b.r)}
	}
	angle := math.Pi / 2 / float64(n)
	var blocks []rowAt
	for k := range n {
		middle := -math.Pi/2 + angle*(float64(k)+0.5)
		blocks = append(blocks, func(depth float64) []Point {
			r := b.r + depth
			ps := make([]Point, int((angle*r-aisle)/seatPitch))
			for i := range ps {
				sin, cos := math.Sincos(middle + (float64(i)-float64(len(ps)-1)/2)*seatPitch/r)
				ps[i] = turn(Point{center.X + r*cos, center.Y + r*sin}, side)
			}
			return ps
		})
	}
	return blocks
}

// turn turns a point by so many quarters clockwise, as seen with y downwards.
func turn(p Point, quarters int) Point {
	for range quarters {
		p = Point{-p.Y, p.X}
	}
	return p
}

// tier is a ring of rows.
type tier struct {
	number   int // of its first block, less one: 100, 200
	front    float64
	rows     int
	rowDepth float64
	label    func(row int) string
	entrance [2]int // rows, from and to before, that an entrance cuts in wide blocks
	platform int    // the row with wheelchair spaces
	spaces   int    // how many in each block
}

const (
	entranceWidth = 6
	wideBlock     = 20 // seats a row from which on a block has an entrance
)

// stand draws one block of a tier into a section.
func (t tier) stand(s *Section, at rowAt, category string) {
	for k := range t.rows {
		row := s.row(t.label(k), category, at(t.front+float64(k)*t.rowDepth))
		if k == t.platform {
			row.welcome(min(t.spaces, len(row.Seats)/2))
		}
		if k >= t.entrance[0] && k < t.entrance[1] && len(row.Seats) >= wideBlock {
			row.open(entranceWidth)
		}
	}
}

// cut says how a tier is cut into blocks along one side and the corner after
// it, and what each costs. A tier has one for each side.
type cut struct {
	side        []int // seats a row of each block
	price       func(block, of int) string
	corner      int    // blocks of the corner …
	gone        [2]int // … of which so many at its beginning and end are not built
	cornerPrice string
}

// same is the price of a side whose blocks all cost the same.
func same(category string) func(int, int) string {
	return func(int, int) string { return category }
}

// middle is the price of a side whose blocks cost more away from its ends.
func middle(inner, outer string) func(int, int) string {
	return func(block, of int) string {
		if block == 0 || block == of-1 {
			return outer
		}
		return inner
	}
}

// ring draws a whole tier, its blocks numbered clockwise from the top left.
func (d *draft) ring(b bowl, t tier, cuts [4]cut) {
	block := func(at rowAt, category string) {
		t.number++
		id := strconv.Itoa(t.number)
		t.stand(d.section(id, "Block "+id), at, category)
	}
	for side, c := range cuts {
		for i, at := range b.straight(side, c.side) {
			block(at, c.price(i, len(c.side)))
		}
		for i, at := range b.corner(side, c.corner) {
			if i >= c.gone[0] && i < c.corner-c.gone[1] {
				block(at, c.cornerPrice)
			}
		}
	}
}
