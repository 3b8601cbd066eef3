package report

import (
	"math"
	"testing"
)

func TestRatiosAreTakenWithinPairs(t *testing.T) {
	r, ok := Ratios([]float64{10, 30, 20}, []float64{10, 10, 10})
	if !ok || r != (Ratio{2, 1, 3}) {
		t.Errorf("%v, %v", r, ok)
	}
	if _, ok := Ratios([]float64{1}, nil); ok {
		t.Error("a ratio to a server that is missing")
	}
	if m := Median([]float64{4, 1, 3, 2}); m != 2.5 {
		t.Errorf("the median of four is %v", m)
	}
	if !math.IsNaN(Median(nil)) {
		t.Error("nothing has a median")
	}
}
