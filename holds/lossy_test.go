package holds_test

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// lossy stands before a Redis and loses answers: every so many the request is
// carried out, and the connection breaks before its answer is passed on.
type lossy struct {
	ln   net.Listener
	to   string
	odds int
	work sync.WaitGroup

	mu      sync.Mutex
	clients map[net.Conn]struct{}
	ending  int // lines whose client has gone, and whose server may still have a request of it
	lost    int
}

// lose starts one; it ends with the test.
func lose(t *testing.T, to string, odds int) *lossy {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &lossy{ln: ln, to: to, odds: odds, clients: map[net.Conn]struct{}{}}
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
	for c := range l.clients {
		_ = c.Close()
	}
}

// settled waits until no request of a client that has given up can still be
// carried out.
func (l *lossy) settled() {
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		l.mu.Lock()
		ending := l.ending
		l.mu.Unlock()
		if ending == 0 {
			return
		}
	}
}

func (l *lossy) accept() {
	for {
		client, err := l.ln.Accept()
		if err != nil {
			return
		}
		l.work.Go(func() {
			defer func() { _ = client.Close() }()
			server, err := net.Dial("tcp", l.to)
			if err != nil {
				return
			}
			l.mu.Lock()
			l.clients[client] = struct{}{}
			l.mu.Unlock()
			l.line(client, server.(*net.TCPConn))
		})
	}
}

// line joins the two until both have ended. The server reads what was sent
// before it sees that the client has gone.
func (l *lossy) line(client net.Conn, server *net.TCPConn) {
	var asking sync.WaitGroup
	asking.Go(func() {
		_, _ = io.Copy(server, client)
		l.mu.Lock()
		delete(l.clients, client)
		l.ending++
		l.mu.Unlock()
		_ = server.CloseWrite()
	})
	l.answers(client, server)
	_ = client.Close()
	_, _ = io.Copy(io.Discard, server)
	asking.Wait()
	_ = server.Close()
	l.mu.Lock()
	l.ending--
	l.mu.Unlock()
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

func (l *lossy) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}
