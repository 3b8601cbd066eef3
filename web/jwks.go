package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/time/rate"
)

// The keys at a JWKS URL are read now and then, and at once for a token that
// names a key not seen yet. A forged name makes us ask too: hence at most.
const (
	keysEvery   = 10 * time.Minute
	keysAtMost  = 5 * time.Second
	keysTimeout = 3 * time.Second
)

// publicMethods are the signatures a published key can check. No HMAC: its
// key would be the published one.
var publicMethods = []string{
	"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
}

// openJWKS returns the keys published at url, kept fresh until ctx ends, and a
// check that there are any.
func openJWKS(ctx context.Context, url string, log *slog.Logger) (jwt.Keyfunc, func(context.Context) error, error) {
	k, err := keyfunc.NewDefaultOverrideCtx(ctx, []string{url}, keyfunc.Override{
		HTTPTimeout:       keysTimeout,
		RateLimitWaitMax:  keysTimeout,
		RefreshInterval:   keysEvery,
		RefreshUnknownKID: rate.NewLimiter(rate.Every(keysAtMost), 1),
		RefreshErrorHandlerFunc: func(u string) func(context.Context, error) {
			return func(ctx context.Context, err error) {
				log.WarnContext(ctx, "reading the session keys failed", "url", u, "err", err)
			}
		},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("session keys at %s: %w", url, err)
	}
	ready := func(ctx context.Context) error {
		keys, err := k.Storage().KeyReadAll(ctx)
		if err == nil && len(keys) == 0 {
			err = errors.New("no session keys at " + url)
		}
		return err
	}
	return k.Keyfunc, ready, nil
}
