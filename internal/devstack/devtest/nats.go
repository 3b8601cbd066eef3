package devtest

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"

	"seatcast/internal/devstack"
)

// NATS is a connection to the nats-server this binary shares, closed when the
// test ends.
func NATS(tb testing.TB) *nats.Conn {
	tb.Helper()
	conn, err := nats.Connect(NATSURL(tb))
	must(tb, err)
	tb.Cleanup(conn.Close)
	return conn
}

// NATSURL is the address of the nats-server this binary shares.
func NATSURL(tb testing.TB) string {
	tb.Helper()
	return once(tb, &shared.nats, func(context.Context, *devstack.Home) (*devstack.NATS, error) {
		return devstack.StartNATS()
	}).URL()
}
