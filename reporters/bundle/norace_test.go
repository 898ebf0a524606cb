//go:build !race

package bundle_test

const raceDetector = false
