// Package leftover finds what tests leave behind.
package leftover

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// patience is how long processes that were killed may take to go.
const patience = 30 * time.Second

// Await waits until no process has a variable in its environment that ends with the mark. It kills the processes that
// stay, and fails the test.
func Await(t testing.TB, mark string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; runtime.Gosched() {
		left := processes(mark)
		if len(left) == 0 {
			return
		}
		if time.Now().Before(deadline) {
			continue
		}
		for _, pid := range left {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
		t.Fatalf("processes %v are left", left)
	}
}

// processes returns the ids of the processes whose environment has a variable that ends with the mark. It finds none
// on a system that does not tell.
func processes(mark string) (found []int) {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		environ, err := os.ReadFile(path) // empty for a zombie
		if err == nil && bytes.Contains(environ, []byte(mark+"\x00")) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			found = append(found, pid)
		}
	}
	return found
}

// Descriptors returns how many files the process has open, or 0 where the system does not tell.
func Descriptors() int {
	open, _ := os.ReadDir("/proc/self/fd")
	return len(open)
}
