package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"seatcast/seatmap"
)

// hold books seats and returns the booking's id.
func (h *House) hold(ctx context.Context, tickets []string) (booking string, err error) {
	body, err := json.Marshal(struct {
		TicketIDs []string `json:"ticketIds"`
	}{tickets})
	if err != nil {
		return "", err
	}
	answer, err := h.do(ctx, http.MethodPost, h.api.addr, "/v1/bookings/"+Event, body)
	if err != nil {
		return "", err
	}
	var made struct {
		BookingID string `json:"bookingId"`
	}
	return made.BookingID, json.Unmarshal(answer, &made)
}

// giveBack ends a booking.
func (h *House) giveBack(ctx context.Context, booking string) error {
	_, err := h.do(ctx, http.MethodDelete, h.api.addr, "/v1/bookings/"+booking, nil)
	return err
}

// Map is the map as the node at addr would show it to a poll.
func (h *House) Map(ctx context.Context, addr string) (s seatmap.Snapshot, err error) {
	body, err := h.get(ctx, addr, "/v1/events/"+Event+"/seatmap")
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(body, &s)
}

// metric reads one number a node shows of itself; labels included in the name.
func (h *House) metric(ctx context.Context, addr, name string) (float64, error) {
	body, err := h.get(ctx, addr, "/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(body)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("there is no metric %s", name)
}

func (h *House) get(ctx context.Context, addr, path string) ([]byte, error) {
	return h.do(ctx, http.MethodGet, addr, path, nil)
}

func (h *House) do(ctx context.Context, method, addr, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestPatience)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, method, "http://"+addr+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if method != http.MethodGet {
		q.Header.Set("Authorization", "Bearer "+h.token)
		q.Header.Set("Content-Type", "application/json")
	}
	a, err := h.http.Do(q)
	if err != nil {
		return nil, err
	}
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %.300s", method, path, a.Status, text)
	}
	return text, err
}
