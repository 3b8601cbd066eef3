package holds_test

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// lossy stands before a Redis and loses answers: every so many the request is
// carried out, and the connection breaks before its answer is passed on.
type lossy struct {
	ln   net.Listener
	to   string
	odds int
	work sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	lost  int
}

// lose starts one; it ends with the test.
func lose(t *testing.T, to string, odds int) *lossy {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &lossy{ln: ln, to: to, odds: odds, conns: map[net.Conn]struct{}{}}
	l.work.Go(l.accept)
	t.Cleanup(func() {
		_ = ln.Close()
		l.cut()
		l.work.Wait()
	})
	return l
}

func (l *lossy) url() string { return "redis://" + l.ln.Addr().String() }

// cut breaks every connection.
func (l *lossy) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		_ = c.Close()
	}
}

func (l *lossy) accept() {
	for {
		client, err := l.ln.Accept()
		if err != nil {
			return
		}
		l.work.Go(func() {
			defer l.drop(client)
			server, err := net.Dial("tcp", l.to)
			if err != nil {
				return
			}
			defer l.drop(server)
			l.hold(client, server)
			l.work.Go(func() {
				_, _ = io.Copy(server, client)
				_ = server.Close()
			})
			l.answers(client, server)
		})
	}
}

// answers passes on what the server says, until one answer is lost.
func (l *lossy) answers(client, server net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if n > 0 && rand.IntN(l.odds) == 0 {
			l.mu.Lock()
			l.lost++
			l.mu.Unlock()
			return
		}
		if _, failed := client.Write(buf[:n]); err != nil || failed != nil {
			return
		}
	}
}

func (l *lossy) hold(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		l.conns[c] = struct{}{}
	}
}

func (l *lossy) drop(c net.Conn) {
	_ = c.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

func (l *lossy) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}
