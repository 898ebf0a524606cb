package check

import (
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
)

// listing is a trace in which two lists of tools were read.
func listing(t *testing.T) *wire.Trace {
	t.Helper()
	trace := wire.NewTrace(wire.DefaultLimits)
	log := trace.Connect(transport.NameStdio, "recorded")
	for i, m := range []struct {
		from wire.Party
		raw  string
	}{
		{wire.Client, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`},
		{wire.Server, `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"add","inputSchema":{"required":["old"]}}]}}`},
		{wire.Client, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`},
		{wire.Server, `{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"secret","description":"` + strings.Repeat("token-", 100) +
			`"},{"name":"add","inputSchema":{"required":["a"]}},{"name":7}]}}`},
	} {
		if _, err := log.Append(wire.Event{Kind: wire.KindMessage, From: m.from, Raw: []byte(m.raw)}); err != nil {
			t.Fatal(i, err)
		}
	}
	return trace
}

// The last answer that lists an item is shown, without most of the others.
func TestListed(t *testing.T) {
	c := &T{engine: &Engine{Options: Options{Trace: listing(t)}}}
	e := c.Listed("tools/list", "tools", "add")
	if e == nil || !strings.Contains(string(e.Raw), `{"name":"add","inputSchema":{"required":["a"]}}`) {
		t.Fatalf("listed: %+v", e)
	}
	if strings.Contains(string(e.Raw), "token") || e.Dropped == 0 {
		t.Errorf("it is not shortened: %s", e.Raw)
	}
	if all := c.Logs()[0].Events(); strings.Contains(string(all[3].Raw), "left out") {
		t.Errorf("the trace was changed: %s", all[3].Raw)
	}
	for _, none := range []struct{ method, member, name string }{
		{"tools/list", "tools", "sub"}, {"tools/list", "prompts", "add"}, {"prompts/list", "prompts", "add"},
	} {
		if e := c.Listed(none.method, none.member, none.name); e != nil {
			t.Errorf("%v: %+v", none, e)
		}
	}
}

// A premise leads the evidence of every finding, and outlives those before it.
func TestPremise(t *testing.T) {
	c := newT(t.Context(), &Engine{Options: Options{Revision: schema.Default()}}, &Check{Name: "topic/check", Requirements: []string{"first"}}, nil)
	premise := &wire.Event{Kind: wire.KindMessage, Raw: []byte("premise")}
	c.Premise(premise, nil, premise)
	for range 2 * maxEvidence {
		c.Show(&wire.Event{Kind: wire.KindMessage})
	}
	c.Violation("first", "one")
	c.Clear()
	own := &wire.Event{Kind: wire.KindMessage, Raw: []byte("own")}
	c.Violation("first", "two", own)
	found := c.rec.Record.Findings()
	if len(found) != 2 || len(found[0].Evidence) != maxEvidence || found[0].Evidence[0] != premise {
		t.Fatalf("%+v", found)
	}
	if e := found[1].Evidence; len(e) != 2 || e[0] != premise || e[1] != own {
		t.Errorf("%+v", e)
	}
}
