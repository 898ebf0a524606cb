package suites

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/expected"
	"github.com/mcpconform/mcpconform/suites/judge"
	"github.com/mcpconform/mcpconform/suites/result"
)

func TestVerdictWithExpectedFailures(t *testing.T) {
	entry := func(id string) []expected.Entry { return []expected.Entry{{ID: id, Reason: "known"}} }
	for _, tt := range []struct {
		name     string
		verdicts []result.Verdict // of a, b, …
		entries  []expected.Entry
		strict   bool
		cause    error
		want     result.Overall
	}{
		{"fails", []result.Verdict{result.Fail, result.Pass}, nil, false, nil, result.NotConformant},
		{"fails as expected", []result.Verdict{result.Fail, result.Pass}, entry("a"), false, nil, result.Conformant},
		{"fails otherwise", []result.Verdict{result.Fail, result.Fail, result.Pass}, entry("a"), false, nil, result.NotConformant},
		{"warns, strictly", []result.Verdict{result.Warn, result.Pass}, nil, true, nil, result.NotConformant},
		{"warns as expected, strictly", []result.Verdict{result.Warn, result.Pass}, entry("a"), true, nil, result.Conformant},
		{"warns as expected", []result.Verdict{result.Warn, result.Pass}, entry("a"), false, nil, result.Conformant},
		{"passes unexpectedly", []result.Verdict{result.Pass}, entry("a"), false, nil, result.NotConformant},
		{"matches nothing", []result.Verdict{result.Pass}, entry("none"), false, nil, result.NotConformant},
		{"untested", []result.Verdict{result.Inconclusive, result.Pass}, entry("a"), false, nil, result.Conformant},
		{
			"expired", []result.Verdict{result.Fail, result.Pass}, []expected.Entry{{ID: "a", Reason: "known", Expires: "2026-01-01"}},
			false, nil, result.NotConformant,
		},
		{"cut short", []result.Verdict{result.Inconclusive}, entry("none"), false, errors.New("cut short"), result.Incomplete},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run := &result.Run{Strict: tt.strict}
			for i, v := range tt.verdicts {
				run.Requirements = append(run.Requirements, result.Requirement{ID: string(rune('a' + i)), Observable: true, Verdict: v})
			}
			expected.Apply(run, tt.entries, time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
			if got, _ := verdict(run, tt.cause); got != tt.want {
				t.Errorf("got %s, want %s: %+v", got, tt.want, run.ExpectedFailures)
			}
		})
	}
}

// A selection is served by the checks of what is selected; of what rules judge,
// by all checks that are not skipped.
func TestSelectionServes(t *testing.T) {
	catalogue, err := schema.Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	const ruled, unruled, other = "tools.name.unique", "resources.error.not-found-code", "base.error.method-not-found"
	for _, id := range []string{unruled, other} {
		if len(ruleNames()[id]) > 0 {
			t.Fatalf("a rule serves %s", id)
		}
	}
	for _, tt := range []struct {
		name      string
		selection Selection
		check     []string // its requirements
		want      bool
	}{
		{"all", Selection{}, []string{other}, true},
		{"what a check serves, by that check", Selection{Select: []string{unruled}}, []string{other, unruled}, true},
		{"what a check serves, by another", Selection{Select: []string{unruled}}, []string{other}, false},
		{"what a rule serves", Selection{Select: []string{ruled}}, []string{other}, true},
		{"what a rule serves, by a skipped check", Selection{Select: []string{ruled}, Skip: []string{other}}, []string{other}, false},
		{"what a rule serves, by a check skipped in part", Selection{Select: []string{ruled}, Skip: []string{other}}, []string{other, unruled}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.selection.serves(catalogue, wire.Server)(tt.check); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}

// However much only warns or says the same, what breaks a requirement decides, and
// each thing is shown once before any again.
func TestBreachAmongWarnings(t *testing.T) {
	const id = "elicitation.schema.no-advanced"
	log := wire.NewTrace(wire.DefaultLimits).Connect("stdio", "a server")
	message := func(from wire.Party, text string) {
		if _, err := log.Append(wire.Event{Kind: wire.KindMessage, From: from, Stream: "pipe", Raw: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	message(wire.Client, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"0"}}}`)
	message(wire.Server, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"0"}}}`)
	message(wire.Client, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for i, property := range slices.Concat(
		slices.Repeat([]string{`{"type":"string","examples":["x"]}`}, 8),
		slices.Repeat([]string{`{"type":"string","pattern":"x"}`}, 8),
		[]string{`{"type":"string","const":"x"}`, `{"type":"string","$comment":"x"}`},
	) {
		message(wire.Server, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"p":%s}}}}`, i, property))
		message(wire.Client, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"action":"cancel"}}`, i))
	}
	catalogue, err := schema.Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	v := &evidence{role: wire.Server, transport: "stdio", report: judge.Judge([]*wire.Log{log})}
	q := v.assemble(catalogue, Selection{Select: []string{id}})[0]
	if q.Verdict != result.Fail || len(q.Findings) != maxFindings || q.Omitted != 18-maxFindings ||
		!strings.Contains(q.Findings[0].Message, "pattern") || !strings.Contains(q.Findings[1].Message, "const") {
		t.Errorf("%s with %d more than %+v", q.Verdict, q.Omitted, q.Findings)
	}
}
