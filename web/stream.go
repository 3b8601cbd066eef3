package web

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// answering is the writer below echo's, whose Flush hides errors. It tells echo
// the status, for the access log.
type answering struct {
	http.ResponseWriter
	to *echo.Response
}

// Stream is the writer for an answer that somebody else writes: a stream of frames,
// or a connection that is taken over.
func Stream(c echo.Context) http.ResponseWriter { return answering{c.Response().Writer, c.Response()} }

// WriteHeader implements http.ResponseWriter.
func (a answering) WriteHeader(status int) {
	a.to.Status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (a answering) Unwrap() http.ResponseWriter { return a.ResponseWriter }
