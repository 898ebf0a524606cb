package ledger

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
)

// spoken is a message of a recorded exchange.
type spoken struct {
	from wire.Party
	raw  string
}

// shaken returns a handshake in which the server declares capabilities.
func shaken(asked, answered, server, client string) []spoken {
	return []spoken{
		{wire.Client, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"c","version":"1"}}}`, asked, client)},
		{wire.Server, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":"s","version":"1"}}}`, answered, server)},
		{wire.Client, `{"jsonrpc":"2.0","method":"notifications/initialized"}`},
	}
}

func exchange(from wire.Party, method, answer string) []spoken {
	return []spoken{
		{from, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":%q,"params":{}}`, method)},
		{from.Peer(), fmt.Sprintf(`{"jsonrpc":"2.0","id":2,%s}`, answer)},
	}
}

func joined(parts ...[]spoken) (all []spoken) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func TestShortfall(t *testing.T) {
	const (
		v       = schema.DefaultVersion
		done    = `"result":{}`
		missing = `"error":{"code":-32601,"message":"no"}`
		refused = `"error":{"code":-1,"message":"the user refuses"}`
	)
	pinged := exchange(wire.Client, "ping", done)
	for _, tt := range []struct {
		name     string
		party    wire.Party
		exchange []spoken
		evidence Evidence
		selected string // page; "" is all
		want     string // "" is nothing
	}{
		{"all", wire.Server, joined(shaken(v, v, `{"tools":{}}`, `{}`), exchange(wire.Client, "tools/list", done)), Evidence{}, "", ""},
		{"nothing crossed", wire.Server, nil, Evidence{}, "", "no handshake led to revision " + v},
		{"not initialized", wire.Client, shaken(v, v, `{}`, `{}`)[:2], Evidence{}, "", "notifications/initialized was never sent"},
		{"nothing after it", wire.Client, shaken(v, v, `{}`, `{}`), Evidence{}, "", "no request after the handshake"},
		{"no result", wire.Server, joined(shaken(v, v, `{}`, `{}`), exchange(wire.Client, "ping", missing)), Evidence{}, "", "no request after the handshake"},
		{"the server only asks", wire.Server, joined(shaken(v, v, `{}`, `{}`), exchange(wire.Server, "ping", done)), Evidence{}, "", "no request after the handshake"},
		{"the client only answers", wire.Client, joined(shaken(v, v, `{}`, `{}`), exchange(wire.Server, "ping", done)), Evidence{}, "", ""},
		{"another revision", wire.Client, joined(shaken("2024-11-05", "2024-11-05", `{}`, `{}`), pinged), Evidence{}, "", `the client asked for "2024-11-05"`},
		{"unused", wire.Server, joined(shaken(v, v, `{"tools":{},"prompts":{},"logging":{},"x":{}}`, `{"roots":{}}`), exchange(wire.Client, "tools/call", done)), Evidence{}, "", "nothing in the run used: logging, prompts"},
		{"not there", wire.Server, joined(shaken(v, v, `{"prompts":{}}`, `{}`), exchange(wire.Client, "prompts/list", missing), pinged), Evidence{}, "", "nothing in the run used: prompts"},
		{"partial", wire.Server, joined(shaken(v, v, `{"prompts":{}}`, `{}`), pinged), Evidence{Partial: true}, "", ""},
		{"not selected", wire.Server, joined(shaken(v, v, `{"prompts":{}}`, `{}`), pinged), Evidence{}, "server/tools", ""},
		{"selected", wire.Server, joined(shaken(v, v, `{"prompts":{}}`, `{}`), pinged), Evidence{}, "server/prompts", "nothing in the run used: prompts"},
		{"unused of the client", wire.Client, joined(shaken(v, v, `{"prompts":{}}`, `{"sampling":{}}`), pinged), Evidence{}, "", "the client declares what nothing in the run used: sampling"},
		{"refused by the user", wire.Client, joined(shaken(v, v, `{}`, `{"sampling":{}}`), pinged, exchange(wire.Server, "sampling/createMessage", refused)), Evidence{}, "", ""},
		{"what the stimulus misses", wire.Client, joined(shaken(v, v, `{}`, `{}`), pinged), Evidence{Missing: []string{"it hung"}}, "", "it hung"},
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
			catalogue := schema.Default().Catalogue()
			var selected []schema.Requirement
			for _, q := range catalogue {
				if tt.selected == "" || q.Page == tt.selected {
					selected = append(selected, q)
				}
			}
			l := &Ledger{Revision: schema.Default(), Party: tt.party, Evidence: tt.evidence}
			l.Evidence.Logs = trace.Logs()
			got := strings.Join(clauses(l, selected), "; ")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("missing: %q, want %q", got, tt.want)
			}
		})
	}
}

// A record that a limit ends is not whole, also when it was written and read again.
func TestCutRecord(t *testing.T) {
	for name, limits := range map[string]wire.Limits{
		"events":  {Message: 100, Total: 1 << 20, Events: 3},
		"bytes":   {Message: 100, Total: 1000, Events: 100},
		"dropped": wire.DefaultLimits,
		"depth":   wire.DefaultLimits,
	} {
		t.Run(name, func(t *testing.T) {
			trace := wire.NewTrace(limits)
			log := trace.Connect(transport.NameStdio, "flood")
			if log.Cut() {
				t.Error("it begins cut")
			}
			for range 10 {
				e := wire.Event{Kind: wire.KindMessage, From: wire.Server, Raw: []byte(`{}`)}
				switch name {
				case "dropped":
					e.Dropped = 1
				case "depth":
					e.Raw = []byte(strings.Repeat("[", 1000) + strings.Repeat("]", 1000))
				}
				_, _ = log.Append(e)
			}
			log.End()
			if log.Cut() == (name == "depth") { // which is seen by the party that sends it
				t.Errorf("cut: %t", log.Cut())
			}
			var text strings.Builder
			if _, err := trace.WriteTo(&text); err != nil {
				t.Fatal(err)
			}
			again, err := wire.ReadTrace(strings.NewReader(text.String()), wire.DefaultLimits)
			if err != nil {
				t.Fatal(err)
			}
			if again.Logs()[0].Cut() != log.Cut() {
				t.Errorf("read again, cut: %t", !log.Cut())
			}
			l := &Ledger{Revision: schema.Default(), Party: wire.Server, Evidence: Evidence{Logs: again.Logs()}}
			if got := strings.Join(clauses(l, nil), "; "); !strings.Contains(got, "limit") {
				t.Errorf("missing: %q", got)
			}
		})
	}
}

// clauses says all that is missing.
func clauses(l *Ledger, selected []schema.Requirement) []string {
	missing, unused := l.shortfall(selected)
	if len(unused) > 0 {
		missing = append(missing, unusedBy(string(l.Party), unused))
	}
	return missing
}
