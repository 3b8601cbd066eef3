package main

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"seatcast/internal/browsertest"
)

// elsewhere opens the event's page in a browser of its own.
func (h *house) elsewhere(t *testing.T, n *node, mode string) page {
	t.Helper()
	p := page{browsertest.Elsewhere(t, n.url+"/events/"+h.event), t, h}
	p.is(mode)
	return p
}

// is waits until the page says that of its map.
func (p page) is(mode string) {
	p.t.Helper()
	p.Until("the map is "+mode, fmt.Sprintf(`%q.split('|').includes(document.getElementById('live').dataset.mode) && document.getElementById('legend').innerText`, mode))
}

// via is a node as it is found behind what a test can cut.
func via(t *testing.T, n *node) (*forwarder, *node) {
	t.Helper()
	f := forward(t, "tcp", n.host())
	return f, &node{url: "http://" + f.at()}
}

func (n *node) host() string { return strings.TrimPrefix(n.url, "http://") }

// throughProxy is a node behind a proxy that answers what it does not let through.
func throughProxy(t *testing.T, n *node, stops func(r *http.Request) http.HandlerFunc) *node {
	t.Helper()
	to, err := url.Parse(n.url)
	if err != nil {
		t.Fatal(err)
	}
	pass := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }, // the page has gone
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer := stops(r); answer != nil {
			answer(w, r)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return &node{url: s.URL}
}

// keepsBack answers a stream with nothing, for as long as somebody waits for it.
func keepsBack(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func forbids(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }

func TestAPageSaysThatItsServerIsGoneAndGoesOnWithTheNextOne(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.fated("demo")
	way, front := via(t, n)
	p := h.visit(t, front, "live")
	p.list()
	p.lists(10, "available")
	n.kill()
	p.is("waiting")
	next := h.fated("demo")
	h.shopper(next, "ann").hold(h.event, "", h.seats(2)...).want(t, http.StatusCreated, "")
	way.lead("tcp", next.host())
	p.is("live")
	p.lists(2, "on hold")
}

func TestAPageSaysThatItsNetworkIsGoneForAMinuteAndGoesOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.fated("demo")
	way, front := via(t, n)
	p := h.visit(t, front, "live")
	p.list()
	p.lists(10, "available")
	way.freeze() // nothing is refused: it just never comes
	over := time.After(time.Minute)
	h.shopper(n, "ann").hold(h.event, "", h.seats(2)...).want(t, http.StatusCreated, "")
	<-over
	p.is("waiting")
	asOf := browsertest.Eval[string](p.Page, `return document.getElementById('asof').textContent`)
	p.lists(10, "available") // as of then
	way.lead("tcp", n.host())
	p.is("live")
	p.lists(2, "on hold")
	p.Until("as of now", fmt.Sprintf(`document.getElementById('asof').textContent !== %q`, asOf))
}

func TestBehindAProxyThatLetsNoStreamThroughAPageTakesWhatThereIs(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.fated("demo")
	seats := h.seats(10)
	stream := func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/live") }
	held := 0
	for _, tt := range []struct {
		name, mode string
		sockets    float64
		stops      func(r *http.Request) http.HandlerFunc
	}{
		{"streams are kept back", "live", 1, func(r *http.Request) http.HandlerFunc {
			if stream(r) {
				return keepsBack
			}
			return nil
		}},
		{"streams are forbidden", "live", 1, func(r *http.Request) http.HandlerFunc {
			if stream(r) {
				return forbids
			}
			return nil
		}},
		{"and so are sockets", "polling", 0, func(r *http.Request) http.HandlerFunc {
			if stream(r) || r.URL.Path == "/v1/ws" {
				return forbids
			}
			return nil
		}},
	} {
		p := h.visit(t, throughProxy(t, n, tt.stops), tt.mode)
		eventually(t, 10*time.Second, tt.name+": that is how it is watched", func() bool {
			return n.metric(t, "hub_sessions", `transport="ws"`) == tt.sockets && n.metric(t, "hub_sessions") == tt.sockets
		})
		h.shopper(n, "ann").hold(h.event, "", seats[held]).want(t, http.StatusCreated, "")
		held++
		p.list()
		p.lists(held, "on hold")
		p.Close()
		eventually(t, 10*time.Second, "nobody watches", func() bool { return n.metric(t, "hub_sessions") == 0 })
	}
}

func TestAPageSaysWhatItStillKnowsWithoutRedisAndRecovers(t *testing.T) {
	t.Parallel()
	h, n, p := atMap(t)
	p.list()
	ann := h.shopper(n, "ann")
	sold := ann.hold(h.event, "", h.seats(1)...).want(t, http.StatusCreated, "")
	ann.pay(sold.BookingID, "", goodCard).want(t, http.StatusCreated, "")
	p.lists(1, "sold")
	h.redis.Kill()
	p.is("late|unheld")
	h.turns(goesWithout, false, n)
	p.is("unheld")
	p.lists(1, "sold")
	p.Shot("unheld", browsertest.Desk)
	if err := h.redis.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.turns(holdsAgain, true, n)
	p.is("live")
	ann.hold(h.event, "", h.seats(3)[1:]...).want(t, http.StatusCreated, "")
	p.lists(2, "on hold")
	p.lists(1, "sold")
}

func TestTabsOfOneBrowserAreOneSessionAndTheLastOneStays(t *testing.T) {
	t.Parallel()
	h, n, first := atMap(t)
	second := h.visit(t, n, "live")
	other := h.elsewhere(t, n, "live")
	one := func(want float64) {
		t.Helper()
		eventually(t, 10*time.Second, fmt.Sprintf("%v are watching", want), func() bool { return n.metric(t, "hub_sessions") == want })
	}
	one(2)
	seats := h.seats(3)
	ann := h.shopper(n, "ann")
	first.list()
	second.list()
	ann.hold(h.event, "", seats[0]).want(t, http.StatusCreated, "")
	first.lists(1, "on hold")
	second.lists(1, "on hold")
	first.Close()
	ann.hold(h.event, "", seats[1]).want(t, http.StatusCreated, "") // while nobody may be watching
	second.lists(2, "on hold")
	second.is("live")
	one(2)
	other.Close()
	one(1)
	ann.hold(h.event, "", seats[2]).want(t, http.StatusCreated, "")
	second.lists(3, "on hold")
	second.clean()
}

// A seat held in one browser turns in another: how long after the answer, as a fan
// would see it. The bar is 300 ms; on a machine that does something else it is only told.
func TestASeatHeldInOneBrowserTurnsInTheOther(t *testing.T) {
	h := newHouse(t, plan{})
	n := h.fated("demo")
	ann, bob := h.elsewhere(t, n, "live"), h.elsewhere(t, n, "live")
	ann.list()
	bob.list()
	const seat = `document.querySelectorAll('.seats button')[0]`
	browsertest.Eval[int](ann.Page, seat+`.click(); return 0;`)
	browsertest.Eval[int](ann.Page, `
		window.answered = 0;
		new MutationObserver(() => { if (document.getElementById('panel').dataset.stage === 'held') answered ||= performance.timeOrigin + performance.now(); })
			.observe(document.getElementById('panel'), { attributes: true });
		return 0;`)
	browsertest.Eval[int](bob.Page, `
		window.turned = 0;
		new MutationObserver(() => { if (`+seat+`?.getAttribute('aria-label').endsWith('on hold')) turned ||= performance.timeOrigin + performance.now(); })
			.observe(document.getElementById('list'), { attributes: true, childList: true, subtree: true });
		return 0;`)
	const holds = 100
	var after []float64
	for range holds {
		browsertest.Eval[int](ann.Page, `answered = 0; return 0;`)
		browsertest.Eval[int](bob.Page, `turned = 0; return 0;`)
		ann.press(holdButton)
		bob.Until("it turns", `turned`)
		ann.Until("it is held", `answered`)
		after = append(after, browsertest.Eval[float64](bob.Page, `return turned`)-browsertest.Eval[float64](ann.Page, `return answered`))
		ann.press(`document.querySelector('[data-key=back]')`)
		ann.stage("picking")
		bob.lists(10, "available")
	}
	slices.Sort(after)
	at := func(share float64) float64 { return after[int(math.Ceil(share*holds))-1] }
	t.Logf("a seat held in one browser turns in the other after the answer, over %d holds: p50 %.0f ms, p95 %.0f ms, max %.0f ms", holds, at(0.5), at(0.95), at(1))
	if at(0.5) > 5000 {
		t.Errorf("half of them take longer than %.0f ms", at(0.5))
	}
}
