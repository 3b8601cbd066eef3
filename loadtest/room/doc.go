// Package room measures what a waiting room costs: to join it, to be in it, to be
// told the one number everybody is told, and to learn a drawn place.
//
// Redis and one `seatcast serve` with every role share the first core we may use;
// the fans, who are this process, use the others. Fans ask over connections that
// are kept alive, each as fast as it is answered. Postgres is with the servers and
// not counted: nobody waits for it to join.
//
// # A round
//
// Everybody joins a room that is open and lets in one person a second, in the
// order of arrival, in three parts; after each nobody asks for anything for a
// while, and nobody watches: that is what a tick costs with so many waiting. Then
// redis-benchmark adds as many members to a sorted set of the same Redis, with ZADD
// NX, one at a time on each of as many connections. Every other round it comes
// first.
//
// # Ten o'clock
//
// Everybody joins a draw. Its list is frozen, drawn, and published. Then everybody
// learns their place twice: from the shard their ticket is on, which is asked for
// once, as by a cache before the server; and by sending their receipt again, as the
// page does.
//
// # What is an error
//
// A place that two have, a place between the first and the last that nobody has, a
// rank that is another one in the draw than in the line, and an answer that is no
// place. Then the program ends with an error.
package room
