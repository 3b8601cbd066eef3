package waitingroom

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"seatcast/waitingroom/draw"
)

// What fans keep are JSON Web Tokens signed with ES256, so that whoever has the
// public key can check them: an auditor a place, and a proxy a pass. What a token
// is for is the typ of its header: none passes for the other.
const (
	placeType   = "seatcast-place+jwt"
	receiptType = "seatcast-receipt+jwt"
	passType    = "seatcast-pass+jwt"
)

// Place is a place in a line, in the keeping of whoever has it. Of who is on the
// list of a draw it is the receipt for their ticket until they have a number: that it
// is one its type says, so that no other place passes for it.
type Place struct {
	Event        string
	Room         int64 // of the event: another one's places count for nothing
	Ticket       draw.Ticket
	Number       int64       // 0: takes part in a draw that was not held when it was issued
	Announcement draw.Digest // of that draw; nought of a place that is no receipt
	Issued       time.Time
}

// Pass lets one account into the sale of one event.
type Pass struct {
	ID     string // jti
	Event  string
	Room   int64 // as that of a place
	User   string
	Ticket draw.ID // whose time inside it is
	Until  time.Time
}

// Why a place or a pass is not accepted.
var (
	ErrForged  = errors.New("waitingroom: not signed by us, or not for this event or account")
	ErrNoPass  = errors.New("waitingroom: no pass is shown")
	ErrExpired = errors.New("waitingroom: its time is over")
)

// Keys sign places and passes, and tell whether they were signed with one of
// them.
type Keys struct {
	sign    *ecdsa.PrivateKey
	id      string
	public  map[string]*ecdsa.PublicKey
	tickets []byte // derives the tickets of accounts
	codes   []byte // signs the codes of events
	proofs  []byte // signs challenges
}

// ParseKeys reads keys, separated by commas: "es256:<base64 of the 32 bytes of a
// private key on P-256>" or "public:<base64 of the 65 bytes of a public one>".
// The first private one signs, and what is signed with any is accepted. Without
// one the key that signs is derived from secret. Which ticket an account has,
// and which codes there are, depends on secret alone. No error repeats a key.
func ParseKeys(text, secret string) (*Keys, error) {
	k := &Keys{public: map[string]*ecdsa.PublicKey{}}
	for part := range strings.SplitSeq(text, ",") {
		if text == "" {
			break
		}
		if err := k.parse(strings.TrimSpace(part)); err != nil {
			return nil, err
		}
	}
	if k.sign == nil {
		key, err := derived(secret)
		if err != nil {
			return nil, fmt.Errorf("waitingroom: derive a key: %w", err)
		}
		k.add(key)
	}
	for what, key := range map[string]*[]byte{"tickets": &k.tickets, "codes": &k.codes, "proofs": &k.proofs} {
		derived, err := hkdf.Key(sha256.New, []byte(secret), nil, "seatcast waiting room "+what, sha256.Size)
		if err != nil {
			return nil, fmt.Errorf("waitingroom: derive a key: %w", err)
		}
		*key = derived
	}
	return k, nil
}

func (k *Keys) parse(part string) error {
	kind, encoded, _ := strings.Cut(part, ":")
	raw, err := base64.RawStdEncoding.DecodeString(strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(encoded, "=")))
	if err != nil || kind != "es256" && kind != "public" {
		return errors.New("waitingroom: a key is es256:<base64 of a private key on P-256> or public:<base64 of a public one>")
	}
	if kind == "public" {
		key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), raw)
		if err != nil {
			return errors.New("waitingroom: what follows public: is no public key on P-256")
		}
		k.public[idOf(key)] = key
		return nil
	}
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw)
	if err != nil {
		return errors.New("waitingroom: what follows es256: is no private key on P-256")
	}
	k.add(key)
	return nil
}

// derived is the key a secret gives. Of 2³² secrets one gives none at the first
// try.
func derived(secret string) (*ecdsa.PrivateKey, error) {
	for try := byte(0); ; try++ {
		raw, err := hkdf.Key(sha256.New, []byte(secret), []byte{try}, "seatcast waiting room key", 32)
		if err != nil {
			return nil, err
		}
		if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw); err == nil {
			return key, nil
		}
	}
}

func (k *Keys) add(key *ecdsa.PrivateKey) {
	id := idOf(&key.PublicKey)
	if k.sign == nil {
		k.sign, k.id = key, id
	}
	k.public[id] = &key.PublicKey
}

// idOf names a key by itself: 48 bits of its hash, to tell some few apart.
func idOf(key *ecdsa.PublicKey) string {
	raw, err := key.Bytes()
	if err != nil {
		return "" // not on the curve, which those who call have seen to
	}
	sum := sha256.Sum256(raw)
	return base64.RawURLEncoding.EncodeToString(sum[:6])
}

// Public are the keys that places and passes may be signed with, by their names.
func (k *Keys) Public() map[string]*ecdsa.PublicKey { return k.public }

// TicketOf is the ticket an account has in a room: always the same, and nobody
// else can tell whose it is. Its nonce is that of who brings none.
func (k *Keys) TicketOf(event, user string) draw.Ticket {
	return draw.Ticket{ID: k.derive("", event, user), Nonce: k.derive("nonce", event, user)}
}

// derive is length-prefixed, so that no two are alike.
func (k *Keys) derive(what, event, user string) (id draw.ID) {
	m := hmac.New(sha256.New, k.tickets)
	m.Write(binary.BigEndian.AppendUint32(nil, uint32(len(event))))
	m.Write([]byte(event))
	m.Write(binary.BigEndian.AppendUint32(nil, uint32(len(user))))
	m.Write([]byte(user + what))
	copy(id[:], m.Sum(nil))
	return id
}

type placeClaims struct {
	Event        string       `json:"event"`
	Room         int64        `json:"room,omitempty"`
	Ticket       draw.ID      `json:"ticket"`
	Nonce        draw.ID      `json:"nonce"`
	Number       int64        `json:"number,omitempty"`
	Announcement *draw.Digest `json:"announcement,omitempty"`
	jwt.RegisteredClaims
}

// SignPlace returns a place as its holder keeps it.
func (k *Keys) SignPlace(p Place) (string, error) {
	c := placeClaims{Event: p.Event, Room: p.Room, Ticket: p.Ticket.ID, Nonce: p.Ticket.Nonce, Number: p.Number,
		RegisteredClaims: jwt.RegisteredClaims{IssuedAt: jwt.NewNumericDate(p.Issued)}}
	kind := placeType
	if p.Announcement != (draw.Digest{}) {
		kind, c.Announcement = receiptType, &p.Announcement
	}
	return k.signed(kind, c)
}

// OpenPlace returns a place that was signed here, or a receipt. ErrForged. Whose it
// is its ticket says.
func (k *Keys) OpenPlace(token string) (Place, error) {
	var c placeClaims
	if err := k.open(token, &c, placeType, receiptType); err != nil {
		return Place{}, err
	}
	p := Place{Event: c.Event, Room: c.Room, Ticket: draw.Ticket{ID: c.Ticket, Nonce: c.Nonce}, Number: c.Number}
	if c.Announcement != nil {
		p.Announcement = *c.Announcement
	}
	if c.IssuedAt != nil {
		p.Issued = c.IssuedAt.Time
	}
	return p, nil
}

type passClaims struct {
	Event  string  `json:"event"`
	Room   int64   `json:"room,omitempty"`
	Ticket draw.ID `json:"ticket"`
	jwt.RegisteredClaims
}

// SignPass returns a pass as its holder shows it.
func (k *Keys) SignPass(p Pass) (string, error) {
	return k.signed(passType, passClaims{Event: p.Event, Room: p.Room, Ticket: p.Ticket, RegisteredClaims: jwt.RegisteredClaims{
		ID: p.ID, Subject: p.User, ExpiresAt: jwt.NewNumericDate(p.Until)}})
}

// OpenPass returns a pass that was signed here for an account and an event, and
// whose time is not over. ErrForged and ErrExpired.
func (k *Keys) OpenPass(token, event, user string, now time.Time) (Pass, error) {
	var c passClaims
	if err := k.open(token, &c, passType); err != nil {
		return Pass{}, err
	}
	switch {
	case c.Event != event || c.Subject != user || c.ExpiresAt == nil || c.ID == "":
		return Pass{}, ErrForged
	case !now.Before(c.ExpiresAt.Time):
		return Pass{}, ErrExpired
	}
	return Pass{ID: c.ID, Event: event, Room: c.Room, User: user, Ticket: c.Ticket, Until: c.ExpiresAt.Time}, nil
}

func (k *Keys) signed(kind string, c jwt.Claims) (string, error) {
	t := jwt.NewWithClaims(jwt.SigningMethodES256, c)
	t.Header["typ"], t.Header["kid"] = kind, k.id
	text, err := t.SignedString(k.sign)
	if err != nil {
		return "", fmt.Errorf("waitingroom: sign: %w", err)
	}
	return text, nil
}

// tokenLimit is longer than any token of ours.
const tokenLimit = 2 << 10

// open reads a token of ours. Its times are the caller's to judge.
func (k *Keys) open(token string, c jwt.Claims, kinds ...string) error {
	if len(token) > tokenLimit {
		return ErrForged
	}
	_, err := jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodES256.Alg()}), jwt.WithoutClaimsValidation(), jwt.WithStrictDecoding()).
		ParseWithClaims(token, c, func(t *jwt.Token) (any, error) {
			id, _ := t.Header["kid"].(string)
			key := k.public[id]
			kind, _ := t.Header["typ"].(string)
			if !slices.Contains(kinds, kind) || key == nil {
				return nil, ErrForged
			}
			return key, nil
		})
	if err != nil {
		return ErrForged
	}
	return nil
}
