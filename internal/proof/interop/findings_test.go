package interop

import (
	"maps"
	"slices"
	"testing"

	"github.com/mcpconform/mcpconform/suites/result"
)

// A reader of a finding learns why the text supports it, and what speaks against it.
func TestFindingsAreArgued(t *testing.T) {
	for _, name := range []string{"findings", "client-findings", "authorization-findings"} {
		path := "../../../fixtures/targets/" + name + ".yaml"
		k := Load(t, path, false)
		found := make(map[string]bool)
		for id, why := range k.Timing {
			found[id] = true
			if why == "" {
				t.Errorf("%s does not say what the findings on %s depend on", path, id)
			}
		}
		for _, verdicts := range k.Targets {
			for id := range verdicts {
				found[id] = true
			}
		}
		if len(found) == 0 {
			t.Errorf("%s has no findings", path)
		}
		for _, id := range slices.Sorted(maps.Keys(found)) {
			if k.Reasons[id] == "" {
				t.Errorf("%s gives no reason for %s", path, id)
			}
			if k.Objections[id] == "" {
				t.Errorf("%s does not say what could be objected to %s, and why it stands", path, id)
			}
		}
	}
}

func TestUpdateKeepsWhatIsWrittenByHand(t *testing.T) {
	path := t.TempDir() + "/findings.yaml"
	k := &Findings{
		Reasons: map[string]string{"a": "why"}, Objections: map[string]string{"a": "what speaks against it"}, Timing: map[string]string{"b": "which comes first"},
		path: path, update: true,
	}
	k.Save(t)
	again := Load(t, path, false)
	if !maps.Equal(again.Reasons, k.Reasons) || !maps.Equal(again.Objections, k.Objections) || !maps.Equal(again.Timing, k.Timing) {
		t.Errorf("got %+v, want %+v", again, k)
	}
}

// A run in which a part was tried need not find what is known, and may find nothing new.
func TestPartOfWhatIsKnown(t *testing.T) {
	argued := map[string]string{"a": "why", "b": "why", "c": "why"}
	k := &Findings{
		Reasons: argued, Objections: argued, Targets: map[string]map[string]result.Verdict{"x http": {"a": result.Fail, "b": result.Warn}},
	}
	run := func(verdicts map[string]result.Verdict) *result.Run {
		r := &result.Run{Verdict: result.NotConformant}
		for id, v := range verdicts {
			r.Requirements = append(r.Requirements, result.Requirement{ID: id, Verdict: v})
		}
		return r
	}
	for _, tt := range []struct {
		run         *result.Run
		whole, part int // how much is odd
	}{
		{run(map[string]result.Verdict{"a": result.Fail, "b": result.Warn}), 0, 0},
		{run(map[string]result.Verdict{"a": result.Warn}), 2, 0},
		{run(map[string]result.Verdict{"b": result.Warn, "c": result.Fail}), 2, 1},
	} {
		_, whole := k.compare("x http", false, tt.run)
		_, part := k.compare("x http", true, tt.run)
		if len(whole) != tt.whole || len(part) != tt.part {
			t.Errorf("%v: odd are %v, and of a part %v", tt.run.Requirements, whole, part)
		}
	}
}
