package waitingroom

import "context"

// Tend tends every room once.
func (r *Rooms) Tend(ctx context.Context) error {
	if err := r.tend(ctx); err != nil {
		return err
	}
	r.tends.wait.Wait()
	return r.tends.failed()
}

// Tick serves every room that is due, once.
func (r *Rooms) Tick(ctx context.Context, b Broadcaster) error {
	if err := r.tick(ctx, b); err != nil {
		return err
	}
	r.serves.wait.Wait()
	return r.serves.failed()
}
