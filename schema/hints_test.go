package schema_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/internal/source"
)

// hints returns all hints, which the embedded JSON holds as "go generate ./schema" makes it.
func hints(t *testing.T) []schema.Hint {
	t.Helper()
	want, err := source.Hints(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := schema.Default().Hints()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the hints differ from their source: run go generate ./schema (-want +got):\n%s", diff)
	}
	return got
}

// Each text that a requirement has is a hint for a party on which it is judged.
func TestHintsAreThoseOfRequirements(t *testing.T) {
	used := make(map[string]bool)
	list := hints(t)
	for _, q := range catalogue(t) {
		for _, text := range q.Config {
			used[text] = true
			i := slices.IndexFunc(list, func(h schema.Hint) bool { return h.Text == text })
			switch {
			case i < 0:
				t.Errorf("%s: hints.yaml lacks %q", q.ID, text)
			case q.JudgedParty() != schema.Both && list[i].Party != schema.Both && list[i].Party != q.JudgedParty():
				t.Errorf("%s is judged on the %s, and %q helps to judge the %s", q.ID, q.JudgedParty(), text, list[i].Party)
			}
		}
	}
	for _, h := range list {
		if !used[h.Text] {
			t.Errorf("no requirement has the hint %q", h.Text)
		}
		if !slices.Contains([]schema.Party{schema.Server, schema.Client, schema.Both, schema.AuthorizationServer}, h.Party) {
			t.Errorf("%q is a hint for %q", h.Text, h.Party)
		}
	}
}

// A run shows hints of each requirement for its own role, its own transport and options that the user has not given.
func TestHintsFitTheRun(t *testing.T) {
	list := hints(t)
	var options []string
	for _, h := range list {
		options = append(options, h.Options...)
	}
	forOther := map[schema.Party]func(text string) bool{
		schema.Server: func(text string) bool {
			return strings.Contains(text, "a client command") || strings.Contains(text, "the client")
		},
		schema.Client: func(text string) bool {
			return strings.Contains(text, "name a") || strings.Contains(text, "trustedOrigins")
		},
	}
	overHTTP := func(text string) bool {
		return strings.Contains(text, "authorization") || strings.Contains(text, "Origins") || strings.Contains(text, "URL")
	}
	for party, other := range forOther {
		for _, transport := range []string{"stdio", "http", "sse", "custom"} {
			for _, q := range catalogue(t) {
				for _, text := range schema.Default().HintsFor(q, party, transport, nil) {
					if other(text) {
						t.Errorf("%s, a run on a %s: %q is for the other side", q.ID, party, text)
					}
					if transport == "stdio" && overHTTP(text) {
						t.Errorf("%s, over stdio: %q is about HTTP", q.ID, text)
					}
				}
				for _, text := range schema.Default().HintsFor(q, party, transport, options) {
					i := slices.IndexFunc(list, func(h schema.Hint) bool { return h.Text == text })
					if i < 0 || len(list[i].Options) > 0 {
						t.Errorf("%s: %q is shown although the option is given", q.ID, text)
					}
				}
			}
		}
	}
}
