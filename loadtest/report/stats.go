package report

import (
	"fmt"
	"math"
	"slices"
)

// Median is the middle of values, or of the two in the middle their mean; NaN
// when there are none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	v := slices.Sorted(slices.Values(values))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// Ratio is a figure of one server over that of another, within pairs: their
// median, the smallest and the largest.
type Ratio struct{ Mid, Min, Max float64 }

// Ratios compares pair by pair; ok is false when there is no pair.
func Ratios(of, to []float64) (r Ratio, ok bool) {
	var all []float64
	for i := range min(len(of), len(to)) {
		if to[i] > 0 {
			all = append(all, of[i]/to[i])
		}
	}
	if len(all) == 0 {
		return r, false
	}
	return Ratio{Median(all), slices.Min(all), slices.Max(all)}, true
}

func (r Ratio) String() string { return fmt.Sprintf("%.2f (%.2f to %.2f)", r.Mid, r.Min, r.Max) }
