package hub

import (
	"math/rand/v2"
	"strconv"
	"time"
)

// Code says why a session ended. Codes are an API: WebSocket clients read them
// as close codes, operators as the label of hub_closes_total. 4000-4099 mean
// "come back", 4400-4499 "not like this"; those of RFC 6455 say what is wrong
// below our protocol.
type Code int

// The ways a session ends.
const (
	CloseGone         Code = 0    // the client went away; never sent
	CloseBroken       Code = 1002 // the client broke the rules of WebSocket frames
	CloseTooBig       Code = 1009 // a message over the limit
	CloseDrain        Code = 4000 // this server is leaving
	CloseAge          Code = 4001 // the session reached its maximum age
	CloseSlow         Code = 4002 // fell behind twice, or a write missed its deadline
	CloseUnresponsive Code = 4003 // no answer to two pings
	CloseNoSnapshot   Code = 4004 // owed a snapshot and none could be had
	CloseEnded        Code = 4005 // the topic is no longer pushed
	CloseBadMessage   Code = 4400 // too many messages that make no sense
	CloseProtocol     Code = 4406 // the subprotocol seatcast.v1 was not offered
	CloseTooMany      Code = 4429 // asks faster than can be answered
)

// closing is a row of the table: does the client come back, and when.
type closing struct {
	name     string
	again    bool
	min, max time.Duration // how long it waits before it does, at random
}

var closings = map[Code]closing{
	CloseGone:         {name: "gone"},
	CloseBroken:       {name: "protocol_error"},
	CloseTooBig:       {name: "message_too_big"},
	CloseDrain:        {"drain", true, time.Second, 5 * time.Second},
	CloseAge:          {"age", true, 0, 2 * time.Second},
	CloseSlow:         {"slow", true, 2 * time.Second, 8 * time.Second},
	CloseUnresponsive: {"unresponsive", true, time.Second, 5 * time.Second},
	CloseNoSnapshot:   {"no_snapshot", true, 2 * time.Second, 8 * time.Second},
	CloseEnded:        {"ended", true, time.Second, 5 * time.Second},
	CloseBadMessage:   {name: "bad_message"},
	CloseProtocol:     {name: "subprotocol"},
	CloseTooMany:      {name: "too_many_asks"},
}

// socketOnly says that no stream can end so.
func (c Code) socketOnly() bool {
	switch c {
	case CloseBroken, CloseTooBig, CloseUnresponsive, CloseBadMessage, CloseProtocol, CloseTooMany:
		return true
	}
	return false
}

// String returns the code's name, as metrics and close reasons tell it.
func (c Code) String() string { return closings[c].name }

// Error makes a Code what ends a session's loop.
func (c Code) Error() string { return "hub: session closed: " + c.String() }

// Again reports whether a client so closed should come back.
func (c Code) Again() bool { return closings[c].again }

// retry draws how long this client waits before it comes back.
func (c Code) retry() time.Duration {
	row := closings[c]
	return between(row.min, row.max)
}

// reason is the text beside a WebSocket close code.
func (c Code) reason() string {
	if !c.Again() {
		return c.String()
	}
	return c.String() + " retry_ms=" + strconv.FormatInt(c.retry().Milliseconds(), 10)
}

// between draws a duration from [low, high].
func between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + rand.N(high-low+1)
}
