package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// patience is how long a page may take on a busy machine.
const patience = 30 * time.Second

var browser struct {
	once sync.Once
	ctx  context.Context
	stop func()
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if browser.stop != nil {
		browser.stop()
	}
	os.Exit(code)
}

// startBrowser starts the one browser the tests of this binary share.
func startBrowser() {
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		browser.err = fmt.Errorf("no chromium in PATH")
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

// page is a tab of a real browser.
type page struct {
	t    *testing.T
	ctx  context.Context
	told struct {
		sync.Mutex
		all []string
	}
}

// open opens url in a tab of its own. Without a browser the test is skipped at
// a desk and fails in CI.
func open(t *testing.T, url string) *page {
	t.Helper()
	browser.once.Do(startBrowser)
	if browser.err != nil {
		if os.Getenv("CI") == "" {
			t.Skip(browser.err)
		}
		t.Fatal(browser.err)
	}
	ctx, closeTab := chromedp.NewContext(browser.ctx)
	t.Cleanup(closeTab)
	p := &page{t: t, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil { // the tab lives as long as this context
		t.Fatal(err)
	}
	listen(p)
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := chromedp.Do(limited, chromedp.Navigate(url)); err != nil {
		t.Fatal(err)
	}
	return p
}

// listen keeps what the page writes to its console; errors are ours to judge.
func listen(p *page) {
	messages := chromedp.Console(p.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m, err := range messages {
			if err != nil {
				return
			}
			p.told.Lock()
			p.told.all = append(p.told.all, m.String())
			p.told.Unlock()
		}
	}()
	p.t.Cleanup(func() {
		if err := chromedp.Cancel(p.ctx); err == nil {
			<-done
		}
	})
}

// console is what the page has written so far.
func (p *page) console() string {
	p.told.Lock()
	defer p.told.Unlock()
	return strings.Join(p.told.all, "\n")
}

// eval runs the body of an async function and decodes what it returns.
func eval[T any](p *page, body string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	raw, err := chromedp.Run(ctx, chromedp.Evaluate[[]byte]("(async () => {"+body+"})()", chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s\n%v\nconsole: %s", body, err, p.console())
	}
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		p.t.Fatalf("%s gave %s: %v", body, raw, err)
	}
	return v
}

// modules begins a body with an import function for the client's own modules.
const modules = `const use = (name) => import(new URL(name, document.querySelector('script[type=module]').src));
`

// until waits for a condition in the page.
func (p *page) until(what, condition string) {
	p.t.Helper()
	ok := eval[bool](p, fmt.Sprintf(`
		for (const end = Date.now() + %d; Date.now() < end;) {
			if (%s) return true;
			await new Promise((f) => setTimeout(f, 20));
		}
		return false;`, (patience-5*time.Second).Milliseconds(), condition))
	if !ok {
		p.t.Fatalf("never: %s\npage: %s\nconsole: %s", what, eval[string](p, `return document.body.innerText`), p.console())
	}
}
