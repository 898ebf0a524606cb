// Package brief shortens tests that take long.
//
// With -short a test tries a part of its cases. With the race detector it tries one or two, as the same code runs in
// each. Without either it tries one in six faults of servers by their requirement alone, one in 32 in whole runs, one
// in six faults of clients, and one in eight or fewer of the oddities, sequences and hostile peers.
//
// MCPCONFORM_WHOLE=12, which .ci/run sets, tries each fault by its requirement, one in twelve in whole runs, one in
// forty of the other forms, each oddity over one of its transports, and all floods. MCPCONFORM_WHOLE=1 tries
// everything. MCPCONFORM_PART chooses which part it is; 0 is the default, so that the change is to blame for what
// fails. A nightly run may take another part each time: MCPCONFORM_PART=$(date +%s) .ci/run.
package brief

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// OneOf says how many cases to choose one from, where each takes seconds: zero, for
// all cases; a larger number with -short, and with the race detector, which would
// find the same in every case.
func OneOf() int {
	switch {
	case Race:
		return 32
	case testing.Short():
		return 8
	}
	return 0
}

// whole is what MCPCONFORM_WHOLE says, which .ci/run sets: one of so many long cases is tried, and
// each of those that take less. It is 1 for all, and 0 where it is not set.
func whole() int {
	n, err := strconv.Atoi(os.Getenv("MCPCONFORM_WHOLE"))
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// Sample is [OneOf] for cases of which a cheaper test tries each: also without -short it chooses
// a part, one of 32 or of as many as MCPCONFORM_WHOLE says.
func Sample() int {
	if n := OneOf(); n > 0 {
		return n
	}
	switch n := whole(); n {
	case 0:
		return 32
	case 1:
		return 0
	default:
		return n
	}
}

// Usual is [OneOf] for cases that are all tried where MCPCONFORM_WHOLE is set: elsewhere, it
// chooses one of n also without -short.
func Usual(n int) int {
	if of := OneOf(); of > 0 || whole() > 0 {
		return of
	}
	return n
}

// InTurn is [Usual] for cases of which MCPCONFORM_WHOLE has all tried only if it is 1: a larger
// number leaves it to MCPCONFORM_PART that each has its turn.
func InTurn(n int) int {
	if of := OneOf(); of > 0 || whole() == 1 {
		return of
	}
	return n
}

// WholeRuns leaves out a test of many whole runs when the race detector is on. The detector finds the same in the
// runs of other tests: one of each transport and mode, a few of the kill matrix, and hostile peers.
func WholeRuns(t *testing.T) {
	t.Helper()
	if Race {
		t.Skip("left out with the race detector: many whole runs, which are those of other tests")
	}
}

// choice is where a test chooses one item out of n.
type choice struct {
	test string
	n    int
}

var runs = make(map[choice]int)

// Part returns one item out of n, spread over all, of which MCPCONFORM_PART says the first. With
// -count, the next run of the test gets the next ones, also where it chooses among other items one
// out of another number. Only tests at the top level that are not parallel may call it.
func Part[E any](t *testing.T, items []E, n int) []E {
	t.Helper()
	at := choice{t.Name(), n}
	run := runs[at] + first()
	runs[at]++
	var part []E
	for i := run % n; i < len(items); i += n {
		part = append(part, items[i])
	}
	return part
}

// Begins reports whether an id begins with one of several prefixes, which have commas between them.
func Begins(id, prefixes string) bool {
	return slices.ContainsFunc(strings.Split(prefixes, ","),
		func(prefix string) bool { return strings.HasPrefix(id, prefix) })
}

// first is the part with which a test begins.
func first() int {
	n, err := strconv.ParseUint(os.Getenv("MCPCONFORM_PART"), 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}
