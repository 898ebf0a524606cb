package transport

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// pressing is the share of the last ten seconds, in percent, for which something had to
// wait for a processor on a busy machine.
const pressing = 10

// contention returns for how long something had to wait for a processor since the machine
// was started, and whether the machine is busy, as far as the system tells.
func contention() (waited time.Duration, busy bool) {
	// some avg10=0.00 avg60=0.00 avg300=0.00 total=0 (Documentation/accounting/psi.rst)
	pressure, err := os.ReadFile("/proc/pressure/cpu")
	line, _, _ := bytes.Cut(pressure, []byte("\n"))
	fields := bytes.Fields(line)
	if err != nil || len(fields) != 5 {
		return 0, false
	}
	share, errShare := strconv.ParseFloat(value(fields[1]), 64)
	total, errTotal := strconv.ParseInt(value(fields[4]), 10, 64)
	return time.Duration(total) * time.Microsecond, errShare == nil && errTotal == nil && share >= pressing
}

func value(field []byte) string {
	_, v, _ := bytes.Cut(field, []byte("="))
	return string(v)
}

// queued returns how long the threads of the process, and of those that it has started,
// waited for a processor, all together.
func (p *osProcess) queued() (waited time.Duration) {
	f := family{pid: p.cmd.Process.Pid}
	f.find()
	for pid := range f.members {
		threads, _ := filepath.Glob(procFile(pid, "task/*/schedstat")) // the pattern is well-formed
		for _, thread := range threads {
			// The time on a processor, that waiting for one, and the number of turns
			// (Documentation/scheduler/sched-stats.rst).
			stat, _ := os.ReadFile(thread) // one that has ended waits no more
			if fields := bytes.Fields(stat); len(fields) == 3 {
				ns, _ := strconv.ParseInt(string(fields[1]), 10, 64)
				waited += time.Duration(ns)
			}
		}
	}
	return waited
}
