package catalog_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"seatcast/catalog"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
)

func TestMain(m *testing.M) { devtest.Main(m) }

// shop is a catalog on a database of its own, with the club's chart in it.
type shop struct {
	*catalog.Store
	db  *pgxpool.Pool
	sha string
}

func setup(t *testing.T) *shop {
	t.Helper()
	db := devtest.Postgres(t)
	s := &shop{Store: catalog.New(db), db: db}
	s.sha = s.put(t, seatmap.Club())
	return s
}

func (s *shop) put(t *testing.T, c *seatmap.Chart) string {
	t.Helper()
	sha, err := s.PutChart(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return sha
}

// night is an event that has nothing wrong with it.
func (s *shop) night() catalog.NewEvent {
	return catalog.NewEvent{
		Name: "Late Session", Venue: "The Cellar", Zone: "Europe/Paris", ChartSHA: s.sha, Mode: catalog.Hot, Currency: "EUR",
		Starts: time.Now().Add(48 * time.Hour), Opens: time.Now().Add(-time.Minute),
		Prices: map[string]int64{"Front": 4000, "Seated": 2500, "Standing": 1500},
	}
}

func (s *shop) create(t *testing.T, n catalog.NewEvent) catalog.Event {
	t.Helper()
	e, err := s.CreateEvent(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (s *shop) set(t *testing.T, event string, state catalog.State) {
	t.Helper()
	if err := s.SetState(t.Context(), event, state); err != nil {
		t.Fatal(err)
	}
}

func (s *shop) count(t *testing.T, query string, args ...any) (n int) {
	t.Helper()
	if err := s.db.QueryRow(context.Background(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// within polls until what is expected has come true.
func within(t *testing.T, d time.Duration, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(d); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", d, what)
		}
	}
}

func TestAChartIsStoredOnceUnderItsSHA(t *testing.T) {
	s := setup(t)
	if again := s.put(t, seatmap.Club()); again != s.sha {
		t.Errorf("the same chart is %s and then %s", s.sha, again)
	}
	if n := s.count(t, `SELECT count(*) FROM charts`); n != 1 {
		t.Errorf("%d charts are stored; want 1", n)
	}
	if n := s.count(t, `SELECT count(*) FROM charts WHERE sha = encode(sha256(body), 'hex') AND seats = 80`); n != 1 {
		t.Error("its name is not the SHA-256 of its bytes")
	}
}

func TestAFaultyChartIsNotStored(t *testing.T) {
	s := setup(t)
	c := seatmap.Club()
	c.Sections[0].Rows[0].Seats[1].I = 0
	var faults seatmap.Faults
	if _, err := s.PutChart(t.Context(), c); !errors.As(err, &faults) {
		t.Errorf("PutChart = %v; want its faults", err)
	}
	if n := s.count(t, `SELECT count(*) FROM charts`); n != 1 {
		t.Errorf("%d charts are stored; want the club alone", n)
	}
}

func TestAnEventIsCreatedWithAllItSells(t *testing.T) {
	s := setup(t)
	e := s.create(t, s.night())
	if e.ID != "late-session" || e.State != catalog.Closed || e.OnSale || e.Starts.Location().String() != "Europe/Paris" {
		t.Errorf("created %+v", e)
	}
	if e.Terms != catalog.DefaultTerms {
		t.Errorf("terms are %+v; want the defaults", e.Terms)
	}
	for query, want := range map[string]int{
		`SELECT count(*) FROM seats WHERE event_id = 'late-session' AND status = 'available' AND NOT mirror_due`: 80,
		`SELECT count(*) FROM prices WHERE event_id = 'late-session'`:                                            3,
		`SELECT capacity FROM areas WHERE event_id = 'late-session' AND area = 'standing' AND sold = 0`:          40,
		`SELECT i FROM seats WHERE ticket_id = 'room-H-10' AND category = 'Seated'`:                              79,
	} {
		if got := s.count(t, query); got != want {
			t.Errorf("%s: %d; want %d", query, got, want)
		}
	}
}

func TestAnEventIDIsMadeUniqueUnlessItIsGiven(t *testing.T) {
	s := setup(t)
	n := s.night()
	for _, want := range []string{"late-session", "late-session-2", "late-session-3"} {
		if e := s.create(t, n); e.ID != want {
			t.Errorf("created %q; want %q", e.ID, want)
		}
	}
	n.Name = "Search" // the word of another path
	if e := s.create(t, n); e.ID != "search-2" {
		t.Errorf("created %q; want search-2", e.ID)
	}
	n.ID = "late-session"
	if _, err := s.CreateEvent(t.Context(), n); !errors.Is(err, catalog.ErrEventExists) {
		t.Errorf("creating an id that is there = %v; want ErrEventExists", err)
	}
	if got := s.count(t, `SELECT count(*) FROM events`); got != 4 {
		t.Errorf("%d events; want 4", got)
	}
}

func TestEverythingWrongWithAnEventIsToldAndNothingCreated(t *testing.T) {
	s := setup(t)
	n := catalog.NewEvent{
		ID: "No.Dots", ChartSHA: s.sha, Zone: "Paris", Mode: "warm", Currency: "euro",
		Starts: time.Now(), Opens: time.Now().Add(time.Hour),
		Prices: map[string]int64{"Front": -1, "Balcony": 100},
		Terms:  seatmap.Terms{Hold: time.Minute, Cap: time.Second, Grace: -1, SeatsPerBooking: -1, SeatsPerUser: -1, HoldsPerUser: -1, HoldsPerHour: -1, CoolDown: -1},
	}
	_, err := s.CreateEvent(t.Context(), n)
	var faults seatmap.Faults
	if !errors.As(err, &faults) {
		t.Fatalf("CreateEvent = %v; want faults", err)
	}
	var paths []string
	for _, f := range faults {
		paths = append(paths, f.Path)
	}
	slices.Sort(paths)
	want := []string{"cap", "coolDown", "currency", "grace", "holdsPerHour", "holdsPerUser", "id", "mode", "name", "opens", "prices", "prices", "prices", "prices",
		"seatsPerBooking", "seatsPerUser", "venue", "zone"}
	if !slices.Equal(paths, want) {
		t.Errorf("faults of %v; want %v\n%v", paths, want, err)
	}
	n = s.night()
	n.ChartSHA = strings.Repeat("0", 64)
	if _, err := s.CreateEvent(t.Context(), n); !errors.Is(err, catalog.ErrNoChart) {
		t.Errorf("on a chart that is not there = %v; want ErrNoChart", err)
	}
	if got := s.count(t, `SELECT count(*) FROM events`); got != 0 {
		t.Errorf("%d events; want none", got)
	}
}

func TestASaleIsBookableWhenOpenAndDue(t *testing.T) {
	s := setup(t)
	n := s.night()
	n.Opens = time.Now().Add(time.Second)
	e := s.create(t, n)
	s.set(t, e.ID, catalog.Open)

	sale, err := s.Sale(t.Context(), e.ID)
	if err != nil {
		t.Fatal(err)
	}
	if sale.Open && time.Now().Before(n.Opens) {
		t.Error("bookable before its opening time")
	}
	if !sale.Hot || sale.ChartSHA != s.sha || sale.Chart.Seats != 80 || sale.Prices["Front"] != 4000 || sale.Currency != "EUR" {
		t.Errorf("the sale is %+v", sale)
	}
	if seat, ok := sale.Index.Seat("room-A-1"); !ok || seat.I != 0 {
		t.Errorf("its index finds %+v, %v", seat, ok)
	}
	within(t, 5*time.Second, "bookable", func() bool {
		sale, err := s.Sale(t.Context(), e.ID)
		return err == nil && sale.Open
	})
	s.set(t, e.ID, catalog.Closed)
	if sale, _ := s.Sale(t.Context(), e.ID); sale.Open {
		t.Error("bookable right after it was closed here")
	}
}

func TestAnotherProcessSeesAChangeToo(t *testing.T) {
	s := setup(t)
	e := s.create(t, s.night())
	other := catalog.New(s.db)
	if sale, err := other.Sale(t.Context(), e.ID); err != nil || sale.Open {
		t.Fatalf("%+v, %v", sale, err)
	}
	s.set(t, e.ID, catalog.Open)
	within(t, 5*time.Second, "open", func() bool {
		sale, err := other.Sale(t.Context(), e.ID)
		return err == nil && sale.Open
	})
}

func TestAnEventThatIsNotThereIsNoEvent(t *testing.T) {
	s := setup(t)
	for _, id := range []string{"nowhere", "No.Such", "", "search"} {
		if _, err := s.Sale(t.Context(), id); !errors.Is(err, seatmap.ErrNoEvent) {
			t.Errorf("Sale(%q) = %v; want ErrNoEvent", id, err)
		}
	}
	if _, err := s.Get(t.Context(), "nowhere"); !errors.Is(err, seatmap.ErrNoEvent) {
		t.Errorf("Get = %v; want ErrNoEvent", err)
	}
	if err := s.SetState(t.Context(), "nowhere", catalog.Open); !errors.Is(err, seatmap.ErrNoEvent) {
		t.Errorf("SetState = %v; want ErrNoEvent", err)
	}
	n := s.night()
	n.ID = "nowhere"
	s.create(t, n)
	if _, err := s.Sale(t.Context(), "nowhere"); err != nil {
		t.Errorf("right after it was created here: %v", err)
	}
}

func TestSalesGoOnWhilePostgresDoesNotAnswer(t *testing.T) {
	s := setup(t)
	e := s.create(t, s.night())
	s.set(t, e.ID, catalog.Open)
	if _, err := s.Sale(t.Context(), e.ID); err != nil {
		t.Fatal(err)
	}
	s.db.Close()
	for range 3 {
		s.Age()
		if sale, err := s.Sale(t.Context(), e.ID); err != nil || !sale.Open {
			t.Fatalf("%+v, %v; want the last answer", sale, err)
		}
	}
	if _, err := s.Sale(t.Context(), "other"); err == nil || errors.Is(err, seatmap.ErrNoEvent) {
		t.Errorf("an event nobody asked for before: %v; want that it is not known", err)
	}
}

func TestHotEventsAreThoseSomebodyMayWatch(t *testing.T) {
	s := setup(t)
	n := s.night()
	for _, e := range []struct {
		id    string
		mode  catalog.Mode
		start time.Duration
	}{{"soon", catalog.Hot, time.Hour}, {"running", catalog.Hot, -time.Hour}, {"past", catalog.Hot, -25 * time.Hour},
		{"later", catalog.Hot, 100 * time.Hour}, {"polled", catalog.Ordinary, time.Hour}} {
		n.ID, n.Mode, n.Starts, n.Opens = e.id, e.mode, time.Now().Add(e.start), time.Now().Add(-100*time.Hour)
		s.create(t, n)
	}
	ids, err := s.Hot(t.Context())
	if want := []string{"running", "soon", "later"}; err != nil || !slices.Equal(ids, want) {
		t.Errorf("Hot = %v, %v; want %v", ids, err, want)
	}
}

func TestAStadiumIsCreatedWithEverySeat(t *testing.T) {
	s := setup(t)
	c := seatmap.Stadium()
	n := s.night()
	n.ChartSHA, n.Prices = s.put(t, c), map[string]int64{}
	for i, cat := range c.Categories {
		n.Prices[cat.Name] = int64(9000 - 1000*i)
	}
	e := s.create(t, n)
	if got := s.count(t, `SELECT count(*) FROM seats WHERE event_id = $1`, e.ID); got != 60_000 {
		t.Errorf("%d seats; want 60,000", got)
	}
	if sale, err := s.Sale(t.Context(), e.ID); err != nil || sale.Chart.Seats != 60_000 {
		t.Errorf("its sale: %v", err)
	}
}

func TestSearchPutsWhatIsOnSaleFirstAndFindsNothingUnlisted(t *testing.T) {
	s := setup(t)
	n := s.night()
	for _, e := range []struct {
		id, name, venue string
		start           time.Duration
		open            bool
	}{{"a", "Winter's Tale", "Old Court", 10 * time.Hour, false}, {"b", "Stadium Night", "Parkland", 30 * time.Hour, true},
		{"c", "Winter Sun", "The Cellar", 20 * time.Hour, false}, {"d", "Summer", "Wintergarden", -10 * time.Hour, false}} {
		n.ID, n.Name, n.Venue, n.Starts, n.Opens = e.id, e.name, e.venue, time.Now().Add(e.start), time.Now().Add(-99*time.Hour)
		s.create(t, n)
		if e.open {
			s.set(t, e.id, catalog.Open)
		}
	}
	n.ID, n.Name, n.Unlisted = "e", "Winter, a rehearsal", true
	s.create(t, n)
	for words, want := range map[string]string{"": "bacd", "winter": "acd", " CELLAR ": "c", "100%": "", "_": ""} {
		events, more, err := s.Search(t.Context(), words, 1)
		got := ""
		for _, e := range events {
			got += e.ID
		}
		if got != want || more || err != nil {
			t.Errorf("Search(%q) = %s, %v, %v; want %s", words, got, more, err, want)
		}
	}
	events, err := s.List(t.Context())
	if err != nil || len(events) != 5 || events[0].ID != "b" {
		t.Errorf("List = %v, %v", events, err)
	}
}
