package suites_test

import (
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/expected"
	"github.com/mcpconform/mcpconform/suites/result"
)

// Expected failures and a selection count for a recording as for a run.
func TestRecorded(t *testing.T) {
	trace := wire.NewTrace(wire.DefaultLimits)
	log := trace.Connect("stdio", "recorded")
	for _, m := range []struct {
		from wire.Party
		raw  string
	}{
		{wire.Client, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`},
		{wire.Server, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`},
		{wire.Client, `{"jsonrpc":"2.0","method":"notifications/initialized"}`},
		{wire.Client, `{"jsonrpc":"2.0","id":2,"method":"ping"}`},
		{wire.Server, `{"jsonrpc":"2.0","id":2,"result":{"pong":true}}`},
	} {
		if _, err := log.Append(wire.Event{Kind: wire.KindMessage, From: m.from, Raw: []byte(m.raw), Msg: wire.Parse([]byte(m.raw))}); err != nil {
			t.Fatal(err)
		}
	}
	log.End()
	for _, tt := range []struct {
		name    string
		options suites.Options
		want    result.Overall
		status  string // of the only entry
	}{
		{"nothing expected", suites.Options{}, result.NotConformant, ""},
		{"expected", suites.Options{Expected: []expected.Entry{{ID: "ping.response-*", Reason: "known"}}}, result.Conformant, expected.Failed},
		{"something else expected", suites.Options{Expected: []expected.Entry{{ID: "base.response.id-echo", Reason: "known"}}}, result.NotConformant, expected.Passed},
		{
			"expired", suites.Options{Expected: []expected.Entry{{ID: "ping.response-*", Reason: "known", Expires: "2025-06-18"}}},
			result.NotConformant, expected.Expired,
		},
		{"not selected", suites.Options{Selection: suites.Selection{Skip: []string{"ping"}}}, result.Conformant, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.options.Trace = trace
			run, _, err := suites.Run(t.Context(), suites.Recording{Party: wire.Server}, tt.options)
			if err != nil {
				t.Fatal(err)
			}
			status := ""
			for _, x := range run.ExpectedFailures {
				status = x.Status
			}
			if run.Verdict != tt.want || status != tt.status {
				t.Errorf("the run is %s and the entry %q; want %s and %q", run.Verdict, status, tt.want, tt.status)
			}
		})
	}
}

// A party that settled on another published revision is not judged by this one, on
// either side.
func TestRecordedOtherRevision(t *testing.T) {
	for _, version := range []string{"2024-11-05", "2025-11-25", "2030-01-02"} {
		trace := wire.NewTrace(wire.DefaultLimits)
		log := trace.Connect("stdio", "recorded")
		for _, m := range []struct {
			from wire.Party
			raw  string
		}{
			{wire.Client, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`},
			{wire.Server, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"` + version + `","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`},
			{wire.Client, `{"jsonrpc":"2.0","method":"notifications/initialized"}`},
			{wire.Client, `{"jsonrpc":"2.0","id":1,"method":"ping"}`},
			{wire.Server, `{"jsonrpc":"2.0","id":1,"result":{"pong":true}}`},
		} {
			if _, err := log.Append(wire.Event{Kind: wire.KindMessage, From: m.from, Raw: []byte(m.raw)}); err != nil {
				t.Fatal(err)
			}
		}
		log.End()
		for _, party := range []wire.Party{wire.Server, wire.Client} {
			run, _, err := suites.Run(t.Context(), suites.Recording{Party: party}, suites.Options{Trace: trace, Strict: true})
			if err != nil {
				t.Fatal(err)
			}
			if run.Verdict != result.Incomplete || !strings.Contains(run.Reason, "speaks another revision, \""+version) {
				t.Errorf("the %s of %s is %s: %s", party, version, run.Verdict, run.Reason)
			}
			for _, q := range run.Requirements {
				if len(q.Findings) > 0 {
					t.Errorf("%s, %s: %s is %s: %s", version, party, q.ID, q.Verdict, q.Findings[0].Message)
				}
			}
		}
	}
}
