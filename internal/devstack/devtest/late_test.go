package devtest

import (
	"testing"
	"time"
)

func TestWhatIsLateIsSoOnABusyMachineToo(t *testing.T) {
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	if Late(ago(1500*time.Millisecond), 2*time.Second) {
		t.Error("it is late before its time")
	}
	if !Late(ago(10*time.Hour), 2*time.Second) {
		t.Error("after hours it is not late")
	}
}

func TestTimeIsGivenByHowManyWantACore(t *testing.T) {
	for load, want := range map[string]float64{
		"0.10 0.30 0.20 1/300 4711":     1,
		"16.00 12.00 8.00 2/900 4711":   8,
		"0.50 0.30 0.20 17/900 4711":    8.5, // it has only begun
		"":                              1,
		"as some other system tells it": 1,
	} {
		if got := crowding(load, 2); got != want {
			t.Errorf("%q: got %v, want %v", load, got, want)
		}
	}
}
