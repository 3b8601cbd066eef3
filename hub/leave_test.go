package hub_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"seatcast/hub"
)

// How a client can go.
var departures = map[string]func(c *viewer){
	"fin":  func(c *viewer) { _ = c.conn.Close() },
	"rst":  func(c *viewer) { _ = c.conn.SetLinger(0); _ = c.conn.Close() },
	"half": func(c *viewer) { _ = c.conn.CloseWrite() },
}

func TestAClientThatGoesIsForgotten(t *testing.T) {
	everywhere(t, func(t *testing.T, o hub.Options, transport string) {
		o.Source = &truth{n: 1}
		n := serve(t, o)
		before := runtime.NumGoroutine()
		for name, depart := range departures {
			var cs []*viewer
			for i := range 10 {
				c := n.viewed(view{transport: transport, topic: fmt.Sprint("seatmap/", i%3)})
				if i%2 == 0 {
					c.expect("hello", "snapshot#1")
				}
				cs = append(cs, c)
			}
			for _, c := range cs {
				depart(c)
			}
			n.forgotten()
			eventually(t, name+": its topics are forgotten", func() bool { return n.Topics() == 0 })
			eventually(t, name+": no goroutine is left", func() bool { return runtime.NumGoroutine() <= before+2 })
			for _, c := range cs {
				_ = c.conn.Close()
			}
		}
		if got := n.metric("hub_closes_total", "gone"); got != 30 {
			t.Errorf("%v of 30 were counted as gone", got)
		}
	})
}

func TestAClientThatGoesWhileItIsBehindIsForgotten(t *testing.T) {
	everywhere(t, func(t *testing.T, o hub.Options, transport string) {
		src := &truth{n: 1}
		o.Source = src
		n := serve(t, o)
		for name, depart := range departures {
			c := n.viewed(view{transport: transport, window: 4 << 10})
			c.expect("hello")
			for range 3 {
				src.big(n, 128<<10)
			}
			if !o.Portable {
				eventually(t, name+": it is behind", func() bool { return n.metric("hub_sessions_behind") == 1 })
			}
			depart(c)
			n.forgotten()
			_ = c.conn.Close()
		}
	})
}

func sockets(t *testing.T, claim func(t *testing.T, n *node, src *truth)) {
	engines(t, func(t *testing.T, o hub.Options) {
		src := &truth{n: 1}
		o.Source = src
		claim(t, serve(t, o), src)
	})
}

// Pongs are the library's and frames are the hub's: neither ever lands in the
// middle of the other, nor what is kept for one client in what is kept for
// another that stands in the same frame.
func TestPongsNeverBreakAFrameThatIsHalfWritten(t *testing.T) {
	sockets(t, func(t *testing.T, n *node, src *truth) {
		clients := map[string]*viewer{}
		for _, name := range []string{"a", "b", "long"} {
			clients[name] = n.viewed(view{transport: "ws", window: 8 << 10})
			clients[name].expect("hello", "snapshot#1")
		}
		ping := func(name string, i int) string {
			if name == "long" {
				name += strings.Repeat(".", 100)
			}
			return fmt.Sprintf("%s%03d", name, i) // the short ones fit behind the frame in its own memory
		}
		for i := range 30 {
			src.big(n, 20_000)
			for name, c := range clients {
				c.write(masked(0x89, ping(name, i)))
			}
		}
		for name, c := range clients {
			pongs := 0
			c.pong = func(body string) {
				if body != ping(name, pongs) {
					t.Fatalf("pong %d of %s is %q", pongs, name, body)
				}
				pongs++
			}
			for have := int64(1); have < 31 || pongs < 30; {
				e, err := c.nextOrPong(func() bool { return have == 31 && pongs == 30 })
				if err != nil {
					t.Fatalf("%v at %d with %d pongs", err, have, pongs)
				}
				if e.Event != "" {
					have = readable(t, e, have)
				}
			}
		}
	})
}

// nextOrPong is next, or nothing once enough says so.
func (c *viewer) nextOrPong(enough func() bool) (event, error) {
	pong, full := c.pong, false
	defer func() { c.pong = pong }()
	c.pong = func(body string) { pong(body); full = enough() }
	for {
		op, body, err := c.frame()
		if err != nil {
			return event{}, err
		}
		switch op {
		case 0x8a:
			if c.pong(string(body)); full {
				return event{}, nil
			}
		case 0x81:
			e := event{Event: "delta", Data: string(body)}
			e.ID = e.number("n")
			return e, nil
		}
	}
}

func TestPongsAreKeptForAClientThatDoesNotRead(t *testing.T) {
	engines(t, func(t *testing.T, o hub.Options) {
		src := &truth{n: 1}
		o.Source, o.Limits.Messages = src, -1
		n := serve(t, o)
		c := n.viewed(view{transport: "ws", window: 4 << 10})
		c.expect("hello", "snapshot#1")
		src.big(n, 512<<10)
		if !o.Portable {
			eventually(t, "it is behind", func() bool { return n.metric("hub_sessions_behind") == 1 })
		}
		const pings = 64 // as many as are kept
		ping := func(i int) string { return fmt.Sprintf("%02d%s", i, strings.Repeat(".", i)) }
		for i := range pings {
			c.write(masked(0x89, ping(i)))
		}
		pongs := 0
		c.pong = func(body string) {
			if body != ping(pongs) {
				t.Fatalf("pong %d is %q", pongs, body)
			}
			pongs++
		}
		for have := int64(1); have < 2 || pongs < pings; {
			e, err := c.nextOrPong(func() bool { return have == 2 && pongs == pings })
			if err != nil {
				t.Fatalf("%v at %d with %d pongs", err, have, pongs)
			}
			if e.Event != "" {
				have = readable(t, e, have)
			}
		}
	})
}

func TestAClientThatClosesIsAnswered(t *testing.T) {
	sockets(t, func(t *testing.T, n *node, _ *truth) {
		c := n.viewed(view{transport: "ws"})
		c.expect("hello", "snapshot#1")
		c.write(masked(0x88, "\x03\xe8bye"))
		_, end := c.rest()
		if told, is := end.(closed); !is || told.code != 1000 {
			t.Errorf("ended with %v, want its own code back", end)
		}
		if _, err := c.in.ReadByte(); err != io.EOF {
			t.Errorf("then %v, want the connection's end", err)
		}
		n.forgotten()
	})
}

// Whatever a client still says before it has read why it is closed, it can
// read it, and answer.
func TestAClientIsToldWhyItIsClosedThoughItIsTalking(t *testing.T) {
	sockets(t, func(t *testing.T, n *node, _ *truth) {
		drained := make(chan error, 1)
		c := n.viewed(view{transport: "ws"})
		c.expect("hello", "snapshot#1")
		go func() { drained <- n.Drain(t.Context(), 0) }()
		if n.metric("hub_opens_total", "parked") == 1 {
			eventually(t, "the session is over", func() bool { return n.metric("hub_sessions") == 0 })
		}
		for range 3 {
			c.write(masked(0x89, "still there?"))
			c.say(`{"unsub":"seatmap/derby"}`)
		}
		_, end := c.rest()
		if told, is := end.(closed); !is || told.code != hub.CloseDrain {
			t.Fatalf("ended with %v", end)
		}
		_ = c.conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		if err := c.ending(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("it had no time to answer: %v", err)
		}
		_ = c.conn.SetReadDeadline(time.Now().Add(600 * time.Millisecond))
		c.write(masked(0x88, "\x0f\xa0"))
		if err := c.ending(); err != io.EOF {
			t.Errorf("once it had answered the connection ended with %v", err)
		}
		if err := <-drained; err != nil {
			t.Error(err)
		}
		n.forgotten()
	})
}

// ending reads what still comes, as pongs, and returns how the connection ends.
func (c *viewer) ending() error {
	for {
		if _, _, err := c.frame(); err != nil {
			return err
		}
	}
}

func TestPingsCountAsMessages(t *testing.T) {
	t.Parallel()
	sockets(t, func(t *testing.T, n *node, _ *truth) {
		c := n.viewed(view{transport: "ws"})
		c.expect("hello", "snapshot#1")
		c.write(strings.Repeat(masked(0x89, "flood"), 200))
		c.ended(hub.CloseTooMany)
		n.forgotten()
	})
}

// Nobody but the library sees these, and reading them costs as much as messages.
func TestWhatIsNoMessageHasABoundToo(t *testing.T) {
	t.Parallel()
	for name, flood := range map[string][2]string{
		"pongs":           {"", masked(0x8a, "")},
		"empty fragments": {masked(0x01, ""), masked(0x00, "")},
	} {
		t.Run(name, func(t *testing.T) {
			limited(t, hub.Limits{Messages: 1, MessageSize: 256}, func(t *testing.T, n *node) {
				c := n.viewed(view{transport: "ws"})
				c.expect("hello", "snapshot#1")
				c.write(flood[0] + strings.Repeat(flood[1], 2000))
				c.ended(hub.CloseTooMany)
				n.forgotten()
				if got := n.metric("hub_refused_total", "messages"); got != 1 {
					t.Errorf("counted %v times, want once a socket", got)
				}
			})
		})
	}
}

func TestAsManyMessagesAsAreAllowedMayBeAsLongAsIsAllowed(t *testing.T) {
	t.Parallel()
	sockets(t, func(t *testing.T, n *node, _ *truth) {
		c := n.viewed(view{transport: "ws"})
		c.expect("hello", "snapshot#1")
		for range 58 {
			c.say(fmt.Sprintf("%-4096s", `{"unsub":"seatmap/nowhere"}`))
		}
		c.say(`{"sub":"seatmap/derby"}`)
		c.expect("hello", "snapshot#1")
	})
}

func TestMessagesMayBeOfAnyLengthWhereThatHasNoLimit(t *testing.T) {
	limited(t, hub.Limits{MessageSize: -1}, func(t *testing.T, n *node) {
		c := n.viewed(view{transport: "ws"})
		c.expect("hello", "snapshot#1")
		for range 3 {
			c.say(fmt.Sprintf("%-60000s", `{"unsub":"seatmap/nowhere"}`))
		}
		c.say(`{"sub":"seatmap/derby"}`)
		c.expect("hello", "snapshot#1")
	})
}

func TestASocketEndsInTimeThoughItsClientDoesNotAnswer(t *testing.T) {
	t.Parallel()
	sockets(t, func(t *testing.T, n *node, _ *truth) {
		c := n.viewed(view{transport: "ws"})
		c.expect("hello", "snapshot#1")
		before := time.Now()
		if err := n.Drain(t.Context(), 0); err != nil {
			t.Error(err)
		}
		c.ended(hub.CloseDrain)
		if _, err := c.in.ReadByte(); err != io.EOF {
			t.Errorf("then %v, want the connection's end", err)
		}
		n.stop()
		if took := time.Since(before); took > 3*time.Second {
			t.Errorf("the connection lived on for %v", took)
		}
	})
}
