package web

import (
	"fmt"
	"testing"
	"time"
)

func TestRememberedStaysBoundedAndKeepsWhatIsUsed(t *testing.T) {
	now := time.Now()
	r := newRemembered(100)
	r.put("regular", bearer{user: "ada", operator: true}, now.Add(time.Hour), now)
	for i := range 10_000 {
		r.put(fmt.Sprint(i), bearer{user: "u"}, now.Add(time.Hour), now)
		if n := len(r.young) + len(r.old); n > 100 {
			t.Fatalf("%d entries", n)
		}
		if b, ok := r.bearer("regular", now); !ok || b != (bearer{user: "ada", operator: true}) {
			t.Fatalf("after %d others the regular is forgotten", i)
		}
	}
	if _, ok := r.bearer("regular", now.Add(time.Hour)); ok {
		t.Error("remembered past its end")
	}
}
