package hub

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// event is what the kernel says about a descriptor: it can be written again, or
// the client has gone.
type event struct {
	fd   int
	life int32
	gone bool
}

// epoll is an epoll instance that Go's poller watches, so that waiting for it
// costs a goroutine and no thread.
type epoll struct {
	fd   int
	file *os.File // the same descriptor
	life int32
	shut atomic.Bool
}

func newEpoll() (*epoll, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("epoll: %w", err)
	}
	return &epoll{fd: fd, file: os.NewFile(uintptr(fd), "epoll")}, nil
}

// nextLife names who has a descriptor from now on.
func (e *epoll) nextLife() int32 {
	e.life++
	return e.life
}

// add has the kernel tell when fd's client goes, and, only after a write was
// not taken whole, when there is room again: the events are edges.
func (e *epoll) add(fd int, life int32) error {
	ev := unix.EpollEvent{Events: unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(fd), Pad: life}
	if err := unix.EpollCtl(e.fd, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// remove forgets a descriptor that stays open.
func (e *epoll) remove(fd int) { _ = unix.EpollCtl(e.fd, unix.EPOLL_CTL_DEL, fd, nil) } // it may be gone

// wait calls hear with what the kernel says until the epoll is closed.
func (e *epoll) wait(hear func([]event)) error {
	raw, err := e.file.SyscallConn()
	if err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	var buf [256]unix.EpollEvent
	err = raw.Read(func(fd uintptr) bool {
		for {
			n, err := unix.EpollWait(int(fd), buf[:], 0)
			if errors.Is(err, unix.EINTR) {
				continue // what there is would not be told again
			}
			if n <= 0 {
				return err != nil
			}
			hear(eventsOf(buf[:n]))
		}
	})
	if e.shut.Load() {
		return nil
	}
	return fmt.Errorf("epoll_wait: %w", err)
}

func eventsOf(raw []unix.EpollEvent) []event {
	events := make([]event, len(raw))
	for i, ev := range raw {
		events[i] = event{fd: int(ev.Fd), life: ev.Pad, gone: ev.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0}
	}
	return events
}

func (e *epoll) close() error {
	e.shut.Store(true)
	return e.file.Close()
}

func rawOf(conn net.Conn) (syscall.RawConn, error) {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("hub: %T has no descriptor", conn)
	}
	return sc.SyscallConn()
}

// unheard is after how many milliseconds without an acknowledgement of what was
// sent, such as a beat, a client's network is taken for gone. Otherwise the
// kernel tries for a quarter of an hour.
const unheard = 60_000

// receiveBuffer is for what nobody reads: a stream's client has nothing more to
// say, and the kernel would keep more than a hundred kilobytes of it.
const receiveBuffer = 4 << 10

// detach duplicates a connection's descriptor, which stays non-blocking and
// which Go's poller does not know. (File would make it blocking.)
func detach(conn net.Conn) (fd int, err error) {
	raw, err := rawOf(conn)
	if err != nil {
		return -1, err
	}
	var dupErr error
	err = raw.Control(func(from uintptr) {
		fd, dupErr = unix.FcntlInt(from, unix.F_DUPFD_CLOEXEC, 0)
		if dupErr == nil {
			// Wishes: the kernel decides.
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, sendBuffer)
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer)
			_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, unheard)
		}
	})
	return fd, errors.Join(err, dupErr)
}

// send gives a connection what it takes at once of b. It does not tell Go's
// scheduler about the system call: handing the processor back and forth costs
// more than the call, which never waits.
func send(fd int, b []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
			syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EAGAIN:
			return 0, nil
		case syscall.EINTR:
		default:
			return 0, os.NewSyscallError("send", errno)
		}
	}
}
