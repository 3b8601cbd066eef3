package reader

import (
	"fmt"
	"os"
	"testing"
)

// TestMain makes this binary a reader's process when it is called as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "reader" {
		if err := Run(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// A process built with -race sleeps a second before it ends, unless told otherwise.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(m.Run())
}
