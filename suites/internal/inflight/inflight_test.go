package inflight_test

import (
	"sync"
	"testing"

	"github.com/mcpconform/mcpconform/suites/internal/inflight"
)

func TestCount(t *testing.T) {
	var c inflight.Count
	none := func() bool {
		select {
		case <-c.None():
			return true
		default:
			return false
		}
	}
	for range 2 { // it can be used again
		if !none() {
			t.Error("nothing has begun, and it is awaited")
		}
		c.Begin()
		c.Begin()
		c.End()
		if none() {
			t.Error("one has not ended, and it is not awaited")
		}
		c.End()
	}
}

// More may begin while others wait.
func TestBeginBesideNone(t *testing.T) {
	var c inflight.Count
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			c.Begin()
			c.End()
			<-c.None()
		})
	}
	all.Wait()
	<-c.None()
}
