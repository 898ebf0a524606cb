// Package brief shortens tests with many long cases: a part of them, spread over all, stands for the others.
//
// A test says of how many cases it tries one: [Part], or [Sample] for costly ones. With -short it tries a quarter of
// these, and with the race detector one or two, because the same code runs in each. MCPCONFORM_WHOLE=1, which .ci/run
// sets, tries each case, and the costly ones as before. The flag -whole tries every case in every way.
package brief

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var whole = flag.Bool("whole", false, "try every case in every way, which takes hours")

// Whole reports whether every case is tried in every way.
func Whole() bool { return *whole }

// Each reports whether each case is tried.
func Each() bool { return *whole || os.Getenv("MCPCONFORM_WHOLE") == "1" && !testing.Short() && !Race }

// Part returns one of n items where not each is tried. With -count, the next run of a test gets the next ones. Only
// tests at the top level that are not parallel may call it.
func Part[E any](t *testing.T, items []E, n int) []E {
	t.Helper()
	if Each() {
		n = 1
	}
	return part(t, items, n)
}

// Sample is [Part] for costly items, of which MCPCONFORM_WHOLE leaves one of n as well.
func Sample[E any](t *testing.T, items []E, n int) []E {
	t.Helper()
	if Whole() {
		n = 1
	}
	return part(t, items, n)
}

// choice is where a test chooses one item out of n.
type choice struct {
	test string
	n    int
}

var runs = make(map[choice]int)

func part[E any](t *testing.T, items []E, n int) []E {
	t.Helper()
	switch {
	case Race:
		n *= 16
	case testing.Short():
		n *= 4
	}
	n = max(1, min(n, len(items)))
	at := choice{t.Name(), n}
	run := runs[at]
	runs[at]++
	var chosen []E
	for i := run % n; i < len(items); i += n {
		chosen = append(chosen, items[i])
	}
	return chosen
}

// WholeRuns leaves out a test of many whole runs when the race detector is on. The detector finds the same in the
// runs of other tests: one of each transport and mode, a few of the kill matrix, and hostile peers.
func WholeRuns(t *testing.T) {
	t.Helper()
	if Race {
		t.Skip("left out with the race detector: many whole runs, which are those of other tests")
	}
}

// Begins reports whether an id begins with one of several prefixes, which have commas between them.
func Begins(id, prefixes string) bool {
	return slices.ContainsFunc(strings.Split(prefixes, ","),
		func(prefix string) bool { return strings.HasPrefix(id, prefix) })
}
