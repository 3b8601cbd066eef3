package hub

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Serve streams a topic as Server-Sent Events until the client leaves or the
// session ends. It resumes after the number in Last-Event-ID, or in the query
// as since. An error is returned only when nothing was written yet.
func (h *Hub) Serve(w http.ResponseWriter, r *http.Request, topic string) error {
	hello, err := h.opts.Source.Hello(r.Context(), topic)
	if err != nil {
		return fmt.Errorf("hello of %s: %w", topic, err)
	}
	out := &sseSink{w: w, rc: http.NewResponseController(w), timeout: h.opts.WriteTimeout,
		written: h.metrics.bytes.WithLabelValues("sse")}
	if err := out.rc.SetWriteDeadline(time.Now().Add(out.timeout)); err != nil {
		return fmt.Errorf("stream of %s: %w", topic, err)
	}
	s := newSession(h, "sse", out)
	out.open()
	if !h.open(s) {
		out.bye(CloseDrain)
		return nil
	}
	s.watch(topic, resumeNumber(r), hello)
	why := s.run(r.Context())
	h.close(s, why)
	out.bye(why)
	return nil
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

// sseSink writes events to an HTTP response.
type sseSink struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	timeout time.Duration
	written prometheus.Counter
	broken  bool // a write failed: another would only wait as long
}

func (o *sseSink) open() {
	h := o.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	o.w.WriteHeader(http.StatusOK)
}

// padding is a comment that fills the buffers of proxies which hold back the
// first two kilobytes of a response.
var padding = append(append([]byte(":"), bytes.Repeat([]byte(" "), 2048)...), '\n')

func (o *sseSink) greet(_ string, id int64, hello []byte) error {
	b := append([]byte(nil), padding...)
	b = append(b, sseRetry(between(time.Second, 3*time.Second))...)
	return o.write(append(b, sseFrame(eventHello, id, hello)...))
}

func (o *sseSink) send(f *frame) error { return o.write(f.sse) }

func (o *sseSink) say(_, event string, id int64, data []byte) error {
	return o.write(sseFrame(event, id, data))
}

// ping is not needed: a client that is gone fails the write of its beat.
func (o *sseSink) ping() error { return nil }

func (o *sseSink) write(b []byte) error {
	if err := o.rc.SetWriteDeadline(time.Now().Add(o.timeout)); err != nil {
		return err
	}
	n, err := o.w.Write(b)
	o.written.Add(float64(n))
	o.broken = o.broken || err != nil
	return err
}

func (o *sseSink) flush() error {
	err := o.rc.Flush()
	o.broken = o.broken || err != nil
	return err
}

// bye says when to come back, and lifts the deadline so that the connection
// may serve its next request.
func (o *sseSink) bye(why Code) {
	if why == CloseGone || o.broken {
		return
	}
	if o.write(sseRetry(why.retry())) == nil && o.flush() == nil {
		_ = o.rc.SetWriteDeadline(time.Time{}) // it was settable a moment ago
	}
}
