package onsale

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
	"seatcast/loadtest/report"
)

// Result is what came of a sale, as --json has it.
type Result struct {
	Verdict string   `json:"verdict"` // green or red
	Wrong   []string `json:"contradictions"`

	Users   int   `json:"users"`
	Seats   int   `json:"seats"`
	Sold    int   `json:"sold"` // seats
	Left    int   `json:"left"`
	Tickets int   `json:"tickets"` // live
	Money   int64 `json:"money"`   // taken, minor units

	Bookings map[string]int `json:"bookings"`  // that shoppers began to pay, by state
	Lost     int            `json:"lost"`      // of these, to somebody else
	Refused  int            `json:"refused"`   // sold, and then the money was not given
	Payments map[string]int `json:"payments"`  // of the sandbox, by state
	Voided   int            `json:"voided"`    // authorisations given back
	Refunded int64          `json:"refunded"`  // minor units
	Cards    map[string]int `json:"cards"`     // payments asked for, by card
	Story    map[string]int `json:"story"`     // what shoppers lived through
	Again    map[string]int `json:"sentAgain"` // requests, by why
	Kills    int            `json:"kills"`
	Steps    []Step         `json:"steps"`
	Took     float64        `json:"took_s"`      // until the last shopper had gone
	LastSold float64        `json:"last_sold_s"` // until the last seat was sold
}

// mostWrong is how many contradictions are told.
const mostWrong = 50

func (r *Result) wrong(format string, a ...any) {
	if len(r.Wrong) < mostWrong {
		r.Wrong = append(r.Wrong, fmt.Sprintf(format, a...))
	}
}

// judge compares what shoppers are told with the sandbox's ledger and the books.
func (r *Result) judge(ledger map[string]sandbox.Account, said []booking) {
	r.Bookings, r.Payments = map[string]int{}, map[string]int{}
	seats := map[string]string{} // who has a valid ticket of it
	told := map[string]bool{}    // attempts somebody knows of
	tickets := 0
	for _, b := range said {
		r.Bookings[b.State]++
		switch {
		case b.Reason == checkout.ReasonCaptureRefused:
			r.Refused++
		case b.State == "lost":
			r.Lost++
		}
		var taken, cost int64
		for _, a := range b.Attempts {
			told[a.ID] = true
			taken += ledger[a.ID].Taken()
		}
		for _, t := range b.Tickets {
			if t.Status != "valid" {
				continue
			}
			tickets++
			cost += t.AllIn
			if other, twice := seats[t.TicketID]; twice {
				r.wrong("seat %s is in %s and in %s", t.TicketID, other, b.BookingID)
			}
			seats[t.TicketID] = b.BookingID
		}
		if taken != cost {
			r.wrong("booking %s, which is %s: %d was taken for tickets of %d", b.BookingID, b.State, taken, cost)
		}
		if b.State == "sold" && !b.valid() {
			r.wrong("booking %s is sold, and not all of its tickets are valid", b.BookingID)
		}
	}
	var taken int64
	for key, a := range ledger {
		r.Payments[string(a.State)]++
		r.Refunded += a.Refunded
		taken += a.Taken()
		if a.Taken() > 0 && !told[key] {
			r.wrong("attempt %s took %d of somebody who is not told of it", key, a.Taken())
		}
		if a.State == checkout.PaymentAuthorized || a.State == checkout.PaymentProcessing {
			r.wrong("attempt %s is %s at the sandbox, and nobody ends it", key, a.State)
		}
	}
	r.Voided = r.Payments[string(checkout.PaymentVoided)]
	if taken != r.Money {
		r.wrong("the sandbox took %d, and the books say %d", taken, r.Money)
	}
	if tickets != r.Tickets || r.Sold != r.Tickets {
		r.wrong("%d seats are sold, there are %d live tickets, and shoppers have %d valid ones", r.Sold, r.Tickets, tickets)
	}
}

func (r *Result) print(w io.Writer) {
	report.Say(w, "\n%d shoppers, %d seats: %d sold, %d left; the last one %.0f s after the first shopper came, who was followed for %.0f s\n",
		r.Users, r.Seats, r.Sold, r.Left, r.LastSold, r.Took)
	report.Say(w, "lost to somebody else: %d bookings; refused after the sale: %d; authorisations given back: %d; given back of what was taken: %d\n",
		r.Lost, r.Refused, r.Voided, r.Refunded)
	if r.Kills > 0 {
		report.Say(w, "nodes killed: %d\n", r.Kills)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	list := func(title string, of map[string]int) {
		report.Say(table, "\n%s\n", title)
		for _, name := range slices.Sorted(maps.Keys(of)) {
			report.Say(table, "  %s\t%d\n", name, of[name])
		}
	}
	list("what shoppers lived through", r.Story)
	list("bookings in the end", r.Bookings)
	list("payments at the sandbox", r.Payments)
	list("payments by card", r.does())
	if len(r.Again) > 0 {
		list("requests sent again", r.Again)
	}
	report.Say(table, "\nstep\tcount\tp50 ms\tp99 ms\tmax ms\n")
	for _, s := range r.Steps {
		report.Say(table, "%s\t%d\t%.1f\t%.1f\t%.1f\n", s.Step, s.Count, s.P50, s.P99, s.Max)
	}
	_ = table.Flush() // a terminal that has gone has nobody to be told
	for _, wrong := range r.Wrong {
		report.Say(w, "\nWRONG: %s", wrong)
	}
	report.Say(w, "\n%s\n", r.Verdict)
}

// does are the payments by what their card does.
func (r *Result) does() map[string]int {
	all := map[string]int{}
	for _, c := range sandbox.Cards {
		if n := r.Cards[c.Number]; n > 0 {
			all[c.Number+" "+c.Does] = n
		}
	}
	return all
}
