package main

import (
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/hub"
)

// At lower ages sessions do little but come back, and in smaller messages no
// topic can be asked for.
const (
	minHubAge     = time.Minute
	minHubMessage = 256
)

func (c Config) checkHub(fs *faults) {
	if c.HubSessions < -1 {
		fs.add("HUB_SESSIONS", "%d is below nought: -1 is no limit", c.HubSessions)
	}
	for _, k := range []struct {
		knob  string
		value int
	}{{"HUB_RATE", c.HubRate}, {"HUB_PER_ADDRESS", c.HubPerAddress}, {"HUB_MESSAGES", c.HubMessages}} {
		if k.value < -1 || k.value == 0 {
			fs.add(k.knob, "%d lets nobody in: -1 is no limit", k.value)
		}
	}
	if c.HubTopics < 1 {
		fs.add("HUB_TOPICS", "%d is less than one", c.HubTopics)
	}
	if c.HubMessageSize < minHubMessage {
		fs.add("HUB_MESSAGE_SIZE", "%d is less than %d", c.HubMessageSize, minHubMessage)
	}
	if c.HubMaxAge < minHubAge {
		fs.add("HUB_MAX_AGE", "%v is less than %v: everybody would come back all the time", c.HubMaxAge, minHubAge)
	}
	if c.HubEngine != "auto" && c.HubEngine != "portable" {
		fs.add("HUB_ENGINE", "%q is none of auto, portable", c.HubEngine)
	}
}

// How much the heap grows, in per cent, before it is collected, in a process that is
// only a hub and in one that takes bookings and is none.
const hubGC, otherGC = 40, 400

// collects sets how often memory is collected, unless GOGC says otherwise. The heap
// of a hub is sessions, which stay, and what opening them left behind; it allocates so
// little besides that collecting more often costs nothing, and a session a third less.
// That of one that takes bookings is charts and what requests leave behind, which in a rush is much:
// it is collected a quarter as often as Go does by itself, for up to two and a half times
// the memory.
func (c Config) collects() {
	switch {
	case os.Getenv("GOGC") != "":
	case slices.Equal(c.Roles, []string{"hub"}):
		debug.SetGCPercent(hubGC)
	case c.has("api") && !c.has("hub"):
		debug.SetGCPercent(otherGC)
	}
}

// hubLimits are the configured limits, and where a request comes from as the
// access log tells it.
func (c Config) hubLimits(from echo.IPExtractor, log *slog.Logger) hub.Limits {
	return hub.Limits{
		Sessions: c.hubSessions(log), PerAddress: c.HubPerAddress, Rate: c.HubRate,
		Topics: c.HubTopics, Messages: c.HubMessages, MessageSize: c.HubMessageSize,
		Address: from,
	}
}

// maxSessions is the most that fit by themselves: a node should not be the one
// place where everybody is when it fails.
const maxSessions = 50_000

// hubSessions is how many sessions this process holds at most, and says so in
// the log. Go itself has raised the soft limit of descriptors to the
// hard one (less one).
func (c Config) hubSessions(log *slog.Logger) int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		log.Warn("limit of open files not read", "err", err)
		files.Cur = maxSessions
	}
	fit := sessionsIn(files.Cur)
	n := c.HubSessions
	if n == 0 {
		n = fit
	}
	log.Info("sessions are limited", "sessions", n, "descriptors", files.Cur, "fit", fit)
	if n < 0 || n > fit {
		log.Warn("more sessions are allowed than file descriptors are left for: raise the limit of open files, or lower "+envPrefix+"HUB_SESSIONS",
			"sessions", n, "descriptors", files.Cur, "fit", fit)
	}
	return n
}

// sessionsIn is how many sessions fit beside what else needs descriptors:
// stores, listeners, and requests, of which there are more where there are more
// sessions.
func sessionsIn(descriptors uint64) int {
	reserve := min(descriptors/2, 256+descriptors/10)
	return int(min(descriptors-reserve, maxSessions))
}
