package front

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"seatcast/internal/devstack"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
)

func TestMain(m *testing.M) { devtest.Main(m) }

var key = []byte("0123456789abcdef0123456789abcdef")

// open opens a keeper on real servers, for a hall of 100 seats of which 10 are hot.
func open(t *testing.T, strategy string, hold time.Duration, change func(*Options)) (keeper, Options) {
	t.Helper()
	o := Options{Strategy: strategy, Event: "e", Key: key, Seats: 100, Hot: 10, Hold: hold, Pool: 8, Transaction: "simple"}
	switch strategy {
	case "naive", "postgres":
		o.Postgres = devtest.PostgresURL(t)
	case "redis":
		o.Redis = devtest.RedisServer(t, devstack.RedisOptions{}).URL()
	}
	if change != nil {
		change(&o)
	}
	k, err := keepers[strategy](t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.close)
	return k, o
}

// ask asks a front for a seat.
func ask(t *testing.T, h http.Handler, token, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/bookings/e", strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func mint(t *testing.T, user string) string {
	t.Helper()
	token, err := Mint(key, user, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// attempts are all ways a front holds a seat.
var attempts = map[string]func(*Options){
	"naive": nil, "postgres": nil, "redis": nil,
	"postgres realistic": func(o *Options) { o.Transaction, o.RoundTrips = "realistic", 2 },
	"postgres locked":    func(o *Options) { o.Transaction, o.RoundTrips = "locked", 2 },
}

func TestOneAfterTheOtherEveryAttemptKeepsASeatForItsBuyer(t *testing.T) {
	for name, change := range attempts {
		t.Run(name, func(t *testing.T) {
			strategy, _, _ := strings.Cut(name, " ")
			k, _ := open(t, strategy, 150*time.Millisecond, change)
			seat := Tickets(Hall(100))[3]
			asked := time.Now()
			until, ok, err := k.take(t.Context(), "ann", seat)
			if err != nil || !ok || until.Before(asked.Add(100*time.Millisecond)) {
				t.Fatalf("ann: %v, %v, %v", until, ok, err)
			}
			if _, ok, err := k.take(t.Context(), "bob", seat); ok || err != nil {
				t.Errorf("bob: %v, %v", ok, err)
			}
			for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
				_, ok, err = k.take(t.Context(), "bob", seat)
				if err != nil || ok || time.Now().After(end) {
					break
				}
			}
			if err != nil || !ok {
				t.Errorf("bob, once it is over: %v, %v", ok, err)
			}
		})
	}
}

func TestOnlyNaiveSellsASeatTwice(t *testing.T) {
	const buyers = 8
	for name, change := range attempts {
		t.Run(name, func(t *testing.T) {
			strategy, _, _ := strings.Cut(name, " ")
			k, _ := open(t, strategy, time.Minute, change)
			if n, ok := k.(naive); ok {
				var all sync.WaitGroup // everybody has looked before anybody writes
				all.Add(buyers)
				n.between = func() { all.Done(); all.Wait() }
				k = n
			}
			var (
				g    sync.WaitGroup
				mu   sync.Mutex
				held int
			)
			for range buyers {
				g.Go(func() {
					_, ok, err := k.take(t.Context(), "somebody", Tickets(Hall(100))[0])
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					if ok {
						held++
					}
				})
			}
			g.Wait()
			want := 1
			if strategy == "naive" {
				want = buyers
			}
			if held != want {
				t.Errorf("%d of %d hold the seat, want %d", held, buyers, want)
			}
		})
	}
}

func TestAFrontAnswersAsSeatcastDoes(t *testing.T) {
	k, o := open(t, "bare", time.Minute, nil)
	h := newServer(o, k)
	token := mint(t, "ann")
	no := ask(t, h, token, `{"ticketIds":["hall1-1-1"]}`)
	const refused = `{"type":"about:blank","title":"Conflict","status":409,"code":"seats_taken","detail":"somebody has these seats; nothing was taken","seats":["hall1-1-1"]}` + "\n"
	if no.Code != http.StatusConflict || no.Body.String() != refused || no.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %q %q", no.Code, no.Header().Get("Content-Type"), no.Body)
	}
	yes := ask(t, h, token, `{"ticketIds":["hall1-2-50"]}`)
	var b seatmap.Booking
	if err := json.Unmarshal(yes.Body.Bytes(), &b); err != nil || yes.Code != http.StatusCreated || b.ExpiresAt == nil || len(b.Seats) != 1 || b.Seats[0].I != 99 {
		t.Errorf("%d %q: %v", yes.Code, yes.Body, err)
	}
}

func TestAFrontRefusesWhoIsNobodyAndWhatMakesNoSense(t *testing.T) {
	k, o := open(t, "bare", time.Minute, nil)
	h, token := newServer(o, k), mint(t, "ann")
	late, err := Mint(key, "ann", -time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	const one = `{"ticketIds":["hall1-1-1"]}`
	for _, c := range []struct {
		token, body string
		want        int
	}{
		{"", one, 401}, {"x", one, 401}, {late, one, 401}, {token, one, 409}, {token, one, 409}, {token, `{`, 400}, {token, one + "1", 400},
		{token, `{"seat":1}`, 400}, {token, `{"ticketIds":[]}`, 422}, {token, `{"ticketIds":["nowhere"]}`, 422},
	} {
		if w := ask(t, h, c.token, c.body); w.Code != c.want {
			t.Errorf("token %.10q, body %s: %d %s, want %d", c.token, c.body, w.Code, w.Body, c.want)
		}
	}
}

func TestAHallIsAChartWithoutFaults(t *testing.T) {
	for _, seats := range []int{2, 50, 51, 1000, 1001, 20_000} {
		c := Hall(seats)
		if faults, _ := c.Validate(); len(faults) > 0 || len(Tickets(c)) != seats || Tickets(c)[seats-1] == "" {
			t.Errorf("%d seats: %v", seats, faults)
		}
	}
}
