//go:build !linux

package peers

import "errors"

// Raw returns an error: the loop is built on epoll.
func Raw(string) error { return errors.New("raw: the loop is built on epoll, which is Linux's") }
