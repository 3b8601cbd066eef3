package live

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"
)

// Why a ticket does not let its bearer in.
var (
	ErrNoTicket      = errors.New("live: no ticket was shown")
	ErrTicketForged  = errors.New("live: not a ticket of ours for this event")
	ErrTicketExpired = errors.New("live: the ticket's time is over")
	ErrTicketUsed    = errors.New("live: the ticket has been used")
)

// seal makes and reads tickets. A ticket is
//
//	expiry, Unix ms (8 bytes) · end, Unix ms (8) · id (16) · HMAC-SHA256 of event and all three (32)
//
// in base64url. The end is that of what it opens; 0: it has none. It names nobody: a stream is the same for all.
type seal []byte

// Bytes of a ticket.
const (
	idAt        = 8 + 8
	sealedAt    = idAt + 16
	ticketBytes = sealedAt + sha256.Size
)

// newSeal derives a key that signs nothing but tickets. Whatever else is signed
// with the server's key begins with a length, and never reads like this.
func newSeal(serverKey []byte) seal {
	m := hmac.New(sha256.New, serverKey)
	m.Write([]byte("seatcast live ticket"))
	return m.Sum(nil)
}

func (s seal) issue(event string, expires, end time.Time) string {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, ticketBytes), uint64(expires.UnixMilli()))
	var until uint64
	if !end.IsZero() {
		until = uint64(end.UnixMilli())
	}
	b = binary.BigEndian.AppendUint64(b, until)[:sealedAt]
	_, _ = rand.Read(b[idAt:]) // never fails: it ends the program instead
	return base64.RawURLEncoding.EncodeToString(append(b, s.mac(event, b)...))
}

// open returns what tells one ticket of an event from another, and its end. The
// time is judged last: only a ticket of ours has one.
func (s seal) open(event, ticket string, now time.Time) (id string, end time.Time, err error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(ticket)
	if err != nil || len(b) != ticketBytes || !hmac.Equal(b[sealedAt:], s.mac(event, b[:sealedAt])) {
		return "", end, ErrTicketForged
	}
	if now.UnixMilli() >= int64(binary.BigEndian.Uint64(b)) {
		return "", end, ErrTicketExpired
	}
	if until := int64(binary.BigEndian.Uint64(b[8:])); until > 0 {
		end = time.UnixMilli(until)
	}
	return base64.RawURLEncoding.EncodeToString(b[idAt:sealedAt]), end, nil
}

// mac needs no length: what it signs beside the event has one of its own.
func (s seal) mac(event string, signed []byte) []byte {
	m := hmac.New(sha256.New, s)
	m.Write(signed)
	m.Write([]byte(event))
	return m.Sum(nil)
}
