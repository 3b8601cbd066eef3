package reader

import (
	"fmt"
	"syscall"
	"time"
)

// session is what a reader remembers beyond one connection.
type session struct {
	have     int64  // the number it holds
	at       *state // its map; nil while it has none
	progress int    // index of the last change of the plan that reached it; -1 for none
	on       bool
	began    bool  // the snapshot that opens the connection was read
	reset    bool  // the next snapshot may go back
	bye      bool  // the last thing said was when to come back
	retry    int64 // milliseconds
}

// became marks a session on when what it has read is what makes it so.
func (l *loop) became(c *conn, read Ready) {
	t := l.targetOf(c)
	if c.on || c.phase != streaming || t.Ready != read {
		return
	}
	c.on = true
	l.pending--
	if c.dead {
		_ = syscall.EpollCtl(l.ep, syscall.EPOLL_CTL_DEL, int(c.fd), nil) // from now on it never reads
		l.returned++
		return
	}
	l.onNow++
	l.returned++
	if l.following && c.away {
		bump(&l.back, l.started)
	}
}

// bump counts one in the second it is since start.
func bump(bySecond *[]int, start time.Time) {
	s := int(time.Since(start).Seconds())
	for len(*bySecond) <= s {
		*bySecond = append(*bySecond, 0)
	}
	(*bySecond)[s]++
}

// apply has a session read a message.
func (l *loop) apply(c *conn, m *message, now int64) {
	c.bye = m.kind == other && m.retry > 0 && c.on
	if m.retry > 0 {
		c.retry = m.retry
	}
	switch m.kind {
	case hello:
		l.applyHello(c, m)
	case snapshot:
		l.applySnapshot(c, m, now)
	case delta:
		l.applyDelta(c, m, now)
	case reset:
		c.have, c.reset = 0, true
		l.counts.Resets++
	case beat:
		l.counts.Beats++
		if c.at != nil && m.n > c.have {
			l.fault("a beat says %d to a session that was given %d", m.n, c.have)
		}
	case degraded:
		l.counts.Degraded++
	case refusal:
		l.fault("refused: %s", m.text)
	}
	l.became(c, Message)
}

// applyHello reads what opens a connection. A session that resumes may have
// missed nothing: then this is all it is sent until something happens.
func (l *loop) applyHello(c *conn, m *message) {
	ws := l.targetOf(c).WS
	switch {
	case c.began || c.on:
		l.fault("a second hello on one connection")
	case !ws && m.id != 0 && m.id != c.have:
		l.fault("a hello says that a session holds %d, which holds %d", m.id, c.have)
	case c.have > 0 && (ws || m.id != 0):
		l.became(c, Snapshot)
	}
}

func (l *loop) applySnapshot(c *conn, m *message, now int64) {
	if m.n < c.have && !c.reset {
		l.fault("a snapshot of %d after %d: back in time", m.n, c.have)
	}
	if c.began || c.reset {
		l.counts.Snapshots++
	}
	known := c.on && c.progress != unknown
	c.have, c.at, c.began, c.reset = m.n, m.state, true, false
	if upTo, ok := l.tally.reached(m.n); known && ok {
		l.tally.deliver(&c.progress, upTo, now)
	} else if known && l.tally.published() {
		c.progress = unknown
	}
	l.became(c, Snapshot)
}

func (l *loop) applyDelta(c *conn, m *message, now int64) {
	numbered := l.targetOf(c).Numbered
	switch {
	case numbered && c.at == nil:
		l.fault("a delta before the snapshot")
		return
	case m.n <= c.have:
		l.counts.Repeats++
		return
	case m.prev > c.have && (numbered || c.have > 0):
		l.fault("a change was lost: a session holds %d and was given what follows %d", c.have, m.prev)
	}
	c.have, c.began = m.n, true
	if c.at != nil {
		c.at = c.at.after(m)
	}
	l.tally.deliver(&c.progress, m.upTo, now)
	if numbered { // one that resumed needs no snapshot
		l.became(c, Snapshot)
	}
}

// fault counts what should not be, and keeps the first.
func (l *loop) fault(format string, a ...any) {
	if l.counts.Faults++; l.counts.Faults == 1 {
		l.counts.Fault = fmt.Sprintf(format, a...)
	}
}

// leave closes a connection from our side.
func (l *loop) leave(c *conn) {
	if c.fd >= 0 {
		_ = syscall.Close(int(c.fd)) // gone either way
	}
	switch {
	case c.on && !c.dead:
		l.onNow--
	case !c.on && c.phase != closed:
		l.pending--
	}
	c.fd, c.phase, c.on, c.rest = -1, closed, false, nil
	c.gen++
}

// refused gives up an attempt to connect, and has another made soon.
func (l *loop) refused(c *conn, why string) {
	l.counts.Refused[why]++
	wait := time.Duration(c.retry) * time.Millisecond
	l.leave(c)
	l.again(c, max(wait, jitter(100*time.Millisecond)))
}

// ended handles the end of a connection that was not ours.
func (l *loop) ended(c *conn, why string) {
	if !c.on {
		l.refused(c, why)
		return
	}
	l.counts.Closed[why]++
	bye, wait := c.bye, time.Duration(c.retry)*time.Millisecond
	l.leave(c)
	if !l.following || c.away {
		return
	}
	bump(&l.left, l.started)
	c.away = true
	c.forget(true)
	if !bye {
		l.unannounced++
		wait = jitter(500 * time.Millisecond)
	}
	l.again(c, wait)
}
