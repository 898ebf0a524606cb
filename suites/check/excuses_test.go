package check_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpconform/mcpconform/internal/proof/memory"
	"github.com/mcpconform/mcpconform/internal/proof/oddserver"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/check"
	checks "github.com/mcpconform/mcpconform/suites/internal/server"
)

// TestExcuses proves rows of the table: with a row nothing is found on a legal server, without it something is. These
// rows matter to many checks; of the others it depends on the moment whether one check needs them.
func TestExcuses(t *testing.T) {
	if testing.Short() {
		t.Skip("whole runs, two for each row")
	}
	for _, c := range []struct{ row, oddity, over string }{
		{"ended-at-will", "http.session-ends-when-refused", transport.NameHTTP},
		{"short-sessions", "http.sessions-of-seven", transport.NameHTTP},
		{"limits-rate", "message.rate-limited", transport.NameStdio},
	} {
		t.Run(c.row, func(t *testing.T) {
			if found := accused(t, c.over, odd(t, c.oddity)); len(found) > 0 {
				t.Errorf("%s: %v found something", c.oddity, found)
			}
			defer check.Without(c.row)()
			if found := accused(t, c.over, odd(t, c.oddity)); len(found) == 0 {
				t.Errorf("%s: nothing was found without the row either; it is not needed, or another oddity shows it", c.oddity)
			}
		})
	}
}

// TestExcusesAreDocumented compares the table with that of docs/design.md.
func TestExcusesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	_, rows, _ := strings.Cut(string(text), "## Excuses\n")
	rows, _, _ = strings.Cut(rows, "\n## ")
	for line := range strings.Lines(rows) {
		if name, ok := strings.CutPrefix(line, "| `"); ok {
			name, _, _ = strings.Cut(name, "`")
			documented = append(documented, name)
		}
	}
	if rows := check.Excuses(); !slices.Equal(rows, documented) {
		t.Errorf("docs/design.md lists %q; the table is %q", documented, rows)
	}
}

// accused runs all checks against a server and returns the names of those that find something.
func accused(t *testing.T, over string, o server.Options) (names []string) {
	t.Helper()
	virtual.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var served sync.WaitGroup
		defer served.Wait()
		defer stop()
		var dialer transport.Dialer = &transport.Stdio{Launcher: transport.Func{Name: "mock", Run: server.New(o).RunStdio}}
		if over == transport.NameHTTP {
			network := new(memory.Network)
			l, err := network.Listen()
			if err != nil {
				t.Fatal(err)
			}
			s := server.New(o)
			served.Go(func() { _ = s.HTTP().Serve(ctx, l) })
			dialer = &transport.HTTP{Endpoint: transport.Endpoint{
				URL: "http://" + l.Addr().String() + server.PathMCP, Dial: network.Dial}}
		}
		e := &check.Engine{Options: check.Options{Revision: schema.Default(), Dialer: dialer, Trace: wire.NewTrace(wire.DefaultLimits),
			Settings: check.Settings{CallTools: check.CallAll}}}
		_, cause := e.Prepare(t.Context())
		for _, f := range e.Start(t.Context(), checks.Checks(), cause) {
			if o := f.Await(); len(o.Record.Findings()) > 0 {
				names = append(names, o.Check.Name)
			}
		}
		e.Finish(t.Context())
	})
	return names
}

// odd returns the options of a server with an oddity.
func odd(t *testing.T, id string) server.Options {
	t.Helper()
	all := oddserver.Oddities()
	i := slices.IndexFunc(all, func(o oddserver.Oddity) bool { return o.ID == id })
	if i < 0 {
		t.Fatalf("there is no oddity %s", id)
	}
	o := server.Options{Catalogue: server.DefaultCatalogue()}
	all[i].Apply(&o)
	return o
}
