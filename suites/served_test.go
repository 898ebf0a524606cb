package suites_test

import (
	"bufio"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
)

var updateUnserved = flag.Bool("update-unserved", false, "drop entries of unserved.txt that are served now")

const unservedFile = "unserved.txt"

// TestServed holds every observable requirement to a check, a scenario or a
// rule. unserved.txt lists the exceptions with their reasons; it must only
// shrink.
func TestServed(t *testing.T) {
	catalogue, err := schema.Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	excused := readUnserved(t)
	served := suites.Served()
	var kept []string
	for _, r := range catalogue {
		reason, isExcused := excused[r.ID]
		delete(excused, r.ID)
		switch has := len(served[r.ID]) > 0; {
		case !r.Observable && isExcused:
			t.Errorf("%s is in %s, but is not observable", r.ID, unservedFile)
		case r.Observable && !has && !isExcused:
			t.Errorf("%s is observable, but no check, scenario or rule serves it", r.ID)
		case has && isExcused && !*updateUnserved:
			t.Errorf("%s is served now: take it out of %s", r.ID, unservedFile)
		case isExcused && !has:
			kept = append(kept, r.ID+" "+reason)
		}
	}
	for id := range excused {
		t.Errorf("%s: %s is no requirement", unservedFile, id)
	}
	if *updateUnserved {
		if err := os.WriteFile(unservedFile, []byte(strings.Join(kept, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d exceptions", len(kept))
}

// TestServedExist holds every check, scenario and rule to requirements that exist.
func TestServedExist(t *testing.T) {
	for id, names := range suites.Served() {
		if _, ok := schema.Lookup(id); !ok {
			t.Errorf("%s serve %s, which is no requirement", strings.Join(names, ", "), id)
		}
		if slices.Contains(names, "") {
			t.Errorf("something without a name serves %s", id)
		}
	}
}

func readUnserved(t *testing.T) map[string]string {
	t.Helper()
	f, err := os.Open(unservedFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	excused := make(map[string]string)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		id, reason, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if id == "" {
			continue
		}
		if reason == "" {
			t.Errorf("%s: %s has no reason", unservedFile, id)
		}
		excused[id] = reason
	}
	return excused
}
