package waitingroom_test

import (
	"errors"
	"strings"
	"testing"

	"seatcast/waitingroom"
)

func keysOf(t testing.TB, secret string) *waitingroom.Keys {
	t.Helper()
	k, err := waitingroom.ParseKeys("", secret)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestACodeIsReadHoweverItIsTyped(t *testing.T) {
	k := keysOf(t, "a secret of the tests")
	const known = 33 // 00011…: digits people confuse
	code := k.Code("theatre", known)
	if len(code) != 20 || code != k.Code("theatre", known) {
		t.Fatalf("%q, and then %q", code, k.Code("theatre", known))
	}
	for what, typed := range map[string]string{
		"as it is":          code,
		"small":             strings.ToLower(code),
		"without groups":    strings.ReplaceAll(code, "-", ""),
		"with spaces":       "  " + strings.ReplaceAll(code, "-", " ") + "\n",
		"with long dashes":  strings.ReplaceAll(code, "-", "–"),
		"with O for 0":      strings.ReplaceAll(code, "0", "O"),
		"with l and i":      strings.Replace(strings.ReplaceAll(code, "1", "l"), "l", "I", 1),
		"in groups of ones": strings.Join(strings.Split(code, ""), " "),
	} {
		if serial, err := k.OpenCode("theatre", typed); err != nil || serial != known {
			t.Errorf("%s, %q: %d, %v", what, typed, serial, err)
		}
	}
}

func TestACodeIsOfOneEventAndOneKey(t *testing.T) {
	k := keysOf(t, "a secret of the tests")
	code := k.Code("theatre", 7)
	refused := func(what string, k *waitingroom.Keys, event, code string) {
		t.Helper()
		if serial, err := k.OpenCode(event, code); !errors.Is(err, waitingroom.ErrBadCode) {
			t.Errorf("%s, %q: %d, %v", what, code, serial, err)
		}
	}
	refused("another event's", k, "theatres", code)
	refused("of another key", keysOf(t, "another secret"), "theatre", code)
	refused("none", k, "theatre", "")
	refused("too short", k, "theatre", code[:19])
	refused("too long", k, "theatre", code+"0")
	refused("number nought", k, "theatre", k.Code("theatre", 0))
	refused("much too long", k, "theatre", strings.Repeat(" ", 100)+code)
	refused("of other letters", k, "theatre", strings.Replace(code, code[:1], "U", 1))
	for n, r := range code {
		if r == '-' {
			continue
		}
		other := "2"
		if r == '2' {
			other = "3"
		}
		refused("one digit is another", k, "theatre", code[:n]+other+code[n+1:])
	}
}

func TestCodesOfALongListAreAllDifferentAndEachItsOwn(t *testing.T) {
	k := keysOf(t, "a secret of the tests")
	all := map[string]bool{}
	for _, from := range []int{1, 1 << 20, waitingroom.LastCode - 999} {
		for serial := from; serial < from+1000; serial++ {
			code := k.Code("theatre", serial)
			if got, err := k.OpenCode("theatre", code); err != nil || got != serial || all[code] {
				t.Fatalf("%d is %q, which is of %d, %v", serial, code, got, err)
			}
			all[code] = true
		}
	}
}

// What opens is the code of its number, whatever was typed.
func FuzzOpenCode(f *testing.F) {
	k := keysOf(f, "a secret of the tests")
	code := k.Code("theatre", 7)
	for _, text := range []string{"", code, strings.ToLower(code), " " + code + "\u200b", strings.ReplaceAll(code, "0", "O"), "ſ" + code[1:], "\xff" + code, strings.Repeat("-", 70)} {
		f.Add(text)
	}
	plain := strings.NewReplacer("-", "", "O", "0", "I", "1", "L", "1")
	f.Fuzz(func(t *testing.T, text string) {
		serial, err := k.OpenCode("theatre", text)
		if err != nil {
			if serial != 0 || !errors.Is(err, waitingroom.ErrBadCode) {
				t.Errorf("%q: %d, %v", text, serial, err)
			}
			return
		}
		var letters strings.Builder
		for _, r := range strings.ToUpper(text) {
			if r < 128 && (r >= '0' && r <= '9' || r >= 'A' && r <= 'Z') {
				letters.WriteRune(r)
			}
		}
		if got := plain.Replace(letters.String()); got != plain.Replace(k.Code("theatre", serial)) {
			t.Errorf("%q opens as %d, which is %s", text, serial, k.Code("theatre", serial))
		}
	})
}
