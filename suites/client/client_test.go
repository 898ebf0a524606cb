package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/memory"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/mockserver/mockclient"
	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/client"
	clients "github.com/mcpconform/mcpconform/suites/internal/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

// role makes the test binary take a part in a test: the server process of a
// client over stdio, or the client.
const role = "MCPCONFORM_TEST_ROLE"

// faulty names the fault of that client.
const faulty = "MCPCONFORM_TEST_FAULT"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "bridge":
		n := len(os.Args)
		code, err := client.Bridge(context.Background(), os.Args[n-2], os.Args[n-1], os.Stdin, os.Stdout, os.Stderr)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	case "client":
		c := reference.Standalone{
			Launcher: transport.Command{Args: os.Args[1:], Env: append(os.Environ(), role+"=bridge")}, Timeout: answerTime, UserActions: os.Getenv("MCPCONFORM_ACT"),
		}
		if fault, ok := mockclient.Find(os.Getenv(faulty)); ok {
			fault.Apply(&c)
		}
		err := c.Run(context.Background())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// answerTime is how long the clients of these tests wait for an answer.
const answerTime = 3 * time.Second

// calmTime is the same for clients that are to wait for nothing in vain: it
// tells only on a machine that is very busy.
const calmTime = 20 * time.Second

// conducted conducts a run of clients that are in this program, in virtual time.
func conducted(t *testing.T, s suites.ClientScenarios, o suites.Options) (run *result.Run) {
	t.Helper()
	virtual.Test(t, func(t *testing.T) {
		s.Network = new(memory.Network)
		run = conduct(t, s, o)
	})
	return run
}

// TestCombinedLaunchesSpareOthers: a client that does well is not launched for the scenarios
// of a combined launch one by one.
func TestCombinedLaunchesSpareOthers(t *testing.T) {
	brief.WholeRuns(t)
	for _, over := range []string{transport.NameHTTP, transport.NameSSE} {
		t.Run(over, func(t *testing.T) {
			var mu sync.Mutex
			launched := make(map[string]int)
			run := conducted(t, suites.ClientScenarios{Transport: over, Launch: func(p client.Endpoint) (transport.Process, error) {
				mu.Lock()
				defer mu.Unlock()
				launched[p.Scenario]++
				return suites.ReferenceClient(p, answerTime).Launch()
			}}, suites.Options{Timeout: 20 * time.Second})
			if run.Verdict != result.Conformant {
				t.Errorf("the run is %s: %s", run.Verdict, run.Reason)
			}
			for _, s := range clients.Scenarios() {
				if !s.Applies(over) {
					continue
				}
				// At a server of an older version the client leaves before it meets the company.
				alone := s.Name == "faults/lists" || !slices.ContainsFunc(together(s.Name), func(other string) bool {
					return other != s.Name && slices.ContainsFunc(clients.Scenarios(), func(o *client.Scenario) bool { return o.Name == other && o.Applies(over) })
				})
				got := launched[s.Name]
				if got == 0 && s.Excused != nil {
					continue // what the client did in another scenario spares the launch
				}
				if (got == 1) != alone || got > 1 {
					t.Errorf("the client was launched %d times for %s alone", got, s.Name)
				}
			}
		})
	}
}

// together returns the scenarios of a scenario's combined launch, or the scenario alone.
func together(scenario string) []string {
	for _, j := range clients.CombinedLaunches() {
		if slices.Contains(j.Scenarios, scenario) {
			return j.Scenarios
		}
	}
	return []string{scenario}
}

// lister lists tools and, but for the scenarios in which it forgets them, prompts.
func lister(forgets func(scenario string) bool) func(ctx context.Context, p client.Endpoint) error {
	return func(ctx context.Context, p client.Endpoint) error {
		s, err := begin(ctx, p, answerTime)
		if err != nil {
			return err
		}
		defer func() { _ = s.Close(context.WithoutCancel(ctx)) }()
		if _, err := s.Call(ctx, "tools/list", nil); err != nil || forgets(p.Scenario) {
			return err
		}
		_, err = s.Call(ctx, "prompts/list", nil)
		return err
	}
}

// TestCombinedLaunchesHideNothing: a client that does without a feature in a combined launch, although it ends
// well, runs its scenarios one by one.
func TestCombinedLaunchesHideNothing(t *testing.T) {
	var mu sync.Mutex
	launched := make(map[string]int)
	scenarios := []string{"faults/responses", "faults/ids"}
	conducted(t, suites.ClientScenarios{Scenarios: scenarios, Launch: func(p client.Endpoint) (transport.Process, error) {
		mu.Lock()
		defer mu.Unlock()
		launched[p.Scenario]++
		return inProcess(lister(func(scenario string) bool { return strings.HasPrefix(scenario, "together/") }))(p)
	}}, suites.Options{Timeout: 20 * time.Second})
	for _, name := range append(scenarios, "together/responses") {
		if launched[name] != 1 {
			t.Errorf("the client was launched %d times for %s", launched[name], name)
		}
	}
}

// counting returns a launch that is counted by the scenario.
func counting(launch func(client.Endpoint) (transport.Process, error)) (counted func(client.Endpoint) (transport.Process, error), count func(scenario string) int) {
	var mu sync.Mutex
	launched := make(map[string]int)
	return func(p client.Endpoint) (transport.Process, error) {
			mu.Lock()
			launched[p.Scenario]++
			mu.Unlock()
			return launch(p)
		}, func(scenario string) int {
			mu.Lock()
			defer mu.Unlock()
			return launched[scenario]
		}
}

// TestFailureAtTheEnd: a client that does everything in a combined launch that the passive rules alone judge has met all of it,
// even if it then ends with a failure.
func TestFailureAtTheEnd(t *testing.T) {
	for _, early := range []bool{false, true} {
		launch, count := counting(inProcess(func(ctx context.Context, p client.Endpoint) error {
			combined := strings.HasPrefix(p.Scenario, "together/")
			err := lister(func(string) bool { return early && combined })(ctx, p)
			if combined {
				return errors.New("the client fails")
			}
			return err
		}))
		conducted(t, suites.ClientScenarios{Scenarios: []string{"faults/responses", "faults/ids"}, Launch: launch}, suites.Options{Timeout: 20 * time.Second})
		if alone := count("faults/ids") > 0; count("together/responses") != 1 || alone != early {
			t.Errorf("stopped early: %v; launched together %d times, and alone: %v", early, count("together/responses"), alone)
		}
	}
}

// TestMootScenarios: a client that waits for a tool call for ever is not launched to wait for a call with progress. A
// client that does not replace an ended server process is not launched to lose another one.
func TestMootScenarios(t *testing.T) {
	waits := inProcess(func(ctx context.Context, p client.Endpoint) error {
		s, err := begin(ctx, p, calmTime)
		if err != nil {
			return err
		}
		defer func() { _ = s.Close(context.WithoutCancel(ctx)) }()
		_, err = s.Call(ctx, "tools/call", map[string]any{"name": "test_simple_text"})
		return err
	})
	leaves := byHand(func(send func(string), _ func(func())) func(*wire.Message) bool {
		return func(m *wire.Message) (leaves bool) {
			if m.ID.Key() == "1" {
				send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
				send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
			}
			return m.ID.Key() == "2"
		}
	})
	for _, test := range []struct {
		over, first, then, requirement, why string
		launch                              func(client.Endpoint) (transport.Process, error)
		gives                               time.Duration
		excused                             bool
	}{
		{transport.NameHTTP, "time/silent-tool", "time/endless-progress", "lifecycle.timeout.maximum", "without answer or progress", waits, 0, true},
		{transport.NameHTTP, "time/silent-tool", "time/endless-progress", "lifecycle.timeout.maximum", "", waits, 5 * time.Second, false},
		{transport.NameHTTP, "time/silent-tool", "time/endless-progress", "lifecycle.timeout.maximum", "called no tool", inProcess(handshakeOnly), 0, true},
		{transport.NameStdio, "stdio/exits-early", "lists/lost-session", "pagination.client.cursor-not-persisted", "does not start the server again", leaves, 0, true},
	} {
		launch, count := counting(test.launch)
		run := conducted(t, suites.ClientScenarios{
			Transport: test.over, Scenarios: []string{test.first, test.then}, Bridge: []string{"bridge"}, Launch: launch, GivesUpAfter: test.gives,
		}, suites.Options{Timeout: calmTime})
		if excused := count(test.then) == 0; count(test.first) == 0 || excused != test.excused {
			t.Errorf("%s was not run after %s: %v", test.then, test.first, excused)
		}
		if q := requirement(t, run, test.requirement); !strings.Contains(q.Reason, test.why) {
			t.Errorf("%s is %s: %s", q.ID, q.Verdict, q.Reason)
		}
	}
}

// TestCombinedLaunchInHalves: where a client does not come through a combined launch, and nothing is found, it is launched for either
// half.
func TestCombinedLaunchInHalves(t *testing.T) {
	var mu sync.Mutex
	launched := make(map[string]int)
	conducted(t, suites.ClientScenarios{Scenarios: together("lists/pages"), Launch: func(p client.Endpoint) (transport.Process, error) {
		mu.Lock()
		launched[p.Scenario]++
		mu.Unlock()
		return inProcess(lister(func(scenario string) bool {
			return scenario == "together/pages" || strings.HasPrefix(scenario, "together/pages/first")
		}))(p)
	}}, suites.Options{Timeout: 20 * time.Second})
	for name, want := range map[string]int{"together/pages/first": 1, "together/pages/second": 1, "lists/pages": 1, "http/sse-marked": 0} {
		if launched[name] != want {
			t.Errorf("the client was launched %d times for %s, not %d times", launched[name], name, want)
		}
	}
}

// TestOneSessionIsEnough: a client that goes on in a lost session is not launched to lose another one.
func TestOneSessionIsEnough(t *testing.T) {
	fault, ok := mockclient.Find("http.lost-session-used")
	if !ok {
		t.Fatal("the fault is gone")
	}
	var again atomic.Bool
	run := conducted(t, suites.ClientScenarios{Scenarios: []string{"http/lost-session", "http/lost-again"}, Launch: func(p client.Endpoint) (transport.Process, error) {
		if p.Scenario == "http/lost-again" {
			again.Store(true)
		}
		return inProcess(func(ctx context.Context, p client.Endpoint) error {
			return standalone(p, func(c *reference.Standalone) { fault.Apply(c) }).Run(ctx)
		})(p)
	}}, suites.Options{Timeout: 20 * time.Second})
	if again.Load() || verdicts(run)[fault.Requirement] == "" {
		t.Errorf("the client was launched for the second loss: %v; found: %v", again.Load(), verdicts(run))
	}
}

// TestCombinedLaunchWithoutCulprit: where one scenario of a combined launch stops the client, the others are
// run together once more, and only that one alone.
func TestCombinedLaunchWithoutCulprit(t *testing.T) {
	const culprit = "http/sse-answers"
	fault, ok := mockclient.Find("http.stream-type-death")
	if !ok {
		t.Fatal("the fault is gone")
	}
	var mu sync.Mutex
	launched := make(map[string]int)
	run := conducted(t, suites.ClientScenarios{Scenarios: together(culprit), Launch: func(p client.Endpoint) (transport.Process, error) {
		mu.Lock()
		launched[p.Scenario]++
		mu.Unlock()
		return inProcess(func(ctx context.Context, p client.Endpoint) error {
			c := reference.Standalone{URL: p.URL, Dial: p.Dial, Timeout: answerTime, UserActions: p.UserActions}
			fault.Apply(&c)
			return c.Run(ctx)
		})(p)
	}}, suites.Options{Timeout: 20 * time.Second})
	if found := verdicts(run); found[fault.Requirement] == "" {
		t.Errorf("the fault is not found: %v", found)
	}
	for _, name := range append(together(culprit), "together/pages", "together/pages/rest") {
		ran := launched[name] > 0
		if want := name == culprit || strings.HasPrefix(name, "together/"); ran != want {
			t.Errorf("the client was launched %d times for %s", launched[name], name)
		}
	}
}

// TestPassesAlone: what is found while other clients run, and not when the client is launched alone, does not count.
// A note tells of it.
func TestPassesAlone(t *testing.T) {
	const scenario = "http/sse-answers"
	fault, ok := mockclient.Find("http.stream-type-death")
	if !ok {
		t.Fatal("the fault is gone")
	}
	var launched atomic.Int64
	run := conducted(t, suites.ClientScenarios{Scenarios: []string{scenario}, Launch: inProcess(func(ctx context.Context, p client.Endpoint) error {
		c := standalone(p, nil)
		if p.Scenario == scenario && launched.Add(1) == 1 {
			fault.Apply(c)
		}
		return c.Run(ctx)
	})}, suites.Options{Timeout: 20 * time.Second})
	q := requirement(t, run, fault.Requirement)
	const want = "it failed while other clients ran, but passed when it ran alone: "
	if launched.Load() != 2 || q.Verdict != result.Pass || !slices.ContainsFunc(q.Notes, func(n string) bool { return strings.HasPrefix(n, want) }) {
		t.Errorf("after %d launches %s is %s, with the notes %q", launched.Load(), q.ID, q.Verdict, q.Notes)
	}
}

func conduct(t *testing.T, s suites.ClientScenarios, o suites.Options) *result.Run {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
	defer cancel()
	run, trace, err := suites.Run(ctx, s, o)
	if err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatal("the run does not end")
	}
	for _, l := range trace.Logs() {
		for _, e := range l.Events() {
			for _, id := range e.Deliberate {
				if _, known := schema.Default().Lookup(id); !known && id != "*" {
					t.Fatalf("%s: a message breaks %s on purpose, which is no requirement", l.Label, id)
				}
			}
		}
	}
	return run
}

// TestChoice wants the reference client to be found conformant with whatever members of
// families are drawn for it, the same with one seed and others with another.
func TestChoice(t *testing.T) {
	ids := func(o suites.Options) (sent []string) {
		o.Timeout = 20 * time.Second
		virtual.Test(t, func(t *testing.T) {
			run, trace, err := suites.Run(t.Context(), suites.ClientScenarios{
				Scenarios: []string{"exchange/requests"}, Network: new(memory.Network),
				Launch: func(p client.Endpoint) (transport.Process, error) {
					return suites.ReferenceClient(p, answerTime).Launch()
				},
			}, o)
			if err != nil {
				t.Fatal(err)
			}
			if run.Seed != o.Seed || run.Budget() != o.Budget || run.Verdict == result.NotConformant {
				t.Errorf("seed %d, %s: %s %v", run.Seed, run.Budget(), run.Verdict, verdicts(run))
			}
			for _, l := range trace.Logs() {
				for _, e := range l.Events() {
					if e.From == wire.Server && e.Msg != nil && e.Msg.Method == "ping" {
						sent = append(sent, e.Msg.ID.Key())
					}
				}
			}
		})
		slices.Sort(sent)
		return slices.Compact(sent)
	}
	one, other, all := ids(suites.Options{Seed: 1}), ids(suites.Options{Seed: 2}), ids(suites.Options{Budget: result.Thorough})
	if diff := cmp.Diff(one, ids(suites.Options{Seed: 1})); diff != "" {
		t.Errorf("two runs with one seed send other ids:\n%s", diff)
	}
	if cmp.Equal(one, other) || len(all) <= len(one) {
		t.Errorf("%d ids with one seed, %d with another, %d of all", len(one), len(other), len(all))
	}
}

// verdicts returns the verdicts that are not harmless, by requirement.
func verdicts(run *result.Run) map[string]result.Verdict {
	found := make(map[string]result.Verdict)
	for _, q := range run.Requirements {
		if q.Verdict == result.Fail || q.Verdict == result.Warn || q.Verdict == result.Error {
			found[q.ID] = q.Verdict
		}
	}
	return found
}

func clean(t *testing.T, run *result.Run) {
	t.Helper()
	for _, q := range run.Requirements {
		for _, f := range q.Findings {
			t.Errorf("%s: %s: %s %v", q.ID, f.Check, f.Message, f.Evidence)
		}
		if q.Verdict == result.Error {
			t.Errorf("%s: %s", q.ID, q.Reason)
		}
	}
	for _, h := range run.Harness {
		t.Errorf("mcpconform itself: %s %v", h.Message, h.Evidence)
	}
	if run.Verdict != result.Conformant {
		t.Errorf("the verdict is %s: %s", run.Verdict, run.Reason)
	}
}

// shared is a run that several tests look at, each once: with -count, they look at another one.
type shared struct {
	mu   sync.Mutex
	run  *result.Run
	seen map[string]bool
}

// get returns the run, which the first test makes that wants it.
func (s *shared) get(t *testing.T, conduct func() *result.Run) *result.Run {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil || s.seen[t.Name()] {
		s.run, s.seen = conduct(), make(map[string]bool)
	}
	s.seen[t.Name()] = true
	return s.run
}

var (
	referenceRuns = map[string]*shared{transport.NameHTTP: {}, transport.NameSSE: {}, transport.NameStdio: {}, transport.NameCustom: {}}
	processRun    shared
)

// referenceRun returns a run of the reference client over a transport in virtual time.
func referenceRun(t *testing.T, over string) *result.Run {
	t.Helper()
	return referenceRuns[over].get(t, func() *result.Run {
		return conducted(t, suites.ClientScenarios{Transport: over, Launch: func(p client.Endpoint) (transport.Process, error) {
			return suites.ReferenceClient(p, answerTime).Launch()
		}}, suites.Options{Timeout: 20 * time.Second})
	})
}

// referenceAsProcess returns a run of the reference client with what can be tried only with processes.
func referenceAsProcess(t *testing.T) *result.Run {
	t.Helper()
	return processRun.get(t, func() *result.Run {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		return conduct(t, suites.ClientScenarios{
			Transport: transport.NameStdio, Bridge: []string{self}, Scenarios: []string{"stdio/stubborn", "stdio/shutdown", "stdio/stderr", "stdio/exits-early", "stdio/framing"},
			Launch: client.Command{Args: []string{self}, Env: append(os.Environ(), role+"=client")}.Launch,
		}, suites.Options{Timeout: 30 * time.Second})
	})
}

// TestReferenceClient wants a verdict for every requirement of the scenarios about an act of the reference client.
func TestReferenceClient(t *testing.T) {
	for _, name := range []string{transport.NameHTTP, transport.NameSSE, transport.NameStdio, transport.NameCustom} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := referenceRun(t, name)
			clean(t, run)
			if run.Target.Name != "mcpconform" {
				t.Errorf("the target is %+v", run.Target)
			}
			if n := run.Counts()[result.Pass]; n < 150 {
				t.Errorf("only %d requirements passed", n)
			}
			for _, q := range run.Requirements {
				if r, _ := schema.Default().Lookup(q.ID); name == transport.NameCustom && len(r.Transports) > 0 && q.Verdict != result.Skip {
					t.Errorf("%s is about %v, and is %s", q.ID, r.Transports, q.Verdict)
				}
			}
		})
	}
}

func TestReferenceClientAsProcess(t *testing.T) {
	t.Parallel()
	run := referenceAsProcess(t)
	clean(t, run)
	for _, q := range run.Requirements {
		if strings.HasPrefix(q.ID, "lifecycle.shutdown.stdio-") && q.Party == "client" && q.Verdict != result.Pass {
			t.Errorf("%s is %s: %s", q.ID, q.Verdict, q.Reason)
		}
	}
}

func inProcess(run func(ctx context.Context, p client.Endpoint) error) func(client.Endpoint) (transport.Process, error) {
	return func(p client.Endpoint) (transport.Process, error) {
		return transport.Func{Name: "a client", Run: func(ctx context.Context, _ io.Reader, _, _ io.Writer) error {
			return run(ctx, p)
		}}.Launch()
	}
}

// TestBrokenOff launches a client that loses its patience in a scenario: what
// happens once may be the machine's doing.
func TestBrokenOff(t *testing.T) {
	const scenario, id = "http/no-session", "http.server.session-id"
	for _, test := range []struct {
		name  string
		times int
		want  result.Verdict
	}{{"once", 1, result.Pass}, {"always", 1000, result.Warn}} {
		t.Run(test.name, func(t *testing.T) {
			var launches atomic.Int32
			run := conducted(t, suites.ClientScenarios{Transport: transport.NameHTTP, Scenarios: []string{scenario}, Launch: inProcess(func(ctx context.Context, p client.Endpoint) error {
				if p.Scenario == scenario && int(launches.Add(1)) <= test.times {
					if err := postsInitialize(ctx, p, nil); err != nil {
						return err
					}
					return errors.New("no patience")
				}
				return simple(ctx, p)
			})}, suites.Options{Timeout: 20 * time.Second})
			q := requirement(t, run, id)
			if q.Verdict != test.want {
				t.Errorf("%s is %s after %d launches: %s %+v", id, q.Verdict, launches.Load(), q.Reason, q.Findings)
			}
			if len(q.Findings) > 1 {
				t.Errorf("it is held against the client %d times", len(q.Findings))
			}
		})
	}
}

// TestClientsThatExcludeEachOther: a client may run only once at a time, because it locks a file or listens at a port
// of its own. It shows as much as any other. A client that does nothing in a scenario for reasons of its own is not
// mistaken for it.
func TestClientsThatExcludeEachOther(t *testing.T) {
	for _, name := range []string{"ends at once", "waits", "does nothing in some scenarios"} {
		t.Run(name, func(t *testing.T) {
			excludes := name != "does nothing in some scenarios"
			lock := sync.OnceValue(func() chan struct{} { return make(chan struct{}, 1) }) // in virtual time
			found := conducted(t, suites.ClientScenarios{Scenarios: []string{"capabilities/*", "lifecycle/*", "time/silence"}, Launch: inProcess(func(ctx context.Context, p client.Endpoint) error {
				switch name {
				case "ends at once":
					select {
					case lock() <- struct{}{}:
					default:
						return errors.New("another one is running")
					}
					defer func() { <-lock() }()
				case "waits":
					select {
					case lock() <- struct{}{}:
					case <-ctx.Done():
						return ctx.Err()
					}
					defer func() { <-lock() }()
				default:
					if strings.HasPrefix(p.Scenario, "capabilities/") {
						return nil
					}
				}
				return standalone(p, nil).Run(ctx)
			})}, suites.Options{Parallel: 1})
			for _, id := range []string{"lifecycle.capability.client-uses-tools", "lifecycle.timeout.established", "lifecycle.version.disconnect"} {
				if q := requirement(t, found, id); excludes && q.Verdict != result.Pass {
					t.Errorf("%s is %s: %s %+v", id, q.Verdict, q.Reason, q.Findings)
				}
			}
			if noted := strings.Contains(strings.Join(found.Notes, "\n"), "launched it once at a time"); noted != excludes && name != "waits" { // those may get their turn in time
				t.Errorf("the notes are %q", found.Notes)
			}
		})
	}
}

// TestBaselineBrokenOff launches a client that gives an ordinary server up: if it does so
// once, the machine may have been slow.
func TestBaselineBrokenOff(t *testing.T) {
	const id = "lifecycle.version.client-supported"
	for _, test := range []struct {
		name  string
		times int
		want  result.Verdict
	}{{"once", 1, result.Pass}, {"always", 1000, result.Fail}} {
		t.Run(test.name, func(t *testing.T) {
			var launches atomic.Int32
			run := conducted(t, suites.ClientScenarios{Transport: transport.NameHTTP, Scenarios: []string{"http/no-session"}, Launch: inProcess(func(ctx context.Context, p client.Endpoint) error {
				if p.Scenario == "baseline" && int(launches.Add(1)) <= test.times {
					if err := postsInitialize(ctx, p, nil); err != nil {
						return err
					}
					return errors.New("no patience")
				}
				return simple(ctx, p)
			})}, suites.Options{Timeout: 20 * time.Second})
			if q := requirement(t, run, id); q.Verdict != test.want {
				t.Errorf("%s is %s after %d launches: %s %+v", id, q.Verdict, launches.Load(), q.Reason, q.Findings)
			}
		})
	}
}

func requirement(t *testing.T, run *result.Run, id string) result.Requirement {
	t.Helper()
	i := slices.IndexFunc(run.Requirements, func(q result.Requirement) bool { return q.ID == id })
	if i < 0 {
		t.Fatalf("the run says nothing of %s", id)
	}
	return run.Requirements[i]
}

func TestIdleClientIsNotConformant(t *testing.T) {
	run := conducted(t, suites.ClientScenarios{Launch: inProcess(func(context.Context, client.Endpoint) error { return nil })}, suites.Options{Timeout: 20 * time.Second})
	if run.Verdict != result.Incomplete || !strings.Contains(run.Reason, "never sent initialize") {
		t.Errorf("the verdict is %s: %s", run.Verdict, run.Reason)
	}
	if n := run.Counts()[result.Pass]; n != 0 {
		t.Errorf("%d requirements passed", n)
	}
}

// TestClientThatNeverSpeaks: a client that cannot work at all, for example with a wrong command, is not launched for
// every scenario. A client that hangs costs little more than its limit.
func TestClientThatNeverSpeaks(t *testing.T) {
	const limit = 20 * time.Second
	for _, over := range []string{transport.NameHTTP, transport.NameSSE, transport.NameStdio, transport.NameCustom} {
		for _, tt := range []struct {
			name     string
			launches int64
			most     time.Duration
			run      func(ctx context.Context, p client.Endpoint) error
		}{
			{"fails", 2, time.Second, func(context.Context, client.Endpoint) error { return errors.New("no such file") }},
			{"ends", 2, time.Second, func(context.Context, client.Endpoint) error { return nil }},
			{"hangs", 1, limit + limit/5, func(ctx context.Context, _ client.Endpoint) error {
				<-ctx.Done()
				return ctx.Err()
			}},
		} {
			t.Run(over+" "+tt.name, func(t *testing.T) {
				virtual.Test(t, func(t *testing.T) {
					began := time.Now()
					var launched atomic.Int64
					run := conduct(t, suites.ClientScenarios{Transport: over, Network: new(memory.Network), Bridge: []string{"bridge"}, Launch: inProcess(func(ctx context.Context, p client.Endpoint) error {
						launched.Add(1)
						return tt.run(ctx, p)
					})}, suites.Options{Timeout: limit})
					if run.Verdict != result.Incomplete || !strings.Contains(run.Reason, "never sent initialize") {
						t.Errorf("the verdict is %s: %s", run.Verdict, run.Reason)
					}
					if n, took := launched.Load(), time.Since(began); n != tt.launches || took > tt.most {
						t.Errorf("%d launches took %s", n, took)
					}
				})
			})
		}
	}
}

// TestClientThatStops: a client that does nothing any more after the handshake, or after some messages, costs about
// twice its limit, or nine seconds more than a short one.
func TestClientThatStops(t *testing.T) {
	brief.WholeRuns(t)
	for _, limit := range []time.Duration{5 * time.Second, 30 * time.Second} {
		for _, over := range []string{transport.NameHTTP, transport.NameSSE, transport.NameStdio} {
			for _, after := range []int{0, 1, 2, 4, 6, 20} {
				t.Run(fmt.Sprintf("%s %s %d", limit, over, after), func(t *testing.T) {
					virtual.Test(t, func(t *testing.T) { stopsAfter(t, after, over, limit) })
				})
			}
		}
	}
}

func stopsAfter(t *testing.T, messages int, over string, limit time.Duration) {
	began := time.Now()
	var launched atomic.Int64
	run := conduct(t, suites.ClientScenarios{Transport: over, Network: new(memory.Network), Bridge: []string{"bridge"}, Launch: inProcess(func(ctx context.Context, p client.Endpoint) error {
		launched.Add(1)
		if messages == 0 {
			return stops(ctx, p)
		}
		return attached(p, func(c *reference.Standalone) {
			c.Wrap = func(conn transport.Conn) transport.Conn {
				stopping := &stopping{Conn: conn, stopped: ctx.Done()}
				stopping.left.Store(int64(messages))
				return stopping
			}
		}).Run(ctx)
	})}, suites.Options{Timeout: limit})
	if took := time.Since(began); took > limit+max(limit+time.Second, 9*time.Second) {
		t.Errorf("%d launches took %s", launched.Load(), took)
	}
	if run.Verdict == result.Conformant {
		t.Error("the client is conformant")
	}
}

// stopping is a connection on which the client does nothing any more after some messages, until it is stopped.
type stopping struct {
	transport.Conn
	left    atomic.Int64
	stopped <-chan struct{}
}

func (c *stopping) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
	if c.left.Add(-1) < 0 {
		<-c.stopped
		return nil, context.Canceled
	}
	return c.Conn.Send(ctx, out)
}

// stops does nothing after the handshake.
func stops(ctx context.Context, p client.Endpoint) error {
	return attached(p, func(c *reference.Standalone) {
		c.Use = func(ctx context.Context, _ *reference.Session, _ reference.Call) error {
			<-ctx.Done()
			return ctx.Err()
		}
	}).Run(ctx)
}

// attached is the reference client at an endpoint of any transport, with a change.
func attached(p client.Endpoint, change func(*reference.Standalone)) *reference.Standalone {
	c := standalone(p, change)
	c.Legacy = p.Transport == transport.NameSSE
	if p.Transport == transport.NameStdio {
		c.Launcher = transport.Func{Name: p.Scenario, Run: p.Serve}
	}
	return c
}

// TestHangIsConfirmedOnce: a client that hangs in one scenario of a combined launch is launched for that once more, beside the
// others, and not for its whole limit.
func TestHangIsConfirmedOnce(t *testing.T) {
	for _, limit := range []time.Duration{time.Second, 4 * time.Second, 12 * time.Second, 30 * time.Second} {
		t.Run(limit.String(), func(t *testing.T) {
			virtual.Test(t, func(t *testing.T) { hangsOnce(t, limit) })
		})
	}
}

func hangsOnce(t *testing.T, limit time.Duration) {
	const culprit = "http/sse-answers"
	began := time.Now()
	var mu sync.Mutex
	launched := make(map[string]int)
	run := conduct(t, suites.ClientScenarios{Network: new(memory.Network), Scenarios: together(culprit), Launch: inProcess(func(ctx context.Context, p client.Endpoint) error {
		mu.Lock()
		launched[p.Scenario]++
		mu.Unlock()
		if p.Scenario != culprit && p.Scenario != "together/pages" {
			return standalone(p, nil).Run(ctx)
		}
		return stops(ctx, p)
	})}, suites.Options{Timeout: limit})
	if found := verdicts(run); found["http.client.sse-answer"] == "" {
		t.Errorf("the client is not found to hang: %v", found)
	}
	if took := time.Since(began); took > 4*limit/3+time.Second {
		t.Errorf("it took %s", took)
	}
	if want := map[string]int{client.Baseline: 1, "together/pages": 1, "together/pages/rest": 1, culprit: 1}; !maps.Equal(launched, want) {
		t.Errorf("the launches are %v, not %v", launched, want)
	}
}

// TestHangingClient launches clients that never end, which cost their time
// limit together.
func TestHangingClient(t *testing.T) {
	block := func(ctx context.Context, _ client.Endpoint) error {
		<-ctx.Done()
		return ctx.Err()
	}
	for _, test := range []struct {
		name   string
		reason string
		run    func(ctx context.Context, p client.Endpoint) error
	}{
		{"mute", "never sent initialize", block},
		{"after some requests", "", func(ctx context.Context, p client.Endpoint) error {
			if err := simple(ctx, p); err != nil {
				return err
			}
			return block(ctx, p)
		}},
		{"talking", "", func(ctx context.Context, p client.Endpoint) error {
			for ctx.Err() == nil {
				if err := simple(ctx, p); err != nil {
					return block(ctx, p)
				}
			}
			return ctx.Err()
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			const limit = 4 * time.Second
			var launched, here, most atomic.Int64
			run := conduct(t, suites.ClientScenarios{Launch: inProcess(func(ctx context.Context, p client.Endpoint) error {
				launched.Add(1)
				defer here.Add(-1)
				for n := here.Add(1); ; {
					if m := most.Load(); m >= n || most.CompareAndSwap(m, n) {
						break
					}
				}
				return test.run(ctx, p)
			})}, suites.Options{Timeout: limit})
			if test.reason != "" && (run.Verdict != result.Incomplete || !strings.Contains(run.Reason, test.reason)) {
				t.Errorf("the verdict is %s: %s", run.Verdict, run.Reason)
			}
			if len(run.Notes) == 0 || !strings.Contains(run.Notes[0], "baseline") {
				t.Errorf("the notes are %q", run.Notes)
			}
			// One after the other, or a few at a time, they would take many limits.
			if all, together := launched.Load(), most.Load(); all > 6*together {
				t.Errorf("of %d clients at most %d were there at the same time", all, together)
			}
		})
	}
}

// TestServe connects clients by hand, so to speak: to all scenarios, of which
// the person leaves some alone and ends the run in the middle of others.
func TestServe(t *testing.T) {
	for _, over := range []string{transport.NameHTTP, transport.NameStdio, transport.NameCustom} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			virtual.Test(t, func(t *testing.T) { serve(t, over) })
		})
	}
}

func serve(t *testing.T, over string) {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	clients, leave := context.WithCancel(t.Context())
	defer leave()
	var open sync.WaitGroup
	run, _, err := suites.Run(ctx, suites.ClientScenarios{Transport: over, Bridge: []string{"bridge"}, Network: new(memory.Network), Announce: func(endpoints []client.Endpoint) {
		var done sync.WaitGroup
		for i, p := range endpoints {
			done.Add(1)
			open.Go(func() {
				served := sync.OnceFunc(done.Done)
				defer served()
				if i%5 == 4 {
					return // left alone
				}
				c := reference.Standalone{URL: p.URL, Dial: p.Dial, Timeout: answerTime}
				if over == transport.NameStdio {
					c.Launcher = transport.Func{Name: p.Scenario, Run: p.Serve}
				}
				if i%5 == 3 {
					c.Extra = func(ctx context.Context, _ *reference.Session) {
						served() // and stays
						<-ctx.Done()
					}
				}
				_ = c.Run(clients)
			})
		}
		done.Wait()
		stop()
	}}, suites.Options{Timeout: 2 * time.Second})
	leave()
	open.Wait()
	if err != nil {
		t.Fatal(err)
	}
	clean(t, run)
}

func TestServeNobody(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	run, _, err := suites.Run(ctx, suites.ClientScenarios{Announce: func([]client.Endpoint) { stop() }}, suites.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if run.Verdict != result.Incomplete || run.Counts()[result.Pass] != 0 {
		t.Errorf("the verdict is %s with %d passed: %s", run.Verdict, run.Counts()[result.Pass], run.Reason)
	}
}

func TestClientThatCannotBeStarted(t *testing.T) {
	run := conduct(t, suites.ClientScenarios{Launch: client.Command{Args: []string{filepath.Join(t.TempDir(), "none")}}.Launch}, suites.Options{})
	if run.Verdict != result.Incomplete || !strings.Contains(run.Reason, "cannot be started") {
		t.Errorf("the verdict is %s: %s", run.Verdict, run.Reason)
	}
}

func TestScenariosAreSound(t *testing.T) {
	names := make(map[string]bool)
	for i, s := range clients.Scenarios() {
		if (s.Name == client.Baseline) != (i == 0) {
			t.Errorf("scenario %d is %s", i, s.Name)
		}
		if names[s.Name] {
			t.Errorf("two scenarios are named %s", s.Name)
		}
		names[s.Name] = true
		if s.Judge != nil && len(s.Requirements) == 0 {
			t.Errorf("%s serves no requirement", s.Name)
		}
		if s.Options != nil {
			for _, id := range s.Options(&client.ScenarioRun{}).Behaviour.Breaks {
				if _, ok := schema.Default().Lookup(id); !ok && id != "*" {
					t.Errorf("%s breaks %s, which is no requirement", s.Name, id)
				}
			}
		}
		for _, id := range s.Requirements {
			q, ok := schema.Default().Lookup(id)
			if !ok {
				t.Errorf("%s: there is no requirement %s", s.Name, id)
				continue
			}
			if judged := q.JudgedParty(); judged != schema.Client && judged != schema.Both {
				t.Errorf("%s: %s does not bind clients", s.Name, id)
			}
			if !q.Observable {
				t.Errorf("%s: %s is not observable", s.Name, id)
			}
		}
	}
}

func TestPlaceholders(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "client")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nfor a; do printf '%s\\n' \"$a\"; done\necho \"$MCP_CONFORMANCE_SCENARIO $MCPCONFORM_SCENARIO $MCPCONFORM_TRANSPORT\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	stdio := client.Endpoint{Scenario: "s", Transport: transport.NameStdio, Command: []string{"prog", "arg"}, Dir: dir}
	http := client.Endpoint{Scenario: "s", Transport: transport.NameHTTP, URL: "http://localhost/mcp"}
	for _, test := range []struct {
		name string
		args []string
		at   client.Endpoint
		want []string
	}{
		{"url appended", []string{"-x"}, http, []string{"-x", "http://localhost/mcp", "initialize s http"}},
		{"url replaced", []string{"--url={url}", "-x"}, http, []string{"--url=http://localhost/mcp", "-x", "initialize s http"}},
		{"command appended", []string{"-x"}, stdio, []string{"-x", "prog", "arg", "initialize s stdio"}},
		{"command as arguments", []string{"{command}", "-x"}, stdio, []string{"prog", "arg", "-x", "initialize s stdio"}},
		{"command within one", []string{"-c={command}"}, stdio, []string{"-c=prog arg", "initialize s stdio"}},
		{"configuration", []string{"{config}"}, stdio, []string{filepath.Join(dir, "mcp.json"), "initialize s stdio"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := client.Command{Args: append([]string{script}, test.args...)}.Launch(test.at)
			if errors.Is(err, fs.ErrNotExist) {
				t.Skip("left out: there is no /bin/sh")
			}
			if err != nil {
				t.Fatal(err)
			}
			defer p.Kill()
			_ = p.Stdin().Close()
			out, err := io.ReadAll(p.Stdout())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, strings.Split(strings.TrimSpace(string(out)), "\n")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	raw, err := os.ReadFile(filepath.Join(dir, "mcp.json"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Servers map[string]struct {
			Command string   `json:"command"`
			Args    []string `json:"args"`
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal(raw, &config); err != nil {
		t.Fatal(err)
	}
	if s := config.Servers["mcpconform"]; s.Command != "prog" || !slices.Equal(s.Args, []string{"arg"}) {
		t.Errorf("the configuration is %s", raw)
	}
}

// tampering is a connection that changes what the client sends. A message that
// it returns nil for does not leave.
type tampering struct {
	transport.Conn
	change func(m *wire.Message, out transport.Outgoing) []transport.Outgoing
}

func (c *tampering) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
	sent := &wire.Event{Kind: wire.KindNote}
	for _, o := range c.change(wire.Parse(out.Raw), out) {
		var err error
		if sent, err = c.Conn.Send(ctx, o); err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// tardy holds back the answer to a ping until a cancellation has been sent.
type tardy struct {
	transport.Conn
	once   sync.Once
	gaveUp chan struct{}
}

func (c *tardy) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
	m := wire.Parse(out.Raw)
	if m.IsResponse() && m.ID.Key() == wire.StringID("a word").Key() {
		select {
		case <-c.gaveUp:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	sent, err := c.Conn.Send(ctx, out)
	if m.Method == "notifications/cancelled" {
		c.once.Do(func() { close(c.gaveUp) })
	}
	return sent, err
}

// renewing is a connection like that on which a new session can begin.
type renewing struct {
	*transport.HTTPConn
	tampering tampering
}

func (c *renewing) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
	return c.tampering.Send(ctx, out)
}

func with(change func(m *wire.Message, out transport.Outgoing) []transport.Outgoing) func(*reference.Standalone) {
	return func(c *reference.Standalone) {
		c.Wrap = func(conn transport.Conn) transport.Conn { return &tampering{Conn: conn, change: change} }
	}
}

func header(name string, values ...string) func(m *wire.Message, out transport.Outgoing) []transport.Outgoing {
	return func(m *wire.Message, out transport.Outgoing) []transport.Outgoing {
		if m.Method != "initialize" || name == "Accept" {
			out.Header = map[string][]string{name: values}
		}
		return []transport.Outgoing{out}
	}
}

func replaced(old, new string) func(m *wire.Message, out transport.Outgoing) []transport.Outgoing {
	return func(_ *wire.Message, out transport.Outgoing) []transport.Outgoing {
		out.Raw = bytes.ReplaceAll(out.Raw, []byte(old), []byte(new))
		return []transport.Outgoing{out}
	}
}

func dropped(which func(m *wire.Message) bool) func(m *wire.Message, out transport.Outgoing) []transport.Outgoing {
	return func(m *wire.Message, out transport.Outgoing) []transport.Outgoing {
		if which(m) {
			return nil
		}
		return []transport.Outgoing{out}
	}
}

func calling(method string, params any) func(*reference.Standalone) {
	return func(c *reference.Standalone) {
		c.Extra = func(ctx context.Context, s *reference.Session) { _, _ = s.Call(ctx, method, params) }
	}
}

// TestFaultsAreCaught launches the reference client with a fault and looks for
// the finding.
func TestFaultsAreCaught(t *testing.T) {
	for _, test := range []struct {
		name, requirement string
		want              result.Verdict
		scenario          string // beside the baseline; "" for none
		fault             func(*reference.Standalone)
	}{
		{"wrong Accept", "http.client.post-accept-sse", result.Fail, "", with(header("Accept", "application/json"))},
		{"no Accept of JSON", "http.client.post-accept-json", result.Fail, "", with(header("Accept", "text/event-stream"))},
		{"no initialized", "lifecycle.init.initialized-sent", result.Fail, "", with(dropped(func(m *wire.Message) bool {
			return m.Method == "notifications/initialized"
		}))},
		{"reused id", "base.request.id-unique", result.Fail, "", func(c *reference.Standalone) {
			c.Extra = func(ctx context.Context, s *reference.Session) {
				if p, err := s.StartID(ctx, wire.IntID(1), "ping", nil); err == nil {
					_, _ = p.Await(ctx)
				}
			}
		}},
		{"modified cursor", "pagination.client.cursor-unmodified", result.Fail, "lists/pages", with(replaced("→ 次", "-> ?"))},
		{"cursor of another list", "pagination.cursor.same-operation", result.Warn, "lists/pages",
			calling("prompts/list", map[string]any{"cursor": "page=3&of=tools/list"})},
		{"list not read on", "pagination.client.no-fixed-page-size", result.Fail, "lists/pages",
			with(func(m *wire.Message, out transport.Outgoing) []transport.Outgoing {
				if cursor, _ := wire.At(m.Params, "cursor").(string); strings.HasPrefix(cursor, "page=3") {
					out.Raw = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"ping"}`, m.ID)
				}
				return []transport.Outgoing{out}
			})},
		{"undeclared feature", "lifecycle.capability.client-uses-prompts", result.Fail, "capabilities/only-tools", calling("prompts/list", nil)},
		{"missing session header", "http.client.session-header", result.Fail, "", with(header("Mcp-Session-Id"))},
		{"missing version header", "http.client.version-header", result.Fail, "", with(header("Mcp-Protocol-Version"))},
		{"wrong version header", "http.client.version-header-negotiated", result.Warn, "", with(header("Mcp-Protocol-Version", "2024-11-05"))},
		{"answer with a wrong id", "base.response.only-to-requests", result.Fail, "exchange/requests", with(replaced(`"id":"a word"`, `"id":"another"`))},
		{"id of another type", "base.response.id-type-echo", result.Fail, "exchange/requests", with(replaced(`"id":"1234"`, `"id":1234`))},
		{"unknown method served", "base.error.method-not-found", result.Fail, "exchange/requests", with(replaced("-32601", "-32603"))},
		{"ping refused", "ping.response-prompt", result.Fail, "exchange/requests",
			with(func(m *wire.Message, out transport.Outgoing) []transport.Outgoing {
				if m.Kind == wire.Result {
					out.Raw = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
				}
				return []transport.Outgoing{out}
			})},
		{"ping not answered", "base.response.present", result.Fail, "exchange/requests", with(dropped(func(m *wire.Message) bool {
			return m.IsResponse()
		}))},
		{"answer to a notification", "base.notification.unknown-no-response", result.Fail, "exchange/notifications",
			with(func(m *wire.Message, out transport.Outgoing) []transport.Outgoing {
				if m.IsResponse() && m.ID.Key() == wire.StringID("after-unknown").Key() {
					return []transport.Outgoing{{Raw: []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}`)}, out}
				}
				return []transport.Outgoing{out}
			})},
		{"invalid elicitation content", "elicitation.content.matches-schema", result.Fail, "features/elicitation", func(c *reference.Standalone) {
			c.Change = func(o *reference.Options) {
				o.Answers["elicitation/create"] = func(context.Context, any) (any, *wire.Error) {
					return map[string]any{"action": "accept", "content": map[string]any{"string": map[string]any{}}}, nil
				}
			}
		}},
		{"undeclared elicitation served", "elicitation.capability.declared", result.Fail, "features/elicitation", func(c *reference.Standalone) {
			c.Change = func(o *reference.Options) { delete(o.Capabilities, "elicitation") }
		}},
		{"a batch", "base.batch.not-sent", result.Fail, "", func(c *reference.Standalone) {
			c.Extra = func(ctx context.Context, s *reference.Session) {
				_, _ = s.Send(ctx, []byte(`[{"jsonrpc":"2.0","id":"b1","method":"ping"},{"jsonrpc":"2.0","id":"b2","method":"ping"}]`))
			}
		}},
		{"timeout without cancellation", "lifecycle.timeout.cancel", result.Warn, "time/silence", func(c *reference.Standalone) {
			with(dropped(func(m *wire.Message) bool { return m.Method == "notifications/cancelled" }))(c)
			c.Timeout = 300 * time.Millisecond
		}},
		{"nonsense version used", "lifecycle.version.disconnect", result.Fail, "lifecycle/no-version", nil},
		{"ping answered when nothing else is awaited", "ping.response-prompt", result.Fail, "exchange/requests", func(c *reference.Standalone) {
			c.Timeout = 2500 * time.Millisecond
			c.Wrap = func(conn transport.Conn) transport.Conn { return &tardy{Conn: conn, gaveUp: make(chan struct{})} }
		}},
		{"unknown request not answered", "base.response.present", result.Fail, "exchange/requests", func(c *reference.Standalone) {
			// It gives its own request up before the server has lost its patience.
			c.Timeout = 2 * time.Second
			with(dropped(func(m *wire.Message) bool { return m.Kind == wire.ErrorResponse }))(c)
		}},
		{"elicitation with an unknown action", "elicitation.action.values", result.Fail, "features/elicitation", with(replaced(`"action":"accept"`, `"action":"submit"`))},
		{"withdrawn request answered", "cancellation.no-response", result.Warn, "features/sampling",
			with(func(m *wire.Message, out transport.Outgoing) []transport.Outgoing {
				switch m.ID.Key() {
				case wire.StringID("sampling-withdrawn").Key():
					return nil
				case wire.StringID("after-sampling").Key():
					// The model has taken its time.
					time.Sleep(1200 * time.Millisecond)
					return []transport.Outgoing{{Raw: []byte(`{"jsonrpc":"2.0","id":"sampling-withdrawn","result":{"role":"assistant",` +
						`"content":{"type":"text","text":"Hello."},"model":"m"}}`)}, out}
				}
				return []transport.Outgoing{out}
			})},
		{"lost session named again", "http.client.session-header", result.Fail, "http/lost-session", func(c *reference.Standalone) {
			c.Wrap = func(conn transport.Conn) transport.Conn {
				lost := ""
				c := conn.(*transport.HTTPConn)
				return &renewing{HTTPConn: c, tampering: tampering{Conn: c, change: func(m *wire.Message, out transport.Outgoing) []transport.Outgoing {
					if m.Method == "notifications/initialized" {
						if lost == "" {
							lost = c.SessionID()
						}
						out.Header = map[string][]string{"Mcp-Session-Id": {lost}}
					}
					return []transport.Outgoing{out}
				}}}
			}
		}},
		{"session not deleted", "http.client.delete-session", result.Warn, "http/delete", nil},
		{"lost session used", "http.client.reinitialize-on-404", result.Fail, "http/lost-session", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			launch := inProcess(func(ctx context.Context, p client.Endpoint) error { return simple(ctx, p) })
			if test.fault != nil {
				launch = inProcess(func(ctx context.Context, p client.Endpoint) error {
					c := reference.Standalone{URL: p.URL, Dial: p.Dial, Timeout: calmTime}
					test.fault(&c)
					return c.Run(ctx)
				})
			}
			scenario := test.scenario
			if scenario == "" {
				scenario = client.Baseline
			}
			run := conducted(t, suites.ClientScenarios{Launch: launch, Scenarios: []string{scenario}}, suites.Options{Timeout: 40 * time.Second})
			for _, h := range run.Harness {
				t.Errorf("mcpconform itself: %s %v", h.Message, h.Evidence)
			}
			if got := verdicts(run)[test.requirement]; got != test.want {
				t.Errorf("%s is %q, want %q; found: %v; %s", test.requirement, got, test.want, verdicts(run), run.Reason)
			}
		})
	}
}

// TestClientThatNeedsOptionalMembers: a client that takes every tool for one
// with a description.
func TestClientThatNeedsOptionalMembers(t *testing.T) {
	run := conducted(t, suites.ClientScenarios{Launch: inProcess(func(ctx context.Context, p client.Endpoint) error {
		described := true
		c := reference.Standalone{URL: p.URL, Dial: p.Dial, Timeout: calmTime, Extra: func(ctx context.Context, s *reference.Session) {
			x, err := s.Call(ctx, "tools/list", nil)
			if err != nil {
				return
			}
			_, described = wire.At(x.Result()["tools"].([]any)[0], "description").(string)
		}}
		if err := c.Run(ctx); err != nil || described {
			return err
		}
		return errors.New("a tool has no description")
	}), Scenarios: []string{"exchange/bare"}}, suites.Options{Timeout: 40 * time.Second})
	want := map[string]result.Verdict{"schema.optional-members": result.Warn}
	if diff := cmp.Diff(want, verdicts(run)); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

// TestOddClientsAreNotAccused launches clients that are within their rights, and
// some that break one thing only.
func TestOddClientsAreNotAccused(t *testing.T) {
	early := func(c *reference.Standalone) {
		with(func(m *wire.Message, out transport.Outgoing) []transport.Outgoing {
			if m.Method != "initialize" {
				return []transport.Outgoing{out}
			}
			// It is not known yet in which session.
			return []transport.Outgoing{{Raw: []byte(`{"jsonrpc":"2.0","id":"early","method":"ping"}`)}, out}
		})(c)
	}
	for _, test := range []struct {
		name     string
		scenario string // beside the baseline
		launch   func(ctx context.Context, p client.Endpoint) error
		want     map[string]result.Verdict
	}{
		{"a ping before initialize", client.Baseline, func(ctx context.Context, p client.Endpoint) error {
			c := reference.Standalone{URL: p.URL, Dial: p.Dial, Timeout: calmTime}
			early(&c)
			return c.Run(ctx)
		}, nil},
		{"a handshake and no more", client.Baseline, func(ctx context.Context, p client.Endpoint) error {
			return handshakeOnly(ctx, p)
		}, nil},
		{"no Content-Type", client.Baseline, func(ctx context.Context, p client.Endpoint) error {
			c := reference.Standalone{URL: p.URL, Dial: p.Dial, Timeout: calmTime}
			with(func(_ *wire.Message, out transport.Outgoing) []transport.Outgoing {
				out.Header = map[string][]string{"Content-Type": nil}
				return []transport.Outgoing{out}
			})(&c)
			return c.Run(ctx)
		}, nil},
		{"two sessions with a legacy server", "http/legacy-only", func(ctx context.Context, p client.Endpoint) error {
			for range 2 {
				if err := (reference.Standalone{URL: p.URL, Dial: p.Dial, Timeout: calmTime}).Run(ctx); err != nil {
					return err
				}
			}
			return nil
		}, nil},
		{"a path of its own in place of that of a legacy server", "http/legacy-only", func(ctx context.Context, p client.Endpoint) error {
			if p.Scenario != "http/legacy-only" {
				return reference.Standalone{URL: p.URL, Dial: p.Dial, Timeout: calmTime}.Run(ctx)
			}
			p.URL = strings.TrimSuffix(p.URL, "/sse") + "/mcp"
			_ = handshakeOnly(ctx, p) // it is refused
			stream, err := listen(ctx, p)
			if err == nil {
				err = stream.Body.Close()
			}
			return err
		}, nil},
		{"a GET to listen before initialize, and no way back to a legacy server", "http/legacy-only", func(ctx context.Context, p client.Endpoint) error {
			if p.Scenario != "http/legacy-only" {
				return reference.Standalone{URL: p.URL, Dial: p.Dial, Timeout: calmTime}.Run(ctx)
			}
			stream, err := listen(ctx, p)
			if err != nil {
				return err
			}
			defer stream.Body.Close()
			return handshakeOnly(ctx, p)
		}, nil},
		{"no initialized", "capabilities/none", func(ctx context.Context, p client.Endpoint) error {
			c := reference.Standalone{URL: p.URL, Dial: p.Dial, Timeout: calmTime}
			with(dropped(func(m *wire.Message) bool { return m.Method == "notifications/initialized" }))(&c)
			return c.Run(ctx)
		}, map[string]result.Verdict{"lifecycle.init.initialized-sent": result.Fail}},
		{"no ping answered", "exchange/notifications", func(ctx context.Context, p client.Endpoint) error {
			c := reference.Standalone{URL: p.URL, Dial: p.Dial, Timeout: calmTime}
			with(dropped(func(m *wire.Message) bool { return m.IsResponse() }))(&c)
			return c.Run(ctx)
		}, map[string]result.Verdict{"base.response.present": result.Fail}},
		{"a failure, but none with JSON answers", "http/json-answers", func(ctx context.Context, p client.Endpoint) error {
			c := reference.Standalone{URL: p.URL, Dial: p.Dial, Timeout: calmTime}
			if err := c.Run(ctx); err != nil || p.Scenario == "http/json-answers" {
				return err
			}
			return errors.New("it is never content")
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			run := conducted(t, suites.ClientScenarios{Launch: inProcess(test.launch), Scenarios: []string{test.scenario}}, suites.Options{Timeout: 40 * time.Second})
			want := test.want
			if want == nil {
				want = map[string]result.Verdict{}
			}
			if run.Target.Name == "" {
				t.Error("the client never began a session")
			}
			if diff := cmp.Diff(want, verdicts(run)); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
		})
	}
}

// handshakeOnly looks whether a server is there.
func handshakeOnly(ctx context.Context, p client.Endpoint) error {
	conn, err := (&transport.HTTP{Endpoint: transport.Endpoint{URL: p.URL, Dial: p.Dial}}).Dial(ctx, wire.NewTrace(wire.DefaultLimits).Connect(transport.NameHTTP, "probe"))
	if err != nil {
		return err
	}
	s := reference.New(conn, reference.Options{Timeout: calmTime})
	defer s.Close(ctx)
	_, err = s.Call(ctx, "initialize", s.InitializeParams())
	return err
}

// simple is a client that takes things as they come: it checks no version,
// ends no session and begins none anew.
func simple(ctx context.Context, p client.Endpoint) error {
	trace := wire.NewTrace(wire.DefaultLimits)
	conn, err := (&transport.HTTP{Endpoint: transport.Endpoint{URL: p.URL, Dial: p.Dial}}).Dial(ctx, trace.Connect(transport.NameHTTP, "simple"))
	if err != nil {
		return err
	}
	s := reference.New(conn, reference.Options{Timeout: answerTime, Capabilities: map[string]any{"roots": map[string]any{"listChanged": true}}})
	defer s.Close(ctx)
	if _, err := s.Initialize(ctx); err != nil {
		return err
	}
	for range 3 {
		if _, err := s.Call(ctx, "tools/list", nil); err != nil {
			return err
		}
	}
	conn.(*transport.HTTPConn).SetSession("", "")
	return nil
}

// TestClientThatLooksFirst runs a client that looks whether the server is there,
// in a session of its own, before it does anything.
func TestClientThatLooksFirst(t *testing.T) {
	brief.WholeRuns(t)
	looks := func(ctx context.Context, p client.Endpoint) {
		var d transport.Dialer
		switch p.Transport {
		case transport.NameStdio:
			d = &transport.Stdio{Launcher: transport.Func{Name: p.Scenario, Run: p.Serve}}
		case transport.NameSSE:
			d = &transport.SSE{Endpoint: transport.Endpoint{URL: p.URL, Dial: p.Dial}}
		default:
			d = &transport.HTTP{Endpoint: transport.Endpoint{URL: p.URL, Dial: p.Dial}}
		}
		conn, err := d.Dial(ctx, wire.NewTrace(wire.DefaultLimits).Connect(p.Transport, "look"))
		if err != nil {
			return
		}
		s := reference.New(conn, reference.Options{Timeout: answerTime, Capabilities: map[string]any{"roots": map[string]any{"listChanged": true}}})
		// It does not begin a session with a version that it does not know.
		if x, err := s.Call(ctx, "initialize", s.InitializeParams()); err == nil && x.Result()["protocolVersion"] == reference.Version {
			_ = s.Notify(ctx, "notifications/initialized", nil)
		}
		_ = s.Close(ctx)
	}
	for _, name := range []string{transport.NameHTTP, transport.NameSSE, transport.NameStdio} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clean(t, conducted(t, suites.ClientScenarios{Transport: name, Launch: func(p client.Endpoint) (transport.Process, error) {
				client := suites.ReferenceClient(p, answerTime)
				whole := client.Run
				client.Run = func(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
					looks(ctx, p)
					return whole(ctx, stdin, stdout, stderr)
				}
				return client.Launch()
			}}, suites.Options{Timeout: 20 * time.Second}))
		})
	}
}
