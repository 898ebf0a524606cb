package check

import (
	"errors"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
)

// TestExcused tells what the table makes of attempts and of the outcomes of experiments: how often the check runs
// again, and whether its last attempt counts. An experiment that a case does not name is not made.
func TestExcused(t *testing.T) {
	failed := Outcome{Check: &Check{Name: "a/b", Requirements: []string{"a.b"}}, Verdict: Failed}
	passed := Outcome{Check: failed.Check, Verdict: Passed}
	found := passed
	r := ledger.NewRecorder(schema.Default(), "a/b")
	r.Warn("a.b", wire.Server, "something")
	found.Record = r.Record
	aboutOthers := failed
	aboutOthers.Check = &Check{Name: "a/c", Needs: Needs{Concurrent: true}}
	elsewhere := []refused{{undeclared: "prompts"}}
	tooMany := interference{limit: &wire.Event{Kind: wire.KindHTTPResponse, HTTP: &wire.Head{Status: 429}}}
	lost := interference{lost: true}
	yes, no := func() bool { return true }, func() bool { return false }
	opened, full := func() error { return nil }, func() error { return errors.New("status 503") }
	at := func(waits bool) experiments { return experiments{pause: func(time.Duration) bool { return waits }} }
	limits := func(rate, concurrency func() bool) experiments {
		return experiments{limitsRate: rate, limitsConcurrency: concurrency, single: no, shortLived: no}
	}
	for name, c := range map[string]struct {
		attempt     attempt
		experiments experiments
		again       int  // how often the check runs again if each attempt is like this one
		counts      bool // the last attempt
	}{
		"a finding":                  {attempt{outcome: failed}, limits(no, no), 0, true},
		"too many requests":          {attempt{outcome: failed, interference: tooMany}, at(true), 2, false},
		"too many requests for long": {attempt{outcome: failed, interference: tooMany}, at(false), 0, false},
		"too many, after a faulty one": {
			attempt{outcome: failed, endedBeneath: true, interference: tooMany}, at(true), 2, false},
		"a late answer":                  {attempt{outcome: failed, late: true}, limits(no, no), 1, true},
		"a pass, after a finding":        {attempt{outcome: passed, doubted: true}, limits(no, no), 1, true},
		"a lost session":                 {attempt{outcome: failed, interference: lost}, limits(no, no), 2, true},
		"a lost session and a warning":   {attempt{outcome: found, interference: lost}, limits(no, no), 2, true},
		"a lost session, nothing found":  {attempt{outcome: passed, interference: lost}, limits(no, no), 0, true},
		"ended after a faulty message":   {attempt{outcome: failed, endedBeneath: true}, experiments{}, 0, false},
		"a capability of other sessions": {attempt{outcome: failed, refusals: elsewhere}, experiments{}, 0, false},
		"one session at a time": {attempt{outcome: failed, interference: lost, several: true},
			experiments{single: yes}, 2, false},
		"one session, and one is enough": {attempt{outcome: failed, interference: lost}, limits(no, no), 2, true},
		"sessions that end":              {attempt{outcome: failed, interference: lost}, experiments{shortLived: yes}, 2, false},
		"a rate":                         {attempt{outcome: failed}, limits(yes, nil), 0, false},
		"one call at a time":             {attempt{outcome: failed}, limits(no, yes), 0, false},
		"one call, and it is about two":  {attempt{outcome: aboutOthers}, limits(no, nil), 0, true},
		"no answer":                      {attempt{outcome: failed, unanswered: true}, experiments{}, 0, true},
		"no further session": {attempt{outcome: failed, unopened: true},
			experiments{opensAnother: no, further: full}, 0, false},
		"no room yet": {attempt{outcome: failed, unopened: true},
			experiments{opensAnother: no, further: opened, closed: yes, limitsRate: no, limitsConcurrency: no}, 1, true},
		"no session, and there is room": {attempt{outcome: failed, unopened: true},
			experiments{opensAnother: yes, limitsRate: no, limitsConcurrency: no}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			again := 0
			a := played{&c.attempt, c.experiments}
			_, why := excuses.Settle(t.Context(), a, func(played) (played, bool) {
				again++
				return a, true
			})
			if again != c.again || (why == "") != c.counts {
				t.Errorf("%d further attempts, and the last one tells nothing because %q", again, why)
			}
		})
	}
}
