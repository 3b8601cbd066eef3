// Package draw puts the people who came before a sale opened into an order
// nobody could choose, and lets anybody check it afterwards from what was
// published. It does no I/O.
//
//		announce ──▶ receipts ──▶ freeze ──▶ draw ──▶ anybody verifies
//
//	 1. Before the room opens the house publishes an Announcement: the SHA-256 of
//	    a seed, when the list closes, and where a second value will come from that
//	    it does not control (External): a round of the drand beacon that comes
//	    out well after the list closes, or the seed of an independent committer,
//	    whose SHA-256 is published too. With neither, whoever takes part trusts
//	    the house.
//	 2. Whoever joins gets a ticket with a signed receipt, which names the
//	    announcement. That there is a receipt for a ticket which is not on the
//	    list proves that the house dropped it: so whoever leaves again stays on it.
//	 3. The list closes and is frozen: the Merkle root of all its tickets is
//	    published (Freeze), for people to save before the external value is out.
//	 4. Only then are the seed and the external value told, and
//
//	    key = SHA-256(seed ‖ external value ‖ root)
//	    score of a ticket = the first 52 bits of HMAC-SHA256(key, ticket)
//
//	    The lowest score is first. Of equal scores, of which there is one pair in
//	    ten thousand draws of a million tickets, the lower ticket is.
//
// So who knows the seed does not know the external value, and whoever could
// choose the external value does not know the seed; and when either is known
// the list can no longer be changed.
//
// What it cannot show: whether behind two tickets there are two people; that
// nobody who wanted to join was turned away without a receipt; that the list was
// frozen before the external value could be known, unless somebody saved the root
// by then; and that everybody was shown the same root, unless people compare it. A
// house that does not like the outcome can refuse to tell its seed, and everybody
// sees that it did.
//
// The tree is that of RFC 6962, section 2.1, in two storeys: the leaves of each
// shard (the tickets that begin with the same bits), and above them the shards.
package draw

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"slices"
)

// ID is 16 bytes, of a ticket or a nonce; 22 characters of base64url as text.
type ID [16]byte

func (id ID) String() string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// MarshalText implements encoding.TextMarshaler.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *ID) UnmarshalText(text []byte) error {
	b, err := base64.RawURLEncoding.Strict().DecodeString(string(text))
	if err != nil || len(b) != len(id) {
		return fmt.Errorf("draw: %q is not 16 bytes in base64url", text)
	}
	copy(id[:], b)
	return nil
}

// Digest is a SHA-256, or 32 bytes that go into one; hex as text.
type Digest [sha256.Size]byte

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Digest) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != len(d) {
		return fmt.Errorf("draw: %q is not 32 bytes in hex", text)
	}
	copy(d[:], b)
	return nil
}

// Ticket is one entry of the list.
type Ticket struct {
	ID    ID
	Nonce ID // its holder's own
}

// List is the tickets of a draw, frozen: ascending, no two with one ID.
type List struct {
	tickets []Ticket
	storeys [][]Digest // of the tree, from the shards up
}

// ErrTwice is a list with two tickets of one ID.
var ErrTwice = errors.New("draw: a ticket is on the list twice")

// shardSize is how many tickets a shard is about: one is what a fan downloads.
const shardSize = 256

// Freeze makes the list of a draw out of tickets in any order. ErrTwice.
func Freeze(tickets []Ticket) (*List, error) {
	l := &List{tickets: slices.Clone(tickets)}
	slices.SortFunc(l.tickets, func(a, b Ticket) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	for n := 1; n < len(l.tickets); n++ {
		if l.tickets[n].ID == l.tickets[n-1].ID {
			return nil, fmt.Errorf("%w: %v", ErrTwice, l.tickets[n].ID)
		}
	}
	shards := make([]Digest, 1<<shardBits(len(tickets)))
	for n := range shards {
		from, to := l.bounds(n)
		root := shardRoot(l.tickets[from:to])
		shards[n] = leaf(root[:]...)
	}
	l.storeys = storeys(shards)
	return l, nil
}

// Len is how many tickets there are.
func (l *List) Len() int { return len(l.tickets) }

// All are the tickets with their places on the list, from 0.
func (l *List) All() iter.Seq2[int, Ticket] { return slices.All(l.tickets) }

// Root is the Merkle root of the list.
func (l *List) Root() Digest { return l.storeys[len(l.storeys)-1][0] }

// shardBits is by how many of their first bits so many tickets are told apart:
// as few as make shards of shardSize and less, on average.
func shardBits(tickets int) int {
	if tickets <= shardSize {
		return 0
	}
	return bits.Len(uint((tickets - 1) / shardSize))
}

// ShardOf is the number of the shard a ticket is in, among so many tickets.
func ShardOf(id ID, tickets int) int {
	return int(uint64(binary.BigEndian.Uint32(id[:])) >> (32 - shardBits(tickets)))
}

// bounds are where a shard begins and ends.
func (l *List) bounds(shard int) (from, to int) {
	at := func(t Ticket, n int) int { return cmp.Compare(ShardOf(t.ID, len(l.tickets)), n) }
	from, _ = slices.BinarySearchFunc(l.tickets, shard, at)
	to, _ = slices.BinarySearchFunc(l.tickets, shard+1, at)
	return from, to
}

// Key is what a draw sorts by: SHA-256(seed ‖ external ‖ root). The external
// value is 32 bytes, or none.
func Key(seed Digest, external []byte, root Digest) Digest {
	return sha256.Sum256(slices.Concat(seed[:], external, root[:]))
}

// scoreBits are as many as a float64 holds exactly, with one to spare: scores are
// compared in Redis and in browsers too.
const scoreBits = 52

// Score is where a key puts a ticket: below 2⁵², the lowest is first.
func Score(key Digest, id ID) uint64 {
	m := hmac.New(sha256.New, key[:])
	m.Write(id[:])
	return binary.BigEndian.Uint64(m.Sum(nil)) >> (64 - scoreBits)
}

// Ranks returns the rank of every ticket, in the order of the list; the first
// is 1.
func (l *List) Ranks(key Digest) []int {
	type scored struct {
		at    int
		score uint64
	}
	all := make([]scored, len(l.tickets))
	for n, t := range l.tickets {
		all[n] = scored{n, Score(key, t.ID)}
	}
	slices.SortFunc(all, func(a, b scored) int { return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.at, b.at)) })
	ranks := make([]int, len(all))
	for rank, s := range all {
		ranks[s.at] = rank + 1
	}
	return ranks
}
