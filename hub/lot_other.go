//go:build !linux

package hub

import (
	"context"
	"errors"
	"net"
)

// lot is where sessions are parked, which takes Linux.
type lot struct{}

func (h *Hub) park(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (*lot) stream(*session, net.Conn, []byte) error { return errors.ErrUnsupported }

func (*lot) socket(*session, *listener) {}

func (*lot) sink(*traffic) (*wsSink, func(net.Conn, []byte) error) { return nil, nil }
