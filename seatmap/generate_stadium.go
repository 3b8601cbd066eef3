package seatmap

import (
	"math"
	"strconv"
)

// Stadium is a football ground of exactly 60,000 seats in two tiers around the
// pitch. Its rows are as long as those of real grounds: a tenth of them up to
// 15 seats, half up to 26, a tenth over 41, the longest 57. Entrances, camera
// places and the scoreboard break rows.
func Stadium() *Chart {
	d := &draft{c: Chart{
		Stage: &Shape{Label: "Pitch", Color: "#4f9d5d", Points: rectangle(0, 0, 2100, 1360)},
		Categories: []Category{{"Premium", "#b8860b"}, {"Category 1", "#c8553d"}, {"Category 2", "#2e86ab"},
			{"Category 3", "#588157"}, {"Category 4", "#7768ae"}},
	}}
	b := bowl{a: 1150, b: 780, r: 250}
	number := func(k int) string { return strconv.Itoa(k + 1) }
	d.ring(b, tier{number: 100, rows: 32, rowDepth: 14, label: number,
		entrance: [2]int{17, 21}, platform: 31, spaces: 7},
		[4]cut{
			{side: []int{41, 34, 23, 34, 41}, price: middle("Premium", "Category 1"), corner: 4, cornerPrice: "Category 2"},
			{side: []int{22, 57, 22}, price: same("Category 3"), corner: 4, cornerPrice: "Category 2"},
			{side: []int{32, 41, 27, 41, 32}, price: same("Category 1"), corner: 4, cornerPrice: "Category 2"},
			{side: []int{22, 57, 22}, price: same("Category 3"), corner: 4, cornerPrice: "Category 2"},
		})
	d.cameras()
	d.ring(b, tier{number: 200, front: 32*14 + 56, rows: 32, rowDepth: 14, label: number,
		entrance: [2]int{9, 13}, platform: 0, spaces: 3},
		[4]cut{
			{side: []int{26, 21, 27, 22, 27, 21, 26}, price: middle("Category 1", "Category 2"), corner: 5, cornerPrice: "Category 3"},
			{side: []int{43, 15, 43}, price: same("Category 4"), corner: 5, cornerPrice: "Category 3"},
			{side: []int{36, 36, 29, 36, 36}, price: same("Category 2"), corner: 5, cornerPrice: "Category 3"},
			{side: []int{43, 15, 43}, price: same("Category 4"), corner: 5, cornerPrice: "Category 3"},
		})
	d.scoreboard(60_000)
	d.markings()
	return d.finish("Stadium")
}

// cameras take the front row of every other corner block down to five seats.
func (d *draft) cameras() {
	for i := range d.c.Sections {
		if front := &d.c.Sections[i].Rows[0]; i%2 == 0 && len(front.Seats) < 10 {
			front.drop(func(i int, _ *Seat) bool { return i >= 5 })
		}
	}
}

// scoreboard takes the highest rows behind the right goal, from the middle
// outwards, until so many seats are left.
func (d *draft) scoreboard(left int) {
	const halfWidth = 330
	d.trim(left, func(s *Seat) float64 {
		if s.X < 0 || math.Abs(s.Y) > halfWidth {
			return math.Inf(-1)
		}
		return s.X*1000 - math.Abs(s.Y)
	})
}

// markings draws the lines of the pitch.
func (d *draft) markings() {
	line := func(ps []Point) {
		d.c.Shapes = append(d.c.Shapes, Shape{Color: "#6fb37a", Points: ps})
	}
	line(rectangle(0, 0, 6, 1360))
	line(circle(0, 0, 183, 183))
	for _, end := range []float64{-1, 1} {
		line(rectangle(end*885, 0, 330, 806))
	}
}
