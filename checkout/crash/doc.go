// Package crash has only tests: those that kill a desk which sells from the real
// gate, before and after every step of a sale, and see what another one makes of it.
package crash
