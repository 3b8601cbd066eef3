package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/labstack/echo/v4"

	"seatcast/internal/browsertest"
)

func TestEveryStateOfALineCanBeLookedAtAndNobodyIsAskedAnything(t *testing.T) {
	var asked atomic.Int64
	url := client(t, func(g *echo.Group) {
		g.Any("/*", func(c echo.Context) error {
			asked.Add(1)
			return c.NoContent(http.StatusTeapot)
		})
	})
	p := browsertest.Open(t, url+"/queue/theatre?preview")
	p.Until("the states are listed", `document.querySelectorAll('#scenes a').length > 9`)
	shows := map[string]string{
		"soon": "You can join from", "join": "takes part in the draw", "code": "Your code", "drawing": "You take part in the draw",
		"drawn": "People are let in from", "far": "22,414", "near": "119", "paused": "Nobody is let in for the moment. Your place is kept.",
		"slowed": "29 minutes", "stalled": "nobody knows", "turn": "It is your turn. You have until",
		"signin": "It is your turn. Sign in to be let in.", "ended": "Your time to choose seats is over", "missing": "Your ticket is not on the list of the draw", "over": "Nobody is let in any more.", "offline": "We cannot reach the box office",
	}
	scenes := browsertest.Eval[[]string](p, browsertest.Modules+`const { SCENES } = await use('preview.js'); return Object.keys(SCENES);`)
	if len(scenes) != len(shows) {
		t.Errorf("the scenes are %v", scenes)
	}
	for _, scene := range scenes {
		browsertest.Eval[int](p, fmt.Sprintf(`setTimeout(() => location.assign('?preview=%s')); return 0;`, scene))
		p.Until(scene+" is shown", fmt.Sprintf(`location.search === '?preview=%s' && document.title.startsWith('Preview: ') && document.querySelector('main').innerText.includes(%q)
			&& document.getElementById('scenes').querySelector('[aria-current]').getAttribute('href') === '?preview=%s'`, scene, shows[scene], scene))
		said := browsertest.Eval[string](p, `
			for (const b of document.querySelectorAll('main button, main .go')) b.click();
			scrollTo(0, 1e6);
			await new Promise((f) => setTimeout(f, 50));
			const banner = document.getElementById('preview');
			const { top, height } = banner.getBoundingClientRect();
			if (top < 0 || top > 1 || height < 20) return 'the banner is not in sight';
			if (localStorage.length + sessionStorage.length > 0) return 'something is kept';
			if (document.getElementById('enter').href) return 'it leads to the sale';
			return banner.innerText;`)
		if !strings.HasPrefix(said, "Preview: all of this is invented.") {
			t.Errorf("%s: %s", scene, said)
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("%d calls were made", n)
	}
	if console := p.Console(); console != "" {
		t.Errorf("console: %s", console)
	}
}
