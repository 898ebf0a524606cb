package schema_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/schema"
)

var freeze = flag.Bool("freeze", false, "add a new version of each conformance class that the catalogue has outgrown")

const (
	classesFile     = "2025-06-18/classes.json"
	classesDocument = "../docs/certification.md"
	tableBegins     = "<!-- classes: go test ./schema -run TestClasses -freeze -->\n"
	tableEnds       = "<!-- end of classes -->\n"
)

// A frozen class never changes: its digest stands in the file and, for everybody to
// compare, in the documentation. With -freeze, what the catalogue has become since is
// frozen as a new version.
func TestClasses(t *testing.T) {
	classes := schema.Default().Classes()
	if *freeze {
		writeFrozen(t, classes)
		t.Skip("the classes are frozen; run the test again without -freeze")
	}
	document, err := os.ReadFile(classesDocument)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(document), tableBegins)
	table, _, ok := strings.Cut(rest, tableEnds)
	if want := classTable(classes); !ok || table != want {
		t.Errorf("%s does not show the digests of the classes. A frozen class must not change: undo that, and run this test with -freeze, which adds a new version.\n%s",
			classesDocument, cmp.Diff(table, want))
	}
	last := make(map[string]int)
	for _, c := range classes {
		if c.Version != last[c.ID]+1 {
			t.Errorf("version %d of %s comes after version %d", c.Version, c.ID, last[c.ID])
		}
		last[c.ID] = c.Version
		if got := c.Digest(); got != c.SHA256 {
			t.Errorf("%s version %d has changed: its digest is %s, and was %s when it was frozen", c.ID, c.Version, got, c.SHA256)
		}
		if c.Revision != schema.DefaultVersion {
			t.Errorf("%s is a class of revision %s", c.ID, c.Revision)
		}
		ids := c.IDs()
		if len(ids) < 20 || len(slices.Compact(ids)) != len(c.IDs()) {
			t.Errorf("%s version %d has %d requirements, or one of them twice", c.ID, c.Version, len(c.IDs()))
		}
	}
	for id := range last {
		newest, ok := schema.Default().FindClass(id, 0)
		if !ok || newest.Version != last[id] {
			t.Errorf("the newest version of %s is %d, want %d", id, newest.Version, last[id])
		}
		for _, q := range newest.IDs() {
			if _, ok := schema.Default().Lookup(q); !ok {
				t.Errorf("%s version %d has %s, which the catalogue lacks; run this test with -freeze", id, newest.Version, q)
			}
		}
		if core, ok := strings.CutSuffix(id, "/"+schema.ExtendedClass); ok {
			within, _ := schema.Default().FindClass(core+"/"+schema.CoreClass, 0)
			for _, q := range within.IDs() {
				if !slices.Contains(newest.IDs(), q) {
					t.Errorf("%s lacks %s of its core", id, q)
				}
			}
		}
	}
}

// The source of a derived class decides its contents.
func TestDeriveClasses(t *testing.T) {
	catalogue := []schema.Requirement{
		{ID: "b.must", Level: schema.Must, Party: schema.Server, Observable: true},
		{ID: "a.must-not", Level: schema.MustNot, Party: schema.Both, Observable: true},
		{ID: "c.should", Level: schema.Should, Party: schema.Server, Observable: true, Capability: "server.tools"},
		{ID: "d.unseen", Level: schema.Must, Party: schema.Server},
		{ID: "e.http", Level: schema.Must, Party: schema.Server, Observable: true, Transports: []string{"http"}},
		{ID: "f.client", Level: schema.Must, Party: schema.Client, Observable: true},
		{ID: "g.judged", Level: schema.Must, Party: schema.Both, Judged: schema.Client, Observable: true},
	}
	got := make(map[string]map[string][]string)
	for _, c := range schema.DeriveClasses(schema.DefaultVersion, catalogue) {
		got[c.ID] = c.Requirements
	}
	for id, want := range map[string]map[string][]string{
		"server/stdio/core":     {"": {"a.must-not", "b.must"}},
		"server/stdio/extended": {"": {"a.must-not", "b.must"}, "server.tools": {"c.should"}},
		"server/http/core":      {"": {"a.must-not", "b.must", "e.http"}},
		"client/sse/core":       {"": {"a.must-not", "f.client", "g.judged"}},
	} {
		if diff := cmp.Diff(want, got[id]); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
}

// A digest depends on everything that is frozen.
func TestClassDigest(t *testing.T) {
	class := func(change func(c *schema.Class)) string {
		c := schema.Class{ID: "server/stdio/core", Version: 1, Revision: "r", Requirements: map[string][]string{"": {"a"}, "server.tools": {"b"}}}
		change(&c)
		return c.Digest()
	}
	seen := map[string]string{class(func(*schema.Class) {}): "unchanged"}
	for name, change := range map[string]func(c *schema.Class){
		"id":       func(c *schema.Class) { c.ID = "server/http/core" },
		"version":  func(c *schema.Class) { c.Version = 2 },
		"revision": func(c *schema.Class) { c.Revision = "s" },
		"one less": func(c *schema.Class) { delete(c.Requirements, "server.tools") },
		"one more": func(c *schema.Class) { c.Requirements[""] = []string{"a", "c"} },
		"capability": func(c *schema.Class) {
			c.Requirements["server.prompts"] = c.Requirements["server.tools"]
			delete(c.Requirements, "server.tools")
		},
	} {
		d := class(change)
		if seen[d] != "" {
			t.Errorf("%s and %s have the same digest", name, seen[d])
		}
		seen[d] = name
	}
}

// writeFrozen writes the classes with a new version of each that the catalogue has outgrown.
func writeFrozen(t *testing.T, classes []schema.Class) {
	t.Helper()
	catalogue := schema.Default().Catalogue()
	for _, c := range schema.DeriveClasses(schema.DefaultVersion, catalogue) {
		newest, _ := schema.Default().FindClass(c.ID, 0)
		if cmp.Equal(newest.Requirements, c.Requirements) {
			continue
		}
		c.Version = newest.Version + 1
		c.SHA256 = c.Digest()
		classes = append(classes, c)
	}
	text, err := json.MarshalIndent(classes, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile(classesDocument)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := bytes.Index(document, []byte(tableBegins)), bytes.Index(document, []byte(tableEnds))
	if begin < 0 || end < begin {
		t.Fatalf("%s has no place for the table", classesDocument)
	}
	document = slices.Concat(document[:begin+len(tableBegins)], []byte(classTable(classes)), document[end:])
	for name, content := range map[string][]byte{classesFile: append(text, '\n'), classesDocument: document} {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func classTable(classes []schema.Class) string {
	var b strings.Builder
	b.WriteString("| Class | Version | Requirements | SHA-256 |\n| --- | --: | --: | --- |\n")
	for _, c := range classes {
		fmt.Fprintf(&b, "| `%s` | %d | %d | `%s` |\n", c.ID, c.Version, len(c.IDs()), c.SHA256)
	}
	return b.String()
}
