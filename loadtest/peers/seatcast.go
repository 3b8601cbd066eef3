package peers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seatcast/loadtest/proc"
	"seatcast/loadtest/reader"
	"seatcast/seatmap"
)

// Hub is a node of ours with the role hub.
type Hub struct {
	house   *House
	node    *node
	ws      bool
	changes Changes
	tickets map[int]string
	booking string // of the last change, when that was a hold
}

// drainFor is the window of a hub that leaves.
const drainFor = "SEATCAST_DRAIN=10s"

func startSeatcast(ctx context.Context, s Setup) (Server, error) {
	return s.House.StartHub(ctx, s, "hub")
}

// StartHub starts a hub; name tells several apart.
func (h *House) StartHub(ctx context.Context, s Setup, name string) (*Hub, error) {
	node, err := h.serve(ctx, name, "hub", s.Dir, s.On, drainFor)
	if err != nil {
		return nil, err
	}
	hub := &Hub{house: h, node: node, ws: s.WS, changes: s.Changes, tickets: s.Changes.tickets()}
	err = answers(ctx, node.child, func(ctx context.Context) error { _, err := h.Map(ctx, node.addr); return err })
	if err != nil {
		return nil, err
	}
	return hub, nil
}

// Target is the event's live map.
func (h *Hub) Target() reader.Target {
	t := reader.Target{Addr: h.node.addr, Path: "/v1/events/" + Event + "/live", WS: h.ws, Numbered: true, Ready: reader.Snapshot}
	if h.ws {
		t.Path, t.Subprotocol = "/v1/ws", "seatcast.v1"
		t.Say = fmt.Sprintf(`{"sub":%q}`, seatmap.Topic(Event))
		t.SaySince = fmt.Sprintf(`{"sub":%q,"since":%%d}`, seatmap.Topic(Event))
	}
	return t
}

// Pid is the hub's process alone.
func (h *Hub) Pid() int { return h.node.child.Pid() }

// N is 0: numbers are Redis's.
func (h *Hub) N(int) int64 { return 0 }

// Note is empty: what the reader should know is in the package's contract.
func (h *Hub) Note() string { return "" }

// Publish books seats, or gives back those booked last.
func (h *Hub) Publish(ctx context.Context, i int) (err error) {
	seats, released := h.changes.At(i)
	if released {
		booking := h.booking
		h.booking = ""
		return h.house.giveBack(ctx, booking)
	}
	tickets := make([]string, len(seats))
	for k, seat := range seats {
		tickets[k] = h.tickets[seat]
	}
	h.booking, err = h.house.hold(ctx, tickets)
	return err
}

// Map is the map as the hub shows it to a poll.
func (h *Hub) Map(ctx context.Context) (seatmap.Snapshot, error) {
	return h.house.Map(ctx, h.node.addr)
}

// Goroutines is how many the hub has.
func (h *Hub) Goroutines(ctx context.Context) (float64, error) {
	return h.house.metric(ctx, h.node.addr, "go_goroutines")
}

// Process is the hub's process, for those who end it in their own way.
func (h *Hub) Process() *proc.Child { return h.node.child }

// Stop gives back what is booked and ends the hub at once: nobody watches who
// should be sent elsewhere.
func (h *Hub) Stop() (err error) {
	if h.booking != "" {
		ctx, cancel := context.WithTimeout(context.Background(), requestPatience)
		defer cancel()
		err = h.house.giveBack(ctx, h.booking)
		h.booking = ""
	}
	h.house.http.CloseIdleConnections()
	return errors.Join(err, h.node.child.Stop(patience+10*time.Second))
}
