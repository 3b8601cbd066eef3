package web_test

import (
	"os"
	"testing"

	"seatcast/internal/browsertest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	browsertest.Stop()
	os.Exit(code)
}
