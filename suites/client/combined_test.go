package client

import (
	"testing"

	"github.com/mcpconform/mcpconform/schema"
)

// TestHungTogether: a scenario has the whole time limit alone if the client hung in its combined launch, and something
// was found in the scenario.
func TestHungTogether(t *testing.T) {
	suspect, other := &Scenario{Name: "suspect"}, &Scenario{Name: "other"}
	j := (&Engine{Revision: schema.Default()}).combinedRun("together/both", []*Scenario{suspect, other})
	for _, member := range j.members {
		member.Ending.Late = true
	}
	j.members[0].Violation("ping.either-side", "it hangs")
	close(j.done)
	for s, want := range map[*Scenario]bool{suspect: true, other: false} {
		if settled, hung := j.of(s); settled != nil || hung != want {
			t.Errorf("%s: settled: %v; hung: %v", s.Name, settled != nil, hung)
		}
	}
}

// TestOthersFindings: the findings of a combined launch on a requirement count for the member that is about it.
func TestOthersFindings(t *testing.T) {
	const id = "auth.resource.no-trailing-slash"
	about, other := &Scenario{Name: "about it", Requirements: []string{id}}, &Scenario{Name: "other"}
	j := (&Engine{Revision: schema.Default()}).combinedRun("together/both", []*Scenario{about, other})
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
		r := &combinedRun{t: &T{Revision: schema.Default(), Scenario: &Scenario{}, Flow: &Flow{Redirected: redirected, shown: []Shown{{Ours: true}}}}}
		if r.came() != redirected {
			t.Errorf("redirected: %v; came through: %v", redirected, !redirected)
		}
	}
}
