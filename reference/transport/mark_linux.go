package transport

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"syscall"
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

// maxScans bounds how often killMarked looks again: a process may start others
// while it is being looked for.
const maxScans = 10

// killMarked kills every process whose environment holds the variable: those
// that a target started and moved out of its process group. The older ones,
// which were there before the target, are none of its own, and on most machines
// far too many to be looked at whenever a target ends.
func killMarked(variable string, older []int) {
	killed := make(map[int]bool)
	for range maxScans {
		if !scanMarked(variable, older, killed) {
			return
		}
	}
}

// scanMarked kills the marked processes that it finds and reports whether there
// was one that had not been killed before.
func scanMarked(variable string, older []int, killed map[int]bool) (found bool) {
	for _, pid := range allPIDs() {
		if _, there := slices.BinarySearch(older, pid); there || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if err != nil {
			continue // gone, or of another user
		}
		for v := range bytes.SplitSeq(env, []byte{0}) {
			if string(v) == variable {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				found = found || !killed[pid]
				killed[pid] = true
				break
			}
		}
	}
	return found
}
