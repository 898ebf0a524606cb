package profile

import (
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/schema"
)

func TestBuiltIn(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("there are no profiles")
	}
	names := make(map[string]bool)
	for _, p := range all {
		if names[p.Name] {
			t.Errorf("two profiles are named %q", p.Name)
		}
		names[p.Name] = true
		if len(p.ToolRoles) == 0 {
			t.Errorf("%s: no roles", p.Name)
		}
	}
}

// The reference server is known by its tools, serves every role, and takes
// the arguments that its profile gives.
func TestReference(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	tools := make(map[string]any)
	var names []string
	for _, tool := range server.DefaultCatalogue().Tools {
		names = append(names, tool.Name())
		tools[tool.Name()] = tool.Definition["inputSchema"]
	}
	p, ok := Recognise(all, "any name", names)
	if !ok || p.Name != "the reference server of mcpconform" {
		t.Fatalf("recognised %q, %t", p.Name, ok)
	}
	for _, role := range Roles() {
		call, ok := p.ToolRoles[role.Name]
		if !ok {
			t.Errorf("nothing serves %s", role.Name)
			continue
		}
		input, err := schema.CompileTool(tools[call.Tool])
		if err != nil {
			t.Fatal(err)
		}
		arguments := call.Arguments
		if arguments == nil {
			arguments = map[string]any{}
		}
		if list := input.Validate(arguments); len(list) > 0 {
			t.Errorf("%s: the arguments do not fit %s: %v", role.Name, call.Tool, list)
		}
	}
}

func TestRecognise(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, server string
		tools        []string
		want         string // profile, or "" for none
		roles        []string
	}{
		{"nothing", "everything", nil, "", nil},
		{"a name alone", "mcp-servers/everything", []string{"echo"}, "", nil},
		{"tools under another name", "mine", []string{"greet", "log", "sample", "roots"}, "", nil},
		{
			"part of the shared fixtures", "rmcp", []string{"add", "test_error_handling", "test_simple_text", "test_tool_with_progress"},
			"the fixtures that conformance servers share", []string{"error", "progress"},
		},
		{
			"the Go SDK's example", "everything",
			[]string{"greet", "greet (structured)", "greet (content with ResourceLink)", "elicit (form)", "log", "sample", "roots"},
			"the everything example of github.com/modelcontextprotocol/go-sdk",
			[]string{"elicitation", "log", "resource-link", "roots", "sampling", "structured"},
		},
		{
			"one name, two servers", "example-servers/everything",
			[]string{"add", "echo", "getTinyImage", "get_resource_link", "longRunningOperation", "notify"},
			"the everything example of github.com/mark3labs/mcp-go",
			[]string{"image", "mixed-content", "progress", "resource-link", "slow"},
		},
		{
			"tools for some clients are missing", "mcp-servers/everything",
			[]string{"echo", "get-tiny-image", "get-resource-links", "trigger-long-running-operation"},
			"@modelcontextprotocol/server-everything", []string{"image", "progress", "resource-link", "slow"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, ok := Recognise(all, tt.server, tt.tools)
			if p.Name != tt.want || ok != (tt.want != "") {
				t.Fatalf("got %q, %t", p.Name, ok)
			}
			var got []string
			for role := range p.ToolRoles {
				got = append(got, role)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tt.roles, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRecogniseBest(t *testing.T) {
	profiles := []Profile{
		{Name: "few", Tools: []string{"a"}},
		{Name: "many", Tools: []string{"a", "b"}},
		{Name: "many, later", Tools: []string{"a", "b"}},
		{Name: "named", Servers: []string{"s"}, Tools: []string{"a"}},
	}
	for server, want := range map[string]string{"s": "named", "t": "many"} {
		if p, _ := Recognise(profiles, server, []string{"a", "b", "c"}); p.Name != want {
			t.Errorf("server %q: got %q, want %q", server, p.Name, want)
		}
	}
}

func TestRead(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"good", "tools: [a]\ntoolRoles:\n  slow: {tool: a, arguments: {n: 1}}\n", ""},
		{"no tools", "name: x\n", "p.yaml:1:1: the profile does not name tools by which a server is recognised"},
		{"unknown role", "tools: [a]\ntoolRoles:\n  fast: {tool: a}\n", `p.yaml:3:9: "fast" is not a tool role`},
		{"no tool", "tools: [a]\ntoolRoles:\n  slow: {}\n", "p.yaml:3:9: the tool role does not name a tool"},
		{"unknown member", "tool: [a]\n", `p.yaml:1:1: unknown field "tool"`},
		{"not of JSON", "tools: [a]\ntoolRoles:\n  slow: {tool: a, arguments: {n: .nan}}\n", "p.yaml:3:30: NaN is not a number that JSON can write"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all, err := read(fs.FS(fstest.MapFS{"p.yaml": {Data: []byte(tt.text)}}))
			if tt.want == "" {
				want := []Profile{{
					Name: "p", Tools: []string{"a"},
					ToolRoles: map[string]Call{"slow": {Tool: "a", Arguments: map[string]any{"n": json.Number("1")}}},
				}}
				if diff := cmp.Diff(want, all); diff != "" || err != nil {
					t.Errorf("%v\n%s", err, diff)
				}
				return
			}
			if err == nil || !strings.HasSuffix(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}
