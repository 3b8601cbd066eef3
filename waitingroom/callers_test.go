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

func TestWhoIsFarOverTheLimitsIsSoInEveryRoomItCallsAboutAndAgainLater(t *testing.T) {
	n := newLimiter(Limits{PerAccount: 1, PerAddress: -1, Suspect: 10}, nil)
	n.accounts.limit = 1e-9 // none is let through for having waited
	calls := func(times int, rooms ...string) map[string]int {
		said := map[string]int{}
		for k := range times {
			room := rooms[k%len(rooms)]
			if _, far := n.allow("join", "203.0.113.7", "bot", room); far {
				said[room]++
			}
		}
		return said
	}
	calls(accountBurst, "theatre") // as many as it may
	if said := calls(9, "theatre"); len(said) > 0 {
		t.Errorf("refused nine times it is far over: %v", said)
	}
	if said := calls(4, "theatre", "opera", ""); said["theatre"] != 1 || said["opera"] != 1 || len(said) != 2 {
		t.Errorf("in two rooms it is said %v", said)
	}
	if said := calls(12, "theatre"); said["theatre"] != 1 {
		t.Errorf("refused ten times more it is said %v", said)
	}
}
