package web

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

const userKey = "seatcast.user"

// User returns the account the request's session token names, or a 401
// Problem when the request carries none.
func User(c echo.Context) (string, error) {
	if user, ok := c.Get(userKey).(string); ok && user != "" {
		return user, nil
	}
	return "", &Problem{Status: http.StatusUnauthorized, Code: "token_missing",
		Detail: "send a session token as Authorization: Bearer <token>"}
}

// As is middleware that gives every request the same account.
func As(user string) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			c.Set(userKey, user)
			return next(c)
		}
	}
}
