package waitingroom_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// opened is when rooms that are said have opened: a room cannot be told another time later.
var opened = time.Now().Add(-time.Minute)

// room is what an operator says of a room, with some more.
func room(more string) string {
	return fmt.Sprintf(`{"rate":600,"cap":100,"sessionSeconds":300,"joinsAt":%q,"opensAt":%q%s}`,
		opened.Add(-time.Hour).Format(time.RFC3339), opened.Format(time.RFC3339), more)
}

func TestAnOperatorSaysWhatIsSlow(t *testing.T) {
	b := newBox(t)
	for _, c := range []struct {
		said, kept string
		status     int
	}{
		{``, `{"holdMs":1000,"checkoutMs":5000,"failures":5}`, 200},
		{`,"slow":{"checkoutMs":2000}`, `{"holdMs":1000,"checkoutMs":2000,"failures":5}`, 200},
		{`,"slow":{"holdMs":0}`, `{"holdMs":0,"checkoutMs":5000,"failures":5}`, 200},
		{`,"slow":null`, `null`, 200},
		{`,"slow":{"holdMs":0,"checkoutMs":0,"failures":0}`, `null`, 200},
		{`,"slow":{"holdMs":9}`, "", 422},
		{`,"slow":{"checkoutMs":60001}`, "", 422},
		{`,"slow":{"failures":101}`, "", 422},
		{`,"slow":{"failures":-1}`, "", 422},
	} {
		if a := b.admin("PUT", "", room(c.said)); a.Status != c.status {
			t.Errorf("%s: %d %s", c.said, a.Status, a.Body)
		}
		if c.status != 200 {
			continue
		}
		var is struct{ Slow json.RawMessage }
		b.must(json.Unmarshal([]byte(b.admin("GET", "", "").Body), &is))
		if string(is.Slow) != c.kept {
			t.Errorf("%s is kept as %s, not %s", c.said, is.Slow, c.kept)
		}
	}
}
