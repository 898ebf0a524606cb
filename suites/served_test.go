package suites_test

import (
	"bufio"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/mockserver/mockclient"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
)

var updateUnserved = flag.Bool("update-unserved", false, "drop entries of unserved.txt that are served now")

const unservedFile = "unserved.txt"

// TestServed holds every observable requirement, for each party that it binds, to
// a check or scenario, or to a rule that a fault of that party proves. unserved.txt lists the exceptions, party first, with their
// reasons; it must only shrink.
func TestServed(t *testing.T) {
	catalogue, err := schema.Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	excused := readUnserved(t)
	var kept []string
	for _, p := range []wire.Party{wire.Server, wire.Client} {
		served, proved := suites.Served(p), provedRules(p)
		for _, r := range catalogue {
			if judged := r.JudgedParty(); judged != schema.Both && judged != schema.Party(p) {
				continue
			}
			key := string(p) + " " + r.ID
			reason, isExcused := excused[key]
			delete(excused, key)
			has := slices.ContainsFunc(served[r.ID], func(name string) bool { return !strings.HasPrefix(name, "rule: ") }) ||
				len(served[r.ID]) > 0 && proved[r.ID]
			switch {
			case !r.Observable && isExcused:
				t.Errorf("%s is in %s, but is not observable", key, unservedFile)
			case r.Observable && !has && !isExcused:
				t.Errorf("%s is observable, but no check or scenario serves it, and no fault proves that a rule does (%s)", key, served[r.ID])
			case has && isExcused && !*updateUnserved:
				t.Errorf("%s is served now: take it out of %s", key, unservedFile)
			case isExcused && !has:
				kept = append(kept, key+" "+reason)
			}
		}
	}
	for key := range excused {
		t.Errorf("%s: %s does not name a requirement on a party", unservedFile, key)
	}
	if *updateUnserved {
		if err := os.WriteFile(unservedFile, []byte(strings.Join(kept, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d exceptions", len(kept))
}

// provedRules returns the requirements that a fault of a party breaks.
func provedRules(p wire.Party) map[string]bool {
	proved := make(map[string]bool)
	for _, f := range mockserver.Catalogue() {
		proved[f.Requirement] = proved[f.Requirement] || p == wire.Server
	}
	for _, f := range mockclient.Catalogue() {
		proved[f.Requirement] = proved[f.Requirement] || p == wire.Client
	}
	return proved
}

// TestServedExist holds every check, scenario and rule to requirements that exist.
func TestServedExist(t *testing.T) {
	for id, names := range suites.Served(wire.Server, wire.Client) {
		if _, ok := schema.Lookup(id); !ok {
			t.Errorf("%s serve %s, which is not a requirement", strings.Join(names, ", "), id)
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
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		parts := strings.SplitN(line, " ", 3)
		if len(parts) < 3 {
			t.Errorf("%s: %q has no party, requirement and reason", unservedFile, line)
			continue
		}
		excused[parts[0]+" "+parts[1]] = parts[2]
	}
	return excused
}
