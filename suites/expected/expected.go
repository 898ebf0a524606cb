// Package expected compares a run with the failures that are known and accepted for
// the time being. An entry that no longer fails is stale and makes the run not
// conformant, so that a list cannot outlive its reasons.
package expected

import (
	"path"
	"slices"
	"time"

	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/result"
)

// The statuses of an entry after a run, as result.ExpectedFailure has them.
const (
	Failed    = "failed"    // as expected
	Passed    = "passed"    // stale: nothing that it covers fails
	Unmatched = "unmatched" // stale: the revision has no such requirement
	Expired   = "expired"   // it fails still, and counts again
	Untested  = "untested"  // this run did not try what it covers
)

// Entry is one accepted failure.
type Entry struct {
	// ID is a requirement's id or a glob of ids, in the syntax of path.Match.
	ID string `yaml:"id"`
	// Reason why the failure is accepted. Never empty.
	Reason string `yaml:"reason"`
	// Expires is the last day, YYYY-MM-DD, on which it is; "" for no end.
	Expires string `yaml:"expires"`
}

// Apply gives the requirements of a run that fail as expected their reason and
// tells in the run what became of each entry. The caller has to decide the verdict
// of the run again. Warnings are covered like failures.
func Apply(run *result.Run, entries []Entry, today time.Time) {
	day := today.Format(time.DateOnly)
	for _, e := range entries {
		status := judge(run, e)
		if status == Failed && e.Expires != "" && e.Expires < day {
			status = Expired
		}
		for i := range run.Requirements {
			q := &run.Requirements[i]
			if status == Failed && (q.Verdict == result.Fail || q.Verdict == result.Warn) && q.Expected == "" &&
				e.matches(q.ID) {
				q.Expected = e.Reason
			}
		}
		run.ExpectedFailures = append(run.ExpectedFailures, result.ExpectedFailure{
			ID: e.ID, Reason: e.Reason, Expires: e.Expires, Status: status,
		})
	}
}

// SDK is the id of the entry that stands for all that the target's SDK is known to cause.
const SDK = "--expect-sdk"

// ApplySDK is [Apply] for one entry, which covers the requirements that are marked with a fault of
// the target's SDK. It is stale if none of them fails, and if no SDK was recognised in a whole run.
func ApplySDK(run *result.Run) {
	status := Untested
	switch {
	case run.Target.SDK != nil && complete(run):
		status = Passed
	case run.Target.SDK == nil && complete(run):
		status = Unmatched
	}
	for i := range run.Requirements {
		q := &run.Requirements[i]
		if q.SDK == nil || q.Verdict != result.Fail && q.Verdict != result.Warn {
			continue
		}
		status = Failed
		if q.Expected == "" {
			q.Expected = "known of " + run.Target.SDK.Name + " (" + q.SDK.Versions + "): " + q.SDK.Thread
		}
	}
	run.ExpectedFailures = append(run.ExpectedFailures, result.ExpectedFailure{
		ID: SDK, Reason: "findings that the SDK of the target is known to cause", Status: status,
	})
}

// complete reports whether a run tried all that it could have tried.
func complete(run *result.Run) bool {
	return !run.Partial && !run.Quick && !slices.ContainsFunc(run.Requirements, func(q result.Requirement) bool {
		return q.Unexercised == result.NotRun
	})
}

func judge(run *result.Run, e Entry) string {
	passed, unknown, matched := false, false, false
	for i := range run.Requirements {
		q := &run.Requirements[i]
		if !e.matches(q.ID) {
			continue
		}
		matched = true
		switch q.Verdict {
		case result.Fail, result.Warn:
			return Failed
		case result.Pass:
			passed = true
		case result.Skip: // says nothing either way
		default:
			unknown = true
		}
	}
	switch {
	case passed && !unknown && !run.Quick: // a longer run may find it
		return Passed
	case matched || slices.ContainsFunc(run.Protocol().Catalogue(),
		func(r schema.Requirement) bool { return e.matches(r.ID) }):
		return Untested // requirements that were not selected, or bind the other party, are not part of this run
	}
	return Unmatched
}

func (e Entry) matches(id string) bool {
	ok, err := path.Match(e.ID, id)
	return ok && err == nil
}

// Stale reports whether a run has entries that have to be removed or corrected.
func Stale(run *result.Run) bool {
	return slices.ContainsFunc(run.ExpectedFailures, func(x result.ExpectedFailure) bool { return x.Stale() })
}
