// Package reader is the client side of a measurement: one process with one
// thread and one epoll that keeps up to fifteen thousand sessions, reads all of
// them and never lets a server wait. It is a process of its own (Run), kept on
// a core the server does not have and driven over its standard input and output
// by whoever measures (Reader).
//
// # What it checks
//
// It reads as docs/protocol.md tells a reader to, and strictly. It parses the
// framing (HTTP, chunks, SSE events, WebSocket frames) and counts as a fault,
// with an example: what it cannot parse; an SSE id that is not the number of
// its data; a number that goes back without a reset; a delta that follows a
// number the session does not have (a change was lost); a delta before the
// snapshot. Every session carries its map: the snapshot it was given with every
// delta it was given replayed on it. Final tells which maps there are in the
// end and how many sessions have each.
//
// Servers that know no numbers (the peers) are sent deltas numbered one after
// the other, and the same holds but for the snapshot.
//
// # What it measures
//
// A Plan says which changes will be published and when each is due. A delivery
// is one change reaching one session for the first time; its latency is from
// the moment the change was due to the moment after the read that brought it,
// on the one monotonic-enough clock both processes share. A frame that merged
// several changes delivers all of them; Report.Frames counts frames.
//
// # Why it is fast enough
//
// All sessions are sent the same bytes. What was parsed once is recognised by
// comparing bytes, and the replay of a delta on a map is done once for all
// sessions that are at that map: states are immutable and shared.
package reader
