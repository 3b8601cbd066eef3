package holds_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/holds"
	"seatcast/web"
)

// refusing is a node as it is served, access log, sessions and all, that has
// heard that every seat is held, and the request it refuses.
func refusing(b *testing.B) (node http.Handler, request []byte) {
	s := newShop(b, onStore)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a log costs a system call a line
	s.must(err)
	b.Cleanup(func() { _ = null.Close() })
	key, err := web.ParseKey(web.GenerateKey())
	s.must(err)
	sessions, err := web.OpenSessions(b.Context(), web.SessionOptions{Key: key, Issuer: "https://login.example", Audience: "seatcast"})
	s.must(err)
	token, err := sessions.Mint("auth0|507f1f77bcf86cd799439011", time.Hour)
	s.must(err)
	gate := holds.NewGate(holds.GateOptions{Store: s.store, Heard: all(heldHeard(time.Minute), false, 0), Log: quiet})
	e := web.New(web.Options{Log: slog.New(slog.NewJSONHandler(null, nil))})
	holds.NewAPI(s.store, s, []byte("a key of this server")).Behind(gate).Mount(sessions.API(e))
	body := `{"ticketIds":["n-a-3","n-a-4"]}`
	request = fmt.Appendf(nil, "POST /v1/bookings/%s HTTP/1.1\r\nHost: tickets.example\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n"+
		"Content-Type: application/json\r\nAuthorization: Bearer %s\r\nIdempotency-Key: 0b7ed3b8-0a3e-4b5c-8a55-2f3b0e0f6a11\r\nContent-Length: %d\r\n\r\n%s",
		s.event, token, len(body), body)
	return e, request
}

// bare parses the same body and answers the same bytes.
func bare(answer []byte) http.Handler {
	e := echo.New()
	e.POST("/v1/bookings/:booking", func(c echo.Context) error {
		var body struct {
			TicketIDs []string `json:"ticketIds"`
		}
		if err := c.Bind(&body); err != nil {
			return err
		}
		return c.Blob(http.StatusConflict, "application/problem+json", answer)
	})
	return e
}

// line is a kept-alive connection to a handler.
type line struct {
	net.Conn
	answer []byte // its length is that of each
}

func dial(b *testing.B, h http.Handler) *line {
	b.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(ln)
	}()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = conn.Close()
		_ = server.Close()
		<-done
	})
	return &line{Conn: conn}
}

// ask sends a request and reads its answer, whose length the first one told.
func (l *line) ask(b *testing.B, request []byte) {
	if _, err := l.Write(request); err != nil {
		b.Fatal(err)
	}
	if l.answer == nil {
		l.answer = make([]byte, 4096)
		n, err := l.Read(l.answer) // one write of the server
		if err != nil {
			b.Fatal(err)
		}
		l.answer = l.answer[:n]
		return
	}
	if _, err := io.ReadFull(l.Conn, l.answer); err != nil {
		b.Fatal(err)
	}
}

// splitAnswer is an answer's head and body.
func splitAnswer(b *testing.B, answer []byte) (head, body []byte) {
	b.Helper()
	head, body, ok := bytes.Cut(answer, []byte("\r\n\r\n"))
	if !ok || !bytes.HasPrefix(head, []byte("HTTP/1.1 409 ")) {
		b.Fatalf("answered %s", answer)
	}
	return head, body
}

// burnt is the processor time this process has used.
func burnt(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRefusal asks for seats that memory knows are held, over loopback, and
// in turn a bare echo handler that parses the same body and answers the same
// bytes, and reports medians of chunks in processor time, the client's share in
// both.
func BenchmarkRefusal(b *testing.B) {
	node, request := refusing(b)
	ours := dial(b, node)
	ours.ask(b, request)
	_, body := splitAnswer(b, ours.answer)
	body = bytes.Clone(body)
	theirs := dial(b, bare(body))
	theirs.ask(b, request)
	if _, same := splitAnswer(b, theirs.answer); string(same) != string(body) {
		b.Fatalf("%s\nbare: %s", body, same)
	}
	const chunk = 500
	chunkOf := func(l *line) float64 {
		before := burnt(b)
		for range chunk {
			l.ask(b, request)
		}
		return float64(burnt(b)-before) / chunk / 1000
	}
	var oursCPU, theirsCPU, ratios []float64
	for b.Loop() {
		o, t := chunkOf(ours), chunkOf(theirs)
		oursCPU, theirsCPU, ratios = append(oursCPU, o), append(theirsCPU, t), append(ratios, o/t)
	}
	for name, values := range map[string][]float64{"cpu-µs/refusal": oursCPU, "cpu-µs/bare": theirsCPU, "x-bare": ratios} {
		slices.Sort(values)
		b.ReportMetric(values[len(values)/2], name)
	}
}
