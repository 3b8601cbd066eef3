package peers

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"seatcast/seatmap"
)

func TestAPeerThatIsNotInstalledIsSaidToBeMissing(t *testing.T) {
	empty := t.TempDir()
	for _, name := range []string{"PATH", "GOBIN", "GOPATH", "HOME"} {
		t.Setenv(name, empty)
	}
	_, err := Start(context.Background(), "centrifugo", Setup{Dir: empty})
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "go install") {
		t.Errorf("centrifugo: %v", err)
	}
	defer func(all []string) { nchanModules = all }(nchanModules)
	nchanModules = nil
	_, err = Start(context.Background(), "nchan", Setup{Dir: empty})
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "nginx") {
		t.Errorf("nchan: %v", err)
	}
}

func TestEveryChangeOfAPlanIsDifferentAndOfOneSize(t *testing.T) {
	c, err := NewChanges(seatmap.Theatre(), 5)
	if err != nil {
		t.Fatal(err)
	}
	m := seatmap.NewMap(c.seats.Seats)
	for i := range 4 * len(c.blocks) {
		var d seatmap.Delta
		if err := json.Unmarshal(c.Delta(i), &d); err != nil {
			t.Fatal(err)
		}
		before := string(m)
		step := seatmap.Change{Reserved: d.Reserved, Released: d.Released}
		step.Apply(m)
		if string(m) == before || len(d.Reserved)+len(d.Released) != 5 || d.Prev != d.N-1 {
			t.Fatalf("change %d: %+v", i, d)
		}
	}
	if string(m) != string(seatmap.NewMap(c.seats.Seats)) {
		t.Error("not every seat was given back")
	}
}

func TestAHouseThatIsTooSmallIsAnError(t *testing.T) {
	if _, err := NewChanges(seatmap.Club(), 1000); err == nil {
		t.Error("a club has 1,000 seats")
	}
}

func TestRedisCommandsAreRead(t *testing.T) {
	got := commands("# Commandstats\r\ncmdstat_get:calls=12,usec=3\r\ncmdstat_info:calls=1,usec=3\r\ncmdstat_client|setinfo:calls=2,usec=1\r\n")
	if len(got) != 1 || got["get"] != 12 {
		t.Errorf("%v", got)
	}
}
