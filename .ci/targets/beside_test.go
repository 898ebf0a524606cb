package main

import (
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/result"
)

// TestBesideTable tests that the table shows what only one tool tries, and the revision of a check.
func TestBesideTable(t *testing.T) {
	ours := &result.Run{Requirements: []result.Requirement{
		{ID: "auth.client.pkce-s256", Summary: "S256 is used.", Verdict: result.Pass},
		{ID: "auth.client.other-client-id", Summary: "An id is entered.", Verdict: result.Pass},
		{ID: "auth.client.state-used", Summary: "There is a state.", Verdict: result.Fail},
		{ID: "auth.optional", Verdict: result.Skip},
	}}
	got := besideTable(ours, map[string]official{
		"pkce-s256-method-used": {worse("SUCCESS", "WARNING"), true}, "pre-registration-auth": {"FAILURE", false},
		"scope-step-up-initial": {"SUCCESS", false},
	})
	for _, want := range []string{
		"| `auth.client.pkce-s256` | S256 is used. | pass | `pkce-s256-method-used` warn |\n",
		"| pass | `pre-registration-auth` fail (in scenarios of a later revision) |\n",
		"| `auth.client.state-used` | There is a state. | fail | not tried |\n",
		"\nmcpconform exercises 3 requirements here, and the official package tries 2 of them.",
		"none of them: `scope-step-up-initial` pass (in scenarios of a later revision).\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want in it %q", got, want)
		}
	}
}

// TestSameAs sees that each requirement exists.
func TestSameAs(t *testing.T) {
	for check, ids := range sameAs {
		for _, id := range ids {
			if _, ok := schema.Default().Lookup(id); !ok {
				t.Errorf("%s: there is no requirement %s", check, id)
			}
		}
	}
}
