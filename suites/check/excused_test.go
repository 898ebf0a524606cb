package check

import (
	"testing"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
)

// TestExcused tells which row of the table fits an attempt. TestExcuses and the calm matrix prove rows that need an
// experiment.
func TestExcused(t *testing.T) {
	failed := Outcome{Check: &Check{Name: "a/b", Requirements: []string{"a.b"}}, Verdict: Failed}
	found := failed
	r := ledger.NewRecorder(schema.Default(), "a/b")
	r.Warn("a.b", wire.Server, "something")
	found.Record, found.Verdict = r.Record, Passed
	tooMany := &wire.Event{Kind: wire.KindHTTPResponse, HTTP: &wire.Head{Status: 429}}
	for name, c := range map[string]struct {
		attempt attempt
		played  map[string]int
		row     string
	}{
		"a finding":                      {attempt{outcome: failed}, nil, ""},
		"too many requests":              {attempt{outcome: failed, interference: interference{limit: tooMany}}, nil, "too-many-requests"},
		"too many requests, once more":   {attempt{outcome: failed, interference: interference{limit: tooMany}}, map[string]int{"too-many-requests": 2}, "too-many-requests"},
		"a late answer":                  {attempt{outcome: failed, late: true}, nil, "late-answer"},
		"a late answer, again":           {attempt{outcome: failed, late: true}, map[string]int{"late-answer": 1}, ""},
		"a pass, after a finding":        {attempt{outcome: Outcome{Check: failed.Check, Verdict: Passed}, doubted: true}, nil, "second-time"},
		"a second pass":                  {attempt{outcome: Outcome{Check: failed.Check, Verdict: Passed}, doubted: true}, map[string]int{"second-time": 1}, ""},
		"a lost session":                 {attempt{outcome: failed, interference: interference{lost: true}}, nil, "session-lost"},
		"a lost session and a warning":   {attempt{outcome: found, interference: interference{lost: true}}, nil, "session-lost"},
		"a lost session, nothing found":  {attempt{outcome: Outcome{Check: failed.Check, Verdict: Passed}, interference: interference{lost: true}}, nil, ""},
		"ended after a faulty message":   {attempt{outcome: failed, endedBeneath: true}, nil, "ended-at-will"},
		"a capability of other sessions": {attempt{outcome: failed, refusals: []refused{{undeclared: "prompts"}}}, nil, "declared-elsewhere"},
		"the first row that fits": {
			attempt{outcome: failed, endedBeneath: true, interference: interference{limit: tooMany}}, nil, "too-many-requests"},
	} {
		t.Run(name, func(t *testing.T) {
			x, why := new(Engine).excused(t.Context(), &c.attempt, c.played)
			switch {
			case x == nil && c.row != "", x != nil && x.name != c.row:
				t.Errorf("row %v, not %s", x, c.row)
			case (x == nil) != (why == ""):
				t.Errorf("the reason is %q", why)
			}
		})
	}
}
