package catalog

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// slug turns a name into an event id: accents dropped, everything but letters
// a-z and digits a dash. A name without any of these becomes "event".
func slug(name string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(strings.ToLower(name)) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case unicode.Is(unicode.Mn, r), r == '\'', r == '’':
			// part of the letter before it, or of the word around it
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	id := b.String()
	id = strings.Trim(id[:min(len(id), 63)], "-")
	if id == "" {
		return "event"
	}
	return id
}
