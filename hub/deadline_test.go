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
			h := hub.New(hub.Options{Source: &truth{n: 1}, WriteTimeout: 200 * time.Millisecond, Beat: 800 * time.Millisecond})
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := h.Serve(w, r, topic); err != nil {
					t.Error(err)
				}
			}))
			server.EnableHTTP2 = proto == "HTTP/2.0"
			server.Config.WriteTimeout = 300 * time.Millisecond
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
			beats := 0
			for beats < 2 && lines.Scan() {
				if lines.Text() == "event: beat" {
					beats++
				}
			}
			if beats < 2 {
				t.Errorf("it ended after %d beats: %v", beats, lines.Err())
			}
		})
	}
}
