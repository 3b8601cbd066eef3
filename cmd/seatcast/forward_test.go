package main

import (
	"net"
	"sync"
	"testing"
)

// forwarder stands between nodes and a server of theirs. It can lead them to
// another one, be as a machine that is gone, or as one that hangs.
type forwarder struct {
	ln   net.Listener
	work sync.WaitGroup

	mu            sync.Mutex
	network, addr string // of the server; empty while nobody is there
	conns         map[net.Conn]struct{}
	open          chan struct{} // closed while bytes pass
}

// forward starts a forwarder to a server; it ends with the test.
func forward(t testing.TB, network, addr string) *forwarder {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &forwarder{ln: ln, network: network, addr: addr, conns: make(map[net.Conn]struct{}), open: make(chan struct{})}
	close(f.open)
	f.work.Go(f.accept)
	t.Cleanup(func() {
		_ = ln.Close()
		f.cut()
		f.work.Wait()
	})
	return f
}

// at is where nodes find it.
func (f *forwarder) at() string { return f.ln.Addr().String() }

// cut breaks every connection and takes no new one.
func (f *forwarder) cut() { f.lead("", "") }

// lead breaks every connection; new ones go to that server.
func (f *forwarder) lead(network, addr string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.network, f.addr = network, addr
	for c := range f.conns {
		_ = c.Close()
	}
	f.thawLocked()
}

// freeze keeps connections and lets nothing through them.
func (f *forwarder) freeze() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = make(chan struct{})
}

// thawLocked lets go on what freeze stopped.
func (f *forwarder) thawLocked() {
	select {
	case <-f.open:
	default:
		close(f.open)
	}
}

func (f *forwarder) accept() {
	for {
		c, err := f.ln.Accept()
		if err != nil {
			return
		}
		f.work.Go(func() { f.serve(c) })
	}
}

func (f *forwarder) serve(client net.Conn) {
	network, addr, ok := f.hold(client)
	defer f.drop(client)
	if !ok {
		return
	}
	f.pass()
	server, err := net.Dial(network, addr)
	if err != nil {
		return
	}
	defer f.drop(server)
	if now, to, _ := f.hold(server); now != network || to != addr { // led elsewhere meanwhile
		return
	}
	f.work.Go(func() { f.copy(server, client) })
	f.copy(client, server)
}

// hold notes a connection, so that it can be broken, and says where it goes.
func (f *forwarder) hold(c net.Conn) (network, addr string, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns[c] = struct{}{}
	return f.network, f.addr, f.addr != ""
}

func (f *forwarder) drop(c net.Conn) {
	_ = c.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, c)
}

// pass waits until bytes pass.
func (f *forwarder) pass() {
	f.mu.Lock()
	open := f.open
	f.mu.Unlock()
	<-open
}

// copy carries bytes one way; when that way ends the other does.
func (f *forwarder) copy(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			f.pass()
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
