package judge

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var toolRules = []Rule{
	{
		Name:         "tool definitions",
		Requirements: []string{ids.ToolsNameUnique, ids.ToolsInputSchemaValid, ids.ToolsOutputSchemaValid},
		Judge:        judgeToolLists,
	},
	{
		Name: "tool results",
		Requirements: []string{ids.ToolsStructuredContentObject, ids.ToolsStructuredContentTextCopy,
			ids.ToolsOutputSchemaStructuredPresent, ids.ToolsOutputSchemaConforms,
			ids.ToolsEmbeddedResourceResourcesCapability},
		Judge: judgeToolResults,
	},
}

// tool is a tool as a list showed it, with its schemas compiled.
type tool struct {
	name       string
	definition map[string]any
	listed     *wire.Event
	schemas    []compiled
	asked      int   // position of the last request whose answer lists it so
	next       *tool // the definition that took its place, or nil
}

type compiled struct {
	member string // inputSchema or outputSchema
	schema *schema.Tool
	err    error
}

// Bounds of what is compiled in one conversation.
const (
	maxTools       = 20_000
	maxSchemaBytes = 4 << 20
)

// tools returns the tools that were listed, in order. A tool that is listed
// again as it was counts once.
func (c *Conversation) tools() []*tool { return once(c, "tools", c.listedTools) }

func (c *Conversation) listedTools() (all []*tool) {
	latest := make(map[string]*tool)
	bytes := 0
	for _, x := range c.Exchanges {
		if x.Method() != "tools/list" || x.From() != wire.Client {
			continue
		}
		for _, item := range wire.Items(x.Result(), "tools") {
			definition, ok := item.(map[string]any)
			if !ok {
				continue
			}
			name, _ := definition["name"].(string)
			before := latest[name]
			if before != nil && equal(before.definition, definition) {
				before.asked = x.Request.Seq
				continue
			}
			if bytes += size(definition); len(all) >= maxTools || bytes > maxSchemaBytes {
				return all
			}
			t := &tool{name: name, definition: definition, listed: x.Response, asked: x.Request.Seq}
			for _, member := range []string{"inputSchema", "outputSchema"} {
				// The schema of the message judges a member that is absent or not an object.
				if document, ok := definition[member].(map[string]any); ok {
					s, err := schema.CompileTool(document)
					t.schemas = append(t.schemas, compiled{member, s, err})
				}
			}
			if before != nil {
				before.next = t
			}
			latest[name] = t
			all = append(all, t)
		}
	}
	return all
}

// equal reports whether two decoded values are the same, including the spelling
// of their numbers.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, v := range a {
			if w, has := b[name]; !has || !equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return a == b
}

// size estimates the bytes of a decoded value.
func size(v any) int {
	n := 4
	switch v := v.(type) {
	case string:
		n += len(v)
	case []any:
		for _, item := range v {
			n += size(item)
		}
	case map[string]any:
		for name, member := range v {
			n += len(name) + size(member)
		}
	}
	return n
}

// output returns the compiled output schema, or nil.
func (t *tool) output() *schema.Tool {
	for _, s := range t.schemas {
		if s.member == "outputSchema" {
			return s.schema
		}
	}
	return nil
}

func judgeToolLists(c *Conversation, rec *Recorder) {
	requirements := map[string]string{"inputSchema": ids.ToolsInputSchemaValid,
		"outputSchema": ids.ToolsOutputSchemaValid}
	for _, t := range c.tools() {
		for _, s := range t.schemas {
			what := s.member + " of tool " + wire.Quote(t.name, 60)
			var schemaErr *schema.ToolSchemaError
			if errors.As(s.err, &schemaErr) && schemaErr.Unsupported {
				rec.Note(requirements[s.member], wire.Server, what+" was not judged: "+schemaErr.Error())
				continue
			}
			rec.Check(s.err == nil, requirements[s.member], wire.Server, what+" is not a valid JSON Schema: "+
				fmt.Sprint(s.err), t.listed)
		}
	}
	judgeUnique(c, rec, "tools/list", "tools", "name", ids.ToolsNameUnique)
}

func judgeToolResults(c *Conversation, rec *Recorder) {
	var listed map[string]*tool // the first definition of each; read only if there are results to judge
	var changes []*wire.Event
	for _, x := range c.Exchanges {
		if x.Method() != "tools/call" || x.From() != wire.Client || x.Result() == nil {
			continue
		}
		if listed == nil {
			listed = make(map[string]*tool)
			for _, t := range c.tools() {
				if listed[t.name] == nil {
					listed[t.name] = t
				}
			}
			changes = c.notifications(wire.Server, listChanged("tools"))
		}
		name, _ := wire.At(x.Request.Msg.Params, "name").(string)
		judgeToolResult(c, x, definitionFor(x, listed[name], changes), rec)
	}
}

// definitionFor returns the definition that held throughout a call, or nil if none
// certainly did: what is listed after the call may be new since, and what was listed
// before it may have changed.
func definitionFor(x *Exchange, t *tool, changes []*wire.Event) *tool {
	for t != nil && t.next != nil && t.next.listed.Seq < x.Request.Seq {
		t = t.next
	}
	switch {
	case t == nil || t.listed.Seq > x.Request.Seq:
		return nil
	case t.asked > x.Response.Seq:
		return t // and it is still listed so
	case t.next != nil || changed(changes, t.asked, x.Response):
		return nil
	}
	return t
}

// server/tools#structured-content and #output-schema
func judgeToolResult(c *Conversation, x *Exchange, t *tool, rec *Recorder) {
	result := x.Result()
	failed, _ := result["isError"].(bool)
	structured, has := result["structuredContent"]
	if object, ok := structured.(map[string]any); ok {
		rec.Pass(ids.ToolsStructuredContentObject, wire.Server)
		if !failed {
			rec.Check(copied(result, object), ids.ToolsStructuredContentTextCopy, wire.Server,
				"no text block repeats the structured content as JSON", x.Events()...)
		}
	}
	if t != nil && t.output() != nil && !failed {
		events := []*wire.Event{t.listed, x.Request, x.Response}
		rec.Check(has, ids.ToolsOutputSchemaStructuredPresent, wire.Server,
			"the tool "+wire.Quote(t.name, 60)+" lists an output schema, but its result has no structuredContent",
			events...)
		if has {
			judgeConforms(t.output().Validate(structured), events, rec)
		}
	}
	for _, block := range wire.Items(result, "content") {
		if wire.At(block, "type") == "resource" {
			rec.Check(c.Declared(wire.Server, "resources"), ids.ToolsEmbeddedResourceResourcesCapability, wire.Server,
				"a tool result embeds a resource, but the server does not declare resources",
				declaring(c, wire.Server, x.Events()...)...)
		}
	}
}

func judgeConforms(broken []schema.Violation, events []*wire.Event, rec *Recorder) {
	const id = ids.ToolsOutputSchemaConforms
	switch {
	case len(broken) == 0:
		rec.Pass(id, wire.Server)
	case broken[0].Keyword == schema.Undecided:
		rec.Note(id, wire.Server, broken[0].Message)
	default:
		rec.Fail(id, wire.Server, "structuredContent does not fit the tool's output schema: "+broken[0].String(),
			events...)
	}
}

// copied reports whether a text block of the result holds the structured
// content as JSON. Numbers are compared by value.
func copied(result, structured map[string]any) bool {
	want := withFloats(structured)
	for _, block := range wire.Items(result, "content") {
		text, _ := wire.At(block, "text").(string)
		var v any
		if json.Unmarshal([]byte(text), &v) == nil && reflect.DeepEqual(v, want) {
			return true
		}
	}
	return false
}

func same(a, b any) bool {
	return reflect.DeepEqual(withFloats(a), withFloats(b))
}

// withFloats returns a decoded value with its numbers as float64.
func withFloats(v any) any {
	var out any
	raw, err := json.Marshal(v)
	if err != nil || json.Unmarshal(raw, &out) != nil {
		return v
	}
	return out
}
