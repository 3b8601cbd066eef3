// Package hub is the connection tier: topics of numbered frames, and sessions
// that watch them over SSE or WebSocket.
//
// It knows the shape of state and nothing of its meaning: the frames of a
// topic are numbered, and a snapshot supersedes every frame up to its number.
// What a frame says, who may watch it and what its topic is called belong to
// whoever publishes. The outside is builtin types, so that neither imports the
// other.
//
// # Promises
//
//   - Publish never blocks and never waits for a reader.
//   - A slow session delays nobody: it has no queue, only a cursor into the
//     topic's ring of immutable, fully framed bytes, made once per frame and
//     shared by everybody.
//   - A cursor that falls off the ring is owed a snapshot, not a disconnect.
//     Falling off twice without catching up, or missing a write deadline,
//     closes the session with a named code (see close.go).
//   - A session never goes back in time: a snapshot older than what it has is
//     not sent but asked for again. Only a reset, said aloud, starts over.
//   - A session that resumes with a number the ring has merged gets exactly
//     the frames it misses, whichever node sent it that number; with any other
//     number it gets a snapshot.
//   - The id of every SSE event is the number the watcher holds once it has
//     read that event; 0 while it holds nothing. So whatever a browser sends
//     back as Last-Event-ID is true, wherever its stream was cut.
//
// # A session's states, by topic
//
//	         since in ring
//	join ───────────────────────▶ following ──fell off──▶ owed ──again──▶ closed (slow)
//	  │                            ▲   ▲  │                │
//	  └── any other ──▶ owed ──────┘   │  └────────────────┘ snapshot sent
//	                                   │
//	reset: at any time to owed, after the word "reset"
//
// # Clock
//
// Beats, ages, deadlines and patience are measured by the clock of package
// time, which testing/synctest replaces. Numbers are the publisher's; the hub
// only compares them.
//
// # Locks
//
//	Hub.mu     -> room.mu   registry of sessions and rooms
//	room.mu    -> flight.mu ring, members
//	flight.mu  -> nothing   the cached snapshot
//	session.mu -> nothing   what the reader of a socket asks of its writer
//
// No lock is held while writing to a connection or asking the Source.
//
// # Engine
//
// This is the portable engine: a goroutine for each SSE session (its
// handler's) with http.ResponseController, two for each WebSocket. It serves
// TLS, HTTP/2 and every system.
package hub
