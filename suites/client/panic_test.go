package client

import (
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/judge"
)

// If a scenario panics, only its own requirements become errors.
func TestScenarioThatPanics(t *testing.T) {
	const id = "base.request.id-unique"
	run := &T{Scenario: &Scenario{Name: "hasty", Requirements: []string{id}, Judge: func(t *T) {
		t.Exercised(id)
		_ = t.Conversations[7]
	}}, Conversations: []*judge.Conversation{}}
	run.judge()
	record := run.Record()
	if e := record.At(id, wire.Client); len(record) != 1 || !strings.Contains(e.Error, "panic: runtime error") {
		t.Errorf("the record is %+v", record)
	}
}
