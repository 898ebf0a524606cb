package ledger

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/result"
)

// called is a call of a tool and its result.
func called(tool, meta, answer string) []spoken {
	return []spoken{
		{wire.Client, fmt.Sprintf(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":%q%s}}`, tool, meta)},
		{wire.Server, fmt.Sprintf(`{"jsonrpc":"2.0","id":4,"result":%s}`, answer)},
	}
}

// If a run offered a use and did everything to bring it about, its absence is a fact about the target. Everything
// else is untested.
func TestNotUsed(t *testing.T) {
	const (
		v     = schema.DefaultVersion
		able  = `{"sampling":{},"elicitation":{},"roots":{}}`
		works = `{"content":[]}`
		fails = `{"content":[],"isError":true}`
		token = `,"_meta":{"progressToken":"t"}`
	)
	listed := exchange(wire.Client, "tools/list", `"result":{"tools":[{"name":"a"},{"name":"b"}]}`)
	server := func(parts ...[]spoken) []spoken {
		return joined(append([][]spoken{shaken(v, v, `{"tools":{}}`, able), listed}, parts...)...)
	}
	both := joined(called("a", token, works), called("b", token, fails))
	sampled := exchange(wire.Server, "sampling/createMessage", `"result":{}`)
	client := shaken(v, v, `{"tools":{},"prompts":{}}`, able)
	for _, tt := range []struct {
		name     string
		party    wire.Party
		exchange []spoken
		ledger   Ledger
		id       string
		want     string // of notUsed
		why      string // in the reason
	}{
		{"not used", wire.Server, server(both), Ledger{Revision: schema.Default()}, "schema.create-message-request", "sampling", "2 of 2"},
		{"used", wire.Server, server(both, sampled), Ledger{Revision: schema.Default()}, "sampling.result.stop-reason-open", "", "did nothing"},
		{"a part of it used", wire.Server, server(both, sampled), Ledger{Revision: schema.Default()}, "sampling.preferences.priority-range", "model preferences", "priorities"},
		{"not offered", wire.Server, joined(shaken(v, v, `{"tools":{}}`, `{}`), listed, both), Ledger{Revision: schema.Default()}, "schema.elicit-request", "", "did nothing"},
		{"a tool that must not be called", wire.Server, server(called("a", token, works)), Ledger{Revision: schema.Default(), Evidence: Evidence{Forbidden: []string{"b"}}}, "schema.elicit-request", "", "--call-tools=all"},
		{"a tool that was not called", wire.Server, server(called("a", token, works)), Ledger{Revision: schema.Default()}, "schema.elicit-request", "", "did nothing"},
		{"no tool works", wire.Server, server(called("a", "", fails), called("b", "", fails)), Ledger{Revision: schema.Default()}, "schema.elicit-request", "", "isError"},
		{"no token", wire.Server, server(called("a", "", works), called("b", "", works)), Ledger{Revision: schema.Default()}, "progress.token.echo", "", "did nothing"},
		{"one token", wire.Server, server(called("a", token, works), called("b", "", works)), Ledger{Revision: schema.Default()}, "progress.token.echo", "", "did nothing"},
		{"tokens", wire.Server, server(both), Ledger{Revision: schema.Default()}, "progress.token.echo", "progress", ""},
		{"whatever the tools do", wire.Server, server(), Ledger{Revision: schema.Default()}, "pagination.cursor.results-after", "pages", ""},
		{"a member of that name in a schema", wire.Server, server(both, exchange(wire.Client, "tools/list", `"result":{"tools":[{"name":"a","inputSchema":{"properties":{"audience":{}}}}]}`)), Ledger{Revision: schema.Default()}, "content.annotations.audience-roles", "audience", ""},
		{"content", wire.Server, server(both, called("a", token, `{"content":[{"type":"image"}]}`)), Ledger{Revision: schema.Default()}, "content.image.base64", "", ""},
		{"a recording", wire.Server, server(both), Ledger{Revision: schema.Default(), Passive: true}, "schema.elicit-request", "", "provoked"},
		{"cut short", wire.Server, server(both), Ledger{Revision: schema.Default(), Cut: Cut{Cause: fmt.Errorf("it died")}}, "schema.elicit-request", "", ""},
		{"a shard", wire.Server, server(both), Ledger{Revision: schema.Default(), Evidence: Evidence{Elsewhere: map[string]bool{}}}, "schema.elicit-request", "", ""},
		{"a selection", wire.Server, server(both), Ledger{Revision: schema.Default(), Evidence: Evidence{Partial: true}}, "schema.elicit-request", "", ""},
		{"a client that calls nothing", wire.Client, client, Ledger{Revision: schema.Default()}, "schema.call-tool-request", "tool calls", "never called a tool"},
		{"a client that calls", wire.Client, joined(client, called("a", "", works)), Ledger{Revision: schema.Default()}, "tools.result.image", "", "did nothing"},
		{"what the server does not offer", wire.Client, client, Ledger{Revision: schema.Default()}, "schema.complete-request", "", "did nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			trace := wire.NewTrace(wire.DefaultLimits)
			log := trace.Connect(transport.NameStdio, "recorded")
			for _, m := range tt.exchange {
				if _, err := log.Append(wire.Event{Kind: wire.KindMessage, From: m.from, Raw: []byte(m.raw)}); err != nil {
					t.Fatal(err)
				}
			}
			log.End()
			q, ok := schema.Default().Lookup(tt.id)
			if !ok {
				t.Fatalf("there is no requirement %s", tt.id)
			}
			l := tt.ledger
			l.Party, l.Evidence.Logs = tt.party, trace.Logs()
			if !l.Passive {
				l.Serve("rule: any", tt.party, q.ID)
			}
			r := l.Requirement(q)
			if r.Verdict != result.Inconclusive || r.NotUsed != tt.want || !strings.Contains(r.Reason, tt.why) {
				t.Errorf("%s, not used %q: %q; want %q: %q", r.Verdict, r.NotUsed, r.Reason, tt.want, tt.why)
			}
			if r.NotUsed != "" && r.Unexercised != result.NeverDone {
				t.Errorf("what is not used is %s", r.Unexercised)
			}
		})
	}
}
