package fanout

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"
	"time"

	"seatcast/loadtest/peers"
)

// Options say what is measured.
type Options struct {
	Conns   int
	Rate    float64 // frames a second
	Frames  int     // that are measured
	Size    int     // seats a frame changes; 0: what suits the mode
	WS      bool
	Against []string
	Pairs   int
	Mode    Mode
	Dead    float64       // share of sessions that never read
	Churn   float64       // sessions a second that leave and come back
	For     time.Duration // how long to publish, instead of Frames

	JSON    string // file for the rows
	Program string // seatcast's binary; built when empty
	Self    string // this program
	Out     io.Writer
	Err     io.Writer
}

// Mode is what happens besides publishing.
type Mode string

// Modes.
const (
	Plain    Mode = ""
	Dead     Mode = "dead"
	Herd     Mode = "herd"
	Churn    Mode = "churn"
	Drain    Mode = "drain"
	Saturate Mode = "saturate"
)

// spareFDs are open files that are no sessions.
const spareFDs = 200

// mostPorts is how many connections one address may have to another, with the
// ports the kernel gives and some left over.
const mostPorts = 25_000

// mostRate is the rate up to which a hub that merges changes on a tick of
// 100 ms sends each in a frame of its own.
const mostRate = 8

// Validate returns what is wrong with the options, and says what to use.
func (o *Options) Validate() error {
	files, err := openFiles()
	if err != nil {
		return err
	}
	most := min(files-spareFDs, mostPorts)
	switch {
	case o.Conns < 1:
		return fmt.Errorf("--conns %d: at least one session is needed", o.Conns)
	case o.Conns > most:
		return fmt.Errorf("--conns %d: at most %d here (a process may open %d files, ulimit -n; an address has %d ports)", o.Conns, most, files, mostPorts)
	case !(o.Rate > 0):
		return fmt.Errorf("--rate %v: more than 0 frames a second are needed", o.Rate)
	case o.Rate > mostRate:
		return fmt.Errorf("--rate %v: at most %d frames a second: the hub merges what comes faster than its tick of 100 ms, and servers could not be compared", o.Rate, mostRate)
	case o.Frames < 1:
		return fmt.Errorf("--frames %d: at least one is needed", o.Frames)
	case o.Pairs < 1:
		return fmt.Errorf("--pairs %d: at least one is needed", o.Pairs)
	case o.Size < 0 || o.Size > 1000:
		return fmt.Errorf("--changes %d: use 1 to 1000 seats a frame", o.Size)
	case o.For < 0:
		return fmt.Errorf("--for %v: a time is needed", o.For)
	case o.Churn < 0:
		return fmt.Errorf("--churn-rate %v: at least 0 sessions a second", o.Churn)
	case o.Mode == Drain && len(o.Against) > 0:
		return errors.New("--drain is about two seatcast nodes: leave --against out")
	case o.JSON != "" && (o.Mode == Herd || o.Mode == Drain):
		return fmt.Errorf("--json has figures of deliveries, which --%s is not about: leave it out", o.Mode)
	}
	return peers.Check(o.Against)
}

// openFiles is how many files a process of ours may have open. It makes that as
// many as we may.
func openFiles() (int, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("open files: %w", err)
	}
	l.Cur = l.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil { // which children inherit, unlike what Go does by itself
		return 0, fmt.Errorf("open files: %w", err)
	}
	return int(min(l.Cur, 1<<30)), nil
}

// Share reads "1%" or "0.01".
func Share(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(number, 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share > 0 && share <= 0.5) {
		return 0, fmt.Errorf("%q: a share such as 1%%, above 0 and at most 50%%", text)
	}
	return share, nil
}

// warm is how many frames come before those that are measured.
const warm = 3

// frames is how many are published and measured.
func (o *Options) frames() int {
	if o.For > 0 {
		return max(1, int(o.For.Seconds()*o.Rate))
	}
	return o.Frames
}

// size is how many seats a frame changes. Readers that never read are only
// noticed once their buffers are full, so there a frame is of some size.
func (o *Options) size() int {
	switch {
	case o.Size > 0:
		return o.Size
	case o.Mode == Dead:
		return 300
	}
	return 2
}
