//go:build !race

package suites_test

const raceDetector = false
