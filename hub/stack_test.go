package hub_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"seatcast/hub"
)

// What a client asks for needs several times the stack that waiting for it does,
// and a goroutine that waits keeps what it once had.
func TestASocketKeepsNoStackOfWhatItAsked(t *testing.T) {
	if os.Getenv("STACKS_ALONE") == "" { // what other tests leave behind is counted too
		alone := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
		alone.Env = append(os.Environ(), "STACKS_ALONE=yes")
		if out, err := alone.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	n := serve(t, hub.Options{Source: profound{&truth{n: 5}}})
	silent := n.stacks("")
	asked := n.stacks(`{"sub":"` + topic + `"}`)
	if asked > silent*5/4 {
		t.Errorf("a socket that asked has %d bytes of stack, one that did not %d", asked, silent)
	}
}

// profound is a source deep in whose stores a greeting is made.
type profound struct{ *truth }

func (p profound) Hello(ctx context.Context, topic string) ([]byte, error) {
	if deep(64) == 0 {
		return nil, nil
	}
	return p.truth.Hello(ctx, topic)
}

// deep needs half a kilobyte of stack for each of so many calls.
func deep(calls int) (sum int) {
	var room [512]byte
	room[calls] = 1
	if calls > 0 {
		sum = deep(calls - 1)
	}
	for _, b := range room {
		sum += int(b)
	}
	return sum
}

// stacks opens sockets, each of which says something and reads one answer, and
// returns how much stack each of them costs while it waits.
func (n *node) stacks(says string) (each uint64) {
	n.tb.Helper()
	const count = 300
	before := stackInUse()
	for range count {
		conn, in := n.upgraded()
		if says == "" {
			continue
		}
		frame := append([]byte{0x81, 0x80 | byte(len(says)), 0, 0, 0, 0}, says...) // masked with zeros
		if _, err := conn.Write(frame); err != nil {
			n.tb.Fatal(err)
		}
		if _, err := in.ReadByte(); err != nil {
			n.tb.Fatal(err)
		}
	}
	return (stackInUse() - before) / count
}

// upgraded is a connection that has become a socket. No goroutine belongs to it.
func (n *node) upgraded() (net.Conn, *bufio.Reader) {
	n.tb.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(n.url, "http://"))
	if err != nil {
		n.tb.Fatal(err)
	}
	n.tb.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Protocol: "+hub.Subprotocol+"\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"); err != nil {
		n.tb.Fatal(err)
	}
	in := bufio.NewReader(conn)
	answer, err := http.ReadResponse(in, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		n.tb.Fatal(answer, err)
	}
	return conn, in
}

// stackInUse is after enough collections for every stack to have shrunk that can.
func stackInUse() uint64 {
	for range 6 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.StackInuse
}
