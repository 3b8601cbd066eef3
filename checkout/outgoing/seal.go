package outgoing

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
)

// secretPrefix is that of a secret as Standard Webhooks writes it; base64 follows.
const secretPrefix = "whsec_"

const secretBytes = 32

func newSecret() []byte {
	key := make([]byte, secretBytes)
	_, _ = rand.Read(key) // never fails
	return key
}

func secretText(key []byte) string { return secretPrefix + base64.StdEncoding.EncodeToString(key) }

// sealer encrypts secrets.
type sealer struct{ cipher.AEAD }

func newSealer(serverKey []byte) (sealer, error) {
	key, err := hkdf.Key(sha256.New, serverKey, nil, "seatcast webhook secrets", 32)
	if err != nil {
		return sealer{}, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return sealer{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return sealer{aead}, err
}

// seal encrypts a secret of a webhook. For another it is no good.
func (s sealer) seal(webhook string, key []byte) []byte {
	return s.Seal(nil, nil, key, []byte(webhook))
}

func (s sealer) open(webhook string, sealed []byte) ([]byte, error) {
	key, err := s.Open(nil, nil, sealed, []byte(webhook))
	if err != nil {
		return nil, errors.New("the secret cannot be read: was the server key replaced? Rotate the secret of this webhook")
	}
	return key, nil
}

// sign is the header webhook-signature of a message: a signature by each key.
func sign(keys [][]byte, id string, at time.Time, body string) string {
	all := make([]string, len(keys))
	for n, key := range keys {
		mac := hmac.New(sha256.New, key)
		_, _ = fmt.Fprintf(mac, "%s.%d.%s", id, at.Unix(), body) // never fails
		all[n] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(all, " ")
}
