package target

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var options = Options{Lookup: lookup, Inputs: map[string]string{"api-key": "k3y-of-the-service"}}

func lookup(name string) (string, bool) {
	v, ok := map[string]string{"TOKEN": "t0ken", "EMPTY": "", "DIR": "/srv"}[name]
	return v, ok
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// One file for each client, in the form that its documentation gives.
func TestClients(t *testing.T) {
	here, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	noted := func(notes ...string) []string { return notes }
	for _, tt := range []struct {
		file, name string
		want       Server
		notes      []string // what the notes say, in order
		err        string
	}{
		{"claude_desktop_config.json", "", Server{Name: "files", Command: []string{"npx", "-y", "@modelcontextprotocol/server-filesystem", "/srv"}, Env: map[string]string{"LOG": "debug", "DEPTH": "3"}}, nil, ""},
		{
			"claude.mcp.json", "remote", Server{Name: "remote", URL: "https://x.example/mcp", Transport: "http", Headers: map[string]string{"Authorization": "Bearer t0ken"}},
			noted("mcpServers.remote.headersHelper is a program that makes headers", "mcpServers.remote.oauth is not used, because mcpconform logs in by itself"), "",
		},
		{"claude.mcp.json", "local", Server{Name: "local", Command: []string{"/srv/server", "--key", "none"}}, nil, ""},
		{"claude.mcp.json", "old", Server{Name: "old", URL: "https://x.example/sse", Transport: "sse"}, nil, ""},
		{"claude.mcp.json", "socket", Server{Name: "socket", URL: "wss://x.example/mcp"}, nil, ""},
		{
			".vscode/mcp.json", "service", Server{
				Name: "service", Command: []string{"node", here + "/server.js", "--region", "eu"}, Dir: here, Secrets: []string{"k3y-of-the-service"},
				Env: map[string]string{"API_KEY": "k3y-of-the-service", "SERVICE_TOKEN": `from "the" file`, "PLAIN": "value", "SINGLE": "a # b", "EMPTY_ONE": ""},
			},
			noted("servers.service.frobnicate is not known here", "servers.service.sandboxEnabled is not used"), "",
		},
		{".vscode/mcp.json", "web", Server{Name: "web", URL: "https://x.example/mcp", Transport: "http", Headers: map[string]string{"X-Key": "k3y-of-the-service"}, Secrets: []string{"k3y-of-the-service"}}, nil, ""},
		{"vscode-settings.json", "", Server{}, nil, "mcp.servers.a: command: ${input:key} is a value that the client asks its user for; set the environment variable MCPCONFORM_INPUT_KEY, or give --input key=VALUE"},
		{"cursor.json", "docs", Server{Name: "docs", URL: "https://x.example/mcp", Headers: map[string]string{"Authorization": "Bearer t0ken"}}, nil, ""},
		{
			"cursor.json", "local", Server{
				Name: "local", Command: []string{"python", home + string(filepath.Separator) + "server.py"},
				Env: map[string]string{"API_KEY": "not this one", "SERVICE_TOKEN": `from "the" file`, "PLAIN": "value", "SINGLE": "a # b", "EMPTY_ONE": ""},
			}, nil, "",
		},
		{"opencode.jsonc", "local", Server{Name: "local", Command: []string{"bun", "x", "server"}, Env: map[string]string{"T": "t0ken"}, Timeout: 20 * time.Second}, nil, ""},
		{"opencode.jsonc", "remote", Server{Name: "remote", URL: "https://x.example/mcp", Headers: map[string]string{"Authorization": "Bearer Tok3n-from-a-file"}, Secrets: []string{"Tok3n-from-a-file"}}, nil, ""},
		{"opencode.jsonc", "off", Server{}, nil, `the file disables the server "off" (enabled: false); enable it there`},
		{"opencode.jsonc", "missing", Server{}, nil, "mcp.missing: headers: K: {file:no-such-file}: open "},
		{"opencode.jsonc", "endless", Server{}, nil, "is a folder, not a file"},
		{"opencode-2.json", "local", Server{Name: "local", Command: []string{"server"}, Dir: here, Timeout: 30 * time.Second, StartTimeout: 15 * time.Second}, nil, ""},
		{"opencode-2.json", "off", Server{}, nil, "(disabled: true)"},
		{"codex.toml", "docs", Server{Name: "docs", Command: []string{"docs-server", "--stdio"}, Env: map[string]string{"MODE": "read", "TOKEN": "t0ken"}, Timeout: 45500 * time.Millisecond, StartTimeout: 20 * time.Second}, nil, ""},
		{
			"codex.toml", "remote", Server{Name: "remote", URL: "https://x.example/mcp", Headers: map[string]string{"Authorization": "Bearer t0ken", "X-Client": "c", "X-Dir": "/srv"}},
			noted("mcp_servers.remote.scopes is not used, because mcpconform logs in by itself"), "",
		},
		{"codex.toml", "off", Server{}, nil, "(enabled: false)"},
		{"codex.toml", "unset", Server{}, nil, "mcp_servers.unset: bearer_token_env_var: the environment variable NOT_SET is not set"},
		{"zed.json", "custom", Server{Name: "custom", Command: []string{"server", "-v"}, Env: map[string]string{"A": "b"}}, nil, ""},
		{"zed.json", "older", Server{Name: "older", Command: []string{"server", "-v"}, Env: map[string]string{"A": "b"}}, nil, ""},
		{"zed.json", "remote", Server{Name: "remote", URL: "https://x.example/mcp", Headers: map[string]string{"Authorization": "Bearer t"}}, nil, ""},
		{"zed.json", "extension", Server{}, nil, "context_servers.extension: source: the server comes from an extension"},
		{"zed.json", "off", Server{}, nil, "(enabled: false)"},
		{"windsurf.json", "remote", Server{Name: "remote", URL: "https://x.example/mcp", Headers: map[string]string{"API_KEY": "Tok3n-from-a-file"}, Secrets: []string{"Tok3n-from-a-file"}}, nil, ""},
		{"windsurf.json", "off", Server{}, nil, "(disabled: true)"},
		{".gemini/settings.json", "web", Server{Name: "web", URL: "https://x.example/mcp", Transport: "http", Headers: map[string]string{"X-Token": "t0ken"}, Timeout: 30 * time.Second}, nil, ""},
		{".gemini/settings.json", "local", Server{Name: "local", Command: []string{"server"}, Dir: here + "/tools", Env: map[string]string{"API_KEY": "t0ken", "PRICE": "$5"}}, nil, ""},
		{".gemini/settings.json", "experiment", Server{}, nil, "it is not among the servers that the member mcp allows"},
		{"cline.json", "a", Server{Name: "a", Command: []string{"a"}, Timeout: time.Minute}, nil, ""},
		{"cline.json", "off", Server{}, nil, "(disabled: true)"},
		{"cline.json", "", Server{Name: "a", Command: []string{"a"}, Timeout: time.Minute}, nil, ""}, // all others are disabled
		{"continue.yaml", "files", Server{Name: "files", Command: []string{"npx", "-y", "files"}, Env: map[string]string{"KEY": "t0ken"}, Secrets: []string{"t0ken"}}, nil, ""},
		{
			"continue.yaml", "web", Server{
				Name: "web", URL: "https://x.example/mcp", Transport: "http", StartTimeout: 12 * time.Second,
				Headers: map[string]string{"Authorization": "Bearer t0ken", "X-Client": "c"}, Secrets: []string{"t0ken"},
			}, nil, "",
		},
		{"goose.yaml", "fetch", Server{Name: "fetch", Command: []string{"uvx", "mcp-server-fetch"}, Env: map[string]string{"MODE": "read", "TOKEN": "t0ken"}, Timeout: 5 * time.Minute}, nil, ""},
		{"goose.yaml", "web", Server{Name: "web", URL: "https://x.example/mcp", Transport: "http", Headers: map[string]string{"X-Client": "c"}}, nil, ""},
		{"goose.yaml", "developer", Server{}, nil, `extensions.developer: type: servers of the type "builtin" run inside the client`},
		{"goose.yaml", "off", Server{}, nil, "(enabled: false)"},
	} {
		t.Run(tt.file+" "+tt.name, func(t *testing.T) {
			path := filepath.Join("testdata", tt.file)
			got, err := Load(path, tt.name, options)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || !strings.HasPrefix(err.Error(), path+": ") {
					t.Errorf("got error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Notes) != len(tt.notes) {
				t.Errorf("the notes are %q, want %q", got.Notes, tt.notes)
			}
			for i := range min(len(got.Notes), len(tt.notes)) {
				if !strings.HasPrefix(got.Notes[i], path+": "+tt.notes[i]) {
					t.Errorf("a note is %s, want %s", got.Notes[i], tt.notes[i])
				}
			}
			got.Notes = nil
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Nothing that a server refers to is read for the names of the servers, or for another one.
func TestNames(t *testing.T) {
	names, err := Names(filepath.Join("testdata", "opencode.jsonc"))
	if diff := cmp.Diff([]string{"endless", "local", "missing", "off", "remote"}, names); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestLoad(t *testing.T) {
	const two = `{"mcpServers": {"b": {"command": "b"}, "a": {"command": "a", "args": ["x"]}}}`
	for _, tt := range []struct {
		name, pick, text string
		want             Server
		err              string
	}{
		{
			"Claude Desktop", "", `{"mcpServers": {"a": {"command": "npx", "args": ["-y", "a"], "env": {"K": "v", "N": 1}}}}`,
			Server{Name: "a", Command: []string{"npx", "-y", "a"}, Env: map[string]string{"K": "v", "N": "1"}}, "",
		},
		{
			"Claude Code", "", `{"mcpServers": {"a": {"type": "http", "url": "${BASE:-https://x.example}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}}}`,
			Server{Name: "a", URL: "https://x.example/mcp", Transport: "http", Headers: map[string]string{"Authorization": "Bearer t0ken"}}, "",
		},
		{"picked", "a", two, Server{Name: "a", Command: []string{"a", "x"}}, ""},
		{"several", "", two, Server{}, "f.json: the file names several servers; choose one with --name: a, b"},
		{"another", "c", two, Server{}, `f.json: no server is called "c"; the file has a, b`},
		{"none", "", `{"mcpServers": {}}`, Server{}, "f.json: the file does not name a server"},
		{
			"VS Code with comments", "", "{\n// the servers\n\"servers\": {\"a\": {\"type\": \"stdio\", \"command\": \"${env:DIR}/a\", \"args\": [\"//no\", /* no */ \"b\\\",]\",],},},}",
			Server{Name: "a", Command: []string{"/srv/a", "//no", `b",]`}}, "",
		},
		{
			"VS Code settings", "", `{"editor": 1, "mcp": {"inputs": [], "servers": {"a": {"type": "sse", "url": "http://localhost/sse"}}}}`,
			Server{Name: "a", URL: "http://localhost/sse", Transport: "sse"}, "",
		},
		{
			"opencode, local", "", `{"mcp": {"a": {"type": "local", "command": ["bun", "a"], "environment": {"T": "{env:TOKEN}"}, "enabled": true}}}`,
			Server{Name: "a", Command: []string{"bun", "a"}, Env: map[string]string{"T": "t0ken"}}, "",
		},
		{
			"opencode, remote", "", `{"mcp": {"servers": {"type": "remote", "url": "https://x.example/mcp"}}}`,
			Server{Name: "servers", URL: "https://x.example/mcp"}, "",
		},
		{"a variable that is not set", "", `{"servers": {"a": {"command": "a", "env": {"K": "${NONE}"}}}}`, Server{}, "servers.a: env: K: the environment variable NONE is not set"},
		{"a variable that is empty", "", `{"servers": {"a": {"command": "a", "args": ["${EMPTY}", "${EMPTY:-d}"]}}}`, Server{Name: "a", Command: []string{"a", "", "d"}}, ""},
		{"a header from a variable that is not set", "", `{"servers": {"a": {"url": "http://x", "env_http_headers": {"Authorization": "NOT_SET"}}}}`, Server{}, "servers.a: env_http_headers: the environment variable NOT_SET is not set"},
		{"what only the client knows", "", `{"servers": {"a": {"command": "${command:pick}"}}}`, Server{}, "only the client can fill in ${command:…}"},
		{"two lists", "", `{"mcpServers": {"a": {"command": "a"}}, "servers": {"b": {"command": "b"}}}`, Server{Name: "a", Command: []string{"a"}, Notes: []string{"FILE: the servers of the member servers are left out, because the file has mcpServers as well"}}, ""},
		{"a list without names", "", `{"mcpServers": [{"command": "a"}]}`, Server{}, "mcpServers[0] has no name of its own"},
		{"a server that is a text", "", `{"mcpServers": {"a": "b"}}`, Server{}, "mcpServers.a is not an object"},
		{"all disabled", "", `{"mcpServers": {"a": {"command": "b", "disabled": true}, "c": {"command": "d", "enabled": false}}}`, Server{}, "the file names several servers; choose one with --name: a, c"},
		{"two of three enabled", "", `{"mcpServers": {"a": {"command": "b"}, "c": {"command": "d"}, "e": {"command": "f", "disabled": true}}}`, Server{}, "choose one with --name: a, c, e"},
		{"an unreadable switch beside an enabled server", "", `{"mcpServers": {"a": {"command": "b"}, "c": {"command": "d", "disabled": "no"}}}`, Server{}, "choose one with --name: a, c"},
		{"neither true nor false", "", `{"mcpServers": {"a": {"command": "b", "disabled": "no"}}}`, Server{}, "mcpServers.a: disabled: the value is neither true nor false"},
		{"no time", "", `{"mcpServers": {"a": {"command": "b", "timeout": "1 s"}}}`, Server{}, "mcpServers.a: timeout: the value is not a time"},
		{"a header that is a list", "", `{"mcpServers": {"a": {"url": "http://b", "headers": {"A": []}}}}`, Server{}, "mcpServers.a: headers: A: the value is neither text nor number"},
		{"more than one object", "", `{"mcpServers": {}} {}`, Server{}, "the file has something after its object"},
		{"neither", "", `{"mcpServers": {"a": {"args": ["x"]}}}`, Server{}, "mcpServers.a: the entry has neither a command nor a url"},
		{"both", "", `{"mcpServers": {"a": {"command": "x", "url": "http://x"}}}`, Server{}, "mcpServers.a: the entry has both a command and a url"},
		{"wrong type", "", `{"mcpServers": {"a": {"command": 7}}}`, Server{}, "mcpServers.a: command: the value is neither a text nor a list of texts"},
		{"another file", "", `{"name": "package"}`, Server{}, "the file has none of the members mcpServers, servers, mcp, context_servers"},
		{"no object", "", `[]`, Server{}, "line 1, column 1: "},
		{"no JSON", "", "{\n  \"servers\": x\n}", Server{}, "line 2, column 14: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, filepath.Join(t.TempDir(), "f.json"), tt.text)
			got, err := Load(path, tt.pick, options)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range got.Notes {
				got.Notes[i] = strings.Replace(got.Notes[i], path, "FILE", 1)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSecretsAreNotShown has what is wrong with a server stand beside what is secret in it, or be
// it: a value where a name is expected, and a name that has its value inside.
func TestSecretsAreNotShown(t *testing.T) {
	const secret = "Zq7wX9-s3cr3t"
	for _, server := range []string{
		`{"command": "a", "env": {"A": "${SECRET}"}}`,
		`{"command": "a", "env": {"A": "${env:SECRET}"}}`,
		`{"command": "a", "env": {"A": "${a b: SECRET}"}}`,
		`{"command": "a", "env": {"A": "${command:SECRET}"}}`,
		`{"command": "a", "env": {"API_KEY=SECRET": []}}`,
		`{"command": "a", "env": {"API_KEY": ["SECRET"]}}`,
		`{"command": "a", "env": {"A": "SECRET"}, "type": "SECRET"}`,
		`{"command": "a", "env": {"A": "SECRET"}, "SECRET": 1}`,
		`{"command": "a", "API_KEY=SECRET": 1}`,
		`{"command": "a", "args": ["--token", "SECRET"], "type": "SECRET"}`,
		`{"command": "a", "env_keys": ["SECRET"]}`,
		`{"command": {"path": "a", "env": {"A": "SECRET"}}, "type": "SECRET"}`,
		`{"url": "http://x", "headers": {"A": "${SECRET}"}}`,
		`{"url": "http://x", "headers": {"Authorization: Bearer SECRET": {}}}`,
		`{"url": "http://x", "headers": {"A": "Bearer SECRET"}, "type": "SECRET"}`,
		`{"url": "http://x", "requestOptions": {"headers": {"A": "Bearer SECRET"}}, "type": "SECRET"}`,
		`{"url": "http://me:SECRET@x/?a=SECRET", "type": "SECRET"}`,
		`{"url": "http://x", "apiKey": "SECRET", "type": "SECRET"}`,
		`{"url": "http://x", "bearer_token_env_var": "SECRET"}`,
		`{"url": "http://x", "env_http_headers": {"A": "SECRET"}}`,
		`{"url": "http://x", "headers": {"A": SECRET}}`,
	} {
		text := `{"mcpServers": {"a": ` + strings.ReplaceAll(server, "SECRET", secret) + `}}`
		s, err := Load(write(t, filepath.Join(t.TempDir(), "f.json"), text), "", options)
		if err == nil && len(s.Notes) == 0 {
			t.Errorf("%s: nothing is wrong with it", server)
		}
		if told := fmt.Sprint(err, s.Notes); strings.Contains(told, secret) {
			t.Errorf("%s: %s", server, told)
		}
	}
	for _, text := range []string{
		"[mcp_servers.a.env]\nAPI_KEY = SECRET\n", "[mcp_servers.a.env]\nAPI_KEY = \"SECRET\n", "[mcp_servers.a.env]\nAPI_KEY: SECRET\n",
		"[mcp_servers.a.env]\nSECRET\n", "[mcp_servers.a.env]\nAPI_KEY = \"\\xSECRET\"\n",
	} {
		_, err := Load(write(t, filepath.Join(t.TempDir(), "f.toml"), strings.ReplaceAll(text, "SECRET", secret)), "", options)
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestUnnamed(t *testing.T) {
	_, err := Load(write(t, filepath.Join(t.TempDir(), "f"), `{"servers": {"b": {}, "a": {}}}`), "", options)
	var unnamed *UnnamedError
	if !errors.As(err, &unnamed) {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, unnamed.Servers); diff != "" {
		t.Error(diff)
	}
}

func TestWorkspace(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct{ file, cwd, want string }{
		{"f.json", "", ""},
		{"f.json", "sub", filepath.Join(dir, "sub")},
		{".vscode/mcp.json", "sub", filepath.Join(dir, "sub")},
		{".cursor/mcp.json", "${workspaceFolder}/sub", filepath.Join(dir, "sub")},
	} {
		text := `{"servers": {"a": {"command": "a", "cwd": "` + tt.cwd + `"}}}`
		s, err := Load(write(t, filepath.Join(dir, tt.file), text), "", options)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Clean(s.Dir) != filepath.Clean(tt.want) {
			t.Errorf("%s, %q: got %s, want %s", tt.file, tt.cwd, s.Dir, tt.want)
		}
	}
}

func FuzzPlain(f *testing.F) {
	for _, seed := range []string{"{", `"\`, "/*", "//", `[1,]`, "[,//x\n]", `{"a":"/*"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if got := plain(raw); len(got) != len(raw) {
			t.Errorf("%d bytes became %d", len(raw), len(got))
		}
	})
}

// FuzzLoad reads files that nobody would write. A fault in one is an error that names the file.
func FuzzLoad(f *testing.F) {
	for _, name := range []string{
		"claude_desktop_config.json", "claude.mcp.json", ".vscode/mcp.json", "vscode-settings.json", "cursor.json", "opencode.jsonc", "opencode-2.json", "codex.toml",
		"zed.json", "windsurf.json", ".gemini/settings.json", "cline.json", "continue.yaml", "goose.yaml",
	} {
		raw, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(filepath.Ext(name), raw)
	}
	f.Add(".json", []byte(`{"mcpServers": {"a": {"command": {"path": 1}, "args": {}, "timeout": {"x": []}, "env": [], "env_vars": [{}]}}, "projects": {"/": 1}, "inputs": {}}`))
	f.Add(".toml", []byte("mcp_servers = [1979-05-27T07:32:00Z]\n"))
	f.Add(".yaml", []byte("mcpServers:\n  - &a {name: a, env: *a}\n"))
	f.Fuzz(func(t *testing.T, ext string, raw []byte) {
		if ext != ".json" && ext != ".toml" && ext != ".yaml" {
			return
		}
		path := write(t, filepath.Join(t.TempDir(), "f"+ext), string(raw))
		names, err := Names(path)
		if err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("the error does not name the file: %v", err)
		}
		for _, name := range names {
			if _, err := Load(path, name, options); err != nil && !strings.HasPrefix(err.Error(), path) {
				t.Errorf("the error does not name the file: %v", err)
			}
		}
	})
}
