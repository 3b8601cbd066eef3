package fanout

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
)

// say writes to the terminal. One that has gone has nobody to be told of it.
func say(w io.Writer, format string, a ...any) { _, _ = fmt.Fprintf(w, format, a...) }

// bar shows how far a measurement is: a bar on a terminal, a line a round
// elsewhere. A nil bar shows nothing.
type bar struct {
	out  io.Writer
	show *progressbar.ProgressBar // nil elsewhere
	base int64                    // done by what went before
}

func newBar(out io.Writer, total int64) *bar {
	b := &bar{out: out}
	f, ok := out.(*os.File)
	if !ok {
		return b
	}
	if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		b.show = progressbar.NewOptions64(total, progressbar.OptionSetWriter(out), progressbar.OptionSetWidth(30),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true))
	}
	return b
}

// what says what is under way.
func (b *bar) what(text string) {
	if b != nil && b.show != nil {
		b.show.Describe(text)
	}
}

// at is told by readers how far the step under way is.
func (b *bar) at(n int64) {
	if b != nil && b.show != nil {
		_ = b.show.Set64(b.base + n) // shows nothing when it fails
	}
}

// done ends a step of so much.
func (b *bar) done(n int64) {
	if b != nil {
		b.at(n)
		b.base += n
	}
}

// line prints the result of a round where there is no bar to see.
func (b *bar) line(format string, a ...any) {
	if b != nil && b.show == nil {
		say(b.out, format, a...)
	}
}

// end takes the bar off the terminal.
func (b *bar) end() {
	if b != nil && b.show != nil {
		_ = b.show.Finish() // shows nothing when it fails
	}
}
