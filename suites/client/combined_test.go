package client

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/schema"
)

// TestCombinedLaunches holds the list of combined launches to their needs. Their scenarios exist and want nothing of their own from the
// launch, and one server can play all of them.
func TestCombinedLaunches(t *testing.T) {
	seen, topics := make(map[string]bool), make(map[string]bool)
	for _, j := range combinedLaunches {
		for _, name := range j.scenarios {
			i := slices.IndexFunc(Scenarios(), func(s *Scenario) bool { return s.Name == name })
			if i < 0 || seen[name] {
				t.Errorf("%s: scenario %s does not exist or is in two joints", j.name, name)
				continue
			}
			seen[name] = true
			s := Scenarios()[i]
			if s.Judge == nil && s.Faults == nil || s.Patient || s.Path != "" {
				t.Errorf("%s: scenario %s wants a launch of its own", j.name, name)
			}
			for told := range strings.FieldsSeq(s.UserActions) {
				topic, _, _ := strings.Cut(told, "=")
				if topics[j.name+topic] {
					t.Errorf("%s: scenario %s is about the %s of the user, like another", j.name, name, topic)
				}
				topics[j.name+topic] = true
			}
			first := Scenarios()[slices.IndexFunc(Scenarios(), func(s *Scenario) bool { return s.Name == j.scenarios[0] })]
			if s.Official != first.Official && s.Official != officialFlow || (s.Authorization == nil) != (first.Authorization == nil) {
				t.Errorf("%s: scenario %s wants another launch than %s", j.name, name, first.Name)
			}
		}
	}
	for _, over := range []string{transport.NameHTTP, transport.NameSSE, transport.NameStdio} {
		var scenarios []*Scenario
		for _, s := range Scenarios() {
			if s.Applies(over) {
				scenarios = append(scenarios, s)
			}
		}
		e := &Engine{Transport: over}
		for _, j := range e.combinedRuns(scenarios) {
			o := j.t.Scenario.Options(&ScenarioRun{Scenario: j.t.Scenario, Patience: time.Second, UserPatience: time.Second})
			if setup := j.t.Scenario.Authorization; setup != nil {
				setup()
			} else if o.Behaviour.Methods == nil && len(o.Without) == 0 && j.t.Scenario.Faults == nil {
				t.Errorf("%s over %s: the server behaves as any other", j.t.Scenario.Name, over)
			}
		}
	}
}

// Together returns the scenarios of a scenario's combined launch, or the scenario alone.
func Together(scenario string) []string {
	for _, j := range combinedLaunches {
		if slices.Contains(j.scenarios, scenario) {
			return j.scenarios
		}
	}
	return []string{scenario}
}

// TestCombinedLaunchesThatAsk wants the answers of a client to the requests of a combined launch to be judged. The breaches of its server
// have to be of the kind that leaves the answers open to judgement.
func TestCombinedLaunchesThatAsk(t *testing.T) {
	for _, j := range (&Engine{Transport: transport.NameHTTP}).combinedRuns(Scenarios()) {
		if !slices.ContainsFunc(j.members, func(m *T) bool { return m.Scenario.Needs == needsToAsk }) {
			continue
		}
		o := j.t.Scenario.Options(&ScenarioRun{Scenario: j.t.Scenario, Patience: time.Second, UserPatience: time.Second})
		for _, id := range o.Behaviour.Breaks {
			q, known := schema.Lookup(id)
			if !known || q.Page != "basic/transports" && q.Page != "basic/lifecycle" && !strings.HasPrefix(q.Page, "server/") {
				t.Errorf("%s breaks %s in each request, so that no answer to it is judged", j.t.Scenario.Name, id)
			}
		}
	}
}

// TestSuspectsDoNotWait: a scenario that is in no further combined launch does not wait for it.
func TestSuspectsDoNotWait(t *testing.T) {
	suspect, other := &Scenario{Name: "suspect"}, &Scenario{Name: "other"}
	e := &Engine{}
	j, rest := e.combinedRun("together/both", []*Scenario{suspect, other}), e.combinedRun("together/both/rest", []*Scenario{other})
	j.parts = []*combinedRun{rest} // which goes on
	j.t.Ending.Late = true
	for _, member := range j.members {
		member.Ending = j.t.Ending
		member.Violation("ping.either-side", "it hangs")
	}
	close(j.done)
	if j.of(suspect) != nil || !j.stuck(suspect) {
		t.Error("what was seen together is not to be confirmed alone")
	}
	close(rest.done)
	if j.stuck(other) {
		t.Error("a scenario is a suspect although the client did not hang in the rest")
	}
}

// TestOthersFindings: the findings of a combined launch on a requirement count for the member that is about it.
func TestOthersFindings(t *testing.T) {
	const id = "auth.resource.no-trailing-slash"
	about, other := &Scenario{Name: "about it", Requirements: []string{id}}, &Scenario{Name: "other"}
	j := (&Engine{}).combinedRun("together/both", []*Scenario{about, other})
	for _, member := range j.members {
		member.Violation(id, "it ends in a slash")
	}
	j.attribute()
	if !j.members[0].accused() || j.members[1].accused() {
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
