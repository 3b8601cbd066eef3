package devstack

import (
	"errors"
	"fmt"
	"net"
)

// portTries is how many ports a server is given, one after the other, when
// others take what was free.
const portTries = 5

// freePort is one that was free a moment ago.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("devstack: find a port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return 0, fmt.Errorf("devstack: find a port: %w", err)
	}
	return port, nil
}

// errPortTaken says that a server ended because it could not have its port.
var errPortTaken = errors.New("its port was taken")

// onFreePorts has start start a server on ports of freePort, and again on others
// when somebody was faster: a port is free until anybody on the machine takes it,
// if only as his end of a connection.
func onFreePorts(start func() error) error {
	for try := 1; ; try++ {
		if err := start(); try == portTries || !errors.Is(err, errPortTaken) {
			return err
		}
	}
}
