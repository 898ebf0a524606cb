package client

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
)

// If a scenario panics, only its own requirements become errors.
func TestScenarioThatPanics(t *testing.T) {
	const id = "base.request.id-unique"
	run := &T{Revision: schema.Default(), Scenario: &Scenario{Name: "hasty", Requirements: []string{id}, Judge: func(t *T) {
		t.Exercised(id)
		_ = t.Conversations[7]
	}}, Conversations: []*judge.Conversation{}}
	run.judge()
	record := run.Record()
	if e := record.At(id, wire.Client); len(record) != 1 || !strings.Contains(e.Error, "panic: runtime error") {
		t.Errorf("the record is %+v", record)
	}
}

// A scenario that is run again draws what it drew before.
func TestPlayedAgain(t *testing.T) {
	e := &Engine{Revision: schema.Default(), Transport: "http", Authorizes: true, GivesUpAfter: time.Second, Choice: family.Choice{Seed: 7}, Trace: wire.NewTrace(wire.DefaultLimits)}
	first := e.newRun(&Scenario{Name: "again"})
	first.Baseline, first.spoke = e.newRun(&Scenario{Name: Baseline}), true
	again := e.fresh(first)
	if again.before != first {
		t.Error("the second run does not know the first one")
	}
	again.before, again.spoke = nil, true
	if diff := cmp.Diff(first, again, cmp.AllowUnexported(T{}, launched{}), cmp.Comparer(func(a, b *schema.Revision) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}
