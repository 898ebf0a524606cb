package client

import (
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/judge"
)

// A scenario that goes wrong costs what it would have told, and no more.
func TestScenarioThatPanics(t *testing.T) {
	const id = "base.request.id-unique"
	play := &T{Scenario: &Scenario{Name: "hasty", Requirements: []string{id}, Judge: func(t *T) {
		t.Exercised(id)
		_ = t.Conversations[7]
	}}, Conversations: []*judge.Conversation{}}
	play.judge()
	all := play.Outcomes()
	if len(all) != 1 || all[0].Verdict != check.Broken || !strings.Contains(all[0].Reason, "panic: runtime error") {
		t.Errorf("the outcomes are %+v", all)
	}
}
