package main

import (
	"net/http"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"seatcast/catalog"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
)

// keyed is a call of an operator with an Idempotency-Key.
func (o office) keyed(key, path string, b body) answer {
	o.t.Helper()
	return o.do(http.MethodPost, "/v1/admin/events/"+o.event+path, key, b)
}

// forgotten is as if what operators' keys were answered were a day old.
func (h *house) forgotten() {
	h.t.Helper()
	if _, err := h.pool.Exec(h.t.Context(), `UPDATE admin_keys SET at = at - interval '25 h'`); err != nil {
		h.t.Fatal(err)
	}
}

func replayed(a answer) bool { return a.header.Get("Idempotent-Replayed") == "true" }

func TestOfOperatorsWhoSendACallTwiceOneIsHeardAtWhateverNode(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{mode: catalog.Ordinary})
	nodes := []office{h.office(h.node()), h.office(h.node())}
	ask := body{"ticketIds": h.seats(4), "for": "2h", "reason": "press"}
	var came [8]answer
	var calls errgroup.Group
	for n := range came {
		calls.Go(func() error {
			for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
				if came[n] = nodes[n%2].keyed("once", "/hold", ask); came[n].Code != "idempotency_in_flight" || devtest.Late(begun, 20*time.Second) {
					return nil
				}
			}
		})
	}
	if err := calls.Wait(); err != nil {
		t.Fatal(err)
	}
	first := 0
	for _, a := range came {
		a.want(t, http.StatusCreated, "")
		if string(a.raw) != string(came[0].raw) {
			t.Errorf("one is told %s, another %s", came[0].raw, a.raw)
		}
		if !replayed(a) {
			first++
		}
	}
	if first != 1 {
		t.Errorf("%d calls were carried out", first)
	}
	nodes[0].keyed("once", "/kill", ask).want(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
	if n := h.count(t.Context(), `SELECT count(*) FROM admin_outcomes WHERE replayed AND status = 201`); n != len(came)-1 {
		t.Errorf("%d replays are written down", n)
	}
}

// What a node did that died is found done by the repeat, once it is known that
// nobody is at it any more.
func TestACallOfAnOperatorWhoseNodeDiesIsFinishedByItsRepeat(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{mode: catalog.Ordinary})
	o, seats := h.office(h.node()), h.seats(4)
	o.call(http.MethodPost, "/kill", body{"ticketIds": seats[:1], "reason": "a pillar"}).want(t, http.StatusOK, "")
	for _, tt := range []struct {
		seam, path string
		ask        body
		status     int
	}{
		{"die before restore", "/release", body{"ticketIds": seats[:1]}, http.StatusOK},
		{"die before publish", "/hold", body{"ticketIds": seats[2:], "for": "2h", "reason": "press"}, http.StatusOK}, // its own, made before
	} {
		doomed := h.fated(tt.seam, onlyAPI)
		if a := h.office(doomed).keyed(tt.path, tt.path, tt.ask); a.status != 0 {
			t.Errorf("%s: a node that died answered %d", tt.path, a.status)
		}
		doomed.diedBySignal(t)
		if a := o.keyed(tt.path, tt.path, tt.ask).want(t, http.StatusConflict, "idempotency_in_flight"); a.header.Get("Retry-After") != "5" {
			t.Errorf("%s: to be sent again after %q", tt.path, a.header.Get("Retry-After"))
		}
		var again answer
		eventually(t, 40*time.Second, "the repeat is carried out", func() bool {
			again = o.keyed(tt.path, tt.path, tt.ask)
			return again.Code != "idempotency_in_flight"
		})
		again.want(t, tt.status, "")
		if replayed(again) {
			t.Errorf("%s: what was never answered is replayed: %s", tt.path, again.raw)
		}
		if third := o.keyed(tt.path, tt.path, tt.ask); !replayed(third) || string(third.raw) != string(again.raw) {
			t.Errorf("%s: told %s, and then %s", tt.path, again.raw, third.raw)
		}
	}
	o.shows(0, seatmap.Available)
	o.shows(2, seatmap.Held)
	if n := h.count(t.Context(), `SELECT count(*) FROM bookings WHERE event_id = $1`, h.event); n != 1 {
		t.Errorf("%d bookings were made", n)
	}
}
