package live

import (
	"errors"
	"testing"
	"time"
)

func TestATicketIsGoodForItsEventUntilItExpires(t *testing.T) {
	s := newSeal([]byte("a key of this test"))
	expires := time.UnixMilli(1_796_069_426_513)
	ticket := s.issue("derby", expires, time.Time{})
	id, _, err := s.open("derby", ticket, expires.Add(-time.Millisecond))
	if err != nil || len(id) != 22 {
		t.Errorf("a moment before: %q, %v", id, err)
	}
	if _, _, err := s.open("derby", ticket, expires); !errors.Is(err, ErrTicketExpired) {
		t.Errorf("when it expires: %v, want ErrTicketExpired", err)
	}
	if _, _, err := s.open("derbyshire", ticket, expires.Add(time.Hour)); !errors.Is(err, ErrTicketForged) {
		t.Errorf("at another event: %v, want ErrTicketForged", err)
	}
	if another, _, _ := s.open("derby", s.issue("derby", expires, time.Time{}), time.Time{}); another == id {
		t.Error("two tickets are the same one")
	}
}

// A ticket passes through the hands of whoever is asked for it: each bit of it
// is signed.
func TestNoBitOfATicketCanBeChanged(t *testing.T) {
	s := newSeal([]byte("a key of this test"))
	ticket := []byte(s.issue("derby", time.Now().Add(time.Minute), time.Time{}))
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for i, was := range ticket {
		for _, letter := range []byte(letters) {
			if letter == was {
				continue
			}
			ticket[i] = letter
			if _, _, err := s.open("derby", string(ticket), time.Now()); !errors.Is(err, ErrTicketForged) {
				t.Fatalf("letter %d changed from %c to %c: %v", i, was, letter, err)
			}
		}
		ticket[i] = was
	}
}

func TestATicketSaysWhenWhatItOpensEnds(t *testing.T) {
	s := newSeal([]byte("a key of this test"))
	for _, end := range []time.Time{{}, time.UnixMilli(1_796_069_426_513)} {
		_, told, err := s.open("derby", s.issue("derby", time.Now().Add(time.Minute), end), time.Now())
		if err != nil || !told.Equal(end) {
			t.Errorf("%v, %v, want %v", told, err, end)
		}
	}
}
