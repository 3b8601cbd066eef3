package outgoing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	postTimeout = 10 * time.Second
	keptAnswer  = 1 << 10
	maxURL      = 2048
)

// parcel is what one try sends.
type parcel struct {
	Webhook, URL, Message, Body string
	Type                        Type
	Event                       string
	Sealed                      [][]byte
}

// poster sends parcels: a redirect is not followed, the environment's proxies are
// not used, and of an answer only its beginning is read.
type poster struct {
	client *http.Client
	sealer sealer
}

func newPoster(s sealer, private bool) poster {
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	if !private {
		dialer.Control = publicOnly
	}
	return poster{sealer: s, client: &http.Client{
		Timeout:       postTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 5 * time.Second,
			MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 16 << 10, DisableCompression: true,
		}}}
}

// post makes one try.
func (p poster) post(ctx context.Context, what parcel) Try {
	t := Try{At: time.Now()}
	err := p.send(ctx, what, &t)
	t.Ms = int(time.Since(t.At).Milliseconds())
	if err != nil {
		t.Error = plain(err.Error())
	}
	return t
}

func (p poster) send(ctx context.Context, what parcel, t *Try) error {
	keys := make([][]byte, len(what.Sealed))
	for n, sealed := range what.Sealed {
		var err error
		if keys[n], err = p.sealer.open(what.Webhook, sealed); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, what.URL, strings.NewReader(what.Body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Seatcast")
	req.Header.Set("webhook-id", what.Message)
	req.Header.Set("webhook-timestamp", strconv.FormatInt(t.At.Unix(), 10))
	req.Header.Set("webhook-signature", sign(keys, what.Message, t.At, what.Body))
	resp, err := p.client.Do(req)
	if err != nil {
		var failed *url.Error // repeats the URL, in which there may be a token
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	t.Status = resp.StatusCode
	answer, err := io.ReadAll(io.LimitReader(resp.Body, keptAnswer))
	t.Answer = plain(string(answer))
	if t.Status/100 != 2 {
		return fmt.Errorf("answered %s", resp.Status)
	}
	if err != nil { // it has said that it has the message
		t.Answer += " (and then: " + plain(err.Error()) + ")"
	}
	return nil
}

// plain is text as Postgres keeps it.
func plain(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) > keptAnswer {
		s = strings.ToValidUTF8(s[:keptAnswer], "")
	}
	return s
}

// errPrivate is the answer to a webhook at an address of the inside.
var errPrivate = errors.New("the address is not a public one: set SEATCAST_WEBHOOKS_PRIVATE=true to send to it all the same")

// publicOnly refuses to connect elsewhere than to the public internet. It is asked
// of the address that was found, whatever its name says at another time.
func publicOnly(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if !public(to.Addr()) {
		return errPrivate
	}
	return nil
}

func public(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsGlobalUnicast() && !a.IsPrivate() &&
		!slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) })
}

// special are addresses that look public and lead to the inside, or nowhere: shared
// with a carrier, of protocols, of tests, reserved, and IPv4 within IPv6.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b::/16"), netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("fec0::/10"),
}

// checkURL says why a webhook cannot be at a URL.
func checkURL(text string, plainHTTP, private bool) error {
	u, err := url.Parse(text)
	switch {
	case len(text) > maxURL:
		return fmt.Errorf("url has at most %d characters", maxURL)
	case err != nil || u.Hostname() == "" || u.Opaque != "":
		return errors.New("url is where messages are sent, such as https://example.com/seatcast")
	case u.User != nil:
		return errors.New("url has a name or a password in it: a message is known by its signature")
	case u.Fragment != "":
		return errors.New("url has a fragment, which is never sent")
	case u.Scheme == "http" && !plainHTTP:
		return errors.New("url begins with https://; set SEATCAST_WEBHOOKS_HTTP=true to send without encryption")
	case u.Scheme != "https" && u.Scheme != "http":
		return errors.New("url begins with https://")
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && !private && !public(a) {
		return errPrivate
	}
	return nil
}
