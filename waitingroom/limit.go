package waitingroom

import (
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
)

// Limits bound how often somebody may join, look at what they have, leave, ask for a
// challenge and ask to be let in, at one process. A negative number is no limit.
type Limits struct {
	PerAccount int // calls a second, and six times as many at once
	PerAddress int // calls a second of one address, or one IPv6 network of 64 bits, and five times as many at once; those that are too many of an account do not count
	Suspect    int // an account whose calls to rooms were refused so often within a minute is suspected; those its address was refused for do not count
}

const (
	accountBurst = 6
	addressBurst = 5

	// callersKept is how many accounts, and how many addresses, are remembered twice
	// over: 200 bytes each. Who is forgotten begins anew.
	callersKept = 50_000
)

// calls that are limited, as labels of the metric.
var limitedCalls = []string{"join", "me", "leave", "challenge", "claim"}

// limiter counts who calls. Its methods may be called concurrently.
type limiter struct {
	suspect int
	refused *prometheus.CounterVec

	mu       sync.Mutex
	accounts callers
	address  callers
}

func newLimiter(l Limits, r prometheus.Registerer) *limiter {
	n := &limiter{suspect: l.Suspect, accounts: newCallers(l.PerAccount, accountBurst), address: newCallers(l.PerAddress, addressBurst),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "waitingroom_limited_total", Help: "Calls of waiting rooms answered too_many_requests."}, []string{"call", "by"})}
	for _, call := range limitedCalls {
		n.refused.WithLabelValues(call, "account")
		n.refused.WithLabelValues(call, "address")
	}
	if r != nil {
		r.MustRegister(n.refused)
	}
	return n
}

// allow counts a call about a room, empty when there is none, and says whether it may be
// carried out. far says that the account was refused too often to be a person: of every
// room it calls about, and again when it was refused as often once more.
//
// What is too many of an account costs its address nothing: else one account used up what
// all others behind that address have.
func (n *limiter) allow(call, address, user, room string) (ok, far bool) {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	account := n.accounts.get(user)
	if account != nil && account.bucket.TokensAt(now) < 1 {
		n.refused.WithLabelValues(call, "account").Inc()
		return false, room != "" && n.suspect > 0 && account.isFar(room, n.suspect, now)
	}
	if c := n.address.get(networkOf(address)); c != nil && !c.bucket.AllowN(now, 1) {
		n.refused.WithLabelValues(call, "address").Inc()
		return false, false
	}
	if account != nil {
		account.bucket.AllowN(now, 1)
	}
	return true, false
}

// callers are those who called lately: when the young are many they are the old ones,
// and the old ones are forgotten.
type callers struct {
	limit      rate.Limit
	burst      int
	young, old map[string]*caller
}

type caller struct {
	bucket  *rate.Limiter
	since   time.Time // refusals are counted
	refused int
	told    map[string]int // of a room: how many they were when they were said to be too many
}

// isFar counts a refusal about a room.
func (c *caller) isFar(room string, most int, now time.Time) bool {
	if now.Sub(c.since) > time.Minute {
		c.since, c.refused, c.told = now, 0, make(map[string]int)
	}
	c.refused++
	if c.refused < c.told[room]+most {
		return false
	}
	c.told[room] = c.refused
	return true
}

func newCallers(limit, burst int) callers {
	return callers{limit: rate.Limit(limit), burst: burst * limit, young: make(map[string]*caller)}
}

// get returns one, or nil when there is no limit.
func (a *callers) get(key string) *caller {
	if a.limit < 0 {
		return nil
	}
	c := a.young[key]
	if c != nil {
		return c
	}
	if c = a.old[key]; c == nil {
		c = &caller{bucket: rate.NewLimiter(a.limit, a.burst)}
	}
	if len(a.young) >= callersKept {
		a.young, a.old = make(map[string]*caller), a.young
	}
	a.young[key] = c
	return c
}

// networkOf is what counts as one address: an IPv6 client has 2⁶⁴ of them.
func networkOf(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	if ip = ip.Unmap(); ip.Is4() {
		return ip.String()
	}
	network, _ := ip.Prefix(64) // of an IPv6 address there is one
	return network.Masked().String()
}
