package waitingroom_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/internal/browsertest"
	"seatcast/waitingroom"
	"seatcast/waitingroom/draw"
	"seatcast/web"
)

// published is a draw as a house shows it.
type published struct {
	rec     draw.Record
	tickets []draw.Ticket
	ranks   []int // nil: those of the key
	twice   bool  // first the true announcement, then its own
}

// site serves the page of the box's line to a browser, whose users sign in by
// saying who they are. Instead of the true draw it shows what lie says, if it does.
func (b *box) site(lie *atomic.Pointer[published]) string {
	e := web.New(web.Options{Log: quiet})
	web.MountPages(e)
	e.POST("/v1/demo/session", func(c echo.Context) error {
		var body struct{ User string }
		if err := c.Bind(&body); err != nil {
			return err
		}
		return c.JSON(http.StatusOK, map[string]string{"token": body.User})
	})
	e.Any("/v1/*", func(c echo.Context) error {
		r := c.Request()
		r.Header.Set("X-User", strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		p := lie.Load()
		if p != nil {
			r.URL.RawQuery = "" // the key is another one
		}
		w := httptest.NewRecorder()
		b.handler.ServeHTTP(w, r)
		body := w.Body.Bytes()
		if p != nil && w.Code == http.StatusOK && strings.Contains(r.URL.Path, "/draw") {
			body = b.lies(p, strings.TrimPrefix(r.URL.Path, b.queue("/draw")), body)
		}
		c.Response().Header().Set("Cache-Control", "no-store") // the same browser sees the truth and lies
		return c.Blob(w.Code, w.Header().Get("Content-Type"), body)
	})
	s := httptest.NewServer(e)
	b.Cleanup(s.Close)
	return s.URL
}

// lies is a call's answer by a house that shows another draw.
func (b *box) lies(p *published, call string, truth []byte) []byte {
	l, err := draw.Freeze(p.tickets)
	b.must(err)
	ranks := p.ranks
	if ranks == nil {
		ranks = l.Ranks(p.rec.Key)
	}
	encode := func(v any) []byte {
		text, err := json.Marshal(v)
		b.must(err)
		return text
	}
	switch {
	case call == "/list":
		var file bytes.Buffer
		b.must(draw.Write(&file, p.rec, l, ranks))
		return file.Bytes()
	case call != "":
		n, err := strconv.Atoi(strings.TrimPrefix(call, "/shards/"))
		b.must(err)
		return encode(l.Shards(ranks)[n])
	}
	var all map[string]json.RawMessage
	b.must(json.Unmarshal(truth, &all))
	announced := all["announcement"]
	for name, v := range map[string]any{"announcement": p.rec.Announcement, "tickets": p.rec.Tickets, "root": p.rec.Root,
		"seed": p.rec.Seed, "told": p.rec.Told, "key": p.rec.Key} {
		all[name] = encode(v)
	}
	if p.twice {
		return slices.Concat([]byte(`{"announcement":`), announced, []byte{','}, encode(all)[1:])
	}
	return encode(all)
}

// rekeyed is a draw whose key follows from what it says.
func (p published) rekeyed() published {
	p.rec.Key = draw.Key(p.rec.Seed, p.rec.Told, p.rec.Root)
	return p
}

// reannounced is a draw whose announcement has the seed that it tells.
func reannounced(p published) published {
	terms := p.rec.Announcement.Terms
	terms.Commitment = sha256.Sum256(p.rec.Seed[:])
	p.rec.Announcement = draw.Announce(terms)
	return p
}

func TestThePageChecksADrawAndShowsEveryCheat(t *testing.T) {
	b := newBox(t)
	theirs := draw.Digest{7}
	commitment := draw.Digest(sha256.Sum256(theirs[:]))
	var lie atomic.Pointer[published]
	page := browsertest.Open(t, b.site(&lie)) // before the list is open: a browser takes its time to start
	p := plan(0, 1, 10)
	p.Closes = time.Now().Add(30 * time.Second)
	p.Opens = p.Closes.Add(time.Hour)
	p.External = draw.External{Kind: draw.Committer, Name: "the newspaper", Commitment: &commitment}
	b.put(p)
	browsertest.Eval[int](page, fmt.Sprintf(`setTimeout(() => location.assign('/queue/%s')); return 0;`, b.event))
	page.Until("it can be joined", `location.pathname.startsWith('/queue/') && !document.getElementById('join').hidden`)
	browsertest.Eval[int](page, `document.getElementById('join').click(); return 0;`)
	page.Until("the receipt is kept", `Object.keys(localStorage).some((k) => k.startsWith('seatcast.receipt.')) && document.getElementById('check').hidden`)
	for n := range 600 {
		b.joins(fmt.Sprint("fan-", n), "")
	}
	b.run(b.rooms)
	time.Sleep(time.Until(p.Closes))
	b.until("the list is frozen", func(f frame) bool { return f.State == waitingroom.Closed && f.Draw.State == "frozen" })
	if a := b.admin("POST", "/draw", fmt.Sprintf(`{"told":"%v"}`, theirs)); a.Status != 200 {
		t.Fatalf("the value is told: %d %s", a.Status, a.Body)
	}
	b.until("the draw is held", func(f frame) bool { return f.Draw != nil && f.Draw.State == "drawn" })
	page.Until("the place is shown, and can be checked", `!document.getElementById('mine').hidden && !document.getElementById('check').hidden`)

	const receipt = `JSON.parse(localStorage[Object.keys(localStorage).find((k) => k.startsWith('seatcast.receipt.'))])`
	const press = `document.getElementById('check-mine').focus(); document.getElementById('check-mine').click();`
	checks := func(what, says, lists string) {
		t.Helper()
		browsertest.Eval[int](page, press+`document.getElementById('check-mine').click(); document.getElementById('check-all').click(); return 0;`)
		page.Until(what, fmt.Sprintf(`document.getElementById('check-mine').ariaDisabled === 'false' && document.activeElement.id === 'check-mine' && document.getElementById('check-says').innerText.includes(%q)
			&& document.getElementById('checks').innerText.includes(%q)`, says, lists))
	}
	checks("nothing is wrong", "9 checks passed, none failed", "The whole list gives you the place")
	if open := browsertest.Eval[string](page, `return document.querySelector('#checks .open').innerText`); !strings.Contains(open, "the newspaper") {
		t.Errorf("what was not checked: %q", open)
	}

	offers := func(mine string) {
		browsertest.Eval[int](page, browsertest.Modules+fmt.Sprintf(`
			const [{ Check }, { Keep }] = await Promise.all([use('check.js'), use('line.js')]);
			const { ticket } = %s;
			new Check('/v1/queue/%[2]s', new Keep(%[2]q)).offer(undefined, %[3]s);
			return 0;`, receipt, b.event, mine))
	}
	offers(`{ ticket }`)
	checks("to who is inside, or does not know the place yet, nothing is wrong", "9 checks passed, none failed", "The whole list gives you the place")
	offers(`{ ticket, number: 60001 }`)
	checks("nor to who came back behind the list", "8 checks passed, none failed", "It is that of your return")
	offers(`{ ticket, number: Number(document.getElementById('ahead').innerText) + 1 }`)
	checks("her own place is right", "9 checks passed, none failed", "which is the one you were shown")
	const room = browsertest.Modules + `
		const keep = new (await use('line.js')).Keep(decodeURIComponent(location.pathname.split('/')[2]));
		const [head, body, signature] = keep.place.place.split('.');
		const another = 'e30.' + btoa(JSON.stringify({ room: 5 })) + '.e30';
		const key = Object.keys(localStorage).find((k) => k.startsWith('seatcast.receipt.'));
		window.first ??= [keep.place, localStorage[key]];
		`
	browsertest.Eval[int](page, room+`keep.place = { ...keep.place, place: another }; return 0;`)
	checks("a receipt of an earlier line does not speak of this draw", "7 checks passed, none failed", "is of an earlier line of this event")
	browsertest.Eval[int](page, room+`keep.place = first[0]; localStorage[key] = JSON.stringify({ ...JSON.parse(first[1]), before: another }); return 0;`)
	checks("nor does one that came before the receipt", "9 checks passed, none failed", "An earlier line of this event had a draw of its own")
	browsertest.Eval[int](page, room+`localStorage[key] = JSON.stringify({ ...JSON.parse(first[1]), before: keep.place.place }); return 0;`)
	checks("two announcements in one line", "Something is wrong with this draw", "the house had announced something else")
	browsertest.Eval[int](page, room+`localStorage[key] = first[1]; return 0;`)

	rec, l, ranks, err := draw.Read(strings.NewReader(b.send("GET", "", b.queue("/draw/list"), "").Body))
	b.must(err)
	var tickets []draw.Ticket
	for _, ticket := range l.All() {
		tickets = append(tickets, ticket)
	}
	mine := browsertest.Eval[draw.ID](page, `return `+receipt+`.ticket`)
	_, at, listed := l.Find(mine)
	if !listed {
		t.Fatal("the browser's ticket is not on the list")
	}
	truth := published{rec: rec, tickets: tickets}
	other := func(p published) published {
		p.rec.Seed = draw.Digest{1, 2, 3}
		return p.rekeyed()
	}
	for _, c := range []struct {
		what  string
		cheat func(p published) published
		lists string
	}{
		{"another seed, and all that follows from it", other, "The secret number is not the one"},
		{"another seed, and another announcement", func(p published) published {
			return reannounced(other(p))
		}, "is not what your receipt names"},
		{"another seed, and two announcements", func(p published) published {
			p = reannounced(other(p))
			p.twice = true
			return p
		}, "The secret number is not the one"},
		{"another number of the newspaper", func(p published) published {
			p.rec.Told = bytes.Repeat([]byte{9}, 32)
			return p.rekeyed()
		}, "The number of somebody else is not the one"},
		{"a key of its own", func(p published) published {
			p.rec.Key = draw.Digest{5}
			return p
		}, "The key of the draw is not made of"},
		{"the ticket dropped after the freeze", func(p published) published {
			p.tickets = slices.Delete(slices.Clone(tickets), at, at+1)
			return p
		}, "does not lead to the fingerprint"},
		{"the ticket dropped before the freeze", func(p published) published {
			p.tickets = slices.Delete(slices.Clone(tickets), at, at+1)
			short, err := draw.Freeze(p.tickets)
			b.must(err)
			p.rec.Root, p.rec.Tickets = short.Root(), short.Len()
			return p.rekeyed()
		}, "Your ticket is not on the list, and you have a receipt for it"},
		{"a ticket swapped for a friend's", func(p published) published {
			p.tickets = slices.Clone(tickets)
			p.tickets[(at+1)%len(tickets)].Nonce = draw.ID{1}
			return p
		}, "some were added, dropped or swapped"},
		{"two ranks swapped", func(p published) published {
			p.ranks = slices.Clone(ranks)
			p.ranks[at], p.ranks[(at+300)%len(ranks)] = ranks[(at+300)%len(ranks)], ranks[at]
			return p
		}, "are not in the order of their scores"},
		{"no rank beside the ticket", func(p published) published {
			p.ranks = slices.Clone(ranks)
			p.ranks[at] = 0
			return p
		}, "there is no place beside it"},
		{"a beacon of its own", func(p published) published {
			terms := p.rec.Announcement.Terms
			terms.External = draw.External{Kind: draw.Drand, PublicKey: draw.Hex{1, 2, 3}, Genesis: terms.Closes.Unix() + 60, Period: 3, Round: 1}
			p.rec.Announcement, p.rec.Told = draw.Announce(terms), draw.Hex{7}
			value := sha256.Sum256(p.rec.Told)
			p.rec.Key = draw.Key(p.rec.Seed, value[:], p.rec.Root)
			return p
		}, "is the word of whoever has the key 010203"},
	} {
		forged := c.cheat(truth)
		lie.Store(&forged)
		checks(c.what, "Something is wrong with this draw", c.lists)
	}

	if right := browsertest.Eval[string](page, `return [...document.querySelectorAll('#checks .right')].map((li) => li.innerText).join()`); strings.Contains(right, "beacon") {
		t.Errorf("of an unknown beacon it says: %s", right)
	}

	if console := page.Console(); strings.Contains(console, "Content Security Policy") {
		t.Errorf("console: %s", console)
	}
}
