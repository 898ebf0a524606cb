package reporters

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/suites/result"
)

func TestBadge(t *testing.T) {
	run := func(v result.Overall, change func(r *result.Run)) *result.Run {
		r := &result.Run{Revision: "2025-06-18", Verdict: v, Requirements: []result.Requirement{{ID: "a", Observable: true, Verdict: result.Fail, Expected: "known"}}}
		if v != result.Conformant || change == nil {
			r.Requirements = nil
		}
		if change != nil {
			change(r)
		}
		return r
	}
	for _, tt := range []struct {
		name  string
		run   *result.Run
		want  string
		color string
	}{
		{"conformant", run(result.Conformant, nil), "conformant", "2d7a12"},
		{"not conformant", run(result.NotConformant, nil), "not conformant", "b3261e"},
		{"incomplete", run(result.Incomplete, nil), "incomplete", "8a5a00"},
		{"waived", run(result.Conformant, func(*result.Run) {}), "conformant, 1 expected to fail", "2d7a12"},
		{"partial", run(result.NotConformant, func(r *result.Run) { r.Partial = true }), "not conformant, in part", "b3261e"},
		{"strict", run(result.Incomplete, func(r *result.Run) { r.Strict = true }), "incomplete, strict", "8a5a00"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, err := NewBadge(tt.run)
			if err != nil || b.Label != "MCP 2025-06-18" || b.Message != tt.want {
				t.Fatalf("%+v, %v; want %q", b, err, tt.want)
			}
			var endpoint struct {
				SchemaVersion         int
				Label, Message, Color string
			}
			var text, image bytes.Buffer
			if err := errors.Join(BadgeJSON(&text, b), BadgeSVG(&image, b)); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text.Bytes(), &endpoint); err != nil || endpoint.SchemaVersion != 1 || endpoint.Label != b.Label || endpoint.Message != tt.want || endpoint.Color != tt.color {
				t.Errorf("%v: %s", err, text.String())
			}
			for _, want := range []string{"<title>MCP 2025-06-18: " + tt.want + "</title>", `role="img"`, `fill="#` + tt.color} {
				if !strings.Contains(image.String(), want) {
					t.Errorf("the image lacks %s:\n%s", want, image.String())
				}
			}
		})
	}
}

// Results may come from anywhere: no text of theirs gets out of its place, and the image
// refers to nothing.
func TestBadgeHostile(t *testing.T) {
	run := sampleRun()
	run.Revision = hostile + strings.Repeat("long ", 1000)
	b, err := NewBadge(run)
	if err != nil {
		t.Fatal(err)
	}
	var image bytes.Buffer
	if err := BadgeSVG(&image, b); err != nil {
		t.Fatal(err)
	}
	if image.Len() > 4<<10 {
		t.Errorf("the image has %d bytes", image.Len())
	}
	known := map[string]bool{"svg": true, "title": true, "clipPath": true, "rect": true, "g": true, "text": true}
	for d := xml.NewDecoder(&image); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			if !known[e.Name.Local] {
				t.Errorf("the image has an element %s", e.Name.Local)
			}
			for _, a := range e.Attr {
				if a.Name.Local == "href" || strings.HasPrefix(a.Name.Local, "on") {
					t.Errorf("the element %s has the attribute %s", e.Name.Local, a.Name.Local)
				}
			}
		}
	}
}
