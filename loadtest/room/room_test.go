package room

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"seatcast/internal/devstack/devtest"
)

func TestMain(m *testing.M) { devtest.Main(m) }

func TestPlacesThatAreLostAreToldAsThatAndNothingElse(t *testing.T) {
	b := &bench{rdb: devtest.Redis(t), crowd: &crowd{event: devtest.Event(t)}}
	if err := b.rdb.ZAdd(t.Context(), "q:{"+b.crowd.event+"}", redis.Z{Score: 1, Member: "ann"}, redis.Z{Score: 2, Member: "bob"}).Err(); err != nil {
		t.Fatal(err)
	}
	if err := b.kept(t.Context(), 2); err != nil {
		t.Errorf("none is lost: %v", err)
	}
	const want = "3 have joined, and 2 are in the line: places are lost"
	if err := b.kept(t.Context(), 3); err == nil || err.Error() != want {
		t.Errorf("one is lost: %v, want %s", err, want)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := b.kept(gone, 3); err == nil || strings.Contains(err.Error(), "lost") {
		t.Errorf("unless Redis answers: %v", err)
	}
}
