package devstack

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestAServerWhosePortWasTakenGetsAnother(t *testing.T) {
	if _, err := program("redis-server", "redis-server"); err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	dir, err := os.MkdirTemp("", "devstack-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h, err := Open(filepath.Join(dir, "home"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	faster, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = faster.Close() })

	var r Redis
	tries := 0
	err = onFreePorts(func() error {
		tries++
		port := faster.Addr().(*net.TCPAddr).Port
		if tries == 2 {
			port, err = freePort()
			if err != nil {
				return err
			}
		}
		r = Redis{socket: filepath.Join(h.sockets, "r.sock")}
		if err := private(h.path("r"), h.account); err != nil {
			return err
		}
		return r.start(t.Context(), h, RedisOptions{Name: "r", TCP: true}, port)
	})
	if err != nil || tries != 2 {
		t.Fatalf("after %d tries: %v", tries, err)
	}
	if err := r.Stop(); err != nil {
		t.Error(err)
	}
	if err := onFreePorts(func() error { return context.Canceled }); !errors.Is(err, context.Canceled) {
		t.Errorf("what fails for another reason: %v", err)
	}
}
