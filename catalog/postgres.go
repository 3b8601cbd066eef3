package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"seatcast/internal/pg"
	"seatcast/seatmap"
)

// patience is how long one query may take before the last answer has to do.
const patience = 2 * time.Second

// Store is the catalog on Postgres, and the seatmap.Sales of every other part.
type Store struct {
	db *pgxpool.Pool

	events   *cache[*known]       // by id; nil: no such event
	hot      *cache[[]string]     // one key
	searches *cache[[]Event]      // by page and words
	charts   *cache[*chart]       // by sha; nil: no such chart
	served   *cache[*servedChart] // by sha; nil: no such chart
}

// New returns a store on db. It asks nothing yet.
func New(db *pgxpool.Pool) *Store {
	s := &Store{db: db}
	s.events = &cache[*known]{name: "event", max: 1024, load: s.loadKnown}
	s.hot = &cache[[]string]{name: "hot events", max: 1, load: s.loadHot}
	s.searches = &cache[[]Event]{name: "search", max: 256, load: s.loadSearch}
	s.charts = &cache[*chart]{name: "chart", max: 12, load: s.loadChart}
	s.served = &cache[*servedChart]{name: "chart bytes", max: 24, load: s.loadServed}
	return s
}

// PutChart stores a chart unless it is there already and returns the SHA-256
// that names it. A chart with faults is refused with seatmap.Faults.
func (s *Store) PutChart(ctx context.Context, c *seatmap.Chart) (sha string, err error) {
	if faults, _ := c.Validate(); len(faults) > 0 {
		return "", faults
	}
	body, sha, err := c.Encode()
	if err != nil {
		return "", err
	}
	_, err = s.db.Exec(ctx, `
		INSERT INTO charts (sha, name, seats, body) VALUES ($1, $2, $3, $4)
		ON CONFLICT (sha) DO NOTHING`, sha, c.Name, c.Seats, body)
	if err != nil {
		return "", fmt.Errorf("put chart %q: %w", c.Name, translate(err))
	}
	s.charts.forget(sha)
	s.served.forget(sha)
	return sha, nil
}

// chartBytes returns the very bytes PutChart stored, or ErrNoChart.
func (s *Store) chartBytes(ctx context.Context, sha string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*patience) // megabytes, once
	defer cancel()
	var body []byte
	err := s.db.QueryRow(ctx, `SELECT body FROM charts WHERE sha = $1`, sha).Scan(&body)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrNoChart
	}
	if err != nil {
		return nil, fmt.Errorf("read chart %s: %w", sha, translate(err))
	}
	return body, nil
}

// CreateEvent creates an event with its prices, seats and areas, closed. It
// returns seatmap.Faults when it cannot be, ErrNoChart when the chart is not
// stored, and ErrEventExists when the id that was given is taken.
func (s *Store) CreateEvent(ctx context.Context, n NewEvent) (Event, error) {
	n = n.withDefaults()
	c, err := s.charts.get(ctx, n.ChartSHA)
	if err == nil && c == nil {
		err = ErrNoChart
	}
	if err != nil {
		return Event{}, fmt.Errorf("create event %q: %w", n.Name, err)
	}
	if err := n.faults(c.chart).Err(); err != nil {
		return Event{}, err
	}
	err = pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		return createEvent(ctx, tx, &n, c.chart)
	})
	if err != nil {
		return Event{}, fmt.Errorf("create event %q: %w", n.Name, translate(err))
	}
	s.changed(n.ID)
	return s.Get(ctx, n.ID)
}

// createEvent writes the event and everything it sells, and sets n.ID.
func createEvent(ctx context.Context, tx pgx.Tx, n *NewEvent, c *seatmap.Chart) error {
	if err := insertEvent(ctx, tx, n); err != nil {
		return err
	}
	var prices [][]any
	for category, amount := range n.Prices {
		prices = append(prices, []any{n.ID, category, amount})
	}
	var seats []*seatmap.Seat
	c.Each(func(_ *seatmap.Section, _ *seatmap.Row, seat *seatmap.Seat) { seats = append(seats, seat) })
	var fees [][]any
	for k, f := range n.Fees {
		fees = append(fees, []any{n.ID, k, f.Name, f.Per, f.Amount})
	}
	var areas [][]any
	for _, a := range c.Areas {
		areas = append(areas, []any{n.ID, a.ID, a.Category, a.Capacity})
	}
	for _, t := range []struct {
		table   string
		columns []string
		rows    [][]any
	}{
		{"prices", []string{"event_id", "category", "amount"}, prices},
		{"event_fees", []string{"event_id", "position", "name", "per", "amount"}, fees},
		{"areas", []string{"event_id", "area", "category", "capacity"}, areas},
	} {
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{t.table}, t.columns, pgx.CopyFromRows(t.rows)); err != nil {
			return fmt.Errorf("copy %d %s: %w", len(t.rows), t.table, err)
		}
	}
	if err := insertSeats(ctx, tx, n.ID, seats); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO event_charts (event_id, version, chart_sha) VALUES ($1, 1, $2)`, n.ID, n.ChartSHA)
	return err
}

// insertSeats puts new seats on sale.
func insertSeats(ctx context.Context, tx pgx.Tx, event string, seats []*seatmap.Seat) error {
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"seats"}, []string{"event_id", "i", "ticket_id", "category"},
		pgx.CopyFromSlice(len(seats), func(k int) ([]any, error) {
			return []any{event, seats[k].I, seats[k].TicketID, seats[k].Category}, nil
		}))
	if err != nil {
		return fmt.Errorf("copy %d seats: %w", len(seats), err)
	}
	return nil
}

// insertEvent inserts the row under the id given, or under the first free one
// its name makes, and sets n.ID.
func insertEvent(ctx context.Context, tx pgx.Tx, n *NewEvent) error {
	given, base := n.ID != "", n.ID
	if !given {
		base = slug(n.Name)
	}
	for try := 1; ; try++ {
		id := numbered(base, try)
		if !validID(id) {
			continue
		}
		tag, err := tx.Exec(ctx, `
			INSERT INTO events (id, name, venue, zone, starts_at, opens_at, chart_sha, mode, guarded, orphans, currency,
			                    hold_ms, pay_ms, cap_ms, grace_ms, seats_per_booking, seats_per_user, holds_per_user, holds_per_hour, cool_down_ms, seats_per_card, unlisted)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)
			ON CONFLICT (id) DO NOTHING`,
			id, strings.TrimSpace(n.Name), strings.TrimSpace(n.Venue), n.Zone, n.Starts, n.Opens, n.ChartSHA, n.Mode, n.Guarded, n.Orphans, n.Currency,
			n.Terms.Hold.Milliseconds(), n.Terms.Pay.Milliseconds(), n.Terms.Cap.Milliseconds(), n.Terms.Grace.Milliseconds(),
			n.Terms.SeatsPerBooking, n.Terms.SeatsPerUser, n.Terms.HoldsPerUser, n.Terms.HoldsPerHour, n.Terms.CoolDown.Milliseconds(),
			n.Terms.SeatsPerCard, n.Unlisted)
		if err != nil {
			return fmt.Errorf("insert event %s: %w", id, err)
		}
		if tag.RowsAffected() == 1 {
			n.ID = id
			return nil
		}
		if given {
			return ErrEventExists
		}
	}
}

// SetState opens or closes an event. It returns seatmap.ErrNoEvent when there
// is none, and ErrCancelled when it will not take place. Other processes see it
// within a second.
func (s *Store) SetState(ctx context.Context, event string, state State) error {
	if state != Open && state != Closed {
		return fmt.Errorf("catalog: %q is neither %s nor %s", state, Open, Closed)
	}
	tag, err := s.db.Exec(ctx, `UPDATE events SET state = $2 WHERE id = $1 AND state <> 'cancelled'`, event, state)
	if err != nil {
		return fmt.Errorf("set event %s %s: %w", event, state, translate(err))
	}
	if tag.RowsAffected() == 0 {
		if _, err := s.Get(ctx, event); err != nil {
			return err
		}
		return fmt.Errorf("event %q: %w", event, ErrCancelled)
	}
	s.changed(event)
	return nil
}

// changed makes this process see at once what it changed itself.
func (s *Store) changed(event string) {
	s.events.forget(event)
	s.hot.forget("")
	s.searches.forgetAll()
}

// Get returns an event as Postgres has it now, or seatmap.ErrNoEvent.
func (s *Store) Get(ctx context.Context, event string) (Event, error) {
	e, _, err := s.event(ctx, event)
	if err != nil {
		return Event{}, fmt.Errorf("event %q: %w", event, err)
	}
	return e, nil
}

// List returns every event, those on sale first, then by start.
func (s *Store) List(ctx context.Context) ([]Event, error) { return s.find(ctx, "", true, 0, -1) }

// eventColumns are what scanEvent reads. Postgres' clock judges what is on sale.
const eventColumns = `
	id, name, venue, zone, starts_at, opens_at, chart_sha, mode,
	guarded OR EXISTS (SELECT FROM rooms WHERE event_id = events.id AND guards_map) AS guarded,
	EXISTS (SELECT FROM rooms WHERE event_id = events.id) AS queue, orphans, state, currency,
	hold_ms, pay_ms, cap_ms, grace_ms, cool_down_ms, seats_per_booking, seats_per_user, seats_per_card, holds_per_user, holds_per_hour,
	state = 'open' AND opens_at <= now() AS on_sale, unheld_since IS NOT NULL AS no_holds,
	extract(epoch FROM opens_at - now())::float8 AS opens_in,
	(SELECT coalesce(jsonb_object_agg(category, amount), '{}') FROM prices WHERE event_id = events.id) AS prices,
	(SELECT coalesce(jsonb_agg(jsonb_build_object('Name', f.name, 'Per', per, 'Amount', amount) ORDER BY position), '[]')
		FROM event_fees f WHERE event_id = events.id) AS fees`

func scanEvent(row pgx.CollectableRow) (e Event, opensIn time.Duration, err error) {
	var hold, pay, limit, grace, coolDown int64
	var seconds float64
	err = row.Scan(&e.ID, &e.Name, &e.Venue, &e.Zone, &e.Starts, &e.Opens, &e.ChartSHA, &e.Mode, &e.Guarded, &e.Queue, &e.Orphans, &e.State, &e.Currency,
		&hold, &pay, &limit, &grace, &coolDown, &e.Terms.SeatsPerBooking, &e.Terms.SeatsPerUser, &e.Terms.SeatsPerCard, &e.Terms.HoldsPerUser, &e.Terms.HoldsPerHour,
		&e.OnSale, &e.NoHolds, &seconds, &e.Prices, &e.Fees)
	if err != nil {
		return Event{}, 0, err
	}
	e.Terms.Hold, e.Terms.Pay = ms(hold), ms(pay)
	e.Terms.Cap, e.Terms.Grace = ms(limit), ms(grace)
	e.Terms.CoolDown = ms(coolDown)
	loc, err := loadZone(e.Zone)
	if err != nil {
		return Event{}, 0, err
	}
	e.Starts, e.Opens = e.Starts.In(loc), e.Opens.In(loc)
	// Bounded before it is a Duration: an opening in a century overflows one.
	return e, time.Duration(max(min(seconds, 3600), -1) * float64(time.Second)), nil
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// event returns the event and how long it is until it opens.
func (s *Store) event(ctx context.Context, id string) (e Event, opensIn time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rows, err := s.db.Query(ctx, `SELECT `+eventColumns+` FROM events WHERE id = $1`, id)
	if err != nil {
		return Event{}, 0, translate(err)
	}
	e, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (found Event, err error) {
		found, opensIn, err = scanEvent(row)
		return found, err
	})
	return e, opensIn, translate(err)
}

// find returns events whose name or venue contains the words: those on sale
// first, then those to come, then those past. Those that are unlisted only on request.
func (s *Store) find(ctx context.Context, words string, unlisted bool, offset, limit int) ([]Event, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rows, err := s.db.Query(ctx, `
		SELECT `+eventColumns+` FROM events
		WHERE ($1 = '' OR strpos(lower(name), lower($1)) > 0 OR strpos(lower(venue), lower($1)) > 0) AND ($2 OR NOT unlisted)
		ORDER BY (state = 'open' AND opens_at <= now()) DESC, starts_at < now(), starts_at, id
		OFFSET $3 LIMIT nullif($4, -1)`, words, unlisted, offset, limit)
	if err != nil {
		return nil, fmt.Errorf("find events: %w", translate(err))
	}
	events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Event, error) {
		e, _, err := scanEvent(row)
		return e, err
	})
	if err != nil {
		return nil, fmt.Errorf("find events: %w", translate(err))
	}
	return events, nil
}

func (s *Store) loadHot(ctx context.Context, _ string) ([]string, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rows, err := s.db.Query(ctx, `
		SELECT id FROM events WHERE mode = 'hot' AND starts_at > now() - interval '1 day' ORDER BY starts_at, id`)
	if err != nil {
		return nil, 0, fmt.Errorf("hot events: %w", translate(err))
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, 0, fmt.Errorf("hot events: %w", translate(err))
	}
	return ids, freshFor, nil
}

// translate turns what pgx says into the outcomes of this package.
func translate(err error) error {
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return seatmap.ErrNoEvent
	case pg.Down(err):
		return fmt.Errorf("%w: %w", seatmap.ErrUnavailable, err)
	default:
		return err
	}
}
