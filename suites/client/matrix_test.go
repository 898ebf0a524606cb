package client_test

import (
	"cmp"
	"context"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/killmatrix"
	"github.com/mcpconform/mcpconform/internal/proof/memory"
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

// TestKillMatrix proves the scenarios and rules: each fault of a client is
// caught, and nothing but what the fault breaks is found.
func TestKillMatrix(t *testing.T) {
	m := killmatrix.Matrix{
		File: "../../docs/kill-matrix-clients.md",
		Head: "# Kill matrix of clients\n\n" +
			"This table lists the faults of the mock client, each with its requirement, the scenario in which it shows, and the scenarios and\n" +
			"passive rules that have to catch it. A fault that nothing catches fails the build, and so does a finding that a fault did not\n" +
			"announce.\n" +
			"Many are tried in [other forms](kill-matrix-forms.md) as well.\n" +
			"`mcpconform mock client --fault ID URL` runs a faulty client. Faults of servers are in `kill-matrix.md`. Written by\n" +
			"`go test ./suites/client -run TestKillMatrix -update`.\n",
		Scenarios: true,
		OneOf:     6,
	}
	for _, f := range mockclient.Catalogue() {
		f.Scenario = cmp.Or(f.Scenario, client.Baseline)
		m.Faults = append(m.Faults, killmatrix.Fault{
			ID: f.ID, Requirement: f.Requirement, Summary: f.Summary, Form: string(f.Form), Scenario: f.Scenario, Collateral: f.Collateral, WarnOnly: f.WarnOnly,
			Run:     func(ctx context.Context) (*result.Run, error) { return faultyRun(ctx, f) },
			Process: process(f),
		})
	}
	m.Test(t)
}

// crashing is a process whose failures are crashes.
type crashing struct{ transport.Process }

func (p crashing) Exit() wire.Exit {
	if exit := p.Process.Exit(); exit == (wire.Exit{}) {
		return exit
	}
	return wire.Exit{Code: -1, Signal: "aborted"}
}

// TestSelectedFaults selects only the requirement that a fault breaks, and wants the scenario that shows the fault to
// run.
func TestSelectedFaults(t *testing.T) {
	scenarios := make(map[string]*client.Scenario)
	for _, s := range slices.Concat(clients.Scenarios(), clients.Faulty()) {
		scenarios[s.Name] = s
	}
	for _, f := range mockclient.Catalogue() {
		s := scenarios[cmp.Or(f.Scenario, client.Baseline)]
		r, _ := schema.Default().Lookup(f.Requirement)
		if s != scenarios[client.Baseline] && !slices.Contains(s.Requirements, r.ID) && !slices.ContainsFunc(s.Shows, r.Matches) {
			t.Errorf("%s: a selection of %s does not run the scenario %s: name the requirement under Shows there", f.ID, r.ID, s.Name)
		}
	}
}

// process reports whether a fault shows only if the server is a process that can receive signals.
func process(f mockclient.Fault) bool {
	return f.Scenario == "stdio/shutdown" || f.Scenario == "stdio/stubborn"
}

// faultyRun runs the scenario of a fault against a client with it, and those that
// are run in one launch with it.
func faultyRun(ctx context.Context, f mockclient.Fault) (*result.Run, error) {
	const limit = 20 * time.Second
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := suites.ClientScenarios{
		Transport: f.Transport(), Scenarios: together(f.Scenario), Bridge: []string{self}, Network: new(memory.Network), GivesUpAfter: limit / 2,
		Authorizes: strings.HasPrefix(f.Scenario, "auth/"),
		Launch: func(p client.Endpoint) (transport.Process, error) {
			program, err := transport.Func{Name: "faulty client", Run: func(ctx context.Context, _ io.Reader, _, _ io.Writer) error {
				// A little less than what two waits of a scenario take: which of them ends first is no matter of
				// chance.
				c := reference.Standalone{
					URL: p.URL, Dial: p.Dial, Legacy: p.Transport == transport.NameSSE, Timeout: limit/2 - time.Second, UserActions: p.UserActions,
					Authorizer: &reference.Authorizer{ID: p.ClientID, Secret: p.ClientSecret},
				}
				if p.Transport == transport.NameStdio {
					c.Launcher = transport.Func{Name: p.Scenario, Run: p.Serve}
				}
				f.Apply(&c)
				return c.Run(ctx)
			}}.Launch()
			if err == nil && f.Crashes {
				program = crashing{program}
			}
			return program, err
		},
	}
	if f.Scenario == "http/legacy-refused" { // which is compared with the one that it follows on
		s.Scenarios = append(s.Scenarios, "http/legacy-only")
	}
	if s.Authorizes { // the other scenarios of the topic are compared with the baseline
		s.Scenarios = append([]string{clients.AuthorizationBaseline}, s.Scenarios...)
	}
	if killmatrix.Budget() == result.Quick { // which chooses the scenarios itself
		s.Scenarios = nil
	}
	if process(f) {
		s.Network = nil
		s.Launch = client.Command{Args: []string{self}, Env: append(os.Environ(), role+"=client", faulty+"="+f.ID)}.Launch
	}
	run, _, err := suites.Run(ctx, s, suites.Options{Timeout: limit, Seed: killmatrix.Seed(), Budget: killmatrix.Budget()})
	return run, err
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
		if !slices.ContainsFunc(clients.Scenarios(), func(s *client.Scenario) bool {
			return s.Applies(f.Transport()) && (s.Name == f.Scenario || f.Scenario == "")
		}) {
			t.Errorf("%s: there is no scenario %q over %s", f.ID, f.Scenario, f.Transport())
		}
	}
	passed := make(map[string]bool)
	for _, run := range []*result.Run{
		referenceRun(t, transport.NameHTTP), referenceRun(t, transport.NameSSE), referenceRun(t, transport.NameStdio), referenceAsProcess(t),
	} {
		for _, q := range run.Requirements {
			passed[q.ID] = passed[q.ID] || q.Verdict == result.Pass
		}
	}
	for _, q := range slices.Sorted(maps.Keys(passed)) {
		if passed[q] && !broken[q] {
			t.Errorf("no fault proves %s", q)
		}
	}
}
