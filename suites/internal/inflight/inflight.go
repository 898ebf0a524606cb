// Package inflight counts what has begun and has not ended, such as requests that are being answered.
package inflight

import "sync"

// Count is how many are in flight. Unlike a [sync.WaitGroup], it can be awaited while more begin. Its zero value has
// none.
type Count struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when n is 0; nil if nothing has begun or was awaited
}

// Begin counts one more.
func (c *Count) Begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == 0 {
		c.none = make(chan struct{})
	}
	c.n++
}

// End says that one that has begun has ended.
func (c *Count) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.n == 0 {
		close(c.none)
	}
}

// None returns a channel that is closed as soon as there are none.
func (c *Count) None() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.none == nil {
		c.none = make(chan struct{})
		close(c.none)
	}
	return c.none
}
