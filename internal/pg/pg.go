// Package pg says what errors of Postgres mean to whoever asked: that it
// answered no, or that it does not answer.
package pg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"seatcast/seatmap"
)

// Down reports whether err means that Postgres does not answer, or not in time,
// rather than that it answered no: what was asked for may or may not have
// happened, and may be asked for again.
func Down(err error) bool {
	if err == nil {
		return false
	}
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) { // whatever the reason it gave
		return true
	}
	var verdict *pgconn.PgError
	if errors.As(err, &verdict) {
		return busy(verdict.Code)
	}
	var network net.Error // a deadline is one too
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.DeadlineExceeded) || pgconn.SafeToRetry(err)
}

// busy names the verdicts that are of the moment and not of what was asked.
func busy(code string) bool {
	switch code[:min(2, len(code))] {
	case "08", "53", "57": // the connection; no connection, memory or disk left; going down, or not up yet
		return true
	}
	// lock timeout, deadlock, a transaction that stood still, a standby
	return slices.Contains([]string{"55P03", "40P01", "25P03", "25006"}, code)
}

// Said names the call an error came from, and makes one of a database that is
// Down seatmap.ErrUnavailable.
func Said(call string, err error) error {
	switch {
	case err == nil:
		return nil
	case Down(err):
		return fmt.Errorf("%s: %w: %w", call, seatmap.ErrUnavailable, err)
	default:
		return fmt.Errorf("%s: %w", call, err)
	}
}
