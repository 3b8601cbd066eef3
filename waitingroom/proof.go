package waitingroom

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"seatcast/waitingroom/draw"
)

// Challenge is work to be done before somebody joins, as ALTCHA's clients know it: which
// number from 0 to MaxNumber, written behind the salt, has the challenge as its SHA-256.
// The salt names the event, the room, the ticket and when it is over.
type Challenge struct {
	Algorithm string `json:"algorithm"`
	Challenge string `json:"challenge"`
	MaxNumber int    `json:"maxnumber"`
	Salt      string `json:"salt"`
	Signature string `json:"signature"`
}

// solution is a challenge with its number, as they send it.
type solution struct {
	Algorithm string `json:"algorithm"`
	Challenge string `json:"challenge"`
	Number    int64  `json:"number"`
	Salt      string `json:"salt"`
	Signature string `json:"signature"`
}

const (
	proofAlgorithm = "SHA-256"
	proofLife      = 10 * time.Minute // of a challenge, and of a wait once it is over
	proofLimit     = 2 << 10
	waitType       = "seatcast-wait+jwt"
)

// Challenge returns work for one ticket, as much of it as the room asks for.
func (k *Keys) Challenge(room *Room, id draw.ID, now time.Time) (Challenge, error) {
	most := room.Terms.Proof
	secret, err := rand.Int(rand.Reader, big.NewInt(int64(most)+1))
	if err != nil {
		return Challenge{}, err
	}
	of := url.Values{"event": {room.Event}, "room": {strconv.FormatInt(room.id(), 10)}, "ticket": {id.String()},
		"max": {strconv.Itoa(most)}, "expires": {strconv.FormatInt(now.Add(proofLife).Unix(), 10)}}
	c := Challenge{Algorithm: proofAlgorithm, MaxNumber: most, Salt: rand.Text() + "?" + of.Encode() + saltEnd}
	c.Challenge = hashed(c.Salt, secret.Int64())
	c.Signature = k.vouch(c.Challenge)
	return c, nil
}

// saltEnd divides a salt from the number behind it: none of its digits can be passed
// off as one of the salt's.
const saltEnd = "&"

func hashed(salt string, number int64) string {
	sum := sha256.Sum256(strconv.AppendInt([]byte(salt), number, 10))
	return hex.EncodeToString(sum[:])
}

func (k *Keys) vouch(challenge string) string {
	m := hmac.New(sha256.New, k.proofs)
	m.Write([]byte(challenge))
	return hex.EncodeToString(m.Sum(nil))
}

// OpenProof returns the name of a proof of one ticket's for a room and until when it is
// good: the work was at least what the room asks for. ErrBadProof and ErrProofExpired.
func (k *Keys) OpenProof(payload string, room *Room, id draw.ID, now time.Time) (name string, until time.Time, err error) {
	if len(payload) > proofLimit {
		return "", until, ErrBadProof
	}
	raw, err := base64.StdEncoding.DecodeString(payload)
	var s solution
	if err != nil || json.Unmarshal(raw, &s) != nil || s.Algorithm != proofAlgorithm || !strings.HasSuffix(s.Salt, saltEnd) ||
		s.Challenge != hashed(s.Salt, s.Number) || !hmac.Equal([]byte(s.Signature), []byte(k.vouch(s.Challenge))) {
		return "", until, ErrBadProof
	}
	_, query, _ := strings.Cut(strings.TrimSuffix(s.Salt, saltEnd), "?")
	of, err := url.ParseQuery(query)
	if err != nil || of.Get("event") != room.Event || of.Get("ticket") != id.String() {
		return "", until, ErrBadProof
	}
	most, err := strconv.Atoi(of.Get("max"))
	if err != nil || most < room.Terms.Proof {
		return "", until, ErrBadProof
	}
	seconds, err := strconv.ParseInt(of.Get("expires"), 10, 64)
	if err != nil {
		return "", until, ErrBadProof
	}
	until = time.Unix(seconds, 0)
	named, _ := strconv.ParseInt(of.Get("room"), 10, 64) // 0 where none is
	switch {
	case !room.issued(named, until.Add(-proofLife)):
		return "", until, ErrBadProof
	case !now.Before(until):
		return "", until, ErrProofExpired
	}
	return s.Challenge, until, nil
}

// SignWait returns what stands in for a proof of one ticket's once it has been waited
// for so long.
func (k *Keys) SignWait(room *Room, id draw.ID, wait time.Duration, now time.Time) (string, error) {
	good := now.Add(wait)
	return k.signed(waitType, waitClaims{Event: room.Event, Room: room.id(), Ticket: id, RegisteredClaims: jwt.RegisteredClaims{
		ID: rand.Text(), NotBefore: jwt.NewNumericDate(good), ExpiresAt: jwt.NewNumericDate(good.Add(proofLife))}})
}

type waitClaims struct {
	Event  string  `json:"event"`
	Room   int64   `json:"room"`
	Ticket draw.ID `json:"ticket"`
	jwt.RegisteredClaims
}

// OpenWait is OpenProof of what was waited for, so long. ErrBadProof, ErrProofEarly and
// ErrProofExpired.
func (k *Keys) OpenWait(token string, room *Room, id draw.ID, wait time.Duration, now time.Time) (name string, until time.Time, err error) {
	var c waitClaims
	switch err := k.open(token, &c, waitType); {
	case err != nil, c.Event != room.Event || c.Ticket != id, c.NotBefore == nil || c.ExpiresAt == nil || c.ID == "", !room.issued(c.Room, c.NotBefore.Add(-wait)):
		return "", until, ErrBadProof
	case now.Before(c.NotBefore.Time):
		return "", until, ErrProofEarly
	case !now.Before(c.ExpiresAt.Time):
		return "", until, ErrProofExpired
	}
	return c.ID, c.ExpiresAt.Time, nil
}
