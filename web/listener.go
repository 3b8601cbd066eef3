package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// askWithin is how long a client that is refused may take to send its
	// request: an answer before it would be lost on many. Others wait meanwhile.
	askWithin = 100 * time.Millisecond
	// outageOver is how long nobody must be refused for the next to be logged.
	outageOver = time.Minute
	// A refused client comes back after a time between these, at random.
	refusedMin, refusedMax = 5 * time.Second, 30 * time.Second
)

// Listener is a net.Listener that goes on when the process has run out of file
// descriptors. One is kept in reserve: with it whoever comes is told so, 503
// with Retry-After, instead of hanging in the kernel's queue. A connection is
// handed out only while the reserve is there, and as it was accepted: nothing
// is wrapped around it.
type Listener struct {
	net.Listener
	log     *slog.Logger
	refused prometheus.Counter
	closed  chan struct{}
	once    sync.Once

	// Of the one goroutine that accepts.
	reserve *os.File // nil while it is lent to a connection, or lost
	last    time.Time
}

// Guard keeps a descriptor in reserve for ln, which is the Listener's from now
// on. A nil Registerer keeps the metric and does not show it.
func Guard(ln net.Listener, log *slog.Logger, r prometheus.Registerer) (*Listener, error) {
	l := &Listener{Listener: ln, log: log, closed: make(chan struct{}), refused: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "http_accept_refused_total", Help: "Connections answered 503 because the process had no file descriptor left."})}
	if !l.refill() {
		return nil, errors.New("web: no file descriptor is left to keep in reserve")
	}
	if r != nil {
		r.MustRegister(l.refused)
	}
	return l, nil
}

// Accept implements net.Listener. One goroutine may call it at a time.
func (l *Listener) Accept() (net.Conn, error) {
	for pause := time.Duration(0); ; {
		conn, err := l.Listener.Accept()
		switch {
		case err == nil && l.refill():
			return conn, nil
		case err == nil:
			pause = 0
			l.refuse(conn)
			l.refill()
		case !exhausted(err):
			return nil, err
		case l.reserve != nil:
			l.lend()
		case !l.refill(): // somebody else was quicker to take it
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			if !l.wait(pause) {
				return nil, net.ErrClosed
			}
		}
	}
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

func (l *Listener) wait(d time.Duration) bool {
	select {
	case <-l.closed:
		return false
	case <-time.After(d):
		return true
	}
}

// exhausted says that there was no descriptor, or no memory in the kernel, for
// a connection; another moment there may be.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// refill reports whether there is a reserve.
func (l *Listener) refill() bool {
	if l.reserve == nil {
		l.reserve, _ = os.Open(os.DevNull) // nil: there is still none left
	}
	return l.reserve != nil
}

func (l *Listener) lend() {
	_ = l.reserve.Close() // was only read
	l.reserve = nil
}

// refuse answers whatever is asked, and closes.
func (l *Listener) refuse(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	l.refused.Inc()
	now := time.Now()
	if now.Sub(l.last) > outageOver {
		l.log.Error("no file descriptor is left: connections are answered 503 until some are closed",
			"hint", "raise the limit of open files, or hold fewer sessions")
	}
	l.last = now
	_ = conn.SetDeadline(now.Add(askWithin)) // a connection of the kernel's has deadlines
	readHead(conn)
	_, _ = conn.Write(refusal()) // it has left, or does not listen: nobody to tell
}

// readHead reads a request up to its body: closing with something unread would
// take the answer back.
func readHead(conn net.Conn) {
	var buf [4096]byte
	for n := 0; n < len(buf); {
		more, err := conn.Read(buf[n:])
		n += more
		if err != nil || bytes.Contains(buf[:n], []byte("\r\n\r\n")) {
			return
		}
	}
}

func refusal() []byte {
	p := &Problem{Status: http.StatusServiceUnavailable, Code: "too_many_connections",
		Detail: "this server has as many connections as it can have; come back, or to another"}
	body, _ := json.Marshal(p) // strings always marshal
	after := refusedMin + rand.N(refusedMax-refusedMin)
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: application/problem+json\r\nCache-Control: no-store\r\n"+
		"Retry-After: %d\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		p.Status, http.StatusText(p.Status), int(after/time.Second), len(body), body)
}
