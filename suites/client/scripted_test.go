package client_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcpconform/mcpconform/reference/script"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

// Scripts for clients, in which | stands for three backticks, with what comes of
// them when the reference client, which uses everything there is, is led.
var clientScripts = []struct {
	name, text string
	verdict    result.Verdict
	message    string // part of the finding or reason
}{
	{"asks", "# A list is read while roots are asked for\n|json expect\n{\"method\": \"tools/list\"}\n|\n|json send\n{\"method\": \"roots/list\"}\n|\n" +
		"|json expect\n{\"result\": {\"roots\": \"${array}\"}}\n|\n", result.Pass, ""},
	{"serves", "---\nrequirements: ping.response-prompt\n---\n|json expect\n{\"method\": \"tools/list\"}\n|\n|json send\n{\"method\": \"ping\"}\n|\n|json expect\n{\"result\": {}}\n|\n", "", ""},
	{"introduction", "|json expect\n{\"method\": \"initialize\", \"params\": {\"clientInfo\": {\"name\": \"somebody-else\"}}}\n|\n",
		result.Fail, `s/introduction.md:1: what came for initialize is not what is expected: /params/clientInfo/name is "`},
	{"other answer", "|json expect\n{\"method\": \"tools/list\"}\n|\n|json send\n{\"method\": \"ping\"}\n|\n|json expect\n{\"result\": {\"pong\": true}}\n|\n",
		result.Fail, "s/other answer.md:7: what came for the response to its request is not what is expected: /result/pong is missing"},
	{"no branch", "|json expect\n{\"method\": \"tools/list\"}\n|\n|json send\n{\"method\": \"ping\"}\n|\n|json when\n{\"error\": {}}\n|\n|- end\n|\n",
		result.Fail, "it fits none of the branches"},
	{"mild", "---\nlevel: SHOULD\n---\n|json expect\n{\"method\": \"tools/list\"}\n|\n|json expect\n{\"method\": \"notifications/never\"}\n|\n",
		result.Warn, "s/mild.md:7: the session ended before notifications/never came"},
	{"not begun", "|json expect\n{\"method\": \"tools/call\", \"params\": {\"name\": \"none of that name\"}}\n|\n",
		result.Inconclusive, "s/not begun.md:1: the client never sent tools/call, with which the script begins; one came, but /params/name is "},
	{"undeclared", "---\nneeds: roots, mcpconform\n---\n|json expect\n{\"method\": \"no\"}\n|\n", result.Skip, "the client does not declare mcpconform"},
	{"given up", "|json expect\n{\"method\": \"tools/list\"}\n|\n|text inconclusive\nnothing can be said\n|\n", result.Inconclusive, "nothing can be said"},
}

func readClientScripts(t *testing.T) []*script.Script {
	t.Helper()
	fsys := make(fstest.MapFS)
	for _, s := range clientScripts {
		fsys[s.name+".md"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(s.text, "|", "```"))}
	}
	scripts, err := script.ReadDir(fsys, "s")
	if err != nil {
		t.Fatal(err)
	}
	if err := suites.CheckScripts(scripts, wire.Client); err != nil {
		t.Fatal(err)
	}
	return scripts
}

func TestScripts(t *testing.T) {
	scripts := readClientScripts(t)
	for _, over := range []string{transport.NameStdio, transport.NameHTTP, transport.NameSSE} {
		t.Run(over, func(t *testing.T) {
			run := conduct(t, suites.ClientOptions{
				Transport: over, Scripts: scripts, Selection: suites.Selection{Select: []string{"script", "ping.response-prompt"}},
				Scenarios: func() (names []string) {
					for _, s := range scripts {
						names = append(names, client.ScriptPrefix+s.Name)
					}
					return names
				}(),
				Launch: func(p client.Place) (transport.Process, error) { return suites.ReferenceClient(p, calmTime).Launch() },
			})
			got := make(map[string]result.Requirement)
			for _, q := range run.Requirements {
				got[q.ID] = q
			}
			for _, s := range clientScripts {
				q := got["script."+strings.ReplaceAll(s.name, " ", "-")]
				message := q.Reason
				if len(q.Findings) > 0 {
					message = q.Findings[0].Message
					if len(q.Findings[0].Evidence) == 0 {
						t.Errorf("%s: no evidence", s.name)
					}
				}
				if q.Verdict != s.verdict || !strings.Contains(message, s.message) {
					t.Errorf("%s is %q: %s; want %s: %s", s.name, q.Verdict, message, s.verdict, s.message)
				}
			}
			if q := got["ping.response-prompt"]; q.Verdict != result.Pass || !strings.Contains(strings.Join(q.Checks, " "), "script/serves") {
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
	if _, err := suites.ScriptScenarios([]*script.Script{s}); err == nil || !strings.HasPrefix(err.Error(), "s/never.md:4: never is for scripts") {
		t.Errorf("got %v", err)
	}
}
