package client

import (
	"testing"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// An expectation that cannot be judged is a mistake of the scenario: an error, and no finding.
func TestMistakenExpectation(t *testing.T) {
	judged := (&Engine{Settings: Settings{Revision: schema.Default()}}).newRun(&Scenario{Name: "topic/scenario", Requirements: []string{"one"}, Judge: func(t *T) { t.Check("one", 7).To(HaveResult()) }})
	judged.judge()
	if entry := judged.Recorder().Record.At("one", wire.Client); entry.Error == "" || len(entry.Findings) > 0 {
		t.Errorf("%+v", entry)
	}
}
