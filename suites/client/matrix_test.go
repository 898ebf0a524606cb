package client_test

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/mockserver/mockclient"
	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

var updateMatrix = flag.Bool("update", false, "write docs/kill-matrix-clients.md")

const (
	matrixFile   = "../../docs/kill-matrix-clients.md"
	unprovedFile = "../../mockserver/mockclient/unproved.txt"
)

// kill is what a run said about a faulty client.
type kill struct {
	fault    mockclient.Fault
	by       []string
	problems []string
}

// limits are how long a faulty client may take in a scenario. Most faults that
// show by silence show at once; what only seems silent on a busy machine gets
// another chance.
var limits = []time.Duration{3 * time.Second, 20 * time.Second}

// TestKillMatrix proves the scenarios and rules: each fault of a client is
// caught, and nothing but what the fault breaks is found.
func TestKillMatrix(t *testing.T) {
	faults := mockclient.Catalogue()
	brief := testing.Short() || raceDetector
	if brief {
		for i := range len(faults) / 8 {
			faults[i] = faults[8*i]
		}
		faults = faults[:len(faults)/8]
	}
	kills := make([]kill, len(faults))
	done := make([]chan struct{}, len(faults))
	for i := range done {
		done[i] = make(chan struct{})
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	defer workers.Wait()
	for range 4 * runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(faults); i = int(next.Add(1)) - 1 {
				kills[i] = try(t, faults[i])
				close(done[i])
			}
		})
	}
	for i, f := range faults {
		t.Run(f.ID, func(t *testing.T) {
			<-done[i]
			for _, p := range kills[i].problems {
				t.Error(p)
			}
		})
	}
	if t.Failed() || brief {
		return
	}
	text := matrix(kills)
	if *updateMatrix {
		if err := os.WriteFile(matrixFile, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	written, err := os.ReadFile(matrixFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(written), string(text)); diff != "" {
		t.Errorf("docs/kill-matrix-clients.md is out of date; run go test ./suites/client -run TestKillMatrix -update (-file +now):\n%s", diff)
	}
}

// try plays the scenario of a fault against a client with it.
func try(t *testing.T, f mockclient.Fault) kill {
	var k kill
	for _, limit := range limits {
		run, err := faultyRun(t.Context(), f, limit)
		if err != nil {
			return kill{fault: f, problems: []string{err.Error()}}
		}
		if k = judged(f, run); len(k.problems) == 0 {
			break
		}
	}
	return k
}

func faultyRun(ctx context.Context, f mockclient.Fault, limit time.Duration) (*result.Run, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	scenario := f.Scenario
	if scenario == "" {
		scenario = client.Baseline
	}
	o := suites.ClientOptions{
		Transport: f.Transport(), Scenarios: []string{scenario}, Timeout: limit, Bridge: []string{self},
		Launch: func(p client.Place) (transport.Process, error) {
			return transport.Func{Name: "faulty client", Run: func(ctx context.Context, _ io.Reader, _, _ io.Writer) error {
				c := reference.Standalone{URL: p.URL, Legacy: p.Transport == transport.NameSSE, Timeout: limit / 2, Act: p.Act}
				if p.Transport == transport.NameStdio {
					c.Launcher = transport.Func{Name: p.Scenario, Run: p.Serve}
				}
				f.Apply(&c)
				return c.Run(ctx)
			}}.Launch()
		},
	}
	if strings.HasPrefix(scenario, "stdio/") {
		// Signals can be sent to a process only.
		o.Launch = client.Command{Args: []string{self}, Env: append(os.Environ(), role+"=client", faulty+"="+f.ID)}.Launch
	}
	run, _, err := suites.Client(ctx, o)
	return run, err
}

// judged compares a run with what the fault announces.
func judged(f mockclient.Fault, run *result.Run) kill {
	k := kill{fault: f}
	want := result.Warn
	if l := f.Level(); !f.Mild && (l == schema.Must || l == schema.MustNot) {
		want = result.Fail
	}
	for _, q := range run.Requirements {
		found := q.Verdict == result.Fail || q.Verdict == result.Warn || q.Verdict == result.Error
		switch {
		case q.ID == f.Requirement:
			if q.Verdict != want {
				k.problems = append(k.problems, fmt.Sprintf("%s is %s, not %s: %s", q.ID, q.Verdict, want, why(q)))
			}
			for _, finding := range q.Findings {
				if !slices.Contains(k.by, finding.Check) {
					k.by = append(k.by, finding.Check)
				}
			}
		case found && !slices.Contains(f.Collateral, q.ID):
			k.problems = append(k.problems, fmt.Sprintf("%s is %s: %s", q.ID, q.Verdict, why(q)))
		}
	}
	for _, h := range run.Harness {
		k.problems = append(k.problems, "a message of mcpconform is at fault: "+h.Message)
	}
	slices.Sort(k.by)
	return k
}

func why(q result.Requirement) string {
	if len(q.Findings) == 0 {
		return q.Reason
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", q.Findings[0].Check, q.Findings[0].Message)
	for _, e := range q.Findings[0].Evidence {
		fmt.Fprintf(&b, "\n        %s %s %.300s", e.Kind, e.From, e.Text)
	}
	return b.String()
}

// TestEveryRequirementIsProved wants a fault for each requirement that passes
// on the reference client: what no fault breaks may be a rule that cannot fail.
func TestEveryRequirementIsProved(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: the whole suite on each transport")
	}
	broken := make(map[string]bool)
	for _, f := range mockclient.Catalogue() {
		broken[f.Requirement] = true
		if !slices.ContainsFunc(client.Scenarios(), func(s *client.Scenario) bool {
			return s.Applies(f.Transport()) && (s.Name == f.Scenario || f.Scenario == "")
		}) {
			t.Errorf("%s: there is no scenario %q over %s", f.ID, f.Scenario, f.Transport())
		}
	}
	excused := unproved(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	passed := make(map[string]bool)
	for _, over := range []string{transport.NameHTTP, transport.NameSSE, transport.NameStdio} {
		o := suites.ClientOptions{Transport: over, Timeout: 20 * time.Second, Bridge: []string{self}}
		o.Launch = func(p client.Place) (transport.Process, error) { return suites.ReferenceClient(p, answerTime).Launch() }
		if over == transport.NameStdio {
			o.Launch = client.Command{Args: []string{self}, Env: append(os.Environ(), role+"=client")}.Launch
		}
		for _, q := range conduct(t, o).Requirements {
			passed[q.ID] = passed[q.ID] || q.Verdict == result.Pass
		}
	}
	for _, q := range slices.Sorted(keysOf(passed)) {
		_, excepted := excused[q]
		switch {
		case !passed[q]:
		case provedByFlow()[q]:
		case !broken[q] && !excepted:
			t.Errorf("no fault proves %s", q)
		case broken[q] && excepted:
			t.Errorf("%s is proved by a fault: take it out of %s", q, unprovedFile)
		}
	}
}

func keysOf(m map[string]bool) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// unproved reads the requirements for which no fault is asked.
func unproved(t *testing.T) map[string]string {
	t.Helper()
	f, err := os.Open(unprovedFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	excused := make(map[string]string)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, reason, ok := strings.Cut(line, " ")
		if _, known := schema.Lookup(id); !known || !ok {
			t.Errorf("%s: %q is no requirement with a reason", unprovedFile, line)
		}
		excused[id] = reason
	}
	return excused
}

// matrix renders the kill matrix.
func matrix(kills []kill) []byte {
	order := make(map[string]int)
	if catalogue, err := schema.Catalogue(); err == nil {
		for i, r := range slices.Backward(catalogue) {
			order[r.Page] = i
		}
	}
	slices.SortStableFunc(kills, func(a, b kill) int { return order[a.fault.Page()] - order[b.fault.Page()] })
	var b bytes.Buffer
	b.WriteString("# Kill matrix of clients\n\n" +
		"Each fault of the mock client, the requirement that it breaks, the scenario in which it shows, and the scenarios and\n" +
		"passive rules that catch it. A fault that nothing catches fails the build, and so does a finding that a fault did not\n" +
		"announce. `mockserver/mockclient/unproved.txt` has the requirements that no fault proves, with the reasons.\n" +
		"`mcpconform mock client --fault ID URL` runs a faulty client. Faults of servers are in `kill-matrix.md`. Written by\n" +
		"`go test ./suites/client -run TestKillMatrix -update`.\n")
	page := ""
	for _, k := range kills {
		if p := k.fault.Page(); p != page {
			page = p
			fmt.Fprintf(&b, "\n## %s\n\n| fault | on the wire | requirement | level | scenario | caught by |\n|---|---|---|---|---|---|\n", page)
		}
		scenario := k.fault.Scenario
		if scenario == "" {
			scenario = client.Baseline
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s | %s | %s |\n", k.fault.ID, strings.ReplaceAll(k.fault.Summary, "|", `\|`), k.fault.Requirement,
			k.fault.Level(), scenario, strings.Join(k.by, ", "))
	}
	return b.Bytes()
}
