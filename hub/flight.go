package hub

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errStale says that the source's newest snapshot is older than what the topic
// has already announced.
var errStale = errors.New("hub: snapshot older than the topic")

// flight keeps a topic's newest snapshot and lets one session at a time fetch
// a newer one: a thousand that return at once share what one of them got.
type flight struct {
	mu    sync.Mutex
	epoch uint64
	have  *frame
	busy  *fetching
}

type fetching struct {
	epoch uint64
	done  chan struct{} // closed when the two below are set
	frame *frame
	err   error
}

// put remembers a snapshot, unless a newer one is known.
func (fl *flight) put(epoch uint64, f *frame) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	if epoch > fl.epoch || (epoch == fl.epoch && (fl.have == nil || f.n > fl.have.n)) {
		fl.epoch, fl.have = epoch, f
	}
}

// get returns a snapshot of this epoch numbered atLeast or above, or errStale,
// or the fetch's error. A fetch that was under way when get was called may
// have begun too early, or in an epoch that is over; the one after it has not.
func (fl *flight) get(ctx context.Context, epoch uint64, atLeast int64, fetch func(context.Context) (*frame, error)) (*frame, error) {
	for range 3 {
		f, b, mine := fl.look(epoch, atLeast)
		if f != nil {
			return f, nil
		}
		if mine {
			fl.run(ctx, b, fetch)
		}
		select {
		case <-b.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if b.err != nil || (b.epoch == epoch && b.frame.n >= atLeast) {
			return b.frame, b.err
		}
		if mine {
			break
		}
	}
	return nil, errStale
}

// look returns a snapshot that will do, or the fetch to wait for; mine says
// that the caller is to run it.
func (fl *flight) look(epoch uint64, atLeast int64) (f *frame, b *fetching, mine bool) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	if fl.fitsLocked(epoch, atLeast) {
		return fl.have, nil, false
	}
	if fl.busy != nil {
		return nil, fl.busy, false
	}
	fl.busy = &fetching{epoch: epoch, done: make(chan struct{})}
	return nil, fl.busy, true
}

func (fl *flight) fitsLocked(epoch uint64, atLeast int64) bool {
	return fl.have != nil && fl.epoch == epoch && fl.have.n >= atLeast
}

// fetchTimeout bounds one question to the source.
const fetchTimeout = 2 * time.Second

// run fetches for everybody who waits, also when the session that happens to
// run it leaves meanwhile.
func (fl *flight) run(ctx context.Context, b *fetching, fetch func(context.Context) (*frame, error)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	b.frame, b.err = fetch(ctx)
	if b.err == nil {
		fl.put(b.epoch, b.frame)
	}
	fl.mu.Lock()
	fl.busy = nil
	fl.mu.Unlock()
	close(b.done)
}
