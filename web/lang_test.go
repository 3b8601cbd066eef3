package web_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"seatcast/internal/browsertest"
)

// fair is an API of one event that is on sale, in Berlin.
func fair(g *echo.Group) {
	g.GET("/events/search", func(c echo.Context) error {
		return c.JSONBlob(200, []byte(`{"events":[{"id":"e","name":"Evening","venue":"Hall","zone":"Europe/Berlin","startsAt":"2026-12-05T18:30:00Z","opensAt":"2020-01-01T10:00:00Z","mode":"hot","state":"open","open":true,"holds":true,"queue":true}],"next":null}`))
	})
}

func TestAPageSpeaksTheLanguageThatIsAskedForAndRemembersIt(t *testing.T) {
	url := client(t, fair)
	p := browsertest.Open(t, url)
	says := func(lang, title string) {
		t.Helper()
		p.Until(title, fmt.Sprintf(`document.querySelector('.event') && document.querySelector('h1').innerText === %q && document.documentElement.lang.split('-')[0] === %q`, title, lang))
	}
	says("en", "Events") // the browser's own
	if links := browsertest.Eval[string](p, `return [...document.querySelectorAll('.languages a')].map((a) => a.lang + ' ' + a.innerText).join()`); links != "de Deutsch" {
		t.Errorf("one can change to %s", links)
	}
	browsertest.Eval[int](p, `document.querySelector('.languages a').click(); return 0;`)
	says("de", "Veranstaltungen")
	if when := browsertest.Eval[string](p, `return document.querySelector('.event .soft').innerText`); !strings.HasPrefix(when, "Sa., 5. Dez. 2026, 19:30 (Europe/Berlin") {
		t.Errorf("in German the time is %s", when)
	}
	browsertest.Eval[int](p, `setTimeout(() => location.assign('/')); return 0;`)
	p.Until("it is remembered", `!location.search && document.querySelector('h1')?.innerText === 'Veranstaltungen'`)
	browsertest.Eval[int](p, `setTimeout(() => location.assign('/?lang=en-GB')); return 0;`)
	says("en", "Events")
	if lang := browsertest.Eval[string](p, `return document.documentElement.lang`); lang != "en-GB" {
		t.Errorf("the page is in %s", lang)
	}
	browsertest.Eval[int](p, `setTimeout(() => location.assign('/?lang=xx')); return 0;`)
	says("en", "Events")
}

func TestATimeNamesTheZoneOfTheVenueAndTheShoppersOwnWhereItDiffers(t *testing.T) {
	p := browsertest.Open(t, client(t, noAPI))
	for _, tt := range []struct{ lang, home, want string }{
		{"en-GB", "Europe/Berlin", "Sat, 5 Dec 2026, 19:30 (Europe/Berlin)"},
		{"en-GB", "Europe/Madrid", "Sat, 5 Dec 2026, 19:30 (Europe/Berlin)"}, // the same clocks
		{"en-GB", "Europe/London", "Sat, 5 Dec 2026, 19:30 (Europe/Berlin; 18:30 your time)"},
		{"en-US", "Asia/Tokyo", "Sat, Dec 5, 2026, 7:30 PM (Europe/Berlin; Sun, Dec 6, 3:30 AM your time)"},
		{"de", "Europe/London", "Sa., 5. Dez. 2026, 19:30 (Europe/Berlin; bei Ihnen 18:30)"},
	} {
		p.At(tt.home)
		got := browsertest.Eval[string](p, browsertest.Modules+fmt.Sprintf(`
			const [{ speak }, { when }] = await Promise.all([use('lang.js'), use('words.js')]);
			speak([%q]);
			return when('2026-12-05T18:30:00Z', 'Europe/Berlin').replace(/[\u00a0\u202f]/g, ' ');`, tt.lang))
		if got != tt.want {
			t.Errorf("%s at %s: %q, want %q", tt.lang, tt.home, got, tt.want)
		}
	}
}

// named finds what a page's HTML takes from the catalogue, and what it says by itself.
var (
	named = regexp.MustCompile(`data-(?:say|label)="([^"]*)"`)
	plain = regexp.MustCompile(`>([^<>]*\pL[^<>]*)<| (?:aria-label|title|placeholder|alt)="`)
)

func TestOneIsSaidInTheSingular(t *testing.T) {
	p := browsertest.Open(t, client(t, noAPI))
	got := browsertest.Eval[[]string](p, browsertest.Modules+`
		const [{ en }, { de }] = await Promise.all([use('en.js'), use('de.js')]);
		return [en, de].flatMap((t) => [1, 2].flatMap((n) => [t.queue.left(n, n), t.console.rateMeans(n)]));`)
	want := []string{
		"1 seat left, 1 waiting", "1 person is let in a minute from now on.", "2 seats left, 2 waiting", "2 people are let in a minute from now on.",
		"Noch 1 Platz, 1 wartet", "Von jetzt an wird 1 Mensch je Minute eingelassen.", "Noch 2 Plätze, 2 warten", "Von jetzt an werden 2 Menschen je Minute eingelassen.",
	}
	if !slices.Equal(got, want) {
		t.Errorf("it is said %q", got)
	}
}

func TestWordsInHTMLComeFromTheCatalogue(t *testing.T) {
	p := browsertest.Open(t, client(t, noAPI))
	files, err := filepath.Glob("app/public/*.html")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		body := regexp.MustCompile(`(?s)<noscript>.*?</noscript>`).ReplaceAllString(string(text), "") // has no catalogue
		for _, m := range plain.FindAllStringSubmatch(body, -1) {
			if m[1] != "Seatcast" && m[1] != "&nbsp;" {
				t.Errorf("%s says %q by itself", file, m[0])
			}
		}
		wants := []string{}
		for _, m := range named.FindAllStringSubmatch(body, -1) {
			wants = append(wants, m[1])
		}
		if missing := browsertest.Eval[[]string](p, browsertest.Modules+fmt.Sprintf(`
			const { t } = await use('lang.js');
			return %q.split(' ').filter((name) => typeof name.split('.').reduce((at, key) => at?.[key], t) !== 'string');`, strings.Join(wants, " "))); len(missing) > 0 {
			t.Errorf("%s wants %s, which nobody says", file, missing)
		}
	}
}
