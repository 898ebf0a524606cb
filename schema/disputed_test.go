package schema_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/internal/source"
)

// The embedded JSON and the document are what "go generate ./schema" makes of
// disputed.yaml.
func TestGeneratedDisputesAreCurrent(t *testing.T) {
	want, err := source.Disputes(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := schema.Default().Disputes()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the disputes differ from their source: run go generate ./schema (-want +got):\n%s", diff)
	}
	document, err := source.DescribeDisputes(want, catalogue(t))
	if err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(source.DisputedDocument)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(document), string(written)); diff != "" {
		t.Errorf("%s is not current: run go generate ./schema (-want +got):\n%s", source.DisputedDocument, diff)
	}
}

func TestDisputesAreComplete(t *testing.T) {
	list := schema.Default().Disputes()
	if len(list) == 0 {
		t.Fatal("there are no disputes")
	}
	var ids, threads []string
	for _, d := range list {
		if !kebab.MatchString(d.ID) || slices.Contains(ids, d.ID) {
			t.Errorf("the id %q is malformed or not unique", d.ID)
		}
		ids = append(ids, d.ID)
		if d.Title == "" || d.Position == "" || d.Fault == "" || len(d.Threads) == 0 {
			t.Errorf("%s lacks something: %+v", d.ID, d)
		}
		for _, thread := range d.Threads {
			if !strings.HasPrefix(thread.URL, "https://github.com/modelcontextprotocol/") || thread.Says == "" || slices.Contains(threads, thread.URL) {
				t.Errorf("%s: the thread %+v is not one of the project's, says nothing or is named twice", d.ID, thread)
			}
			threads = append(threads, thread.URL)
		}
		if found, ok := schema.Default().Disputed(d.Requirement, "before "+d.Finding+" after"); !ok || found.ID != d.ID {
			t.Errorf("%s is not found", d.ID)
		}
		if d.Finding != "" {
			if _, ok := schema.Default().Disputed(d.Requirement, "something else"); ok {
				t.Errorf("%s is about everything", d.ID)
			}
		}
	}
}
