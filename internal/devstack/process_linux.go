package devstack

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// attributes make the kernel send lastWord to the child when its parent dies.
func attributes(lastWord syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: lastWord}
}

// seesLingering says whether lingering can tell.
const seesLingering = true

// lingering finds the processes of this name that work in the folder: both
// servers make the folder of their data their working directory, and every
// process of a Postgres inherits it. It is the folder itself that counts: by the same
// path a process with another root works elsewhere. The name is the kernel's: what it says the
// executable is depends on links (Debian's redis-server is one to redis-check-rdb).
func lingering(folder, program string) (pids []int) {
	here, err := os.Stat(folder)
	if err != nil {
		return nil // nobody works there
	}
	cwds, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, cwd := range cwds {
		if at, err := os.Stat(cwd); err != nil || !os.SameFile(at, here) {
			continue
		}
		name, err := os.ReadFile(filepath.Join(filepath.Dir(cwd), "comm"))
		if err != nil || strings.TrimSpace(string(name)) != program {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(cwd))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
