package seatmap

// AccessibleNeeded returns how many wheelchair spaces an assembly area of so
// many seats has by the ADA Standards, Table 221.2.1.1.
func AccessibleNeeded(seats int) int {
	switch {
	case seats < 4:
		return 0
	case seats <= 25:
		return 1
	case seats <= 50:
		return 2
	case seats <= 150:
		return 4
	case seats <= 300:
		return 5
	case seats <= 500:
		return 6
	case seats <= 5000:
		return 6 + (seats-500+149)/150
	default:
		return 36 + (seats-5000+199)/200
	}
}

// warnings tells what a chart may well have and its author should know.
func (c *Chart) warnings() Faults {
	var ws Faults
	seats, accessible, alone := 0, 0, 0
	for _, section := range c.Sections {
		for _, row := range section.Rows {
			seats += len(row.Seats)
			for i, seat := range row.Seats {
				if !seat.Accessible {
					continue
				}
				accessible++
				if !row.companionBeside(i) {
					alone++
				}
			}
		}
	}
	if need := AccessibleNeeded(seats); accessible < need {
		ws.Add("", "wheelchair spaces: %d, for %d seats; ADA Table 221.2.1.1 asks for %d", accessible, seats, need)
	}
	if alone > 0 {
		ws.Add("", "wheelchair spaces without a companion seat beside them: %d of %d", alone, accessible)
	}
	if holes := c.Seats - seats; holes > 0 {
		ws.Add("", "indexes that belong to no seat: %d", holes)
	}
	return ws
}

// companionBeside reports whether a neighbour of seat i is a companion seat.
func (r *Row) companionBeside(i int) bool {
	before := i > 0 && !r.Seats[i].Break && r.Seats[i-1].Companion
	after := i+1 < len(r.Seats) && !r.Seats[i+1].Break && r.Seats[i+1].Companion
	return before || after
}
