package suites_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/hostile"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites"
)

// A clock that was lost, or that somebody sets during a run, decides nothing: what is measured is
// measured on a clock that nobody sets. The date of the run is told as far as it can be.
func TestLostClock(t *testing.T) {
	brief.WholeRuns(t)
	dialer := &transport.Stdio{Launcher: transport.Func{Name: "reference", Run: server.New(server.Options{}).RunStdio}}
	began := time.Now() // the clock of a synctest bubble can be set
	run, trace, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: dialer}, suites.Options{})
	if err != nil {
		t.Fatal(err)
	}
	played := hostile.Played{Run: run, Trace: trace, Took: time.Since(began), Limit: time.Minute, Legal: true}
	if began := played.Trace.Start.String(); !strings.Contains(began, " m=") {
		t.Errorf("the trace begins at %s, which is not on the monotonic clock", began)
	}
	for name, at := range map[string]time.Time{
		"never":     {},
		"1970":      time.Unix(0, 0),
		"before":    time.Date(-4000, time.January, 1, 0, 0, 0, 0, time.UTC),
		"far ahead": time.Date(10_000, time.January, 1, 0, 0, 0, 0, time.UTC),
		"the end":   time.Unix(math.MaxInt64, 0),
		"elsewhere": time.Date(2026, time.June, 1, 0, 0, 0, 0, time.FixedZone("beyond the day", 25*60*60)),
	} {
		t.Run(name, func(t *testing.T) {
			of := *played.Run
			of.Started = at
			lost := played
			lost.Run = &of
			for _, fault := range lost.Faults() {
				t.Error(fault)
			}
		})
	}
}
