package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"seatcast/catalog"
	"seatcast/seatmap"
	"seatcast/waitingroom"
	"seatcast/web"
)

// rehearseCmd is a dry run of a waiting room. Nobody simulated comes near the real
// line: they wait before a copy of the event, which is closed afterwards and whose
// room is taken away.
type rehearseCmd struct {
	database
	URL      string        `required:"" name:"url" placeholder:"http://…" help:"The Seatcast to rehearse with."`
	Event    string        `required:"" placeholder:"ID" help:"The event whose waiting room is rehearsed. Its sale must not have begun."`
	Fans     int           `default:"2000" help:"Simulated fans, 10 to 20000."`
	Rate     int           `placeholder:"N" help:"People let in a minute (default: as the room has it)."`
	Joining  time.Duration `default:"15s" help:"How long people come before the opening, and how long after it: one in ten does."`
	Stay     time.Duration `default:"5s" help:"How long one stays inside, on average."`
	Leave    float64       `default:"0.05" help:"Which part leaves the line."`
	Sleep    float64       `default:"0.1" help:"Which part sleeps through their turn for ten seconds."`
	Hold     float64       `default:"0.3" help:"Which part of those inside hold a seat, and give it back."`
	Key      string        `env:"SEATCAST_SESSION_KEY" required:"" placeholder:"KEY" help:"The local key the servers check sessions with: hs256:… or ed25519:…"`
	Issuer   string        `env:"SEATCAST_SESSION_ISSUER" help:"The iss the servers ask for."`
	Audience string        `env:"SEATCAST_SESSION_AUDIENCE" help:"The aud the servers ask for."`
	Claims   string        `env:"SEATCAST_SESSION_CLAIMS" default:"user=sub" help:"The servers' claim map. It must name roles: an operator makes the room."`
}

const mostRehearse = 20_000

// Validate is called by the parser.
func (c rehearseCmd) Validate() error {
	all := []error{c.database.Validate()}
	for _, f := range []struct {
		flag string
		ok   bool
		is   string
	}{
		{"fans", c.Fans >= 10 && c.Fans <= mostRehearse, fmt.Sprintf("10 to %d", mostRehearse)}, {"rate", c.Rate >= 0, "above nought"},
		{"joining", c.Joining >= time.Second && c.Joining <= time.Hour, "1s to 1h"}, {"stay", c.Stay >= 100*time.Millisecond && c.Stay <= time.Hour, "100ms to 1h"},
		{"leave", c.Leave >= 0 && c.Leave < 1, "nought or more, and below 1"}, {"sleep", c.Sleep >= 0 && c.Sleep < 1, "nought or more, and below 1"},
		{"hold", c.Hold >= 0 && c.Hold <= 1, "0 to 1"},
	} {
		if !f.ok {
			all = append(all, fmt.Errorf("--%s is %s", f.flag, f.is))
		}
	}
	if u, err := url.Parse(c.URL); c.URL != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		all = append(all, errors.New("--url is where the servers answer, such as https://tickets.example"))
	}
	return errors.Join(all...)
}

// errKept says that the rehearsal was not what the room promises.
var errKept = errors.New("the rehearsal did not keep what the room promises")

// Run rehearses, and takes everything away again.
func (c rehearseCmd) Run(ctx context.Context, s *streams) error {
	key, err := web.ParseKey(c.Key)
	if err != nil {
		return err
	}
	sessions, err := web.OpenSessions(ctx, web.SessionOptions{Key: key, Issuer: c.Issuer, Audience: c.Audience, Claims: c.Claims})
	if err != nil {
		return err
	}
	pool, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	r := &rehearsal{cmd: c, base: strings.TrimRight(c.URL, "/"), sessions: sessions, s: s, shop: catalog.New(pool),
		client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: rehearseConns, MaxConnsPerHost: rehearseConns + maxStreams}}}
	defer r.client.CloseIdleConnections()
	return r.run(ctx, pool)
}

// rehearseConns bounds how many of the fans are answered at the same time: all
// come from one machine.
const rehearseConns = 500

// realRoom is what is looked at of the room that is rehearsed.
type realRoom struct {
	State    waitingroom.State `json:"state"`
	Rate     int               `json:"rate"`
	Burst    int               `json:"burst"`
	Cap      int               `json:"cap"`
	Session  int               `json:"sessionSeconds"`
	JoinsAt  time.Time         `json:"joinsAt"`
	ClosesAt *time.Time        `json:"closesAt"`
	Codes    bool              `json:"codes"`
	Proof    int               `json:"proof"`
}

// run makes the copy, rehearses, and ends the copy whatever comes of it.
func (r *rehearsal) run(ctx context.Context, pool *pgxpool.Pool) (err error) {
	if r.operator, err = r.sessions.Mint("rehearsal", rehearseSession, "operator"); err != nil {
		return fmt.Errorf("an operator is needed, so --claims must name the roles, such as user=sub,roles=roles: %w", err)
	}
	real, event, err := r.mayRehearse(ctx)
	if err != nil {
		return err
	}
	if err := r.copies(ctx, event, real); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.clears(context.WithoutCancel(ctx), pool)) }()
	if err := r.prepares(ctx, real); err != nil {
		return err
	}
	if err := r.plays(ctx); err != nil {
		return err
	}
	return r.verdict()
}

// soon is how near the real line may not be: it would share the machines.
const soon = 10 * time.Minute

// mayRehearse refuses what a rehearsal could disturb.
func (r *rehearsal) mayRehearse(ctx context.Context) (real realRoom, e catalog.Event, err error) {
	if e, err = r.shop.Get(ctx, r.cmd.Event); err != nil {
		return real, e, err
	}
	a, err := r.ask(ctx, r.operator, http.MethodGet, "/v1/admin/rooms/"+e.ID, nil)
	switch {
	case err != nil:
		return real, e, fmt.Errorf("%s does not answer: %w", r.base, err)
	case a.code == "no_queue":
		return real, e, fmt.Errorf("%s has no waiting room: make one first, with PUT /v1/admin/rooms/%s", e.ID, e.ID)
	case a.status != http.StatusOK:
		return real, e, fmt.Errorf("%s refuses to tell of the room, and wants an operator of its own: %v", r.base, a)
	}
	if err := json.Unmarshal(a.body, &real); err != nil {
		return real, e, err
	}
	busy := real.State == waitingroom.Open || real.State == waitingroom.Paused || e.OnSale && real.State == waitingroom.Over
	if r.cmd.rate(real) == 0 {
		return real, e, fmt.Errorf("the room of %s lets nobody in, its rate is 0: name one with --rate", e.ID)
	}
	switch longest := r.cmd.longest(real) + soon; {
	case busy:
		return real, e, fmt.Errorf("the sale of %s has begun: its fans would share the machines with those who are simulated", e.ID)
	case real.State != waitingroom.Over && time.Until(real.JoinsAt) < longest:
		return real, e, fmt.Errorf("people may join the line of %s from %s on, and a rehearsal ends %v before that: its fans would share the machines",
			e.ID, real.JoinsAt.Format(time.RFC3339), longest.Round(time.Second))
	}
	return real, e, nil
}

// longest is how long a rehearsal may take.
func (c rehearseCmd) longest(real realRoom) time.Duration {
	return 2*c.Joining + 2*c.drains(real) + 4*c.Stay + rehearseSleep + time.Minute
}

// drains is what the plan promises: so long takes it until all are let in.
func (c rehearseCmd) drains(real realRoom) time.Duration {
	return minutes(float64(c.Fans) / float64(c.rate(real)))
}

func (c rehearseCmd) rate(real realRoom) int {
	if c.Rate > 0 {
		return c.Rate
	}
	return real.Rate
}

// copies puts a copy of the event on sale. Its seats are nobody's but the fans'.
func (r *rehearsal) copies(ctx context.Context, e catalog.Event, real realRoom) error {
	now := time.Now()
	n := catalog.NewEvent{ID: e.ID + "-rehearsal-" + now.UTC().Format("0102-150405"), Name: e.Name + " (rehearsal)", Venue: e.Venue, Zone: e.Zone, Starts: now.Add(24 * time.Hour),
		Opens: now.Add(-time.Minute), ChartSHA: e.ChartSHA, Mode: e.Mode, Orphans: seatmap.OrphansAllow,
		Currency: e.Currency, Prices: e.Prices, Fees: e.Fees, Terms: e.Terms}
	made, err := r.shop.CreateEvent(ctx, n)
	if err != nil {
		return fmt.Errorf("a copy of %s: %w", e.ID, err)
	}
	r.event = made.ID
	say(r.s.err, "rehearsing with %s, a copy of %s: nobody simulated comes near the real line\n", made.ID, e.ID)
	if real.Codes || real.Proof > 0 {
		say(r.s.err, "note: the room asks who joins for a code or a proof of work, and the copy does not: these are not rehearsed\n")
	}
	return nil
}

// prepares makes the room of the copy, with the terms of the real one, and opens
// the event once every node has had time to know of it: before that a booking might
// need no pass.
func (r *rehearsal) prepares(ctx context.Context, real realRoom) error {
	joins := time.Now().Add(3 * time.Second).Truncate(time.Second) // a draw is announced before
	r.opens = joins.Add(r.cmd.Joining + 3*time.Second)
	r.terms = waitingroom.Terms{Rate: r.cmd.rate(real), Burst: real.Burst, Cap: real.Cap, Session: time.Duration(real.Session) * time.Second}
	r.drains = r.cmd.drains(real)
	terms := map[string]any{"rate": r.terms.Rate, "burst": r.terms.Burst, "cap": r.terms.Cap, "sessionSeconds": real.Session,
		"joinsAt": joins, "opensAt": r.opens}
	if real.ClosesAt != nil {
		terms["closesAt"] = r.opens.Add(-2 * time.Second)
	}
	a, err := r.ask(ctx, r.operator, http.MethodPut, "/v1/admin/rooms/"+r.event, terms)
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("the room of the copy is refused: %v", a)
	}
	if err != nil {
		return err
	}
	if !pause(ctx, time.Until(joins)) {
		return ctx.Err()
	}
	return r.shop.SetState(ctx, r.event, catalog.Open)
}

// clears closes the copy for good and takes its room away.
func (r *rehearsal) clears(ctx context.Context, pool *pgxpool.Pool) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	closed := r.shop.SetState(ctx, r.event, catalog.Closed) // first: without a room no pass is asked for
	a, err := r.ask(ctx, r.operator, http.MethodPost, "/v1/admin/rooms/"+r.event+"/over", nil)
	if err == nil && a.status != http.StatusOK && a.code != "room_state" && a.code != "no_queue" {
		err = fmt.Errorf("the room of %s is not over: %v", r.event, a)
	}
	if closed == nil {
		_, closed = pool.Exec(ctx, `DELETE FROM rooms WHERE event_id = $1`, r.event)
	}
	if err = errors.Join(closed, err); err != nil {
		return fmt.Errorf("%s is not cleared away: close it with seatcast event close %s: %w", r.event, r.event, err)
	}
	say(r.s.err, "%s is closed and has no waiting room any more\n", r.event)
	return nil
}
