package devstack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ErrForeign says that the folder holds somebody else's files.
var ErrForeign = errors.New("devstack: the folder holds other files")

// ErrInUse says that a running stack has the folder.
var ErrInUse = errors.New("devstack: the folder is in use")

// A Home is the folder private servers live in, locked for as long as this
// process lives or until Close.
type Home struct {
	dir     string
	sockets string
	account account
	lock    *os.File
}

// Open makes dir when it is missing and takes it. It returns ErrForeign when dir
// is neither empty nor the home of an earlier start, ErrInUse when a running
// process has it and ErrMayNotEnter when the servers could not reach it.
func Open(dir string) (*Home, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("devstack: %w", err)
	}
	if err := unlessForeign(dir); err != nil {
		return nil, err
	}
	a, err := accountFor(dir)
	if err != nil {
		return nil, err
	}
	if err := makeReachable(dir, a); err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // as the kernel names it
		return nil, fmt.Errorf("devstack: %w", err)
	}
	lock, err := takeLock(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	h := &Home{dir: dir, sockets: socketDir(dir), account: a, lock: lock}
	if err := errors.Join(private(h.sockets, a), private(h.path("log"), a)); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return h, nil
}

// unlessForeign refuses a folder with something in it and no lock of ours, so
// that a mistyped path does not fill a folder that is in use for other things.
func unlessForeign(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 { // what is wrong with it is told by whoever uses it
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, "lock")); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %s is not empty and no earlier start made it; name a new folder", ErrForeign, dir)
	}
	return nil
}

// Close gives the folder free. The servers in it have been stopped before.
// The lock file stays: were it removed, two later starts could each lock a file
// of that name.
func (h *Home) Close() error {
	return errors.Join(os.RemoveAll(h.sockets), h.lock.Close())
}

func (h *Home) path(parts ...string) string {
	return filepath.Join(append([]string{h.dir}, parts...)...)
}

// takeLock locks the file for the life of this process. The kernel lets go of it
// when the process ends, however it ends; children do not inherit it.
func takeLock(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("devstack: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		holder, _ := os.ReadFile(name)
		err = fmt.Errorf("%w: %s belongs to the running process %s; stop that one or choose another folder",
			ErrInUse, filepath.Dir(name), strings.TrimSpace(string(holder)))
	case err != nil:
		err = fmt.Errorf("devstack: lock %s: %w", name, err)
	default:
		err = sign(f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// sign writes into the lock who holds it, for the one who finds it taken.
func sign(lock *os.File) error {
	if err := lock.Truncate(0); err != nil {
		return fmt.Errorf("devstack: %w", err)
	}
	if _, err := lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return fmt.Errorf("devstack: %w", err)
	}
	return nil
}
