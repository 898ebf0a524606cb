package schema_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/internal/source"
)

// The embedded JSON is what "go generate ./schema" makes of uses.yaml.
func TestGeneratedUsesAreCurrent(t *testing.T) {
	want, err := source.Uses(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := schema.Default().Uses()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the uses differ from their source: run go generate ./schema (-want +got):\n%s", diff)
	}
}

// Each use says by which messages it shows, and each of its patterns names a requirement that can be seen on its party.
func TestUsesAreComplete(t *testing.T) {
	uses := schema.Default().Uses()
	kinds := []string{"request", "notification", "result", "error"}
	for _, u := range uses {
		if u.Name == "" || u.Never == "" || len(u.Requirements) == 0 {
			t.Errorf("%q says too little", u.Name)
		}
		if len(u.Kinds)+len(u.Methods)+len(u.Members)+len(u.Types) == 0 && u.HTTP == "" && !u.Authorization {
			t.Errorf("%s: any message would be a use", u.Name)
		}
		if slices.ContainsFunc(u.Kinds, func(kind string) bool { return !slices.Contains(kinds, kind) }) {
			t.Errorf("%s: there are no messages of the kinds %q", u.Name, u.Kinds)
		}
		for _, pattern := range u.Requirements {
			if !slices.ContainsFunc(catalogue(t), func(r schema.Requirement) bool {
				judged := r.JudgedParty()
				return r.Observable && r.Matches(pattern) && (u.By == "" || judged == schema.Both || judged == u.By)
			}) {
				t.Errorf("%s: %s names nothing that is judged on the %s", u.Name, pattern, u.By)
			}
		}
	}
}
