package waitingroom_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"seatcast/waitingroom"
	"seatcast/waitingroom/draw"
)

const secret = "a secret of thirty-two characters"

func keys(t *testing.T, text string) *waitingroom.Keys {
	t.Helper()
	k, err := waitingroom.ParseKeys(text, secret)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

var noon = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

func passOf(t *testing.T, k *waitingroom.Keys) string {
	t.Helper()
	token, err := k.SignPass(waitingroom.Pass{ID: "one", Event: "final", User: "ann", Ticket: draw.ID{1}, Until: noon})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestAPassIsForOneAccountAndEventAndATime(t *testing.T) {
	k := keys(t, "")
	token := passOf(t, k)
	p, err := k.OpenPass(token, "final", "ann", noon.Add(-time.Second))
	if err != nil || p.ID != "one" || p.Ticket != (draw.ID{1}) || !p.Until.Equal(noon) {
		t.Errorf("%+v, %v", p, err)
	}
	for name, c := range map[string]struct {
		token, event, user string
		now                time.Time
		want               error
	}{
		"another account's": {token, "final", "bob", noon.Add(-time.Second), waitingroom.ErrForged},
		"another event's":   {token, "semifinal", "ann", noon.Add(-time.Second), waitingroom.ErrForged},
		"its time over":     {token, "final", "ann", noon, waitingroom.ErrExpired},
		"changed":           {token[:len(token)-3] + "AAA", "final", "ann", noon.Add(-time.Second), waitingroom.ErrForged},
		"not a token":       {"x", "final", "ann", noon, waitingroom.ErrForged},
		"too long":          {token + strings.Repeat("x", 4096), "final", "ann", noon, waitingroom.ErrForged},
		"none":              {"", "final", "ann", noon, waitingroom.ErrForged},
		"unsigned":          {unsigned(t, token), "final", "ann", noon.Add(-time.Second), waitingroom.ErrForged},
		"signed with HS256": {symmetric(t, token, k), "final", "ann", noon.Add(-time.Second), waitingroom.ErrForged},
		"of another house":  {passOf(t, keys(t, fresh(t))), "final", "ann", noon.Add(-time.Second), waitingroom.ErrForged},
		"a place, no pass":  {placeOf(t, k), "final", "ann", noon.Add(-time.Second), waitingroom.ErrForged},
	} {
		if _, err := k.OpenPass(c.token, c.event, c.user, c.now); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// claimsOf are what a token says.
func claimsOf(t *testing.T, token string) (*jwt.Token, jwt.MapClaims) {
	t.Helper()
	c := jwt.MapClaims{}
	parsed, _, err := jwt.NewParser().ParseUnverified(token, c)
	if err != nil {
		t.Fatal(err)
	}
	return parsed, c
}

func resigned(t *testing.T, token string, m jwt.SigningMethod, key any) string {
	t.Helper()
	was, c := claimsOf(t, token)
	forged := jwt.NewWithClaims(m, c)
	forged.Header["typ"], forged.Header["kid"] = was.Header["typ"], was.Header["kid"]
	text, err := forged.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func unsigned(t *testing.T, token string) string {
	return resigned(t, token, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType)
}

// symmetric signs with the public key as if it were a shared secret.
func symmetric(t *testing.T, token string, k *waitingroom.Keys) string {
	for _, public := range k.Public() {
		raw, err := public.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		return resigned(t, token, jwt.SigningMethodHS256, raw)
	}
	return ""
}

// fresh is a private key as ParseKeys reads it.
func fresh(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := key.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return "es256:" + base64.StdEncoding.EncodeToString(raw)
}

func placeOf(t *testing.T, k *waitingroom.Keys) string {
	t.Helper()
	token, err := k.SignPlace(waitingroom.Place{Event: "final", Ticket: draw.Ticket{ID: draw.ID{1}, Nonce: draw.ID{2}}, Number: 7,
		Announcement: draw.Digest{3}, Issued: noon})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestAPlaceIsReadBackAndNoPassIsOne(t *testing.T) {
	k := keys(t, "")
	p, err := k.OpenPlace(placeOf(t, k))
	want := waitingroom.Place{Event: "final", Ticket: draw.Ticket{ID: draw.ID{1}, Nonce: draw.ID{2}}, Number: 7, Announcement: draw.Digest{3}, Issued: p.Issued}
	if err != nil || p != want || !p.Issued.Equal(noon) {
		t.Errorf("%+v, %v", p, err)
	}
	for name, token := range map[string]string{"a pass": passOf(t, k), "another house's": placeOf(t, keys(t, fresh(t))), "unsigned": unsigned(t, placeOf(t, k))} {
		if _, err := k.OpenPlace(token); !errors.Is(err, waitingroom.ErrForged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKeysAreReplacedWithoutEndingWhatTheOldOneSigned(t *testing.T) {
	first, second := fresh(t), fresh(t)
	was := keys(t, first)
	token := passOf(t, was)
	var public string
	for _, key := range was.Public() {
		raw, err := key.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		public = "public:" + base64.RawURLEncoding.EncodeToString(raw)
	}
	for _, text := range []string{second + "," + first, second + ", " + public} {
		k := keys(t, text)
		if _, err := k.OpenPass(token, "final", "ann", noon.Add(-time.Second)); err != nil {
			t.Errorf("what the old key signed: %v", err)
		}
		if _, err := was.OpenPass(passOf(t, k), "final", "ann", noon.Add(-time.Second)); err == nil {
			t.Error("the old key still signs")
		}
	}
	if _, err := keys(t, second).OpenPass(token, "final", "ann", noon.Add(-time.Second)); err == nil {
		t.Error("a key that was given up is accepted")
	}
	for _, bad := range []string{"es256:", "es256:AAAA", "public:AAAA", "hs256:AAAA", "x", first + ",", "es256:" + strings.Repeat("_", 43)} {
		if _, err := waitingroom.ParseKeys(bad, secret); err == nil || strings.Contains(err.Error(), "AAAA") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestAnAccountHasOneTicketInARoomAndNoOtherHasIt(t *testing.T) {
	k := keys(t, "")
	seen := map[draw.ID]string{}
	for _, event := range []string{"a", "ab", ""} {
		for _, user := range []string{"b", "", "bb", "ann"} {
			id := k.TicketOf(event, user).ID
			if id != keys(t, fresh(t)).TicketOf(event, user).ID {
				t.Error("a ticket changes with the keys")
			}
			if other, twice := seen[id]; twice {
				t.Errorf("%q %q has the ticket of %s", event, user, other)
			}
			seen[id] = event + " " + user
		}
	}
}
