package contention

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// line is one buyer's connection. It speaks as much HTTP/1.1 as a measurement
// needs, so that the client costs little beside what it measures.
type line struct {
	addr string
	used time.Time // last
	in   *bufio.Reader
	head string // of every request, up to the length of its body
	out  []byte
	body []byte

	mu   sync.Mutex
	conn net.Conn // replaced by who asks alone
}

// answer is what a request for a seat came to.
type answer struct {
	status int
	body   []byte // until the next request
}

// dial connects a buyer with a session to the server at addr.
func dial(ctx context.Context, addr, event, token string) (*line, error) {
	head := "POST /v1/bookings/" + event + " HTTP/1.1\r\nHost: " + addr + "\r\nAuthorization: Bearer " + token +
		"\r\nContent-Type: application/json\r\nContent-Length: "
	l := &line{addr: addr, head: head}
	return l, l.connect(ctx)
}

func (l *line) connect(ctx context.Context) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", l.addr)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn, l.in, l.used = conn, bufio.NewReaderSize(conn, 4096), time.Now()
	return nil
}

// unusedFor is how long a line may lie unused and still be asked over: servers
// close what is not used, seatcast after ten seconds what never was.
const unusedFor = 3 * time.Second

// fresh connects anew a line that was not used for long.
func (l *line) fresh(ctx context.Context) error {
	if time.Since(l.used) < unusedFor {
		return nil
	}
	l.close()
	return l.connect(ctx)
}

// interrupt has who waits for an answer hear of it.
func (l *line) interrupt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.conn.SetDeadline(time.Now()) // a closed one needs none
}

func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.conn.Close() // was read to the end
}

// patience is how long an answer may take.
const patience = 30 * time.Second

// ask asks for a seat.
func (l *line) ask(seat string) (a answer, err error) {
	const before, after = `{"ticketIds":["`, `"]}`
	l.out = append(l.out[:0], l.head...)
	l.out = strconv.AppendInt(l.out, int64(len(before)+len(seat)+len(after)), 10)
	l.out = append(append(append(append(l.out, "\r\n\r\n"...), before...), seat...), after...)
	if err := l.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return a, err
	}
	if _, err := l.conn.Write(l.out); err != nil {
		return a, err
	}
	l.used = time.Now()
	return l.read()
}

// read reads an answer that tells the length of its body.
func (l *line) read() (a answer, err error) {
	first, err := l.in.ReadSlice('\n')
	if err != nil {
		return a, err
	}
	if len(first) < len("HTTP/1.1 200") {
		return a, fmt.Errorf("the answer begins with %q", first)
	}
	if a.status, err = strconv.Atoi(string(first[9:12])); err != nil {
		return a, fmt.Errorf("the answer begins with %q", first)
	}
	length := -1
	for {
		h, err := l.in.ReadSlice('\n')
		if err != nil {
			return a, err
		}
		if len(h) <= 2 {
			break
		}
		if value, ok := bytes.CutPrefix(h, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return a, fmt.Errorf("the answer has the header %q", h)
			}
		}
	}
	if length < 0 {
		return a, fmt.Errorf("an answer with status %d that does not tell its length", a.status)
	}
	if cap(l.body) < length {
		l.body = make([]byte, length)
	}
	a.body = l.body[:length]
	_, err = io.ReadFull(l.in, a.body)
	return a, err
}

// until is the end of a hold as an answer tells it.
func (a answer) until() (time.Time, error) {
	var b struct {
		ExpiresAt time.Time `json:"expiresAt"`
	}
	if err := json.Unmarshal(a.body, &b); err != nil || b.ExpiresAt.IsZero() {
		return b.ExpiresAt, fmt.Errorf("an answer of a hold without its end: %.300s", a.body)
	}
	return b.ExpiresAt, nil
}

func (a answer) String() string {
	return fmt.Sprintf("%d %s", a.status, strings.TrimSpace(string(a.body[:min(len(a.body), 300)])))
}
