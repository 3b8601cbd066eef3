package front

import (
	"context"
	"time"
)

// bare asks nobody.
type bare struct {
	wanted map[string]bool
	hold   time.Duration
}

func openBare(_ context.Context, o Options) (keeper, error) {
	b := bare{wanted: make(map[string]bool), hold: o.Hold}
	for _, seat := range Tickets(Hall(o.Seats))[:o.Hot] {
		b.wanted[seat] = true
	}
	return b, nil
}

func (b bare) take(_ context.Context, _, seat string) (time.Time, bool, error) {
	return time.Now().Add(b.hold), !b.wanted[seat], nil
}

func (bare) close() {}
