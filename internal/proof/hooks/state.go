package hooks

import (
	"sync"
	"sync/atomic"

	"github.com/mcpconform/mcpconform/reference/server"
)

// Kept returns what a session keeps under a key: a zero value at first.
func Kept[T any](s *server.Session, key any) *T {
	return s.Value(key, func() any { return new(T) }).(*T)
}

type (
	countKey string
	onceKey  string
)

// Count returns a number that grows by one at each call in a session, from 1.
func Count(s *server.Session, key string) int {
	return int(Kept[atomic.Int64](s, countKey(key)).Add(1))
}

// Once reports true the first time in a session.
func Once(s *server.Session, key string) bool { return !Kept[atomic.Bool](s, onceKey(key)).Swap(true) }

// Keys is a set of ids that the goroutines of a session share.
func Keys(s *server.Session, key any) *sync.Map { return Kept[sync.Map](s, key) }

// Knows reports whether a set holds a key.
func Knows(set *sync.Map, key string) bool {
	_, ok := set.Load(key)
	return ok
}
