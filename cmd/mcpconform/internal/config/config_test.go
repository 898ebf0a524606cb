package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcpconform/mcpconform/internal/profile"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/expected"
)

const schemaFile = "../../../../fixtures/config/mcpconform.schema.json"

const full = `
target:
  command: [./server, --stdio]
  env: {TOKEN: "${T}", MODE: "${NONE:-test}"}
  cwd: sub
revision: "2025-06-18"
callTools: all
toolRoles:
  slow: {tool: wait, arguments: {seconds: 1, list: [a, 0.5]}}
  error: {tool: fail}
secrets: ["${T}", hunter2hunter2]
personalData: [jane.doe@example.com]
trustedOrigins: ["https://app.example:8443", "null", "*"]
public: true
authorization: {protected: true, methods: [tools/call], resource: "https://example.com/mcp", trailingSlash: true, expired: "${T}1",
  otherAudience: two, otherIssuer: three, otherUser: five, narrow: four, narrowRequest: {method: tools/call, params: {name: x}}}
limits: {message: 1024, total: 4096, timeout: 2s500ms, startTimeout: 45s, runTimeout: 1m, targetMemory: 512M, targetProcesses: 9}
sandbox: true
sandboxWrite: [cache, /srv/cache]
select: [tools.*, MUST]
skip: [server/prompts]
strict: true
scripts: [conversations, /srv/scripts]
expectedFailures:
  - id: tools.list.*
    reason: known
    expires: 2099-12-31
`

// TestSecretsAreNotShown has what is wrong with a file be, or stand beside, what is secret in it.
func TestSecretsAreNotShown(t *testing.T) {
	const secret = "Zq7wX9-s3cr3t"
	for _, text := range []string{
		"target:\n  headers:\n    A: Bearer SECRET\n   x\n",
		"target: {url: 'http://x', headers:SECRET}\n",
		"target: {url: 'http://x', headers: {A: Bearer SECRET}}\ncallTools: SECRET\n",
		"target: {url: 'http://me:SECRET@x/?key=SECRET'}\ncallTools: SECRET\n",
		"target: {command: [a, --token, SECRET]}\ncallTools: SECRET\n",
		"target: {command: [a], env: {A: SECRET}}\nrevision: SECRET\n",
		"target: {command: [a], env: {A: '${SECRET}'}}\n",
		"target: {command: [a], env: {A: '${a SECRET}'}}\n",
		"target: {command: [a], env: {A:SECRET, A:SECRET}}\n",
		"target: {command: [a], env: {A: *SECRET}}\n",
		"target: {command: [a], env: [A=SECRET]}\n",
		"target: {command: [a]}\n  env: {A: SECRET}\n",
		"target:\n  env:\n    A: b\n  API_KEY=SECRET: 1\n",
		"authorization: {SECRET}\n",
		"authorization: {expired: SECRET}\ncallTools: SECRET\n",
		"authorization:\n  protected: true\n  expired SECRET\n",
		"authorization:\n  expired: |SECRET\n",
		"authorization: {expired: \"SECRET\\n\"}\n",
		"secrets: ['${SECRET}']\n",
		"secrets: SECRET\n",
		"secrets: [SECRET]\nselect: [SECRET]\n",
		"personalData: [SECRET]\nexpectedFailures: [{id: a, reason: b, expires: SECRET}]\n",
		"trustedOrigins: ['http://me:SECRET@x/']\n",
	} {
		_, _, err := load(t, strings.ReplaceAll(text, "SECRET", secret))
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func lookup(name string) (string, bool) { return "secret", name == "T" }

func load(t *testing.T, text string) (string, *Config, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"mcpconform.yaml": text,
		"known.yaml":      "- {id: a.b, reason: r}\n",
		"bad.yaml":        "- {id: a.b}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Load(filepath.Join(dir, "mcpconform.yaml"), lookup)
	return dir, c, err
}

func TestLoad(t *testing.T) {
	dir, got, err := load(t, full)
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Target: Target{
			Command: []string{"./server", "--stdio"}, Env: map[string]string{"TOKEN": "secret", "MODE": "test"},
			Cwd: filepath.Join(dir, "sub"),
		},
		Revision: "2025-06-18", CallTools: check.CallAll,
		ToolRoles: map[string]Call{
			"slow":  {Tool: "wait", Arguments: map[string]any{"seconds": json.Number("1"), "list": []any{"a", json.Number("0.5")}}},
			"error": {Tool: "fail"},
		},
		Secrets: []string{"secret", "hunter2hunter2"}, Personal: []string{"jane.doe@example.com"},
		TrustedOrigins: []string{"https://app.example:8443", "null", "*"}, Public: true,
		Authorization: Authorization{
			Protected: true, Methods: []string{"tools/call"}, Resource: "https://example.com/mcp", TrailingSlash: true,
			Expired: "secret1", OtherAudience: "two", OtherIssuer: "three", OtherUser: "five", Narrow: "four",
			NarrowRequest: Request{Method: "tools/call", Params: map[string]any{"name": "x"}},
		},
		Limits:  Limits{Message: 1024, Total: 4096, Timeout: 2500 * time.Millisecond, Start: 45 * time.Second, Run: time.Minute, TargetMemory: 512 << 20, TargetProcesses: 9},
		Sandbox: true, SandboxWrite: []string{filepath.Join(dir, "cache"), "/srv/cache"},
		Select: []string{"tools.*", "MUST"}, Skip: []string{"server/prompts"}, Strict: true,
		Scripts:  []string{filepath.Join(dir, "conversations"), "/srv/scripts"},
		Expected: Expected{Entries: []expected.Entry{{ID: "tools.list.*", Reason: "known", Expires: "2099-12-31"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if c := got.Calls()["slow"]; c.Tool != "wait" || len(c.Arguments) != 2 {
		t.Errorf("the call is %+v", c)
	}
}

func TestLoadFile(t *testing.T) {
	_, got, err := load(t, "target: {url: 'http://localhost/mcp', headers: {A: 'x ${T}'}, start: ./run}\nexpectedFailures: known.yaml\n")
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Target:   Target{URL: "http://localhost/mcp", Headers: map[string]string{"A": "x secret"}, Start: "./run"},
		Expected: Expected{File: "known.yaml", Entries: []expected.Entry{{ID: "a.b", Reason: "r"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// faults are files that are refused. With schema, the schema refuses them too.
var faults = []struct {
	name, text, want string
	schema           bool
}{
	{"unknown member", "targets: {}\n", `:1:1: unknown field "targets"`, true},
	{"variable in the command that is not set", "target:\n  command: [a, '${NONE}']\n", ":2:16: the environment variable NONE is not set", false},
	{"variable in the url that is not set", "target: {url: 'http://x/?key=${NONE}'}\n", ":1:15: the environment variable NONE is not set", false},
	{"unknown member below", "target:\n  cmd: [a]\n", `:2:3: unknown field "cmd"`, true},
	{"narrow without its request", "authorization: {narrow: x}\n", `:1:25: narrow needs narrowRequest`, true},
	{"resource without a host", "authorization: {resource: mcp}\n", `:1:27: the resource is not a URL`, false},
	{"token of two lines", "authorization: {expired: \"a\\nb\"}\n", `:1:26: the token contains characters`, false},
	{"member twice", "strict: true\nstrict: true\n", `:2:1: mapping key "strict" already defined`, false},
	{"wrong type", "strict: 7\n", ":1:9: cannot unmarshal", true},
	{"command as text", "target: {command: ./server}\n", ":1:19: ", true},
	{"command and url", "target:\n  command: [a]\n  url: http://x\n", ":3:8: give either command", true},
	{"no program", "target:\n  command: []\n", ":2:12: the command does not name a program", true},
	{"start without url", "target: {start: a}\n", ":1:17: start needs url", true},
	{"headers without url", "target: {headers: {A: b}}\n", ":1:19: headers need url", true},
	{"variable that is not set", "target:\n  env:\n    A: ${NONE}\n", ":3:8: the environment variable NONE is not set", false},
	{"revision", "revision: '2024-11-05'\n", `:1:11: revision "2024-11-05" is not supported`, true},
	{"callTools", "callTools: some\n", `:1:12: callTools is "some"`, true},
	{"unknown role", "toolRoles:\n  fast: {tool: a}\n", `:2:9: "fast" is not a tool role; the tool roles are structured, `, true},
	{"tool roles under their former name", "purposes:\n  slow: {tool: a}\n", ":2:3: purposes is now called toolRoles: rename it", true},
	{"role without tool", "toolRoles:\n  slow: {arguments: {}}\n", ":2:9: the tool role slow does not name a tool", true},
	{"arguments that are no JSON", "toolRoles:\n  slow: {tool: a, arguments: {a: .inf}}\n", ":2:30: +Inf is not a number", false},
	{"limit of nothing", "limits: {message: 0}\n", ":1:19: the limit must be greater than 0", true},
	{"timeout of nothing", "limits: {timeout: -1s}\n", ":1:19: the limit must be greater than 0", true},
	{"start timeout of nothing", "limits: {startTimeout: -1s}\n", ":1:24: the limit must be greater than 0", true},
	{"timeout without unit", "limits: {timeout: 10}\n", ":1:19: ", true},
	{"secret that is too short", "secrets: [longer, short]\n", ":1:19: the text has 5 bytes", false},
	{"an origin with a path", "trustedOrigins: [https://app.example/]\n", `:1:18: "https://app.example/" is not an origin`, false},
	{"personal data of nothing", "personalData: ['${NONE:-}']\n", ":1:16: the text has 0 bytes", false},
	{"secret that is not set", "secrets: ['${NONE}']\n", ":1:11: the environment variable NONE is not set", false},
	{"size that is none", "limits: {targetMemory: lots}\n", "\"lots\" is not a size", false},
	{"folder without a name", "scripts: [a, '']\n", ":1:14: the name of the folder is empty", true},
	{"pattern", "skip: ['a[']\n", `:1:8: "a[" is not a pattern`, false},
	{"entry without reason", "expectedFailures:\n  - id: a\n", ":2:5: the entry for a does not give a reason", true},
	{"unknown member of an entry", "expectedFailures:\n  - id: a\n    reason: b\n    why: c\n", `:4:5: unknown field "why"`, true},
	{"fault in the other file", "expectedFailures: bad.yaml\n", "bad.yaml:1:3: the entry for a.b does not give a reason (named by ", false},
	{"other file missing", "expectedFailures: none.yaml\n", ":1:19: expectedFailures", false},
}

func TestFaults(t *testing.T) {
	for _, tt := range faults {
		t.Run(tt.name, func(t *testing.T) {
			_, c, err := load(t, tt.text)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %+v and error %v, want %s", c, err, tt.want)
			}
		})
	}
}

// The schema and the reader agree on good and bad files.
func TestSchemaAgrees(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	s, err := compiler.Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	valid := func(text string) error {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			return err
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
		if err != nil {
			return err
		}
		return s.Validate(v)
	}
	for _, good := range []string{
		full, "{}", "target: {url: http://x, headers: {A: b}, start: c}\n", "expectedFailures: file.yaml\n", "limits: {timeout: 1m30s}\n",
	} {
		if err := valid(good); err != nil {
			t.Errorf("the schema refuses\n%s\n%v", good, err)
		}
	}
	for _, tt := range faults {
		if err := valid(tt.text); tt.schema && err == nil {
			t.Errorf("%s: the schema allows\n%s", tt.name, tt.text)
		}
	}
}

// The schema and the structs have the same members.
func TestSchemaMembers(t *testing.T) {
	raw, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var s map[string]any
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	at := func(path ...string) []string {
		var v any = s
		for _, p := range path {
			v = v.(map[string]any)[p]
		}
		var names []string
		for name := range v.(map[string]any) {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	tags := func(v any) []string {
		var names []string
		for f := range reflect.TypeOf(v).Fields() {
			names = append(names, f.Tag.Get("yaml"))
		}
		slices.Sort(names)
		return names
	}
	var roles []string
	for _, p := range profile.Roles() {
		roles = append(roles, p.Name)
	}
	slices.Sort(roles)
	for _, tt := range []struct {
		name            string
		schema, structs []string
	}{
		{"top", at("properties"), tags(Config{})},
		{"target", at("properties", "target", "properties"), tags(Target{})},
		{"limits", at("properties", "limits", "properties"), tags(Limits{})},
		{"login", at("properties", "login", "properties"), tags(Login{})[1:]}, // the first is no member of the file
		{"call", at("$defs", "call", "properties"), tags(Call{})},
		{"expected failure", at("$defs", "expectedFailure", "properties"), tags(expected.Entry{})},
		{"toolRoles", at("properties", "toolRoles", "properties"), roles},
	} {
		if diff := cmp.Diff(tt.structs, tt.schema); diff != "" {
			t.Errorf("%s (-structs +schema):\n%s", tt.name, diff)
		}
	}
}
