package proc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process and its descendants use.
type Usage struct {
	CPU time.Duration // on a core so far, user and system
	RSS int64         // bytes of memory resident now
	FDs int           // open files now
}

// Of reads the usage of a process and its descendants. CPU time is the
// scheduler's, in nanoseconds, summed over the threads that live: a server
// that ends threads while it is measured would be counted too low.
func Of(pid int) (u Usage, err error) {
	for _, p := range tree(pid) {
		one, err := of(p)
		if err != nil && p == pid {
			return u, err
		}
		u.CPU += one.CPU
		u.RSS += one.RSS
		u.FDs += one.FDs
	}
	return u, nil
}

func of(pid int) (u Usage, err error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	tasks, err := os.ReadDir(filepath.Join(dir, "task"))
	if err != nil {
		return u, fmt.Errorf("usage of process %d: %w", pid, err)
	}
	for _, t := range tasks {
		u.CPU += onCore(filepath.Join(dir, "task", t.Name(), "schedstat"))
	}
	statm, err := os.ReadFile(filepath.Join(dir, "statm"))
	if err != nil {
		return u, fmt.Errorf("usage of process %d: %w", pid, err)
	}
	if fields := bytes.Fields(statm); len(fields) > 1 {
		pages, _ := strconv.ParseInt(string(fields[1]), 10, 64) // the kernel wrote it
		u.RSS = pages * int64(os.Getpagesize())
	}
	fds, _ := os.ReadDir(filepath.Join(dir, "fd")) // of another account they cannot be counted
	u.FDs = len(fds)
	return u, nil
}

// onCore reads how long a thread has run; one that has ended meanwhile counts
// nothing.
func onCore(schedstat string) time.Duration {
	text, err := os.ReadFile(schedstat)
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	ns, _ := strconv.ParseInt(first, 10, 64) // the kernel wrote it
	return time.Duration(ns)
}

// tree is a process and its descendants.
func tree(pid int) []int {
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		files, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(all[i]), "task", "*", "children"))
		for _, f := range files {
			text, _ := os.ReadFile(f) // gone meanwhile
			for _, word := range strings.Fields(string(text)) {
				if child, err := strconv.Atoi(word); err == nil {
					all = append(all, child)
				}
			}
		}
	}
	return all
}
