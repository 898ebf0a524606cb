package suites_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/authserver"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/profile"
	"github.com/mcpconform/mcpconform/suites/result"
)

var (
	update = flag.Bool("update", false, "write docs/kill-matrix.md")
	only   = flag.String("fault", "", "try only the faults whose id begins so")
)

const matrixFile = "../docs/kill-matrix.md"

// The limits of an answer with which a fault is tried: most faults that show
// by silence show at once, and those that only seem to be silent because the
// machine is busy get another chance.
var timeouts = []time.Duration{400 * time.Millisecond, 4 * time.Second}

// options of the server under test. Its slow tool is not as slow, so that
// calling it without arguments does not hold up every run.
func serverOptions() server.Options {
	c := server.DefaultCatalogue()
	for _, tool := range c.Tools {
		if tool.Name() == "slow" {
			serve := tool.Call
			tool.Call = func(ctx context.Context, r *server.Request, arguments map[string]any) (any, *wire.Error) {
				if _, ok := arguments["seconds"]; !ok {
					arguments["seconds"] = json.Number("0.05")
				}
				return serve(ctx, r, arguments)
			}
		}
	}
	return server.Options{Catalogue: c}
}

// kill is what a run said about a faulty server.
type kill struct {
	fault mockserver.Fault
	by    []string // checks and rules that found it
	// problems say why the run is not as it should be.
	problems []string
}

// conduct runs the server suites over a transport against a server in this
// process.
func conduct(ctx context.Context, over string, o server.Options, timeout, exitWait time.Duration) (*result.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	dialer, stop, err := serve(ctx, over, o, exitWait)
	if err != nil {
		return nil, err
	}
	defer stop()
	settings := check.Settings{
		CallTools: check.CallAll, Purposes: purposes, Secrets: referenceProfile.Secrets, Personal: referenceProfile.Personal,
	}
	if o.HTTP.Protection != nil {
		settings.Authorization = authorization
	}
	run, _, err := suites.Server(ctx, suites.Options{Dialer: dialer, Settings: settings, Timeout: timeout})
	if err == nil && ctx.Err() != nil {
		err = errors.New("the run does not end")
	}
	return run, err
}

// serve makes a server ready to be dialled.
func serve(ctx context.Context, over string, o server.Options, exitWait time.Duration) (dialer transport.Dialer, stop func(), err error) {
	if over == transport.NameStdio {
		return &transport.Stdio{Launcher: transport.Func{Name: "mock server", Run: server.New(o).RunStdio}, ExitWait: exitWait}, func() {}, nil
	}
	l, err := server.Listen("127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	at := transport.Endpoint{URL: "http://" + l.Addr().String() + server.PathMCP}
	if o.HTTP.Protection != nil {
		as, err := authserver.New(authserver.Options{Issuer: "http://" + l.Addr().String()})
		if err != nil {
			return nil, nil, err
		}
		protection := *o.HTTP.Protection
		as.Protect(&protection, true)
		o.HTTP.Protection = &protection
		at.Header = http.Header{"Authorization": {"Bearer " + mockserver.GoodToken}}
	}
	s := server.New(o)
	ctx, cancel := context.WithCancel(ctx)
	var served sync.WaitGroup
	served.Go(func() { _ = s.HTTP().Serve(ctx, l) })
	stop = func() {
		cancel()
		served.Wait()
	}
	if over == transport.NameSSE {
		at.URL = "http://" + l.Addr().String() + server.PathSSE
		return &transport.SSE{Endpoint: at}, stop, nil
	}
	return &transport.HTTP{Endpoint: at}, stop, nil
}

// authorization is what a run is told of a protected mock server.
var authorization = check.Authorization{
	Expired: mockserver.ExpiredToken, OtherAudience: mockserver.AudienceToken, Narrow: mockserver.NarrowToken,
	NarrowRequest: check.RPC{Method: "tools/call", Params: map[string]any{"name": "test_simple_text", "arguments": map[string]any{}}},
}

// referenceProfile is the profile of the reference server. It is applied by
// hand, as a server with a fault may not be recognised.
var referenceProfile = func() profile.Profile {
	profiles, _ := profile.All() // its own tests see to errors
	i := slices.IndexFunc(profiles, func(p profile.Profile) bool { return strings.Contains(p.Name, "reference server") })
	return profiles[i]
}()

var purposes = func() map[string]check.Call {
	calls := make(map[string]check.Call)
	for purpose, call := range referenceProfile.Purposes {
		calls[purpose] = check.Call(call)
	}
	// Long enough to tell a cancelled call from one that goes on.
	calls["slow"] = check.Call{Tool: "slow", Arguments: map[string]any{"seconds": 1}}
	return calls
}()

// judged compares a run with what the fault announces.
func judged(f mockserver.Fault, run *result.Run) kill {
	k := kill{fault: f}
	killed := false
	for _, q := range run.Requirements {
		found := q.Verdict == result.Fail || q.Verdict == result.Warn || q.Verdict == result.Error
		switch {
		case q.ID == f.Requirement:
			killed = q.Verdict == want(f)
			if !killed {
				k.problems = append(k.problems, fmt.Sprintf("%s is %s, not %s: %s", q.ID, q.Verdict, want(f), why(q)))
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

func want(f mockserver.Fault) result.Verdict {
	if l := f.Level(); !f.Mild && (l == schema.Must || l == schema.MustNot) {
		return result.Fail
	}
	return result.Warn
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

// TestKillMatrix proves the checks and rules: each fault is caught, and
// nothing but what the fault breaks is found.
func TestKillMatrix(t *testing.T) {
	faults := mockserver.Catalogue()
	// With the race detector a run takes ten times as long, and it has nothing
	// more to find in the last fault than in the first.
	brief := testing.Short() || raceDetector
	if brief {
		for i := range len(faults) / 8 {
			faults[i] = faults[8*i]
		}
		faults = faults[:len(faults)/8]
	}
	if *only != "" {
		brief = true
		faults = slices.DeleteFunc(mockserver.Catalogue(), func(f mockserver.Fault) bool { return !strings.HasPrefix(f.ID, *only) })
	}
	kills := make([]kill, len(faults))
	done := make([]chan struct{}, len(faults))
	for i := range done {
		done[i] = make(chan struct{})
	}
	// A run spends most of its time waiting for nothing to happen, so that many
	// of them can go on at a time.
	var next atomic.Int64
	var workers sync.WaitGroup
	defer workers.Wait()
	for range 8 * runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(faults) {
					return
				}
				kills[i] = try(t.Context(), faults[i])
				close(done[i])
			}
		})
	}
	for i, f := range faults {
		t.Run(f.ID, func(t *testing.T) {
			<-done[i]
			if len(kills[i].problems) > 0 {
				// With many runs at a time an answer may come after its short
				// limit: what is wrong shows again with the machine to itself.
				workers.Wait()
				t.Logf("tried again because of %q", kills[i].problems)
				kills[i] = try(t.Context(), f)
			}
			for _, p := range kills[i].problems {
				t.Error(p)
			}
		})
	}
	if t.Failed() || brief {
		return
	}
	text := matrix(kills)
	if *update {
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
		t.Errorf("docs/kill-matrix.md is out of date; run go test ./suites -run TestKillMatrix -update (-file +now):\n%s", diff)
	}
}

// try runs the suites against a server with a fault.
func try(ctx context.Context, f mockserver.Fault) kill {
	var k kill
	for _, timeout := range timeouts {
		o := serverOptions()
		f.Apply(&o)
		wait := 100 * time.Millisecond
		if o.Behaviour.Stdio.Linger {
			wait = transport.ReasonableExit
		}
		over := transport.NameStdio
		if !f.Shows(over) {
			over = f.Transports[0]
		}
		run, err := conduct(ctx, over, o, timeout, wait)
		if err != nil {
			return kill{fault: f, problems: []string{err.Error()}}
		}
		if k = judged(f, run); len(k.problems) == 0 {
			break
		}
	}
	return k
}

var transports = []string{transport.NameStdio, transport.NameHTTP, transport.NameSSE}

// TestReferenceServerIsClean is the control of the kill matrix: without a
// fault nothing is found, and nothing that can be observed is left out.
func TestReferenceServerIsClean(t *testing.T) {
	for _, over := range transports {
		t.Run(over, func(t *testing.T) {
			run := reference(t, over)
			for _, q := range run.Requirements {
				if q.Verdict != result.Pass && q.Verdict != result.Skip {
					t.Errorf("%s is %s: %s", q.ID, q.Verdict, why(q))
				}
			}
			for _, h := range run.Harness {
				t.Errorf("a message of mcpconform is at fault: %s", h.Message)
			}
		})
	}
}

// reference returns the run against the server without a fault.
func reference(t *testing.T, over string) *result.Run {
	t.Helper()
	run, err := conduct(t.Context(), over, serverOptions(), 10*time.Second, transport.ReasonableExit)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// TestEveryRequirementIsProved wants a fault for each requirement that passes
// on the reference server: what no fault breaks may be a check that cannot fail.
func TestEveryRequirementIsProved(t *testing.T) {
	broken := make(map[string]bool)
	for _, f := range mockserver.Catalogue() {
		broken[f.Requirement] = true
	}
	excused := unproved(t)
	passed := make(map[string]bool)
	var all []result.Requirement
	for _, over := range transports {
		all = append(all, reference(t, over).Requirements...)
	}
	for _, q := range all {
		if q.Verdict != result.Pass || passed[q.ID] {
			continue
		}
		passed[q.ID] = true
		_, excepted := excused[q.ID]
		switch {
		case !broken[q.ID] && !excepted:
			t.Errorf("no fault proves %s (%s)", q.ID, strings.Join(q.Checks, ", "))
		case broken[q.ID] && excepted:
			t.Errorf("%s is proved by a fault: take it out of mockserver/unproved.txt", q.ID)
		}
	}
}

// unproved reads the requirements for which no fault is asked.
func unproved(t *testing.T) map[string]string {
	t.Helper()
	const file = "../mockserver/unproved.txt"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	excused := make(map[string]string)
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, reason, ok := strings.Cut(line, " ")
		if _, known := schema.Lookup(id); !known || !ok || strings.TrimSpace(reason) == "" {
			t.Errorf("%s: %q is no requirement with a reason", file, line)
		}
		excused[id] = strings.TrimSpace(reason)
	}
	return excused
}

// matrix renders the kill matrix.
func matrix(kills []kill) []byte {
	var b bytes.Buffer
	b.WriteString("# Kill matrix\n\n" +
		"Each fault of the mock server, the requirement that it breaks, and the checks and passive rules that catch it.\n" +
		"A fault that nothing catches fails the build, and so does a finding that a fault did not announce.\n" +
		"`mcpconform mock --fault ID` serves a fault. Written by `go test ./suites -run TestKillMatrix -update`.\n")
	page := ""
	for _, k := range byPage(kills) {
		if p := k.fault.Page(); p != page {
			page = p
			fmt.Fprintf(&b, "\n## %s\n\n| fault | on the wire | requirement | level | caught by |\n|---|---|---|---|---|\n", page)
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s | %s |\n", k.fault.ID, cell(k.fault.Summary), k.fault.Requirement, k.fault.Level(),
			cell(strings.Join(k.by, ", ")))
	}
	return b.Bytes()
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// byPage orders kills as the catalogue of requirements has the pages.
func byPage(kills []kill) []kill {
	catalogue, err := schema.Catalogue()
	if err != nil {
		return kills
	}
	order := make(map[string]int)
	for i, r := range catalogue {
		if _, ok := order[r.Page]; !ok {
			order[r.Page] = i
		}
	}
	sorted := slices.Clone(kills)
	slices.SortStableFunc(sorted, func(a, b kill) int { return order[a.fault.Page()] - order[b.fault.Page()] })
	return sorted
}
