package oddserver_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/internal/proof/oddserver"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/schema"
)

var oddityID = regexp.MustCompile(`^[a-z]+\.[a-z0-9][a-z0-9-]*[a-z0-9]$`)

func TestOddities(t *testing.T) {
	requirements := schema.Default().Catalogue()
	pages := make(map[string]bool)
	for _, r := range requirements {
		pages[r.Page] = true
		for _, s := range r.Sources {
			pages[s.Page] = true
		}
	}
	seen := make(map[string]bool)
	for _, o := range oddserver.Oddities() {
		if _, fault := mockserver.Find(o.ID); seen[o.ID] || fault || !oddityID.MatchString(o.ID) {
			t.Errorf("the id %q is taken or has another form", o.ID)
		}
		seen[o.ID] = true
		for _, sentence := range []string{o.Summary, o.Why} {
			if sentence == "" || strings.Contains(sentence, "\n") || !strings.HasSuffix(sentence, ".") {
				t.Errorf("%s: %q is not a sentence", o.ID, sentence)
			}
		}
		if !pages[o.Source.Page] {
			t.Errorf("%s: there is no page %s", o.ID, o.Source.Page)
		}
		for _, id := range o.Untried {
			beginning, several := strings.CutSuffix(id, "*")
			if !slices.ContainsFunc(requirements, func(r schema.Requirement) bool {
				return r.ID == id || several && strings.HasPrefix(r.ID, beginning)
			}) {
				t.Errorf("%s: there is no requirement %s", o.ID, id)
			}
		}
	}
}

// Oddities can be added to the same options, and change nothing else.
func TestOdditiesAddUp(t *testing.T) {
	var o server.Options
	for _, oddity := range oddserver.Oddities() {
		oddity.Apply(&o)
	}
	if got, want := len(server.DefaultCatalogue().Tools), len(o.Catalogue.Tools); got >= want {
		t.Errorf("the catalogue of the reference server has %d tools, that of the odd one %d", got, want)
	}
}
