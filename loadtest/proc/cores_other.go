//go:build !linux

package proc

import (
	"errors"
	"syscall"
)

// Cores are numbers of cores, ascending.
type Cores []int

// ErrSystem says that nothing can be measured on this system.
var ErrSystem = errors.New("proc: processes can be kept to a core and be counted on Linux only")

// Allowed returns ErrSystem.
func Allowed() (Cores, error) { return nil, ErrSystem }

// Stay returns ErrSystem.
func Stay(Cores) error { return ErrSystem }

func pin(int, Cores) error { return ErrSystem }

func lastWord(*syscall.SysProcAttr) {}
