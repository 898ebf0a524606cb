package judge

import (
	"github.com/mcpconform/mcpconform/reference/wire"

	"github.com/mcpconform/mcpconform/schema"
)

// JudgeRule applies one rule to a connection.
func JudgeRule(r Rule, l *wire.Log) Report {
	report := make(Report)
	r.Judge(NewConversation(schema.Default(), l), r.recorder(schema.Default(), report))
	return report
}

// Slices returns the rules whose conversations are in testdata.
func Slices() map[string][]Rule {
	return map[string][]Rule{
		"envelope": envelopeRules, "exchange": exchangeRules, "schema": schemaRules(schema.Default()), "meta": metaRules,
		"lifecycle": lifecycleRules, "stdio": stdioRules, "utilities": utilityRules, "tools": toolRules,
	}
}
