package web

import (
	"fmt"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// roleOperator is the role that opens /v1/admin.
const roleOperator = "operator"

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

// operator says whether a token makes its bearer one. A claim of another shape
// gives no role.
func (m Claims) operator(claims jwt.MapClaims) bool {
	if m.Roles == "" {
		return false
	}
	switch roles := claims[m.Roles].(type) {
	case string:
		return slices.Contains(strings.Fields(roles), roleOperator)
	case []any:
		return slices.Contains(roles, any(roleOperator))
	}
	return false
}
