package holds

import (
	"context"

	"seatcast/seatmap"
)

// PassHeader carries the pass of who books an event that lets people in one by one.
const PassHeader = "Seatcast-Pass"

// Passes judge who may book such an event; the waiting room does.
type Passes interface {
	// Admit returns the pass that an account shows for an event, or nil when the
	// event asks for none. Its errors are ready to be returned. It asks nothing of
	// Redis: whether the pass was revoked is not known yet.
	Admit(ctx context.Context, event, user, pass string) (*seatmap.Pass, error)
}

// unlessRevoked refuses a pass that is over before its time, where no script does.
// Without Redis it is good by its signature alone.
func (a *API) unlessRevoked(ctx context.Context, sale *seatmap.Sale, p *seatmap.Pass) error {
	if p == nil || a.away(sale) {
		return nil
	}
	over, err := a.store.revoked(ctx, sale.Event, p.ID)
	if err == nil && over {
		err = ErrRevoked
	}
	return problem(sale, err)
}
