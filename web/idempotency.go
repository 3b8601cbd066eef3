package web

import (
	"fmt"
	"strings"

	"github.com/labstack/echo/v4"
)

// maxKey is the longest Idempotency-Key: what payment providers accept.
const maxKey = 255

// IdempotencyKey is the request's Idempotency-Key, empty when it has none. More
// than one, or one that is not 1 to 255 printable ASCII characters, is the 400
// Problem bad_request.
func IdempotencyKey(c echo.Context) (string, error) {
	keys := c.Request().Header.Values("Idempotency-Key")
	if len(keys) == 0 {
		return "", nil
	}
	if len(keys) > 1 || keys[0] == "" || len(keys[0]) > maxKey || strings.ContainsFunc(keys[0], unprintable) {
		return "", Bad("bad_request", fmt.Sprintf("send one Idempotency-Key of 1 to %d printable ASCII characters, or none", maxKey))
	}
	return keys[0], nil
}

func unprintable(r rune) bool { return r < ' ' || r > '~' }
