package seatmap

// Club is a small room: 80 seats in eight rows with an aisle down the middle,
// and 40 places to stand by the bar.
func Club() *Chart {
	const rows, half, depth = 8, 5, 16.0
	d := &draft{c: Chart{
		Focal:      Point{0, -30},
		Stage:      &Shape{Label: "Stage", Color: "#4a4a55", Points: rectangle(0, -60, 120, 60)},
		Shapes:     []Shape{{Label: "Bar", Color: "#8d6e63", Points: rectangle(0, 216, 160, 14)}},
		Categories: []Category{{"Front", "#d1495b"}, {"Seated", "#edae49"}, {"Standing", "#2e86ab"}},
		Areas: []Area{{ID: "standing", Name: "Standing", Category: "Standing", Capacity: 40,
			Points: rectangle(0, 174, 160, 46)}},
	}}
	s := d.section("room", "Room")
	for k := range rows {
		category := "Seated"
		if k < 2 {
			category = "Front"
		}
		var at []Point
		for i := range 2 * half {
			x := (float64(i) - half + 0.5) * seatPitch
			if i < half {
				x -= aisle / 2
			} else {
				x += aisle / 2
			}
			at = append(at, Point{x, float64(k) * depth})
		}
		row := s.row(letters(k), category, at)
		row.Seats[half].Break = true
	}
	s.Rows[rows-1].welcome(4)
	return d.finish("Club")
}
