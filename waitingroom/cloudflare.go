package waitingroom

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// cloudflare is what native apps know from Cloudflare's waiting room: the object
// cfWaitingRoom of its JSON responses, with all its fields.
type cloudflare struct {
	InWaitingRoom                bool   `json:"inWaitingRoom"`
	WaitTimeKnown                bool   `json:"waitTimeKnown"`
	WaitTime                     int    `json:"waitTime"` // minutes
	WaitTimeHours                int    `json:"waitTimeHours"`
	WaitTime25Percentile         int    `json:"waitTime25Percentile"`
	WaitTime50Percentile         int    `json:"waitTime50Percentile"`
	WaitTime75Percentile         int    `json:"waitTime75Percentile"`
	WaitTimeFormatted            string `json:"waitTimeFormatted"`
	QueueIsFull                  bool   `json:"queueIsFull"`
	QueueAll                     bool   `json:"queueAll"`
	LastUpdated                  string `json:"lastUpdated"`
	RefreshIntervalSeconds       int    `json:"refreshIntervalSeconds"`
	QueueingMethod               string `json:"queueingMethod"`
	IsFIFOQueue                  bool   `json:"isFIFOQueue"`
	IsRandomQueue                bool   `json:"isRandomQueue"`
	IsPassthroughQueue           bool   `json:"isPassthroughQueue"`
	IsRejectQueue                bool   `json:"isRejectQueue"`
	IsEventActive                bool   `json:"isEventActive"`
	IsEventPrequeueing           bool   `json:"isEventPrequeueing"`
	TimeUntilEventStart          int    `json:"timeUntilEventStart"` // minutes
	TimeUntilEventStartFormatted string `json:"timeUntilEventStartFormatted"`
	TimeUntilEventEnd            int    `json:"timeUntilEventEnd"`
	TimeUntilEventEndFormatted   string `json:"timeUntilEventEndFormatted"`
	ShuffleAtEventStart          bool   `json:"shuffleAtEventStart"`
	Turnstile                    string `json:"turnstile"`
	InfiniteQueue                bool   `json:"infiniteQueue"`
}

// refresh is how often such a client asks: what it is told is that of the last
// time it was to ask, however often it does.
const refresh = 20 * time.Second

const unavailable = "unavailable"

// cloudflare says in those words what somebody has.
func (h *Held) cloudflare(s shown, now time.Time) *cloudflare {
	c := &cloudflare{InWaitingRoom: h.Until.IsZero(), WaitTimeFormatted: unavailable, QueueAll: s.State == Draw || s.State == Closed || s.State == Paused,
		LastUpdated: h.updated(now).UTC().Format(time.RFC3339), RefreshIntervalSeconds: int(refresh.Seconds()),
		QueueingMethod: "fifo", IsFIFOQueue: true, TimeUntilEventStartFormatted: unavailable, TimeUntilEventEndFormatted: unavailable,
		ShuffleAtEventStart: h.Room.HasDraw(), Turnstile: "off", IsEventActive: s.State == Open || s.State == Paused, IsEventPrequeueing: s.State == Draw || s.State == Closed}
	if s.State == Over {
		c.QueueingMethod, c.IsFIFOQueue, c.IsRejectQueue, c.RefreshIntervalSeconds = "reject", false, true, 0
	}
	if c.IsEventPrequeueing {
		c.TimeUntilEventStart = minutesOf(h.Room.Opens.Sub(now))
		c.TimeUntilEventStartFormatted = inWords(c.TimeUntilEventStart)
	}
	if calls := h.Number - s.Serving; h.Number > 0 && s.Eta != nil && s.Eta.Slow > 0 && c.InWaitingRoom {
		wait := func(perMinute int) int { return int(math.Ceil(float64(max(0, calls)) / float64(perMinute))) }
		c.WaitTimeKnown, c.WaitTime = true, wait(s.Eta.Slow)
		c.WaitTime25Percentile, c.WaitTime75Percentile = wait(s.Eta.Fast), c.WaitTime
		c.WaitTime50Percentile = (c.WaitTime25Percentile + c.WaitTime75Percentile) / 2
		c.WaitTimeHours, c.WaitTimeFormatted = c.WaitTime/60, inWords(c.WaitTime)
		c.QueueIsFull = c.WaitTime > 24*60
	}
	return c
}

// updated is the last time this holder was to ask, the same on every node: each
// has a beat of their own.
func (h *Held) updated(now time.Time) time.Time {
	beat := time.Duration(binary.BigEndian.Uint64(h.Ticket.ID[:]) % uint64(refresh))
	return now.Add(-beat).Truncate(refresh).Add(beat)
}

func minutesOf(d time.Duration) int { return max(0, int(math.Ceil(d.Minutes()))) }

func inWords(minutes int) string {
	count := func(n int, what string) string {
		if n == 1 {
			return "1 " + what
		}
		return fmt.Sprintf("%d %ss", n, what)
	}
	if minutes < 60 {
		return count(minutes, "minute")
	}
	if minutes%60 == 0 {
		return count(minutes/60, "hour")
	}
	return count(minutes/60, "hour") + " " + count(minutes%60, "minute")
}
