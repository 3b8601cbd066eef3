package waitingroom

import (
	"fmt"
	"time"
)

// Slow is from when on a sale is slow, so that fewer are let in. What is zero is
// never slow.
type Slow struct {
	Hold     time.Duration // what the slowest of a hundred holds take
	Checkout time.Duration // what the slowest of a hundred payments and confirmations take
	Failures int           // how many of a hundred calls of either fail
}

// usualSlow is what an operator has who says nothing.
var usualSlow = Slow{Hold: time.Second, Checkout: 5 * time.Second, Failures: 5}

// What an operator may say of it.
const (
	leastSlow = 10 * time.Millisecond
	mostSlow  = time.Minute
)

var errSlow = fmt.Errorf("of slow, holdMs and checkoutMs are %d to %d, failures is 1 to 100, and 0 switches one off", leastSlow.Milliseconds(), mostSlow.Milliseconds())

func (s Slow) sane() bool {
	for _, d := range []time.Duration{s.Hold, s.Checkout} {
		if d != 0 && (d < leastSlow || d > mostSlow) {
			return false
		}
	}
	return s.Failures >= 0 && s.Failures <= 100
}

// slowBody is Slow as an operator says it, and is told.
type slowBody struct {
	HoldMs     int32 `json:"holdMs"`
	CheckoutMs int32 `json:"checkoutMs"`
	Failures   int   `json:"failures"`
}

// body is nil when nothing is ever slow.
func (s Slow) body() *slowBody {
	if s == (Slow{}) {
		return nil
	}
	return &slowBody{int32(s.Hold.Milliseconds()), int32(s.Checkout.Milliseconds()), s.Failures}
}

func (b *slowBody) slow() Slow {
	if b == nil {
		return Slow{}
	}
	return Slow{time.Duration(b.HoldMs) * time.Millisecond, time.Duration(b.CheckoutMs) * time.Millisecond, b.Failures}
}
