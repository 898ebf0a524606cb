package transport

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// maxScans bounds how often killMarked looks again: a process may start others
// while it is being looked for.
const maxScans = 10

// killMarked kills every process whose environment holds the variable: those
// that a target started and moved out of its process group.
func killMarked(variable string) {
	killed := make(map[int]bool)
	for range maxScans {
		if !scanMarked(variable, killed) {
			return
		}
	}
}

// scanMarked kills the marked processes that it finds and reports whether there
// was one that had not been killed before.
func scanMarked(variable string, killed map[int]bool) (found bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile("/proc/" + entry.Name() + "/environ")
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
