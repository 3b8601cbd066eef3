package hub

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"strings"
)

// errNoRoom ends an upgrade that no session is opened for.
var errNoRoom = errors.New("hub: no session is opened")

// upgrade is the response to who wants a socket. The websocket library judges
// the handshake and finds our wire here instead of the connection. What it
// refuses is told as every problem is, and only who was let in is counted as a
// session.
type upgrade struct {
	http.ResponseWriter
	from     *listener
	park     func(conn net.Conn, early []byte) error // gives out's wire the connection; nil: out gets one that waits
	status   int                                     // that the library refuses with
	answered bool
	opened   bool // the session
}

// WriteHeader implements http.ResponseWriter. The library is about to switch
// protocols, or to say why not.
func (u *upgrade) WriteHeader(status int) {
	if status != http.StatusSwitchingProtocols {
		u.status = status
		return
	}
	u.answered = true
	s := u.from.session
	if err := s.hub.open(s); err != nil {
		for _, name := range []string{"Upgrade", "Sec-WebSocket-Accept", "Sec-WebSocket-Protocol"} {
			u.Header().Del(name)
		}
		s.hub.refuse(u.ResponseWriter, s.kind, err)
		return
	}
	u.opened = true
	u.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter: it is what the library has to say.
func (u *upgrade) Write(b []byte) (int, error) {
	if !u.answered {
		u.answered = true
		writeProblem(u.ResponseWriter, u.status, handshakeCode(u.status), strings.TrimSpace(string(b)))
	}
	return len(b), nil
}

// handshakeCode names what is wrong with a handshake.
func handshakeCode(status int) string {
	switch status {
	case http.StatusForbidden:
		return "origin_not_allowed"
	case http.StatusUpgradeRequired:
		return "upgrade_required"
	case http.StatusBadRequest:
		return "bad_handshake"
	}
	return "internal"
}

// failed ends the session, if one was opened, of an upgrade that came to nothing.
func (u *upgrade) failed() {
	if u.opened {
		u.from.session.hub.close(u.from.session, CloseGone)
	}
}

// Hijack implements http.Hijacker.
func (u *upgrade) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if !u.opened {
		return nil, nil, errNoRoom
	}
	conn, rw, err := http.NewResponseController(u.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	out, in := u.from.out, rw.Reader
	if u.park != nil {
		early, _ := in.Peek(in.Buffered()) // it is there
		if err := u.park(conn, early); err != nil {
			_ = conn.Close()
			return nil, nil, err
		}
		in = bufio.NewReaderSize(out.wire, parkedRead)
	} else {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetWriteBuffer(sendBuffer) // a wish: the kernel decides
		}
		out.wire = &waitingWire{Conn: conn, timeout: out.hub.opts.WriteTimeout, traffic: out.traffic}
	}
	u.from.raw = &metered{out.wire, u.from}
	return u.from.raw, bufio.NewReadWriter(in, bufio.NewWriterSize(spoken{out}, controlWrite)), nil
}

const (
	// sendBuffer bounds what the kernel holds for a client that does not read,
	// and so how long it looks alive.
	sendBuffer = 32 << 10
	// parkedRead is the buffer a parked socket reads with: clients say little.
	parkedRead = 64
	// controlWrite is the library's, above 128 bytes: a control frame is one
	// write and cannot be split by one of ours.
	controlWrite = 160
)

// spoken is a socket as the websocket library writes it: pongs, the answer to
// a close, and a close of its own where the client broke the rules.
type spoken struct{ out *wsSink }

// Write implements io.Writer; b is a whole frame. A second close is not sent,
// and one for a broken rule gets our words: the library's are of its inside.
func (s spoken) Write(b []byte) (int, error) {
	if b[0] != wsOpClose {
		return s.out.Write(b)
	}
	if s.out.closed.Swap(true) {
		return len(b), nil
	}
	if len(b) >= 4 && int(b[2])<<8|int(b[3]) == int(CloseBroken) {
		_, err := s.out.Write(wsClose(CloseBroken))
		return len(b), err
	}
	return s.out.Write(b)
}
