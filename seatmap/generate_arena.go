package seatmap

import "math"

// Arena is a concert hall of exactly 18,000 seats in two tiers, and a standing
// floor of 2,500. The stage fills one end: nothing is built behind it, and the
// blocks beside it have a restricted view.
func Arena() *Chart {
	const halfWidth, halfLength = 400, 660
	d := &draft{c: Chart{
		Focal: Point{0, -halfLength + 240},
		Stage: &Shape{Label: "Stage", Color: "#4a4a55", Points: rectangle(0, -halfLength+110, 560, 260)},
		Categories: []Category{{"Floor", "#d1495b"}, {"Lower tier", "#edae49"}, {"Lower tier side", "#66a182"},
			{"Upper tier", "#2e86ab"}, {"Upper tier side", "#7768ae"}},
		Areas: []Area{{ID: "floor", Name: "Floor", Category: "Floor", Capacity: 2500,
			Points: rectangle(0, 120, 2*halfWidth-120, 2*halfLength-520)}},
		Shapes: []Shape{{Label: "Mixing desk", Color: "#4a4a55", Points: rectangle(0, 420, 120, 50)}},
	}}
	b := bowl{a: halfWidth, b: halfLength, r: 260}
	none := same("")
	d.ring(b, tier{number: 100, rows: 22, rowDepth: 14, label: letters,
		entrance: [2]int{12, 15}, platform: 21, spaces: 4},
		[4]cut{
			{price: none, corner: 4, gone: [2]int{2, 0}, cornerPrice: "Lower tier side"},
			{side: []int{18, 19, 19, 18}, price: same("Lower tier"), corner: 4, cornerPrice: "Lower tier"},
			{side: []int{26}, price: same("Lower tier"), corner: 4, cornerPrice: "Lower tier"},
			{side: []int{18, 19, 19, 18}, price: same("Lower tier"), corner: 4, gone: [2]int{0, 2}, cornerPrice: "Lower tier side"},
		})
	d.ring(b, tier{number: 200, front: 22*14 + 60, rows: 22, rowDepth: 14, label: letters,
		entrance: [2]int{5, 8}, platform: 0, spaces: 2},
		[4]cut{
			{price: none, corner: 8, gone: [2]int{4, 0}, cornerPrice: "Upper tier side"},
			{side: []int{18, 19, 19, 18}, price: same("Upper tier"), corner: 8, cornerPrice: "Upper tier"},
			{side: []int{26}, price: same("Upper tier"), corner: 8, cornerPrice: "Upper tier"},
			{side: []int{18, 19, 19, 18}, price: same("Upper tier"), corner: 8, gone: [2]int{0, 4}, cornerPrice: "Upper tier side"},
		})
	d.c.Each(func(_ *Section, _ *Row, s *Seat) {
		s.Restricted = s.Y < -halfLength+200
	})
	// The roof comes down towards the stage: the highest rows end where it does.
	d.trim(18_000, func(s *Seat) float64 { return tenth(math.Abs(s.X) - s.Y) })
	return d.finish("Arena")
}
