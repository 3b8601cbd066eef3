package devtest

import (
	"fmt"
	"testing"

	"seatcast/internal/devstack"
)

// Nginx is an nginx of this test alone, stopped when the test ends; http is
// what its configuration says inside http{}, and modules are those it loads.
func Nginx(tb testing.TB, http func(listen string) string, modules ...string) *devstack.Nginx {
	tb.Helper()
	n, err := home(tb).Nginx(tb.Context(), fmt.Sprintf("n%d", serial.Add(1)), http, modules...)
	must(tb, err)
	tb.Cleanup(func() {
		if err := n.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return n
}
