//go:build !linux

package reader

import (
	"errors"
	"io"
	"os"
)

// Run returns an error: readers are built on epoll.
func Run(*os.File, io.Writer) error {
	return errors.New("reader: sessions are read with epoll, which is Linux's")
}
