// Package browsertest opens pages in a real browser for tests: a headless
// Chromium that the tests of one binary share, each page a tab of its own. Tabs of
// one test share what the browser stores of a site, as a shopper's do; of what a site of
// another test has stored at the same address nothing is there. A browser that is not
// installed skips the test at a desk and fails it where CI is set in the environment.
package browsertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/chromedp"
)

// Patience is how long a page may take on a busy machine.
const Patience = time.Minute

var browser struct {
	once sync.Once
	ctx  context.Context
	stop func()
	err  error

	mu     sync.Mutex
	owners map[string]string // of sites, by their origins: which test opened each last
}

// Stop ends the browser if a test has started it. Call it when all tests have
// run.
func Stop() {
	if browser.stop != nil {
		browser.stop()
	}
}

func start() {
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		browser.err = errors.New("no chromium in PATH (Debian: apt-get install chromium)")
		return
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path))
	if os.Getuid() == 0 {
		opts = append(opts, chromedp.NoSandbox)
	}
	alloc, end := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, quit := chromedp.NewContext(alloc)
	browser.ctx, browser.stop = ctx, func() { quit(); end() }
	browser.err = chromedp.Do(ctx)
}

// Page is a tab of the browser.
type Page struct {
	t    testing.TB
	ctx  context.Context
	told struct {
		sync.Mutex
		all []string
	}
	answer atomic.Pointer[func(fetch.EventRequestPaused) error] // to what is intercepted
}

// Open opens url in a tab of its own, 1280 by 800, and returns when it has
// loaded. The tab is closed when the test ends.
func Open(t testing.TB, url string) *Page {
	t.Helper()
	return open(t, url, true, chromedp.EmulateViewport(1280, 800))
}

// OpenPhone opens url as on a phone, 390 by 844, which is touched.
func OpenPhone(t testing.TB, url string) *Page {
	t.Helper()
	return open(t, url, true, chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch))
}

// Elsewhere opens url as Open does, in a browser of its own: it shares nothing with
// the other pages, as tabs of one browser do.
func Elsewhere(t testing.TB, url string) *Page {
	t.Helper()
	return open(t, url, false, chromedp.EmulateViewport(1280, 800), chromedp.WithNewBrowserContext())
}

// open opens a tab: shared, of the browser in which what is stored stays.
func open(t testing.TB, site string, shared bool, window chromedp.Action[chromedp.Void], opts ...chromedp.ContextOption) *Page {
	t.Helper()
	browser.once.Do(start)
	if browser.err != nil {
		if os.Getenv("CI") == "" {
			t.Skip(browser.err)
		}
		t.Fatal(browser.err)
	}
	ctx, closeTab := chromedp.NewContext(browser.ctx, opts...)
	t.Cleanup(closeTab)
	p := &Page{t: t, ctx: ctx}
	if err := chromedp.Do(ctx, window); err != nil { // the tab lives as long as this context
		t.Fatal(err)
	}
	p.listen()
	if shared {
		p.owns(site)
	}
	p.do(chromedp.Navigate(site))
	return p
}

// owns has nothing be stored of a site but by this test, with its subtests: a
// port is free for another once its server is closed.
func (p *Page) owns(site string) {
	p.t.Helper()
	at, err := url.Parse(site)
	if err != nil {
		p.t.Fatal(err)
	}
	origin := at.Scheme + "://" + at.Host
	test, _, _ := strings.Cut(p.t.Name(), "/")
	browser.mu.Lock()
	defer browser.mu.Unlock()
	if browser.owners == nil {
		browser.owners = make(map[string]string)
	}
	if browser.owners[origin] == test {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	stored := storage.ClearDataForOriginParams{Origin: origin, StorageTypes: "local_storage"} // cookies are of all ports
	if _, err := chromedp.Call(ctx, storage.ClearDataForOrigin, stored); err != nil {
		p.t.Fatal(err)
	}
	browser.owners[origin] = test
}

func (p *Page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("%v\nconsole: %s", err, p.Console())
	}
}

// listen keeps what the page writes to its console; errors are the test's to
// judge.
func (p *Page) listen() {
	messages := chromedp.Console(p.ctx)
	p.following(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			p.told.Lock()
			p.told.all = append(p.told.all, m.String())
			p.told.Unlock()
		}
	})
}

// following does something beside the test until the tab is closed.
func (p *Page) following(do func()) {
	done := make(chan struct{})
	go func() { // joined by the cleanup
		defer close(done)
		do()
	}()
	p.t.Cleanup(func() {
		if err := chromedp.Cancel(p.ctx); err == nil {
			<-done
		}
	})
}

// Console is what the page has written so far, refusals of its content policy
// and calls that failed among it, a line each.
func (p *Page) Console() string {
	p.told.Lock()
	defer p.told.Unlock()
	return strings.Join(p.told.all, "\n")
}

// Picture is what the window shows now.
func (p *Page) Picture() image.Image {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		p.t.Fatal(err)
	}
	return picture
}

// Click is a click of the mouse at a point of the window.
func (p *Page) Click(x, y float64) {
	p.t.Helper()
	p.do(chromedp.MouseClickXY(x, y))
}

// Tap is a tap of a finger at a point of the window.
func (p *Page) Tap(x, y float64) {
	p.t.Helper()
	p.do(chromedp.TapXY(x, y))
}

// Keys are pressed one after the other, where the focus is.
func (p *Page) Keys(keys string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys))
}

// Scripts has every script the page loads from an address like pattern, in which *
// is anything, be this one. Nobody else is asked for it.
func (p *Page) Scripts(pattern, script string) {
	p.t.Helper()
	p.intercept(pattern, func(r fetch.EventRequestPaused) error {
		_, err := chromedp.Call(p.ctx, fetch.FulfillRequest, fetch.FulfillRequestParams{RequestID: r.RequestID, ResponseCode: 200,
			ResponseHeaders: []*fetch.HeaderEntry{{Name: "Content-Type", Value: "text/javascript"}}, Body: []byte(script)})
		return err
	})
}

// Refuses has every request for an address like pattern fail.
func (p *Page) Refuses(pattern string) {
	p.t.Helper()
	p.intercept(pattern, func(r fetch.EventRequestPaused) error {
		_, err := chromedp.Call(p.ctx, fetch.FailRequest, fetch.FailRequestParams{RequestID: r.RequestID, ErrorReason: network.ErrorReasonConnectionRefused})
		return err
	})
}

// intercept answers the requests for an address like pattern, in place of what
// was said before.
func (p *Page) intercept(pattern string, answer func(fetch.EventRequestPaused) error) {
	p.t.Helper()
	first := p.answer.Swap(&answer) == nil
	if !first {
		return
	}
	requests := chromedp.Events(p.ctx, fetch.RequestPaused)
	p.following(func() {
		for r, err := range requests {
			if err != nil {
				return
			}
			_ = (*p.answer.Load())(r) // an error: the page has gone elsewhere
		}
	})
	if _, err := chromedp.Call(p.ctx, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: pattern}}}); err != nil {
		p.t.Fatal(err)
	}
}

// Close closes the tab, as a user does.
func (p *Page) Close() {
	p.t.Helper()
	if err := chromedp.Cancel(p.ctx); err != nil {
		p.t.Fatal(err)
	}
}

// ScriptTime is how long the page has run scripts so far, by the clock of its
// thread: what others do on the machine is not in it.
func (p *Page) ScriptTime() time.Duration {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}); err != nil {
		p.t.Fatal(err)
	}
	all, err := chromedp.Call(p.ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, m := range all.Metrics {
		if m.Name == "ScriptDuration" {
			return time.Duration(m.Value * float64(time.Second))
		}
	}
	p.t.Fatal("the browser does not tell how long scripts ran")
	return 0
}

// Heap is how many bytes its scripts have in use, once what nobody needs is gone.
func (p *Page) Heap() int64 {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
		p.t.Fatal(err)
	}
	used, err := chromedp.Call(p.ctx, runtime.GetHeapUsage, cdp.Empty{})
	if err != nil {
		p.t.Fatal(err)
	}
	return int64(used.UsedSize)
}

// Reload loads the page anew.
func (p *Page) Reload() {
	p.t.Helper()
	p.do(chromedp.Reload())
}

// Back goes to the page before, which may be as it was left: then it does not
// load, so wait for what it shows.
func (p *Page) Back() {
	p.t.Helper()
	Eval[int](p, `setTimeout(() => history.back()); return 0;`)
}

// Eval runs the body of an async function and decodes what it returns.
func Eval[T any](p *Page, body string) T {
	p.t.Helper()
	raw, err := p.run(body)
	if err != nil {
		p.t.Fatalf("%s\n%v\nconsole: %s", body, err, p.Console())
	}
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		p.t.Fatalf("%s gave %s: %v", body, raw, err)
	}
	return v
}

// Modules begins a body with an import function for the client's own modules.
const Modules = `const use = (name) => import(new URL(name, document.querySelector('script[type=module]').src));
`

// Until waits for a condition in the page, or in the one it goes to meanwhile.
func (p *Page) Until(what, condition string) {
	p.t.Helper()
	last := ""
	for end := time.Now().Add(Patience - 5*time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		raw, err := p.run(fmt.Sprintf(`
			for (const end = Date.now() + 5000; Date.now() < end;) {
				if (%s) return true;
				await new Promise((f) => setTimeout(f, 20));
			}
			return false;`, condition))
		if err == nil && string(raw) == "true" {
			return
		}
		if err != nil { // it went elsewhere
			last = err.Error()
		}
	}
	p.t.Fatalf("never: %s\n%s\npage: %s\nconsole: %s", what, last, Eval[string](p, `return document.body.innerText`), p.Console())
}

// run runs the body of an async function.
func (p *Page) run(body string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[[]byte]("(async () => {"+body+"})()", chromedp.EvalAwaitPromise))
}
