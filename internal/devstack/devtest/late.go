package devtest

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Late says that what was to happen within d of then has not, though the machine
// had time for it. A promise of two seconds is one of a machine that has nothing
// else to do; while four want each of its cores, four times as long is waited.
func Late(then time.Time, d time.Duration) bool {
	passed := time.Since(then)
	if passed <= d {
		return false
	}
	load, err := os.ReadFile("/proc/loadavg")
	return err != nil || passed > time.Duration(float64(d)*crowding(string(load), runtime.NumCPU()))
}

// crowding is how many want each core, by the last minute and by this moment, as
// Linux tells both; 1 when nobody has to wait.
func crowding(load string, cores int) float64 {
	f := strings.Fields(load)
	if len(f) < 4 {
		return 1
	}
	lately, _ := strconv.ParseFloat(f[0], 64) // what does not parse is 0
	running, _, _ := strings.Cut(f[3], "/")
	now, _ := strconv.ParseFloat(running, 64)
	return max(1, max(lately, now)/float64(cores))
}
