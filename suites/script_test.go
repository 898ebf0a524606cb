package suites_test

import (
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/internal/proof/scripttest"
	"github.com/mcpconform/mcpconform/reference/script"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// Scripts of a user, with what comes of them on the reference server.
var userScripts = []scripttest.Case{
	{Name: "meets", Text: "# Greeting\n|json send\n{\"method\": \"tools/call\", \"params\": {\"name\": \"echo\", \"arguments\": {\"text\": \"hello\"}}}\n|\n" +
		"|json expect\n{\"result\": {\"content\": [{\"text\": \"hello\"}]}}\n|\n", Verdict: result.Pass, Message: ""},
	{Name: "mismatch", Text: "|json send\n{\"method\": \"ping\"}\n|\n\n|json expect\n{\"result\": {\"pong\": true}}\n|\n",
		Verdict: result.Fail, Message: "s/mismatch.md:5: /result/pong is missing"},
	{Name: "mild", Text: "---\nlevel: SHOULD\n---\n|json send\n{\"method\": \"ping\"}\n|\n|json expect\n{\"error\": {}}\n|\n",
		Verdict: result.Warn, Message: "s/mild.md:7: /error is missing"},
	{Name: "cursor", Text: "|json send as=one\n{\"method\": \"tools/list\"}\n|\n|json send as=two\n{\"method\": \"ping\"}\n|\n" +
		"|json expect of=one\n{\"result\": {\"nextCursor\": \"${cursor=string}\"}}\n|\n" +
		"|json send\n{\"method\": \"tools/list\", \"params\": {\"cursor\": \"${cursor}\"}}\n|\n" +
		"|json expect\n{\"result\": {\"nextCursor\": {\"${not}\": \"${cursor}\"}}}\n|\n|json expect of=two\n{\"result\": {}}\n|\n", Verdict: result.Pass, Message: ""},
	{Name: "asked", Text: "|json send as=call\n{\"method\": \"tools/call\", \"params\": {\"name\": \"test_sampling\", \"arguments\": {\"prompt\": \"Hi\"}}}\n|\n" +
		"|json expect\n{\"method\": \"sampling/createMessage\", \"params\": {\"maxTokens\": \"${integer}\"}}\n|\n" +
		"|json send\n{\"id\": \"${id}\", \"result\": {\"role\": \"assistant\", \"model\": \"m\", \"content\": {\"type\": \"text\", \"text\": \"scripted\"}}}\n|\n" +
		"|json expect of=call\n{\"result\": {\"content\": [{\"text\": \"${/scripted/}\"}]}}\n|\n", Verdict: result.Pass, Message: ""},
	{Name: "raw", Text: "---\nsession: raw\n---\n|json send\n{\"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-06-18\", \"capabilities\": {}, \"clientInfo\": {\"name\": \"c\", \"version\": \"1\"}}}\n|\n" +
		"|json expect\n{\"result\": {\"protocolVersion\": \"${version=}\"}}\n|\n|json send\n{\"method\": \"notifications/initialized\"}\n|\n" +
		"|json send\n{\"method\": \"ping\"}\n|\n|json expect\n{\"result\": {}}\n|\n", Verdict: result.Pass, Message: ""},
	{Name: "silence", Text: "|json send\n{\"method\": \"notifications/mcpconform\"}\n|\n|json never\n{}\n|\n", Verdict: result.Pass, Message: ""},
	{Name: "unexpected", Text: "|json send\n{\"method\": \"tools/call\", \"params\": {\"name\": \"test_tool_with_logging\"}}\n|\n|json never\n{\"method\": \"notifications/message\"}\n|\n",
		Verdict: result.Fail, Message: "s/unexpected.md:4: a message came that must not come: "},
	{Name: "branch", Text: "|json send\n{\"method\": \"ping\"}\n|\n|json when\n{\"error\": {}}\n|\n|json send\n{\"method\": \"no\"}\n|\n" +
		"|json when\n{\"result\": {}}\n|\n|json send\n{\"method\": \"tools/list\"}\n|\n|- end\n|\n|json expect\n{\"result\": {\"tools\": \"${array}\"}}\n|\n", Verdict: result.Pass, Message: ""},
	{Name: "otherwise", Text: "|json send\n{\"method\": \"ping\"}\n|\n|json when\n{\"error\": {}}\n|\n|- otherwise\n|\n|json send\n{\"method\": \"no\"}\n|\n|- end\n|\n" +
		"|json expect\n{\"error\": {\"code\": -32601}}\n|\n", Verdict: result.Pass, Message: ""},
	{Name: "no branch", Text: "|json send\n{\"method\": \"ping\"}\n|\n|json when\n{\"error\": {}}\n|\n|- end\n|\n",
		Verdict: result.Fail, Message: "s/no branch.md:4: the response does not fit any of the branches: /error is missing"},
	{Name: "never comes", Text: "|json expect\n{\"method\": \"notifications/mcpconform\"}\n|\n", Verdict: result.Fail, Message: `s/never comes.md:1: no message "notifications/mcpconform" within`},
	{Name: "nearest", Text: "|json send\n{\"method\": \"tools/call\", \"params\": {\"name\": \"test_tool_with_logging\"}}\n|\n|json expect\n{\"method\": \"notifications/message\", \"params\": {\"level\": \"debug\"}}\n|\n",
		Verdict: result.Fail, Message: `; one came whose /params/level is "info", not "debug"`},
	{Name: "nonsense", Text: "|text send\nno json at all\n|\n|json send\n{\"method\": 7, \"id\": 1}\n|\n|json send\n{\"method\": \"ping\"}\n|\n|json expect\n{\"result\": {}}\n|\n", Verdict: result.Pass, Message: ""},
	{Name: "undeclared", Text: "---\nneeds: tools, tools.mcpconform\n---\n|json send\n{\"method\": \"ping\"}\n|\n|json expect\n{\"error\": {}}\n|\n", Verdict: result.Skip, Message: "does not declare tools.mcpconform"},
	{Name: "given up", Text: "|text inconclusive\nnothing\ncan be said\n|\n", Verdict: result.Inconclusive, Message: "nothing can be said"},
	{Name: "nothing captured", Text: "|json send\n{\"method\": \"${what}\"}\n|\n", Verdict: result.Inconclusive, Message: "s/nothing captured.md:1: nothing was captured as what"},
}

func TestScripts(t *testing.T) {
	scripts := scripttest.Read(t, userScripts, wire.Server)
	for _, over := range transports {
		t.Run(over, inVirtualTime(func(t *testing.T) {
			dialer, stop, err := serve(t.Context(), over, serverOptions())
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			run, _, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: dialer, Settings: check.Settings{CallTools: check.CallNone}}, suites.Options{Scripts: scripts, Selection: suites.Selection{Select: []string{"script"}}})
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range run.Harness {
				t.Errorf("mcpconform itself: %s", h.Message)
			}
			scripttest.Compare(t, run, userScripts)
		}))
	}
}

func TestCheckScripts(t *testing.T) {
	for _, tt := range []struct {
		name string
		all  []*script.Script
		want string
	}{
		{"good", []*script.Script{{Name: "a", File: "a.md"}, {Name: "b", File: "b.md", Requirements: []string{"ping.response-empty"}}}, ""},
		{"same id", []*script.Script{{Name: "a/b", File: "a/b.md"}, {Name: "a.b", File: "a.b.md"}}, "a.b.md: a/b.md has the same id script.a.b"},
		{"unknown", []*script.Script{{Name: "a", File: "a.md", Requirements: []string{"ping.response-emptys"}}}, "a.md: there is no requirement ping.response-emptys; the nearest are ping.response-empty"},
		{"unobservable", []*script.Script{{Name: "a", File: "a.md", Requirements: []string{"ping.periodic"}}}, "a.md: the requirement ping.periodic cannot be observed"},
		{"of clients", []*script.Script{{Name: "a", File: "a.md", Requirements: []string{"lifecycle.shutdown.stdio-close-stdin"}}}, "is not judged on servers"},
	} {
		err := suites.CheckScripts(schema.Default(), tt.all, wire.Server)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}
