package suites_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

var updateFindings = flag.Bool("update-findings", false, "add new findings on the interop targets to the file, without their reasons")

const findingsFile = "../fixtures/targets/findings.yaml"

// finding is what a run finds on a real server, with why the specification
// bears it out.
type finding struct {
	ID      string         `yaml:"id"`
	Verdict result.Verdict `yaml:"verdict"`
	Why     string         `yaml:"why"`
}

// TestInterop runs the suites against real servers, installed by
//
//	go run ./.ci/targets install
//
// and compares what they find with what was confirmed by reading.
func TestInterop(t *testing.T) {
	if os.Getenv("MCPCONFORM_INTEROP") == "" {
		t.Skip("left out: real servers; install them with `go run ./.ci/targets install` and set MCPCONFORM_INTEROP=1")
	}
	if testing.Short() {
		t.Skip("left out with -short: real servers")
	}
	targets := buildTargets(t)
	recorded := make(map[string][]finding)
	raw, err := os.ReadFile(findingsFile)
	if err == nil {
		err = yaml.Unmarshal(raw, &recorded)
	}
	if err != nil && !*updateFindings {
		t.Fatal(err)
	}
	for _, name := range stdioServers(t, targets) {
		t.Run(name, func(t *testing.T) {
			run := runTarget(t, targets, name)
			var found []finding
			for _, q := range run.Requirements {
				if q.Verdict == result.Fail || q.Verdict == result.Warn || q.Verdict == result.Error {
					found = append(found, finding{ID: q.ID, Verdict: q.Verdict, Why: whyOf(recorded[name], q.ID)})
				}
			}
			for _, h := range run.Harness {
				t.Errorf("mcpconform itself: %s", h.Message)
			}
			if *updateFindings {
				recorded[name] = found
				return
			}
			if diff := cmp.Diff(recorded[name], found); diff != "" {
				t.Errorf("findings differ from %s (-recorded +found):\n%s", findingsFile, diff)
			}
			for _, f := range found {
				if f.Why == "" {
					t.Errorf("%s has no reason in %s", f.ID, findingsFile)
				}
			}
		})
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

func whyOf(recorded []finding, id string) string {
	for _, f := range recorded {
		if f.ID == id {
			return f.Why
		}
	}
	return ""
}

// buildTargets builds the command that knows the targets.
func buildTargets(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "targets")
	if out, err := exec.Command("go", "build", "-o", path, "../.ci/targets").CombinedOutput(); err != nil {
		t.Fatalf("build .ci/targets: %v\n%s", err, out)
	}
	return path
}

func stdioServers(t *testing.T, targets string) []string {
	t.Helper()
	cmd := exec.Command(targets, "list", "-kind", "server", "-transport", "stdio")
	cmd.Dir = ".."
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

func runTarget(t *testing.T, targets, name string) *result.Run {
	t.Helper()
	cmd := exec.Command(targets, "show", "-tmp", t.TempDir(), name, transport.NameStdio)
	cmd.Dir = ".."
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
	env := os.Environ()
	for k, v := range shown.Env {
		env = append(env, k+"="+v)
	}
	run, _, err := suites.Server(t.Context(), suites.Options{
		Dialer:   &transport.Stdio{Launcher: transport.Command{Args: shown.Command, Env: env}},
		Settings: check.Settings{CallTools: check.CallSafe},
	})
	if err != nil {
		t.Fatal(err)
	}
	if left := processesOf(shown.Command); left != "" {
		t.Errorf("left behind: %s", left)
	}
	t.Log(summary(run))
	return run
}

func summary(run *result.Run) string {
	c := run.Counts()
	return fmt.Sprintf("%s %s in %.1fs: %d pass, %d fail, %d warn, %d inconclusive, %d skip, %d error; %s",
		run.Target.Name, run.Target.Version, run.Seconds, c[result.Pass], c[result.Fail], c[result.Warn],
		c[result.Inconclusive], c[result.Skip], c[result.Error], run.Verdict)
}

// processesOf returns the command lines of processes that still run a command.
func processesOf(command []string) string {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return "" // no such folder on this system
	}
	want := strings.Join(command, "\x00") + "\x00"
	for _, e := range entries {
		if line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline"); err == nil && string(line) == want {
			return e.Name() + " " + strings.Join(command, " ")
		}
	}
	return ""
}
