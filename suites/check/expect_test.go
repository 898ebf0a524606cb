package check

import (
	"slices"
	"testing"

	"github.com/onsi/gomega"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/match"
)

func TestExpectations(t *testing.T) {
	event := func(raw string) *wire.Event {
		return &wire.Event{Kind: wire.KindMessage, Msg: wire.Parse([]byte(raw))}
	}
	x := &client.Exchange{
		Request:  event(`{"jsonrpc":"2.0","id":1,"method":"ping"}`),
		Response: event(`{"jsonrpc":"2.0","id":1,"result":{}}`),
	}
	type finding struct {
		requirement, message string
		warnOnly             bool
	}
	const message = "ping was answered with a result, not with error -32601"
	for _, tt := range []struct {
		name      string
		body      func(t *T)
		verdict   Verdict
		reason    string
		found     *finding
		continues bool
	}{
		{"met", func(t *T) { t.Expect(x).To(match.HaveResult()) }, Passed, "", nil, true},
		{"unmet", func(t *T) { t.Expect(x).To(match.HaveErrorCode(-32601)) }, Failed, "", &finding{requirement: "first", message: message}, false},
		{"about another", func(t *T) { t.About("second"); t.Expect(x).To(match.HaveErrorCode(-32601)) }, Failed, "",
			&finding{requirement: "second", message: message}, false},
		{"described", func(t *T) { t.Expect(x).To(match.HaveErrorCode(-32601), "at the %dnd time", 2) }, Failed, "",
			&finding{requirement: "first", message: "at the 2nd time, " + message}, false},
		{"negated", func(t *T) { t.Expect(x).ToNot(match.HaveResult()) }, Failed, "",
			&finding{requirement: "first", message: "ping was answered with a result; an error was expected"}, false},
		{"negated and met", func(t *T) { t.Expect(x).ToNot(match.HaveError()) }, Passed, "", nil, true},
		{"composed", func(t *T) { t.Expect(x).To(gomega.Or(match.HaveError(), match.HaveResult())) }, Passed, "", nil, true},
		{"check", func(t *T) { t.Check("third", x).To(match.HaveErrorCode(-32601)) }, Failed, "",
			&finding{requirement: "third", message: message}, true},
		{"warning", func(t *T) { t.WarnUnless("third", x).To(match.HaveErrorCode(-32601)) }, Failed, "",
			&finding{requirement: "third", message: message, warnOnly: true}, true},
		{"assumption", func(t *T) { t.Assume(x).To(match.HaveErrorCode(-32601), "without arguments") }, Inconclusive,
			"without arguments, " + message, nil, false},
		{"mistake", func(t *T) { t.Expect(7).To(match.HaveResult()) }, Broken, "", nil, false},
	} {
		c := newT(t.Context(), &Engine{Options: Options{Revision: schema.Default()}}, &Check{Name: "topic/check", Requirements: []string{"first"}}, nil)
		continues := false
		c.check.Body = func(t *T) { tt.body(t); continues = true }
		c.body()
		if c.outcome.Verdict != tt.verdict || tt.reason != "" && c.outcome.Reason != tt.reason || continues != tt.continues {
			t.Errorf("%s: %s: %s; it goes on: %t", tt.name, c.outcome.Verdict, c.outcome.Reason, continues)
		}
		if tt.found == nil {
			if found := c.rec.Record.Findings(); len(found) > 0 {
				t.Errorf("%s: %+v", tt.name, found)
			}
			continue
		}
		var got []finding
		for _, k := range c.rec.Record.Keys() {
			for _, f := range c.rec.Record[k].Findings {
				got = append(got, finding{k.Requirement, f.Message, f.WarnOnly})
				if !slices.Equal(f.Evidence, x.Events()) {
					t.Errorf("%s: evidence %v", tt.name, f.Evidence)
				}
			}
		}
		if !slices.Equal(got, []finding{*tt.found}) {
			t.Errorf("%s:\n got %+v\nwant %+v", tt.name, got, *tt.found)
		}
	}
}

// The message that a matcher singles out is shown with the finding, once.
func TestWitness(t *testing.T) {
	e := &wire.Event{Kind: wire.KindMessage}
	c := newT(t.Context(), &Engine{Options: Options{Revision: schema.Default()}}, &Check{Name: "topic/check", Requirements: []string{"first"}}, nil)
	for range 2 {
		c.Check("first", []*wire.Event{{}, e}).ToNot(match.Carry("something", func(o *wire.Event) bool { return o == e }), "in silence")
	}
	for _, f := range c.rec.Record.Findings() {
		if f.Message != "in silence, something came, where none was expected" || !slices.Equal(f.Evidence, []*wire.Event{e}) {
			t.Errorf("%+v", f)
		}
	}
	if len(c.rec.Record.Findings()) != 1 {
		t.Errorf("%d findings", len(c.rec.Record.Findings()))
	}
}
