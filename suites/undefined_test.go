package suites_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/result"
)

// Members that the revision does not define are a note, and never a finding.
func TestUndefinedMembers(t *testing.T) {
	tools := make([]map[string]any, 6)
	for i := range tools {
		tools[i] = map[string]any{"name": fmt.Sprint("t", i), "inputSchema": map[string]any{"type": "object"}, "annotation": map[string]any{}, fmt.Sprint("own", i): 1, "icons": []any{}}
	}
	answers := map[string]any{
		"initialize": map[string]any{
			"protocolVersion": "2025-06-18", "capabilities": map[string]any{"tools": map[string]any{"list_changed": true}, "own": map[string]any{}},
			"serverInfo": map[string]any{"name": "s", "version": "1"},
		},
		"tools/list": map[string]any{"tools": tools}, "ping": map[string]any{},
	}
	run, _, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: &transport.Stdio{Launcher: transport.Func{Name: "odd", Run: func(_ context.Context, stdin io.Reader, stdout, _ io.Writer) error {
		lines := bufio.NewScanner(stdin)
		for lines.Scan() {
			var m struct {
				ID     json.RawMessage `json:"id"`
				Method string          `json:"method"`
			}
			if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
				continue
			}
			answer := map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": answers[m.Method]}
			if answers[m.Method] == nil {
				answer = map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": -32601, "message": "unknown"}}
			}
			if err := json.NewEncoder(stdout).Encode(answer); err != nil {
				return err
			}
		}
		return nil
	}}}}, suites.Options{Timeout: time.Minute, Selection: suites.Selection{Select: []string{"tools.list.*", "schema.*"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`revision 2025-06-18 does not define these members; they may be misspelled: "list_changed" of ServerCapabilities.tools (listChanged), "annotation" of Tool (annotations)`,
		`revision 2025-06-18 does not define these members, which may be added: "own0" of Tool, "own1" of Tool, "own2" of Tool, "own3" of Tool and 2 more`,
	} {
		if !slices.Contains(run.Notes, want) {
			t.Errorf("the notes are\n%s\nand lack\n%s", strings.Join(run.Notes, "\n"), want)
		}
	}
	for _, q := range run.Requirements {
		if q.Verdict == result.Fail || q.Verdict == result.Warn {
			t.Errorf("%s is %s: %s", q.ID, q.Verdict, q.Findings[0].Message)
		}
	}
}
