package sdk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
)

// logs returns a trace in which the server sends some messages.
func logs(messages ...string) []*wire.Log {
	trace := wire.NewTrace(wire.DefaultLimits)
	l := trace.Connect("stdio", "test")
	for _, m := range messages {
		raw := []byte(m)
		_, _ = l.Append(wire.Event{Kind: wire.KindMessage, From: wire.Server, Stream: "stdout", Raw: raw, Msg: l.Parse(raw)})
	}
	return trace.Logs()
}

// An SDK is known by what it writes into errors, and not by what a tool of it returns.
func TestRecogniseByErrors(t *testing.T) {
	for _, test := range []struct{ name, message, want string }{
		{"an error", `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"MCP error -32602: Tool x not found"}}`, "the TypeScript SDK"},
		{"a failed call", `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"MCP error -32602: Tool x not found"}],"isError":true}}`, "the TypeScript SDK"},
		{"a report of a validation", `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"[ { \"code\": \"invalid_type\" } ]"}}`, "the TypeScript SDK"},
		{"another SDK", `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid request parameters","data":""}}`, "the Python SDK"},
		{"a tool that returns such a text", `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"MCP error -32602: Tool x not found"}]}}`, ""},
		{"an error of anybody", `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}`, ""},
	} {
		got := ""
		if s := Recognise(schema.Default(), logs(test.message), wire.Server, nil); s != nil {
			got = s.Name
		}
		if got != test.want {
			t.Errorf("%s: recognised as %q, want %q", test.name, got, test.want)
		}
	}
	if s := Recognise(schema.Default(), logs(`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"MCP error -32602: x"}}`), wire.Client, nil); s != nil {
		t.Errorf("the client is recognised by what the server writes: %+v", s)
	}
}

// A package that is installed beside the command tells the SDK and its version.
func TestRecogniseByPackages(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	script := write("npm/node_modules/server/dist/index.js", "")
	write("npm/node_modules/@modelcontextprotocol/sdk/package.json", `{"name":"@modelcontextprotocol/sdk","version":"1.32.2"}`)
	python := write("venv/bin/server", "#!/bin/sh\n")
	write("venv/pyvenv.cfg", "")
	write("venv/lib/python3.11/site-packages/mcp-2.3.0.dist-info/METADATA", "")
	hostile := write("other/index.js", "")
	write("other/node_modules/@modelcontextprotocol/sdk/package.json", `{"version":"1.0\u001b[31m"}`)
	for _, test := range []struct {
		name, sdk, version string
		command            []string
	}{
		{"npm", "the TypeScript SDK", "1.32.2", []string{"node", script, "stdio"}},
		{"a shell command", "the TypeScript SDK", "1.32.2", []string{"PORT=1 node " + script}},
		{"a virtual environment", "the Python SDK", "2.3.0", []string{python}},
		{"a script of Python beside node_modules", "", "", []string{"python3", write("npm/server.py", "")}},
		{"no such file", "", "", []string{"node", filepath.Join(dir, "none.js")}},
		{"a version that is none", "", "", []string{"node", hostile}},
		{"no command", "", "", nil},
	} {
		name, version := "", ""
		if s := Recognise(schema.Default(), nil, wire.Server, test.command); s != nil {
			name, version = s.Name, s.Version
		}
		if name != test.sdk || version != test.version {
			t.Errorf("%s: %q %q, want %q %q", test.name, name, version, test.sdk, test.version)
		}
	}
}
