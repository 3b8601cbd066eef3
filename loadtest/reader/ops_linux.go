package reader

import (
	"fmt"
	"maps"
	"time"
)

// begin handles a request. What takes its time is answered by settle.
func (l *loop) begin(q request) error {
	switch q.Op {
	case "open":
		l.open(*q.Join, q.Within)
	case "plan":
		l.plan(*q.Plan)
		return l.say(reply{})
	case "await":
		l.await(q.Within)
	case "herd":
		l.herd(q.Return.Numbers, q.Within)
	case "churn":
		l.churn, l.churned = q.Return.PerSecond, time.Now()
		return l.say(reply{})
	case "settle":
		l.settled(q.Within)
	case "follow":
		l.next, l.following, l.started, l.returned, l.window = *q.Next, true, time.Now(), 0, 0 // nobody waits for others
		return l.say(reply{})
	case "drained":
		l.drained(q.Within)
	case "finals":
		return l.say(reply{Finals: l.finals()})
	default:
		return fmt.Errorf("there is no request %q", q.Op)
	}
	return nil
}

func within(ms int64) time.Time { return time.Now().Add(time.Duration(ms) * time.Millisecond) }

func (l *loop) open(j Join, ms int64) {
	l.target, l.window = j.Target, j.Window
	l.conns = make([]conn, j.Conns)
	l.living = j.Conns - j.Dead
	for i := range l.conns {
		c := &l.conns[i]
		c.i, c.fd, c.progress = int32(i), -1, unknown
		c.dead = j.Dead > 0 && i%(j.Conns/j.Dead) == 0 && i/(j.Conns/j.Dead) < j.Dead
		l.queue = append(l.queue, c.i)
	}
	l.started, l.returned = time.Now(), 0
	l.untilOn(ms)
}

// untilOn waits for every session.
func (l *loop) untilOn(ms int64) {
	want := len(l.conns)
	var took time.Duration
	l.wait = &waiting{
		until: within(ms),
		done: func() bool {
			if l.returned >= want && took == 0 {
				took = time.Since(l.started)
			}
			return l.returned >= want
		},
		count: func() int64 { return int64(l.returned) },
		answer: func() reply {
			if l.returned < want {
				return reply{Err: fmt.Sprintf("%d of %d sessions are on; refused: %v; closed: %v; %s", l.returned, want, l.counts.Refused, l.counts.Closed, l.counts.Fault)}
			}
			return reply{Opened: &Opened{On: l.onNow, Seconds: took.Seconds()}}
		},
	}
}

// settled waits until nobody is on the way.
func (l *loop) settled(ms int64) {
	l.wait = &waiting{
		until: within(ms),
		done:  func() bool { return l.onNow >= l.living },
		answer: func() reply {
			if l.onNow < l.living {
				return reply{Err: fmt.Sprintf("%d of %d sessions are on; closed: %v", l.onNow, l.living, l.counts.Closed)}
			}
			return reply{}
		},
	}
}

// plan starts counting: what was parsed before says nothing of this plan.
func (l *loop) plan(p Plan) {
	l.tally = newTally(p, l.onNow)
	l.recent, l.reads = [len(l.recent)]recent{}, [len(l.reads)]sameRead{}
	for i := range l.conns {
		if l.conns[i].on {
			l.conns[i].progress = -1
		}
	}
}

func (l *loop) await(ms int64) {
	l.wait = &waiting{
		until: within(ms),
		done:  func() bool { return l.tally.count >= l.tally.expected() && l.churn == 0 },
		count: func() int64 { return l.tally.count },
		answer: func() reply {
			r := l.tally.report()
			r.Counts = l.countsNow()
			return reply{Report: &r}
		},
	}
}

func (l *loop) countsNow() Counts {
	c := l.counts
	c.On = l.onNow
	c.Closed, c.Refused = maps.Clone(c.Closed), maps.Clone(c.Refused)
	return c
}

// herd has everybody come back at once.
func (l *loop) herd(numbers bool, ms int64) {
	l.queue, l.window = l.queue[:0], 0
	for i := range l.conns {
		c := &l.conns[i]
		if c.phase != closed {
			l.leave(c)
		}
		c.forget(numbers)
		l.queue = append(l.queue, c.i)
	}
	l.timers = nil
	l.counts.Joined += int64(len(l.conns))
	l.started, l.returned = time.Now(), 0
	l.untilOn(ms)
}

func (l *loop) drained(ms int64) {
	l.wait = &waiting{
		until: within(ms),
		done:  func() bool { return l.returned >= l.living },
		count: func() int64 { return int64(l.returned) },
		answer: func() reply {
			return reply{Drained: &Drained{LeftPerSecond: l.left, BackPerSecond: l.back, Unannounced: l.unannounced, Counts: l.countsNow()}}
		},
	}
}

// finals groups the sessions that read by the map they have.
func (l *loop) finals() []Final {
	sessions := make(map[string]*Final)
	byState := make(map[*state]*Final)
	for i := range l.conns {
		c := &l.conns[i]
		if c.at == nil || c.dead || !c.on {
			continue
		}
		f := byState[c.at]
		if f == nil || f.N != c.have {
			key := fmt.Sprint(c.have, " ", string(c.at.m))
			if f = sessions[key]; f == nil {
				f = &Final{N: c.have, Map: c.at.m}
				sessions[key] = f
			}
			byState[c.at] = f
		}
		f.Sessions++
	}
	var all []Final
	for _, f := range sessions {
		all = append(all, *f)
	}
	return all
}
