package tickets_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"seatcast/checkout/tickets"
)

const secret = "a server key of at least thirty-two letters"

// seed is a key as the environment has it, made of one letter.
func seed(letter string) string {
	return "ed25519:" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, ed25519.SeedSize)))
}

func keysOf(t *testing.T, text string) *tickets.Keys {
	t.Helper()
	k, err := tickets.ParseKeys(text, secret)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func opens(t *testing.T, k *tickets.Keys, payload string) {
	t.Helper()
	if ticket, event, err := k.Open(payload); ticket != "tk_abc" || event != "opera" || err != nil {
		t.Errorf("%s is ticket %q of %q, %v", payload, ticket, event, err)
	}
}

func TestATicketIsReadByWhoeverHasThePublicKeyAlone(t *testing.T) {
	k := keysOf(t, seed("a"))
	payload := k.Sign("tk_abc", "opera")
	opens(t, k, payload)
	if len(payload) > 150 {
		t.Errorf("%d letters are many for a QR code", len(payload))
	}
	parts := strings.Split(payload, ".")
	signature, err := base64.RawURLEncoding.DecodeString(parts[4])
	if err != nil {
		t.Fatal(err)
	}
	public := k.Public()
	if len(public) != 1 || public[0].ID != parts[3] || !ed25519.Verify(public[0].Key, []byte(strings.Join(parts[:4], ".")), signature) {
		t.Errorf("%s does not verify with %v", payload, public)
	}
}

func TestNoLetterOfATicketCanBeChanged(t *testing.T) {
	k := keysOf(t, seed("a"))
	payload := k.Sign("tk_abc", "opera")
	for at := range len(payload) {
		for _, letter := range "AZaz09-_. \x00" {
			if changed := payload[:at] + string(letter) + payload[at+1:]; changed != payload {
				if ticket, event, err := k.Open(changed); err == nil {
					t.Errorf("%q passes for ticket %q of %q", changed, ticket, event)
				}
			}
		}
	}
	for _, forged := range []string{"", ".", "....", "SC1....", "tk_abc", payload + ".", payload + "A", payload[:len(payload)-1], strings.Replace(payload, "SC1", "SC2", 1),
		strings.Repeat("A", 10_000), keysOf(t, seed("b")).Sign("tk_abc", "opera")} {
		if _, _, err := k.Open(forged); !errors.Is(err, tickets.ErrForged) && !errors.Is(err, tickets.ErrKey) {
			t.Errorf("%.40q: %v", forged, err)
		}
	}
}

func TestAReplacedKeyIsAcceptedAsLongAsItIsNamed(t *testing.T) {
	old := keysOf(t, seed("a"))
	payload := old.Sign("tk_abc", "opera")
	public := "public:" + base64.RawURLEncoding.EncodeToString(old.Public()[0].Key)
	for _, text := range []string{seed("b") + "," + seed("a"), seed("b") + ", " + public, public + "," + seed("b"), public} {
		k := keysOf(t, text)
		opens(t, k, payload)
		fresh := k.Sign("tk_abc", "opera")
		opens(t, k, fresh)
		if _, _, err := old.Open(fresh); !errors.Is(err, tickets.ErrKey) {
			t.Errorf("%d keys: the old one signs: %v", len(k.Public()), err)
		}
		if all := k.Public(); len(all) != 2 || !strings.Contains(fresh, "."+all[0].ID+".") {
			t.Errorf("the key that signs is not the first of %v", all)
		}
	}
	if _, _, err := keysOf(t, seed("b")).Open(payload); !errors.Is(err, tickets.ErrKey) {
		t.Errorf("a key that is not named any more: %v", err)
	}
	if twice := keysOf(t, seed("a")+","+seed("a")).Public(); len(twice) != 1 {
		t.Errorf("a key named twice is %v", twice)
	}
}

func TestWithoutAKeyEveryNodeOfOneSecretSignsAlike(t *testing.T) {
	one, same := keysOf(t, ""), keysOf(t, "")
	opens(t, same, one.Sign("tk_abc", "opera"))
	other, err := tickets.ParseKeys("", secret+"!")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := other.Open(one.Sign("tk_abc", "opera")); err == nil {
		t.Error("the key does not depend on the secret")
	}
}

func TestAKeyThatCannotBeReadIsNotRepeated(t *testing.T) {
	for _, text := range []string{"hs256:c2VjcmV0", "c2VjcmV0", "ed25519:c2VjcmV0", "ed25519:c2VjcmV0!", "public:c2VjcmV0", seed("a") + ",", seed("a") + ",c2VjcmV0", ":c2VjcmV0"} {
		if _, err := tickets.ParseKeys(text, secret); err == nil || strings.Contains(err.Error(), "c2VjcmV0") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
