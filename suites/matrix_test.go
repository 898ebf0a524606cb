package suites_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/profile"
	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/internal/proof/killmatrix"
	"github.com/mcpconform/mcpconform/internal/proof/memory"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/authserver"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

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

// inVirtualTime makes a test one in which waiting takes no time.
func inVirtualTime(test func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) { virtual.Test(t, test) }
}

// conducted runs the server suites in virtual time.
func conducted(t *testing.T, over string, o server.Options) (run *result.Run) {
	t.Helper()
	virtual.Test(t, func(t *testing.T) {
		var err error
		if run, err = conduct(t.Context(), 0, over, o); err != nil {
			t.Fatal(err)
		}
	})
	return run
}

// conduct runs the server suites with a seed over a transport against a server in this
// process, or what is needed of them for the requirements that are selected.
func conduct(ctx context.Context, seed uint64, over string, o server.Options, selected ...string) (*result.Run, error) {
	run, _, err := traced(ctx, seed, over, o, selected...)
	return run, err
}

// traced is conduct with the trace of the run.
func traced(ctx context.Context, seed uint64, over string, o server.Options, selected ...string) (*result.Run, *wire.Trace, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	dialer, stop, err := serve(ctx, over, o)
	if err != nil {
		return nil, nil, err
	}
	defer stop()
	settings := check.Settings{
		CallTools: check.CallAll, ToolRoles: rolesOn(o), Secrets: referenceProfile.Secrets, Personal: referenceProfile.Personal,
		GivesUpAfter: time.Minute, // as the reference server does
	}
	if o.HTTP.Protection != nil {
		settings.Authorization = authorization
	}
	run, trace, err := suites.Run(ctx, suites.ServerChecks{Dialer: dialer, Settings: settings}, suites.Options{Seed: seed, Budget: killmatrix.Budget(), Selection: suites.Selection{Select: selected}})
	if err == nil && ctx.Err() != nil {
		err = errors.New("the run does not end")
	}
	return run, trace, err
}

// serve makes a server ready to be dialled.
func serve(ctx context.Context, over string, o server.Options) (dialer transport.Dialer, stop func(), err error) {
	if over == transport.NameStdio {
		return &transport.Stdio{Launcher: transport.Func{Name: "mock server", Run: server.New(o).RunStdio}}, func() {}, nil
	}
	network := new(memory.Network)
	l, err := network.Listen()
	if err != nil {
		return nil, nil, err
	}
	at := transport.Endpoint{URL: "http://" + l.Addr().String() + server.PathMCP, Dial: network.Dial}
	if o.HTTP.Protection != nil {
		as, err := authserver.New(authserver.Options{Issuer: "http://" + l.Addr().String()})
		if err != nil {
			return nil, nil, err
		}
		protection := *o.HTTP.Protection
		as.Protect(&protection, true)
		o.HTTP.Protection = &protection
		at.Header = http.Header{"Authorization": {"Bearer " + hooks.GoodToken}}
	}
	s := server.New(o)
	ctx, cancel := context.WithCancel(ctx)
	var served sync.WaitGroup
	stop = func() {
		cancel()
		served.Wait()
	}
	if over == transport.NameCustom {
		served.Go(func() { _ = s.ServeWebSocket(ctx, l) })
		return &transport.WebSocket{Endpoint: at}, stop, nil
	}
	served.Go(func() { _ = s.HTTP().Serve(ctx, l) })
	if over == transport.NameSSE {
		at.URL = "http://" + l.Addr().String() + server.PathSSE
		return &transport.SSE{Endpoint: at}, stop, nil
	}
	return &transport.HTTP{Endpoint: at}, stop, nil
}

// listen serves a handler until the test ends, and returns its endpoint without
// a path.
func listen(t *testing.T, h http.Handler) transport.Endpoint {
	t.Helper()
	network := new(memory.Network)
	l, err := network.Listen()
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	var served sync.WaitGroup
	served.Go(func() { _ = s.Serve(l) })
	t.Cleanup(served.Wait)
	t.Cleanup(func() { _ = s.Close() })
	return transport.Endpoint{URL: "http://" + l.Addr().String(), Dial: network.Dial}
}

// authorization is what a run is told of a protected mock server.
var authorization = check.Authorization{
	Expired: mockserver.ExpiredToken, OtherAudience: mockserver.AudienceToken, OtherUser: hooks.UserToken, Narrow: hooks.NarrowToken,
	NarrowRequest: check.RPC{Method: "tools/call", Params: map[string]any{"name": "test_simple_text", "arguments": map[string]any{}}},
}

// referenceProfile is the profile of the reference server. It is applied by
// hand, as a server with a fault may not be recognised.
var referenceProfile = func() profile.Profile {
	profiles, _ := profile.All() // its own tests see to errors
	i := slices.IndexFunc(profiles, func(p profile.Profile) bool { return strings.Contains(p.Name, "reference server") })
	return profiles[i]
}()

// rolesOn returns the roles of those tools that a server offers.
func rolesOn(o server.Options) map[string]check.Call {
	on := maps.Clone(roles)
	maps.DeleteFunc(on, func(_ string, call check.Call) bool {
		return !slices.ContainsFunc(o.Catalogue.Tools, func(t *server.Tool) bool { return t.Name() == call.Tool })
	})
	return on
}

var roles = func() map[string]check.Call {
	calls := make(map[string]check.Call)
	for role, call := range referenceProfile.ToolRoles {
		calls[role] = check.Call(call)
	}
	// Long enough to tell a cancelled call from one that goes on.
	calls["slow"] = check.Call{Tool: "slow", Arguments: map[string]any{"seconds": 1}}
	return calls
}()

// lateFault shows two seconds after a response, when a run for one requirement is over.
const lateFault = "progress.on-another-stream"

// TestKillMatrix proves the checks and rules. Each fault is caught, even if only its broken requirement is selected,
// and the run finds nothing else.
func TestKillMatrix(t *testing.T) {
	m := killmatrix.Matrix{
		File: "../docs/kill-matrix.md",
		Head: "# Kill matrix\n\n" +
			"Each fault of the mock server, the requirement that it breaks, and the checks and passive rules that are bound to catch it.\n" +
			"A fault that nothing catches fails the build, and so does a finding that a fault did not announce. In italics is what it takes\n" +
			"for a fault to show where the plain stimulus does not do: a *value* beside the plain one ([families](families.md)), a second *session*,\n" +
			"*concurrent* requests, or one *sequence* or moment.\n\n" +
			"The faults in `mockserver/threads.go` were reported to the authors of real servers. Such reports teach to try the second session,\n" +
			"stream or subscription as well as the first, what a server refuses although its own schema allows it, messages that lack\n" +
			"a part beside those of another form, and long answers beside long requests.\n\n" +
			"Most plain faults are tried in [other forms](kill-matrix-forms.md) as well.\n" +
			"`mcpconform mock --fault ID` serves a fault. Written by `go test ./suites -run TestKillMatrix -update`.\n",
		OneOf: 32,
	}
	for _, f := range mockserver.Catalogue() {
		row := killmatrix.Fault{
			ID: f.ID, Requirement: f.Requirement, Summary: f.Summary, Form: string(f.Form), Collateral: f.Collateral, WarnOnly: f.WarnOnly,
			Run: func(ctx context.Context) (*result.Run, error) { return faultyRun(ctx, f) },
		}
		if f.ID != lateFault {
			row.Selected = func(ctx context.Context) (*result.Run, error) { return faultyRun(ctx, f, f.Requirement) }
		}
		m.Faults = append(m.Faults, row)
	}
	m.Test(t)
}

// faultyRun runs the suites against a server with a fault.
func faultyRun(ctx context.Context, f mockserver.Fault, selected ...string) (*result.Run, error) {
	o := serverOptions()
	f.Apply(&o)
	over := transport.NameStdio
	if !f.Shows(over) {
		over = f.Transports[0]
	}
	return conduct(ctx, killmatrix.Seed(), over, o, selected...)
}

var transports = []string{transport.NameStdio, transport.NameHTTP, transport.NameSSE}

// shared is a run that several tests look at, each once: with -count, they look at another one.
type shared struct {
	mu   sync.Mutex
	run  *result.Run
	seen map[string]bool
}

var referenceRuns = map[string]*shared{transport.NameStdio: {}, transport.NameHTTP: {}, transport.NameSSE: {}}

// referenceRun returns the run on the reference server over a transport, which the first test makes that wants it.
func referenceRun(t *testing.T, over string) *result.Run {
	t.Helper()
	s := referenceRuns[over]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil || s.seen[t.Name()] {
		s.run, s.seen = conducted(t, over, serverOptions()), make(map[string]bool)
	}
	s.seen[t.Name()] = true
	return s.run
}

// TestReferenceServerIsClean is the control of the kill matrix: without a
// fault nothing is found, and nothing that can be observed is left out.
func TestReferenceServerIsClean(t *testing.T) {
	for _, over := range transports {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			run := referenceRun(t, over)
			for _, q := range run.Requirements {
				if q.Verdict == result.Inconclusive {
					t.Errorf("%s is inconclusive: %s", q.ID, killmatrix.Why(q))
				}
			}
			exonerated(t, run)
		})
	}
}

// TestEveryRequirementIsProved wants a fault for each requirement that passes
// on the reference server: what no fault breaks may be a check that cannot fail.
func TestEveryRequirementIsProved(t *testing.T) {
	brief.WholeRuns(t)
	broken := make(map[string]bool)
	for _, f := range mockserver.Catalogue() {
		broken[f.Requirement] = true
	}
	passed := make(map[string][]string)
	for _, over := range transports {
		for _, q := range referenceRun(t, over).Requirements {
			if q.Verdict == result.Pass {
				passed[q.ID] = q.Checks
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(passed)) {
		switch _, alone := provedAlone[id]; {
		case !broken[id] && !alone:
			t.Errorf("no fault proves %s (%s)", id, strings.Join(passed[id], ", "))
		case broken[id] && alone:
			t.Errorf("%s is proved by a fault, and needs no test of its own", id)
		}
	}
}
