package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/schema"
)

// An undefined member is reported with the member that may be meant, but not in a place for any members.
func TestUndefined(t *testing.T) {
	revision := schema.Default()
	for name, c := range map[string]struct {
		def, value string
		want       string // "name of definition (meant)"
	}{
		"nothing":         {"ListToolsResult", `{"tools":[{"name":"a","inputSchema":{"type":"object","x":1},"_meta":{"y":1}}],"nextCursor":"c","_meta":{"z":1}}`, ""},
		"slips":           {"ListToolsResult", `{"tool":[],"next_cursor":"c"}`, "next_cursor of ListToolsResult (nextCursor), tool of ListToolsResult (tools)"},
		"in a list":       {"ListToolsResult", `{"tools":[{"name":"a","inputSchma":{}},{"name":"b","inputSchma":{}}]}`, "inputSchma of Tool (inputSchema)"},
		"by reference":    {"ListToolsResult", `{"tools":[{"name":"a","inputSchema":{},"annotations":{"read_only_hint":true}}]}`, "read_only_hint of ToolAnnotations (readOnlyHint)"},
		"not lacking":     {"ListToolsResult", `{"tools":[{"name":"a","inputSchma":{},"inputSchema":{}}]}`, "inputSchma of Tool ()"},
		"two letters":     {"InitializeResult", `{"serverInfo":{"name":"n","version":"1","titel":"t"}}`, "titel of Implementation (title)"},
		"unlike any":      {"InitializeResult", `{"serverInfo":{"name":"n","version":"1","vendor":"v"}}`, "vendor of Implementation ()"},
		"short":           {"ListRootsResult", `{"roots":[{"id":1}]}`, "id of Root ()"},
		"by type":         {"CallToolResult", `{"content":[{"type":"image","data":"","mimetype":"x"},{"type":"text","text":"a","mimetype":"x"}],"is_error":true}`, "mimetype of ImageContent (mimeType), mimetype of TextContent (), is_error of CallToolResult (isError)"},
		"contents":        {"ReadResourceResult", `{"contents":[{"uri":"a:b","text":"","mime_type":"x"}]}`, "mime_type of TextResourceContents or BlobResourceContents (mimeType)"},
		"structured":      {"CallToolResult", `{"content":[],"structuredContent":{"a":{"b":1}}}`, ""},
		"arguments":       {"CallToolRequest", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"nam":1}}}`, ""},
		"meta of params":  {"CallToolRequest", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":1}}}`, ""},
		"params":          {"CallToolRequest", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","argument":{}}}`, "argument of CallToolRequest.params (arguments)"},
		"envelope":        {"ListToolsRequest", `{"jsonrpc":"2.0","id":1,"method":"tools/list","parms":{}}`, "parms of ListToolsRequest (params)"},
		"capabilities":    {"InitializeRequest", `{"method":"initialize","params":{"capabilities":{"experimental":{"x":{"y":1}},"sampling":{"z":1},"elicitaton":{},"roots":{"list_changed":true}}}}`, "elicitaton of ClientCapabilities (elicitation), list_changed of ClientCapabilities.roots (listChanged)"},
		"requestedSchema": {"ElicitRequest", `{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","titel":"t"}}}`, ""},
		"no object":       {"ListToolsResult", `{"tools":7}`, ""},
		"no definition":   {"NoSuchResult", `{"tools":7}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var value any
			if err := json.Unmarshal([]byte(c.value), &value); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range revision.Undefined(c.def, value) {
				got = append(got, fmt.Sprintf("%s of %s (%s)", m.Name, m.In, m.Meant))
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("got %s; want %s", strings.Join(got, ", "), c.want)
			}
		})
	}
}

// A peer can neither make it work for ever nor tell much.
func TestUndefinedIsBounded(t *testing.T) {
	revision := schema.Default()
	members := map[string]any{"content": strings.Repeat("x", 10)}
	for i := range 1000 {
		members[fmt.Sprintf("%d%s", i, strings.Repeat("y", 1000))] = 1
	}
	if got := revision.Undefined("CallToolResult", members); len(got) != 20 {
		t.Errorf("%d members are told of", len(got))
	}
	deep := any(map[string]any{})
	for range 100_000 {
		deep = []any{deep}
	}
	revision.Undefined("CallToolResult", map[string]any{"content": deep, "tools": deep})
}
