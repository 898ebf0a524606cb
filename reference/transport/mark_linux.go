package transport

import (
	"bytes"
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
// it is being looked for, and one that is being executed shows its environment
// only a moment later.
const (
	maxScans  = 10
	maxEarly  = 1000
	earlyWait = time.Millisecond
)

// killMarked kills every process whose environment holds the variable: those
// that a target started and moved out of its process group. Processes that are
// older than the target are not looked at: they are not its own, and on most
// machines there are many.
func killMarked(variable string, older []int) {
	killed := make(map[int]bool)
	early := 0
	for scans := 0; scans < maxScans; {
		switch found, unknown := scanMarked(variable, older, killed); {
		case unknown && early < maxEarly:
			early++
			time.Sleep(earlyWait) //nolint:forbidigo // the end of an execve cannot be awaited
		case !found:
			return
		default:
			scans++
		}
	}
}

// scanMarked kills the marked processes that it finds. It reports whether there
// was one that had not been killed before, and one that cannot be told yet.
func scanMarked(variable string, older []int, killed map[int]bool) (found, unknown bool) {
	for _, pid := range allPIDs() {
		if _, there := slices.BinarySearch(older, pid); there || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile(procFile(pid, "environ"))
		if err != nil {
			continue // gone, or of another user
		}
		unknown = unknown || len(env) == 0 && executing(pid)
		for v := range bytes.SplitSeq(env, []byte{0}) {
			if string(v) == variable {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				found = found || !killed[pid]
				killed[pid] = true
				break
			}
		}
	}
	return found, unknown
}

// executing reports whether a process without an environment is in the middle of
// an execve: its parent may believe that it runs, as the files to be closed are
// closed, but where its environment stands is not set yet. One that has ended,
// or was given none, is not.
func executing(pid int) bool {
	if _, err := os.Readlink(procFile(pid, "exe")); err != nil {
		return false // a zombie, or a thread of the kernel
	}
	stat, err := os.ReadFile(procFile(pid, "stat"))
	// The second field, the name in parentheses, may hold anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const envEnd = 51 - 3 // proc_pid_stat(5), from the third field on
	return err == nil && len(fields) > envEnd && string(fields[envEnd]) == "0"
}

func procFile(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }
