package waitingroom

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"seatcast/internal/pg"
	"seatcast/waitingroom/draw"
)

// useCodes writes down which codes were used. Of two who used one the first counts.
func (s *Store) useCodes(ctx context.Context, event string, all []usedCode) error {
	codes, tickets := make([]int32, len(all)), make([][]byte, len(all))
	for n := range all {
		codes[n], tickets[n] = int32(all[n].code), all[n].ticket[:]
	}
	_, err := s.pool.Exec(ctx, `INSERT INTO room_codes (event_id, code, ticket)
		SELECT $1, * FROM unnest($2::int[], $3::bytea[]) ON CONFLICT DO NOTHING`, event, codes, tickets)
	return pg.Said("codes of "+event, err)
}

// codes returns which codes of an event were used.
func (s *Store) codes(ctx context.Context, event string) ([]usedCode, error) {
	rows, err := s.pool.Query(ctx, `SELECT code, ticket FROM room_codes WHERE event_id = $1`, event)
	if err != nil {
		return nil, pg.Said("codes of "+event, err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (u usedCode, err error) {
		var ticket []byte
		if err = row.Scan(&u.code, &ticket); err == nil {
			u.ticket = draw.ID(ticket)
		}
		return u, err
	})
	return all, pg.Said("codes of "+event, err)
}

// Suspect is an account that waits and is not let in.
type Suspect struct {
	User    string    `json:"user"`
	Because string    `json:"because"` // operator or limits
	At      time.Time `json:"at"`

	ticket draw.ID
}

// suspect notes that an account is suspected, and says whether it is, and is since now:
// one that is trusted only an operator suspects again, which is another suspicion.
func (s *Store) suspect(ctx context.Context, event, user string, id draw.ID, because string) (is, begins bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = s.pool.QueryRow(ctx, `INSERT INTO room_suspects AS s (event_id, user_id, ticket, because) VALUES ($1, $2, $3, $4)
		ON CONFLICT (event_id, user_id) DO UPDATE SET trusted = s.trusted AND $4 <> 'operator',
			because = CASE WHEN s.trusted AND $4 = 'operator' THEN $4 ELSE s.because END,
			at = CASE WHEN s.trusted AND $4 = 'operator' THEN now() ELSE s.at END
		RETURNING NOT trusted, NOT trusted AND at = now()`,
		event, user, id[:], because).Scan(&is, &begins)
	return is, begins, pg.Said("suspects of "+event, err)
}

// trust notes that an account is not suspected.
func (s *Store) trust(ctx context.Context, event, user string, id draw.ID) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := s.pool.Exec(ctx, `INSERT INTO room_suspects (event_id, user_id, ticket, because, trusted) VALUES ($1, $2, $3, 'operator', true)
		ON CONFLICT (event_id, user_id) DO UPDATE SET trusted = true`, event, user, id[:])
	return pg.Said("suspects of "+event, err)
}

// SuspectQuery is which of the accounts that are suspected somebody asks for. The zero
// value is all of them.
type SuspectQuery struct {
	Before Suspect // those that are listed behind it; zero: all
	Limit  int     // no more than so many; 0: all
}

// suspects returns the accounts that are suspected, the latest first.
func (s *Store) suspects(ctx context.Context, event string, q SuspectQuery) ([]Suspect, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rows, err := s.pool.Query(ctx, `SELECT user_id, because, at, ticket FROM room_suspects WHERE event_id = $1 AND NOT trusted
			AND ($2::timestamptz IS NULL OR at < $2 OR at = $2 AND user_id > $3)
		ORDER BY at DESC, user_id LIMIT NULLIF($4::bigint, 0)`, event, orNull(q.Before.At), q.Before.User, q.Limit)
	if err != nil {
		return nil, pg.Said("suspects of "+event, err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (one Suspect, err error) {
		var ticket []byte
		if err = row.Scan(&one.User, &one.Because, &one.At, &ticket); err == nil {
			one.ticket = draw.ID(ticket)
		}
		return one, err
	})
	return all, pg.Said("suspects of "+event, err)
}

// suspected counts them in one room.
func (s *Store) suspected(ctx context.Context, event string) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = s.pool.QueryRow(ctx, `SELECT count(*) FROM room_suspects WHERE event_id = $1 AND NOT trusted`, event).Scan(&n)
	return n, pg.Said("suspects of "+event, err)
}

// countSuspects counts them, by event.
func (s *Store) countSuspects(ctx context.Context) (map[string]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rows, err := s.pool.Query(ctx, `SELECT event_id, count(*) FROM room_suspects WHERE NOT trusted GROUP BY event_id`)
	if err != nil {
		return nil, pg.Said("suspects", err)
	}
	var (
		event string
		n     int64
		all   = map[string]int64{}
	)
	_, err = pgx.ForEachRow(rows, []any{&event, &n}, func() error { all[event] = n; return nil })
	return all, pg.Said("suspects", err)
}
