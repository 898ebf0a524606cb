package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites/check"
)

func discovered() *check.Target {
	return &check.Target{
		Profile: "a known\nserver",
		Settings: check.Settings{CallTools: check.CallSafe, ToolRoles: map[string]check.Call{
			"error": {Tool: "fail: \"#\u0085\x7f", Arguments: map[string]any{"a": []any{"<b>"}}},
		}},
		Lists: map[string]*check.List{"tools/list": {Items: []map[string]any{
			{"name": "read", "annotations": map[string]any{"readOnlyHint": true}},
			{"name": "erase\ncallTools: all\u2028strict: true", "outputSchema": map[string]any{}},
			{"name": strings.Repeat("x", 100_000)},
			{},
		}}},
	}
}

// The written file can be read again, whatever the target calls its tools, and describes the same target. The values
// of the target stay out.
func TestInitial(t *testing.T) {
	for _, tt := range []struct {
		name   string
		target Target
		found  *check.Target
		want   Target
	}{
		{"nothing", Target{}, nil, Target{}},
		{
			"command", Target{Command: []string{"./a b", "#c\n", "{d"}, Env: map[string]string{"T": "hidden"}, Cwd: "/srv"}, discovered(),
			Target{Command: []string{"./a b", "#c\n", "{d"}, Env: map[string]string{"T": "secret"}, Cwd: "/srv"},
		},
		{
			"url", Target{URL: "http://localhost:{port}/mcp", Start: "./run --port {port}", Headers: map[string]string{"A": "hidden"}}, discovered(),
			Target{URL: "http://localhost:{port}/mcp", Start: "./run --port {port}"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := string(Initial(tt.target, tt.found, nil, nil))
			_, got, err := load(t, text)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			want := &Config{Target: tt.want, CallTools: check.CallSafe}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n%s", diff, text)
			}
			if strings.Contains(text, "hidden") {
				t.Errorf("a value is written:\n%s", text)
			}
		})
	}
}

// Secrets are referred to, in the order in which they stand, whatever the server
// calls its tools.
func TestInitialWithoutSecrets(t *testing.T) {
	r := transport.NewRedactor(nil, "")
	r.Add("hunter22", "swordfish")
	found := discovered()
	found.Lists["tools/list"].Items[0]["name"] = "tool hunter22"
	for _, tt := range []struct {
		name   string
		target Target
		want   []string
	}{
		{"command", Target{Command: []string{"a", "--key=hunter22", "x swordfish y"}}, []string{`command: ["a","--key=${MCP_SECRET_1}","x ${MCP_SECRET_2} y"]`, "variables MCP_SECRET_1 …"}},
		{
			"url", Target{URL: "http://u:pw@localhost:{port}/mcp?a=b&hunter22", Start: "TOKEN=swordfish ./run {port}"},
			[]string{`url: "http://${MCP_SECRET_1}@localhost:{port}/mcp?a=${MCP_SECRET_2}&${MCP_SECRET_3}"`, `start: "TOKEN=${MCP_SECRET_4} ./run {port}"`},
		},
		{"no URL", Target{URL: "http://localhost:{port}x/hunter22"}, []string{`url: "http://localhost:{port}x/${MCP_SECRET_1}"`}},
	} {
		text := string(Initial(tt.target, found, nil, r))
		for _, want := range append(tt.want, "#   tool REDACTED ") {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %s is missing in\n%s", tt.name, want, text)
			}
		}
		for _, secret := range []string{"hunter22", "swordfish"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s: %s is written:\n%s", tt.name, secret, text)
			}
		}
	}
}

// The roles in the comments are right once the comment signs are gone.
func TestInitialToolRoles(t *testing.T) {
	_, rest, _ := strings.Cut(string(Initial(Target{}, discovered(), nil, nil)), "# toolRoles:\n")
	section, _, _ := strings.Cut(rest, "\n\n")
	_, got, err := load(t, "toolRoles:\n"+strings.ReplaceAll("\n"+section, "\n#", "\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Call{Tool: "fail: \"#\u0085?", Arguments: map[string]any{"a": []any{"<b>"}}}
	if diff := cmp.Diff(want, got.ToolRoles["error"]); diff != "" {
		t.Error(diff)
	}
	if got.ToolRoles["slow"].Tool != "NAME" {
		t.Errorf("slow is %+v", got.ToolRoles["slow"])
	}
	for _, wanted := range []string{
		"#   read                           yes: ", "structured content; perhaps erase?callTools: all?strict: true", "# This server is known as a known?server;",
	} {
		if text := string(Initial(Target{}, discovered(), nil, nil)); !strings.Contains(text, wanted) {
			t.Errorf("%q is missing in\n%s", wanted, text)
		}
	}
}
