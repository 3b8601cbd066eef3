package hub

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// fanout is one frame on its way past everybody who watches. Members that walk
// their sessions hold it open until they have come to the last.
type fanout struct {
	open  atomic.Int32
	done  chan struct{}
	began time.Time
	took  prometheus.Observer
}

func newFanout(took prometheus.Observer) *fanout {
	f := &fanout{done: make(chan struct{}), began: time.Now(), took: took}
	f.open.Store(1) // the publisher's, while it tells the members
	return f
}

func (f *fanout) hold() { f.open.Add(1) }

func (f *fanout) release() {
	if f.open.Add(-1) == 0 {
		f.took.Observe(time.Since(f.began).Seconds())
		close(f.done)
	}
}
