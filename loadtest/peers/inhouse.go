package peers

import (
	"context"
	"errors"
	"os"
	"time"
)

// InHouse opens a house in a folder of its own and has it used. When it returns
// neither a process nor the folder is left. What an interruption breaks says
// little: then the error is that there was one.
func InHouse(ctx context.Context, o HouseOptions, use func(h *House, dir string) error) (err error) {
	dir, err := os.MkdirTemp("", "seatcast-loadtest-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil { // Postgres runs as somebody else
		return err
	}
	h, err := openHouse(ctx, dir, o)
	if err != nil {
		return unlessInterrupted(ctx, err)
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	return unlessInterrupted(ctx, use(h, dir))
}

func unlessInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted: everything was stopped")
	}
	return err
}

// Wait waits so long, or returns ctx's error when that ends before.
func Wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
