package live

import (
	"fmt"
	"testing"
	"time"

	"seatcast/seatmap"
)

// Also while the box office holds a seat for weeks.
func TestATagIsRememberedForOneSpanAndForgottenAfterTwo(t *testing.T) {
	var all tags
	all.last(&seatmap.Sale{Terms: seatmap.Terms{Cap: 20 * time.Minute, Grace: time.Minute}})
	start := time.Now()
	first := seatmap.TagOf("first-token")
	all.add(first, start, start.Add(time.Minute))
	all.add(seatmap.TagOf("box-office"), start, start.Add(30*24*time.Hour))
	for now := start; now.Sub(start) < 4*time.Hour; now = now.Add(time.Minute) {
		all.add(seatmap.TagOf(fmt.Sprintf("%06d", now.Sub(start)/time.Minute)), now, now.Add(time.Minute))
		switch age := now.Sub(start); {
		case age <= all.span && !all.has(first):
			t.Fatalf("forgotten after %v, and a basket lasts %v", age, all.span)
		case age > 2*all.span+time.Minute && all.has(first):
			t.Fatalf("still there after %v", age)
		}
	}
	if n := len(all.young) + len(all.old) + len(all.long); n > 2*int(all.span/time.Minute)+3 {
		t.Errorf("%d tags are kept", n)
	}
}

func TestATagIsRememberedAsLongAsTheBasketOfAHoldThatWasExtendedByHours(t *testing.T) {
	var all tags
	all.last(&seatmap.Sale{Terms: seatmap.Terms{Cap: 20 * time.Minute, Grace: time.Minute}})
	start := time.Now()
	kept, ends := seatmap.TagOf("kept-token"), start.Add(5*time.Hour)
	all.add(kept, start, ends)
	for now := start; now.Before(ends.Add(remembered)); now = now.Add(time.Minute) {
		if !all.has(kept) {
			t.Fatalf("forgotten after %v", now.Sub(start))
		}
		all.add(seatmap.TagOf(fmt.Sprintf("%06d", now.Sub(start)/time.Minute)), now, now.Add(time.Minute))
	}
	for now := ends.Add(remembered); all.has(kept); now = now.Add(time.Minute) {
		if now.Sub(ends) > remembered+2*all.span+2*time.Minute {
			t.Fatal("it is never forgotten")
		}
		all.add(seatmap.TagOf("other-token"), now, now.Add(time.Minute))
	}
}
