package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// kernelTick is the unit of /proc/stat, the same on every Linux that Go runs on.
const kernelTick = 10 * time.Millisecond

// Busy returns how long a core has been at work for anybody so far, time a
// hypervisor took included.
func Busy(core int) (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("proc: how busy a core is: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 9 || fields[0] != "cpu"+strconv.Itoa(core) {
			continue
		}
		var ticks int64
		for i, f := range fields[1:9] { // user nice system idle iowait irq softirq steal
			n, _ := strconv.ParseInt(f, 10, 64) // the kernel wrote it
			if i != 3 && i != 4 {
				ticks += n
			}
		}
		return time.Duration(ticks) * kernelTick, nil
	}
	return 0, fmt.Errorf("proc: there is no core %d", core)
}
