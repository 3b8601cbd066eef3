package checkout_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
	"seatcast/seatmap"
)

// news is the body of a message.
type news struct {
	Type      string
	Timestamp time.Time
	Data      struct {
		Event, BookingID, User, State, Reason string
		Lost                                  []string
		Seats                                 any // those of a booking, or how many of an event
		Areas                                 []seatmap.QuotedArea
		Total                                 seatmap.Money
		Tickets                               []checkout.Ticket
		Refunded                              *seatmap.Money
		Refund                                json.RawMessage // of a booking; or whether a cancelled event is refunded
	}
}

// listen adds a webhook that is told of everything, or of some types.
func (h *house) listen(types ...string) {
	h.t.Helper()
	h.exec(`INSERT INTO webhooks (id, url, types) VALUES ('wh_' || gen_random_uuid(), 'https://example.com', $1)`, types)
}

// announced returns the messages of an event, the oldest first, each with a job that sends it.
func (h *house) announced() (all []news) {
	h.t.Helper()
	rows, err := h.pool.Query(h.t.Context(), `SELECT body, (SELECT count(*) FROM webhook_deliveries d
			JOIN river_job j ON j.kind = 'webhook' AND j.args @> jsonb_build_object('delivery', d.id) WHERE d.message_id = m.id)
		FROM webhook_messages m WHERE event_id = $1 ORDER BY at, id`, event)
	must(h.t, err)
	defer rows.Close()
	for rows.Next() {
		var (
			body string
			jobs int
			n    news
		)
		must(h.t, rows.Scan(&body, &jobs))
		must(h.t, json.Unmarshal([]byte(body), &n))
		if jobs != 1 {
			h.t.Errorf("%d jobs send %s", jobs, body)
		}
		all = append(all, n)
	}
	must(h.t, rows.Err())
	return all
}

func TestASaleAndALossAreAnnouncedAsTheyAreShown(t *testing.T) {
	h := setup(t)
	h.listen()
	ann, bob := h.hold("ann", []int{3, 4}, 2), h.hold("bob", []int{4, 5}, 0)
	if r := h.pay(ann, "ann", sandbox.CardApprove); r.Status != http.StatusCreated {
		t.Fatalf("%+v", r)
	}
	h.pay(bob, "bob", sandbox.CardApprove)
	all := h.announced()
	if len(all) != 2 {
		t.Fatalf("told are %+v", all)
	}
	sold, lost := all[0], all[1]
	shown := h.get(ann, "ann")
	if d := sold.Data; sold.Type != "booking.sold" || time.Since(sold.Timestamp) > time.Minute || d.Event != event || d.BookingID != ann || d.User != "ann" ||
		d.State != "sold" || d.Total != (seatmap.Money{Amount: 3000, Currency: "EUR"}) || len(d.Seats.([]any)) != 2 || d.Areas[0].Quantity != 2 ||
		len(d.Tickets) != 4 || d.Tickets[0].ID != shown.Tickets[0].ID || d.Tickets[0].TicketID != "A-3" || d.Tickets[0].Status != "pending" {
		t.Errorf("the sale is told as %+v", sold)
	}
	if d := lost.Data; lost.Type != "booking.lost" || d.BookingID != bob || d.Reason != "seats_gone" || len(d.Lost) != 1 || d.Lost[0] != "A-4" || len(d.Tickets) != 0 {
		t.Errorf("the loss is told as %+v", lost)
	}
}

func TestASaleThatIsTakenBackIsAnnouncedAsLost(t *testing.T) {
	h := setup(t)
	h.listen("booking.lost")
	h.run(h.desk.Run)
	id := h.hold("ann", []int{3}, 0)
	h.pay(id, "ann", sandbox.CardRefused)
	h.becomes(id, "lost")
	if all := h.announced(); len(all) != 1 || all[0].Data.Reason != "capture_refused" || all[0].Data.Tickets[0].Status != "void" {
		t.Errorf("told are %+v", all)
	}
}

func TestWhatNobodyWantsToKnowIsNotWrittenDown(t *testing.T) {
	h := setup(t)
	h.exec(`INSERT INTO webhooks (id, url, events) VALUES ('wh_1', 'https://example.com', '{circus}')`)
	h.listen("event.sold_out")
	if r := h.pay(h.hold("ann", []int{3}, 0), "ann", sandbox.CardApprove); r.Status != http.StatusCreated {
		t.Fatalf("%+v", r)
	}
	if n := ask[int](h, `SELECT count(*) FROM webhook_messages`); n != 0 {
		t.Errorf("%d messages", n)
	}
}

// nearlySoldOut leaves these seats of the house for sale, and no place.
func (h *house) nearlySoldOut(left ...int) {
	h.t.Helper()
	h.exec(`UPDATE areas SET capacity = sold`)
	var others []int
	for i := range 40 {
		if !slices.Contains(left, i) {
			others = append(others, i)
		}
	}
	_, err := h.desk.Close(h.t.Context(), event, kill(others...))
	must(h.t, err)
}

func TestSoldOutIsSaidOnceWhoeverBuysTheLastSeatsAtOnce(t *testing.T) {
	h := setup(t)
	h.listen("event.sold_out")
	left := []int{0, 1, 2, 3, 4, 5, 6, 7}
	h.nearlySoldOut(left...)
	var buyers errgroup.Group
	for _, seat := range left {
		id, user := h.hold(fmt.Sprint("user", seat), []int{seat}, 0), fmt.Sprint("user", seat)
		buyers.Go(func() error {
			var r reply
			return h.try(http.MethodPost, "/bookings/"+id+"/payment", user, map[string]string{"paymentMethod": sandbox.CardApprove}, &r)
		})
	}
	must(t, buyers.Wait())
	all := h.announced()
	if len(all) != 1 || all[0].Type != "event.sold_out" || all[0].Data.Event != event {
		t.Fatalf("told are %+v", all)
	}
	if body := ask[string](h, `SELECT body::jsonb ->> 'data' FROM webhook_messages`); body != `{"event": "opera", "seats": {"sold": 8, "unavailable": 32}, "places": {"sold": 0}}` {
		t.Error(body)
	}
}

func TestAnEventWhoseSeatsComeBackMaySellOutAgain(t *testing.T) {
	h := setup(t)
	h.listen("event.sold_out")
	h.nearlySoldOut(0, 1)
	said := func(want int, when string) {
		t.Helper()
		if all := h.announced(); len(all) != want {
			t.Fatalf("%s it was said %d times, not %d", when, len(all), want)
		}
	}
	h.pay(h.hold("ann", []int{0}, 0), "ann", sandbox.CardApprove)
	said(0, "with a seat left")
	_, err := h.desk.Close(t.Context(), event, kill(1))
	must(t, err)
	said(1, "when the last one is killed")
	must(t, h.desk.Mirror(t.Context(), event))
	said(1, "looked at again")
	_, err = h.desk.Reopen(t.Context(), event, []int{1})
	must(t, err)
	id := h.hold("bob", []int{1}, 0)
	h.pay(id, "bob", sandbox.CardRefused)
	said(2, "when it was released and sold")
	h.run(h.desk.Run)
	h.becomes(id, "lost")
	h.eventually(func() (string, bool) { return "still sold out", ask[int](h, `SELECT count(*) FROM sold_out`) == 0 })
}

func TestAnEventWithNothingForSaleThatHasSoldNothingIsNotSoldOut(t *testing.T) {
	h := setup(t)
	h.listen()
	h.nearlySoldOut()
	if all := h.announced(); len(all) != 0 {
		t.Errorf("told are %+v", all)
	}
}

func TestThatAnEventIsSoldOutIsSaidWhileRedisIsAway(t *testing.T) {
	h := setup(t)
	h.listen("event.sold_out")
	h.nearlySoldOut(1)
	h.goWithout()
	h.pay(idOf(h.book("ann", 1)), "ann", sandbox.CardApprove)
	if all := h.announced(); len(all) != 1 {
		t.Errorf("told are %+v", all)
	}
}

// members are the paths of all members of a JSON value, of a list those of any.
func members(v any, at string, into map[string]bool) map[string]bool {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			into[at+"."+name] = true
			members(member, at+"."+name, into)
		}
	case []any:
		for _, one := range v {
			members(one, at+"[]", into)
		}
	}
	return into
}

func TestTheExamplesOfTheDocumentationAreWhatIsSent(t *testing.T) {
	doc, err := os.ReadFile("../docs/webhooks.md")
	must(t, err)
	documented := map[string]map[string]bool{}
	for _, block := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(string(doc), -1) {
		var example map[string]any
		must(t, json.Unmarshal([]byte(block[1]), &example))
		documented[example["type"].(string)] = members(example, "", map[string]bool{})
	}
	h := setup(t)
	h.listen()
	h.run(h.desk.Run)
	ann, tickets := h.sells("ann", sandbox.CardApprove, []int{3}, 1)
	h.pay(h.hold("bob", []int{3}, 0), "bob", sandbox.CardApprove)
	h.refundBecomes(h.refund(ann, back(checkout.SeatsOnSale, tickets[1].ID)).ID, checkout.RefundSucceeded)
	h.nearlySoldOut(3)
	sent := map[string]map[string]bool{}
	rows, err := h.pool.Query(t.Context(), `SELECT type, body FROM webhook_messages`)
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var kind, text string
		var body any
		must(t, rows.Scan(&kind, &text))
		must(t, json.Unmarshal([]byte(text), &body))
		sent[kind] = members(body, "", map[string]bool{})
	}
	must(t, rows.Err())
	for _, kind := range []string{"booking.sold", "booking.lost", "booking.refunded", "event.sold_out"} {
		if !maps.Equal(sent[kind], documented[kind]) {
			t.Errorf("of %s\n%v is sent, and\n%v documented", kind, slices.Sorted(maps.Keys(sent[kind])), slices.Sorted(maps.Keys(documented[kind])))
		}
	}
}
