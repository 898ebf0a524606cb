package main

import (
	"os"
	"syscall"
)

// peak returns how much memory a process has held at the most.
func peak(s *os.ProcessState) int64 {
	usage, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return usage.Maxrss << 10
}
