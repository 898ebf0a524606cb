// Package scripttest runs scripts from a table and compares their results.
package scripttest

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcpconform/mcpconform/reference/script"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/result"
)

// Case is a script with its expected result.
type Case struct {
	Name string
	// Text of the script, in which | stands for three backticks.
	Text    string
	Verdict result.Verdict // "" when the script serves other requirements only
	Message string         // part of the finding or reason
}

// Read returns the scripts of cases, for a party under test.
func Read(t *testing.T, cases []Case, party wire.Party) []*script.Script {
	t.Helper()
	fsys := make(fstest.MapFS)
	for _, c := range cases {
		fsys[c.Name+".md"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(c.Text, "|", "```"))}
	}
	scripts, err := script.ReadDir(fsys, "s")
	if err != nil {
		t.Fatal(err)
	}
	if err := suites.CheckScripts(schema.Default(), scripts, party); err != nil {
		t.Fatal(err)
	}
	return scripts
}

// Compare fails the test if the verdict on a script or its message is not the one
// of its case, or if a finding has no evidence.
func Compare(t *testing.T, run *result.Run, cases []Case) {
	t.Helper()
	got := make(map[string]result.Requirement)
	for _, q := range run.Requirements {
		got[q.ID] = q
	}
	for _, c := range cases {
		q := got["script."+strings.ReplaceAll(c.Name, " ", "-")]
		message := q.Reason
		if len(q.Findings) > 0 {
			message = q.Findings[0].Message
			if len(q.Findings[0].Evidence) == 0 {
				t.Errorf("%s: no evidence", c.Name)
			}
		}
		if q.Verdict != c.Verdict || !strings.Contains(message, c.Message) {
			t.Errorf("%s is %q: %s; want %s: %s", c.Name, q.Verdict, message, c.Verdict, c.Message)
		}
	}
}
