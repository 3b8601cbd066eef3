package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/labstack/echo/v4"

	"seatcast/web"
)

// told is a trail that remembers what it was told, in order, and fails when
// told to.
type told struct {
	calls   []web.Call
	entries []string
	failing error
}

func (l *told) Begin(_ context.Context, call web.Call) (int64, error) {
	if l.failing != nil {
		return 0, l.failing
	}
	l.calls, l.entries = append(l.calls, call), append(l.entries, "begin "+call.Method+" "+call.Path)
	return int64(len(l.calls)), nil
}

func (l *told) End(_ context.Context, _ int64, o web.Outcome) error {
	l.entries = append(l.entries, strings.TrimSpace("end "+http.StatusText(o.Status)+" "+o.Code))
	return nil
}

// office is a server with an admin API that opens and closes doors.
func office(t *testing.T, s *web.Sessions, trail web.Trail, effect func()) http.Handler {
	e := web.New(web.Options{Log: slog.New(slog.DiscardHandler)})
	v1, admin := s.Groups(e, trail, nil)
	v1.GET("/doors", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
	admin.POST("/events/:event/doors", func(c echo.Context) error {
		who, err := web.Operator(c)
		if err != nil {
			return err
		}
		var in struct{ Open bool }
		if err := web.Bind(c, &in); err != nil {
			return err
		}
		effect()
		return c.String(http.StatusOK, who)
	})
	admin.POST("/scan", func(c echo.Context) error {
		who, err := web.Scanner(c)
		if err != nil {
			return err
		}
		return c.String(http.StatusOK, who)
	})
	admin.POST("/events/:event/fire", func(echo.Context) error { panic("fire") })
	return e
}

func ask(h http.Handler, method, path, token, body string) (int, string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var p struct{ Code string }
	_ = json.Unmarshal(w.Body.Bytes(), &p) // no problem has none
	return w.Code, p.Code
}

func TestOnlyTheRoleOperatorOpensTheAdminAPI(t *testing.T) {
	text := web.GenerateKey()
	key, err := web.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	open := func(claims string) *web.Sessions {
		s, err := web.OpenSessions(t.Context(), web.SessionOptions{Key: key, Claims: claims})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	mint := func(claims jwt.MapClaims) string { return signed(t, text, claims) }
	mapped, unmapped := open("user=sub,roles=groups"), open("")
	minted, err := mapped.Mint("ada", time.Hour, "operator")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		s      *web.Sessions
		token  string
		status int
		code   string
	}{
		"Minted":             {mapped, minted, http.StatusOK, ""},
		"InAnArray":          {mapped, mint(jwt.MapClaims{"groups": []string{"staff", "operator"}}), http.StatusOK, ""},
		"BetweenSpaces":      {mapped, mint(jwt.MapClaims{"groups": "staff operator"}), http.StatusOK, ""},
		"AnotherRole":        {mapped, mint(jwt.MapClaims{"groups": []string{"operators", "Operator"}}), http.StatusForbidden, "not_operator"},
		"AnotherShape":       {mapped, mint(jwt.MapClaims{"groups": map[string]any{"operator": true}}), http.StatusForbidden, "not_operator"},
		"MixedArray":         {mapped, mint(jwt.MapClaims{"groups": []any{1, []string{"operator"}}}), http.StatusForbidden, "not_operator"},
		"InAnotherClaim":     {mapped, mint(jwt.MapClaims{"roles": "operator"}), http.StatusForbidden, "not_operator"},
		"WithoutRolesMapped": {unmapped, mint(jwt.MapClaims{"roles": "operator", "groups": "operator"}), http.StatusForbidden, "not_operator"},
		"NoToken":            {mapped, "", http.StatusUnauthorized, "token_missing"},
		"NoTokenNoRoles":     {unmapped, "", http.StatusUnauthorized, "token_missing"},
	} {
		t.Run(name, func(t *testing.T) {
			trail, effects := &told{}, 0
			h := office(t, tt.s, trail, func() { effects++ })
			for round := range 2 { // verified, then remembered
				for _, path := range []string{"/v1/admin/events/e/doors", "/v1/admin/nothing"} {
					status, code := ask(h, http.MethodPost, path, tt.token, `{"open":true}`)
					if path == "/v1/admin/nothing" && tt.status == http.StatusOK {
						if status != http.StatusNotFound {
							t.Errorf("%s: %d %s", path, status, code)
						}
					} else if status != tt.status || code != tt.code {
						t.Errorf("%s: %d %s, want %d %s", path, status, code, tt.status, tt.code)
					}
				}
				if want := (round + 1) * b2i(tt.status == http.StatusOK); effects != want {
					t.Errorf("%d effects, want %d", effects, want)
				}
			}
			if tt.status != http.StatusOK && len(trail.calls) != 0 {
				t.Errorf("who is no operator writes in the trail: %v", trail.entries)
			}
			if status, _ := ask(h, http.MethodGet, "/v1/doors", tt.token, ""); status != http.StatusNoContent {
				t.Errorf("a public route answers %d", status)
			}
		})
	}
}

func TestAScannerLetsPeopleInAndDoesNothingElse(t *testing.T) {
	text := web.GenerateKey()
	key, err := web.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	s, err := web.OpenSessions(t.Context(), web.SessionOptions{Key: key, Claims: "roles=groups"})
	if err != nil {
		t.Fatal(err)
	}
	scanner, operator, both, nobody := signed(t, text, jwt.MapClaims{"groups": "scanner"}), signed(t, text, jwt.MapClaims{"groups": "operator"}),
		signed(t, text, jwt.MapClaims{"groups": []string{"scanner", "operator"}}), signed(t, text, jwt.MapClaims{"groups": "scanners"})
	trail := &told{}
	h := office(t, s, trail, func() {})
	for _, tt := range []struct {
		token, path string
		status      int
	}{
		{scanner, web.ScanPath, http.StatusOK}, {operator, web.ScanPath, http.StatusOK}, {both, web.ScanPath, http.StatusOK},
		{both, "/v1/admin/events/e/doors", http.StatusOK},
		{nobody, web.ScanPath, http.StatusForbidden}, {"", web.ScanPath, http.StatusUnauthorized},
		{scanner, "/v1/admin/events/e/doors", http.StatusForbidden}, {scanner, "/v1/admin/nothing", http.StatusForbidden},
		{scanner, web.ScanPath + "/", http.StatusForbidden}, {scanner, web.ScanPath + "/undo", http.StatusForbidden},
		{scanner, "/v1/admin//scan", http.StatusForbidden}, {scanner, "/v1/admin/x/../scan", http.StatusForbidden},
		{scanner, "/v1/admin/sc%61n", http.StatusNotFound}, // which is no path of ours
	} {
		for range 2 { // verified, then remembered
			if status, code := ask(h, http.MethodPost, tt.path, tt.token, `{"open":true}`); status != tt.status {
				t.Errorf("%s: %d %s, want %d", tt.path, status, code, tt.status)
			}
		}
	}
	if trail.entries[0] != "begin POST "+web.ScanPath || trail.entries[1] != "end OK" {
		t.Errorf("the trail begins %v", trail.entries[:2])
	}
}

// signed is a token of ada's with those claims, signed with an hs256 key.
func signed(t *testing.T, key string, claims jwt.MapClaims) string {
	t.Helper()
	_, encoded, _ := strings.Cut(key, ":")
	raw, err := jwt.NewParser().DecodeSegment(encoded)
	if err != nil {
		t.Fatal(err)
	}
	claims["sub"], claims["exp"] = "ada", time.Now().Add(time.Hour).Unix()
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(raw)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestAnInstallationWithoutRolesSaysHowToHaveOperators(t *testing.T) {
	s, _ := local(t, nil)
	token, err := s.Mint("ada", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/v1/admin/events/e/doors", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	office(t, s, &told{}, func() {}).ServeHTTP(w, r)
	if body := w.Body.String(); !strings.Contains(body, "SEATCAST_SESSION_CLAIMS") || !strings.Contains(body, "roles=") {
		t.Errorf("it says %s", body)
	}
	if _, err := s.Mint("ada", time.Hour, "operator"); err == nil || !strings.Contains(err.Error(), "roles=") {
		t.Errorf("a token with a role nobody reads: %v", err)
	}
}

func TestACallOfAnOperatorIsWrittenDownBeforeItsEffectAndAfterItsAnswer(t *testing.T) {
	s, _ := local(t, func(o *web.SessionOptions) { o.Claims = "roles=r" })
	token, err := s.Mint("ada", time.Hour, "operator")
	if err != nil {
		t.Fatal(err)
	}
	trail := &told{}
	h := office(t, s, trail, func() { trail.entries = append(trail.entries, "effect") })
	for _, body := range []string{`{"open":true}`, `{"shut":true}`} {
		ask(h, http.MethodPost, "/v1/admin/events/opera/doors?why=fire", token, body)
	}
	ask(h, http.MethodPost, "/v1/admin/events/opera/fire", token, "")
	want := []string{"begin POST /v1/admin/events/opera/doors?why=fire", "effect", "end OK",
		"begin POST /v1/admin/events/opera/doors?why=fire", "end Bad Request bad_json",
		"begin POST /v1/admin/events/opera/fire", "end Internal Server Error internal"}
	if !slices.Equal(trail.entries, want) {
		t.Errorf("the trail is\n%s", strings.Join(trail.entries, "\n"))
	}
	if c := trail.calls[0]; c.Operator != "ada" || c.Event != "opera" || string(c.Body) != `{"open":true}` || c.ID == "" || c.From == "" {
		t.Errorf("the call is %+v", c)
	}
}

func TestACallThatCannotBeWrittenDownIsNotCarriedOut(t *testing.T) {
	s, _ := local(t, func(o *web.SessionOptions) { o.Claims = "roles=r" })
	token, err := s.Mint("ada", time.Hour, "operator")
	if err != nil {
		t.Fatal(err)
	}
	done := false
	h := office(t, s, &told{failing: errors.New("no room")}, func() { done = true })
	if status, code := ask(h, http.MethodPost, "/v1/admin/events/e/doors", token, `{"open":true}`); status != http.StatusServiceUnavailable || code != "store_unavailable" || done {
		t.Errorf("%d %s, carried out: %v", status, code, done)
	}
}

func TestAWrongMethodOfTheAdminAPIIsSaid(t *testing.T) {
	s, _ := local(t, func(o *web.SessionOptions) { o.Claims = "roles=r" })
	token, err := s.Mint("ada", time.Hour, "operator")
	if err != nil {
		t.Fatal(err)
	}
	h := office(t, s, &told{}, func() {})
	if status, code := ask(h, http.MethodDelete, "/v1/admin/events/e/doors", token, ""); status != http.StatusMethodNotAllowed || code != "method_not_allowed" {
		t.Errorf("%d %s", status, code)
	}
	big := strings.Repeat(" ", web.BodyLimit+1)
	if status, code := ask(h, http.MethodPost, "/v1/admin/events/e/doors", token, big); status != http.StatusRequestEntityTooLarge || code != "body_too_large" {
		t.Errorf("%d %s", status, code)
	}
}

func TestAClaimMapIsReadOrRefused(t *testing.T) {
	for text, want := range map[string]web.Claims{
		"":                          {User: "sub"},
		"user=account":              {User: "account"},
		"roles=groups":              {User: "sub", Roles: "groups"},
		"roles=https://x/r,user=me": {User: "me", Roles: "https://x/r"},
	} {
		if got, err := web.ParseClaims(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"user", "user=", "=sub", "user=a,user=b", "user=a,", "team=x", "user=a b", "user=a=b", "roles=sub", "user=x,roles=x"} {
		if got, err := web.ParseClaims(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}
