package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
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
		{"fans", c.Fans >= 10 && c.Fans <= mostRehearse, fmt.Sprintf("10 to %d", mostRehearse)}, {"rate", c.Rate >= 0, "0 or more"},
		{"joining", c.Joining >= time.Second && c.Joining <= time.Hour, "1s to 1h"}, {"stay", c.Stay >= 100*time.Millisecond && c.Stay <= time.Hour, "100ms to 1h"},
		{"leave", c.Leave >= 0 && c.Leave < 1, "0 or more, and below 1"}, {"sleep", c.Sleep >= 0 && c.Sleep < 1, "0 or more, and below 1"},
		{"hold", c.Hold >= 0 && c.Hold <= 1, "0 to 1"},
	} {
		if !f.ok {
			all = append(all, fmt.Errorf("--%s must be %s", f.flag, f.is))
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
	conns := &http.Transport{MaxIdleConnsPerHost: rehearseConns, MaxConnsPerHost: rehearseConns + maxStreams}
	defer conns.CloseIdleConnections()
	r := &rehearsal{cmd: c, base: strings.TrimRight(c.URL, "/"), sessions: sessions, s: s, shop: catalog.New(pool),
		client: &http.Client{Timeout: 30 * time.Second, Transport: conns}, live: &http.Client{Transport: conns}}
	return r.run(ctx, pool)
}

// rehearseConns bounds how many of the fans are answered at the same time: all
// come from one machine.
const rehearseConns = 500

// realRoom is what is looked at of the room that is rehearsed.
type realRoom struct {
	State     waitingroom.State `json:"state"`
	Rate      int               `json:"rate"`
	Burst     int               `json:"burst"`
	Cap       int               `json:"cap"`
	JoinsAt   time.Time         `json:"joinsAt"`
	ClosesAt  *time.Time        `json:"closesAt"`
	Codes     bool              `json:"codes"`
	Proof     int               `json:"proof"`
	GuardsMap bool              `json:"guardsMap"`

	all map[string]any // what an operator is told of it
}

// What an operator is told of a room and does not say, and what is not rehearsed:
// all else a copy has, too.
var (
	toldOfRooms  = []string{"event", "state", "draw", "frame", "suspected", "measured"}
	notRehearsed = []string{"external", "codes", "proof", "guardsMap"}
)

// run makes the copy, rehearses, and ends the copy whatever comes of it.
func (r *rehearsal) run(ctx context.Context, pool *pgxpool.Pool) (err error) {
	if r.operator, err = r.sessions.Mint("rehearsal", rehearseSession, "operator"); err != nil {
		return fmt.Errorf("an operator is needed, so --claims must name the roles, such as user=sub,roles=roles: %w", err)
	}
	real, event, err := r.mayRehearse(ctx)
	if err != nil {
		return err
	}
	r.within = cmp.Or(r.within, r.cmd.longest(real))
	playing, enough := context.WithTimeout(ctx, r.within)
	defer enough()
	if err := r.copies(playing, event, real); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.clears(context.WithoutCancel(ctx), pool)) }()
	if err = r.prepares(playing, real); err == nil {
		err = r.plays(playing)
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the rehearsal was stopped, and nothing is judged: %w", ctx.Err())
	case err != nil:
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
	if err := errors.Join(json.Unmarshal(a.body, &real), json.Unmarshal(a.body, &real.all)); err != nil {
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

// longest is how long a rehearsal may take: who is not let in by then is not.
func (c rehearseCmd) longest(real realRoom) time.Duration {
	return 2*c.Joining + 2*c.drains(real) + 4*c.Stay + rehearseSleep + time.Minute
}

// drains is what the plan promises: so long takes it until all are let in, by the
// rate, or as those leave whom the cap allows.
func (c rehearseCmd) drains(real realRoom) time.Duration {
	return minutes(float64(c.Fans) * max(1/float64(c.rate(real)), c.Stay.Minutes()/float64(real.Cap)))
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
	n := catalog.NewEvent{ID: suffixed(63, e.ID, "-rehearsal-"+now.UTC().Format("0102-150405")), Name: suffixed(200, e.Name, " (rehearsal)"), Venue: e.Venue, Zone: e.Zone, Starts: now.Add(24 * time.Hour),
		Opens: now.Add(-time.Minute), ChartSHA: e.ChartSHA, Mode: e.Mode, Orphans: seatmap.OrphansAllow,
		Currency: e.Currency, Prices: e.Prices, Fees: e.Fees, Terms: e.Terms, Unlisted: true}
	made, err := r.shop.CreateEvent(ctx, n)
	if err != nil {
		return fmt.Errorf("a copy of %s: %w", e.ID, err)
	}
	r.event = made.ID
	say(r.s.err, "rehearsing with %s, a copy of %s: nobody simulated comes near the real line\n", made.ID, e.ID)
	if real.Codes || real.Proof > 0 || real.GuardsMap {
		say(r.s.err, "note: the copy asks nobody for a code or a proof of work, and shows its map to everybody: these are not rehearsed\n")
	}
	return nil
}

// suffixed is a name and what is added to it, of so many bytes at most: the name is
// cut.
func suffixed(most int, name, suffix string) string {
	return strings.ToValidUTF8(name[:min(len(name), most-len(suffix))], "") + suffix
}

// prepares makes the room of the copy, with the terms of the real one, and opens
// the event once every node has had time to know of it: before that a booking might
// need no pass.
func (r *rehearsal) prepares(ctx context.Context, real realRoom) error {
	joins := time.Now().Add(3 * time.Second).Truncate(time.Second) // a draw is announced before
	r.opens = joins.Add(r.cmd.Joining + 3*time.Second)
	r.terms = waitingroom.Terms{Rate: r.cmd.rate(real), Burst: real.Burst, Cap: real.Cap}
	r.drains = r.cmd.drains(real)
	terms := maps.Clone(real.all)
	for _, name := range slices.Concat(toldOfRooms, notRehearsed) {
		delete(terms, name)
	}
	terms["rate"], terms["joinsAt"], terms["opensAt"] = r.terms.Rate, joins, r.opens
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

// clears closes the copy and takes its room away.
func (r *rehearsal) clears(ctx context.Context, pool *pgxpool.Pool) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	err := r.shop.SetState(ctx, r.event, catalog.Closed) // first: without a room no pass is asked for
	if err == nil {
		err = r.removes(ctx, pool)
	}
	if err != nil {
		return fmt.Errorf("%s is not cleared away: close it with seatcast event close %s, and then remove its room, if it has one, as an operator: %w", r.event, r.event, err)
	}
	say(r.s.err, "%s is closed and has no waiting room any more\n", r.event)
	return nil
}

// removes removes the room of the copy. No call ends one whose list people may still
// join, nor need it be drawn.
func (r *rehearsal) removes(ctx context.Context, pool *pgxpool.Pool) error {
	const ended = `UPDATE rooms SET version = version + 1, state = 'over' WHERE event_id = $1 AND state = 'draw'`
	if _, err := pool.Exec(ctx, ended, r.event); err != nil {
		return err
	}
	if err := r.orders(ctx, http.MethodPost, "/over", "room_state"); err != nil {
		return err
	}
	return r.orders(ctx, http.MethodDelete, "", "no_queue")
}

// orders has something done to the room of the copy, if there is one. The code says
// that it is done already.
func (r *rehearsal) orders(ctx context.Context, method, rest, done string) error {
	for {
		a, err := r.ask(ctx, r.operator, method, "/v1/admin/rooms/"+r.event+rest, nil)
		switch {
		case err == nil && (a.status/100 == 2 || a.code == done || a.code == "no_queue"):
			return nil
		case err == nil && a.status < http.StatusInternalServerError, !pause(ctx, time.Second):
			return errors.Join(fmt.Errorf("%s of its room is answered %v", method, a), err)
		}
	}
}
