package draw

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Terms are what is announced of a draw.
type Terms struct {
	Event      string    `json:"event"`
	Closes     time.Time `json:"closes"`     // when the list freezes
	Commitment Digest    `json:"commitment"` // SHA-256 of the seed
	External   External  `json:"external"`
}

// Announcement is what the house says before a room opens, and cannot take back.
// It is a text, of compact JSON, which is never written anew: so its digest stays
// what it is though a release reads more or less out of it than the one before.
type Announcement struct {
	Terms
	text string
}

// Announce returns the announcement of a draw.
func Announce(t Terms) Announcement {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // it has nothing that JSON cannot say
	}
	return Announcement{t, string(text)}
}

// Text is the announcement as it is published.
func (a Announcement) Text() string { return a.text }

// Digest names the announcement: every receipt carries it, so the house cannot
// have announced something else. It is the SHA-256 of its text.
func (a Announcement) Digest() Digest { return sha256.Sum256([]byte(a.text)) }

// MarshalJSON implements json.Marshaler.
func (a Announcement) MarshalJSON() ([]byte, error) { return []byte(a.text), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (a *Announcement) UnmarshalJSON(text []byte) error {
	a.text = string(text)
	return json.Unmarshal(text, &a.Terms)
}

// Record is all that is published of a draw but its tickets.
type Record struct {
	Announcement Announcement `json:"announcement"`

	Tickets int    `json:"tickets"` // on the list
	Root    Digest `json:"root"`
	Seed    Digest `json:"seed"`           // told after the root
	Told    Hex    `json:"told,omitempty"` // by the external source, after the root
	Key     Digest `json:"key"`
}

// What is wrong with a draw.
var (
	ErrSeed      = errors.New("draw: the seed is not the one that was announced")
	ErrExternal  = errors.New("draw: the external value is not what was announced")
	ErrEarly     = errors.New("draw: the external value could be known before the list closed")
	ErrRoot      = errors.New("draw: the tickets are not those of the root")
	ErrKey       = errors.New("draw: the key is not made of seed, external value and root")
	ErrRank      = errors.New("draw: a rank is not the one its score gives")
	ErrNotListed = errors.New("draw: the ticket is not on the list")
)

// New draws: the seed and the external value are told, and give every ticket of
// a frozen list its rank. ErrSeed, ErrExternal and ErrEarly.
func New(a Announcement, l *List, seed Digest, told []byte) (Record, error) {
	r := Record{Announcement: a, Tickets: l.Len(), Root: l.Root(), Seed: seed, Told: told}
	value, err := r.value()
	if err != nil {
		return Record{}, err
	}
	r.Key = Key(seed, value, r.Root)
	return r, nil
}

// value checks seed and external value against what was announced, and returns
// the external one.
func (r *Record) value() ([]byte, error) {
	a := r.Announcement
	if sha256.Sum256(r.Seed[:]) != a.Commitment {
		return nil, ErrSeed
	}
	if err := a.External.After(a.Closes); err != nil {
		return nil, err
	}
	return a.External.Value(r.Told)
}

// Verify checks a record and its list, with the ranks that were published in
// the order of the list. ErrSeed, ErrExternal, ErrEarly, ErrRoot, ErrKey and
// ErrRank.
func (r *Record) Verify(l *List, ranks []int) error {
	value, err := r.value()
	if err != nil {
		return err
	}
	if l.Len() != r.Tickets || l.Root() != r.Root {
		return fmt.Errorf("%w: %d tickets of root %v, and published are %d of root %v", ErrRoot, l.Len(), l.Root(), r.Tickets, r.Root)
	}
	if r.Key != Key(r.Seed, value, r.Root) {
		return ErrKey
	}
	for n, rank := range l.Ranks(r.Key) {
		if n >= len(ranks) || ranks[n] != rank {
			return fmt.Errorf("%w: ticket %v is %d", ErrRank, l.tickets[n].ID, rank)
		}
	}
	return nil
}

// Shard is what a fan downloads: the tickets that begin as theirs does, with
// their ranks, and what leads from them to the root.
type Shard struct {
	Shard   int      `json:"shard"`
	Tickets []Ranked `json:"tickets"`
	Path    []Digest `json:"path"`
}

// Ranked is a ticket with its rank: ["ticket","nonce",rank] in JSON.
type Ranked struct {
	Ticket
	Rank int
}

// MarshalJSON implements json.Marshaler.
func (r Ranked) MarshalJSON() ([]byte, error) { return json.Marshal([3]any{r.ID, r.Nonce, r.Rank}) }

// UnmarshalJSON implements json.Unmarshaler.
func (r *Ranked) UnmarshalJSON(text []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	if len(parts) != 3 {
		return errors.New("draw: a line is not [ticket, nonce, rank]")
	}
	for n, to := range []any{&r.ID, &r.Nonce, &r.Rank} {
		if err := json.Unmarshal(parts[n], to); err != nil {
			return err
		}
	}
	return nil
}

// Shards returns all shards, the ranks being in the order of the list.
func (l *List) Shards(ranks []int) []Shard {
	all := make([]Shard, len(l.storeys[0]))
	for n := range all {
		from, to := l.bounds(n)
		s := Shard{Shard: n, Tickets: make([]Ranked, 0, to-from), Path: l.path(n)}
		for at := from; at < to; at++ {
			s.Tickets = append(s.Tickets, Ranked{l.tickets[at], ranks[at]})
		}
		all[n] = s
	}
	return all
}

// Find checks that a ticket is in a shard of the record's list, and returns its
// rank. Whether the rank is right only the whole list can tell. ErrRoot and
// ErrNotListed.
func (r *Record) Find(s Shard, id ID) (rank int, err error) {
	tickets := make([]Ticket, len(s.Tickets))
	for n, t := range s.Tickets {
		tickets[n] = t.Ticket
	}
	root := shardRoot(tickets)
	if len(s.Path) != shardBits(r.Tickets) || climb(leaf(root[:]...), s.Shard, s.Path) != r.Root {
		return 0, ErrRoot
	}
	for _, t := range s.Tickets {
		if t.ID == id && ShardOf(id, r.Tickets) == s.Shard {
			return t.Rank, nil
		}
	}
	return 0, ErrNotListed
}

// Hex is bytes, hex as text.
type Hex []byte

func (h Hex) String() string { return hex.EncodeToString(h) }

// MarshalText implements encoding.TextMarshaler.
func (h Hex) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hex) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil {
		return fmt.Errorf("draw: %q is not hex", text)
	}
	*h = b
	return nil
}
