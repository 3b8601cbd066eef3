package checkout_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"seatcast/checkout"
	"seatcast/checkout/stripe/stripetest"
)

// sequence is the events Stripe documents for one course of a payment.
type sequence struct {
	card    string
	kinds   []string
	happens func(*stripetest.Intent) // at Stripe, before the first event arrives
	gone    bool                     // the seat
	taken   bool                     // the money is, before anything happens
	booking string
	attempt string
}

func authorised(i *stripetest.Intent) {
	i.Status, i.Charge, i.Error = "requires_capture", "ch_"+i.ID, ""
}

func canceled(why string) func(*stripetest.Intent) {
	return func(i *stripetest.Intent) { i.Status, i.CancellationReason = "canceled", why }
}

var sequences = map[string]sequence{
	"authorised and captured": {card: stripetest.CardAsks, happens: authorised, booking: "sold", attempt: "captured",
		kinds: []string{"payment_intent.created", "payment_intent.requires_action", "payment_intent.amount_capturable_updated", "charge.succeeded",
			"charge.captured", "payment_intent.succeeded"}},
	"declined": {card: stripetest.CardDeclined, booking: "held", attempt: "failed",
		kinds: []string{"payment_intent.created", "charge.failed", "payment_intent.payment_failed"}},
	"declined, and then authorised": {card: stripetest.CardDeclined, happens: authorised, booking: "sold", attempt: "captured",
		kinds: []string{"payment_intent.created", "charge.failed", "payment_intent.payment_failed", "payment_intent.amount_capturable_updated", "charge.succeeded",
			"charge.captured", "payment_intent.succeeded"}},
	"abandoned": {card: stripetest.CardAsks, happens: canceled("abandoned"), booking: "held", attempt: "voided",
		kinds: []string{"payment_intent.created", "payment_intent.requires_action", "payment_intent.canceled"}},
	"voided": {card: stripetest.CardAsks, happens: authorised, gone: true, booking: "lost", attempt: "voided",
		kinds: []string{"payment_intent.created", "payment_intent.requires_action", "payment_intent.amount_capturable_updated", "charge.succeeded",
			"payment_intent.canceled"}},
	"lapsed": {card: stripetest.CardVisa, happens: canceled("automatic"), booking: "lost", attempt: "capture_refused",
		kinds: []string{"payment_intent.created", "payment_intent.amount_capturable_updated", "charge.succeeded", "charge.expired", "payment_intent.canceled"}},
	"refunded at Stripe": {card: stripetest.CardVisa, taken: true, happens: func(i *stripetest.Intent) { i.Refunded = i.Amount },
		kinds: []string{"charge.refunded", "refund.created", "refund.updated", "charge.refund.updated"}},
}

// arrivals are the ways in which the events of a sequence may arrive: each is a
// list of which, and an event comes again with its id, or another that tells of
// the same change.
func arrivals(events int) map[string][]arrival {
	all := map[string][]arrival{}
	for n := range events {
		all["in order"] = append(all["in order"], arrival{n: n})
		all["two of each"] = append(all["two of each"], arrival{n: n}, arrival{n: n, other: true})
		for k := range events {
			dropped, twice := fmt.Sprintf("without %d", k), fmt.Sprintf("%d twice", k)
			if n != k {
				all[dropped] = append(all[dropped], arrival{n: n})
			} else {
				all[twice] = append(all[twice], arrival{n: n})
			}
			all[twice] = append(all[twice], arrival{n: n})
		}
	}
	all["in reverse"] = slices.Clone(all["in order"])
	slices.Reverse(all["in reverse"])
	return all
}

type arrival struct {
	n     int
	other bool // under another id
}

func TestStripesDocumentedSequencesEndAlikeHoweverTheyArrive(t *testing.T) {
	for name, q := range sequences {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := stripeHouse(t, asking(200*time.Millisecond))
			if q.taken {
				b.run(b.desk.Run)
			}
			type replay struct{ way, booking, attempt string }
			var replays []replay
			for way, events := range arrivals(len(q.kinds)) {
				seat := len(replays)
				user := fmt.Sprint("user", seat)
				r := replay{way: way, booking: b.hold(user, []int{seat}, 0)}
				begun := b.pay(r.booking, user, q.card)
				if begun.Status != http.StatusCreated {
					t.Fatalf("payment: %+v", begun)
				}
				r.attempt = begun.Attempt.ID
				replays = append(replays, r)
				if q.taken {
					b.attemptBecomes(r.booking, "captured")
				}
				if q.gone {
					b.exec(`UPDATE seats SET status = 'unavailable', off_sale = true WHERE i = $1`, seat)
				}
				if q.happens != nil {
					b.change(r.attempt, q.happens)
				}
				for _, a := range events {
					b.hears(fmt.Sprintf("evt_%d_%d_%v", seat, a.n, a.other), q.kinds[a.n], r.attempt)
				}
			}
			if !q.taken {
				b.run(b.desk.Run)
			}
			for _, r := range replays {
				if q.booking == "" {
					if got := ask[int64](b.house, `SELECT refunded FROM attempts WHERE id = $1`, r.attempt); got != 1000 {
						t.Errorf("%s: %d are known to be refunded", r.way, got)
					}
					continue
				}
				b.becomes(r.booking, q.booking)
				b.attemptBecomes(r.booking, q.attempt)
			}
			if q.card == stripetest.CardVisa {
				if unknown := ask[int](b.house, `SELECT count(*) FROM attempts WHERE capture_before IS NULL`); unknown > 0 {
					t.Errorf("of %d it is not known when they lapse", unknown)
				}
			}
			if q.booking != "" {
				if got, sold := b.balanced(), q.booking == string(checkout.BookingSold); sold && got.Tickets != len(replays) || !sold && got.Tickets != 0 {
					t.Errorf("%d tickets of %d bookings", got.Tickets, len(replays))
				}
			}
		})
	}
}
