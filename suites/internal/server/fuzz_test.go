package server

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcpconform/mcpconform/schema"
)

// FuzzTemplate fills in any template: the expansion ends, and the template may give its result.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"x://{id}", "{+url}/tail", "map?{x,y}", "{#path:6}here", "{;x,y*}{?z}{&z:3}", "x://{", "x://}", "{var:99999999999999999999}", "{}", "{,}"} {
		f.Add(seed, "x://a/b")
	}
	f.Fuzz(func(t *testing.T, template, value string) {
		if schema.CheckFormat("uri-template", template) != "" {
			return
		}
		values := make(map[string]string)
		for _, name := range templateVariables(template) {
			values[name] = value
		}
		_ = filledVariables(template)
		_ = constructs(template)
		uri := expand(template, values)
		if !mayGive(template, uri) {
			t.Errorf("%q gives %q, which it is said not to give", template, uri)
		}
		// The same by another way, where that can be gone.
		if len(template) < 1000 && utf8.ValidString(template) && utf8.ValidString(value) {
			pattern := "(?s)^"
			eachExpression(template, func(literal string) { pattern += regexp.QuoteMeta(literal) }, func(byte, []string) { pattern += ".*" })
			if want := regexp.MustCompile(pattern + "$").MatchString(value); mayGive(template, value) != want {
				t.Errorf("that %q may give %q is said to be %v", template, value, !want)
			}
		}
	})
}

// A template of megabytes is one line of a hostile server.
func TestLongTemplate(t *testing.T) {
	if template := strings.Repeat("{a}", 2<<20); !mayGive(template, "x://a") || mayGive(template+"/b", "x://a") {
		t.Error("a template of many expressions is taken for another")
	}
}
