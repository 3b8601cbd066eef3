package devstack

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// longestSocketDir leaves room for the longest socket name in the 107 bytes that
// the address of a unix socket may have.
const longestSocketDir = 107 - len("/.s.PGSQL.5432")

// socketDir is inside dir, or, when that is too deep for the address of a socket,
// a folder of its own below /tmp, named after dir so that the next start finds
// what a crash left there.
func socketDir(dir string) string {
	sockets := filepath.Join(dir, "run")
	if len(sockets) > longestSocketDir {
		sockets = fmt.Sprintf("/tmp/seatcast-%.8x", sha256.Sum256([]byte(dir)))
	}
	return sockets
}

// makeReachable makes dir and lets a pass through it. What lies above it is not
// ours to change: where a may not enter that, nothing is made and the error says so.
func makeReachable(dir string, a account) error {
	above, missing := filepath.Dir(dir), []string{}
	for !exists(above) {
		missing, above = append(missing, above), filepath.Dir(above)
	}
	if err := a.mayEnter(above); err != nil {
		return fmt.Errorf("%w on the way to %s; choose another folder", err, dir)
	}
	slices.Reverse(missing)
	for _, folder := range append(missing, dir) {
		if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("devstack: %w", err)
		}
		if err := openUp(folder, a); err != nil {
			return err
		}
	}
	return nil
}

// openUp lets a pass through a folder of ours whatever the umask made of it.
func openUp(folder string, a account) error {
	info, err := os.Stat(folder)
	if err != nil {
		return fmt.Errorf("devstack: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("devstack: %s is not a folder", folder)
	}
	if a.credential() == nil || info.Mode()&0o001 != 0 {
		return nil
	}
	if err := os.Chmod(folder, info.Mode().Perm()|0o111); err != nil {
		return fmt.Errorf("devstack: %w", err)
	}
	return nil
}

// private makes a folder for a and nobody else. One that exists must be a's:
// below /tmp anybody could have made it.
func private(folder string, a account) error {
	err := os.Mkdir(folder, 0o700)
	if err == nil {
		err = os.Chown(folder, a.uid, a.gid)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("devstack: %w", err)
	}
	info, err := os.Lstat(folder)
	if err != nil {
		return fmt.Errorf("devstack: %w", err)
	}
	if !info.IsDir() || ownerOf(info) != a.uid || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("devstack: %s is there already and is not a private folder of user %s", folder, a.name)
	}
	return nil
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// ownerOf is the uid of a file's owner, or -1 where files have none.
func ownerOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}
