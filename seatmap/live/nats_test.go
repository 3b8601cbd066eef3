package live

import (
	"testing"
	"time"

	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
)

func TestWhatIsSaidAfterListenIsHeard(t *testing.T) {
	mouth, ear := devtest.NATS(t), NewEar(devtest.NATS(t), NewMetrics(nil))
	for range 200 {
		event, heard := devtest.Event(t), make(chan seatmap.Change, 1)
		stop, err := ear.listen(t.Context(), event, func(c seatmap.Change) { heard <- c })
		if err != nil {
			t.Fatal(err)
		}
		if err := mouth.Publish(subject(event), []byte(`{"n":7}`)); err != nil {
			t.Fatal(err)
		}
		select {
		case <-heard:
		case <-time.After(5 * time.Second):
			t.Fatal("a change said after listen had returned was not heard")
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
}
