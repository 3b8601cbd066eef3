// Package fanout measures what it costs to tell one change to everybody: a
// real seatcast hub beside other servers that do the same, each in turn, on the
// same machine and the same cores.
//
// # A round
//
// One server is started fresh, alone on the first core we may use. A reader (see
// package reader), which nothing of the server can slow down, opens the sessions
// from another core. Once the server's memory rests, changes are published, one
// a frame, at moments fixed before; three to warm up, then those that are
// measured. The figures of a round:
//
//   - CPU per delivery: time the server's processes were on the core from just
//     before the first measured change until the last delivery, over the frames
//     sessions have read. A frame that merged several changes counts once.
//     Nothing is subtracted for what a server does while idle. Loopback bills
//     what the kernel does for the receiver partly to the sender, for all alike.
//   - latency: from the moment a change was due, not sent: a server that is late
//     with one is late with those behind it too. For seatcast that includes a
//     booking over HTTP, Redis, NATS and the wait for the tick.
//   - memory: what the resident set grew by from before the first session until
//     all were on and it rested, over the sessions. Kernel memory is not in it.
//   - bytes: what sessions have read, over the frames.
//
// # Pairs
//
// A pair is a round of every server, one after the other; the next pair has
// them in reverse. A ratio is the median of the ratios within pairs, shown with
// the smallest and the largest. The figures of a row are medians over pairs.
//
// # What is checked
//
// Readers verify what they read; a change of seatcast's that is lost, told out
// of order or leads to another map than a poll shows fails the run.
package fanout
