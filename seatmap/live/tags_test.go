package live

import (
	"fmt"
	"testing"
	"time"

	"seatcast/seatmap"
)

func TestATagIsRememberedForOneSpanAndForgottenAfterTwo(t *testing.T) {
	var all tags
	all.last(&seatmap.Sale{Terms: seatmap.Terms{Cap: 20 * time.Minute, Grace: time.Minute}})
	start := time.Now()
	first := seatmap.TagOf("first-token")
	all.add(first, start)
	for now := start; now.Sub(start) < 4*time.Hour; now = now.Add(time.Minute) {
		all.add(seatmap.TagOf(fmt.Sprintf("%06d", now.Sub(start)/time.Minute)), now)
		switch age := now.Sub(start); {
		case age <= all.span && !all.has(first):
			t.Fatalf("forgotten after %v, and a basket lasts %v", age, all.span)
		case age > 2*all.span+time.Minute && all.has(first):
			t.Fatalf("still there after %v", age)
		}
	}
	if n := len(all.young) + len(all.old); n > 2*int(all.span/time.Minute)+2 {
		t.Errorf("%d tags are kept", n)
	}
}
