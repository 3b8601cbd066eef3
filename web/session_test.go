package web_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"seatcast/web"
)

const issuer, audience = "https://login.example", "seatcast"

// wantProblem fails unless err is a Problem with this code.
func wantProblem(t *testing.T, err error, code string) {
	t.Helper()
	var p *web.Problem
	if !errors.As(err, &p) || p.Code != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

// local returns Sessions of a fresh key, and the key.
func local(t *testing.T, change func(*web.SessionOptions)) (*web.Sessions, string) {
	t.Helper()
	text := web.GenerateKey()
	key, err := web.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	o := web.SessionOptions{Key: key, Issuer: issuer, Audience: audience}
	if change != nil {
		change(&o)
	}
	s, err := web.OpenSessions(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s, text
}

func TestAMintedTokenNamesItsUserUntilItExpires(t *testing.T) {
	now := time.Now()
	s, _ := local(t, func(o *web.SessionOptions) { o.Now = func() time.Time { return now } })
	token, err := s.Mint("ada", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // verified, then remembered
		if user, err := s.Verify(token); err != nil || user != "ada" {
			t.Fatalf("got %q, %v", user, err)
		}
	}
	now = now.Add(time.Hour + time.Minute)
	_, err = s.Verify(token)
	wantProblem(t, err, "token_expired")
}

// counted is how many tokens had this result.
func counted(t *testing.T, reg *prometheus.Registry, result string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range families[0].GetMetric() {
		if m.GetLabel()[0].GetValue() == result {
			return m.GetCounter().GetValue()
		}
	}
	return 0
}

func TestATokenIsVerifiedOnceInFiveMinutesAndAForgedOneEachTime(t *testing.T) {
	now := time.Now()
	reg := prometheus.NewRegistry()
	s, _ := local(t, func(o *web.SessionOptions) { o.Now, o.Registerer = func() time.Time { return now }, reg })
	other, _ := local(t, nil)
	good, err := s.Mint("ada", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	forged, err := other.Mint("ada", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		for range 10 {
			if user, err := s.Verify(good); err != nil || user != "ada" {
				t.Fatalf("got %q, %v", user, err)
			}
			_, err := s.Verify(forged)
			wantProblem(t, err, "token_invalid")
		}
		now = now.Add(5 * time.Minute)
	}
	for result, want := range map[string]float64{"verified": 10, "remembered": 90, "refused": 100} {
		if got := counted(t, reg, result); got != want {
			t.Errorf("%v tokens were %s, want %v", got, result, want)
		}
	}
}

func TestATokenWhoseKeyIsGoneIsGoodForFiveMinutesMore(t *testing.T) {
	old, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	next, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	l := newLogin(t)
	l.publish(map[string]any{"old": old})
	var ahead atomic.Int64
	s, err := web.OpenSessions(t.Context(), web.SessionOptions{JWKSURL: l.url, Issuer: issuer, Audience: audience,
		Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	token := l.token(jwt.SigningMethodES256, "old", old)
	if _, err := s.Verify(token); err != nil {
		t.Fatal(err)
	}
	l.publish(map[string]any{"next": next})
	if _, err := s.Verify(l.token(jwt.SigningMethodES256, "next", next)); err != nil { // the keys are read anew
		t.Fatal(err)
	}
	if _, err := s.Verify(token); err != nil {
		t.Errorf("verified a moment ago: %v", err)
	}
	ahead.Store(int64(5*time.Minute + time.Second))
	_, err = s.Verify(token)
	wantProblem(t, err, "token_invalid")
}

func TestEd25519KeyMintsAndVerifies(t *testing.T) {
	key, err := web.ParseKey("ed25519:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	if err != nil {
		t.Fatal(err)
	}
	s, err := web.OpenSessions(t.Context(), web.SessionOptions{Key: key, Claims: "user=account"})
	if err != nil {
		t.Fatal(err)
	}
	token, err := s.Mint("ada", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if user, err := s.Verify(token); err != nil || user != "ada" {
		t.Errorf("got %q, %v", user, err)
	}
}

func TestAForgedTokenIsInvalid(t *testing.T) {
	s, text := local(t, nil)
	other, _ := local(t, nil)
	claims := func(change func(jwt.MapClaims)) jwt.MapClaims {
		c := jwt.MapClaims{"sub": "ada", "iss": issuer, "aud": audience, "exp": time.Now().Add(time.Hour).Unix()}
		if change != nil {
			change(c)
		}
		return c
	}
	_, encoded, _ := strings.Cut(text, ":")
	raw, err := jwt.NewParser().DecodeSegment(encoded)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(m jwt.SigningMethod, key any, c jwt.MapClaims) string {
		token, err := jwt.NewWithClaims(m, c).SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	if _, err := s.Verify(sign(jwt.SigningMethodHS256, raw, claims(nil))); err != nil {
		t.Fatalf("the pattern of all below is good: %v", err)
	}
	foreign, err := other.Mint("ada", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	good := sign(jwt.SigningMethodHS256, raw, claims(nil))
	for name, token := range map[string]string{
		"empty":          "",
		"garbage":        "a.b.c",
		"other key":      foreign,
		"cut":            good[:len(good)-2],
		"huge":           strings.Repeat("x", 1<<20),
		"alg none":       sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, claims(nil)),
		"other method":   sign(jwt.SigningMethodHS512, raw, claims(nil)),
		"wrong issuer":   sign(jwt.SigningMethodHS256, raw, claims(func(c jwt.MapClaims) { c["iss"] = "evil" })),
		"wrong audience": sign(jwt.SigningMethodHS256, raw, claims(func(c jwt.MapClaims) { c["aud"] = "shop" })),
		"no exp":         sign(jwt.SigningMethodHS256, raw, claims(func(c jwt.MapClaims) { delete(c, "exp") })),
		"not yet":        sign(jwt.SigningMethodHS256, raw, claims(func(c jwt.MapClaims) { c["nbf"] = time.Now().Add(time.Hour).Unix() })),
		"no user":        sign(jwt.SigningMethodHS256, raw, claims(func(c jwt.MapClaims) { delete(c, "sub") })),
		"user a number":  sign(jwt.SigningMethodHS256, raw, claims(func(c jwt.MapClaims) { c["sub"] = 7 })),
		"user too long":  sign(jwt.SigningMethodHS256, raw, claims(func(c jwt.MapClaims) { c["sub"] = strings.Repeat("a", 201) })),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Verify(token)
			wantProblem(t, err, "token_invalid")
		})
	}
}

// login is an operator's login: it signs tokens and publishes its keys over
// HTTP.
type login struct {
	t     *testing.T
	url   string
	set   atomic.Value // []byte
	reads atomic.Int64
	down  atomic.Bool
}

func newLogin(t *testing.T) *login {
	l := &login{t: t}
	l.set.Store([]byte(`{"keys":[]}`))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		l.reads.Add(1)
		if l.down.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = w.Write(l.set.Load().([]byte))
	}))
	t.Cleanup(s.Close)
	l.url = s.URL
	return l
}

func (l *login) publish(keys map[string]any) {
	l.t.Helper()
	store := jwkset.NewMemoryStorage()
	for kid, key := range keys {
		jwk, err := jwkset.NewJWKFromKey(key, jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{KID: kid}})
		if err != nil {
			l.t.Fatal(err)
		}
		if err := store.KeyWrite(l.t.Context(), jwk); err != nil {
			l.t.Fatal(err)
		}
	}
	b, err := store.JSONPublic(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	l.set.Store([]byte(b))
}

func (l *login) token(m jwt.SigningMethod, kid string, key any) string {
	l.t.Helper()
	token := jwt.NewWithClaims(m, jwt.MapClaims{"sub": "ada", "iss": issuer, "aud": []string{"x", audience}, "exp": time.Now().Add(time.Hour).Unix()})
	if kid != "" {
		token.Header["kid"] = kid
	}
	s, err := token.SignedString(key)
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

func (l *login) sessions() *web.Sessions {
	l.t.Helper()
	s, err := web.OpenSessions(l.t.Context(), web.SessionOptions{JWKSURL: l.url, Issuer: issuer, Audience: audience,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

func TestJWKSKeysVerifyAndRotate(t *testing.T) {
	old, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, _ := ed25519.GenerateKey(rand.Reader)
	next, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	l := newLogin(t)
	l.publish(map[string]any{"old": old, "ed": edKey})
	s := l.sessions()
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("ready: %v", err)
	}
	for _, token := range []string{
		l.token(jwt.SigningMethodRS256, "old", old),
		l.token(jwt.SigningMethodEdDSA, "ed", edKey),
		l.token(jwt.SigningMethodRS256, "", old), // no kid: any of the keys
	} {
		if user, err := s.Verify(token); err != nil || user != "ada" {
			t.Errorf("got %q, %v", user, err)
		}
	}

	l.publish(map[string]any{"next": next}) // the login rotates
	if user, err := s.Verify(l.token(jwt.SigningMethodES256, "next", next)); err != nil || user != "ada" {
		t.Errorf("a key published since: got %q, %v", user, err)
	}
	_, err = s.Verify(l.token(jwt.SigningMethodRS384, "old", old))
	wantProblem(t, err, "token_invalid") // a key withdrawn since
}

func TestAPublishedKeyIsNoHMACSecret(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	l := newLogin(t)
	l.publish(map[string]any{"k": key})
	s := l.sessions()
	for _, secret := range [][]byte{public, der} {
		_, err := s.Verify(l.token(jwt.SigningMethodHS256, "k", secret))
		wantProblem(t, err, "token_invalid")
	}
	_, err = s.Verify(l.token(jwt.SigningMethodNone, "k", jwt.UnsafeAllowNoneSignatureType))
	wantProblem(t, err, "token_invalid")
}

func TestForgedKeyNamesDoNotFloodTheLogin(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	l := newLogin(t)
	l.publish(map[string]any{"k": key})
	s := l.sessions()
	start := time.Now()
	for range 50 {
		_, err := s.Verify(l.token(jwt.SigningMethodES256, rand.Text(), key))
		wantProblem(t, err, "token_invalid")
	}
	if n := l.reads.Load(); n > 2+int64(time.Since(start)/(5*time.Second)) {
		t.Errorf("the login was read %d times", n)
	}
}

func TestAnUnreachableLoginIsNotTheShoppersFault(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	l := newLogin(t)
	l.down.Store(true)
	s := l.sessions()
	if s.Ready(t.Context()) == nil {
		t.Error("ready without a key")
	}
	_, err = s.Verify(l.token(jwt.SigningMethodES256, "k", key))
	wantProblem(t, err, "store_unavailable")
}

func TestSessionOptionsThatContradictAreRefused(t *testing.T) {
	key, err := web.ParseKey(web.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]web.SessionOptions{
		"nothing":     {},
		"both":        {JWKSURL: "http://127.0.0.1:1", Key: key, Issuer: issuer, Audience: audience},
		"no issuer":   {JWKSURL: "http://127.0.0.1:1", Audience: audience},
		"no audience": {JWKSURL: "http://127.0.0.1:1", Issuer: issuer},
		"claim map":   {Key: key, Claims: "name=sub"},
	} {
		if _, err := web.OpenSessions(context.Background(), o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, text := range []string{"", "hs256:", "hs256:c2hvcnQ", "rsa:AAAA", "ed25519:AAAA", "hs256:\x00secret!"} {
		if _, err := web.ParseKey(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("key %q: %v", text, err)
		}
	}
}

func TestABadTokenIsRefusedOnPublicRoutesToo(t *testing.T) {
	s, _ := local(t, nil)
	token, err := s.Mint("ada", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	url, _ := server(t, func(e *echo.Echo) {
		g := s.API(e)
		g.GET("/public", func(c echo.Context) error { return c.NoContent(204) })
		g.GET("/me", func(c echo.Context) error {
			user, err := web.User(c)
			if err != nil {
				return err
			}
			return c.String(200, user)
		})
		web.MountDemo(g, s)
	})
	for _, tt := range []struct {
		path, auth string
		status     int
		code       string
	}{
		{"/v1/public", "", 204, ""},
		{"/v1/public", "Bearer " + token, 204, ""},
		{"/v1/public", "Bearer forged", 401, "token_invalid"},
		{"/v1/me", "", 401, "token_missing"},
		{"/v1/me", "bearer " + token, 200, ""},
		{"/v1/me", "Basic YTpi", 401, "token_invalid"},
		{"/v1/me", "Bearer", 401, "token_invalid"},
	} {
		res, body := do(t, "GET", url+tt.path, "", "Authorization", tt.auth)
		if res.StatusCode != tt.status || tt.code != "" && code(t, body) != tt.code {
			t.Errorf("%s %q: got %d %s", tt.path, tt.auth, res.StatusCode, body)
		}
	}

	res, body := do(t, "POST", url+"/v1/demo/session", `{"user":"grace"}`)
	var out struct{ Token string }
	if err := json.Unmarshal([]byte(body), &out); err != nil || res.StatusCode != 200 {
		t.Fatalf("demo session: %d %s", res.StatusCode, body)
	}
	if _, who := do(t, "GET", url+"/v1/me", "", "Authorization", "Bearer "+out.Token); who != "grace" {
		t.Errorf("the demo session is %q's", who)
	}
	if res, body := do(t, "POST", url+"/v1/demo/session", `{"user":"a b"}`); res.StatusCode != 400 || code(t, body) != "bad_request" {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
}
