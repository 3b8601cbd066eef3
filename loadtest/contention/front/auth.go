package front

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/labstack/echo/v4"
)

// Mint returns a session of user's, with the roles it names, signed with key, as a
// login would.
func Mint(key []byte, user string, ttl time.Duration, roles ...string) (string, error) {
	now := time.Now()
	claims := jwt.MapClaims{"sub": user, "iat": now.Unix(), "exp": now.Add(ttl).Unix()}
	if len(roles) > 0 {
		claims["roles"] = roles
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(key)
	if err != nil {
		return "", fmt.Errorf("mint session of %s: %w", user, err)
	}
	return token, nil
}

// sessions knows whose a token is, by the hash of tokens verified before.
type sessions struct {
	key    []byte
	parser *jwt.Parser

	mu   sync.Mutex
	seen map[[sha256.Size]byte]session
}

type session struct {
	user string
	ends time.Time
}

func newSessions(key []byte) *sessions {
	return &sessions{key: key, seen: make(map[[sha256.Size]byte]session),
		parser: jwt.NewParser(jwt.WithValidMethods([]string{"HS256"}), jwt.WithExpirationRequired())}
}

// user is whose token the request carries.
func (s *sessions) user(c echo.Context) (string, error) {
	scheme, token, _ := strings.Cut(c.Request().Header.Get(echo.HeaderAuthorization), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", echo.NewHTTPError(http.StatusUnauthorized, "no session")
	}
	hash, now := sha256.Sum256([]byte(token)), time.Now()
	s.mu.Lock()
	known, ok := s.seen[hash]
	s.mu.Unlock()
	if ok && now.Before(known.ends) {
		return known.user, nil
	}
	var claims jwt.RegisteredClaims
	if _, err := s.parser.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return s.key, nil }); err != nil {
		return "", echo.NewHTTPError(http.StatusUnauthorized, "no session that holds")
	}
	s.mu.Lock()
	s.seen[hash] = session{claims.Subject, earlier(claims.ExpiresAt.Time, now.Add(5*time.Minute))}
	s.mu.Unlock()
	return claims.Subject, nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
