// Package brief keeps tests within bounds where they take long.
package brief

import "testing"

// OneOf is how many cases one stands for in this run of the tests, each of which
// takes seconds: all are tried (zero), some with -short, few with the race
// detector, which has nothing more to find in the last than in the first.
func OneOf() int {
	switch {
	case Race:
		return 32
	case testing.Short():
		return 8
	}
	return 0
}

var turns = make(map[string]int) // by the name of the test

// Part returns one item out of n, spread over all. With -count, the next run of
// the test gets the next ones. Only tests at the top level that are not
// parallel may ask for it.
func Part[E any](t *testing.T, items []E, n int) []E {
	t.Helper()
	turn := turns[t.Name()]
	turns[t.Name()]++
	var part []E
	for i := turn % n; i < len(items); i += n {
		part = append(part, items[i])
	}
	return part
}
