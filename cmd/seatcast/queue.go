package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/holds"
	"seatcast/hub"
	"seatcast/seatmap"
	"seatcast/waitingroom"
)

// rooms are the waiting rooms, which every process knows: one that takes bookings
// judges passes, and calls; a worker freezes, draws and opens.
func (b *builder) rooms(sales seatmap.Sales, store *holds.Store) (*waitingroom.Rooms, error) {
	keys, err := waitingroom.ParseKeys(b.cfg.PassKey, b.cfg.ServerKey)
	if err != nil {
		return nil, fmt.Errorf("%sPASS_KEY: %w", envPrefix, err)
	}
	return waitingroom.New(waitingroom.Options{
		Line: waitingroom.NewLine(b.st.rdb), Store: waitingroom.NewStore(b.st.pool), Keys: keys, Seats: seatsLeft{sales, store}, Log: b.log,
		Wait: b.cfg.QueueWait, Calls: b.cfg.has("api"), Tends: b.cfg.has("worker"),
	}), nil
}

// buildRooms has people wait before events that want it, and told through the hub
// if there is one here.
func (b *builder) buildRooms(a *app, v1, admin *echo.Group, rooms *waitingroom.Rooms) {
	calls := waitingroom.NewAPI(rooms)
	var watchers waitingroom.Broadcaster
	if a.hub != nil {
		watchers = a.hub
		calls.Watched(a.hub)
	}
	if b.cfg.has("api") || b.cfg.has("hub") {
		calls.MountPublic(v1)
	}
	if b.cfg.has("api") {
		calls.Limited(waitingroom.Limits{PerAccount: b.cfg.QueuePerAccount, PerAddress: b.cfg.QueuePerAddress, Suspect: b.cfg.QueueSuspect}, b.reg)
		calls.Mount(v1)
		calls.MountAdmin(admin)
	}
	a.runners = append(a.runners, func(ctx context.Context) error { return rooms.Run(ctx, watchers) })
}

func (c Config) checkQueue(fs *faults) {
	for _, k := range []struct {
		knob  string
		value int
	}{{"QUEUE_PER_ACCOUNT", c.QueuePerAccount}, {"QUEUE_PER_ADDRESS", c.QueuePerAddress}} {
		if k.value < -1 || k.value == 0 {
			fs.add(k.knob, "%d lets nobody in: -1 is no limit", k.value)
		}
	}
	if c.QueueSuspect < -1 || c.QueueSuspect >= 0 && c.QueueSuspect < leastSuspect {
		fs.add("QUEUE_SUSPECT", "%d is less than %d, which a person with several devices may come to: -1 is never", c.QueueSuspect, leastSuspect)
	}
	if c.QueueWait < time.Second {
		fs.add("QUEUE_WAIT", "%v is less than a second: everybody would take it", c.QueueWait)
	}
}

// leastSuspect is far over what pages of one account come to in a minute.
const leastSuspect = 600

// seatsLeft counts the seats of the map everybody sees.
type seatsLeft struct {
	sales seatmap.Sales
	store *holds.Store
}

// Left implements waitingroom.Seats.
func (s seatsLeft) Left(ctx context.Context, event string) (free, held int64, err error) {
	sale, err := s.sales.Sale(ctx, event)
	if err != nil {
		return 0, 0, err
	}
	m, areas, err := s.store.Shown(ctx, event)
	if err != nil {
		return 0, 0, err
	}
	if m == nil { // cold: whoever asks next makes it anew
		if err := s.store.Lapse(ctx, event); err != nil {
			return 0, 0, err
		}
		if m, areas, err = s.store.Shown(ctx, event); err != nil {
			return 0, 0, err
		}
	}
	if m == nil {
		return 0, 0, fmt.Errorf("seats of %s: %w: they are not known yet", event, seatmap.ErrUnavailable)
	}
	sale.Chart.Each(func(_ *seatmap.Section, _ *seatmap.Row, seat *seatmap.Seat) {
		switch m.At(seat.I) {
		case seatmap.Available:
			free++
		case seatmap.Held:
			held++
		}
	})
	for _, left := range areas {
		free += int64(left)
	}
	return free, held, nil
}

// topics are what can be watched: maps, and beside them the lines.
type topics struct {
	hub.Source // of maps
	lines      hub.Source
}

func (t topics) of(topic string) hub.Source {
	if strings.HasPrefix(topic, waitingroom.Topic("")) {
		return t.lines
	}
	return t.Source
}

// Snapshot implements hub.Source.
func (t topics) Snapshot(ctx context.Context, topic string) (n int64, data []byte, err error) {
	return t.of(topic).Snapshot(ctx, topic)
}

// Hello implements hub.Source.
func (t topics) Hello(ctx context.Context, topic string) ([]byte, error) {
	return t.of(topic).Hello(ctx, topic)
}

// Poll implements hub.Source.
func (t topics) Poll(topic string) (path string) { return t.of(topic).Poll(topic) }
