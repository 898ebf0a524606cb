package suites_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/killmatrix"
	"github.com/mcpconform/mcpconform/internal/proof/memory"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/mockserver/mockclient"
	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/client"
	clients "github.com/mcpconform/mcpconform/suites/internal/client"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	"github.com/mcpconform/mcpconform/suites/internal/server"
	"github.com/mcpconform/mcpconform/suites/result"
)

var measure = flag.Bool("measure", false, "measure what each family costs, and which faults it takes to find")

const familiesHead = `# Families of stimuli

A check that needs a value draws a whole family of values. The other side has to treat them alike. The plain value comes first, and the values at
which implementations break follow. They are sent in a session that exists anyway, a few at a time in the first phase of a run and one
after the other where a check is run again alone. Values that show the same become one finding: it has the smallest value, names others, and says
whether the plain one is as it should be.

Members that are marked as sampled are like others: each place where a check sends the family gets some of them, and all of the
others. A server reads and writes all values with the same code. So some further places get only the plain value and those members that are
marked as sent everywhere, since they break the code behind a place. ` + "`--seed N`" + ` chooses the sample, and the same seed chooses the same; ` + "`--thorough`" + ` sends all. Every member is legal to send, unless the check declares that it breaks a rule on purpose.

The data are in ` + "`fixtures/families`" + `. This page is written by ` + "`go test ./suites -run TestFamilies -update`" + `; with ` + "`-measure`" + ` on a calm machine,
the times and the faults are measured as well.

`

const familiesCost = `The time is what the members behind the plain one add to the checks that draw from the family, run by themselves against the reference server in one
process: over Streamable HTTP, or over stdio where they are about that. For a family that only scenarios for clients draw, it is the time that the members add to
those with the reference client. The faults are those of the [servers](kill-matrix.md) and [clients](kill-matrix-clients.md) that a run finds with all members, and misses with
the plain one alone.

`

// TestFamilies wants each family to be drawn, and the page about them to be up to date.
func TestFamilies(t *testing.T) {
	all, err := family.All()
	if err != nil {
		t.Fatal(err)
	}
	drawn := make(map[string][]string)
	for _, c := range server.Checks() {
		for _, name := range c.Families {
			drawn[name] = append(drawn[name], c.Name)
		}
	}
	for _, s := range clients.Scenarios() {
		for _, name := range s.Families {
			drawn[name] = append(drawn[name], s.Name+" (clients)")
		}
	}
	const file = "../docs/families.md"
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var b, rest bytes.Buffer
	b.WriteString(familiesHead)
	killmatrix.Row(&b, []string{"family", "members", "sent at a place", "time", "faults that it takes to find"})
	b.WriteString("|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		if len(drawn[name]) == 0 {
			t.Errorf("nothing draws from the family %s", name)
		}
		costs, faults := measuredBefore(string(written), name)
		if *measure {
			costs, faults = cost(t, name), strconv.Itoa(len(missedWithout(t, f)))
		}
		killmatrix.Row(&b, []string{fmt.Sprintf("[%s](#%s)", name, name), strconv.Itoa(len(f.Members)), strconv.Itoa(f.Drawn()), costs, faults})
		fmt.Fprintf(&rest, "\n## %s\n\n%s\n\nDrawn by %s.\n\n", name, f.About, strings.Join(drawn[name], ", "))
		killmatrix.Row(&rest, []string{"member", "why"})
		rest.WriteString("|---|---|\n")
		for _, m := range f.Members {
			is, why := m.Is, m.Why
			switch {
			case m.Everywhere:
				is += " *(everywhere)*"
			case m.Thorough:
				is += " *(thorough)*"
			case m.Sampled:
				is += " *(sampled)*"
			}
			if m.Seen != "" {
				why += " Seen [in the wild](" + m.Seen + ")."
			}
			killmatrix.Row(&rest, []string{is, why})
		}
	}
	b.WriteString("\n" + familiesCost)
	b.Write(bytes.TrimLeft(rest.Bytes(), "\n"))
	for name := range drawn {
		if all[name] == nil {
			t.Errorf("%v draw from the family %s, which does not exist", drawn[name], name)
		}
	}
	if killmatrix.Update() {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(written), b.String()); diff != "" {
		t.Errorf("%s is out of date; run this test with -update (-file +now):\n%s", file, diff)
	}
}

// measuredBefore returns the time of a family, and the number of its faults, in the page as it is.
func measuredBefore(page, name string) (costs, faults string) {
	for row := range strings.Lines(page) {
		if cells := strings.Split(strings.TrimSuffix(row, " |\n"), " | "); strings.HasPrefix(row, "| ["+name+"](") {
			return cells[3], cells[len(cells)-1]
		}
	}
	return "", ""
}

// missedWithout returns the faults that a run misses if a family has only its plain member, and finds with all.
func missedWithout(t *testing.T, f *family.Family) (missed []string) {
	var mu sync.Mutex // of missed
	members := f.Members
	each := func(faults []fault, members []family.Member) (missed []fault) {
		before := f.Members
		f.Members = members
		defer func() { f.Members = before }()
		t.Run(f.Name+" "+strconv.Itoa(len(members)), func(t *testing.T) {
			for _, one := range faults {
				t.Run(one.id, func(t *testing.T) {
					t.Parallel()
					virtual.Test(t, func(t *testing.T) {
						if !one.found(t) {
							mu.Lock()
							defer mu.Unlock()
							missed = append(missed, one)
						}
					})
				})
			}
		})
		return missed
	}
	suspects := each(faultsFor(f.Name), members[:1])
	unfound := each(suspects, members)
	for _, one := range suspects {
		if !slices.ContainsFunc(unfound, func(other fault) bool { return one.id == other.id }) {
			missed = append(missed, one.id)
		}
	}
	slices.Sort(missed)
	t.Logf("%s: %q", f.Name, missed)
	return missed
}

// fault is one of a server or client.
type fault struct {
	id    string
	found func(t *testing.T) bool
}

// faultsFor returns the faults that checks or scenarios may show that draw from a family.
func faultsFor(name string) (all []fault) {
	shows := func(families []string, requirements []string, further []string, id string) bool {
		r, _ := schema.Default().Lookup(id)
		return slices.Contains(families, name) &&
			(slices.Contains(requirements, id) || slices.ContainsFunc(further, r.Matches))
	}
	found := func(t *testing.T, run *result.Run, err error, id string) bool {
		if err != nil {
			t.Error(err)
			return true
		}
		i := slices.IndexFunc(run.Requirements, func(q result.Requirement) bool { return q.ID == id })
		return i >= 0 && (len(run.Requirements[i].Findings) > 0 || len(run.Requirements[i].Notes) > 0)
	}
	for _, f := range mockserver.Catalogue() {
		if slices.ContainsFunc(server.Checks(), func(c *check.Check) bool {
			return shows(c.Families, c.Requirements, c.Shows, f.Requirement)
		}) {
			all = append(all, fault{f.ID, func(t *testing.T) bool {
				run, err := faultyRun(t.Context(), f, f.Requirement)
				return found(t, run, err, f.Requirement)
			}})
		}
	}
	for _, f := range mockclient.Catalogue() {
		i := slices.IndexFunc(clients.Scenarios(), func(s *client.Scenario) bool {
			return s.Name == f.Scenario && shows(s.Families, s.Requirements, s.Shows, f.Requirement)
		})
		if i >= 0 {
			all = append(all, fault{"client " + f.ID, func(t *testing.T) bool {
				run, _, err := suites.Run(t.Context(), suites.ClientScenarios{
					Transport: f.Transport(), Scenarios: []string{f.Scenario}, Network: new(memory.Network),
					Launch: func(p client.Endpoint) (transport.Process, error) {
						return faultyClient(p, f).Launch()
					},
				}, suites.Options{Timeout: 20 * time.Second})
				return found(t, run, err, f.Requirement)
			}})
		}
	}
	return all
}

// faultyClient is the reference client with a fault.
func faultyClient(p client.Endpoint, f mockclient.Fault) transport.Func {
	return transport.Func{Name: "faulty client", Run: func(ctx context.Context, _ io.Reader, _, _ io.Writer) error {
		c := reference.Standalone{
			URL: p.URL, Dial: p.Dial, Legacy: p.Transport == transport.NameSSE, Timeout: 10 * time.Second,
			UserActions: p.UserActions,
		}
		if p.Transport == transport.NameStdio {
			c.Launcher = transport.Func{Name: p.Scenario, Run: p.Serve}
		}
		f.Apply(&c)
		return c.Run(ctx)
	}}
}

// cost measures what the members of a family behind the plain one add to the checks that
// draw from it, or to the scenarios if no check does.
func cost(t *testing.T, name string) string {
	run := checksDrawing(t, name)
	if run == nil {
		run = scenariosDrawing(t, name)
	}
	const times = 21
	var all, plain []time.Duration
	for range times {
		all, plain = append(all, run(family.Choice{})), append(plain, run(family.Choice{Plain: name}))
	}
	slices.Sort(all)
	slices.Sort(plain)
	switch more := all[times/2] - plain[times/2]; {
	case more < time.Millisecond:
		return "less than 1 ms"
	default:
		return fmt.Sprintf("about %d ms", more.Milliseconds())
	}
}

// scenariosDrawing returns what plays the scenarios that draw from a family, and says how long they take.
func scenariosDrawing(t *testing.T, name string) func(choice family.Choice) time.Duration {
	over := transport.NameHTTP
	scenarios := clients.Scenarios()[:1] // the baseline
	for _, s := range clients.Scenarios() {
		if slices.Contains(s.Families, name) {
			scenarios = append(scenarios, s)
			if !s.Applies(over) {
				over = transport.NameStdio
			}
		}
	}
	return func(choice family.Choice) time.Duration {
		e := client.Engine{
			Settings: client.Settings{Revision: schema.Default(), Transport: over, Choice: choice}, Trace: wire.NewTrace(wire.DefaultLimits), Network: new(memory.Network), Bridge: []string{"bridge"},
			Launch: func(p client.Endpoint) (transport.Process, error) {
				return suites.ReferenceClient(p, time.Minute).Launch()
			},
		}
		began := time.Now()
		if _, err := e.Run(t.Context(), scenarios); err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
}

// checksDrawing returns what runs the checks that draw from a family, and says how long they take, or nil if there
// are none.
func checksDrawing(t *testing.T, name string) func(choice family.Choice) time.Duration {
	var checks []*check.Check
	over := transport.NameHTTP
	for _, c := range server.Checks() {
		if slices.Contains(c.Families, name) {
			checks = append(checks, c)
			if !c.Applies(over) {
				over = transport.NameStdio
			}
		}
	}
	if slices.ContainsFunc(checks, func(c *check.Check) bool { return c.Applies(transport.NameHTTP) }) {
		over = transport.NameHTTP
	}
	checks = slices.DeleteFunc(checks, func(c *check.Check) bool { return !c.Applies(over) })
	if len(checks) == 0 {
		return nil
	}
	dialer, stop, err := serve(t.Context(), over, serverOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return func(choice family.Choice) time.Duration {
		e := &check.Engine{Options: check.Options{Revision: schema.Default(), Dialer: dialer, Trace: wire.NewTrace(wire.DefaultLimits), Choice: choice, Settings: check.Settings{CallTools: check.CallAll, ToolRoles: roles}}}
		if _, err := e.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for _, f := range e.Start(t.Context(), checks, nil) {
			if o := f.Await(); o.Verdict > check.Skipped {
				t.Fatalf("%s %s: %s", o.Check.Name, o.Verdict, o.Reason)
			}
		}
		took := time.Since(began)
		e.Finish(t.Context())
		return took
	}
}

// TestSeed wants two runs with one seed to say the same, and other seeds to find nothing
// on the reference server either.
func TestSeed(t *testing.T) {
	brief.WholeRuns(t)
	for _, over := range brief.Part(t, transports, 3) { // a seed does the same over each
		verdicts := func(seed uint64) (all []string) {
			inVirtualTime(func(t *testing.T) {
				run, err := conduct(t.Context(), seed, over, serverOptions())
				if err != nil {
					t.Fatal(err)
				}
				exonerated(t, run)
				for _, q := range run.Requirements {
					all = append(all, fmt.Sprintf("%s %s %s", q.ID, q.Verdict, q.Reason))
				}
			})(t)
			return all
		}
		if diff := cmp.Diff(verdicts(7), verdicts(7)); diff != "" {
			t.Errorf("over %s, two runs with one seed differ:\n%s", over, diff)
		}
	}
}

// TestQuick wants a quick run to exercise what a longer one exercises on the reference server, or to say that it leaves
// it out. It bounds the requests of both.
func TestQuick(t *testing.T) {
	brief.WholeRuns(t)
	// Where waiting takes no time, what is repeated for a while is repeated as often as may be.
	for over, most := range map[string]map[result.Budget]int{
		transport.NameStdio: {result.Default: 2500, result.Quick: 700},
		transport.NameHTTP:  {result.Default: 2900, result.Quick: 900},
	} {
		runs, sent := make(map[result.Budget]*result.Run), make(map[result.Budget]int)
		for _, budget := range []result.Budget{result.Default, result.Quick} {
			inVirtualTime(func(t *testing.T) {
				dialer, stop, err := serve(t.Context(), over, serverOptions())
				if err != nil {
					t.Fatal(err)
				}
				defer stop()
				run, trace, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: dialer, Settings: check.Settings{CallTools: check.CallAll}},
					suites.Options{Budget: budget})
				if err != nil {
					t.Fatal(err)
				}
				exonerated(t, run)
				runs[budget] = run
				for _, l := range trace.Logs() {
					for _, e := range l.Events() {
						if e.Kind == wire.KindHTTPRequest || over == transport.NameStdio && e.From == wire.Client && e.Kind == wire.KindMessage {
							sent[budget]++
						}
					}
				}
				t.Logf("over %s: a %s run sends %d", over, budget, sent[budget])
			})(t)
			if sent[budget] > most[budget] {
				t.Errorf("over %s: a %s run sends more than %d messages or requests", over, budget, most[budget])
			}
		}
		if !runs[result.Quick].Quick {
			t.Errorf("over %s: the quick run is not called so", over)
		}
		for i, q := range runs[result.Quick].Requirements {
			usual := runs[result.Default].Requirements[i]
			if usual.Verdict == result.Pass && q.Verdict != result.Pass && q.Reason != result.QuickOnly {
				t.Errorf("over %s: %s is %s: %s", over, q.ID, q.Verdict, q.Reason)
			}
		}
	}
}

// TestThorough wants a run with all members to find nothing on the reference server either.
func TestThorough(t *testing.T) {
	brief.WholeRuns(t)
	inVirtualTime(func(t *testing.T) {
		dialer, stop, err := serve(t.Context(), transport.NameStdio, serverOptions())
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		run, _, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: dialer, Settings: check.Settings{CallTools: check.CallAll}},
			suites.Options{Budget: result.Thorough, Seed: 7})
		if err != nil {
			t.Fatal(err)
		}
		if run.Seed != 7 || !run.Thorough || run.Verdict != result.Conformant {
			t.Errorf("seed %d, thorough %t: %s %s", run.Seed, run.Thorough, run.Verdict, run.Reason)
		}
		exonerated(t, run)
	})(t)
}
