package web

import (
	"fmt"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// Roles a token may name: an operator's opens /v1/admin, a scanner's of that only
// ScanPath.
const (
	roleOperator = "operator"
	roleScanner  = "scanner"
)

// Claims says which claims of a session token mean what here.
type Claims struct {
	User  string // the account
	Roles string // a JSON array of strings, or one string with spaces between; empty: nobody has a role
}

// ParseClaims reads a claim map: pairs of ours=theirs with commas between, such
// as "user=sub,roles=groups". What is not named stays as in the empty map, in
// which the account is sub and nobody has a role.
func ParseClaims(text string) (Claims, error) {
	claims := Claims{User: "sub"}
	if text == "" {
		return claims, nil
	}
	into := map[string]*string{"user": &claims.User, "roles": &claims.Roles}
	for pair := range strings.SplitSeq(text, ",") {
		ours, theirs, ok := strings.Cut(pair, "=")
		to := into[ours]
		if !ok || to == nil || theirs == "" || strings.ContainsAny(theirs, "= ") {
			return Claims{}, fmt.Errorf("web: claim map %q: write user=<name of the claim>, or user=<name>,roles=<name>", text)
		}
		*to = theirs
		delete(into, ours)
	}
	// An account chosen by its owner could be called operator.
	if claims.Roles == claims.User {
		return Claims{}, fmt.Errorf("web: claim map %q: the account and its roles are two claims", text)
	}
	return claims, nil
}

// has says whether a token gives its bearer a role. A claim of another shape
// gives none.
func (m Claims) has(role string, claims jwt.MapClaims) bool {
	if m.Roles == "" {
		return false
	}
	switch roles := claims[m.Roles].(type) {
	case string:
		return slices.Contains(strings.Fields(roles), role)
	case []any:
		return slices.Contains(roles, any(role))
	}
	return false
}
