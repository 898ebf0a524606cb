package reporters

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/suites/result"
)

// found is a requirement with findings of one check, decided by these events, each
// "connection seq" and, after a slash, what else it is.
func found(id string, verdict result.Verdict, check string, events ...result.Event) result.Requirement {
	q := result.Requirement{ID: id, Level: "MUST", Page: "p", Observable: true, Verdict: verdict, Exercised: 1}
	for _, e := range events {
		q.Findings = append(q.Findings, result.Finding{Check: check, Message: "wrong", Evidence: []result.Event{
			{Connection: e.Connection, Seq: 1, Kind: "message", From: "client", Text: e.Text},
			{Connection: e.Connection, Seq: e.Seq, Kind: e.Kind, From: "server", Text: "last"},
		}})
	}
	return q
}

// The requirements broken by one cause stand under it, and nothing else does.
func TestConsequencesStandUnderTheirCause(t *testing.T) {
	answer := func(connection string, seq int) result.Event {
		return result.Event{Connection: connection, Seq: seq, Kind: "message", Text: `{"id":1,"method":"tools/call"}`}
	}
	end := func(connection, stimulus string) result.Event {
		return result.Event{Connection: connection, Seq: 9, Kind: "process-exit", Text: stimulus}
	}
	const cancel = `{"method":"notifications/cancelled"}`
	contested := found("b", result.Fail, "x", answer("c1", 2))
	contested.Disputed = &result.Dispute{}
	unproven := found("b", result.Fail, "x", answer("c1", 2))
	unproven.Findings = append(unproven.Findings, result.Finding{Check: "x", Message: "without evidence"})
	for name, test := range map[string]struct {
		requirements []result.Requirement
		want         map[string]string // what was brought to its cause
	}{
		"one event, one check":         {[]result.Requirement{found("a", result.Fail, "x", answer("c1", 2)), found("b", result.Fail, "x", answer("c1", 2))}, map[string]string{"b": "a"}},
		"one event, two checks":        {[]result.Requirement{found("a", result.Fail, "x", answer("c1", 2)), found("b", result.Fail, "y", answer("c1", 2))}, nil},
		"two events":                   {[]result.Requirement{found("a", result.Fail, "x", answer("c1", 2)), found("b", result.Fail, "x", answer("c1", 3))}, nil},
		"two connections":              {[]result.Requirement{found("a", result.Fail, "x", answer("c1", 2)), found("b", result.Fail, "x", answer("c2", 2))}, nil},
		"a part of the events":         {[]result.Requirement{found("b", result.Fail, "x", answer("c1", 2)), found("a", result.Fail, "x", answer("c1", 2), answer("c1", 4))}, map[string]string{"b": "a"}},
		"one event more":               {[]result.Requirement{found("a", result.Fail, "x", answer("c1", 2)), found("b", result.Warn, "x", answer("c1", 2), answer("c1", 4))}, nil},
		"the gravest is the cause":     {[]result.Requirement{found("b", result.Warn, "x", answer("c1", 2), answer("c1", 2)), found("a", result.Fail, "x", answer("c1", 2))}, map[string]string{"b": "a"}},
		"a failure under no warning":   {[]result.Requirement{found("a", result.Warn, "x", answer("c1", 2), answer("c1", 3)), found("b", result.Fail, "x", answer("c1", 2))}, nil},
		"a failure under no dispute":   {[]result.Requirement{contested, found("a", result.Warn, "x", answer("c1", 2))}, map[string]string{"b": "a"}},
		"the target ended, two checks": {[]result.Requirement{found("a", result.Fail, "x", end("c1", `{"id":1,"method":"tools/call"}`)), found("b", result.Fail, "y", end("c1", `{"id":1,"method":"tools/call"}`))}, map[string]string{"b": "a"}},
		"ended over one notification":  {[]result.Requirement{found("a", result.Fail, "x", end("c1", cancel)), found("b", result.Fail, "y", end("c2", cancel))}, map[string]string{"b": "a"}},
		"ended over two requests":      {[]result.Requirement{found("a", result.Fail, "x", end("c1", `{"id":1,"method":"tools/call"}`)), found("b", result.Fail, "y", end("c2", `{"id":1,"method":"tools/call"}`))}, nil},
		"without evidence":             {[]result.Requirement{found("a", result.Fail, "x", answer("c1", 2)), unproven}, nil},
		"by the catalogue": {[]result.Requirement{found("tools.capability.declared", result.Fail, "x", answer("c1", 2)),
			found("lifecycle.init.result-capabilities", result.Fail, "y", answer("c2", 3))}, map[string]string{"tools.capability.declared": "lifecycle.init.result-capabilities"}},
		"a cause has no cause": {[]result.Requirement{found("a", result.Fail, "x", answer("c1", 2), answer("c1", 3), answer("c1", 4)),
			found("b", result.Fail, "x", answer("c1", 2), answer("c1", 3)), found("c", result.Fail, "x", answer("c1", 2))}, map[string]string{"b": "a", "c": "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := newView(&result.Run{Revision: "2025-06-18", Role: "server", Requirements: test.requirements})
			if err != nil {
				t.Fatal(err)
			}
			got := make(map[string]string)
			shown := 0
			for brought, cause := range v.reading.cause {
				got[brought] = cause.ID
			}
			for _, causes := range v.reading.causes {
				shown += len(causes)
			}
			if test.want == nil {
				test.want = map[string]string{}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if shown+len(got) != len(test.requirements) {
				t.Errorf("%d causes and %d consequences of %d requirements", shown, len(got), len(test.requirements))
			}
		})
	}
}

// The verdicts and counts do not depend on what stands under what.
func TestConsequencesAreCounted(t *testing.T) {
	run := &result.Run{Revision: "2025-06-18", Role: "server", Verdict: result.NotConformant, Requirements: []result.Requirement{
		found("a", result.Fail, "x", result.Event{Connection: "c1", Seq: 2, Kind: "message"}),
		found("b", result.Warn, "x", result.Event{Connection: "c1", Seq: 2, Kind: "message"}),
	}}
	var b strings.Builder
	if err := Console(&b, run, ConsoleOptions{Width: 300}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Also breaks  b (warn)", "1 failed · 1 warning"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "WARN  b") {
		t.Errorf("a consequence has a block of its own:\n%s", b.String())
	}
}

// Advice and what is known of SDKs stand where something was found, and nowhere else.
func TestAdviceStandsWithFindings(t *testing.T) {
	const id = "base.error.invalid-params"
	run := func(verdict result.Verdict, evidence string) *result.Run {
		q := found(id, verdict, "x", result.Event{Connection: "c1", Seq: 2, Kind: "message"})
		q.Findings[0].Evidence[1].Text = evidence
		return &result.Run{Revision: "2025-06-18", Role: "server", Target: result.Target{Command: []string{"node", "server.js"}}, Requirements: []result.Requirement{q}}
	}
	const zod = `{"error":{"code":-32603,"message":"[ { \"code\": \"invalid_type\" } ]"}}`
	for name, test := range map[string]struct {
		run         *result.Run
		advice, sdk bool
	}{
		"a warning of that SDK":    {run(result.Warn, zod), true, true},
		"a warning of another one": {run(result.Warn, `{"error":{"code":-32603,"message":"boom"}}`), true, false},
		"an error of ours":         {run(result.Error, zod), false, false},
		"a pass":                   {run(result.Pass, zod), false, false},
	} {
		for kind, report := range map[string]func(io.Writer, *result.Run) error{
			"console":   func(w io.Writer, run *result.Run) error { return Console(w, run, ConsoleOptions{Width: 100}) },
			"checklist": Checklist,
			"HTML":      HTML,
		} {
			text := render(t, report, test.run)
			if got := strings.Contains(text, "To do"); got != test.advice {
				t.Errorf("%s, %s: advice: %t", name, kind, got)
			}
			if got := strings.Contains(text, "Known of the TypeScript SDK") && strings.Contains(text, "typescript-sdk/issues/2284"); got != test.sdk {
				t.Errorf("%s, %s: an SDK: %t", name, kind, got)
			}
		}
	}
}
