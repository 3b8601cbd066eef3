package waitingroom

import "context"

// Tend tends every room once.
func (r *Rooms) Tend(ctx context.Context) error {
	err := r.tend(ctx)
	r.tends.wait.Wait()
	return err
}

// Tick serves every room that is due, once.
func (r *Rooms) Tick(ctx context.Context, b Broadcaster) error {
	err := r.tick(ctx, b)
	r.serves.wait.Wait()
	return err
}
