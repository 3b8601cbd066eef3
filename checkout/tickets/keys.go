package tickets

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// version begins every payload: Seatcast, first form.
const version = "SC1"

// maxPayload is longer than any we make.
const maxPayload = 512

// Keys sign tickets, and tell whether a ticket was signed with one of them.
type Keys struct {
	sign ed25519.PrivateKey
	id   string
	all  []PublicKey // the one that signs first
}

// PublicKey is a key that tickets may be signed with.
type PublicKey struct {
	ID  string // what a payload calls it
	Key ed25519.PublicKey
}

// ParseKeys reads keys, separated by commas: "ed25519:<base64 of the 32-byte
// seed>" or "public:<base64 of the 32-byte public key>". The first seed signs, and
// tickets signed with any of them are accepted. Without a seed the key that signs
// is derived from secret, and is the same wherever that is. No error repeats a key.
func ParseKeys(text, secret string) (*Keys, error) {
	k := &Keys{}
	for part := range strings.SplitSeq(text, ",") {
		if text == "" {
			break
		}
		kind, encoded, _ := strings.Cut(strings.TrimSpace(part), ":")
		raw, err := decodeBase64(encoded)
		switch {
		case kind != "ed25519" && kind != "public":
			return nil, errors.New("tickets: a key is ed25519:<base64 of the seed> or public:<base64 of the public key>")
		case err != nil || len(raw) != ed25519.SeedSize: // a public key is as long
			return nil, fmt.Errorf("tickets: what follows %q is not the base64 of %d bytes", kind+":", ed25519.SeedSize)
		case kind == "ed25519":
			k.add(ed25519.NewKeyFromSeed(raw))
		default:
			k.accept(raw)
		}
	}
	if k.sign == nil {
		seed, err := hkdf.Key(sha256.New, []byte(secret), nil, "seatcast ticket key", ed25519.SeedSize)
		if err != nil {
			return nil, fmt.Errorf("tickets: derive a key: %w", err)
		}
		k.add(ed25519.NewKeyFromSeed(seed))
	}
	return k, nil
}

func (k *Keys) add(key ed25519.PrivateKey) {
	public := key.Public().(ed25519.PublicKey)
	if k.sign == nil {
		k.sign, k.id = key, idOf(public)
	}
	k.accept(public)
}

func (k *Keys) accept(key ed25519.PublicKey) {
	one := PublicKey{ID: idOf(key), Key: key}
	if slices.ContainsFunc(k.all, func(p PublicKey) bool { return p.ID == one.ID }) {
		return
	}
	if one.ID == k.id {
		k.all = slices.Insert(k.all, 0, one)
		return
	}
	k.all = append(k.all, one)
}

// idOf names a key by itself: 48 bits of its hash, to tell some few apart.
func idOf(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return base64.RawURLEncoding.EncodeToString(sum[:6])
}

// Public are the keys that tickets may be signed with, the one that signs first.
func (k *Keys) Public() []PublicKey { return slices.Clone(k.all) }

// Sign returns what the QR code of a ticket says:
// SC1.<ticket>.<event>.<key>.<signature of all before the last point>.
func (k *Keys) Sign(ticket, event string) string {
	said := strings.Join([]string{version, ticket, event, k.id}, ".")
	return said + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(k.sign, []byte(said)))
}

// strict refuses a second spelling of the same signature.
var strict = base64.RawURLEncoding.Strict()

// Open returns the ticket and the event of a payload. ErrForged when it was not
// signed here or is not as it was, ErrKey when it names a key that is none of these.
func (k *Keys) Open(payload string) (ticket, event string, err error) {
	parts := strings.Split(payload, ".")
	if len(payload) > maxPayload || len(parts) != 5 || parts[0] != version {
		return "", "", ErrForged
	}
	signature, err := strict.DecodeString(parts[4])
	if err != nil {
		return "", "", ErrForged
	}
	at := slices.IndexFunc(k.all, func(p PublicKey) bool { return p.ID == parts[3] })
	if at < 0 {
		return "", "", ErrKey
	}
	if !ed25519.Verify(k.all[at].Key, []byte(payload[:strings.LastIndexByte(payload, '.')]), signature) {
		return "", "", ErrForged
	}
	return parts[1], parts[2], nil
}

// decodeBase64 takes either alphabet, padded or not.
func decodeBase64(s string) ([]byte, error) {
	s = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
	return base64.RawStdEncoding.DecodeString(s)
}
