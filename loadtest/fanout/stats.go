package fanout

import (
	"math"
	"slices"
)

// median is the middle of values, or of the two in the middle their mean.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	v := slices.Sorted(slices.Values(values))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// ratio is a figure of one server over that of another, within pairs.
type ratio struct{ mid, min, max float64 }

// ratios compares pair by pair; ok is false when there is no pair.
func ratios(of, to []float64) (r ratio, ok bool) {
	var all []float64
	for i := range min(len(of), len(to)) {
		if to[i] > 0 {
			all = append(all, of[i]/to[i])
		}
	}
	if len(all) == 0 {
		return r, false
	}
	return ratio{median(all), slices.Min(all), slices.Max(all)}, true
}

// slope is by how much y grows for each x, by least squares.
func slope(x, y []float64) float64 {
	n := float64(len(x))
	var sx, sy, sxx, sxy float64
	for i := range x {
		sx, sy, sxx, sxy = sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i]
	}
	if d := n*sxx - sx*sx; d != 0 {
		return (n*sxy - sx*sy) / d
	}
	return 0
}
