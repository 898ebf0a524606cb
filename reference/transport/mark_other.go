//go:build !linux

package transport

// Only Linux shows the environment of other processes.
func killMarked(string) {}
