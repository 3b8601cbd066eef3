package web

import (
	"fmt"
	"testing"
	"time"
)

func TestRememberedStaysBoundedAndKeepsWhatIsUsed(t *testing.T) {
	now := time.Now()
	r := newRemembered(100)
	r.put("regular", "ada", now.Add(time.Hour), now)
	for i := range 10_000 {
		r.put(fmt.Sprint(i), "u", now.Add(time.Hour), now)
		if n := len(r.young) + len(r.old); n > 100 {
			t.Fatalf("%d entries", n)
		}
		if user, ok := r.user("regular", now); !ok || user != "ada" {
			t.Fatalf("after %d others the regular is forgotten", i)
		}
	}
	if _, ok := r.user("regular", now.Add(time.Hour)); ok {
		t.Error("remembered past its end")
	}
}
