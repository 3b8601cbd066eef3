package web

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// borne is the context of a request whose bearer is known: Set would make a map for
// each.
type borne struct {
	echo.Context
	bearer bearer
}

const bearerKey = "seatcast.bearer"

// Get knows the *bearer, and what was set.
func (b *borne) Get(key string) any {
	if key == bearerKey {
		return &b.bearer
	}
	return b.Context.Get(key)
}

// asks is who asks; nobody is the zero bearer.
func asks(c echo.Context) bearer {
	if b, ok := c.Get(bearerKey).(*bearer); ok {
		return *b
	}
	return bearer{}
}

// User returns the account the request's session token names, or a 401
// Problem when the request carries none.
func User(c echo.Context) (string, error) {
	if user := asks(c).user; user != "" {
		return user, nil
	}
	return "", &Problem{Status: http.StatusUnauthorized, Code: "token_missing",
		Detail: "send a session token as Authorization: Bearer <token>"}
}

// As is middleware that gives every request the same account.
func As(user string) echo.MiddlewareFunc { return as(bearer{user: user}) }

func as(b bearer) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error { return next(&borne{c, b}) }
	}
}
