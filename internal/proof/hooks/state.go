package hooks

import (
	"sync"

	"github.com/mcpconform/mcpconform/reference/server"
)

// Count returns a number that grows by one at each call in a session, from 1.
func Count(s *server.Session, key string) int {
	n := s.Value(countKey(key), func() any { return &counter{} }).(*counter)
	return n.next()
}

type countKey string

type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) next() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.n
}

// Keys is a set of ids that the goroutines of a session share.
func Keys(s *server.Session, key any) *sync.Map {
	return s.Value(key, func() any { return new(sync.Map) }).(*sync.Map)
}

// Knows reports whether a set holds a key.
func Knows(set *sync.Map, key string) bool {
	_, ok := set.Load(key)
	return ok
}
