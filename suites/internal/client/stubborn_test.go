package client

import (
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
)

// A server that does not exit gets SIGTERM and then SIGKILL (basic/lifecycle#stdio); other signals may come besides.
func TestSignalsToStubbornServers(t *testing.T) {
	const term, kill = "lifecycle.shutdown.stdio-sigterm", "lifecycle.shutdown.stdio-sigkill"
	for signals, want := range map[string][]string{
		"":                       {term, kill},
		"SIGTERM SIGKILL":        nil,
		"SIGINT SIGTERM SIGKILL": nil,
		"SIGKILL":                {term},
		"SIGINT SIGKILL":         {term},
		"SIGHUP SIGKILL":         {term},
		"SIGKILL SIGTERM":        {term},
		"SIGTERM":                {kill},
		"SIGINT":                 {term, kill},
	} {
		log := wire.NewTrace(wire.DefaultLimits).Connect(transport.NameStdio, "stdio/stubborn")
		_, _ = log.Append(wire.Event{Kind: wire.KindStart, From: wire.Server})
		_, _ = log.Append(wire.Event{Kind: wire.KindClose, From: wire.Client, Stream: transport.Stdin})
		for name := range strings.FieldsSeq(signals) {
			_, _ = log.Append(wire.Event{Kind: wire.KindSignal, From: wire.Client, Note: name})
		}
		scenario := &client.Scenario{Name: "stdio/stubborn", Requirements: []string{term, kill}}
		run := &client.T{ScenarioRun: &client.ScenarioRun{Settings: client.Settings{Revision: schema.Default()}}, Scenario: scenario, Conversations: []*judge.Conversation{judge.NewConversation(schema.Default(), log)},
			Ending: client.Ending{Exit: &wire.Exit{}}}
		judgeStubborn(run)
		for _, id := range []string{term, kill} {
			broken := strings.Contains(strings.Join(want, " "), id)
			if run.HasFindings(id) != broken {
				t.Errorf("signals %q: %s is broken: %t, want %t", signals, id, !broken, broken)
			}
		}
	}
}
