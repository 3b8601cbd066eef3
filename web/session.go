package web

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/golang-jwt/jwt/v5"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
)

// Bounds of a session token.
const (
	leeway       = 30 * time.Second // the clocks of two houses differ
	tokenLimit   = 8 << 10
	userLimit    = 200
	rememberMost = 100_000 // some 20 MB when full
	rememberFor  = 5 * time.Minute
)

// SessionOptions say whose tokens are sessions here. Exactly one of JWKSURL
// and Key is given.
type SessionOptions struct {
	JWKSURL  string // where the operator's own login publishes its keys
	Key      *Key   // or: a key of our own, which can mint too
	Issuer   string // what iss must be; empty with Key: not looked at
	Audience string // what aud must hold; empty with Key: not looked at
	Claims   string // claim map, see ParseClaims; empty: "user=sub"

	Log        *slog.Logger          // nil: slog.Default()
	Registerer prometheus.Registerer // nil: metrics are kept and not shown
	Now        func() time.Time      // nil: time.Now
}

// Sessions tells who the bearer of a session token is. Only signature methods
// that fit the kind of key are accepted, so a token never chooses how it is
// checked; a token without exp is refused.
//
// A token that was verified is remembered by its hash until it expires, and for
// five minutes at most: so much longer than its key it may be good, which this
// process notices within ten minutes. What was refused is never remembered.
type Sessions struct {
	parser *jwt.Parser
	keys   jwt.Keyfunc
	ready  func(ctx context.Context) error // there are keys to verify with
	o      SessionOptions
	claims Claims
	seen   *remembered
	counts tokenCounts
}

// tokenCounts count tokens by what became of them.
type tokenCounts struct{ remembered, verified, refused prometheus.Counter }

func newTokenCounts(r prometheus.Registerer) tokenCounts {
	all := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "http_tokens_total", Help: "Session tokens, by whether they were remembered, verified anew or refused.",
	}, []string{"result"})
	if r != nil {
		r.MustRegister(all)
	}
	return tokenCounts{all.WithLabelValues("remembered"), all.WithLabelValues("verified"), all.WithLabelValues("refused")}
}

// ErrCannotMint is returned by Mint when the tokens are somebody else's.
var ErrCannotMint = errors.New("web: sessions are signed by the login behind the JWKS URL, not here")

// OpenSessions returns the Sessions of o. With a JWKSURL it reads the keys
// there now and, until ctx ends, from time to time; that the URL does not
// answer is logged and shows in Ready, and is no error: the keys are looked
// for again. Contradicting options are an error.
func OpenSessions(ctx context.Context, o SessionOptions) (*Sessions, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	claims, err := ParseClaims(o.Claims)
	if err != nil {
		return nil, err
	}
	s := &Sessions{o: o, claims: claims, seen: newRemembered(rememberMost), counts: newTokenCounts(o.Registerer)}
	switch {
	case (o.JWKSURL == "") == (o.Key == nil):
		return nil, errors.New("web: sessions need either a JWKS URL or a local key")
	case o.Key != nil:
		s.parser = o.parser(o.Key.method.Alg())
		s.keys = func(*jwt.Token) (any, error) { return o.Key.verify, nil }
		s.ready = func(context.Context) error { return nil }
	case o.Issuer == "" || o.Audience == "":
		return nil, errors.New("web: a JWKS URL needs the issuer and the audience its tokens are meant for")
	default:
		s.parser = o.parser(publicMethods...)
		if s.keys, s.ready, err = openJWKS(ctx, o.JWKSURL, o.Log); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// parser checks everything but the signature's key.
func (o *SessionOptions) parser(methods ...string) *jwt.Parser {
	opts := []jwt.ParserOption{
		jwt.WithValidMethods(methods), jwt.WithExpirationRequired(),
		jwt.WithLeeway(leeway), jwt.WithTimeFunc(o.Now),
	}
	if o.Issuer != "" {
		opts = append(opts, jwt.WithIssuer(o.Issuer))
	}
	if o.Audience != "" {
		opts = append(opts, jwt.WithAudience(o.Audience))
	}
	return jwt.NewParser(opts...)
}

// Ready is a check for Health: it fails while there is no key to verify with.
func (s *Sessions) Ready(ctx context.Context) error { return s.ready(ctx) }

// Verify returns the account token speaks for. Its error is a Problem: 401
// token_expired or token_invalid, or 503 store_unavailable while the login's
// keys have never been reached.
func (s *Sessions) Verify(token string) (string, error) {
	b, err := s.bearer(token)
	return b.user, err
}

// bearer is what Verify returns and what else token says of its bearer.
func (s *Sessions) bearer(token string) (bearer, error) {
	if len(token) > tokenLimit {
		s.counts.refused.Inc()
		return bearer{}, invalid("the session token is too long")
	}
	now := s.o.Now()
	if b, ok := s.seen.bearer(token, now); ok {
		s.counts.remembered.Inc()
		return b, nil
	}
	b, ends, err := s.verify(token)
	if err != nil {
		s.counts.refused.Inc()
		return bearer{}, err
	}
	s.counts.verified.Inc()
	s.seen.put(token, b, earlier(ends, now.Add(rememberFor)), now)
	return b, nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// verify reads a token that is not remembered: whose it is, and until when.
func (s *Sessions) verify(token string) (b bearer, ends time.Time, err error) {
	claims := jwt.MapClaims{}
	if _, err := s.parser.ParseWithClaims(token, claims, s.keys); err != nil {
		return b, ends, s.refusal(err)
	}
	user, ok := claims[s.claims.User].(string)
	if !ok || user == "" || len(user) > userLimit || strings.ContainsFunc(user, unicode.IsControl) {
		return b, ends, invalid("the session token has no usable claim " + s.claims.User)
	}
	exp, err := claims.GetExpirationTime()
	if err != nil {
		return b, ends, invalid("the session token has no usable exp")
	}
	return bearer{user, s.claims.has(roleOperator, claims), s.claims.has(roleScanner, claims)}, exp.Add(leeway), nil
}

func invalid(detail string) *Problem {
	return &Problem{Status: http.StatusUnauthorized, Code: "token_invalid", Detail: detail}
}

// refusal says why a token was not accepted. What exactly was wrong with a
// forged one is nobody's business.
func (s *Sessions) refusal(err error) *Problem {
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return &Problem{Status: http.StatusUnauthorized, Code: "token_expired", Detail: "the session is over; sign in again"}
	case errors.Is(err, jwt.ErrTokenUnverifiable) && s.ready(context.Background()) != nil:
		return &Problem{Status: http.StatusServiceUnavailable, Code: "store_unavailable",
			Detail: "session tokens cannot be checked right now; try again", RetryAfter: time.Second}
	default:
		return invalid("the session token is not valid here; sign in again")
	}
}

// Middleware gives a request the account its bearer token names. Without a
// token the request is nobody's, which public routes allow. A token that does
// not hold is a 401 everywhere, public routes too: whoever sends one wants to
// be somebody, and silence would hide that the session is over.
func (s *Sessions) Middleware(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error { return s.serve(c, next) }
}

func (s *Sessions) serve(c echo.Context, next echo.HandlerFunc) error {
	header := c.Request().Header.Get(echo.HeaderAuthorization)
	if header == "" {
		return next(c)
	}
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return invalid("send the session token as Authorization: Bearer <token>")
	}
	b, err := s.bearer(strings.TrimSpace(token))
	if err != nil {
		return err
	}
	return next(&borne{c, b})
}

// API is the group /v1 of e, whose every request goes through Middleware. It is
// no middleware of the group: with one echo answers a wrong method with 404.
func (s *Sessions) API(e *echo.Echo) *echo.Group {
	s.guard(e, nil)
	return e.Group("/v1")
}

// guard puts Middleware before every request below /v1, and admin, if there is
// one, behind it before every request below /v1/admin.
func (s *Sessions) guard(e *echo.Echo, admin echo.MiddlewareFunc) {
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			switch path := c.Request().URL.Path; {
			case admin != nil && (path == "/v1/admin" || strings.HasPrefix(path, "/v1/admin/")):
				return s.serve(c, admin(next))
			case strings.HasPrefix(path, "/v1/"):
				return s.serve(c, next)
			}
			return next(c)
		}
	})
}

// Mint returns a token that Verify accepts as user's for ttl, with the roles
// named, or ErrCannotMint. Roles need a claim to be told in.
func (s *Sessions) Mint(user string, ttl time.Duration, roles ...string) (string, error) {
	if s.o.Key == nil {
		return "", ErrCannotMint
	}
	if user == "" || len(user) > userLimit {
		return "", fmt.Errorf("web: mint: a user is 1 to %d bytes", userLimit)
	}
	if len(roles) > 0 && s.claims.Roles == "" {
		return "", fmt.Errorf("web: mint: the claim map %q names no claim for roles: write user=%s,roles=<name of the claim> in SEATCAST_SESSION_CLAIMS or --claims", s.o.Claims, s.claims.User)
	}
	now := s.o.Now()
	claims := jwt.MapClaims{s.claims.User: user, "iat": now.Unix(), "exp": now.Add(ttl).Unix(), "jti": rand.Text()}
	if len(roles) > 0 {
		claims[s.claims.Roles] = roles
	}
	if s.o.Issuer != "" {
		claims["iss"] = s.o.Issuer
	}
	if s.o.Audience != "" {
		claims["aud"] = s.o.Audience
	}
	token, err := jwt.NewWithClaims(s.o.Key.method, claims).SignedString(s.o.Key.sign)
	if err != nil {
		return "", fmt.Errorf("mint session of %s: %w", user, err)
	}
	return token, nil
}
