package transport

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// allPIDs returns the ids of all processes in order.
func allPIDs() []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = proc.Close() }()
	names, _ := proc.Readdirnames(-1) // those before an error count
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// Bounds of how often killMarked looks again: a process may start others while
// it is being looked for, one that is gone may have done so before, and one that is
// being executed shows its environment only a moment later.
const (
	maxScans = 10
	maxGone  = 10
	maxWaits = 1000
	lookWait = time.Millisecond
)

// killMarked kills every process whose environment holds the variable: those
// that a target started and moved out of its process group, and waits until they
// are gone. Processes that are older than the target are not looked at: they are
// not its own, and on most machines there are many.
func killMarked(variable string, older []int) {
	s := scan{variable: variable, older: older, killed: make(map[int]bool)}
	for scans, gone, waits := 0, 0, 0; scans < maxScans; {
		s.look()
		switch {
		case (s.early || s.dying) && !s.found && waits < maxWaits:
			waits++
			// Neither the end of an execve nor that of a stranger can be awaited.
			time.Sleep(lookWait) //nolint:forbidigo // see above
		case s.found:
			scans++
		case s.gone && gone < maxGone:
			gone++
		default:
			return
		}
	}
}

// scan looks for marked processes and kills them.
type scan struct {
	variable string
	older    []int
	killed   map[int]bool
	// These are the results of the last look: a process not killed before, a killed process that is still there, a
	// process in doubt, and a process that was gone before the doubt was resolved.
	found, dying, early, gone bool
}

func (s *scan) look() {
	s.found, s.dying, s.early, s.gone = false, false, false, false
	for _, pid := range allPIDs() {
		if _, there := slices.BinarySearch(s.older, pid); there || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile(procFile(pid, "environ"))
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH):
			s.gone = true
		case err != nil: // of another user
		case len(env) == 0:
			s.early = s.early || executing(pid)
		case marked(env, s.variable):
			_ = syscall.Kill(pid, syscall.SIGKILL)
			s.found = s.found || !s.killed[pid]
			s.dying = s.dying || s.killed[pid]
			s.killed[pid] = true
		}
	}
}

func marked(env []byte, variable string) bool {
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if string(v) == variable {
			return true
		}
	}
	return false
}

// executing reports whether a process without a visible environment is in the middle of an execve. Its parent may
// believe that it runs, since the files to be closed are closed, but the address of its environment is not set yet. A
// process that has ended, or has an empty environment, is not executing.
func executing(pid int) bool {
	if _, err := os.Readlink(procFile(pid, "exe")); err != nil {
		return false // a zombie, or a thread of the kernel
	}
	stat, err := os.ReadFile(procFile(pid, "stat"))
	return err == nil && unsettled(stat)
}

// unsettled reports whether the environment of a process may still appear: its stat shows no address of its code,
// which is set after the environment, or shows an environment that was not there a moment ago.
func unsettled(stat []byte) bool {
	fields := fromThird(stat)
	const startCode, envStart, envEnd = 26 - 3, 50 - 3, 51 - 3 // proc_pid_stat(5), from the third field on
	return len(fields) > envEnd && (string(fields[startCode]) == "0" || !bytes.Equal(fields[envStart], fields[envEnd]))
}

// fromThird returns the fields of /proc/PID/stat from the third on: the second, the name in parentheses, may hold
// anything.
func fromThird(stat []byte) [][]byte { return bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) }

func procFile(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }
