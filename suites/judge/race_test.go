//go:build race

package judge_test

// The race detector makes everything ten times as slow.
const floodLines = 10_000
