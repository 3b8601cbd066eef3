package peers

import (
	"context"
	"os"
	"strings"
	"testing"
)

func TestAHouseThatIsInterruptedLeavesNoFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := InHouse(ctx, HouseOptions{Program: "/bin/true"}, func(*House, string) error {
		t.Error("it is used all the same")
		return nil
	})
	if err == nil || !strings.HasPrefix(err.Error(), "interrupted") {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}
