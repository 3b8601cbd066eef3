package web

import (
	"net/http"
	"regexp"
	"time"

	"github.com/labstack/echo/v4"
)

// demoSession is how long a demo sign-in lasts.
const demoSession = 24 * time.Hour

var demoUser = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

// MountDemo adds POST /demo/session {"user":"…"} → {"token":"…"} to g: whoever
// asks is whoever they say. Only a demo mounts it, with Sessions that can Mint.
func MountDemo(g *echo.Group, s *Sessions) {
	g.POST("/demo/session", func(c echo.Context) error {
		var in struct {
			User string `json:"user"`
		}
		if err := Bind(c, &in); err != nil {
			return err
		}
		if !demoUser.MatchString(in.User) {
			return Bad("bad_request", "user is 1 to 64 letters, digits, dots, dashes or underscores")
		}
		token, err := s.Mint(in.User, demoSession)
		if err != nil {
			return err
		}
		c.Response().Header().Set("Cache-Control", "no-store")
		return c.JSON(http.StatusOK, map[string]string{"token": token})
	})
}
