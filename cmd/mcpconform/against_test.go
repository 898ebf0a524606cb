package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/reporters"
	"github.com/mcpconform/mcpconform/suites/result"
)

// spoken is what a command wrote, and its exit code.
type spoken struct {
	stdout, stderr string
	code           int
}

// command runs the command in a folder, with some variables in its environment.
func command(t *testing.T, dir string, env []string, args ...string) spoken {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Env = dir, append(append(os.Environ(), asCommand+"=1", "GITHUB_ACTIONS="), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run() // the exit code tells
	return spoken{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// resultsFile writes results with the verdicts of some requirements to a folder, and returns the name.
func resultsFile(t *testing.T, dir, name string, run result.Run, verdicts map[string]result.Verdict) string {
	t.Helper()
	run.Tool = result.Tool{Name: "mcpconform", Version: "1"}
	run.Revision, run.Role = "2025-06-18", "server"
	if run.Transport == "" {
		run.Transport = "stdio"
	}
	for _, id := range []string{"tools.name.unique", "ping.answered", "base.json.well-formed"} {
		if v, ok := verdicts[id]; ok {
			run.Requirements = append(run.Requirements, result.Requirement{ID: id, Level: "MUST", Party: "server", Page: "server/tools", Observable: true, Verdict: v})
		}
	}
	if err := writeFile(filepath.Join(dir, name), func(w io.Writer) error { return reporters.JSON(w, &run) }); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestReportExitCodes(t *testing.T) {
	manyRuns(t)
	dir := t.TempDir()
	offering := func(name string, tools ...result.OfferedTool) string {
		return resultsFile(t, dir, name, result.Run{Verdict: result.Conformant, Offer: &result.Offer{Tools: tools}}, map[string]result.Verdict{"tools.name.unique": result.Pass})
	}
	one, two := offering("one.json", result.OfferedTool{Name: "a"}), offering("two.json", result.OfferedTool{Name: "a"}, result.OfferedTool{Name: "b"})
	good := resultsFile(t, dir, "good.json", result.Run{Verdict: result.Conformant}, map[string]result.Verdict{"tools.name.unique": result.Pass})
	bad := resultsFile(t, dir, "bad.json", result.Run{Verdict: result.NotConformant}, map[string]result.Verdict{"tools.name.unique": result.Fail})
	cut := resultsFile(t, dir, "cut.json", result.Run{Verdict: result.Incomplete, Reason: "it was interrupted"}, nil)
	http := resultsFile(t, dir, "http.json", result.Run{Verdict: result.Conformant, Transport: "http"}, nil)
	for _, tt := range []struct {
		args []string
		code int
		line string // with --quiet
	}{
		{[]string{good}, exitConformant, "CONFORMANT: 1 requirement exercised, none broken.\n"},
		{[]string{bad}, exitNotConformant, "NOT CONFORMANT: 1 requirement exercised, 1 broken.\n"},
		{[]string{cut}, exitIncomplete, "INCOMPLETE: it was interrupted; nothing was exercised.\n"},
		{[]string{good, good}, exitConformant, "CONFORMANT: 2 conformant.\n"},
		{[]string{good, cut}, exitIncomplete, "INCOMPLETE: 1 incomplete, 1 conformant; unnamed server (stdio, 2025-06-18): it was interrupted.\n"},
		{[]string{bad, cut}, exitNotConformant, "NOT CONFORMANT: 1 not conformant, 1 incomplete; unnamed server (stdio, 2025-06-18): tools.name.unique.\n"},
		{[]string{cut, bad}, exitNotConformant, "NOT CONFORMANT: 1 not conformant, 1 incomplete; unnamed server (stdio, 2025-06-18): tools.name.unique.\n"},
		{[]string{bad, "--against", good}, exitNotConformant, "NOT CONFORMANT: 1 requirement exercised, 1 broken; against the earlier results 1 new; exit code 1: 1 failure is new since good.json.\n"},
		{[]string{bad, "--against", bad}, exitConformant, "NOT CONFORMANT: 1 requirement exercised, 1 broken; against the earlier results nothing changed; exit code 0: only what is new since bad.json counts, and nothing is.\n"},
		{[]string{good, "--against", bad}, exitConformant, "CONFORMANT: 1 requirement exercised, none broken; against the earlier results 1 mended; exit code 0: only what is new since bad.json counts, and nothing is.\n"},
		{[]string{cut, "--against", bad}, exitIncomplete, "INCOMPLETE: it was interrupted; nothing was exercised; against the earlier results nothing changed; exit code 3: nothing is new since bad.json, but the run is incomplete.\n"},
		{[]string{two, "--against", one, "--fail-on-breaking"}, exitConformant, "CONFORMANT: 1 requirement exercised, none broken; against the earlier results 1 other change of the offer; exit code 0: only what is new since one.json counts, and nothing is.\n"},
		{[]string{one, "--against", two}, exitConformant, "CONFORMANT: 1 requirement exercised, none broken; against the earlier results 1 breaking change of the offer; exit code 0: only what is new since two.json counts, and nothing is.\n"},
		{[]string{one, "--against", two, "--fail-on-breaking"}, exitNotConformant, "CONFORMANT: 1 requirement exercised, none broken; against the earlier results 1 breaking change of the offer; exit code 1: 1 change of the offer breaks clients.\n"},
		{[]string{one, "--against", good, "--fail-on-breaking"}, exitIncomplete, "CONFORMANT: 1 requirement exercised, none broken; against the earlier results nothing changed; exit code 3: nothing is new since good.json, but what the server offers cannot be compared.\n"},
		{[]string{one, "--against", good}, exitConformant, ""},
		{[]string{one, "--fail-on-breaking"}, exitUsage, ""},
		{[]string{good, "--against", http}, exitUsage, ""},
		{[]string{good, bad, "--against", good}, exitUsage, ""},
	} {
		if got := command(t, dir, nil, append([]string{"report"}, tt.args...)...); got.code != tt.code {
			t.Errorf("%q: exit code %d, want %d: %s%s", tt.args, got.code, tt.code, got.stdout, got.stderr)
		}
		got := command(t, dir, nil, append([]string{"report", "--quiet"}, tt.args...)...)
		if got.code != tt.code || tt.line != "" && got.stdout != tt.line {
			t.Errorf("%q: exit code %d, want %d; it says %q, want %q", tt.args, got.code, tt.code, got.stdout, tt.line)
		}
	}
}

// listing answers tools/list with a result, and reports whether it did.
func listing(w http.ResponseWriter, r *http.Request, tools string) bool {
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if err != nil || json.Unmarshal(body, &m) != nil || m.Method != "tools/list" || r.Method != http.MethodPost {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, tools)
	return err == nil
}

// A run is compared as soon as it is over; what cannot be compared is refused before it.
func TestRunAgainst(t *testing.T) {
	dir := t.TempDir()
	url := start(t, served(t, nil)).URL + "/mcp"
	run := []string{"server", "--config", os.DevNull, "--url", url, few}
	if got := command(t, dir, nil, append(run, "--json", "base.json")...); got.code != exitConformant {
		t.Fatal(got)
	}
	got := command(t, dir, nil, append(run, "--against", "base.json", "--junit", "junit.xml", "--markdown", "checklist.md")...)
	if got.code != exitConformant || !strings.Contains(got.stdout, "Against the earlier results: nothing changed.") {
		t.Errorf("exit code %d: %s%s", got.code, got.stdout, got.stderr)
	}
	for name, want := range map[string]string{"junit.xml": `name="against" value="nothing changed"`, "checklist.md": "**Against the earlier results**: nothing changed."} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %q: %v", name, want, err)
		}
	}
	changed := start(t, served(t, func(w http.ResponseWriter, r *http.Request) bool {
		// As a server of which the tool echo takes another argument, and sum is gone.
		return listing(w, r, `{"tools":[{"name":"echo","inputSchema":{"type":"object","properties":{"\u001b[31mloud":{"type":"boolean"}},"required":["\u001b[31mloud"]}}]}`)
	})).URL + "/mcp"
	got = command(t, dir, nil, "server", "--config", os.DevNull, "--url", changed, few, "--against", "base.json", "--fail-on-breaking", "--verbose",
		"--json", "changed.json", "--markdown", "changed.md", "--html", "changed.html")
	if got.code != exitNotConformant {
		t.Errorf("exit code %d: %s%s", got.code, got.stdout, got.stderr)
	}
	var changedRun result.Run
	raw, err := os.ReadFile(filepath.Join(dir, "changed.json"))
	if err != nil || json.Unmarshal(raw, &changedRun) != nil || changedRun.Offer == nil || len(changedRun.Offer.Tools) != 1 || len(changedRun.Offer.Prompts) == 0 {
		t.Errorf("the offer is %+v, error %v", changedRun.Offer, err)
	}
	said := map[string]string{"stdout": got.stdout}
	for _, name := range []string{"changed.md", "changed.html"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		said[name] = string(text)
	}
	for name, text := range said {
		text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), `\`, "") // which Markdown escapes with
		for _, want := range []string{"tool sum: was removed", "[31mloud", "is new and required", "breaking changes of the offer"} {
			if !strings.Contains(text, want) || strings.Contains(text, "\x1b[31m") {
				t.Errorf("%s does not say %q: %s", name, want, text)
			}
		}
	}
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"server", "--fail-on-breaking"}, "--fail-on-breaking needs --against"},
		{[]string{"client", "--against", "base.json"}, `the earlier results are about the role "server"`},
		{[]string{"server", "--against", "none.json"}, "--against: open none.json"},
		{[]string{"server", "--against", "base.json", "--shard", "1/2"}, "give it to mcpconform report"},
		{[]string{"judge", "--against", "base.json", "trace"}, "unknown flag: --against; mcpconform judge --help lists the flags"},
		{[]string{"-q", "server"}, "flags follow the command, as in mcpconform server --quiet"},
		{[]string{"-q"}, "flags follow the command"},
	} {
		if got := command(t, dir, nil, tt.args...); got.code != exitUsage || !strings.Contains(got.stderr, tt.says) {
			t.Errorf("%q: exit code %d: %s", tt.args, got.code, got.stderr)
		}
	}
}
