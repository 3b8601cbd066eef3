package web

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// Key is a key of our own: it signs session tokens and checks them.
type Key struct {
	method       jwt.SigningMethod
	sign, verify any
}

// ParseKey reads "hs256:<base64 of at least 32 bytes>" or "ed25519:<base64 of
// the 32-byte seed>". No error repeats the key.
func ParseKey(text string) (*Key, error) {
	kind, encoded, _ := strings.Cut(text, ":")
	raw, err := decodeBase64(encoded)
	switch {
	case kind != "hs256" && kind != "ed25519":
		return nil, errors.New("web: a session key is hs256:<base64> or ed25519:<base64>")
	case err != nil:
		return nil, fmt.Errorf("web: the key after %q is not base64", kind+":")
	case kind == "hs256" && len(raw) >= 32:
		return &Key{method: jwt.SigningMethodHS256, sign: raw, verify: raw}, nil
	case kind == "hs256":
		return nil, fmt.Errorf("web: an hs256 key has at least 32 bytes, not %d", len(raw))
	case kind == "ed25519" && len(raw) == ed25519.SeedSize:
		private := ed25519.NewKeyFromSeed(raw)
		return &Key{method: jwt.SigningMethodEdDSA, sign: private, verify: private.Public()}, nil
	default:
		return nil, fmt.Errorf("web: an ed25519 seed has 32 bytes, not %d", len(raw))
	}
}

// GenerateKey returns a new hs256 key as ParseKey reads it.
func GenerateKey() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails: it ends the program instead
	return "hs256:" + base64.RawURLEncoding.EncodeToString(raw)
}

// decodeBase64 takes either alphabet, padded or not.
func decodeBase64(s string) ([]byte, error) {
	s = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
	return base64.RawStdEncoding.DecodeString(s)
}
