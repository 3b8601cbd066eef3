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
//     shared by everybody. What a connection does not take at once is the rest
//     of such bytes, and is finished before anything else.
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
// # Steps
//
// A session is a machine with one step, which never waits: it writes what is
// due and can be written now, and says when it is due next. A snapshot that
// must be fetched is asked for, and who asked is roused when it is there. Two
// engines call the step:
//
//   - Parked, on Linux, for HTTP/1.1 over plain TCP, while Run runs: as many
//     shards as Go has processors, each a goroutine that writes its sessions
//     one after the other without waiting for any, and an epoll instance that
//     tells who can be written again and who has gone. A frame is told to the
//     shards, not to the sessions; each walks its part of the topic. An SSE
//     session's descriptor leaves Go's poller and costs no goroutine and no
//     buffer; a WebSocket keeps a goroutine that only reads, since reading,
//     pongs and the close handshake are the library's.
//   - Portable, for TLS, HTTP/2 and every other system: a goroutine for each
//     SSE session (its handler's), two for each WebSocket, and writes that
//     block until they have a deadline.
//
// The way of a frame:
//
//	Publish ─▶ room: ring, members
//	             │ tell                  walk                 send
//	             ├─▶ group (of a shard) ──────▶ cursor, step ──────▶ descriptor
//	             └─▶ solo (portable)    ──────▶ step         ──────▶ ResponseWriter
//
// # Clock
//
// Beats, ages, deadlines and patience are measured by the clock of package
// time, which testing/synctest replaces. Numbers are the publisher's; the hub
// only compares them.
//
// # Locks
//
//	Hub.mu     -> room.mu   registry of sessions and rooms, and who may come in
//	room.mu    -> flight.mu ring, members
//	room.mu    -> shard.mu  what a shard is told and has not looked at
//	flight.mu  -> nothing   the cached snapshot, and who waits for a newer one
//	session.mu -> nothing   what the client asked for
//	wire.mu    -> nothing   a WebSocket's bytes: ours, and the library's pongs
//
// The Source is asked with no lock held, and no lock but the last is held while
// writing to a connection: that one is only of the connection's own.
package hub
