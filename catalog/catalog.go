// Package catalog keeps what is for sale: charts, events and their prices.
//
// A chart is immutable and named by the SHA-256 of its bytes: storing it twice
// is storing it once. Creating an event copies the chart's seats into the
// table that checkout sells from, in the same transaction, so an event is
// there whole or not at all.
//
// The store is also the Sales every other part asks on each request. It
// remembers an event for at most a second and asks Postgres once however many
// wait; while Postgres does not answer, the last answer stands, so that holds
// go on. An event is bookable when its state is open and Postgres' clock has
// reached its opening time; an answer is never remembered across that moment.
package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"seatcast/seatmap"
)

// Mode says how an event's map reaches those who watch it.
type Mode string

// The two modes: pushed, or polled.
const (
	Hot      Mode = "hot"
	Ordinary Mode = "ordinary"
)

// State is the organiser's switch. An open event takes bookings from its
// opening time on.
type State string

// The states. An event begins closed. From cancelled no way leads back; checkout
// leads there, since it is more than a switch.
const (
	Closed    State = "closed"
	Open      State = "open"
	Cancelled State = "cancelled"
)

// Event is one date at one venue.
type Event struct {
	ID       string
	Name     string
	Venue    string
	Zone     string    // IANA name of the venue's time zone
	Starts   time.Time // in Zone
	Opens    time.Time // in Zone; when bookings begin
	ChartSHA string
	Mode     Mode
	Guarded  bool // its map is shown only to who has a session or a ticket
	Queue    bool // it has a waiting room
	Orphans  seatmap.OrphanRule
	State    State
	OnSale   bool // bookings were taken at the moment of the answer
	NoHolds  bool // they were taken without holds, because Redis was away
	Currency string
	Prices   map[string]int64 // category → minor units
	Fees     []seatmap.Fee    // beside the prices, in the order in which they are shown
	Terms    seatmap.Terms
}

// NewEvent is what an event is made from.
type NewEvent struct {
	ID       string // empty: made from the name
	Name     string
	Venue    string
	Zone     string
	Starts   time.Time
	Opens    time.Time
	ChartSHA string // of a chart that PutChart stored
	Mode     Mode
	Guarded  bool
	Orphans  seatmap.OrphanRule // empty: warn
	Currency string
	Prices   map[string]int64
	Fees     []seatmap.Fee
	Terms    seatmap.Terms // a zero field takes its value from DefaultTerms
	Unlisted bool          // no search finds it
}

// DefaultTerms are what an event grants when nothing else is said.
var DefaultTerms = seatmap.Terms{
	Hold:            8 * time.Minute,
	Pay:             5 * time.Minute,
	Cap:             20 * time.Minute,
	Grace:           30 * time.Second,
	SeatsPerBooking: 10,
	SeatsPerUser:    10,
	HoldsPerUser:    4,
	HoldsPerHour:    20,
	CoolDown:        30 * time.Second,
}

// Outcomes of the store. An unknown event is seatmap.ErrNoEvent, everything
// wrong with a chart or a new event is seatmap.Faults, a Postgres that does not
// answer seatmap.ErrUnavailable.
var (
	ErrNoChart     = errors.New("catalog: no such chart")
	ErrEventExists = errors.New("catalog: an event of that id exists") // nothing was created
	ErrCancelled   = errors.New("catalog: the event is cancelled")     // nothing changed
)

// reserved are words that stand where an event's id stands in a path.
var reserved = []string{"search"}

// validID says whether an event may have this id: 1 to 63 of a-z, 0-9 and -, of which
// - is not the first. By hand, since every request of a rush names one.
func validID(id string) bool {
	if id == "" || len(id) > 63 || id[0] == '-' || slices.Contains(reserved, id) {
		return false
	}
	for i := range len(id) {
		if c := id[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// withDefaults fills what was left out.
func (n NewEvent) withDefaults() NewEvent {
	if n.Mode == "" {
		n.Mode = Ordinary
	}
	n.Orphans = cmp.Or(n.Orphans, seatmap.OrphansWarn)
	t, d := &n.Terms, DefaultTerms
	for _, f := range []struct {
		set *time.Duration
		to  time.Duration
	}{{&t.Hold, d.Hold}, {&t.Pay, d.Pay}, {&t.Grace, d.Grace}, {&t.CoolDown, d.CoolDown}} {
		if *f.set == 0 {
			*f.set = f.to
		}
	}
	if t.Cap == 0 {
		t.Cap = max(d.Cap, t.Hold+t.Pay)
	}
	if t.SeatsPerBooking == 0 {
		t.SeatsPerBooking = d.SeatsPerBooking
	}
	if t.SeatsPerUser == 0 {
		t.SeatsPerUser = max(d.SeatsPerUser, t.SeatsPerBooking)
	}
	t.HoldsPerUser = cmp.Or(t.HoldsPerUser, d.HoldsPerUser)
	t.HoldsPerHour = cmp.Or(t.HoldsPerHour, d.HoldsPerHour)
	return n
}

// faults tells everything that is wrong with a new event on that chart.
func (n NewEvent) faults(chart *seatmap.Chart) seatmap.Faults {
	var fs seatmap.Faults
	if n.ID != "" && !validID(n.ID) {
		fs.Add("id", "%q: an id is up to 63 lower-case letters, digits and dashes, beginning with a letter or digit, and not %s",
			n.ID, strings.Join(reserved, ", "))
	}
	for _, f := range []struct{ path, text string }{{"name", n.Name}, {"venue", n.Venue}} {
		if text := strings.TrimSpace(f.text); text == "" || len(text) > 200 {
			fs.Add(f.path, "it is empty or longer than 200 bytes")
		}
	}
	if _, err := loadZone(n.Zone); err != nil {
		fs.Add("zone", "%v", err)
	}
	if n.Mode != Hot && n.Mode != Ordinary {
		fs.Add("mode", "%q is neither %s nor %s", n.Mode, Hot, Ordinary)
	}
	if !slices.Contains([]seatmap.OrphanRule{seatmap.OrphansAllow, seatmap.OrphansWarn, seatmap.OrphansRefuse}, n.Orphans) {
		fs.Add("orphans", "%q is none of %s, %s and %s", n.Orphans, seatmap.OrphansAllow, seatmap.OrphansWarn, seatmap.OrphansRefuse)
	}
	if _, known := seatmap.Decimals(n.Currency); !known {
		fs.Add("currency", "%q is no ISO 4217 code, such as EUR", n.Currency)
	}
	fs = append(fs, n.faultsOfTimes()...)
	fs = append(fs, faultsOfTerms(n.Terms)...)
	fs = append(fs, faultsOfFees(n.Fees)...)
	return append(fs, faultsOfPrices(n.Prices, chart)...)
}

func (n NewEvent) faultsOfTimes() (fs seatmap.Faults) {
	switch {
	case n.Starts.IsZero():
		fs.Add("starts", "it is missing")
	case n.Opens.IsZero():
		fs.Add("opens", "it is missing")
	case n.Opens.After(n.Starts):
		fs.Add("opens", "the sale would open at %s, after the event starts at %s",
			n.Opens.Format(time.RFC3339), n.Starts.Format(time.RFC3339))
	}
	return fs
}

func faultsOfTerms(t seatmap.Terms) (fs seatmap.Faults) {
	for _, f := range []struct {
		path string
		d    time.Duration
	}{{"hold", t.Hold}, {"pay", t.Pay}, {"cap", t.Cap}, {"grace", t.Grace}, {"coolDown", t.CoolDown}} {
		if f.d < time.Millisecond || f.d > 24*time.Hour {
			fs.Add(f.path, "%v is not between a millisecond and a day", f.d)
		}
	}
	if t.Cap < t.Hold {
		fs.Add("cap", "%v is shorter than the hold of %v", t.Cap, t.Hold)
	}
	if t.SeatsPerCard < 0 || t.SeatsPerCard > math.MaxInt32 {
		fs.Add("seatsPerCard", "%d is not between 0, for no limit, and %d", t.SeatsPerCard, math.MaxInt32)
	}
	for _, f := range []struct {
		path string
		n    int
	}{{"seatsPerBooking", t.SeatsPerBooking}, {"seatsPerUser", t.SeatsPerUser}, {"holdsPerUser", t.HoldsPerUser}, {"holdsPerHour", t.HoldsPerHour}} {
		if f.n < 1 || f.n > math.MaxInt32 {
			fs.Add(f.path, "%d is not between 1 and %d", f.n, math.MaxInt32)
		}
	}
	return fs
}

// faultsOfPrices wants a price for every category that has something to sell
// and none for what the chart does not know.
func faultsOfPrices(prices map[string]int64, chart *seatmap.Chart) (fs seatmap.Faults) {
	known := map[string]bool{}
	for _, c := range chart.Categories {
		known[c.Name] = true
		if _, ok := prices[c.Name]; !ok {
			fs.Add("prices", "category %q of the chart has none", c.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(prices)) {
		if !known[name] {
			fs.Add("prices", "the chart has no category %q", name)
		}
		if amount := prices[name]; amount < 0 || amount > maxAmount {
			fs.Add("prices", "%d for %q is not between 0 and %d", amount, name, int64(maxAmount))
		}
	}
	return fs
}

// numbered returns the n-th id to try for a base: base, base-2, base-3 …
func numbered(base string, n int) string {
	if n == 1 {
		return base
	}
	suffix := fmt.Sprintf("-%d", n)
	return base[:min(len(base), 63-len(suffix))] + suffix
}
