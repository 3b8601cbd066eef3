package devstack

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"

	"github.com/nats-io/nats-server/v2/server"
)

// NATS is a nats-server inside this process, on a free port of the loopback.
type NATS struct {
	server *server.Server
	secret string
}

// StartNATS starts it and returns when it answers.
func StartNATS() (*NATS, error) {
	secret := rand.Text()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, Authorization: secret, NoSigs: true, NoLog: true,
	})
	if err != nil {
		return nil, fmt.Errorf("devstack: nats: %w", err)
	}
	s.Start()
	n := &NATS{server: s, secret: secret}
	if !s.ReadyForConnections(patience) {
		n.Stop()
		return nil, errors.New("devstack: nats does not answer")
	}
	return n, nil
}

// URL is its address, with the secret it asks for.
func (n *NATS) URL() string {
	return (&url.URL{Scheme: "nats", User: url.User(n.secret), Host: n.server.Addr().String()}).String()
}

// Stop closes every connection and waits until the server is gone.
func (n *NATS) Stop() {
	n.server.Shutdown()
	n.server.WaitForShutdown()
}
