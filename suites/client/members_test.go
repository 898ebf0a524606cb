package client_test

import (
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/mockserver/mockclient"
	"github.com/mcpconform/mcpconform/suites/result"
)

// A finding names the member of a family that shows it. It says whether the plain member is as it should be, even if
// all members come at once.
func TestFindingsNameMembers(t *testing.T) {
	brief.WholeRuns(t)
	for fault, want := range map[string]string{
		"tools.recursive-schema-death": "(a reference to itself), without which the client goes on",
		"progress.large-death":         "18446744073709551616 (beyond 64 bits), without which the client goes on",
		"resources.uri-decoded":        `(an escaped slash); the same shows with`,
		"base.id-inherited-refused":    `a ping with the id "constructor" (another name of JavaScript) was answered with an error; the ordinary form, "mcpconform-id", is handled correctly`,
		"base.meta-inherited-refused":  `(a name of JavaScript) was answered with an error; the ordinary form, {"example.com/mcpconform":"any"}, is handled correctly`,
	} {
		f, ok := mockclient.Find(fault)
		if !ok {
			t.Errorf("there is no fault %s", fault)
			continue
		}
		t.Run(fault, func(t *testing.T) {
			virtual.Test(t, func(t *testing.T) {
				run, err := faultyRun(t.Context(), f)
				if err != nil {
					t.Fatal(err)
				}
				for _, q := range run.Requirements {
					if q.ID == f.Requirement && q.Verdict != result.Pass && len(q.Findings) > 0 && strings.Contains(q.Findings[0].Message, want) {
						return
					}
					for _, found := range q.Findings {
						t.Logf("%s: %s", q.ID, found.Message)
					}
				}
				t.Errorf("no finding on %s has %q", f.Requirement, want)
			})
		})
	}
}
