package script

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// text returns a script in which each | stands for three backticks.
func text(s string) string { return strings.ReplaceAll(s, "|", "```") }

const whole = `---

requirements: a.b, c.d
level: SHOULD
needs: tools.listChanged
transports: stdio
session: raw
capabilities: {"sampling": {}}
---
# A title #

Prose, and a block of prose:

|json
{"not": "sent"}
|

|json send as=first
{"method": "ping"}
|

## Another heading

|text send
no json
|
~~~json expect of=first
{"result": {}}
~~~
|json when
{"result": {"a": 1}}
|
|json never
{}
|
|otherwise otherwise
|
|json send
[1]
|
| end
|
|json expect
{"method": "x"}
|
`

func TestParse(t *testing.T) {
	got, err := Parse("dir/name.md", []byte(text(strings.Replace(whole, "|otherwise otherwise", "|json otherwise", 1))))
	if err == nil {
		t.Errorf("a fence with one word is read as a role: %+v", got)
	}
	got, err = Parse("dir/name.md", []byte(text(strings.ReplaceAll(strings.ReplaceAll(whole, "|otherwise otherwise", "|- otherwise"), "| end", "|- end"))))
	if err != nil {
		t.Fatal(err)
	}
	want := &Script{
		Name: "name", File: "dir/name.md", Title: "A title", Requirements: []string{"a.b", "c.d"}, Level: "SHOULD",
		Needs: []string{"tools.listChanged"}, Transports: []string{"stdio"}, Session: Raw,
		Capabilities: map[string]any{"sampling": map[string]any{}},
		Steps: []Step{
			{
				Kind: Send, Line: 18, Value: map[string]any{"method": "ping"}, As: "first",
			},
			{Kind: Text, Line: 24, Text: "no json"},
			{Kind: Expect, Line: 27, Value: map[string]any{"result": map[string]any{}}, Of: "first"},
			{Kind: Branch, Line: 30, Arms: []Arm{
				{
					Line: 30, Pattern: map[string]any{"result": map[string]any{"a": json.Number("1")}},
					Steps: []Step{{Kind: Never, Line: 33, Value: map[string]any{}}},
				},
				{Line: 36, Steps: []Step{{Kind: Send, Line: 38, Value: []any{json.Number("1")}}}},
			}},
			{Kind: Expect, Line: 43, Value: map[string]any{"method": "x"}},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"x"}, got.Methods()); diff != "" {
		t.Error(diff)
	}
}

func TestParseFaults(t *testing.T) {
	const send = "|json send\n{\"method\": \"ping\"}\n|\n"
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "# Title\n", "f.md: the script has no block"},
		{"no end of the settings", "---\nneeds: a\n", "f.md:1: the settings do not end"},
		{"no setting", "---\nneeds tools\n---\n" + send, `f.md:2: "needs tools" is not a setting`},
		{"unknown setting", "---\n\nneed: tools\n---\n" + send, `f.md:3: there is no setting "need"`},
		{"setting twice", "---\nneeds: a\nneeds: b\n---\n" + send, "f.md:3: needs is set twice"},
		{"level", "---\nlevel: must\n---\n" + send, `f.md:2: level is "must"`},
		{"transport", "---\ntransports: stdio, tcp\n---\n" + send, `f.md:2: there is no transport "tcp"`},
		{"session", "---\nsession: new\n---\n" + send, `f.md:2: session is "new"`},
		{"capabilities", "---\ncapabilities: roots\n---\n" + send, "f.md:2: capabilities is"},
		{"block without end", send + "\n|json expect\n{}\n", "f.md:5: the block has no end"},
		{"unknown block", "|json sends\n{}\n|\n", `f.md:1: there is no block "sends"`},
		{"attribute", "|json send of=a\n{}\n|\n", "f.md:1: a block send has no attribute of"},
		{"no attribute", "|json send first\n{}\n|\n", `f.md:1: "first" is not an attribute`},
		{"language", "|yaml send\na: b\n|\n", "f.md:1: the language of the block is yaml"},
		{"no JSON", "|json send\n{\n  \"a\": 1,\n  b\n}\n|\n", "f.md:4: not JSON"},
		{"member twice", "|json send\n{\"a\": 1, \"a\": 2}\n|\n", "f.md:1: "},
		{"pattern that is no object", "|json expect\n[]\n|\n", "f.md:1: a message is expected"},
		{"end alone", send + "|- end\n|\n", "f.md:4: end without a block when before it"},
		{"branch without end", send + "|json when\n{}\n|\n" + send, "f.md:4: the branch does not end"},
		{"when after otherwise", send + "|json when\n{}\n|\n|- otherwise\n|\n|json when\n{}\n|\n|- end\n|\n", "f.md:9: after otherwise comes the end"},
		{"unknown name", send + "|json expect of=first\n{}\n|\n", "f.md:4: no earlier request is named first"},
		{"placeholder", "|json expect\n{\"a\": \"${is it}\"}\n|\n", "f.md:1: ${is it} is not a kind"},
		{"expression", "|json expect\n{\"a\": \"${/(/}\"}\n|\n", "f.md:1: ${/(/}: error parsing regexp"},
		{"capture of a kind", "|json expect\n{\"a\": \"${any=}\"}\n|\n", "f.md:1: ${any=}: any names a kind"},
		{"rest in the middle", "|json expect\n{\"a\": [\"${...}\", 1]}\n|\n", "f.md:1: ${...} must be the last item"},
		{"alternatives that are no list", "|json expect\n{\"a\": {\"${oneof}\": 1}}\n|\n", "f.md:1: ${oneof} takes a list"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Parse("f.md", []byte(text(tt.text)))
			var fault *Error
			if !errors.As(err, &fault) || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got %+v and %v, want %s", s, err, tt.want)
			}
		})
	}
}

func TestReadDir(t *testing.T) {
	script := &fstest.MapFile{Data: []byte(text("|json send\n{}\n|\n"))}
	fsys := fstest.MapFS{"b.md": script, "a/c.md": script, "a/README.md": script, "a/notes.txt": script}
	got, err := ReadDir(fsys, "shown")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range got {
		names = append(names, s.Name+" "+s.File+" "+s.Title)
	}
	if diff := cmp.Diff([]string{"a/c shown/a/c.md a/c", "b shown/b.md b"}, names); diff != "" {
		t.Error(diff)
	}
	fsys["a/bad.md"] = &fstest.MapFile{Data: []byte("---\n")}
	if _, err := ReadDir(fsys, "shown"); err == nil || !strings.HasPrefix(err.Error(), "shown/a/bad.md:1: ") {
		t.Errorf("got %v", err)
	}
	delete(fsys, "a/bad.md")
	fsys["long.md"] = &fstest.MapFile{Data: []byte(strings.Repeat(" ", maxBytes+1))}
	if _, err := ReadDir(fsys, "shown"); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("got %v", err)
	}
}

func decode(t *testing.T, s string) any {
	t.Helper()
	v, _, err := wire.Decode([]byte(s))
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return v
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct{ pattern, value, want string }{
		{`{"a": 1}`, `{"a": 1.0, "b": 2}`, ""},
		{`{"a": 1}`, `{"a": 2}`, "/a is 2, not 1"},
		{`{"a": 1}`, `{"a": "1"}`, `/a is "1", not 1`},
		{`{"a": 1}`, `{}`, "/a is missing"},
		{`{"a": {"b/c": true}}`, `{"a": {"b/c": false}}`, "/a/b~1c is false, not true"},
		{`{"a": null}`, `{"a": null}`, ""},
		{`{"a": null}`, `{"a": {}}`, "/a is {}, not null"},
		{`{"a": {}}`, `{"a": []}`, "/a is an array, not an object"},
		{`{"a": "${absent}"}`, `{"a": null}`, "/a is null, but should be absent"},
		{`{"a": "${absent}"}`, `{}`, ""},
		{`["${any}", "${string}", "${number}", "${integer}", "${boolean}", "${object}", "${array}"]`, `[null, "", 0.5, 2.0, false, {}, []]`, ""},
		{`["${integer}"]`, `[0.5]`, "/0 is 0.5, which is not of the kind integer"},
		{`["${string}"]`, `[null]`, "/0 is null, which is not of the kind string"},
		{`["${/^a+$/}"]`, `["aa"]`, ""},
		{`["${/^a+$/}"]`, `["ab"]`, `/0 is "ab", which does not match /^a+$/`},
		{`["${/1/}"]`, `[1]`, "/0 is 1, which does not match /1/"},
		{`[1]`, `[1, 2]`, "/ has 2 items, not 1"},
		{`[1, "${...}"]`, `[1, 2]`, ""},
		{`[1, 2, "${...}"]`, `[1]`, "has 1 items, not 2"},
		{`{"${contains}": [{"n": 2}]}`, `[{"n": 1}, {"n": 2}]`, ""},
		{`{"${contains}": [{"n": 3}]}`, `[{"n": 1}]`, "has no item like"},
		{`{"${contains}": [3]}`, `3`, "is a number, not an array"},
		{`{"${oneof}": [1, "a"]}`, `"a"`, ""},
		{`{"${oneof}": [1, "a"]}`, `"b"`, "does not fit any of the alternatives"},
		{`{"${not}": "a"}`, `"b"`, ""},
		{`{"${not}": "a"}`, `"a"`, "which the pattern excludes"},
		{`["${x=}", "${x}"]`, `[{"a": 1}, {"a": 1.0}]`, ""},
		{`["${x=integer}", "${x}"]`, `[1, 2]`, "/1 is 2, not the captured 1"},
		{`["${x=string}"]`, `[1]`, "/0 is 1, which is not of the kind string"},
		{`["${y}"]`, `[1]`, "nothing was captured as y"},
		{`["${x=}", "no. ${x}", "$${x}"]`, `[7, "no. 7", "${x}"]`, ""},
	} {
		m := Bindings{}.Match(decode(t, tt.pattern), decode(t, tt.value))
		got := ""
		if m != nil {
			got = m.String()
		}
		if tt.want == "" && got != "" || !strings.Contains(strings.Replace(got, "the message ", "/ ", 1), strings.TrimPrefix(tt.want, "/ ")) {
			t.Errorf("%s against %s: %q, want %q", tt.value, tt.pattern, got, tt.want)
		}
	}
}

// TestCapture tests that captured values count only if the whole pattern fits.
func TestCapture(t *testing.T) {
	b := Bindings{"x": "old"}
	if b.Match(decode(t, `["${x=}", 2]`), decode(t, `["new", 1]`)) == nil || b["x"] != "old" {
		t.Errorf("after a mismatch: %v", b)
	}
	if b.Match(decode(t, `[{"${not}": ["${x=}", 1]}, {"${oneof}": [["${x=}", 1], ["${x=}", 2]]}]`), decode(t, `[["no", 2], ["new", 2]]`)) != nil || b["x"] != "new" {
		t.Errorf("after an alternative: %v", b)
	}
}

func TestComplete(t *testing.T) {
	b := Bindings{"x": decode(t, `{"n": 1}`), "s": "text"}
	for _, tt := range []struct {
		message, want string
		request       bool
	}{
		{`{"method": "ping"}`, `{"jsonrpc": "2.0", "id": "new", "method": "ping"}`, true},
		{`{"method": "notifications/x"}`, `{"jsonrpc": "2.0", "method": "notifications/x"}`, false},
		{`{"method": "ping", "id": 7, "jsonrpc": "1.0"}`, `{"jsonrpc": "1.0", "id": 7, "method": "ping"}`, true},
		{`{"method": "ping", "id": "${absent}", "jsonrpc": "${absent}"}`, `{"method": "ping"}`, false},
		{`{"id": 7, "result": {"a": "${x}", "b": "the ${s}"}}`, `{"jsonrpc": "2.0", "id": 7, "result": {"a": {"n": 1}, "b": "the text"}}`, false},
	} {
		v, err := b.Expand(decode(t, tt.message))
		if err != nil {
			t.Fatal(err)
		}
		got, request := Complete(v.(map[string]any), func() any { return "new" })
		if diff := cmp.Diff(decode(t, tt.want), any(got)); diff != "" || request != tt.request {
			t.Errorf("%s: request %t\n%s", tt.message, request, diff)
		}
	}
	if _, err := b.Expand("a ${none}"); err == nil {
		t.Error("what was never captured is expanded")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(text(whole)))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("f.md", data)
		if (s == nil) == (err == nil) {
			t.Errorf("%v, %v", s, err)
		}
	})
}
