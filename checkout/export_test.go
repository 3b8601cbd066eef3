package checkout

import (
	"context"
	"fmt"
)

// Work does one job of the queue, as a worker would.
func (d *Desk) Work(ctx context.Context, kind, of string) error {
	switch kind {
	case captureArgs{}.Kind():
		return d.capture(ctx, of)
	case voidArgs{}.Kind():
		return d.void(ctx, of)
	case refundArgs{}.Kind():
		return d.refund(ctx, of)
	case reconcileArgs{}.Kind():
		return d.reconcile(ctx, of)
	}
	return fmt.Errorf("no job of kind %q", kind)
}
