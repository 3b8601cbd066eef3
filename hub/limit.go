package hub

import (
	"encoding/json"
	"errors"
	"math"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/time/rate"
)

// Limits bound what clients can make a hub hold and do. A negative number is
// no limit.
type Limits struct {
	Sessions    int // open at once; 50,000
	PerAddress  int // of them from one address, or one IPv6 network of 64 bits; none
	Rate        int // opened a second, and at once after a quiet second; 5,000
	Topics      int // one WebSocket may watch; 16
	Messages    int // a second from one WebSocket, and three times as many at once; 20
	MessageSize int // bytes of one of them; 4096

	// Address tells where a request comes from; nil is the connection's other
	// end, which is a proxy's where one stands in front.
	Address func(*http.Request) string
}

func (l *Limits) setDefaults() {
	setDefault(&l.Sessions, 50_000)
	setDefault(&l.PerAddress, -1)
	setDefault(&l.Rate, 5_000)
	setDefault(&l.Topics, 16)
	setDefault(&l.Messages, 20)
	setDefault(&l.MessageSize, 4096)
	if l.Address == nil {
		l.Address = func(r *http.Request) string { return hostOf(r.RemoteAddr) }
	}
	of := l.Address
	l.Address = func(r *http.Request) string {
		if l.PerAddress < 0 {
			return "" // nobody asks, and every session would keep it
		}
		return networkOf(of(r))
	}
}

// sessions is their limit as a metric tells it.
func (l *Limits) sessions() float64 {
	if l.Sessions < 0 {
		return math.Inf(1)
	}
	return float64(l.Sessions)
}

// refusal is why a session was not opened, and what the client does about it.
type refusal struct {
	reason   string // label of hub_refused_total, reason of a degraded event, code of a problem
	detail   string
	status   int
	min, max time.Duration // when to come back, at random
}

// Error implements error.
func (r *refusal) Error() string { return "hub: " + r.detail }

// retry draws how long this client waits before it comes back.
func (r *refusal) retry() time.Duration { return between(r.min, r.max) }

var (
	errLeaving = &refusal{"drain", "this server is leaving; come back, another is there", http.StatusServiceUnavailable, time.Second, 5 * time.Second}
	errFull    = &refusal{"full", "this server holds as many sessions as it may; poll meanwhile, or come back", http.StatusServiceUnavailable, 5 * time.Second, 30 * time.Second}
	errBusy    = &refusal{"busy", "too many sessions are being opened at once; come back in a moment", http.StatusServiceUnavailable, time.Second, 5 * time.Second}
	errAddress = &refusal{"address", "your address has as many sessions open as one may have; close one, or poll", http.StatusTooManyRequests, 10 * time.Second, 30 * time.Second}
)

// longest is the most a client is asked to wait.
const longest = 30 * time.Second

// gate counts who comes in. Hub.mu guards it.
type gate struct {
	limits Limits
	rate   *rate.Limiter
	turn   time.Time      // when there is room for the next who is told to come back
	from   map[string]int // open sessions by address, when they are limited
}

func newGate(l Limits) *gate {
	g := &gate{limits: l, from: make(map[string]int)}
	if l.Rate >= 0 {
		g.rate = rate.NewLimiter(rate.Limit(l.Rate), l.Rate)
	}
	return g
}

// enter counts a session in, or returns the refusal.
func (g *gate) enter(address string, open int) error {
	l := &g.limits
	switch {
	case l.Sessions >= 0 && open >= l.Sessions:
		return errFull
	case l.PerAddress >= 0 && g.from[address] >= l.PerAddress:
		return errAddress
	case g.rate != nil && !g.rate.Allow():
		return g.later(time.Now())
	}
	if l.PerAddress >= 0 {
		g.from[address]++
	}
	return nil
}

// later gives each who comes too early a turn of its own, as far as clients can
// be asked to wait: a crowd that was refused comes back no faster than it is
// let in.
func (g *gate) later(now time.Time) error {
	if g.turn.Before(now) {
		g.turn = now
	}
	g.turn = g.turn.Add(time.Duration(float64(time.Second) / float64(g.rate.Limit())))
	wait := min(g.turn.Sub(now), longest-errBusy.max)
	why := *errBusy
	why.min, why.max = why.min+wait, why.max+wait
	return &why
}

func (g *gate) leave(address string) {
	if g.limits.PerAddress < 0 {
		return
	}
	if g.from[address]--; g.from[address] <= 0 {
		delete(g.from, address)
	}
}

// refuse answers a request that no session is opened for: as a problem, with
// when to come back.
func (h *Hub) refuse(w http.ResponseWriter, k *kind, err error) {
	why := refusalOf(err)
	h.metrics.refused(k, why.reason)
	w.Header().Set("Connection", "close") // it may lead to another server next time
	w.Header().Set("Retry-After", strconv.Itoa(int((why.retry()+time.Second-1)/time.Second)))
	writeProblem(w, why.status, "hub_"+why.reason, why.detail)
}

// writeProblem answers as RFC 9457 has it.
func writeProblem(w http.ResponseWriter, status int, code, detail string) {
	body, _ := json.Marshal(struct { // strings and a number always marshal
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Code   string `json:"code"`
		Detail string `json:"detail"`
	}{"about:blank", http.StatusText(status), status, code, detail})
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a client that has left needs no answer
}

func refusalOf(err error) *refusal {
	var why *refusal
	if !errors.As(err, &why) {
		return errFull
	}
	return why
}

// networkOf is what counts as one address: an IPv6 client has 2^64 of them.
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

func hostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return host
}
