package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"seatcast/seatmap"
	"seatcast/waitingroom"
)

// The terms of the sale. Whoever is let in stays for half a second, so that the
// cap is what holds the line up now and then, and the rate at other times.
const (
	lineFans    = 2000
	lineRate    = 4800 // a minute
	lineBurst   = 20
	lineCap     = 40
	lineSession = 20 * time.Second
	lineSeats   = 120
)

// A whole sale: people come before the draw and after it, leave, sleep through
// their turn, load the page again, change nodes and use two devices. One node of
// two is killed, Redis fails over to a replica that lacks the last second, and
// later it loses everything.
func TestAWholeSaleIsFairToEverybodyWhateverBreaks(t *testing.T) { // alone: it needs the machine
	p := newPair(t, 0, 0)
	h := newHouse(t, plan{redis: "redis://" + p.via.at(), chart: straight(lineSeats)})
	h.env = append(h.env, "SEATCAST_QUEUE_PER_ACCOUNT=-1", "SEATCAST_QUEUE_PER_ADDRESS=-1", "SEATCAST_QUEUE_SUSPECT=-1") // all come from here
	h.serves(p.primary)
	l := &lineSale{house: h, pair: p, nodes: []*node{h.node(), h.node()}, lets: map[string]letIn{}, open: make(chan struct{}), slots: make(chan struct{}, 48), client: &http.Client{Timeout: 20 * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: 500}}}
	t.Cleanup(l.client.CloseIdleConnections)
	l.opens()
	l.watched(6)
	crowd := l.comes()
	l.breaksDown()
	crowd.Wait()
	l.soldOut()
	l.end()
	l.judge()
}

// straight is a house of one long row.
func straight(seats int) *seatmap.Chart {
	c := &seatmap.Chart{Name: "Row", Width: 10, Height: 10, Seats: seats, Categories: []seatmap.Category{{Name: "all"}},
		Sections: []seatmap.Section{{ID: "s", Name: "S", Rows: []seatmap.Row{{Label: "A"}}}}}
	row := &c.Sections[0].Rows[0]
	for i := range seats {
		row.Seats = append(row.Seats, seatmap.Seat{TicketID: fmt.Sprint("s-", i), I: i, Label: fmt.Sprint(i), Category: "all"})
	}
	return c
}

// lineSale is the sale, and what is known of it.
type lineSale struct {
	*house
	pair     pair
	operator shopper
	client   *http.Client
	fans     []*lineFan
	streams  []*lineStream
	slots    chan struct{} // as many are answered at a time: a machine that is slow is not asked more

	mu     sync.Mutex
	nodes  []*node          // that live
	lets   map[string]letIn // by pass
	breaks []lineBreak
	most   int64 // inside, of any frame

	in   atomic.Int64  // fans who were inside
	open chan struct{} // closed once the line is called
	once sync.Once
}

// lineBreak is a time after which Redis is not what it was before.
type lineBreak struct {
	from, to time.Time
	known    map[string]time.Time // who it still knew to be or have been inside, and until when; nil: nobody
}

// forgot says that Redis does not know of a time inside that began before the
// break.
func (b lineBreak) forgot(in letIn) bool {
	if b.known == nil {
		return in.at.After(b.from.Add(-writtenDown)) && in.at.Before(b.to)
	}
	return in.at.Before(b.to) && b.known[in.ticket()].Before(in.at)
}

// writtenDown is more than it takes until Postgres has an admission, from which a
// Redis that has lost everything knows it.
const writtenDown = 5 * time.Second

// letIn is a time inside.
type letIn struct {
	fan       *lineFan
	pass      string    // its jti
	at, until time.Time // by the clock of Redis, which is this machine's
	left      time.Time // when the fan said so
}

func (in letIn) ticket() string { return in.pass[:strings.LastIndexByte(in.pass, '-')] }

func (l *lineSale) opens() {
	l.operator = l.house.operator(l.nodes[0], "olga")
	joins := time.Now().Add(2 * time.Second).Truncate(time.Second)
	closes := joins.Add(8 * time.Second)
	l.admin(http.MethodPut, "", map[string]any{"rate": lineRate, "burst": lineBurst, "cap": lineCap, "sessionSeconds": int(lineSession.Seconds()),
		"joinsAt": joins, "closesAt": closes, "opensAt": closes.Add(time.Second)})
	for _, n := range l.nodes {
		eventually(l.t, 10*time.Second, "the room is known", func() bool {
			return shopper{l.t, n.url, ""}.do(http.MethodGet, "/v1/queue/"+l.event, "", nil).status == http.StatusOK
		})
	}
	pause(l.t.Context(), time.Until(joins))
}

// admin asks a node that lives.
func (l *lineSale) admin(method, rest string, body any) {
	l.t.Helper()
	l.operator.base = l.node().url
	insists(func() answer { return l.operator.do(method, "/v1/admin/rooms/"+l.event+rest, "", body) }).want(l.t, http.StatusOK, "")
}

// node is one that lives.
func (l *lineSale) node() *node {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nodes[rand.N(len(l.nodes))]
}

// lineFrame is a frame, as a page reads it.
type lineFrame struct {
	N       int64
	State   waitingroom.State
	Serving int64
	Inside  int64
}

// lineStream is a page's stream of frames, which comes back when it ends.
type lineStream struct {
	sale *lineSale
	stop context.CancelFunc
	done chan struct{}

	mu     sync.Mutex
	frame  lineFrame
	at     time.Time // when it came
	over   time.Time // when it was told that all is sold
	follow []*lineFan
}

// watched starts so many streams.
func (l *lineSale) watched(n int) {
	for range n {
		ctx, stop := context.WithCancel(context.Background())
		s := &lineStream{sale: l, stop: stop, done: make(chan struct{})}
		l.streams = append(l.streams, s)
		go func() { // joined by end
			defer close(s.done)
			for ctx.Err() == nil {
				once, cancel := context.WithTimeout(ctx, time.Second+rand.N(8*time.Second)) // then it comes back, elsewhere perhaps
				s.read(once)
				cancel()
				pause(ctx, 20*time.Millisecond)
			}
		}()
	}
	l.t.Cleanup(l.end)
}

func (l *lineSale) end() {
	for _, s := range l.streams {
		s.stop()
		<-s.done
	}
}

func (s *lineStream) read(ctx context.Context) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.sale.node().url+"/v1/queue/"+s.sale.event+"/live", nil)
	if err != nil {
		s.sale.t.Error(err)
		return
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); ; {
		f, err := readSSE(lines)
		if err != nil {
			return
		}
		var frame lineFrame
		if f.Type != "snapshot" && f.Type != "delta" {
			continue
		}
		if err := json.Unmarshal(f.raw, &frame); err != nil {
			s.sale.t.Errorf("a frame that is none: %s", f.raw)
			return
		}
		s.told(frame)
	}
}

// told shows a frame to everybody who follows, as their pages would: one that is
// not newer than what they have says nothing.
func (s *lineStream) told(f lineFrame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.N <= s.frame.N {
		return
	}
	s.frame, s.at = f, time.Now()
	if f.Serving > 0 {
		s.sale.once.Do(func() { close(s.sale.open) })
	}
	if f.State == waitingroom.Over && s.over.IsZero() {
		s.over = s.at
	}
	s.sale.mu.Lock()
	s.sale.most = max(s.sale.most, f.Inside)
	s.sale.mu.Unlock()
	for _, fan := range s.follow {
		fan.sees(f)
	}
}

// lineFan is one of those who wait.
type lineFan struct {
	sale  *lineSale
	user  string
	kind  string
	token string

	mu     sync.Mutex
	place  string // signed
	number int64
	have   int64 // number of the newest frame
	f      lineFrame
	shown  int64 // how many are before them, as their page says; -1: it says nothing
	asked  []asking
	away   time.Time // when they gave their place up
}

// asking is a claim that was answered: you are called, wait.
type asking struct{ sent, answered time.Time }

// sees works the place out anew.
func (f *lineFan) sees(frame lineFrame) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if frame.N > f.have {
		f.have, f.f = frame.N, frame
		f.showLocked(fmt.Sprintf("frame %d", frame.N))
	}
}

func (f *lineFan) showLocked(by string) {
	if f.number == 0 || f.have == 0 {
		return
	}
	shown := max(0, f.number-f.f.Serving)
	if f.shown >= 0 && shown > f.shown {
		f.sale.t.Errorf("the place of %s rose from %d to %d by %s: number %d, serving %d", f.user, f.shown, shown, by, f.number, f.f.Serving)
	}
	f.shown = shown
}

// called says that the page shows the turn.
func (f *lineFan) called() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.number > 0 && f.shown == 0
}

// comes has everybody come: three of five before the draw, the others one after
// another once it is held.
func (l *lineSale) comes() *sync.WaitGroup {
	kinds := []string{"patient", "patient", "refresher", "roamer", "twin", "sleeper", "leaver", "buyer"}
	var crowd sync.WaitGroup
	for n := range lineFans {
		kind := kinds[n%len(kinds)]
		user := fmt.Sprint(kind, "-", n)
		token, err := l.sessions.Mint(user, time.Hour)
		if err != nil {
			l.t.Fatal(err)
		}
		f := &lineFan{sale: l, user: user, kind: kind, token: token, shown: -1}
		l.fans = append(l.fans, f)
		s := l.streams[n%len(l.streams)]
		s.mu.Lock()
		s.follow = append(s.follow, f)
		s.mu.Unlock()
		crowd.Go(func() {
			if n%5 < 3 {
				pause(l.t.Context(), rand.N(5*time.Second))
			} else {
				select {
				case <-l.open:
				case <-time.After(time.Minute):
					l.t.Error("never: the draw is held")
					return
				}
				pause(l.t.Context(), rand.N(20*time.Second))
			}
			f.lives()
		})
	}
	return &crowd
}

// until waits for something, for minutes if need be: how long a sale takes is no
// promise.
func (l *lineSale) until(what string, is func() bool) {
	for begun := time.Now(); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > 4*time.Minute || l.t.Failed() && time.Since(begun) > time.Minute {
			l.t.Errorf("never: %s", what)
			return
		}
	}
}

// lineAnswer is what a call answers.
type lineAnswer struct {
	status int
	Number int64
	Place  string
	Ahead  *int64
	Pass   string
	Code   string
	Draw   bool
}

// ask asks nodes until one answers: one that was killed does not, and while Redis
// is away all say so.
func (f *lineFan) ask(method, rest string, body any) (a lineAnswer, ok bool) {
	for begun := time.Now(); time.Since(begun) < 4*time.Minute; pause(f.sale.t.Context(), 200*time.Millisecond+rand.N(400*time.Millisecond)) {
		f.sale.slots <- struct{}{}
		s := shopper{f.sale.t, f.sale.node().url, f.token}
		got := s.through(f.sale.client, method, "/v1/queue/"+f.sale.event+rest, body)
		<-f.sale.slots
		if got.status == 0 || got.status == http.StatusServiceUnavailable {
			continue
		}
		a = lineAnswer{status: got.status}
		_ = json.Unmarshal(got.raw, &a) // 204 has no body
		return a, true
	}
	f.sale.t.Errorf("%s is not answered: %s %s", f.user, method, rest)
	return a, false
}

// through sends a request by a client of its own.
func (s shopper) through(c *http.Client, method, path string, body any) answer {
	raw, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, s.base+path, strings.NewReader(string(raw)))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	return sendBy(c, req)
}

// join sends the place, if there is one.
func (f *lineFan) join() bool {
	f.mu.Lock()
	place := f.place
	f.mu.Unlock()
	a, ok := f.ask(http.MethodPost, "", map[string]string{"place": place})
	if !ok {
		return false
	}
	if a.status/100 != 2 {
		f.sale.t.Errorf("%s joins: %d %s", f.user, a.status, a.Code)
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if a.Number > 0 || a.Draw {
		f.place = a.Place
	}
	if a.Number > 0 && (f.number == 0 || a.Number != f.number) {
		f.number = a.Number
		f.showLocked("the answer of a join")
	}
	return true
}

// lives is one fan's evening.
func (f *lineFan) lives() {
	if !f.join() {
		return
	}
	if f.kind == "twin" { // a second device, which has the place too: one account
		var other sync.WaitGroup
		defer other.Wait()
		other.Go(func() { f.waits() })
	}
	f.waits()
}

// waits waits until the fan has been inside, or has left.
func (f *lineFan) waits() {
	slept, begun, seen := false, time.Now(), int64(-1)
	for time.Since(begun) < 4*time.Minute && !f.isAway() {
		f.mu.Lock()
		news := f.have != seen
		seen = f.have
		f.mu.Unlock()
		switch {
		case f.kind == "leaver" && rand.N(200) == 0:
			f.mu.Lock()
			f.away = time.Now()
			f.mu.Unlock()
			f.ask(http.MethodDelete, "/me", nil)
			return
		case f.kind == "refresher" && rand.N(40) == 0, !f.called() && news && f.needsNumber():
			f.join()
		case f.kind == "roamer" && rand.N(40) == 0:
			f.moves()
		case !f.called():
		case f.kind == "sleeper" && !slept:
			slept = true
			pause(f.sale.t.Context(), 6*time.Second) // through the turn
		default:
			if f.claims() {
				return
			}
		}
		pause(f.sale.t.Context(), 100*time.Millisecond+rand.N(150*time.Millisecond))
	}
	if !f.isAway() {
		f.sale.t.Errorf("%s, who has place %d and is shown %d, is not let in", f.user, f.number, f.shown)
	}
}

// needsNumber says that the draw is held and the fan does not know their rank.
func (f *lineFan) needsNumber() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.number == 0 && f.f.State == waitingroom.Open
}

func (f *lineFan) isAway() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.away.IsZero()
}

// moves has the page follow another stream.
func (f *lineFan) moves() {
	for _, s := range f.sale.streams {
		s.mu.Lock()
		s.follow = slices.DeleteFunc(s.follow, func(o *lineFan) bool { return o == f })
		s.mu.Unlock()
	}
	s := f.sale.streams[rand.N(len(f.sale.streams))]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.follow = append(s.follow, f)
	if s.frame.N > 0 {
		f.sees(s.frame)
	}
}

// claims asks for the pass, and shops with it.
func (f *lineFan) claims() bool {
	f.mu.Lock()
	place := f.place
	f.mu.Unlock()
	sent := time.Now()
	a, ok := f.ask(http.MethodPost, "/pass", map[string]string{"place": place})
	answered := time.Now()
	if !ok || f.isAway() {
		return false
	}
	switch {
	case a.status == http.StatusAccepted && a.Ahead != nil:
		f.mu.Lock()
		f.asked = append(f.asked, asking{sent, answered})
		f.mu.Unlock()
		return false
	case a.status == http.StatusAccepted && a.Number > 0:
		return false // Redis does not know yet how far it has called
	case a.status != http.StatusOK:
		f.sale.t.Errorf("%s, who is called, asks for the pass: %d %s", f.user, a.status, a.Code)
		return true
	}
	in, err := f.letIn(a.Pass)
	if err != nil {
		f.sale.t.Errorf("%s: %v", f.user, err)
		return true
	}
	if f.kind == "buyer" && rand.N(4) == 0 {
		f.buys(a.Pass)
	} else {
		pause(f.sale.t.Context(), 200*time.Millisecond+rand.N(600*time.Millisecond))
	}
	in.left = time.Now()
	f.mu.Lock()
	if f.away.IsZero() {
		f.away = in.left
		f.sale.in.Add(1)
	}
	f.mu.Unlock()
	f.sale.mu.Lock()
	if _, both := f.sale.lets[in.pass]; !both { // devices of one account have one pass
		f.sale.lets[in.pass] = in
	}
	f.sale.mu.Unlock()
	f.ask(http.MethodDelete, "/me", nil)
	return true
}

// letIn reads when somebody was let in, which the pass says to the millisecond.
func (f *lineFan) letIn(pass string) (letIn, error) {
	var claims struct {
		JTI string `json:"jti"`
		Sub string `json:"sub"`
	}
	parts := strings.Split(pass, ".")
	if len(parts) != 3 {
		return letIn{}, fmt.Errorf("a pass of %d parts", len(parts))
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err = errors.Join(err, json.Unmarshal(text, &claims)); err != nil || claims.Sub != f.user {
		return letIn{}, fmt.Errorf("a pass of %q: %w", claims.Sub, err)
	}
	ms, err := strconv.ParseInt(claims.JTI[strings.LastIndexByte(claims.JTI, '-')+1:], 10, 64)
	until := time.UnixMilli(ms)
	return letIn{fan: f, pass: claims.JTI, at: until.Add(-lineSession), until: until}, err
}

// buys takes a seat and pays; somebody may have been faster, or something break.
func (f *lineFan) buys(pass string) {
	s := shopper{f.sale.t, f.sale.node().url, f.token}
	seat := fmt.Sprint("s-", rand.N(lineSeats))
	b := s.showing(pass, http.MethodPost, "/v1/bookings/"+f.sale.event, map[string]any{"ticketIds": []string{seat}})
	if b.status == http.StatusForbidden {
		f.sale.t.Errorf("%s is inside and may not book: %s", f.user, b.raw)
	}
	if b.status == http.StatusCreated {
		s.pay(b.BookingID, "", goodCard)
	}
}

// breaksDown breaks one thing after another, as the sale goes on.
func (l *lineSale) breaksDown() {
	l.until("a fifth was inside", func() bool { return l.in.Load() > lineFans/5 })
	l.mu.Lock()
	dies := l.nodes[0]
	l.nodes = l.nodes[1:]
	l.mu.Unlock()
	dies.kill()
	next := l.house.node()
	l.mu.Lock()
	l.nodes = append(l.nodes, next)
	l.mu.Unlock()
	l.t.Logf("a node was killed after %d were inside", l.in.Load())

	l.until("two fifths were inside", func() bool { return l.in.Load() > 2*lineFans/5 })
	l.failsOver()

	l.until("three fifths were inside", func() bool { return l.in.Load() > 3*lineFans/5 })
	from := time.Now()
	if err := l.rdb.FlushAll(l.t.Context()).Err(); err != nil {
		l.t.Error(err)
	}
	l.broke(lineBreak{from: from, to: time.Now()})
	l.t.Logf("Redis lost everything after %d were inside", l.in.Load())
}

// failsOver has a replica take over that lacks the last second.
func (l *lineSale) failsOver() {
	ctx := l.t.Context()
	replica := l.pair.replica.Client()
	defer func() { _ = replica.Close() }()
	from := time.Now()
	if err := replica.ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
		l.t.Error(err)
	}
	pause(ctx, time.Second)
	l.pair.primary.Kill()
	killed := time.Now()
	inside, err := replica.ZRangeWithScores(ctx, seatmap.InsideKey(l.event), 0, -1).Result()
	if err != nil {
		l.t.Error(err)
	}
	known := map[string]time.Time{}
	for _, z := range inside {
		known[z.Member.(string)] = time.UnixMilli(int64(z.Score))
	}
	l.serves(l.pair.replica)
	l.pair.via.lead("tcp", l.pair.replica.Addr())
	l.broke(lineBreak{from, killed, known})
	l.t.Logf("Redis failed over after %d were inside", l.in.Load())
}

func (l *lineSale) broke(b lineBreak) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.breaks = append(l.breaks, b)
}

// soldOut has the last seats go while thirty people wait, who are told.
func (l *lineSale) soldOut() {
	l.admin(http.MethodPut, "/rate", map[string]int{"rate": 0})
	var late []*lineFan
	for n := range 30 {
		user := fmt.Sprint("late-", n)
		token, err := l.sessions.Mint(user, time.Hour)
		if err != nil {
			l.t.Fatal(err)
		}
		f := &lineFan{sale: l, user: user, kind: "patient", token: token, shown: -1}
		f.join()
		late = append(late, f)
	}
	l.fans = append(l.fans, late...)
	l.operator.base = l.node().url
	var gone time.Time
	eventually(l.t, 20*time.Second, "the last seats go", func() bool { // one may be sold meanwhile
		rows, err := l.pool.Query(l.t.Context(), `SELECT 's-' || i FROM seats WHERE event_id = $1 AND status <> 'sold'`, l.event)
		if err != nil {
			l.t.Fatal(err)
		}
		seats, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			l.t.Fatal(err)
		}
		gone = time.Now()
		return l.operator.do(http.MethodPost, "/v1/admin/events/"+l.event+"/kill", "", map[string]any{"ticketIds": seats, "reason": "the hall is full", "evenHeld": true}).status == http.StatusOK
	})
	for _, s := range l.streams {
		eventually(l.t, 2*time.Second, "everybody is told that all is sold", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return !s.over.IsZero()
		})
	}
	l.t.Logf("everybody is told after %v that all is sold", time.Since(gone))
	for _, f := range late {
		if a, ok := f.ask(http.MethodPost, "/pass", map[string]string{"place": f.place}); ok && a.status != http.StatusGone {
			l.t.Errorf("%s is told %d %s", f.user, a.status, a.Code)
		}
	}
}

// judge looks at everything that was told.
func (l *lineSale) judge() {
	lets := slices.SortedFunc(maps.Values(l.lets), func(a, b letIn) int { return a.at.Compare(b.at) })
	forgot := func(in letIn) bool {
		return slices.ContainsFunc(l.breaks, func(b lineBreak) bool { return b.forgot(in) })
	}
	known := slices.DeleteFunc(slices.Clone(lets), forgot)
	l.t.Logf("%d were let in within %v, %d left; Redis forgot that %d of them were", len(lets),
		lets[len(lets)-1].at.Sub(lets[0].at).Round(time.Second), lineFans-len(lets), len(lets)-len(known))
	l.judgeNumbers()
	l.judgeOnce(lets, forgot)
	l.judgeRate(lets)
	l.judgeCap(known)
	l.judgeOrder(lets)
}

// judgeNumbers: no place was given twice, and who left is the only one who was not
// inside.
func (l *lineSale) judgeNumbers() {
	has := map[int64]string{}
	for _, f := range l.fans {
		if other, twice := has[f.number]; twice && f.number > 0 {
			l.t.Errorf("place %d was given to %s and to %s", f.number, other, f.user)
		}
		has[f.number] = f.user
	}
}

// judgeOnce: nobody is inside twice at once, but for who was let in when Redis then
// forgot it.
func (l *lineSale) judgeOnce(lets []letIn, forgot func(letIn) bool) {
	last := map[*lineFan]letIn{}
	for _, in := range lets {
		if was, again := last[in.fan]; again && !forgot(was) && in.at.Before(was.left) {
			l.t.Errorf("%s was let in at %v, and again at %v", in.fan.user, was.at, in.at)
		}
		last[in.fan] = in
	}
	for _, f := range l.fans[:lineFans] {
		if _, in := last[f]; !in && f.kind != "leaver" {
			l.t.Errorf("%s stayed and was never let in", f.user)
		}
	}
}

// judgeRate: in no window w more than rate × w + burst are let in. A primary that
// takes over has the tokens of the moment its copy ended, and those who were let
// in after that were let in by tokens of the old one. So the promise holds of all
// until the old one was gone, and of all but them from the beginning to the end. A
// Redis that has lost everything begins with an empty bucket.
func (l *lineSale) judgeRate(lets []letIn) {
	var before, without []time.Time
	for _, in := range lets {
		failover := slices.IndexFunc(l.breaks, func(b lineBreak) bool { return b.known != nil })
		if failover < 0 {
			l.t.Fatal("there was no failover")
		}
		b := l.breaks[failover]
		if in.at.Before(b.to) {
			before = append(before, in.at)
		}
		if !b.forgot(in) {
			without = append(without, in.at)
		}
	}
	for _, all := range [][]time.Time{before, without} {
		for from := range all {
			for to := from; to < len(all); to++ {
				w := all[to].Sub(all[from]) + 2*time.Millisecond // times are whole milliseconds
				if most := lineRate*w.Minutes() + lineBurst; float64(to-from+1) > most {
					l.t.Fatalf("%d were let in within %v, and %.1f may be", to-from+1, w, most)
				}
			}
		}
	}
}

// judgeCap: of those Redis knows of never more than the cap are inside.
func (l *lineSale) judgeCap(known []letIn) {
	for _, one := range known {
		n := 0
		for _, other := range known {
			if !other.at.After(one.at) && other.left.After(one.at) {
				n++
			}
		}
		if n > lineCap {
			l.t.Errorf("at %v %d were inside, and %d may be", one.at, n, lineCap)
		}
	}
	forgotten := int64(len(l.lets) - len(known)) // who shows a pass is inside again
	if l.most > lineCap+forgotten {
		l.t.Errorf("a frame told of %d inside, and %d may be", l.most, lineCap)
	}
}

// judgeOrder: whoever is let in has fewer before them who are called, here and not
// inside yet than there may be tokens at once: each of those has a token of their
// own. Who was here is not known of the time before a break.
func (l *lineSale) judgeOrder(lets []letIn) {
	in := map[*lineFan]time.Time{}
	for _, one := range lets {
		if _, was := in[one.fan]; !was {
			in[one.fan] = one.at
		}
	}
	for _, one := range lets {
		since := one.at.Add(-4 * time.Second) // who is silent for five is passed over
		if slices.ContainsFunc(l.breaks, func(b lineBreak) bool { return one.at.After(b.from) && one.at.Before(b.to.Add(3*time.Second)) }) {
			continue
		}
		for _, b := range l.breaks {
			if b.to.Before(one.at) && b.to.After(since) {
				since = b.to
			}
		}
		here := 0
		for _, f := range l.fans[:lineFans] {
			at, was := in[f]
			if f.number == 0 || f.number >= one.fan.number || was && !at.After(one.at) || !f.away.IsZero() && f.away.Before(one.at) {
				continue
			}
			if slices.ContainsFunc(f.asked, func(a asking) bool { return a.sent.After(since) && a.answered.Before(one.at) }) {
				here++
			}
		}
		if here >= lineBurst {
			l.t.Errorf("%s with number %d was let in at %v before %d who were called and here", one.fan.user, one.fan.number, one.at, here)
		}
	}
}
