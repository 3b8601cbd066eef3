package seatmap

// Band is how much further away a seeded answer may be than the nearest, a
// seat.
func (s *Seating) Band() float64 { return float64(s.band) * unit }
