package peers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"unsafe"
)

// Raw is the loop of raw/raw.c in Go, for where there is no C compiler. It ends
// with its input.
func Raw(handshake string) error {
	r := &rawLoop{greeting: []byte(handshake), place: make(map[int]int)}
	if err := r.listen(); err != nil {
		return fmt.Errorf("raw: %w", err)
	}
	return r.run()
}

type rawLoop struct {
	greeting []byte
	ep, ln   int
	fds      []int
	place    map[int]int // of an fd in fds
}

func (r *rawLoop) listen() (err error) {
	if r.ep, err = syscall.EpollCreate1(0); err != nil {
		return err
	}
	if r.ln, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK, 0); err != nil {
		return err
	}
	if err = syscall.Bind(r.ln, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if err = syscall.Listen(r.ln, 4096); err != nil {
		return err
	}
	at, err := syscall.Getsockname(r.ln)
	if err != nil {
		return err
	}
	if _, err = fmt.Println(at.(*syscall.SockaddrInet4).Port); err != nil {
		return err
	}
	return errors.Join(r.watch(0), r.watch(r.ln))
}

func (r *rawLoop) watch(fd int) error {
	return syscall.EpollCtl(r.ep, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)})
}

func (r *rawLoop) run() error {
	events := make([]syscall.EpollEvent, 256)
	for {
		n, err := syscall.EpollWait(r.ep, events, -1)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("raw: %w", err)
		}
		for _, e := range events[:max(n, 0)] {
			switch fd := int(e.Fd); fd {
			case 0:
				if !r.publish() {
					return nil
				}
			case r.ln:
				r.accept()
			default:
				r.greet(fd)
			}
		}
	}
}

// publish writes what comes on the input to everybody; false is its end.
func (r *rawLoop) publish() bool {
	var size [4]byte
	if _, err := io.ReadFull(os.Stdin, size[:]); err != nil {
		return false
	}
	bytes := make([]byte, binary.LittleEndian.Uint32(size[:]))
	if _, err := io.ReadFull(os.Stdin, bytes); err != nil {
		return false
	}
	for i := len(r.fds) - 1; i >= 0; i-- {
		if n, errno := rawSend(r.fds[i], bytes); n != len(bytes) && errno != syscall.EAGAIN {
			r.leave(r.fds[i])
		}
	}
	return true
}

func (r *rawLoop) accept() {
	for {
		fd, _, err := syscall.Accept4(r.ln, syscall.SOCK_NONBLOCK)
		if err != nil {
			return
		}
		_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
		_ = r.watch(fd) // one that is not watched gets no answer, and the reader says so
	}
}

func (r *rawLoop) greet(fd int) {
	var ask [8192]byte
	n, err := syscall.Read(fd, ask[:])
	switch _, there := r.place[fd]; {
	case n == 0 || err != nil && !errors.Is(err, syscall.EAGAIN):
		r.leave(fd)
	case n > 0 && !there: // the whole request, on the loopback
		_, _ = rawSend(fd, r.greeting)
		r.place[fd] = len(r.fds)
		r.fds = append(r.fds, fd)
	}
}

func (r *rawLoop) leave(fd int) {
	if at, there := r.place[fd]; there {
		last := r.fds[len(r.fds)-1]
		r.fds[at], r.place[last] = last, at
		r.fds = r.fds[:len(r.fds)-1]
		delete(r.place, fd)
	}
	_ = syscall.Close(fd)
}

// rawSend writes without telling Go's scheduler: the sockets never block.
func rawSend(fd int, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
		syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, 0, 0)
	return int(n), errno
}
