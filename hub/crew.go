package hub

import "sync"

// crew is goroutines that are joined. A WaitGroup must not be given more while
// it is waited for; a crew may: what comes then waits, and is not joined.
type crew struct {
	mu    sync.Mutex
	group sync.WaitGroup
}

// Go calls f in a goroutine.
func (c *crew) Go(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.group.Go(f)
}

// Wait returns when all have ended.
func (c *crew) Wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.group.Wait()
}
