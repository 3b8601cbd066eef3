package peers

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"seatcast/loadtest/proc"
	"seatcast/loadtest/reader"
)

func startNetHTTP(ctx context.Context, s Setup) (Server, error) {
	child, err := proc.Start(proc.Command{Name: "nethttp", Path: s.Self, Args: []string{"nethttp"}, Dir: s.Dir, On: s.On, Out: true})
	if err != nil {
		return nil, err
	}
	addr, err := FirstLine(ctx, child)
	if err != nil {
		return nil, err
	}
	p := &posted{child: child, changes: s.Changes, url: "http://" + addr + "/pub",
		target: reader.Target{Addr: addr, Path: "/sse", WS: s.WS, Ready: reader.Head}}
	if s.WS {
		p.target.Path = "/ws"
	}
	return p, nil
}

// NetHTTP is the process of the peer nethttp: it says its address on out and
// serves until ctx ends. Each frame is made once; each client has a goroutine
// and a queue.
func NetHTTP(ctx context.Context, out io.Writer) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("nethttp: %w", err)
	}
	if _, err := fmt.Fprintln(out, ln.Addr()); err != nil {
		return fmt.Errorf("nethttp: %w", err)
	}
	f := &fan{clients: make(map[chan *said]struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("/sse", f.sse)
	mux.HandleFunc("/ws", f.ws)
	mux.HandleFunc("/pub", f.publish)
	server := &http.Server{Handler: mux, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // the clients see it
	defer stop()
	if err := server.Serve(ln); ctx.Err() == nil {
		return fmt.Errorf("nethttp: %w", err)
	}
	return nil
}

// said is one change, framed once for each transport.
type said struct{ event, text []byte }

// fan hands what is said to every client.
type fan struct {
	mu      sync.Mutex
	clients map[chan *said]struct{}
	n       int64
}

// queue of a client: 16, more than three seconds of frames. Who is further
// behind is let go.
const queue = 16

func (f *fan) join() chan *said {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := make(chan *said, queue)
	f.clients[c] = struct{}{}
	return c
}

func (f *fan) leave(c chan *said) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.clients, c)
}

func (f *fan) publish(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n := firstNumber + f.n
	f.n++
	one := &said{event(body, n), text(body)}
	for c := range f.clients {
		select {
		case c <- one:
		default:
			close(c)
			delete(f.clients, c)
		}
	}
}

func (f *fan) sse(w http.ResponseWriter, r *http.Request) {
	c := f.join()
	defer f.leave(c)
	w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(w)
	if rc.Flush() != nil {
		return
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case one, ok := <-c:
			if !ok || rc.SetWriteDeadline(time.Now().Add(10*time.Second)) != nil {
				return
			}
			if _, err := w.Write(one.event); err != nil || rc.Flush() != nil {
				return
			}
		}
	}
}

func (f *fan) ws(w http.ResponseWriter, r *http.Request) {
	c := f.join()
	defer f.leave(c)
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // it has answered
	}
	defer func() { _ = conn.CloseNow() }()
	ctx := conn.CloseRead(r.Context())
	for {
		select {
		case <-ctx.Done():
			return
		case one, ok := <-c:
			if !ok || conn.Write(ctx, websocket.MessageText, one.text) != nil {
				return
			}
		}
	}
}
