// Package web holds the HTTP manners every feature shares: how a request is
// limited, logged and answered when something fails (Problem), who is asking
// (User, Sessions), how a body is read (Bind), and the health endpoints. It
// also serves the browser client that is built from web/app.
//
// It knows no feature: a seat, a hold or a queue means nothing here. The
// meaning of an error is the feature's, told as a table at the end of its
// http.go. New and the Mount functions start nothing; whoever serves the echo
// owns its life.
package web

import (
	"log/slog"
	"net"
	"time"

	"github.com/labstack/echo/v4"
)

// BodyLimit is the most bytes a request body may have, where nothing else is
// said.
const BodyLimit = 64 << 10

// How long a client may take: nobody holds a connection by being slow. A
// stream of frames is one answer that lasts for hours: whoever writes one sets
// a deadline for each write, or hijacks the connection.
const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = 30 * time.Second
	answerTimeout = 2 * time.Minute // to read one
	idleTimeout   = 2 * time.Minute
)

// Options of New. The zero value works.
type Options struct {
	Log    *slog.Logger     // nil: slog.Default()
	Bodies map[string]int64 // routes whose bodies may have more bytes than BodyLimit, and how many

	// Sources are other sites a page may load from, by directive of its
	// Content-Security-Policy.
	Sources map[string]string

	// Origins are pages of other hosts whose scripts may call what shoppers call:
	// patterns of hosts as path.Match reads them, or "*" for any.
	Origins []string

	// Proxies are whose X-Forwarded-For is believed, beside those of our own network.
	Proxies []*net.IPNet
}

// New returns an echo that answers every error as a Problem, carries a request
// id, logs each request once, survives a panic of a handler, limits bodies to
// BodyLimit and sends the security headers of this package. Its Server bounds
// how long a client may take to send a request and to read an answer. Nothing
// in the chain wraps the connection: a handler may hijack it, flush it and set
// deadlines on it.
func New(o Options) *echo.Echo {
	log := o.Log
	if log == nil {
		log = slog.Default()
	}
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = ErrorHandler(log)
	e.IPExtractor = echo.ExtractIPFromXFFHeader(trusted(o.Proxies)...)
	e.Server.ReadHeaderTimeout = headerTimeout
	e.Server.WriteTimeout = answerTimeout
	e.Server.IdleTimeout = idleTimeout
	e.Server.MaxHeaderBytes = 32 << 10
	e.Server.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	e.Use(answered(log, securityHeaders(o.Sources)))
	if len(o.Origins) > 0 {
		e.Use(crossOrigin(o.Origins))
	}
	e.Use(guarded(o.Bodies))
	return e
}

// trusted is who is believed where a request comes from: proxies of our own network,
// and these.
func trusted(proxies []*net.IPNet) (all []echo.TrustOption) {
	for _, network := range proxies {
		all = append(all, echo.TrustIPRange(network))
	}
	return all
}
