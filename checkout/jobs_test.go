package checkout_test

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
)

// said closes heard when a log has said a word.
type said struct {
	word  string
	once  sync.Once
	heard chan struct{}
}

func (s *said) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(s.word)) {
		s.once.Do(func() { close(s.heard) })
	}
	return len(p), nil
}

// A queue that cannot start, because Postgres is away in that moment, must not
// end a process that has other work.
func TestAQueueThatCannotStartIsStartedLater(t *testing.T) {
	failed := &said{word: "job queue not started yet", heard: make(chan struct{})}
	h := setup(t, func(_ *house, o *checkout.Options, _ *sandbox.Options) {
		o.Log = slog.New(slog.NewTextHandler(failed, nil))
	})
	h.exec(`ALTER TABLE river_queue RENAME TO river_queue_away`)
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", sandbox.CardApprove)
	h.run(h.desk.Run)
	<-failed.heard
	h.exec(`ALTER TABLE river_queue_away RENAME TO river_queue`)
	h.quietens()
	h.sound()
}
