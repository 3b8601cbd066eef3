package web

import (
	"crypto/sha256"
	"sync"
	"time"
)

// remembered knows the bearers of tokens verified before, by the hash of the
// token. It is bounded: entries live in two generations of half the bound
// each; when the young one is full it becomes the old one, and what the old
// one held and nobody used since is forgotten.
type remembered struct {
	half int

	mu         sync.Mutex
	young, old map[[sha256.Size]byte]session
}

type session struct {
	bearer
	ends time.Time
}

// bearer is what a token says of who sends it.
type bearer struct {
	user              string
	operator, scanner bool
}

func newRemembered(most int) *remembered {
	return &remembered{half: max(1, most/2), young: map[[sha256.Size]byte]session{}}
}

// hashOf needs no memory for a token of ordinary length.
func hashOf(token string) [sha256.Size]byte {
	return sha256.Sum256(append(make([]byte, 0, 1024), token...))
}

// bearer returns whom token is known to speak for at now.
func (r *remembered) bearer(token string, now time.Time) (bearer, bool) {
	key := hashOf(token)
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.young[key]
	if !ok {
		if s, ok = r.old[key]; !ok {
			return bearer{}, false
		}
		delete(r.old, key)
		r.addLocked(key, s)
	}
	if !now.Before(s.ends) {
		delete(r.young, key)
		return bearer{}, false
	}
	return s.bearer, true
}

// put remembers token as b's until it ends.
func (r *remembered) put(token string, b bearer, ends, now time.Time) {
	if !now.Before(ends) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addLocked(hashOf(token), session{b, ends})
}

func (r *remembered) addLocked(key [sha256.Size]byte, s session) {
	if len(r.young) >= r.half {
		r.young, r.old = make(map[[sha256.Size]byte]session, r.half), r.young
	}
	r.young[key] = s
}
