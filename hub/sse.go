package hub

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Serve streams a topic as Server-Sent Events. It resumes after the number in
// Last-Event-ID, or in the query as since. Where the session is parked, Serve
// returns at once and the request's connection is the hub's; otherwise it
// returns when the client leaves or the session ends. Where r's context has a
// deadline the session ends at it at the latest. An error is returned only when
// nothing was written yet.
func (h *Hub) Serve(w http.ResponseWriter, r *http.Request, topic string) error {
	hello, err := h.opts.Source.Hello(r.Context(), topic)
	if err != nil {
		return fmt.Errorf("hello of %s: %w", topic, err)
	}
	k, lot := h.engineOf(sse, w, r)
	end, _ := r.Context().Deadline()
	s := h.newSession(k, h.opts.Limits.Address(r), ask{topic: topic, sub: true, since: resumeNumber(r), data: hello, end: end})
	if err := h.open(s); err != nil {
		h.refuseStream(w, r, k, topic, err)
		return nil
	}
	if lot != nil {
		return h.parkStream(lot, s, w)
	}
	return h.stream(s, w, r)
}

// engineOf says which engine serves a request: parked is only what has a
// connection of its own that nothing but a kernel stands behind.
func (h *Hub) engineOf(transport string, w http.ResponseWriter, r *http.Request) (*kind, *lot) {
	lot := h.parking.Load()
	if lot == nil || r.TLS != nil || r.ProtoMajor != 1 || !hijackable(w) {
		return h.metrics.kind(transport, portable), nil
	}
	return h.metrics.kind(transport, parked), lot
}

func hijackable(w http.ResponseWriter) bool {
	for {
		if _, yes := w.(http.Hijacker); yes {
			return true
		}
		inner, yes := w.(interface{ Unwrap() http.ResponseWriter })
		if !yes {
			return false
		}
		w = inner.Unwrap()
	}
}

// stream serves a session in the calling goroutine.
func (h *Hub) stream(s *session, w http.ResponseWriter, r *http.Request) error {
	out := &sseSink{w: w, rc: http.NewResponseController(w), timeout: h.opts.WriteTimeout, traffic: s.kind.traffic}
	s.out = out
	if err := out.rc.SetWriteDeadline(time.Now().Add(out.timeout)); err != nil {
		h.close(s, CloseGone)
		return fmt.Errorf("stream of %s: %w", s.asked[0].topic, err)
	}
	setStreamHeaders(w.Header())
	w.WriteHeader(http.StatusOK)
	why := newSolo(s).run(r.Context())
	h.close(s, why)
	out.bye(why)
	return nil
}

// parkStream takes the connection from the server and gives it to the parked
// engine.
func (h *Hub) parkStream(lot *lot, s *session, w http.ResponseWriter) error {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		h.close(s, CloseGone)
		return fmt.Errorf("stream of %s: %w", s.asked[0].topic, err)
	}
	if err := lot.stream(s, conn, streamHead(w.Header())); err != nil {
		h.close(s, CloseGone)
		h.opts.Log.Warn("a connection could not be parked", "err", err)
	}
	return nil
}

// refuseStream says that there is no room. A browser's EventSource dies of any
// status but 200, so it is told in the stream, when to come back and where to
// poll; other clients get the status.
func (h *Hub) refuseStream(w http.ResponseWriter, r *http.Request, k *kind, topic string, err error) {
	if !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		h.refuse(w, k, err)
		return
	}
	why := refusalOf(err)
	h.metrics.refused(k, why.reason)
	setStreamHeaders(w.Header())
	w.Header().Set("Connection", "close")
	w.WriteHeader(http.StatusOK)
	back := why.retry()
	data := degradedData(why.reason, h.opts.Source.Poll(topic), back)
	_, _ = w.Write(append(sseRetry(back), sseFrame(eventDegraded, noID, data)...)) // as in refuse
}

// resumeNumber is what the client says it holds; 0 when that is nothing we
// could know.
func resumeNumber(r *http.Request) int64 {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("since")
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return sane(n)
}

// maxNumber is the greatest integer JavaScript reads exactly.
const maxNumber = 1<<53 - 1

func sane(n int64) int64 {
	if n < 0 || n > maxNumber {
		return 0
	}
	return n
}

func setStreamHeaders(h http.Header) {
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
}

// streamHead is the head of a response whose body is a stream that ends with
// its connection, for a connection that net/http serves no more.
func streamHead(h http.Header) []byte {
	setStreamHeaders(h)
	h.Set("Connection", "close")
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 200 OK\r\n")
	_ = h.Write(&b) // a buffer takes everything
	b.WriteString("\r\n")
	return b.Bytes()
}

// greeting opens a stream: padding, when to reconnect, and hello.
func greeting(id int64, hello []byte) []byte {
	b := append([]byte(nil), padding...)
	b = append(b, sseRetry(between(time.Second, 3*time.Second))...)
	return append(b, sseFrame(eventHello, id, hello)...)
}

// padding is a comment that fills the buffers of proxies which hold back the
// first two kilobytes of a response.
var padding = append(append([]byte(":"), bytes.Repeat([]byte(" "), 2048)...), '\n')

// sseSink writes events to an HTTP response, and blocks.
type sseSink struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	timeout time.Duration
	traffic *traffic
	broken  bool // a write failed: another would only wait as long
}

func (o *sseSink) greet(_ string, id int64, hello []byte) error { return o.write(greeting(id, hello)) }

func (o *sseSink) send(f *frame) error { return o.write(f.sse) }

func (o *sseSink) say(_, event string, id int64, data []byte) error {
	return o.write(sseFrame(event, id, data))
}

// ping is not needed: a client that is gone fails the write of its beat.
func (o *sseSink) ping() error { return nil }

func (o *sseSink) stuck() (time.Duration, bool) { return 0, false }

func (o *sseSink) write(b []byte) error {
	if err := o.rc.SetWriteDeadline(time.Now().Add(o.timeout)); err != nil {
		return err
	}
	n, err := o.w.Write(b)
	o.traffic.gave(n)
	o.broken = o.broken || err != nil
	return err
}

// flush lifts the deadline once all is sent: in HTTP/2 one that passes ends the
// stream, though nothing is being written, and in HTTP/1.1 it would be that of
// the connection's next answer.
func (o *sseSink) flush() error {
	err := o.rc.Flush()
	if o.broken = o.broken || err != nil; !o.broken {
		_ = o.rc.SetWriteDeadline(time.Time{}) // it was settable a moment ago
	}
	return err
}

func (o *sseSink) bye(why Code) {
	if why != CloseGone && !o.broken && o.write(sseRetry(why.retry())) == nil {
		_ = o.flush() // a client that has left needs no answer
	}
}
