package client

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/client"
)

// TestCombinedLaunches holds the list of combined launches to their needs. Their scenarios exist and want nothing of their own from the
// launch, and one server can play all of them.
func TestCombinedLaunches(t *testing.T) {
	seen, topics := make(map[string]bool), make(map[string]bool)
	for _, j := range CombinedLaunches() {
		for _, name := range j.Scenarios {
			i := slices.IndexFunc(Scenarios(), func(s *client.Scenario) bool { return s.Name == name })
			if i < 0 || seen[name] {
				t.Errorf("%s: scenario %s does not exist or is in two joints", j.Name, name)
				continue
			}
			seen[name] = true
			s := Scenarios()[i]
			if s.Judge == nil && s.Faults == nil || s.Lane == client.Waiting || s.Path != "" {
				t.Errorf("%s: scenario %s wants a launch of its own", j.Name, name)
			}
			for told := range strings.FieldsSeq(s.UserActions) {
				topic, _, _ := strings.Cut(told, "=")
				if topics[j.Name+topic] {
					t.Errorf("%s: scenario %s is about the %s of the user, like another", j.Name, name, topic)
				}
				topics[j.Name+topic] = true
			}
			first := Scenarios()[slices.IndexFunc(Scenarios(),
				func(s *client.Scenario) bool { return s.Name == j.Scenarios[0] })]
			if s.Official != first.Official && s.Official != officialFlow ||
				(s.Authorization == nil) != (first.Authorization == nil) {
				t.Errorf("%s: scenario %s wants another launch than %s", j.Name, name, first.Name)
			}
		}
	}
	for _, over := range []string{transport.NameHTTP, transport.NameSSE, transport.NameStdio} {
		for _, together := range allTogether(over) {
			o := together.Options(&client.ScenarioRun{Patience: time.Second, UserPatience: time.Second})
			if together.Authorization != nil {
				together.Authorization()
			} else if o.Behaviour.Methods == nil && len(o.Without) == 0 && together.Faults == nil {
				t.Errorf("%s over %s: the server behaves as any other", together.Name, over)
			}
		}
	}
}

// allTogether returns the scenarios of the combined launches over a transport.
func allTogether(over string) []*client.Scenario {
	scenarios := slices.DeleteFunc(Scenarios(), func(s *client.Scenario) bool { return !s.Applies(over) })
	var all []*client.Scenario
	for _, j := range CombinedLaunches() {
		if members := j.Among(scenarios); len(members) > 1 {
			all = append(all, client.Combine(j.Title(), members))
		}
	}
	return all
}

// TestCombinedLaunchesThatAsk wants the answers of a client to the requests of a combined launch to be judged. The
// breaches of its server have to be of the kind that leaves the answers open to judgement.
func TestCombinedLaunchesThatAsk(t *testing.T) {
	for _, j := range CombinedLaunches() {
		members := j.Among(Scenarios())
		if !slices.ContainsFunc(members, func(s *client.Scenario) bool { return s.Needs == needsToAsk }) {
			continue
		}
		together := client.Combine(j.Title(), members)
		o := together.Options(&client.ScenarioRun{Patience: time.Second, UserPatience: time.Second})
		for _, id := range o.Behaviour.Breaks {
			q, known := schema.Default().Lookup(id)
			if !known || q.Page != "basic/transports" && q.Page != "basic/lifecycle" && !strings.HasPrefix(q.Page, "server/") {
				t.Errorf("%s breaks %s in each request, so that no answer to it is judged", together.Name, id)
			}
		}
	}
}
