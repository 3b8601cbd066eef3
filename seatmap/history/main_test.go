package history_test

import (
	"testing"

	"seatcast/internal/devstack/devtest"
)

func TestMain(m *testing.M) { devtest.Main(m) }
