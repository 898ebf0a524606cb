package suites_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

var updateFindings = flag.Bool("update-findings", false, "write the findings on the interop targets, without reasons for new ones")

const findingsFile = "../fixtures/targets/findings.yaml"

// findings is the content of findings.yaml: what runs find on real servers.
type findings struct {
	// Reasons say for each requirement why the text bears its findings out.
	Reasons map[string]string `yaml:"reasons"`
	// Timing lists requirements whose findings depend on which of two things
	// happens first in a target; they may come or not.
	Timing []string `yaml:"timing"`
	// Targets holds, by target and transport, the verdicts that are not good.
	Targets map[string]map[string]result.Verdict `yaml:"targets"`
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
	var known findings
	raw, err := os.ReadFile(findingsFile)
	if err == nil {
		err = yaml.Unmarshal(raw, &known)
	}
	if err != nil && !*updateFindings {
		t.Fatal(err)
	}
	if known.Targets == nil {
		known.Targets = make(map[string]map[string]result.Verdict)
	}
	for _, over := range []string{transport.NameStdio, transport.NameHTTP, transport.NameSSE} {
		for _, target := range servers(t, targets, over) {
			key := target + " " + over
			t.Run(key, func(t *testing.T) {
				found, odd := known.compare(key, runTarget(t, targets, target, over))
				if len(odd) > 0 && !*updateFindings {
					// What a busy machine brings about does not come twice.
					_, again := known.compare(key, runTarget(t, targets, target, over))
					for what, detail := range odd {
						if _, still := again[what]; still {
							t.Errorf("%s%s", what, detail)
						} else {
							t.Logf("once only: %s%s", what, detail)
						}
					}
				}
				known.Targets[key] = found
			})
		}
	}
	if *updateFindings {
		raw, err := yaml.Marshal(known)
		if err == nil {
			err = os.WriteFile(findingsFile, raw, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// compare returns the verdicts of a run that are not good, and what is odd
// about them, with its detail.
func (k *findings) compare(key string, run *result.Run) (found map[string]result.Verdict, odd map[string]string) {
	found, odd = make(map[string]result.Verdict), make(map[string]string)
	known := maps.Clone(k.Targets[key])
	for _, h := range run.Harness {
		odd["mcpconform itself: "+h.Message] = ""
	}
	if run.Verdict == result.Incomplete {
		odd["the run is incomplete: "+run.Reason] = ""
	}
	for _, q := range run.Requirements {
		if q.Verdict != result.Fail && q.Verdict != result.Warn && q.Verdict != result.Error {
			continue
		}
		if k.Reasons[q.ID] == "" {
			odd[fmt.Sprintf("%s: no reason stands in %s", q.ID, findingsFile)] = shown(q)
		}
		if slices.Contains(k.Timing, q.ID) {
			continue
		}
		found[q.ID] = q.Verdict
		if known[q.ID] != q.Verdict {
			odd[fmt.Sprintf("%s is %s, %s has %q: ", q.ID, q.Verdict, findingsFile, known[q.ID])] = shown(q)
		}
		delete(known, q.ID)
	}
	for id, v := range known {
		odd[fmt.Sprintf("%s is no longer %s", id, v)] = ""
	}
	return found, odd
}

func shown(q result.Requirement) string {
	var b strings.Builder
	for _, f := range q.Findings {
		fmt.Fprintf(&b, "\n  %s: %s", f.Check, f.Message)
		for _, e := range f.Evidence {
			fmt.Fprintf(&b, "\n    %s %s %s", e.From, e.Kind, e.Text)
		}
	}
	return b.String() + q.Reason
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

func servers(t *testing.T, targets, over string) []string {
	t.Helper()
	cmd := exec.Command(targets, "list", "-kind", "server", "-transport", over)
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
		t.Fatalf("there are no targets over %s", over)
	}
	return names
}

// shownTarget is what "targets show" prints.
type shownTarget struct {
	Command []string          `json:"command"`
	Env     map[string]string `json:"env"`
	URL     string            `json:"url"`
}

func runTarget(t *testing.T, targets, name, over string) *result.Run {
	t.Helper()
	cmd := exec.Command(targets, "show", "-tmp", t.TempDir(), "-port", freePort(t), name, over)
	cmd.Dir = ".."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("show %s: %v\n%s", name, err, stderr.String())
	}
	var target shownTarget
	if err := json.Unmarshal(out, &target); err != nil {
		t.Fatal(err)
	}
	env := os.Environ()
	for k, v := range target.Env {
		env = append(env, k+"="+v)
	}
	o := suites.Options{Settings: check.Settings{CallTools: check.CallSafe}, Trace: wire.NewTrace(wire.DefaultLimits)}
	command := transport.Command{Args: target.Command, Env: env}
	if over == transport.NameStdio {
		o.Dialer = &transport.Stdio{Launcher: command}
	} else {
		server, err := transport.Start{
			Command: command, Endpoint: transport.Endpoint{URL: target.URL}, Log: o.Trace.Connect(over, "server process"),
		}.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer server.Stop(t.Context())
		if over == transport.NameHTTP {
			o.Dialer = &transport.HTTP{Endpoint: server.Endpoint}
		} else {
			o.Dialer = &transport.SSE{Endpoint: server.Endpoint}
		}
	}
	run, _, err := suites.Server(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if over == transport.NameStdio {
		if left := processesOf(target.Command); left != "" {
			t.Errorf("left behind: %s", left)
		}
	}
	t.Log(summary(run))
	return run
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func summary(run *result.Run) string {
	c := run.Counts()
	return fmt.Sprintf("%s %s in %.1fs: %d pass, %d fail, %d warn, %d inconclusive, %d skip, %d error; %s %s",
		run.Target.Name, run.Target.Version, run.Seconds, c[result.Pass], c[result.Fail], c[result.Warn],
		c[result.Inconclusive], c[result.Skip], c[result.Error], run.Verdict, run.Reason)
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
