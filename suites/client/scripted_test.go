package client_test

import (
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/internal/proof/scripttest"
	"github.com/mcpconform/mcpconform/reference/script"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

// Scripts for clients, with what comes of them when the reference client, which
// uses everything there is, is led.
var clientScripts = []scripttest.Case{
	{Name: "asks", Text: "# A list is read while roots are asked for\n|json expect\n{\"method\": \"tools/list\"}\n|\n|json send\n{\"method\": \"roots/list\"}\n|\n" +
		"|json expect\n{\"result\": {\"roots\": \"${array}\"}}\n|\n", Verdict: result.Pass, Message: ""},
	{Name: "serves", Text: "---\nrequirements: ping.response-prompt\n---\n|json expect\n{\"method\": \"tools/list\"}\n|\n|json send\n{\"method\": \"ping\"}\n|\n|json expect\n{\"result\": {}}\n|\n", Verdict: "", Message: ""},
	{Name: "introduction", Text: "|json expect\n{\"method\": \"initialize\", \"params\": {\"clientInfo\": {\"name\": \"somebody-else\"}}}\n|\n",
		Verdict: result.Fail, Message: `s/introduction.md:1: what came for initialize is not what is expected: /params/clientInfo/name is "`},
	{Name: "other answer", Text: "|json expect\n{\"method\": \"tools/list\"}\n|\n|json send\n{\"method\": \"ping\"}\n|\n|json expect\n{\"result\": {\"pong\": true}}\n|\n",
		Verdict: result.Fail, Message: "s/other answer.md:7: what came for the response to its request is not what is expected: /result/pong is missing"},
	{Name: "no branch", Text: "|json expect\n{\"method\": \"tools/list\"}\n|\n|json send\n{\"method\": \"ping\"}\n|\n|json when\n{\"error\": {}}\n|\n|- end\n|\n",
		Verdict: result.Fail, Message: "it fits none of the branches"},
	{Name: "mild", Text: "---\nlevel: SHOULD\n---\n|json expect\n{\"method\": \"tools/list\"}\n|\n|json expect\n{\"method\": \"notifications/never\"}\n|\n",
		Verdict: result.Warn, Message: "s/mild.md:7: the session ended before notifications/never came"},
	{Name: "not begun", Text: "|json expect\n{\"method\": \"tools/call\", \"params\": {\"name\": \"none of that name\"}}\n|\n",
		Verdict: result.Inconclusive, Message: "s/not begun.md:1: the client never sent tools/call, with which the script begins; one came, but /params/name is "},
	{Name: "undeclared", Text: "---\nneeds: roots, mcpconform\n---\n|json expect\n{\"method\": \"no\"}\n|\n", Verdict: result.Skip, Message: "the client does not declare mcpconform"},
	{Name: "given up", Text: "|json expect\n{\"method\": \"tools/list\"}\n|\n|text inconclusive\nnothing can be said\n|\n", Verdict: result.Inconclusive, Message: "nothing can be said"},
}

func TestScripts(t *testing.T) {
	scripts := scripttest.Read(t, clientScripts, wire.Client)
	for _, over := range []string{transport.NameStdio, transport.NameHTTP, transport.NameSSE} {
		t.Run(over, func(t *testing.T) {
			run := conducted(t, suites.ClientScenarios{Transport: over, Scenarios: func() (names []string) {
				for _, s := range scripts {
					names = append(names, "script/"+s.Name)
				}
				return names
			}(), Launch: func(p client.Endpoint) (transport.Process, error) {
				return suites.ReferenceClient(p, calmTime).Launch()
			}}, suites.Options{Scripts: scripts, Selection: suites.Selection{Select: []string{"script", "ping.response-prompt"}}})
			scripttest.Compare(t, run, clientScripts)
			if q := requirement(t, run, "ping.response-prompt"); q.Verdict != result.Pass || !strings.Contains(strings.Join(q.Checks, " "), "script/serves") {
				t.Errorf("the requirement that a script serves is %s, by %q", q.Verdict, q.Checks)
			}
		})
	}
}

func TestScriptsForServers(t *testing.T) {
	s, err := script.Parse("s/never.md", []byte("```json expect\n{\"method\": \"ping\"}\n```\n```json never\n{}\n```\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := suites.OrdinaryScenarios([]*script.Script{s}); err == nil || !strings.HasPrefix(err.Error(), "s/never.md:4: never is for scripts") {
		t.Errorf("got %v", err)
	}
}
