// Package virtual runs tests in virtual time.
package virtual

import (
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// collectLess trades memory for time: what runs in virtual time never waits, so that collecting
// garbage takes a third of it otherwise.
var collectLess = sync.OnceFunc(func() { debug.SetGCPercent(400) })

// Test runs a test in a bubble of [synctest]. Time stops there when the test
// returns; what net/http still does by itself then, such as making a connection
// that nobody wants any more, is waited for.
func Test(t *testing.T, test func(*testing.T)) {
	t.Helper()
	collectLess()
	synctest.Test(t, func(t *testing.T) {
		defer func() { <-time.After(time.Second) }()
		test(t)
	})
}
