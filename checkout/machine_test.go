package checkout

import (
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"seatcast/internal/devstack/devtest"
)

var (
	allBookingStates = []BookingState{BookingHeld, BookingPaying, BookingSold, BookingRefunded, BookingLost, BookingReleased, BookingExpired}
	allAttemptStates = []AttemptState{AttemptCreated, AttemptAuthorized, AttemptCapturing, AttemptCaptured, AttemptRefunded,
		AttemptFailed, AttemptVoided, AttemptAuthExpired, AttemptCaptureRefused, AttemptRefunding, AttemptRefundFailed}
	allRefundStates = []RefundState{RefundPending, RefundSucceeded, RefundFailed}
)

func TestEveryArrowThatDoesNotExistIsRefusedWithBothStates(t *testing.T) {
	pool := devtest.Postgres(t)
	oneBooking(t, pool)
	for _, from := range allBookingStates {
		for _, to := range allBookingStates {
			err := tried(t, pool, `UPDATE bookings SET state = $1`, string(from), func(tx pgx.Tx) error {
				return moveBooking(t.Context(), tx, "e.1", to)
			})
			verdict(t, err, slices.Contains(bookingMoves[to], from), "booking", string(from), string(to))
		}
	}
	for _, from := range allRefundStates {
		for _, to := range allRefundStates {
			err := tried(t, pool, `UPDATE refunds SET state = $1`, string(from), func(tx pgx.Tx) error {
				return moveRefund(t.Context(), tx, "r1", to, "")
			})
			verdict(t, err, slices.Contains(refundMoves[to], from), "refund", string(from), string(to))
		}
	}
	for _, from := range allAttemptStates {
		for _, to := range allAttemptStates {
			err := tried(t, pool, `UPDATE attempts SET state = $1`, string(from), func(tx pgx.Tx) error {
				return moveAttempt(t.Context(), tx, "a1", to, "")
			})
			verdict(t, err, slices.Contains(attemptMoves[to], from), "attempt", string(from), string(to))
		}
	}
}

func verdict(t *testing.T, err error, legal bool, machine, from, to string) {
	t.Helper()
	var illegal *TransitionError
	switch {
	case legal && err != nil:
		t.Errorf("%s %s to %s: %v", machine, from, to, err)
	case !legal && !errors.As(err, &illegal):
		t.Errorf("%s %s to %s: %v, want a TransitionError", machine, from, to, err)
	case !legal && (illegal.Machine != machine || illegal.From != from || illegal.To != to):
		t.Errorf("%s %s to %s: %v names other states", machine, from, to, err)
	}
}

var errUndo = errors.New("undo")

// tried runs move from a state and undoes both.
func tried(t *testing.T, pool *pgxpool.Pool, set, from string, move func(pgx.Tx) error) (moved error) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), set, from); err != nil {
			return err
		}
		moved = move(tx)
		return errUndo
	})
	if !errors.Is(err, errUndo) {
		t.Fatal(err)
	}
	return moved
}

func oneBooking(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for _, sql := range []string{
		`INSERT INTO charts (sha, name, seats, body) VALUES (repeat('a', 64), 'c', 0, '')`,
		`INSERT INTO events (id, name, venue, zone, starts_at, opens_at, chart_sha, mode, currency, hold_ms, pay_ms, cap_ms, grace_ms, seats_per_booking, seats_per_user)
			VALUES ('e', 'e', 'v', 'UTC', now(), now(), repeat('a', 64), 'hot', 'EUR', 1, 1, 1, 0, 1, 1)`,
		`INSERT INTO bookings (id, event_id, user_id, state, seats, currency, amount, quote, request_hash, first_held_at, deadline, cap_at)
			VALUES ('e.1', 'e', 'u', 'held', '{}', 'EUR', 0, '{}', '', now(), now(), now())`,
		`INSERT INTO attempts (id, booking_id, state, provider, method, request_hash, currency, amount)
			VALUES ('a1', 'e.1', 'created', 'p', 'm', '', 'EUR', 0)`,
		`INSERT INTO refunds (id, event_id, booking_id, attempt_id, tickets, currency, amount, seats, reason, operator)
			VALUES ('r1', 'e', 'e.1', 'a1', '{t1}', 'EUR', 0, 'killed', 'r', 'o')`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}
