package waitingroom

import "sync"

// rounds do something in many rooms, in each by itself: one in which it lasts is not
// begun again meanwhile, and no other waits for it.
type rounds struct {
	slots chan struct{} // so many at the same time
	wait  sync.WaitGroup

	mu   sync.Mutex
	busy map[string]bool  // by name of the room
	errs map[string]error // of the last time
}

func newRounds() *rounds {
	return &rounds{slots: make(chan struct{}, atOnce), busy: make(map[string]bool), errs: make(map[string]error)}
}

// start begins it in a room, unless it lasts there.
func (r *rounds) start(room string, do func() error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy[room] {
		return
	}
	r.busy[room] = true
	r.wait.Go(func() {
		r.slots <- struct{}{}
		defer func() { <-r.slots }()
		err := do()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.busy, room)
		delete(r.errs, room)
		if err != nil {
			r.errs[room] = err
		}
	})
}

// failed returns why it did not succeed in some room.
func (r *rounds) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, err := range r.errs {
		return err
	}
	return nil
}
