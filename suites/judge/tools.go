package judge

import (
	"encoding/json"
	"reflect"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
)

var toolRules = []Rule{
	{
		Name: "tool definitions",
		Requirements: []string{
			"tools.name.unique", "tools.input-schema.valid", "tools.output-schema.valid",
		},
		Judge: judgeToolLists,
	},
	{
		Name: "tool results",
		Requirements: []string{
			"tools.structured-content.object", "tools.structured-content.text-copy",
			"tools.output-schema.structured-present", "tools.output-schema.conforms",
			"tools.embedded-resource.resources-capability",
		},
		Judge: judgeToolResults,
	},
	{
		Name: "tools tolerated",
		Requirements: []string{
			"tools.result.structured-or-unstructured", "tools.result.mixed-content", "tools.result.resource-links",
			"tools.resource-link.unlisted", "tools.result.embedded-resources", "tools.output-schema.optional",
			"tools.list-changed.unsolicited",
		},
		Judge: judgeToolsTolerated,
	},
}

// tool is a tool as a list showed it.
type tool struct {
	listed *wire.Event
	output *schema.Tool
}

// maxTools bounds how many tools of a conversation are compiled.
const maxTools = 20_000

// tools reads the tool lists of a conversation; visit sees each definition.
func (c *Conversation) tools(visit func(name string, definition map[string]any, e *wire.Event)) {
	for _, x := range c.Exchanges {
		if x.Method() != "tools/list" {
			continue
		}
		items, _ := x.Result()["tools"].([]any)
		for _, item := range items[:min(len(items), maxTools)] {
			if definition, ok := item.(map[string]any); ok {
				name, _ := definition["name"].(string)
				visit(name, definition, x.Response())
			}
		}
	}
}

func judgeToolLists(c *Conversation, o *Observer) {
	judged := make(map[string]any) // definitions by name, to judge each once
	c.tools(func(name string, definition map[string]any, e *wire.Event) {
		if before, ok := judged[name]; ok && reflect.DeepEqual(before, definition) {
			return
		}
		judged[name] = definition
		for _, member := range []struct{ name, id string }{
			{"inputSchema", "tools.input-schema.valid"}, {"outputSchema", "tools.output-schema.valid"},
		} {
			document, ok := definition[member.name].(map[string]any)
			if !ok {
				continue // absent, or the schema of the message judges it
			}
			_, err := schema.CompileTool(document)
			o.Check(err == nil, member.id, wire.Server,
				member.name+" of tool "+wire.Quote(name, 60)+" is no valid JSON Schema: "+reason(err), e)
		}
	})
	judgeUnique(c, o, "tools/list", "tools", "name", "tools.name.unique")
}

func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// judgeUnique judges that a list names nothing twice, over all of its pages. A
// listing that begins anew starts over.
func judgeUnique(c *Conversation, o *Observer, method, member, key, id string) {
	// Listings may run side by side: a page belongs to the listing whose last
	// cursor it was asked with.
	type listing struct{ seen map[string]*wire.Event }
	byCursor := make(map[string]*listing)
	for _, x := range c.Exchanges {
		if x.Method() != method || x.Result() == nil {
			continue
		}
		l := &listing{seen: make(map[string]*wire.Event)}
		if cursor, ok := wire.At(x.Request.Msg.Params, "cursor").(string); ok {
			known, ok := byCursor[cursor]
			if !ok {
				continue // a cursor of unknown origin
			}
			delete(byCursor, cursor) // asked again, the page is no new one
			l = known
		}
		items, _ := x.Result()[member].([]any)
		for _, item := range items {
			name, ok := wire.At(item, key).(string)
			if !ok {
				continue
			}
			if first, again := l.seen[name]; again {
				evidence := []*wire.Event{first, x.Response()}
				if first == x.Response() {
					evidence = evidence[1:]
				}
				o.Violation(id, wire.Server, wire.Quote(name, 60)+" is listed twice", evidence...)
				continue
			}
			l.seen[name] = x.Response()
			o.Exercised(id, wire.Server)
		}
		if next, ok := x.Result()["nextCursor"].(string); ok {
			byCursor[next] = l
		}
	}
}

func judgeToolResults(c *Conversation, o *Observer) {
	var listed map[string]tool // read only if there are results to judge
	for _, x := range c.Exchanges {
		if x.Method() != "tools/call" || x.Result() == nil {
			continue
		}
		if listed == nil {
			listed = c.outputs()
		}
		judgeToolResult(c, x, listed, o)
	}
}

// outputs compiles the output schemas of the tools that were listed.
func (c *Conversation) outputs() map[string]tool {
	listed := make(map[string]tool)
	c.tools(func(name string, definition map[string]any, e *wire.Event) {
		t := tool{listed: e}
		if document, ok := definition["outputSchema"].(map[string]any); ok {
			// A schema that does not compile is judged with the list.
			t.output, _ = schema.CompileTool(document)
		}
		listed[name] = t
	})
	return listed
}

// server/tools#structured-content and #output-schema
func judgeToolResult(c *Conversation, x *Exchange, listed map[string]tool, o *Observer) {
	name, _ := wire.At(x.Request.Msg.Params, "name").(string)
	result := x.Result()
	failed, _ := result["isError"].(bool)
	structured, has := result["structuredContent"]
	if object, ok := structured.(map[string]any); ok {
		o.Exercised("tools.structured-content.object", wire.Server)
		if !failed {
			o.Check(copied(result, object), "tools.structured-content.text-copy", wire.Server,
				"no text block repeats the structured content as JSON", x.Events()...)
		}
	}
	if t, ok := listed[name]; ok && t.output != nil && !failed {
		o.Check(has, "tools.output-schema.structured-present", wire.Server,
			"the tool "+wire.Quote(name, 60)+" lists an output schema, but its result has no structuredContent",
			t.listed, x.Request, x.Response())
		if has {
			broken := t.output.Validate(structured)
			message := ""
			if len(broken) > 0 {
				message = "structuredContent does not fit the tool's output schema: " + broken[0].String()
			}
			o.Check(len(broken) == 0, "tools.output-schema.conforms", wire.Server, message, t.listed, x.Request, x.Response())
		}
	}
	blocks, _ := result["content"].([]any)
	for _, block := range blocks {
		if wire.At(block, "type") == "resource" {
			o.Check(c.Declared(wire.Server, "resources"), "tools.embedded-resource.resources-capability", wire.Server,
				"a tool result embeds a resource, but the server does not declare resources", x.Events()...)
		}
	}
}

// copied reports whether a text block of the result holds the structured
// content as JSON. Numbers are compared by value.
func copied(result, structured map[string]any) bool {
	blocks, _ := result["content"].([]any)
	for _, block := range blocks {
		text, _ := wire.At(block, "text").(string)
		var v any
		if json.Unmarshal([]byte(text), &v) == nil && same(v, structured) {
			return true
		}
	}
	return false
}

func same(a, b any) bool {
	return reflect.DeepEqual(plain(a), plain(b))
}

// plain returns a decoded value with its numbers as float64.
func plain(v any) any {
	var out any
	raw, err := json.Marshal(v)
	if err != nil || json.Unmarshal(raw, &out) != nil {
		return v
	}
	return out
}

// What a tool may return or list is judged on the client, which shows that it
// copes by going on with the session.
func judgeToolsTolerated(c *Conversation, o *Observer) {
	last := c.lastOf(wire.Client)
	listed := make(map[string]bool) // URIs of resources
	read := false                   // whether resources were listed at all
	for _, x := range c.Exchanges {
		if x.From() != wire.Client || x.Result() == nil || x.Response().Seq > last {
			continue
		}
		switch x.Method() {
		case "resources/list":
			read = true
			items, _ := x.Result()["resources"].([]any)
			for _, item := range items {
				if uri, ok := wire.At(item, "uri").(string); ok {
					listed[uri] = true
				}
			}
		case "tools/list":
			items, _ := x.Result()["tools"].([]any)
			for _, item := range items {
				if wire.At(item, "outputSchema") != nil {
					o.Exercised("tools.output-schema.optional", wire.Client)
				}
			}
		}
	}
	for _, x := range c.Exchanges {
		if x.From() != wire.Client || x.Method() != "tools/call" || x.Result() == nil || x.Response().Seq > last {
			continue
		}
		o.Exercised("tools.result.structured-or-unstructured", wire.Client)
		blocks, _ := x.Result()["content"].([]any)
		kinds := make(map[string]bool)
		for _, block := range blocks {
			kind, _ := wire.At(block, "type").(string)
			kinds[kind] = true
			switch kind {
			case "resource":
				o.Exercised("tools.result.embedded-resources", wire.Client)
			case "resource_link":
				o.Exercised("tools.result.resource-links", wire.Client)
				if uri, ok := wire.At(block, "uri").(string); ok && read && !listed[uri] {
					o.Exercised("tools.resource-link.unlisted", wire.Client)
				}
			}
		}
		if len(kinds) > 1 {
			o.Exercised("tools.result.mixed-content", wire.Client)
		}
	}
	c.tolerated("notifications/tools/list_changed", "tools.list-changed.unsolicited", o)
}
