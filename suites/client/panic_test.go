package client

import (
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/family"
)

// If a scenario panics, only its own requirements become errors.
func TestScenarioThatPanics(t *testing.T) {
	const id = "base.request.id-unique"
	run := (&Engine{Settings: Settings{Revision: schema.Default()}}).newRun(&Scenario{Name: "hasty", Requirements: []string{id}, Judge: func(t *T) {
		t.Exercised(id)
		_ = t.Conversations[7]
	}})
	run.judge()
	record := run.Record()
	if e := record.At(id, wire.Client); len(record) != 1 || !strings.Contains(e.Error, "panic: runtime error") {
		t.Errorf("the record is %+v", record)
	}
}

// A scenario that is run again draws what it drew before.
func TestPlayedAgain(t *testing.T) {
	e := &Engine{Settings: Settings{Revision: schema.Default(), Choice: family.Choice{Seed: 7}}, Trace: wire.NewTrace(wire.DefaultLimits)}
	first := e.newRun(&Scenario{Name: "again"})
	first.Baseline, first.spoke = e.newRun(&Scenario{Name: Baseline}), true
	again := e.fresh(first)
	if again.before != first || again.Baseline != first.Baseline || again.Choice.Seed != first.Choice.Seed {
		t.Error("the second run does not know the first one")
	}
}
