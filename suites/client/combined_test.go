package client

import (
	"testing"

	"github.com/mcpconform/mcpconform/schema"
)

// TestSuspectsDoNotWait: a scenario that is in no further combined launch does not wait for it.
func TestSuspectsDoNotWait(t *testing.T) {
	suspect, other := &Scenario{Name: "suspect"}, &Scenario{Name: "other"}
	e := &Engine{Settings: Settings{Revision: schema.Default()}}
	j, rest := e.combinedRun("together/both", []*Scenario{suspect, other}), e.combinedRun("together/both/rest", []*Scenario{other})
	j.parts = []*combinedRun{rest} // which goes on
	j.t.Ending.Late = true
	for _, member := range j.members {
		member.Ending = j.t.Ending
		member.Violation("ping.either-side", "it hangs")
	}
	close(j.done)
	if last, run := j.last(suspect); last.settles(run) || !run.stuck() {
		t.Error("what was seen together is not to be confirmed alone")
	}
	close(rest.done)
	if _, run := j.last(other); run.stuck() {
		t.Error("a scenario is a suspect although the client did not hang in the rest")
	}
}

// TestOthersFindings: the findings of a combined launch on a requirement count for the member that is about it.
func TestOthersFindings(t *testing.T) {
	const id = "auth.resource.no-trailing-slash"
	about, other := &Scenario{Name: "about it", Requirements: []string{id}}, &Scenario{Name: "other"}
	j := (&Engine{Settings: Settings{Revision: schema.Default()}}).combinedRun("together/both", []*Scenario{about, other})
	for _, member := range j.members {
		member.Violation(id, "it ends in a slash")
	}
	j.attribute()
	if !j.members[0].Accused() || j.members[1].Accused() {
		t.Error("the finding counts for another scenario than the one that is about it")
	}
}

// TestRedirectedIsThrough: a client that gives up when it is redirected to another origin has been at the protected
// server.
func TestRedirectedIsThrough(t *testing.T) {
	for _, redirected := range []bool{false, true} {
		r := &combinedRun{t: &T{Scenario: &Scenario{}, Flow: &Flow{redirected: redirected, shown: []Shown{{Ours: true}}}}}
		if r.came() != redirected {
			t.Errorf("redirected: %v; came through: %v", redirected, !redirected)
		}
	}
}
