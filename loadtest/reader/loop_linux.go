package reader

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// Run is the reader's process: it answers requests from in on out until in ends.
func Run(in *os.File, out io.Writer) error {
	ep, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("reader: epoll: %w", err)
	}
	l := &loop{ep: ep, out: bufio.NewWriter(out), buf: make([]byte, 256<<10), counts: Counts{Closed: map[string]int{}, Refused: map[string]int{}}}
	fd := int(in.Fd())
	if err := syscall.SetNonblock(fd, true); err != nil {
		return fmt.Errorf("reader: input: %w", err)
	}
	if err := syscall.EpollCtl(ep, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: -1}); err != nil {
		return fmt.Errorf("reader: input: %w", err)
	}
	l.in = fd
	l.plan(Plan{})
	return l.run()
}

// loop is everything a reader has; one goroutine uses it.
type loop struct {
	ep, in int
	out    *bufio.Writer
	line   []byte // of a request, not complete yet
	buf    []byte

	target, next  Target // next is where sessions go that a server ended
	following     bool
	conns         []conn
	queue         []int32 // to be connected
	window        int     // most connects under way; 0: all
	pending       int     // under way
	living, onNow int     // sessions that read, and those of them that are on
	timers        timers
	churn         float64 // a second
	owed          float64
	churned       time.Time
	turn          int
	started       time.Time // of open, herd or follow
	left, back    []int     // a second since then
	unannounced   int
	returned      int
	counts        Counts
	tally         tally
	recent        [16]recent // messages, by their bytes
	recentAt      int
	reads         [4]sameRead // whole reads, by their bytes
	readsAt       int
	msgs          []*message // of the read under way
	plain         bool       // the read under way held messages alone
	scratch       []byte
	wait          *waiting // the request that is not answered yet
	end           bool
}

// recent is a message and the bytes it was parsed from.
type recent struct {
	bytes []byte
	m     *message
}

// sameRead is what a whole read held that began and ended between messages.
type sameRead struct {
	bytes []byte
	msgs  []*message
}

// waiting is a request that is answered once it is done or its time is over.
type waiting struct {
	done   func() bool
	answer func() reply
	count  func() int64 // progress
	until  time.Time
	told   time.Time
}

func (l *loop) run() error {
	events := make([]syscall.EpollEvent, 1024)
	for !l.end {
		n, err := syscall.EpollWait(l.ep, events, l.patience())
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("reader: wait: %w", err)
		}
		for _, e := range events[:max(n, 0)] {
			if e.Fd < 0 {
				if err := l.hear(); err != nil {
					return err
				}
				continue
			}
			if c := &l.conns[e.Fd]; c.gen == e.Pad {
				l.ready(c, e.Events)
			}
		}
		now := time.Now()
		l.due(now)
		l.stir(now)
		l.pump()
		if err := l.settle(now); err != nil {
			return err
		}
	}
	return nil
}

// patience is how long to wait for events, in milliseconds.
func (l *loop) patience() int {
	ms := 100
	if l.churn > 0 {
		ms = 10
	}
	if len(l.timers) > 0 {
		ms = min(ms, int(time.Until(l.timers[0].at).Milliseconds())+1)
	}
	return max(ms, 0)
}

// hear reads requests.
func (l *loop) hear() error {
	var b [64 << 10]byte
	for {
		n, err := syscall.Read(l.in, b[:])
		switch {
		case errors.Is(err, syscall.EAGAIN):
			return nil
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("reader: input: %w", err)
		case n == 0:
			l.end = true
			return nil
		}
		for _, one := range b[:n] {
			if one != '\n' {
				l.line = append(l.line, one)
				continue
			}
			var q request
			if err := json.Unmarshal(l.line, &q); err != nil {
				return fmt.Errorf("reader: request: %w", err)
			}
			l.line = l.line[:0]
			if err := l.begin(q); err != nil {
				if err := l.say(reply{Err: err.Error()}); err != nil {
					return err
				}
			}
		}
	}
}

func (l *loop) say(a reply) error {
	if err := json.NewEncoder(l.out).Encode(a); err != nil {
		return err
	}
	return l.out.Flush()
}

// settle answers what is waited for when it is done, and tells progress.
func (l *loop) settle(now time.Time) error {
	w := l.wait
	if w == nil {
		return nil
	}
	if w.done() || now.After(w.until) {
		l.wait = nil
		return l.say(w.answer())
	}
	if w.count != nil && now.Sub(w.told) > 200*time.Millisecond {
		w.told = now
		n := w.count()
		return l.say(reply{Progress: &n})
	}
	return nil
}

// due connects what has waited for its time.
func (l *loop) due(now time.Time) {
	for len(l.timers) > 0 && !l.timers[0].at.After(now) {
		t := l.timers.pop()
		if l.conns[t.conn].gen == t.gen {
			l.queue = append(l.queue, t.conn)
		}
	}
}

// stir has sessions leave and come back.
func (l *loop) stir(now time.Time) {
	if l.churn == 0 {
		return
	}
	l.owed += now.Sub(l.churned).Seconds() * l.churn
	l.churned = now
	for tries := 0; l.owed >= 1 && tries < len(l.conns); tries++ {
		l.turn = (l.turn + 1) % len(l.conns)
		c := &l.conns[l.turn]
		if !c.on || c.dead {
			continue
		}
		l.owed--
		l.leave(c)
		c.forget(l.target.Numbered && l.turn%2 == 0)
		l.counts.Joined++
		l.queue = append(l.queue, int32(l.turn))
	}
}

// pump connects what is queued, as many at a time as the window allows.
func (l *loop) pump() {
	for len(l.queue) > 0 && (l.window == 0 || l.pending < l.window) {
		i := l.queue[0]
		l.queue = l.queue[1:]
		l.connect(i)
	}
}

// again connects a session later.
func (l *loop) again(c *conn, after time.Duration) {
	l.timers.push(timer{at: time.Now().Add(after), conn: c.i, gen: c.gen})
}

// jitter is a little over d, so that those refused do not come back in step.
func jitter(d time.Duration) time.Duration { return d + rand.N(d) }

// rawRead reads without telling Go's scheduler: the sockets never block.
func rawRead(fd int32, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return int(n), errno
}
