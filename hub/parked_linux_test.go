package hub_test

import (
	"io"
	"testing"
	"time"

	"seatcast/hub"
)

// Any progress is a sign of life: a reader that takes a little again and again
// outlives many deadlines.
func TestAReaderThatTakesALittleIsNotClosed(t *testing.T) {
	t.Parallel()
	src := &truth{n: 1}
	n := serve(t, hub.Options{Source: src, WriteTimeout: 150 * time.Millisecond})
	c := n.viewed(view{transport: "sse", window: 4 << 10})
	c.expect("hello", "snapshot#1")
	src.big(n, 1<<20)
	piece := make([]byte, 32<<10)
	for start := time.Now(); time.Since(start) < 800*time.Millisecond; time.Sleep(30 * time.Millisecond) {
		if _, err := io.ReadFull(c.in, piece); err != nil {
			t.Fatalf("%v while it took a little", err)
		}
	}
	if n.metric("hub_sessions_behind") != 1 {
		t.Error("it was not behind: the test proves nothing")
	}
}
