//go:build unix && !linux

package devstack

import "syscall"

// attributes are plain here: only Linux ends children with their parent.
func attributes(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{}
}

const seesLingering = false

// lingering finds nothing here; a server that outlived its parent is refused by
// its own lock files and must be ended by hand.
func lingering(string, string) []int {
	return nil
}
