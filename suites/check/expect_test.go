package check

import (
	"slices"
	"testing"

	"github.com/onsi/gomega"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check/match"
)

func TestExpectations(t *testing.T) {
	event := func(raw string) *wire.Event {
		return &wire.Event{Kind: wire.KindMessage, Msg: wire.Parse([]byte(raw))}
	}
	x := &client.Exchange{
		Request:  event(`{"jsonrpc":"2.0","id":1,"method":"ping"}`),
		Response: event(`{"jsonrpc":"2.0","id":1,"result":{}}`),
	}
	const message = "ping was answered with a result, not with error -32601"
	for _, tt := range []struct {
		name    string
		body    func(t *T)
		verdict Verdict
		reason  string
		found   *Finding
		goesOn  bool
	}{
		{"met", func(t *T) { t.Expect(x).To(match.HaveResult()) }, Passed, "", nil, true},
		{"unmet", func(t *T) { t.Expect(x).To(match.HaveErrorCode(-32601)) }, Failed, "", &Finding{Requirement: "first", Message: message}, false},
		{"about another", func(t *T) { t.About("second"); t.Expect(x).Should(match.HaveErrorCode(-32601)) }, Failed, "",
			&Finding{Requirement: "second", Message: message}, false},
		{"described", func(t *T) { t.Expect(x).To(match.HaveErrorCode(-32601), "at the %dnd time", 2) }, Failed, "",
			&Finding{Requirement: "first", Message: "at the 2nd time, " + message}, false},
		{"negated", func(t *T) { t.Expect(x).ToNot(match.HaveResult()) }, Failed, "",
			&Finding{Requirement: "first", Message: "ping was answered with a result, which was not expected"}, false},
		{"negated otherwise", func(t *T) { t.Expect(x).ShouldNot(match.HaveError()); t.Expect(x).NotTo(match.HaveError()) }, Passed, "", nil, true},
		{"composed", func(t *T) { t.Expect(x).To(gomega.Or(match.HaveError(), match.HaveResult())) }, Passed, "", nil, true},
		{"check", func(t *T) { t.Check("third", x).To(match.HaveErrorCode(-32601)) }, Failed, "",
			&Finding{Requirement: "third", Message: message}, true},
		{"warning", func(t *T) { t.WarnUnless("third", x).To(match.HaveErrorCode(-32601)) }, Failed, "",
			&Finding{Requirement: "third", Message: message, Mild: true}, true},
		{"assumption", func(t *T) { t.Assume(x).To(match.HaveErrorCode(-32601), "without arguments") }, Inconclusive,
			"without arguments, " + message, nil, false},
		{"mistake", func(t *T) { t.Expect(7).To(match.HaveResult()) }, Broken, "", nil, false},
	} {
		c := &T{check: &Check{Name: "topic/check", Requirements: []string{"first"}}}
		goesOn := false
		c.check.Body = func(t *T) { tt.body(t); goesOn = true }
		c.body()
		if c.outcome.Verdict != tt.verdict || tt.reason != "" && c.outcome.Reason != tt.reason || goesOn != tt.goesOn {
			t.Errorf("%s: %s: %s; it goes on: %t", tt.name, c.outcome.Verdict, c.outcome.Reason, goesOn)
		}
		if tt.found == nil {
			if len(c.outcome.Findings) > 0 {
				t.Errorf("%s: %+v", tt.name, c.outcome.Findings)
			}
			continue
		}
		if len(c.outcome.Findings) != 1 {
			t.Errorf("%s: %+v", tt.name, c.outcome.Findings)
			continue
		}
		got := c.outcome.Findings[0]
		if !slices.Equal(got.Evidence, x.Events()) {
			t.Errorf("%s: evidence %v", tt.name, got.Evidence)
		}
		if got.Evidence = nil; got.Requirement != tt.found.Requirement || got.Message != tt.found.Message || got.Mild != tt.found.Mild {
			t.Errorf("%s:\n got %+v\nwant %+v", tt.name, got, *tt.found)
		}
	}
}

// The message that a matcher singles out is shown with the finding, once.
func TestWitness(t *testing.T) {
	e := &wire.Event{Kind: wire.KindMessage}
	c := &T{check: &Check{Name: "topic/check", Requirements: []string{"first"}}}
	for range 2 {
		c.Check("first", []*wire.Event{{}, e}).ToNot(match.Carry("something", func(o *wire.Event) bool { return o == e }), "in silence")
	}
	for _, f := range c.outcome.Findings {
		if f.Message != "in silence, something came" || !slices.Equal(f.Evidence, []*wire.Event{e}) {
			t.Errorf("%+v", f)
		}
	}
	if len(c.outcome.Findings) != 2 {
		t.Errorf("%d findings", len(c.outcome.Findings))
	}
}
