// Package virtual runs tests in virtual time.
package virtual

import (
	"testing"
	"testing/synctest"
	"time"
)

// Test runs a test in a bubble of [synctest]. Time stops there when the test
// returns; what net/http still does by itself then, such as making a connection
// that nobody wants any more, is waited for.
func Test(t *testing.T, test func(*testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer func() { <-time.After(time.Second) }()
		test(t)
	})
}
