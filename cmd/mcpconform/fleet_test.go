package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/suites/result"
)

// fleetFile writes the configuration of a client.
func fleetFile(t *testing.T, servers map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// fleet returns `mcpconform server --from FILE --all`, to be run.
func fleet(t *testing.T, file string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // for a run that hangs
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, append([]string{"server", "--config", os.DevNull, "--from", file, "--all"}, args...)...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

// TestFleet: each server has its reports, none stops the others, the worst decides, and
// no secret of one turns up anywhere.
func TestFleet(t *testing.T) {
	const secret = "fl33t-s3cret-value"
	var leaked sync.Map
	good := start(t, served(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.Header.Get("Authorization"), secret) {
			leaked.Store("good", true)
		}
		return false
	}))
	broken := start(t, served(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") != "Bearer "+secret {
			leaked.Store("not sent", true)
		}
		w.WriteHeader(http.StatusInternalServerError)
		return true
	}))
	file := fleetFile(t, map[string]any{
		"good":       map[string]any{"url": good.URL + "/mcp"},
		"../broken":  map[string]any{"url": broken.URL + "/mcp", "headers": map[string]any{"Authorization": "Bearer " + secret}},
		"Good":       map[string]any{"url": good.URL + "/mcp"},
		"absent":     map[string]any{"command": "mcpconform-no-such-command", "args": []string{"--token", secret}},
		"incomplete": map[string]any{"command": "x", "env": map[string]any{"KEY": "${input:key}"}},
		"off":        map[string]any{"url": broken.URL + "/mcp", "disabled": true},
	})
	dir := t.TempDir()
	cmd, out := fleet(t, file, few, "--select=lifecycle.init.answered", "--json", filepath.Join(dir, "{server}.json"), "--trace", filepath.Join(dir, "{server}", "trace.jsonl"), "--html", filepath.Join(dir, "{server}.html"))
	_ = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != exitNotConformant {
		t.Errorf("exit code %d", code)
	}
	for file, want := range map[string]result.Overall{
		"good-2.json": result.Conformant, "Good.json": result.Conformant, "-..-broken.json": result.NotConformant, "absent.json": result.Incomplete,
	} {
		run, err := readResults(filepath.Join(dir, file))
		if err != nil || run.Verdict != want {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, row := range []string{"../broken   NOT CONFORMANT", "Good        CONFORMANT", "good        CONFORMANT", "absent      INCOMPLETE", "incomplete  NOT TESTED", "off         NOT TESTED      it is disabled in the file"} {
		if !strings.Contains(out.String(), row) {
			t.Errorf("the table does not say %q", row)
		}
	}
	written := []string{out.String()}
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if raw, err := os.ReadFile(path); err == nil {
			written = append(written, string(raw))
		}
		return err
	})
	if len(written) != 1+3*4 {
		t.Errorf("%d reports were written", len(written)-1)
	}
	if slices.ContainsFunc(written, func(text string) bool { return strings.Contains(text, secret) }) {
		t.Error("a report shows the secret")
	}
	leaked.Range(func(where, _ any) bool {
		t.Errorf("the secret: %v", where)
		return true
	})
	if t.Failed() {
		t.Log(out.String())
	}
}

// TestFleetInterrupted: one interrupt ends all, and each that was begun has its reports.
func TestFleetInterrupted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this system sends no interrupts")
	}
	asked := make(chan struct{}, 100)
	ended := make(chan struct{})
	silent := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	}))
	defer close(ended)
	entry := map[string]any{"url": silent.URL + "/mcp", "type": "http"}
	dir := t.TempDir()
	cmd, out := fleet(t, fleetFile(t, map[string]any{"a": entry, "b": entry, "c": entry}), "--jobs=2", "--timeout=100s", "--json", filepath.Join(dir, "{server}.json"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	<-asked
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitIncomplete {
		t.Errorf("exit code %d: %s", code, out)
	}
	for _, name := range []string{"a", "b"} {
		if run, err := readResults(filepath.Join(dir, name+".json")); err != nil || run.Verdict != result.Incomplete {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !strings.Contains(out.String(), "c  NOT TESTED      the run was interrupted") {
		t.Errorf("the table says of c something else: %s", out)
	}
}

func TestFleetUsage(t *testing.T) {
	file := fleetFile(t, map[string]any{"a": map[string]any{"command": "a"}, "b": map[string]any{"command": "b"}})
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"--json", "results.json"}, "--json: 2 servers are tested, and each needs a file of its own"},
		{[]string{"--json", "-"}, "each needs a file of its own"},
		{[]string{"--json", "{server}.x", "--html", "{server}.x"}, "name the same file"},
		{[]string{"--name", "a"}, "--name is about one server"},
		{[]string{"--bearer-env", "TOKEN"}, "--bearer-env is about one server"},
		{[]string{"--jobs", "-1"}, "--jobs must be at least 0"},
		{[]string{"--", "server"}, "COMMAND cannot be given with it"},
	} {
		cmd, out := fleet(t, file, tt.args...)
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != exitUsage || !strings.Contains(out.String(), tt.says) {
			t.Errorf("%q: exit code %d: %s", tt.args, code, out)
		}
	}
}

func TestFileNames(t *testing.T) {
	names := []string{"", ".", "..", "../../etc/passwd", "a", "A", "a-2", "a b", "a/b", "ä", `c:\x`, strings.Repeat("ü", 200)}
	files := fileNames(names)
	seen := make(map[string]bool)
	for i, file := range files {
		low := strings.ToLower(file)
		if seen[low] || file == "" || len(file) > longestName || filepath.Base(file) != file || strings.HasPrefix(file, ".") || strings.ContainsAny(file, `/\:`) {
			t.Errorf("%q becomes %q", names[i], file)
		}
		seen[low] = true
	}
}
