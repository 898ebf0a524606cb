package client

import (
	"net/url"
	"slices"
	"testing"

	"github.com/mcpconform/mcpconform/reference/authserver"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/client"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

func TestExpectations(t *testing.T) {
	event := func(raw string) *wire.Event {
		return &wire.Event{Kind: wire.KindMessage, Msg: wire.Parse([]byte(raw))}
	}
	x := &wire.Exchange{
		Request:  event(`{"jsonrpc":"2.0","id":1,"method":"ping"}`),
		Response: event(`{"jsonrpc":"2.0","id":1,"result":{}}`),
	}
	before := event(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	step := client.Step{Call: authserver.Call{Step: authserver.Token, Values: url.Values{"resource": {"mine"},
		"code": {""}}, Event: before}}
	for _, tt := range []struct {
		name     string
		judge    func(t *client.T) bool
		message  string // of the finding; "" if the requirement is met
		warnOnly bool
		evidence []*wire.Event
	}{
		{"met", func(t *client.T) bool { return t.Check("one", x).To(HaveResult()) }, "", false, nil},
		{"unmet", func(t *client.T) bool {
			return t.Check("one", x, before, x.Request).To(HaveError(), "at the %dnd time", 2)
		},
			"at the 2nd time, ping was answered with a result, not with a JSON-RPC error", false,
			[]*wire.Event{before, x.Request, x.Response}},
		{"negated", func(t *client.T) bool { return t.Check("one", x).ToNot(HaveResult()) },
			"ping was answered with a result; an error was expected", false, x.Events()},
		{"warning", func(t *client.T) bool { return t.WarnUnless("one", false, before).To(BeTrueBecause("it is false")) },
			"it is false", true, []*wire.Event{before}},
		{"no warning", func(t *client.T) bool { return t.WarnUnless("one", x).To(HaveResult()) }, "", false, nil},
		{"parameter", func(t *client.T) bool { return t.Check("one", step).To(haveParameter("resource")) }, "", false, nil},
		{"parameter with a value", func(t *client.T) bool {
			return t.Check("one",
				step).To(haveParameter("resource", "mine"))
		}, "", false, nil},
		{"parameter with another value",
			func(t *client.T) bool { return t.Check("one", step).To(haveParameter("resource", "yours", "ours")) },
			`the token request has the resource "mine", not yours or ours`, false, []*wire.Event{before}},
		{"empty parameter", func(t *client.T) bool { return t.Check("one", step, before).To(haveParameter("code")) },
			"the token request has no code", false, []*wire.Event{before}},
		{"unwanted parameter", func(t *client.T) bool { return t.Check("one", step).ToNot(haveParameter("resource")) },
			`the token request has the resource "mine"; another one, or none, was expected`, false, []*wire.Event{before}},
	} {
		judged := &client.T{ScenarioRun: &client.ScenarioRun{Settings: client.Settings{Revision: schema.Default()}}, Scenario: &client.Scenario{Name: "topic/scenario"}}
		satisfied := tt.judge(judged)
		entry := judged.Recorder().Record.At("one", wire.Client)
		if satisfied != (tt.message == "") || entry.Exercised != 1 {
			t.Errorf("%s: met: %t, exercised: %d", tt.name, satisfied, entry.Exercised)
		}
		if satisfied {
			if len(entry.Findings) > 0 {
				t.Errorf("%s: %+v", tt.name, entry.Findings)
			}
			continue
		}
		if len(entry.Findings) != 1 {
			t.Errorf("%s: %d findings", tt.name, len(entry.Findings))
			continue
		}
		if f := entry.Findings[0]; f.Message != tt.message || f.WarnOnly != tt.warnOnly ||
			!slices.Equal(f.Evidence, tt.evidence) {
			t.Errorf("%s: %+v", tt.name, f)
		}
	}
}

// A finding that the time limit decided says how to give the client longer.
func TestTimedOut(t *testing.T) {
	judged := &client.T{
		ScenarioRun: &client.ScenarioRun{Settings: client.Settings{Revision: schema.Default()}},
		Scenario:    &client.Scenario{Name: "topic/scenario"},
		Ending:      client.Ending{Late: true},
	}
	judged.Baseline = &client.T{Scenario: &client.Scenario{Name: client.Baseline}, Ending: client.Ending{Exit: &wire.Exit{}}}
	judgeCoped(judged, "an odd answer", nil, "one")
	const want = "the client hangs after an odd answer; if it may take longer, raise --timeout"
	if found := judged.Recorder().Record.Findings(); len(found) != 1 || found[0].Message != want {
		t.Errorf("%+v", found)
	}
}
