package schema_test

import (
	"os"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/schema"
)

// toolsResult is a result of tools/list of about 1 kB.
const toolsResult = `{"tools": [
	{"name": "forecast", "title": "Weather forecast", "description": "Forecast for one place over some days",
	 "inputSchema": {"type": "object", "properties": {"place": {"type": "string"}, "days": {"type": "integer", "minimum": 1}}, "required": ["place"]},
	 "outputSchema": {"type": "object", "properties": {"celsius": {"type": "number"}, "rain": {"type": "boolean"}}, "required": ["celsius"]},
	 "annotations": {"readOnlyHint": true, "openWorldHint": true}},
	{"name": "search", "description": "Full text search in the documents of the workspace",
	 "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}}, "required": ["query"]}},
	{"name": "delete", "description": "Deletes one document for good",
	 "inputSchema": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
	 "annotations": {"destructiveHint": true, "idempotentHint": true}}],
	"nextCursor": "b2Zmc2V0PTIw", "_meta": {"example.org/page": 1}}`

func BenchmarkValidate(b *testing.B) {
	r := load(b)
	value := parse(b, toolsResult)
	b.ReportAllocs()
	for b.Loop() {
		if got := r.Validate("ListToolsResult", value); got != nil {
			b.Fatal(got)
		}
	}
}

func BenchmarkValidateBroken(b *testing.B) {
	r := load(b)
	value := parse(b, strings.ReplaceAll(toolsResult, `"name"`, `"nome"`))
	b.ReportAllocs()
	for b.Loop() {
		if got := r.Validate("ListToolsResult", value); len(got) != 3 {
			b.Fatal(got)
		}
	}
}

// BenchmarkLoad reads the schema, then compiles nothing, what one message needs,
// or all definitions.
func BenchmarkLoad(b *testing.B) {
	data, err := os.ReadFile(dir + "/schema.json")
	if err != nil {
		b.Fatal(err)
	}
	value := parse(b, toolsResult)
	for name, use := range map[string]func(*schema.Definitions) bool{
		"nothing": func(*schema.Definitions) bool { return true },
		"message": func(r *schema.Definitions) bool { return r.Validate("ListToolsResult", value) == nil },
		"all":     func(r *schema.Definitions) bool { return r.Warm(b.Context()) == nil },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if r, err := schema.Parse(data); err != nil || !use(r) {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRead reads a revision as the program does at its start.
func BenchmarkRead(b *testing.B) {
	for b.Loop() {
		if _, err := schema.Read(schema.DefaultVersion); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompileTool(b *testing.B) {
	document := parse(b, `{"type": "object", "properties": {"place": {"type": "string"}, "days": {"type": "integer", "minimum": 1}}, "required": ["place"]}`)
	for b.Loop() {
		if _, err := schema.CompileTool(document); err != nil {
			b.Fatal(err)
		}
	}
}
