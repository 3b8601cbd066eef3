// Package proc starts the processes of a measurement, keeps each on the cores
// it may use, and reads from /proc what they have used.
//
// A child never outlives us: it is stopped in good order by Stop, and on Linux
// the kernel kills it should we die without having called that. It is in a
// process group of its own, so that Ctrl-C at the terminal reaches us alone.
//
// What a server uses is counted over its whole tree: the process and all
// descendants, so a server that forks workers is counted fully.
package proc
