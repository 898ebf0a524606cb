package judge

import "github.com/mcpconform/mcpconform/reference/wire"

// JudgeRule applies one rule to a connection.
func JudgeRule(r Rule, l *wire.Log) Report {
	report := make(Report)
	r.Judge(NewConversation(l), r.recorder(report))
	return report
}

// Slices returns the rules whose conversations are in testdata.
func Slices() map[string][]Rule {
	return map[string][]Rule{
		"envelope": envelopeRules, "exchange": exchangeRules, "schema": schemaRules, "meta": metaRules,
		"lifecycle": lifecycleRules, "stdio": stdioRules, "utilities": utilityRules, "tools": toolRules,
	}
}
