package hub

import (
	"context"
	"errors"
	"time"
)

// solo drives one session in a goroutine of its own, which blocks while it
// writes. It is the portable engine: it serves TLS, HTTP/2 and every system.
type solo struct {
	session *session
	awake   chan struct{} // 1: two wakes are one
}

func newSolo(s *session) *solo {
	p := &solo{session: s, awake: make(chan struct{}, 1)}
	s.drive(p)
	return p
}

func (p *solo) rouse(*session) {
	select {
	case p.awake <- struct{}{}:
	default:
	}
}

func (p *solo) enter(*room, *cursor) member { return p }
func (p *solo) leave(*cursor) member        { return p }

// tell implements member. A fan-out does not wait for writes that may block.
func (p *solo) tell(*fanout) { p.rouse(nil) }

// run steps the session until it ends, and says why it did.
func (p *solo) run(ctx context.Context) Code {
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		if err := p.session.step(); err != nil {
			return codeOf(err)
		}
		due.Reset(p.session.due - p.session.hub.now())
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return CloseAge
			}
			return CloseGone
		case <-p.awake:
		case <-due.C:
		}
	}
}
