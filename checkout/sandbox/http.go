package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// send delivers one webhook. Anything but a 2xx is an error.
func (s *Sandbox) send(ctx context.Context, n notice) error {
	body, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("send %s: %w", n.ID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("send %s: %w", n.ID, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(SignatureHeader, Sign(s.secret, body, time.Now()))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("send %s: %w", n.ID, err)
	}
	if err := resp.Body.Close(); err != nil {
		return fmt.Errorf("send %s: %w", n.ID, err)
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("send %s: %s", n.ID, resp.Status)
	}
	return nil
}
