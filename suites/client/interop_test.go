package client_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

var updateFindings = flag.Bool("update-findings", false, "add new findings on the interop targets to the file, without their reasons")

const findingsFile = "../../fixtures/targets/client-findings.yaml"

// finding is what a run finds on a real client, with why the specification
// bears it out.
type finding struct {
	ID      string         `yaml:"id"`
	Verdict result.Verdict `yaml:"verdict"`
	Why     string         `yaml:"why"`
}

// TestInterop runs the scenarios against real clients, installed by
//
//	go run ./.ci/targets install
//
// and compares what they find with what was confirmed by reading.
func TestInterop(t *testing.T) {
	if os.Getenv("MCPCONFORM_INTEROP_CLIENTS") == "" {
		t.Skip("left out: real clients, which take some minutes; install them with `go run ./.ci/targets install` and set MCPCONFORM_INTEROP_CLIENTS=1")
	}
	if testing.Short() {
		t.Skip("left out with -short: real clients")
	}
	targets := filepath.Join(t.TempDir(), "targets")
	bridge := filepath.Join(t.TempDir(), "mcpconform")
	for path, source := range map[string]string{targets: "../../.ci/targets", bridge: "../../cmd/mcpconform"} {
		if out, err := exec.Command("go", "build", "-o", path, source).CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", source, err, out)
		}
	}
	recorded := make(map[string][]finding)
	raw, err := os.ReadFile(findingsFile)
	if err == nil {
		err = yaml.Unmarshal(raw, &recorded)
	}
	if err != nil && !*updateFindings {
		t.Fatal(err)
	}
	reasons := make(map[string]string)
	for name, findings := range recorded {
		for _, f := range findings {
			reasons[name+" "+f.ID] = f.Why
		}
	}
	for _, over := range []string{transport.NameHTTP, transport.NameStdio, transport.NameSSE} {
		for _, name := range realClients(t, targets, over) {
			key := name + "/" + over
			t.Run(key, func(t *testing.T) {
				run := conduct(t, launching(t, targets, bridge, name, over))
				var found []finding
				for _, q := range run.Requirements {
					if q.Verdict == result.Fail || q.Verdict == result.Warn || q.Verdict == result.Error {
						found = append(found, finding{ID: q.ID, Verdict: q.Verdict, Why: reasons[key+" "+q.ID]})
					}
				}
				for _, h := range run.Harness {
					t.Errorf("mcpconform itself: %s", h.Message)
				}
				if run.Verdict == result.Incomplete {
					t.Errorf("the run is incomplete: %s", run.Reason)
				}
				if *updateFindings {
					recorded[key] = found
					if dir := os.Getenv("MCPCONFORM_INTEROP_REPORTS"); dir != "" {
						writeRun(t, filepath.Join(dir, strings.ReplaceAll(key, "/", "_")+".json"), run)
					}
					return
				}
				if diff := cmp.Diff(recorded[key], found); diff != "" {
					t.Errorf("findings differ from %s (-recorded +found):\n%s", findingsFile, diff)
				}
				for _, f := range found {
					if f.Why == "" {
						t.Errorf("%s has no reason in %s", f.ID, findingsFile)
					}
				}
			})
		}
	}
	if *updateFindings {
		raw, err := yaml.Marshal(recorded)
		if err == nil {
			err = os.WriteFile(findingsFile, raw, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func writeRun(t *testing.T, path string, run *result.Run) {
	t.Helper()
	raw, err := json.Marshal(run)
	if err == nil {
		err = os.WriteFile(path, raw, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func realClients(t *testing.T, targets, over string) []string {
	t.Helper()
	cmd := exec.Command(targets, "list", "-kind", "client", "-transport", over)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("list the targets: %v", err)
	}
	var names []string
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) > 0 {
			names = append(names, fields[0])
		}
	}
	if len(names) == 0 {
		t.Fatal("there are no targets")
	}
	return names
}

func launching(t *testing.T, targets, bridge, name, over string) suites.ClientOptions {
	t.Helper()
	cmd := exec.Command(targets, "show", "-tmp", t.TempDir(), "-url", "{url}", name, over, "{command}")
	cmd.Dir = "../.."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("show %s: %v\n%s", name, err, stderr.String())
	}
	var shown struct {
		Command []string          `json:"command"`
		Env     map[string]string `json:"env"`
	}
	if err := json.Unmarshal(out, &shown); err != nil {
		t.Fatal(err)
	}
	c := client.Command{Args: shown.Command, Env: os.Environ()}
	for k, v := range shown.Env {
		c.Env = append(c.Env, k+"="+v)
		c.Given = append(c.Given, k)
	}
	return suites.ClientOptions{
		Transport: over, Launch: c.Launch, Bridge: []string{bridge, "bridge"}, Timeout: 20 * time.Second,
		Target: result.Target{Command: shown.Command},
	}
}
