package report

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Say writes to the terminal. One that has gone has nobody to be told of it.
func Say(w io.Writer, format string, a ...any) { _, _ = fmt.Fprintf(w, format, a...) }

// Bar shows how far a measurement is: a bar on a terminal, a line a round
// elsewhere. A nil Bar shows nothing.
type Bar struct {
	out  io.Writer
	show *progressbar.ProgressBar // nil elsewhere
	base int64                    // done by what went before
}

// NewBar shows steps of total in all on out.
func NewBar(out io.Writer, total int64) *Bar {
	b := &Bar{out: out}
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

// What says what is under way.
func (b *Bar) What(text string) {
	if b != nil && b.show != nil {
		b.show.Describe(text)
	}
}

// At is told by readers how far the step under way is.
func (b *Bar) At(n int64) {
	if b != nil && b.show != nil {
		_ = b.show.Set64(b.base + n) // shows nothing when it fails
	}
}

// Done ends a step of so much.
func (b *Bar) Done(n int64) {
	if b != nil {
		b.At(n)
		b.base += n
	}
}

// Line prints the result of a round where there is no bar to see.
func (b *Bar) Line(format string, a ...any) {
	if b != nil && b.show == nil {
		Say(b.out, format, a...)
	}
}

// End takes the bar off the terminal.
func (b *Bar) End() {
	if b != nil && b.show != nil {
		_ = b.show.Finish() // shows nothing when it fails
	}
}
