package target

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
		{"a variable that is not set", "", `{"servers": {"a": {"command": "a", "env": {"K": "${NONE}"}}}}`, Server{}, `server "a": K: the environment variable NONE is not set`},
		{"a variable that is empty", "", `{"servers": {"a": {"command": "a", "args": ["${EMPTY}", "${EMPTY:-d}"]}}}`, Server{Name: "a", Command: []string{"a", "", "d"}}, ""},
		{"a question to the user", "", `{"servers": {"a": {"command": "${input:key}"}}}`, Server{}, "only the client can fill in ${input:key}"},
		{"neither", "", `{"mcpServers": {"a": {"args": ["x"]}}}`, Server{}, `server "a": the entry has neither a command nor a url`},
		{"both", "", `{"mcpServers": {"a": {"command": "x", "url": "http://x"}}}`, Server{}, `server "a": the entry has both a command and a url`},
		{"wrong type", "", `{"mcpServers": {"a": {"command": 7}}}`, Server{}, `server "a": `},
		{"another file", "", `{"name": "package"}`, Server{}, "the file has none of the members mcpServers, servers and mcp"},
		{"no object", "", `[]`, Server{}, "line 1, column 1: "},
		{"no JSON", "", "{\n  \"servers\": x\n}", Server{}, "line 2, column 14: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Load(write(t, filepath.Join(t.TempDir(), "f.json"), tt.text), tt.pick, lookup)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnnamed(t *testing.T) {
	_, err := Load(write(t, filepath.Join(t.TempDir(), "f"), `{"servers": {"b": {}, "a": {}}}`), "", lookup)
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
		s, err := Load(write(t, filepath.Join(dir, tt.file), text), "", lookup)
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
