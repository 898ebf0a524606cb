package judge

import (
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
)

// A rule that goes wrong costs what it would have told, and no more.
func TestRuleThatPanics(t *testing.T) {
	const id = "base.request.id-unique"
	report := make(Report)
	rule := Rule{Name: "hasty", Requirements: []string{id}, Judge: func(c *Conversation, _ *Recorder) { _ = c.Events[7] }}
	rule.judge(&Conversation{}, rule.recorder(schema.Default(), report))
	for _, party := range []wire.Party{wire.Client, wire.Server} {
		seen := report[Key{Requirement: id, Party: party}]
		if seen == nil || !strings.Contains(seen.Error, "rule: hasty: panic: ") || !strings.Contains(seen.Error, "panic_test.go") {
			t.Errorf("of the %s it is said: %+v", party, seen)
		}
	}
}
