package hub_test

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"seatcast/hub"
)

// In HTTP/2 a write deadline that passes ends the stream, though nothing is
// being written. A server's own write timeout is one.
func TestASilentStreamOutlivesItsWriteDeadlines(t *testing.T) {
	t.Parallel()
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) {
			h := hub.New(hub.Options{Source: &truth{n: 1}, WriteTimeout: time.Second, Beat: 3 * time.Second})
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := h.Serve(w, r, topic); err != nil {
					t.Error(err)
				}
			}))
			server.EnableHTTP2 = proto == "HTTP/2.0"
			server.Config.WriteTimeout = 1500 * time.Millisecond // the handshake has as long
			server.StartTLS()
			defer server.Close()
			resp, err := server.Client().Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.Proto != proto {
				t.Fatalf("served by %s", resp.Proto)
			}
			lines := bufio.NewScanner(resp.Body)
			beat := false
			for !beat && lines.Scan() {
				beat = lines.Text() == "event: beat"
			}
			if !beat {
				t.Errorf("it ended before its first beat: %v", lines.Err())
			}
		})
	}
}
