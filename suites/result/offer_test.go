package result

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// told are changes as lines, with "!" before those that break.
func told(changes []OfferChange) []string {
	var lines []string
	for _, c := range changes {
		mark := ""
		if c.Breaking {
			mark = "! "
		}
		lines = append(lines, mark+strings.Join(strings.Fields(c.Kind+" "+c.Name+": "+c.What), " "))
	}
	return lines
}

func TestSchemaChanges(t *testing.T) {
	for name, tt := range map[string]struct {
		before, after string
		what          string
		input, output bool // whether it breaks there
	}{
		"new required":          {`{}`, `{"properties":{"a":{}},"required":["a"]}`, `the S property "a" is new and required`, true, false},
		"new required, unnamed": {`{}`, `{"required":["a"]}`, `the S property "a" is new and required`, true, false},
		"new optional":          {`{}`, `{"properties":{"a":{}}}`, `the S property "a" is new and optional`, false, false},
		"now required":          {`{"properties":{"a":{}}}`, `{"properties":{"a":{}},"required":["a"]}`, `the S property "a" is now required`, true, false},
		"now optional":          {`{"properties":{"a":{}},"required":["a"]}`, `{"properties":{"a":{}}}`, `the S property "a" is now optional`, false, true},
		"required removed":      {`{"properties":{"a":{}},"required":["a"]}`, `{}`, `the S property "a" was removed, and was required`, true, true},
		"optional removed":      {`{"properties":{"a":{}}}`, `{}`, `the S property "a" was removed, and was optional`, false, false},
		"removed, closed":       {`{"properties":{"a":{}},"additionalProperties":false}`, `{"additionalProperties":false}`, `the S property "a" was removed, and no others are allowed`, true, false},
		"closed":                {`{}`, `{"additionalProperties":false}`, `the S no longer takes just any other property`, true, false},
		"opened":                {`{"additionalProperties":false}`, `{}`, `the S takes any other property now`, false, true},
		"others narrowed":       {`{"additionalProperties":{"type":"number"}}`, `{"additionalProperties":{"type":"integer"}}`, `the type of the S property ".*" was "number" and is "integer"`, true, false},
		"type narrowed":         {`{"properties":{"a":{"type":["string","null"]}}}`, `{"properties":{"a":{"type":"string"}}}`, `the type of the S property "a" was "null" or "string" and is "string"`, true, false},
		"type widened":          {`{"properties":{"a":{"type":"integer"}}}`, `{"properties":{"a":{"type":"number"}}}`, `the type of the S property "a" was "integer" and is "number"`, false, true},
		"type changed":          {`{"properties":{"a":{"type":"string"}}}`, `{"properties":{"a":{"type":"number"}}}`, `the type of the S property "a" was "string" and is "number"`, true, true},
		"type new":              {`{"properties":{"a":{}}}`, `{"properties":{"a":{"type":"number"}}}`, `the type of the S property "a" was not limited and is "number"`, true, false},
		"type in a choice":      {`{"properties":{"a":{"type":"string"}}}`, `{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, `the type of the S property "a" was "string" and is "null" or "string"`, false, true},
		"type in another way":   {`{"type":["object"]}`, `{"type":"object"}`, ``, false, false},
		"enum narrowed":         {`{"properties":{"a":{"enum":["x","y"]}}}`, `{"properties":{"a":{"enum":["x"]}}}`, `the S property "a" can no longer be "y"`, true, false},
		"enum widened":          {`{"properties":{"a":{"const":1}}}`, `{"properties":{"a":{"enum":[1,2]}}}`, `the S property "a" can now be 2`, false, true},
		"enum new":              {`{"properties":{"a":{}}}`, `{"properties":{"a":{"enum":["x"]}}}`, `the S property "a" is now limited to "x"`, true, false},
		"enum removed":          {`{"properties":{"a":{"enum":["x"]}}}`, `{"properties":{"a":{}}}`, `the S property "a" is no longer limited to "x"`, false, true},
		"enum in another order": {`{"properties":{"a":{"enum":["x","y"]}}}`, `{"properties":{"a":{"enum":["y","x"]}}}`, ``, false, false},
		"minimum raised":        {`{"properties":{"a":{"minimum":1}}}`, `{"properties":{"a":{"minimum":2}}}`, `minimum of the S property "a" was 1 and is 2`, true, false},
		"minimum removed":       {`{"properties":{"a":{"minimum":1}}}`, `{"properties":{"a":{}}}`, `minimum of the S property "a" was removed`, false, true},
		"maximum raised":        {`{"properties":{"a":{"maxLength":1}}}`, `{"properties":{"a":{"maxLength":2}}}`, `maxLength of the S property "a" was 1 and is 2`, false, true},
		"maximum new":           {`{"properties":{"a":{}}}`, `{"properties":{"a":{"maximum":2}}}`, `maximum of the S property "a" is new: 2`, true, false},
		"pattern new":           {`{"properties":{"a":{}}}`, `{"properties":{"a":{"pattern":"^x"}}}`, `pattern of the S property "a" is new: "^x"`, true, false},
		"pattern changed":       {`{"properties":{"a":{"pattern":"^y"}}}`, `{"properties":{"a":{"pattern":"^x"}}}`, `"pattern" of the S property "a" changed, which may be breaking`, false, false},
		"unique":                {`{"properties":{"a":{}}}`, `{"properties":{"a":{"uniqueItems":true}}}`, `uniqueItems of the S property "a" is new: true`, true, false},
		"description":           {`{"description":"x"}`, `{"description":"y"}`, `the description of the S changed`, false, false},
		"default":               {`{"properties":{"a":{"default":1}}}`, `{"properties":{"a":{"default":2}}}`, `the default of the S property "a" changed`, false, false},
		"nested":                {`{"properties":{"a":{"properties":{"b":{}}}}}`, `{"properties":{"a":{"properties":{"b":{}},"required":["b"]}}}`, `the S property "a.b" is now required`, true, false},
		"items":                 {`{"properties":{"a":{"items":{"type":"number"}}}}`, `{"properties":{"a":{"items":{"type":"integer"}}}}`, `the type of the S property "a[]" was "number" and is "integer"`, true, false},
		"items new":             {`{"properties":{"a":{}}}`, `{"properties":{"a":{"items":{}}}}`, `the items of the S property "a" have a schema now`, true, false},
		"choice":                {`{"anyOf":[{"required":["a"]}]}`, `{"anyOf":[{"required":["b"]}]}`, `"anyOf" of the S changed, which may be breaking`, false, false},
		"not a schema":          {`7`, `{}`, `the S schema changed, which may be breaking`, false, false},
		"boolean":               {`{"properties":{"a":true}}`, `{"properties":{"a":{}}}`, `the schema of the S property "a" changed, which may be breaking`, false, false},
		"definition":            {`{"properties":{"a":{"$ref":"#/$defs/p"}},"$defs":{"p":{"type":"number"}}}`, `{"properties":{"a":{"type":"integer"}}}`, `the type of the S property "a" was "number" and is "integer"`, true, false},
		"definition of a choice": {`{"anyOf":[{"$ref":"#/$defs/p"}],"$defs":{"p":{"type":"number"}}}`, `{"anyOf":[{"$ref":"#/$defs/p"}],"$defs":{"p":{"type":"integer"}}}`,
			`the S schema changed, which may be breaking`, false, false},
		"recursive": {`{"properties":{"a":{"$ref":"#"},"b":{"$ref":"#/$defs/n"}},"$defs":{"n":{"properties":{"l":{"$ref":"#/$defs/n"},"r":{"$ref":"#/$defs/n"}}}}}`,
			`{"properties":{"a":{"$ref":"#"},"b":{"$ref":"#/$defs/n"}},"$defs":{"n":{"properties":{"l":{"$ref":"#/$defs/n"},"r":{"$ref":"#/$defs/n"}},"required":["l"]}}}`,
			`the S property "b.l" is now required`, true, false},
		"reference": {`{"properties":{"a":{"$ref":"x"}}}`, `{"properties":{"a":{"$ref":"y"}}}`, `"$ref" of the S property "a" changed, which may be breaking`, false, false},
		"deep":      {nested(40, `{}`), nested(40, `{"type":"string"}`), `the S schema changed, which may be breaking`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			for side, breaking := range map[string]bool{"input": tt.input, "output": tt.output} {
				var want []string
				if tt.what != "" {
					want = []string{"tool t: " + strings.ReplaceAll(tt.what, "the S", "the "+side)}
				}
				if breaking {
					want[0] = "! " + want[0]
				}
				tool := func(schema string) *Run {
					offered := OfferedTool{Name: "t", InputSchema: json.RawMessage(schema)}
					if side == "output" {
						if schema == "7" {
							t.Skip("an output schema that is none is like no output schema")
						}
						offered = OfferedTool{Name: "t", OutputSchema: json.RawMessage(schema)}
					}
					return &Run{Offer: &Offer{Tools: []OfferedTool{offered}}}
				}
				if diff := cmp.Diff(want, told(Changes(tool(tt.before), tool(tt.after)))); diff != "" {
					t.Errorf("%s: -want +got:\n%s", side, diff)
				}
				if same := Changes(tool(tt.after), tool(tt.after)); len(same) > 0 {
					t.Errorf("%s: against itself: %q", side, told(same))
				}
			}
		})
	}
}

// nested puts a schema into so many others.
func nested(depth int, schema string) string {
	for range depth {
		schema = `{"properties":{"a":` + schema + `}}`
	}
	return schema
}

func TestOfferChanges(t *testing.T) {
	type offer = Offer
	one := OfferedTool{Name: "one", Description: "x", OutputSchema: json.RawMessage(`{}`), Annotations: json.RawMessage(`{"readOnlyHint":true}`)}
	argument := func(required bool) []OfferedArgument { return []OfferedArgument{{"a", required}} }
	for name, tt := range map[string]struct {
		before, after offer
		was, is       string // capabilities
		want          []string
	}{
		"nothing":             {before: offer{Tools: []OfferedTool{one}}, after: offer{Tools: []OfferedTool{one}}},
		"tool removed":        {before: offer{Tools: []OfferedTool{one}}, want: []string{"! tool one: was removed"}},
		"tool new":            {after: offer{Tools: []OfferedTool{one}}, want: []string{"tool one: is new"}},
		"tool not listed":     {before: offer{Tools: []OfferedTool{one}}, after: offer{Incomplete: []string{OfferTools}}},
		"tool not listed yet": {after: offer{Tools: []OfferedTool{one}}, before: offer{Incomplete: []string{OfferTools}}},
		"tool changed": {
			before: offer{Tools: []OfferedTool{one}}, after: offer{Tools: []OfferedTool{{Name: "one", Title: "One"}}},
			want: []string{"! tool one: the output schema was removed", "tool one: its readOnlyHint was true and is false", "tool one: its title changed", "tool one: its description changed"},
		},
		"output new": {
			before: offer{Tools: []OfferedTool{{Name: "one"}}}, after: offer{Tools: []OfferedTool{{Name: "one", OutputSchema: json.RawMessage(`{}`)}}},
			want: []string{"tool one: an output schema is new"},
		},
		"hint by its default": {
			before: offer{Tools: []OfferedTool{{Name: "one"}}}, after: offer{Tools: []OfferedTool{{Name: "one", Annotations: json.RawMessage(`{"destructiveHint":true,"readOnlyHint":false}`)}}},
		},
		"two of a name":     {before: offer{Tools: []OfferedTool{one, {Name: "one"}}}, after: offer{Tools: []OfferedTool{one}}},
		"prompt removed":    {before: offer{Prompts: []OfferedPrompt{{Name: "p"}}}, want: []string{"! prompt p: was removed"}},
		"argument required": {before: offer{Prompts: []OfferedPrompt{{"p", argument(false)}}}, after: offer{Prompts: []OfferedPrompt{{"p", argument(true)}}}, want: []string{`! prompt p: the argument "a" is now required`}},
		"argument optional": {before: offer{Prompts: []OfferedPrompt{{"p", argument(true)}}}, after: offer{Prompts: []OfferedPrompt{{"p", argument(false)}}}, want: []string{`prompt p: the argument "a" is now optional`}},
		"new required":      {before: offer{Prompts: []OfferedPrompt{{"p", nil}}}, after: offer{Prompts: []OfferedPrompt{{"p", argument(true)}}}, want: []string{`! prompt p: the argument "a" is new and required`}},
		"new optional":      {before: offer{Prompts: []OfferedPrompt{{"p", nil}}}, after: offer{Prompts: []OfferedPrompt{{"p", argument(false)}}}, want: []string{`prompt p: the argument "a" is new and optional`}},
		"argument removed":  {before: offer{Prompts: []OfferedPrompt{{"p", argument(true)}}}, after: offer{Prompts: []OfferedPrompt{{"p", nil}}}, want: []string{`! prompt p: the argument "a" was removed`}},
		"optional removed":  {before: offer{Prompts: []OfferedPrompt{{"p", argument(false)}}}, after: offer{Prompts: []OfferedPrompt{{"p", nil}}}, want: []string{`prompt p: the argument "a" was removed, which may break clients that give it`}},
		"resource removed":  {before: offer{Resources: []OfferedResource{{URI: "a:b"}}}, want: []string{"! resource a:b: was removed"}},
		"resource changed": {
			before: offer{Resources: []OfferedResource{{"a:b", "n", "text/plain"}}}, after: offer{Resources: []OfferedResource{{"a:b", "m", "text/html"}}},
			want: []string{`resource a:b: its name was "n" and is "m"`, `resource a:b: its MIME type was "text/plain" and is "text/html", which may break clients`},
		},
		"template removed":        {before: offer{Templates: []OfferedTemplate{{URITemplate: "a:{b}"}}}, want: []string{"! template a:{b}: was removed"}},
		"template renamed":        {before: offer{Templates: []OfferedTemplate{{"a:{b}", "n"}}}, after: offer{Templates: []OfferedTemplate{{"a:{b}", "m"}}}, want: []string{`template a:{b}: its name was "n" and is "m"`}},
		"instructions new":        {after: offer{Instructions: "x"}, want: []string{"instructions : are new"}},
		"instructions changed":    {before: offer{Instructions: "y"}, after: offer{Instructions: "x"}, want: []string{"instructions : changed"}},
		"instructions removed":    {before: offer{Instructions: "y"}, want: []string{"instructions : were removed"}},
		"capability withdrawn":    {was: `{"tools":{}}`, is: `{}`, want: []string{"! capability tools: was withdrawn"}},
		"part of one withdrawn":   {was: `{"resources":{"subscribe":true}}`, is: `{"resources":{"subscribe":false}}`, want: []string{"! capability resources.subscribe: was withdrawn"}},
		"capability new":          {was: `{}`, is: `{"logging":{}}`, want: []string{"capability logging: is new"}},
		"capability with members": {was: `{"tools":{}}`, is: `{"tools":{"listChanged":true}}`, want: []string{"capability tools.listChanged: is new"}},
		"what breaks first": {
			before: offer{Tools: []OfferedTool{{Name: "b"}}}, after: offer{Tools: []OfferedTool{{Name: "a"}}}, is: `{"tools":{}}`,
			want: []string{"! tool b: was removed", "capability tools: is new", "tool a: is new"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(o Offer, capabilities string) *Run {
				return &Run{Offer: &o, Target: Target{Capabilities: json.RawMessage(capabilities)}}
			}
			if diff := cmp.Diff(tt.want, told(Changes(run(tt.before, tt.was), run(tt.after, tt.is)))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// However a tool changed, what is said of it is bounded, and what breaks is told first.
func TestOfferChangesAreBounded(t *testing.T) {
	var before, after []string
	for i := range 100 {
		before = append(before, fmt.Sprintf(`"p%d":{"description":"x"}`, i))
		after = append(after, fmt.Sprintf(`"p%d":{"description":"y"}`, i))
	}
	schema := func(members []string, rest string) *Run {
		return &Run{Offer: &Offer{Tools: []OfferedTool{{Name: "t", InputSchema: json.RawMessage(`{"properties":{` + strings.Join(members, ",") + `}` + rest + `}`)}}}}
	}
	lines := told(Changes(schema(before, ""), schema(after, `,"required":["p99"]`)))
	if len(lines) != maxItemChanges+1 || lines[0] != `! tool t: the input property "p99" is now required` || lines[maxItemChanges] != "tool t: changed in 81 more ways" {
		t.Errorf("%q", lines)
	}
}

func TestOfferIsBounded(t *testing.T) {
	long := strings.Repeat("é", 2000)
	o := &Offer{Instructions: long}
	for i := range 50 {
		o.Tools = append(o.Tools, OfferedTool{Name: fmt.Sprintf("t%02d", 49-i), Description: long + fmt.Sprint(i), InputSchema: json.RawMessage(`{"x":"` + long + long + `"}`)})
	}
	for i := range maxOffered + 3 {
		o.Resources = append(o.Resources, OfferedResource{URI: fmt.Sprintf("a:%d", i)})
	}
	o.Sort()
	o.Shorten()
	text, err := json.Marshal(o)
	if err != nil || len(text) > maxOffer+1<<10 {
		t.Errorf("%d bytes, error %v", len(text), err)
	}
	if o.Tools[0].Name != "t00" || !strings.HasPrefix(o.Tools[0].Description, "é") || len(o.Tools[0].Description) > maxDescription+150 || o.Tools[0].Description == o.Tools[1].Description {
		t.Errorf("the first tool is %.700v", o.Tools[0])
	}
	if n := len(o.Tools) + len(o.Resources); o.Omitted != 50+maxOffered+3-n || !cmp.Equal(o.Incomplete, []string{OfferResources, OfferTools}) {
		t.Errorf("%d items, %d omitted, %q incomplete", n, o.Omitted, o.Incomplete)
	}
}
