// Package contention measures what it costs to tell many buyers that a seat is
// gone: the three attempts everybody describes first, beside seatcast, and
// beside a handler that asks nobody (see package front).
//
// # A round
//
// One strategy's server is started fresh. All server processes, the stores
// included, share the first core we may use; the buyers, goroutines of this
// process, use the others. Then, on the same server:
//
//   - nobody asks for anything, for a second;
//   - a bystander takes quiet seats at a fixed rate, alone;
//   - the storm: every buyer asks for one of the hot seats at random, and again
//     as soon as she is answered; the bystander goes on. This is what the
//     figures are of;
//   - bare and seatcast only: the storm once more, with requests at fixed
//     moments, half as many as bare answered in a closed loop, the bystander
//     beside them.
//
// Each but the first runs for a hold and half a second before it is measured, so
// that rows change hands from the beginning. Holds end by themselves.
//
// # What is counted
//
//   - CPU: of all processes that serve, over the refusals. What the holds and
//     the bystander cost is in it; nothing is subtracted.
//   - sold twice: from what buyers were told, and nothing else. A hold that was
//     answered while another buyer's of the same seat was not over is one.
//   - false refusals: refusals of a seat that, by what all buyers were told,
//     nobody had or was about to be given at any moment of the request, in the
//     storm and in the one at a fixed rate. The oldest is by how long the last
//     hold of its seat was over when it was sent. What
//     seatcast itself finds by comparing some of its refusals with Redis is
//     printed beside it; it compares later, and by then a hold may be over.
//   - calls of Redis: INFO commandstats, what scripts call included, less what
//     Redis is asked for in silence and what holds cost.
//
// Rounds of all strategies make a pair, every other one in reverse. Rows are
// medians over pairs, but for seats sold twice and false refusals: those are
// the worst pair's. Ratios are taken within pairs.
package contention
