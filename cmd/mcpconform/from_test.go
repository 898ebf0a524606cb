package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// clientConfig writes the configuration of a client, with a file that it refers to.
func clientConfig(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"client.json": text, "word": "pl41n-word-of-a-file\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "client.json")
}

// A value from a file, or one that the user would be asked for, is shown nowhere, under any name that the server
// gives it.
func TestSecretsOfClientFiles(t *testing.T) {
	manyRuns(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const asked, given = "4sked-for-word", "g1ven-by-flag"
	file := clientConfig(t, `{
		"inputs": [{"id": "the word", "type": "promptString", "password": true}],
		"servers": {"one": {"command": "`+program+`", "args": ["{file:word}", "${input:the word}", "${input:other}"], "env": {"`+asReference+`": "1", "`+asCommand+`": ""}}}
	}`)
	o := conduct(t, []string{"MCPCONFORM_INPUT_THE_WORD=" + asked}, "--from", file, "--input", "other="+given, fewAnywhere)
	o.wantCode(t, exitConformant, "server over stdio")
	o.wantWithout(t, "pl41n-word-of-a-file", asked, given)
	if !strings.Contains(o.files["trace.jsonl"], "arguments") {
		t.Error("the server did not write its arguments")
	}
	conduct(t, nil, "--from", file, "--input", "other="+given).wantCode(t, exitUsage, "set the environment variable MCPCONFORM_INPUT_THE_WORD, or give --input the word=VALUE")
}

// A server that the file disables is not tested, and says how it is; a file that it names is not read.
func TestDisabledServer(t *testing.T) {
	file := clientConfig(t, `{"mcp": {"off": {"type": "local", "command": ["x"], "environment": {"A": "{file:none}"}, "enabled": false}}}`)
	conduct(t, nil, "--from", file, "--name", "off").wantCode(t, exitUsage, `the file disables the server "off" (enabled: false); enable it there`)
	conduct(t, nil, "--from", file).wantCode(t, exitUsage, `the file disables the server "off"`)
	several := clientConfig(t, `{"mcpServers": {"on": {"command": "no-such-program-of-a-file"}, "off": {"command": "x", "disabled": true}}}`)
	conduct(t, nil, "--from", several).wantCode(t, exitIncomplete, "no-such-program-of-a-file")
	cmd, out := fleet(t, file)
	_ = cmd.Run()
	if !strings.Contains(out.String(), "it is disabled in the file (enabled: false)") {
		t.Errorf("the table does not say that the server is disabled:\n%s", out)
	}
}

// The command names the unused parts of a client's file, and the client's own time limit counts.
func TestNotesOnClientFiles(t *testing.T) {
	manyRuns(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	entry := `"one": {"command": "` + program + `", "env": {"` + asReference + `": "1", "` + asCommand + `": ""}, "frobnicate\u001b[31m": 1, "timeout": 600, "startup_timeout_sec": 200}`
	file := clientConfig(t, `{"mcpServers": {`+entry+`}}`)
	o := conduct(t, nil, "--from", file, fewAnywhere)
	o.wantCode(t, exitConformant, "is not known here and is left out; if the server needs it, give it with a flag")
	o.wantCode(t, exitConformant, `the client waits 10m0s for the server "one"; one answer may therefore take 1m0s, unless --timeout says otherwise`)
	o.wantWithout(t, "unless --start-timeout says otherwise") // three times the limit of an answer is longer
	o.wantWithout(t, "\x1b")
	o = conduct(t, nil, "--from", file, "--timeout", "5s", fewAnywhere)
	o.wantWithout(t, "unless --timeout")
	o.wantCode(t, exitConformant, `the client waits 3m20s for the start of the server "one"; it may therefore take 1m0s, unless --start-timeout says otherwise`)
	o = conduct(t, nil, "--from", file, "--timeout", "5s", "--start-timeout", "6s", fewAnywhere)
	o.wantWithout(t, "the client waits")
	conduct(t, nil, "--input", "a=b").wantCode(t, exitUsage, "--input needs --from")
}
