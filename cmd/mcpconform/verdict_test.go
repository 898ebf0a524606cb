package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// A run that is incomplete says why in one line, even where nothing else is printed,
// and first in its summary.
func TestIncompleteSaysWhy(t *testing.T) {
	manyRuns(t)
	const why = "the server speaks another revision, \"2024-11-05\""
	old := `read -r line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}'; cat >/dev/null`
	command := []string{"--", "/bin/sh", "-c", old}
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("left out: there is no /bin/sh")
	}
	o := conduct(t, nil, append([]string{"--quiet"}, command...)...)
	if text := o.files["stdout"]; o.code != exitIncomplete || o.files["stderr"] != "" || strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "INCOMPLETE: "+why) {
		t.Errorf("exit code %d; stdout: %q; stderr: %q", o.code, o.files["stdout"], text)
	}
	o = conduct(t, nil, command...)
	if text := o.files["stdout"]; o.code != exitIncomplete || !strings.Contains(text, "\nIncomplete because: "+why) || !strings.Contains(o.run.Reason, why) {
		t.Errorf("exit code %d, reason %q:\n%s", o.code, o.run.Reason, text)
	}
	for _, name := range []string{"junit.xml", "report.html", "checklist.md"} {
		if !strings.Contains(o.files[name], "speaks another revision") {
			t.Errorf("%s does not say why", name)
		}
	}
}

func TestExplainNamesDisputes(t *testing.T) {
	var out bytes.Buffer
	cmd := newRoot()
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"explain", "tools.error.unknown-tool-protocol-error"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "\ndisputed ") || !strings.Contains(text, "https://github.com/modelcontextprotocol/typescript-sdk/pull/1044") {
		t.Errorf("it says:\n%s", text)
	}
}
