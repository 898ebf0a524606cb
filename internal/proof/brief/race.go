//go:build race

package brief

// Race reports whether the race detector is on, with which everything takes
// about ten times as long.
const Race = true
