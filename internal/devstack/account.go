package devstack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ErrMayNotEnter says that the account of the servers may not enter a folder on
// the way to its data.
var ErrMayNotEnter = errors.New("devstack: folder closed to the servers")

// An account is who the servers run as.
type account struct {
	name     string
	uid, gid int
}

// accountFor is who runs the servers of dir: whoever started us, unless that is
// root. Postgres refuses root and Redis need not have it; then it is the owner of
// the data already there, or the first usual account this machine knows.
func accountFor(dir string) (account, error) {
	if os.Geteuid() != 0 {
		return account{name: "uid " + strconv.Itoa(os.Geteuid()), uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	if info, err := os.Stat(filepath.Join(dir, "log")); err == nil {
		if u, err := user.LookupId(strconv.Itoa(ownerOf(info))); err == nil && u.Uid != "0" {
			return fromUser(u)
		}
	}
	for _, name := range []string{"postgres", "redis", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			return fromUser(u)
		}
	}
	return account{}, errors.New("devstack: started by root, and there is no user postgres, redis or nobody to run the servers as")
}

func fromUser(u *user.User) (account, error) {
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return account{}, fmt.Errorf("devstack: user %s: %w", u.Username, err)
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return account{}, fmt.Errorf("devstack: user %s: %w", u.Username, err)
	}
	return account{name: u.Username, uid: uid, gid: gid}, nil
}

// credential is what a child needs to run as the account; nil when it is ours.
func (a account) credential() *syscall.Credential {
	if a.uid == os.Geteuid() {
		return nil
	}
	return &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
}

// mayEnter returns ErrMayNotEnter naming the first folder from the root down to
// dir that the account may not pass through. A process of the account tries it:
// nobody else knows what groups, access lists and mounts make of it.
func (a account) mayEnter(dir string) error {
	folders := []string{dir}
	for folders[0] != filepath.Dir(folders[0]) {
		folders = slices.Insert(folders, 0, filepath.Dir(folders[0]))
	}
	try := exec.Command("/bin/sh", append([]string{"-c", `for d; do [ -x "$d" ] || { printf %s "$d"; exit; }; done`, "sh"}, folders...)...)
	try.Dir = "/"
	try.SysProcAttr = &syscall.SysProcAttr{Credential: a.credential()}
	closed, err := try.Output()
	if err != nil {
		return fmt.Errorf("devstack: try the way to %s as user %s: %w", dir, a.name, err)
	}
	if len(closed) > 0 {
		return fmt.Errorf("%w: user %s, whom they run as, may not enter %s", ErrMayNotEnter, a.name, strings.TrimSpace(string(closed)))
	}
	return nil
}
