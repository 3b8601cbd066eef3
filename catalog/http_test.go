package catalog_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	"seatcast/catalog"
	"seatcast/seatmap"
	"seatcast/web"
)

// get calls the catalog over HTTP.
func (s *shop) get(t *testing.T, path string, header ...string) *http.Response {
	t.Helper()
	e := echo.New()
	e.HTTPErrorHandler = web.ErrorHandler(slog.New(slog.DiscardHandler))
	s.Mount(e.Group("/v1"))
	req := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	e.ServeHTTP(rec, req)
	return rec.Result()
}

func body(t *testing.T, r *http.Response) []byte {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// same compares JSON by meaning, so that a test can be read.
func same(t *testing.T, got []byte, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("%v in %s", err, want)
	}
	a, _ := json.Marshal(g)
	b, _ := json.Marshal(w)
	if !bytes.Equal(a, b) {
		t.Errorf("got\n%s\nwant\n%s", a, b)
	}
}

func TestAnEventTellsWhatItsPageNeeds(t *testing.T) {
	s := setup(t)
	n := s.night()
	n.Starts = time.Date(2099, 6, 1, 18, 0, 0, 0, time.UTC)
	n.Opens = time.Date(2020, 1, 1, 9, 0, 0, 0, time.UTC)
	e := s.create(t, n)
	s.set(t, e.ID, catalog.Open)

	r := s.get(t, "/v1/events/late-session")
	if r.StatusCode != http.StatusOK || r.Header.Get("Cache-Control") != "public, max-age=1" {
		t.Errorf("%d, Cache-Control %q", r.StatusCode, r.Header.Get("Cache-Control"))
	}
	same(t, body(t, r), `{
		"id": "late-session", "name": "Late Session", "venue": "The Cellar", "zone": "Europe/Paris",
		"startsAt": "2099-06-01T20:00:00+02:00", "opensAt": "2020-01-01T10:00:00+01:00",
		"chart": "`+s.sha+`", "mode": "hot", "guarded": false, "orphans": "warn", "state": "open", "open": true, "holds": true, "queue": false, "currency": "EUR", "decimals": 2,
		"prices": [{"category": "Front", "color": "#d1495b", "amount": 4000, "allIn": 4000}, {"category": "Seated", "color": "#edae49", "amount": 2500, "allIn": 2500},
			{"category": "Standing", "color": "#2e86ab", "amount": 1500, "allIn": 1500}], "fees": [],
		"areas": [{"area": "standing", "name": "Standing", "category": "Standing", "capacity": 40}],
		"holdSeconds": 480, "paySeconds": 300, "capSeconds": 1200, "seatsPerBooking": 10, "seatsPerUser": 10, "holdsPerUser": 4}`)
}

func TestAnEventTellsItsFeesAndEachPriceWithThem(t *testing.T) {
	s := setup(t)
	for currency, decimals := range map[string]int{"EUR": 2, "JPY": 0, "KWD": 3} {
		n := s.night()
		n.Currency = currency
		n.Fees = []seatmap.Fee{{Name: "Service", Per: seatmap.PerCent, Amount: 525}, {Name: "Facility", Per: seatmap.PerTicket, Amount: 250}, {Name: "Order", Per: seatmap.PerOrder, Amount: 150},
			{Name: "Nothing", Per: seatmap.PerTicket}, {Name: "No part", Per: seatmap.PerCent}}
		e := s.create(t, n)
		if !slices.Equal(e.Fees, n.Fees) {
			t.Errorf("its fees are %v", e.Fees)
		}
		var told struct {
			Decimals     int
			Prices, Fees json.RawMessage
		}
		if err := json.Unmarshal(body(t, s.get(t, "/v1/events/"+e.ID)), &told); err != nil || told.Decimals != decimals {
			t.Errorf("%s has %d decimals, %v", currency, told.Decimals, err)
		}
		same(t, told.Fees, `[{"name": "Service", "per": "percent", "basisPoints": 525}, {"name": "Facility", "per": "ticket", "amount": 250}, {"name": "Order", "per": "order", "amount": 150},
			{"name": "Nothing", "per": "ticket", "amount": 0}, {"name": "No part", "per": "percent", "basisPoints": 0}]`)
		same(t, told.Prices, `[{"category": "Front", "color": "#d1495b", "amount": 4000, "allIn": 4610}, {"category": "Seated", "color": "#edae49", "amount": 2500, "allIn": 3031},
			{"category": "Standing", "color": "#2e86ab", "amount": 1500, "allIn": 1979}]`)
		sale, err := s.Sale(t.Context(), e.ID)
		if err != nil || !slices.Equal(sale.Fees, n.Fees) {
			t.Errorf("its sale asks %v, %v", sale.Fees, err)
		}
	}
	n := s.night()
	n.Fees = []seatmap.Fee{{Name: "Service", Per: seatmap.PerCent, Amount: 10001}}
	if _, err := s.CreateEvent(t.Context(), n); !errors.As(err, new(seatmap.Faults)) {
		t.Errorf("a fee of more than the price: %v", err)
	}
}

func TestAGuardedMapIsSaidByItsEventAndItsSale(t *testing.T) {
	s := setup(t)
	n := s.night()
	n.Guarded = true
	e := s.create(t, n)
	sale, err := s.Sale(t.Context(), e.ID)
	if err != nil || !e.Guarded || !sale.Guarded {
		t.Errorf("the event says %v, its sale %v, %v", e.Guarded, sale.Guarded, err)
	}
	var told struct{ Guarded bool }
	if err := json.Unmarshal(body(t, s.get(t, "/v1/events/"+e.ID)), &told); err != nil || !told.Guarded {
		t.Errorf("it tells %+v, %v", told, err)
	}
}

func TestAnEventWithoutHoldsIsSaidByItsEventAndItsSale(t *testing.T) {
	s := setup(t)
	e := s.create(t, s.night())
	if _, err := s.db.Exec(t.Context(), `UPDATE events SET unheld_since = now() WHERE id = $1`, e.ID); err != nil {
		t.Fatal(err)
	}
	e, err := s.Get(t.Context(), e.ID)
	if err != nil || !e.NoHolds {
		t.Errorf("the event says %v, %v", e.NoHolds, err)
	}
	sale, err := s.Sale(t.Context(), e.ID)
	if err != nil || !sale.NoHolds {
		t.Errorf("its sale says %v, %v", sale.NoHolds, err)
	}
	told := struct{ Holds bool }{true}
	if err := json.Unmarshal(body(t, s.get(t, "/v1/events/"+e.ID)), &told); err != nil || told.Holds {
		t.Errorf("it tells %+v, %v", told, err)
	}
}

func TestSearchIsPaged(t *testing.T) {
	s := setup(t)
	n := s.night()
	for i := range catalog.PageSize + 1 {
		n.Name, n.Starts = fmt.Sprintf("Night %d", i), time.Now().Add(time.Duration(i+1)*time.Hour)
		s.create(t, n)
	}
	type page struct {
		Events []struct{ ID string }
		Next   *int
	}
	var first, second page
	if err := json.Unmarshal(body(t, s.get(t, "/v1/events/search?q=night")), &first); err != nil {
		t.Fatal(err)
	}
	if len(first.Events) != catalog.PageSize || first.Events[0].ID != "night-0" || first.Next == nil || *first.Next != 2 {
		t.Fatalf("page 1 has %d events and next %v", len(first.Events), first.Next)
	}
	if err := json.Unmarshal(body(t, s.get(t, "/v1/events/search?q=night&page=2")), &second); err != nil {
		t.Fatal(err)
	}
	if len(second.Events) != 1 || second.Events[0].ID != "night-50" || second.Next != nil {
		t.Errorf("page 2 is %+v", second)
	}
	same(t, body(t, s.get(t, "/v1/events/search?q=nothing")), `{"events": [], "next": null}`)
}

func TestAChartIsServedAsTheBytesOfItsName(t *testing.T) {
	s := setup(t)
	want, _, err := seatmap.Club().Encode()
	if err != nil {
		t.Fatal(err)
	}
	path := "/v1/charts/" + s.sha + ".json"

	plain := s.get(t, path)
	if !bytes.Equal(body(t, plain), want) || plain.Header.Get("Content-Encoding") != "" {
		t.Error("the bytes are not those that were stored")
	}
	if got := plain.Header.Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
		t.Errorf("Cache-Control is %q", got)
	}
	if got := plain.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type is %q", got)
	}

	zipped := s.get(t, path, "Accept-Encoding", "br;q=1.0, gzip;q=0.8, *;q=0.1")
	if zipped.Header.Get("Content-Encoding") != "gzip" || zipped.Header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("a client that reads gzip got %v", zipped.Header)
	}
	small := body(t, zipped)
	r, err := gzip.NewReader(bytes.NewReader(small))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) || len(small) >= len(want) {
		t.Errorf("unzipped %d bytes, %v; want %d", len(got), err, len(want))
	}
	if plain.Header.Get("ETag") == zipped.Header.Get("ETag") {
		t.Error("two encodings share one ETag")
	}
	if refused := s.get(t, path, "Accept-Encoding", "gzip;q=0, identity"); refused.Header.Get("Content-Encoding") != "" {
		t.Error("a client that refuses gzip got it")
	}
	for encoding, tag := range map[string]string{"identity": plain.Header.Get("ETag"), "gzip": zipped.Header.Get("ETag")} {
		r := s.get(t, path, "If-None-Match", tag, "Accept-Encoding", encoding)
		if r.StatusCode != http.StatusNotModified || len(body(t, r)) > 0 {
			t.Errorf("asked again with %s: %d", tag, r.StatusCode)
		}
	}
}

func TestRefusalsOfTheCatalogHaveTheirCode(t *testing.T) {
	s := setup(t)
	for path, want := range map[string]string{
		"/v1/events/nowhere":                                "404 unknown_event",
		"/v1/events/No.Such":                                "404 unknown_event",
		"/v1/charts/" + strings.Repeat("0", 64) + ".json":   "404 unknown_chart",
		"/v1/charts/" + s.sha:                               "404 unknown_chart",
		"/v1/charts/..%2f.json":                             "404 unknown_chart",
		"/v1/events/search?page=0":                          "400 bad_request",
		"/v1/events/search?page=x":                          "400 bad_request",
		"/v1/events/search?q=%00":                           "400 bad_request",
		"/v1/events/search?q=%ff":                           "400 bad_request",
		"/v1/events/search?q=" + strings.Repeat("long", 40): "400 bad_request",
	} {
		r := s.get(t, path)
		var p struct{ Code string }
		if err := json.Unmarshal(body(t, r), &p); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(r.StatusCode, " ", p.Code); got != want {
			t.Errorf("%s: %s; want %s", path, got, want)
		}
	}
}

func TestWithoutPostgresTheCatalogAsksToComeBack(t *testing.T) {
	nobody, err := pgxpool.New(t.Context(), "postgres://seatcast@127.0.0.1:1/seatcast")
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Close()
	s := &shop{Store: catalog.New(nobody)}
	r := s.get(t, "/v1/events/late-session")
	if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") != "1" {
		t.Errorf("%d, Retry-After %q: %s", r.StatusCode, r.Header.Get("Retry-After"), body(t, r))
	}
	if _, err := s.Sale(t.Context(), "late-session"); !errors.Is(err, seatmap.ErrUnavailable) {
		t.Errorf("who sells is told %v, want seatmap.ErrUnavailable", err)
	}
}

func TestTheOrphanRuleIsSaidByTheEventAndItsSale(t *testing.T) {
	s := setup(t)
	for given, want := range map[seatmap.OrphanRule]seatmap.OrphanRule{
		"": seatmap.OrphansWarn, seatmap.OrphansAllow: seatmap.OrphansAllow, seatmap.OrphansRefuse: seatmap.OrphansRefuse,
	} {
		n := s.night()
		n.Orphans = given
		e := s.create(t, n)
		sale, err := s.Sale(t.Context(), e.ID)
		if err != nil || e.Orphans != want || sale.Orphans != want {
			t.Errorf("%q: the event says %s, its sale %s, %v", given, e.Orphans, sale.Orphans, err)
		}
		var told struct{ Orphans seatmap.OrphanRule }
		if err := json.Unmarshal(body(t, s.get(t, "/v1/events/"+e.ID)), &told); err != nil || told.Orphans != want {
			t.Errorf("%q: it tells %+v, %v", given, told, err)
		}
	}
	n := s.night()
	n.Orphans = "sometimes"
	if _, err := s.CreateEvent(t.Context(), n); err == nil || !strings.Contains(err.Error(), "sometimes") {
		t.Errorf("a rule there is none of: %v", err)
	}
}
