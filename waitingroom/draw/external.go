package draw

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cloudflare/circl/sign/bls"
)

// External says where a value comes from that the house does not control.
type External struct {
	Kind Kind `json:"kind"`

	// Of a drand beacon: who signs, when its first round was, how many seconds
	// lie between two, and which one is meant.
	PublicKey Hex    `json:"publicKey,omitempty"`
	Genesis   int64  `json:"genesis,omitempty"` // Unix seconds
	Period    int64  `json:"period,omitempty"`  // seconds
	Round     uint64 `json:"round,omitempty"`

	// Of a committer: who, and the SHA-256 of their 32 bytes.
	Name       string  `json:"name,omitempty"`
	Commitment *Digest `json:"commitment,omitempty"`
}

// Kind is a kind of external value.
type Kind string

// Kinds of external values.
const (
	Drand     Kind = "drand"
	Committer Kind = "committer"
	None      Kind = "none" // whoever takes part trusts the house
)

// Quicknet is the beacon of the League of Entropy that signs each round by
// itself (scheme bls-unchained-g1-rfc9380), every 3 s: chain
// 52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971.
func Quicknet(round uint64) External {
	var key Hex
	err := key.UnmarshalText([]byte("83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a"))
	if err != nil {
		panic(err)
	}
	return External{Kind: Drand, PublicKey: key, Genesis: 1692803367, Period: 3, Round: round}
}

// known is what everybody can look up of quicknet.
var known = Quicknet(0)

// Known says that the value is that of quicknet. Of any other beacon nobody can
// tell from what is announced who runs it, and when its rounds come out.
func (e External) Known() bool { return e.Kind == Drand && bytes.Equal(e.PublicKey, known.PublicKey) }

// RoundAfter is the first round that comes out after a moment, of a beacon.
func (e External) RoundAfter(t time.Time) uint64 {
	return uint64(max(0, t.Unix()-e.Genesis)/e.Period) + 2
}

// At is when the value comes out, of a beacon.
func (e External) At() time.Time {
	return time.Unix(e.Genesis+int64(e.Round-1)*e.Period, 0)
}

// After checks that the value comes out after a moment, as it is announced: of
// quicknet by the time of its rounds that everybody knows, of any other beacon by
// what the announcement says of it. ErrEarly and ErrExternal.
func (e External) After(closes time.Time) error {
	switch e.Kind {
	case None, Committer:
		return nil
	case Drand:
		if e.Known() && (e.Genesis != known.Genesis || e.Period != known.Period) {
			return fmt.Errorf("%w: the first round of quicknet was at %d, and there is one every %d seconds", ErrExternal, known.Genesis, known.Period)
		}
		if e.Round == 0 || e.Period <= 0 || !e.At().After(closes) {
			return fmt.Errorf("%w: round %d of the beacon", ErrEarly, e.Round)
		}
		return nil
	}
	return fmt.Errorf("%w: there is no kind %q", ErrExternal, e.Kind)
}

// Value checks what the source has told and returns the 32 bytes it comes to:
// of a beacon the SHA-256 of its signature of the round. ErrExternal.
func (e External) Value(told []byte) ([]byte, error) {
	switch e.Kind {
	case None:
		if len(told) == 0 {
			return nil, nil
		}
	case Committer:
		if e.Commitment != nil && len(told) == sha256.Size && sha256.Sum256(told) == *e.Commitment {
			return told, nil
		}
	case Drand:
		var key bls.PublicKey[bls.KeyG2SigG1]
		if err := key.UnmarshalBinary(e.PublicKey); err != nil {
			return nil, fmt.Errorf("%w: its public key is none: %w", ErrExternal, err)
		}
		round := sha256.Sum256(binary.BigEndian.AppendUint64(nil, e.Round))
		if bls.Verify(&key, round[:], told) {
			value := sha256.Sum256(told)
			return value[:], nil
		}
	}
	return nil, fmt.Errorf("%w (%s)", ErrExternal, e.Kind)
}
