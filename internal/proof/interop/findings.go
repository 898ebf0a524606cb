package interop

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/mcpconform/mcpconform/suites/result"
)

// Findings is a file of what runs find on real targets.
type Findings struct {
	// Reasons say for each requirement why the text bears its findings out.
	Reasons map[string]string `yaml:"reasons"`
	// Objections say for each requirement what a maintainer could object, and why
	// its findings stand all the same or are contested.
	Objections map[string]string `yaml:"objections"`
	// Timing lists requirements with findings that depend on a race in the target, and names the two events. The
	// findings may come or not.
	Timing map[string]string `yaml:"timing"`
	// Seldom lists requirements about something that the target does in some runs only, and names it. Other runs are
	// inconclusive.
	Seldom map[string]string `yaml:"seldom,omitempty"`
	// Targets holds, by target and transport, the verdicts fail, warn and error.
	Targets map[string]map[string]result.Verdict `yaml:"targets"`

	path   string
	update bool
	mu     sync.Mutex
}

// Load reads the file. To update it, it may be missing.
func Load(t *testing.T, path string, update bool) *Findings {
	t.Helper()
	k := &Findings{path: path, update: update}
	raw, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(raw, k)
	}
	if err != nil && !(update && errors.Is(err, fs.ErrNotExist)) {
		t.Fatal(err)
	}
	if k.Targets == nil {
		k.Targets = make(map[string]map[string]result.Verdict)
	}
	return k
}

// Check compares the findings of a run with the known findings on the target. It notes them if the file is to be
// updated. A run in which only a part was tried need not find all.
func (k *Findings) Check(t *testing.T, key string, part bool, run *result.Run) {
	t.Helper()
	found, odd := k.compare(key, part, run)
	if k.update {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.Targets[key] = found
		return
	}
	for _, what := range slices.Sorted(maps.Keys(odd)) {
		t.Errorf("%s%s", what, odd[what])
	}
}

// Save writes the file when it is to be updated. New requirements lack reason and
// objection, which the next comparison finds.
func (k *Findings) Save(t *testing.T) {
	t.Helper()
	if !k.update {
		return
	}
	raw, err := yaml.Marshal(k)
	if err == nil {
		err = os.WriteFile(k.path, raw, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// compare returns the verdicts fail, warn and error of a run, and its differences
// from the file, with their details.
func (k *Findings) compare(key string, part bool,
	run *result.Run) (found map[string]result.Verdict, odd map[string]string) {
	found, odd = make(map[string]result.Verdict), make(map[string]string)
	k.mu.Lock()
	known := maps.Clone(k.Targets[key])
	k.mu.Unlock()
	for _, h := range run.Harness {
		odd["mcpconform itself: "+h.Message] = ""
	}
	if run.Verdict == result.Incomplete {
		odd["the run is incomplete: "+run.Reason] = ""
	}
	for _, q := range run.Requirements {
		if q.Verdict != result.Fail && q.Verdict != result.Warn && q.Verdict != result.Error {
			continue
		}
		if k.Reasons[q.ID] == "" {
			odd[fmt.Sprintf("%s: %s gives no reason for it", q.ID, k.path)] = shown(q)
		}
		if k.Objections[q.ID] == "" {
			odd[fmt.Sprintf("%s: %s does not say what could be objected to it", q.ID, k.path)] = shown(q)
		}
		if _, either := k.Timing[q.ID]; either {
			continue
		}
		found[q.ID] = q.Verdict
		if known[q.ID] != q.Verdict && !(part && known[q.ID] != "") {
			odd[fmt.Sprintf("%s is %s, but %s has %q: ", q.ID, q.Verdict, k.path, known[q.ID])] = shown(q)
		}
		delete(known, q.ID)
	}
	if part {
		return found, odd
	}
	for id, v := range known {
		odd[fmt.Sprintf("%s is no longer %s", id, v)] = ""
	}
	return found, odd
}

func shown(q result.Requirement) string {
	var b strings.Builder
	for _, f := range q.Findings {
		fmt.Fprintf(&b, "\n  %s: %s", f.Check, f.Message)
		for _, e := range f.Evidence {
			fmt.Fprintf(&b, "\n    %s %s %s", e.From, e.Kind, e.Text)
		}
	}
	return b.String() + q.Reason
}

// Summary of a run in one line.
func Summary(run *result.Run) string {
	c := run.Counts()
	return fmt.Sprintf("%s %s in %.1fs: %d pass, %d fail, %d warn, %d inconclusive, %d skip, %d error; %s %s",
		run.Target.Name, run.Target.Version, run.Seconds, c[result.Pass], c[result.Fail], c[result.Warn],
		c[result.Inconclusive], c[result.Skip], c[result.Error], run.Verdict, run.Reason)
}
