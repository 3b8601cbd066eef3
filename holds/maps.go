package holds

import (
	"context"
	"slices"

	"seatcast/seatmap"
)

// Maps is what this node knows of maps without asking anybody.
type Maps interface {
	// Map returns the map of an event, to be read and not changed; false when
	// this node does not follow the event, or is not sure where it stands.
	Map(sale *seatmap.Sale) (m seatmap.Map, ok bool)
}

// known returns a copy of the map this node follows, and false without one.
func (a *API) known(sale *seatmap.Sale) (seatmap.Map, bool) {
	if a.maps == nil {
		return nil, false
	}
	m, ok := a.maps.Map(sale)
	return slices.Clone(m), ok
}

// look returns a copy of the map: this node's own, or else what Redis says; of an
// event without holds what Postgres knows.
func (a *API) look(ctx context.Context, sale *seatmap.Sale) (seatmap.Map, error) {
	if a.away(sale) {
		m, err := a.books.Free(ctx, sale.Event)
		return slices.Clone(m), err
	}
	if m, ok := a.known(sale); ok {
		return m, nil
	}
	return a.store.look(ctx, sale)
}

// look reads the map of an event. Holds of an ordinary event that have ended
// lapse first; those of a hot one do by the clock.
func (s *Store) look(ctx context.Context, sale *seatmap.Sale) (seatmap.Map, error) {
	if !sale.Hot {
		if err := s.Lapse(ctx, sale.Event); err != nil {
			return nil, err
		}
	}
	return warmed(ctx, sale.Event, s.warm, func() (seatmap.Map, error) {
		m, _, err := s.Shown(ctx, sale.Event)
		if err == nil && m == nil {
			err = errCold
		}
		return m, err
	})
}

// mark writes the state of seats into a map.
func mark(m seatmap.Map, seats []int, to seatmap.Status) {
	for _, i := range seats {
		m.Set(i, to)
	}
}
