package server

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The examples are those of RFC 6570, sections 1.2 and 3.2.
func TestExpand(t *testing.T) {
	values := map[string]string{"var": "value", "hello": "Hello World!", "path": "/foo/bar", "empty": "", "x": "1024", "y": "768"}
	for template, want := range map[string]string{
		"{var}": "value", "{hello}": "Hello%20World%21", "{+hello}": "Hello%20World!", "{+path}/here": "/foo/bar/here",
		"X{#var}": "X#value", "map?{x,y}": "map?1024,768", "{#path:6}here": "#/foo/bhere", "X{.x,y}": "X.1024.768",
		"{/var:1,var}": "/v/value", "{;x,y,empty}": ";x=1024;y=768;empty", "{?x,y,empty}": "?x=1024&y=768&empty=",
		"?fixed=yes{&x}": "?fixed=yes&x=1024", "{undefined}": "", "{?x,undefined}": "?x=1024", "{var:30}": "value",
		"{var*}": "value", "plain": "plain",
	} {
		if got := expand(template, values); got != want {
			t.Errorf("%s: %q, want %q", template, got, want)
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, templateVariables("x:{a}{/b*,c:3}{?a}")); diff != "" {
		t.Error(diff)
	}
}

func TestConstructs(t *testing.T) {
	for template, want := range map[string]bool{
		"x://{id}": true, "{scheme}://x/y": true, "{+url}": true, "{+url}/tail": true, "x://{host}:{port}/": true,
		"/{id}": false, "notes {id}": false, "x y:{id}": false, "{a}b c": false,
	} {
		if got := constructs(template); got != want {
			t.Errorf("%s: %v, want %v", template, got, want)
		}
	}
}

func TestBeside(t *testing.T) {
	for _, target := range upwards {
		if got, want := beside("x://a/b/"+target), "x://a/b/mcpconform-no-such-name"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if isClimbing("../../../../etc/passwd") {
		t.Error("no climb from a place of the server")
	}
}
