package hub_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"seatcast/hub"
)

// Whatever bytes follow the handshake: what the server writes is whole frames,
// and the session ends with its client.
func FuzzWhatFollowsTheHandshake(f *testing.F) {
	for _, seed := range []string{
		"", "\x00", "GET / HTTP/1.1\r\n\r\n", masked(0x81, `{"sub":"seatmap/a"}`), masked(0x81, `{"sub":"seatmap/a"}`)[:9],
		"\x81\x05hello", // not masked
		masked(0x82, "binary"), masked(0x89, "ping") + masked(0x8a, "pong"), masked(0x88, ""), masked(0x88, "\x03"), masked(0x88, "\x03\xe8ok"),
		masked(0xc1, "reserved bit"), masked(0x83, "unknown kind"), masked(0x01, `{"sub":`) + masked(0x89, "between") + masked(0x80, `"seatmap/a"}`),
		masked(0x01, "a") + masked(0x01, "b"), masked(0x80, "nothing to go on with"), "\x89\xfe\x00\x80\x00\x00\x00\x00", // a long ping
		"\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00", masked(0x81, "\xff\xfe"), strings.Repeat(masked(0x89, ""), 100),
		strings.Repeat(masked(0x81, "x"), 12),
	} {
		f.Add([]byte(seed))
	}
	nodes := []*node{
		serve(f, hub.Options{Source: &truth{n: 1}}),
		serve(f, hub.Options{Source: &truth{n: 1}, Portable: true}),
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, n := range nodes {
			n := *n
			n.tb = t
			c := n.viewed(view{transport: "ws", mute: true})
			_, _ = c.conn.Write(b)  // it may be closed by now
			_ = c.conn.CloseWrite() // nothing more comes
			for {
				op, body, err := c.frame()
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatal("the session outlived its client")
				}
				if err != nil {
					break
				}
				if op != 0x81 && op != 0x88 && op != 0x89 && op != 0x8a {
					t.Fatalf("a frame of kind %x: %.40q", op, body)
				}
			}
			_ = c.conn.Close()
			n.forgotten()
		}
	})
}
