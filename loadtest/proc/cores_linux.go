package proc

import (
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// Cores are numbers of cores, ascending.
type Cores []int

// mask is the kernel's set of up to 1024 cores.
type mask [16]uint64

func (c Cores) mask() (m mask) {
	for _, n := range c {
		m[n/64] |= 1 << (n % 64)
	}
	return m
}

// Allowed returns the cores this process may use.
func Allowed() (Cores, error) {
	var m mask
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(m), uintptr(unsafe.Pointer(&m))); errno != 0 {
		return nil, fmt.Errorf("proc: which cores there are: %w", errno)
	}
	var cores Cores
	for i, word := range m {
		for ; word != 0; word &= word - 1 {
			cores = append(cores, i*64+bits.TrailingZeros64(word))
		}
	}
	return cores, nil
}

// Stay keeps every thread of this process, and children started from now on,
// on the given cores.
func Stay(on Cores) error {
	seen := make(map[int]bool)
	for { // a thread that is started meanwhile inherits or is seen by the next look
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("proc: threads: %w", err)
		}
		fresh := false
		for _, task := range tasks {
			tid, err := strconv.Atoi(task.Name())
			if err != nil || seen[tid] {
				continue
			}
			seen[tid], fresh = true, true
			if err := pin(tid, on); err != nil {
				return err
			}
		}
		if !fresh {
			return nil
		}
	}
}

// pin keeps one thread, 0 for the calling one, on the given cores.
func pin(tid int, on Cores) error {
	m := on.mask()
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, uintptr(tid), unsafe.Sizeof(m), uintptr(unsafe.Pointer(&m)))
	if errno != 0 && errno != syscall.ESRCH { // a thread that has ended needs none
		return fmt.Errorf("proc: keep to cores %v: %w", on, errno)
	}
	return nil
}

// lastWord makes the kernel kill the child should its parent die.
func lastWord(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
