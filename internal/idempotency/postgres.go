package idempotency

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"seatcast/web"
)

// Options of New. Pool is needed; of everything else the zero value works.
type Options struct {
	Pool  *pgxpool.Pool // of a migrated database
	Log   *slog.Logger  // nil: slog.Default()
	Lease time.Duration // 0: 15 s
}

// Keys keeps the answers in Postgres.
type Keys struct {
	o Options

	mu    sync.Mutex
	turns map[string]bool // in flight in this process
}

var _ web.Keys = (*Keys)(nil)

// New returns the memory of a database. It does no I/O.
func New(o Options) *Keys {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Lease == 0 {
		o.Lease = lease
	}
	return &Keys{o: o, turns: map[string]bool{}}
}

// claims is how often a key is looked at whose row goes as we look.
const claims = 3

// Claim implements web.Keys.
func (k *Keys) Claim(ctx context.Context, call web.KeyedCall) (turn string, past *web.Answer, err error) {
	for range claims {
		if turn, err = k.take(ctx, call); turn != "" || err != nil {
			break
		}
		if past, err = k.past(ctx, call); !errors.Is(err, pgx.ErrNoRows) {
			break
		}
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows): // others come and go
		err = web.ErrKeyInFlight
	case err != nil:
		err = fmt.Errorf("claim a key of %s: %w", call.Operator, err)
	}
	return turn, past, err
}

// take returns a turn when the key is free: never used, used a day ago, or by the
// same call of a process that is gone.
func (k *Keys) take(ctx context.Context, call web.KeyedCall) (string, error) {
	turn := rand.Text()
	k.mark(turn, true)
	tag, err := k.o.Pool.Exec(ctx, `
		INSERT INTO admin_keys AS k (operator, key, request, turn, lease) VALUES ($1, $2, $3, $4, clock_timestamp() + $5::interval)
		ON CONFLICT (operator, key) DO UPDATE SET request = excluded.request, turn = excluded.turn, at = excluded.at, lease = excluded.lease,
			status = NULL, code = NULL, header = NULL, body = NULL
		WHERE k.lease IS NULL AND k.at < clock_timestamp() - $6::interval OR k.lease < clock_timestamp() AND k.request = excluded.request`,
		call.Operator, call.Key, call.Request, turn, k.o.Lease, kept)
	if err != nil || tag.RowsAffected() == 0 {
		k.mark(turn, false)
		return "", err
	}
	return turn, nil
}

// past is how the key was answered, or why it has no answer; pgx.ErrNoRows when
// it is free by now.
func (k *Keys) past(ctx context.Context, call web.KeyedCall) (*web.Answer, error) {
	var (
		request  []byte
		inFlight bool
		status   *int
		code     *string
		a        web.Answer
	)
	err := k.o.Pool.QueryRow(ctx, `SELECT request, lease IS NOT NULL, status, code, header, body FROM admin_keys WHERE operator = $1 AND key = $2`,
		call.Operator, call.Key).Scan(&request, &inFlight, &status, &code, &a.Header, &a.Body)
	switch {
	case err != nil:
		return nil, err
	case !bytes.Equal(request, call.Request):
		return nil, web.ErrKeyReused
	case inFlight:
		return nil, web.ErrKeyInFlight
	}
	a.Status, a.Code = *status, *code
	return &a, nil
}

// Keep implements web.Keys.
func (k *Keys) Keep(ctx context.Context, turn string, a web.Answer) error {
	k.mark(turn, false)
	if a.Header == nil {
		a.Header = http.Header{}
	}
	tag, err := k.o.Pool.Exec(ctx, `UPDATE admin_keys SET at = clock_timestamp(), lease = NULL, status = $2, code = $3, header = $4, body = $5 WHERE turn = $1`,
		turn, a.Status, a.Code, a.Header, a.Body)
	if err == nil && tag.RowsAffected() == 0 {
		err = errors.New("its repeat was carried out meanwhile")
	}
	if err != nil {
		return fmt.Errorf("keep an answer: %w", err)
	}
	return nil
}

// Drop implements web.Keys.
func (k *Keys) Drop(ctx context.Context, turn string) error {
	k.mark(turn, false)
	if _, err := k.o.Pool.Exec(ctx, `DELETE FROM admin_keys WHERE turn = $1`, turn); err != nil {
		return fmt.Errorf("forget a key: %w", err)
	}
	return nil
}

func (k *Keys) mark(turn string, inFlight bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if inFlight {
		k.turns[turn] = true
	} else {
		delete(k.turns, turn)
	}
}

func (k *Keys) inFlight() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Keys(k.turns))
}

// Run renews the leases of what this process carries out, until ctx ends.
func (k *Keys) Run(ctx context.Context) error {
	return every(ctx, k.o.Lease/3, func(ctx context.Context) {
		turns := k.inFlight()
		if len(turns) == 0 {
			return
		}
		if _, err := k.o.Pool.Exec(ctx, `UPDATE admin_keys SET lease = clock_timestamp() + $2::interval WHERE turn = ANY($1) AND lease IS NOT NULL`, turns, k.o.Lease); err != nil {
			k.o.Log.WarnContext(ctx, "calls with an Idempotency-Key not renewed: their repeats may be carried out", "calls", len(turns), "err", err)
		}
	})
}

// Tidy removes what is older than a day, until ctx ends.
func (k *Keys) Tidy(ctx context.Context) error {
	return every(ctx, perTidy, func(ctx context.Context) {
		_, err := k.o.Pool.Exec(ctx, `DELETE FROM admin_keys WHERE at < clock_timestamp() - $1::interval AND (lease IS NULL OR lease < clock_timestamp())`, kept)
		if err != nil {
			k.o.Log.WarnContext(ctx, "old answers to calls with an Idempotency-Key not removed", "err", err)
		}
	})
}

// every does something now and then until ctx ends; each time has as long.
func every(ctx context.Context, pause time.Duration, do func(context.Context)) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		within, cancel := context.WithTimeout(ctx, pause)
		do(within)
		cancel()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
