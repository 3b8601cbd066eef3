package waitingroom

import (
	"strconv"
	"testing"
)

func TestHoweverManyCallFewAreRemembered(t *testing.T) {
	a := newCallers(1, 1)
	regular := a.get("regular")
	for n := range 3 * callersKept {
		a.get(strconv.Itoa(n))
		if n%1000 == 0 && a.get("regular") != regular {
			t.Fatalf("who calls all the time is forgotten after %d others", n)
		}
	}
	if n := len(a.young) + len(a.old); n > 2*callersKept {
		t.Errorf("%d are remembered", n)
	}
}
