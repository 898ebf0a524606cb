package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	own      = "../2025-06-18/schema.json"
	fixtures = "../../fixtures/messages"
)

// published returns a stand-in for the published schema: our own with the
// differences that are meant undone, one replacement made and written in its style.
func published(t *testing.T, old, new string) string {
	t.Helper()
	data, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	replace := func(old, new string) {
		if !strings.Contains(text, old) {
			t.Fatalf("the schema has no %s", old)
		}
		text = strings.Replace(text, old, new, 1)
	}
	if old != "" {
		replace(old, new)
	}
	if !strings.Contains(old, `"number", "boolean"`) {
		replace(`["string", "number", "boolean"]`, `["boolean", "integer", "string"]`)
	}
	replace(`"Cursor": {"type": "string"}`, `"Cursor": {"description": "x", "type": "string"}`)
	replace(`{"$ref": "#/definitions/Cursor"}`, `{"type": "string"}`)
	replace(`"sampling": {"type": "object"}`, `"sampling": {"additionalProperties": true, "properties": {}, "type": "object"}`)
	path := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEquivalence(t *testing.T) {
	for name, test := range map[string]struct{ old, new, want string }{
		"the same":              {"", "", ""},
		"a required member":     {`"required": ["requestId"]`, `"required": ["requestId", "reason"]`, "/definitions/CancelledNotification/properties/params/required"},
		"a type":                {`"isError": {"type": "boolean"}`, `"isError": {"type": "string"}`, "CallToolResult, valid example 1: published verdict"},
		"a bound":               {`"maximum": 1`, `"maximum": 2`, "Annotations, priority is too large: published verdict"},
		"a format":              {`{"type": "string", "format": "byte"}`, `{"type": "string"}`, "and nothing in the published"},
		"a value of a list":     {`"emergency"`, `"emergencies"`, "LoggingLevel"},
		"a branch of a union":   {`        {"$ref": "#/definitions/AudioContent"},`, ``, "anyOf"},
		"a definition":          {`"Cursor": {"type": "string"},`, `"Cursor": {"type": "string"}, "Extra": {"type": "string"},`, "/definitions/Extra is nothing here"},
		"closed to others":      {`"ModelHint": {"type": "object", `, `"ModelHint": {"type": "object", "additionalProperties": {"type": "string"}, `, "/definitions/ModelHint/additionalProperties"},
		"a meant one that went": {`["string", "number", "boolean"]`, `["boolean", "string", "number"]`, "that is meant at /definitions/ElicitResult/properties/content/additionalProperties/type is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			found, err := run([]string{"-own", own, "-fixtures", fixtures, published(t, test.old, test.new)}, &out)
			if err != nil {
				t.Fatal(err)
			}
			if (found > 0) != (test.want != "") || !strings.Contains(out.String(), test.want) {
				t.Errorf("found %d differences, want %q in:\n%s", found, test.want, out.String())
			}
		})
	}
}

// Examples that no longer fit the schemas, and definitions without any, are found.
func TestExamples(t *testing.T) {
	dir := t.TempDir()
	text := `{"definition": "Cursor", "valid": ["a", 5], "invalid": [{"why": "it is a string", "value": "x"}], "wider": ["b"]}`
	if err := os.WriteFile(filepath.Join(dir, "cursor.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := run([]string{"-own", own, "-fixtures", dir, published(t, "", "")}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Cursor, valid example 1: own verdict", "Cursor, valid example 1: published verdict",
		"Cursor, it is a string: own verdict", "Cursor, it is a string: published verdict",
		"Cursor has a wider example", "Cursor, wider example 0: published verdict", "Tool has no examples",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}

func TestRunFails(t *testing.T) {
	var out bytes.Buffer
	for _, args := range [][]string{{}, {"none.json"}, {"-own", "none.json", own}, {"-own", own, "-fixtures", t.TempDir(), own}, {"-own", own, "equivalence_test.go"}} {
		if _, err := run(args, &out); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
