package client

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
)

// recording is a launch as it was recorded over stdio. > stands before a line of the client.
type recording struct {
	lines    string
	ending   Ending
	launched launched
	found    bool // the scenario finds something
}

const (
	handshake = `> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
< {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}
> {"jsonrpc":"2.0","method":"notifications/initialized"}
`
	work = handshake + `> {"jsonrpc":"2.0","id":2,"method":"tools/list"}
< {"jsonrpc":"2.0","id":2,"result":{"tools":[]}}
`
	pinged = work + `< {"jsonrpc":"2.0","id":"p","method":"ping"}
timeout
`
)

// of returns the run of a scenario that a recording shows.
func (r recording) of(t *testing.T, e *Engine, scenario string) *T {
	t.Helper()
	run := e.newRun(&Scenario{Name: scenario})
	run.after, run.Ending = len(e.Trace.Logs()), r.ending
	run.launched.beside, run.idle, run.combined = r.launched.beside, r.launched.idle, r.launched.combined
	l := e.Trace.Connect(transport.NameStdio, scenario)
	for line := range strings.Lines(r.lines) {
		event := wire.Event{Kind: wire.KindMessage, From: wire.Server, Raw: []byte(strings.TrimSpace(line[2:]))}
		switch {
		case strings.HasPrefix(line, ">"):
			event.From = wire.Client
		case !strings.HasPrefix(line, "<"):
			event.Kind, event.Raw = wire.KindTimeout, nil
		}
		if _, err := l.Append(event); err != nil {
			t.Fatal(err)
		}
	}
	run.gather(e.Trace)
	if r.found {
		run.Violation("ping.either-side", "something")
	}
	return run
}

// TestExcuses plays recorded launches: how many of them the table asks for, and whether the one that counts finds
// something. The last recording comes again and again.
func TestExcuses(t *testing.T) {
	good, failed := &wire.Exit{}, &wire.Exit{Code: 1}
	done := recording{lines: work, ending: Ending{Exit: good}}
	mute := func(end Ending, l launched) recording { return recording{ending: end, launched: l} }
	beside := launched{beside: true}
	left := recording{lines: handshake, ending: Ending{Exit: failed}, found: true}
	stopped := recording{lines: handshake, ending: Ending{Late: true, Silent: true}, found: true}
	idle := recording{lines: work, ending: Ending{Late: true, Silent: true}, launched: launched{idle: true}}
	for name, c := range map[string]struct {
		scenario string
		launches []recording
		hangs    bool // with the ordinary server as well
		want     int  // launches
		found    bool
	}{
		"nothing":                              {"a", []recording{done}, false, 1, false},
		"a finding on a client that goes on":   {"a", []recording{{lines: work, ending: Ending{Exit: good}, found: true}}, false, 1, true},
		"mute beside others":                   {"a", []recording{mute(Ending{Exit: failed}, beside), done}, false, 2, false},
		"mute beside others, and alone":        {"a", []recording{mute(Ending{Exit: failed}, beside)}, false, 2, false},
		"mute alone":                           {"a", []recording{mute(Ending{Exit: failed}, launched{})}, false, 1, false},
		"mute beside others that hang":         {"a", []recording{mute(Ending{Late: true}, beside)}, true, 1, false},
		"mute together":                        {"a", []recording{mute(Ending{Exit: failed}, launched{beside: true, combined: true}), done}, false, 2, false},
		"not launched":                         {"a", []recording{mute(Ending{Skipped: "the run ended"}, beside)}, false, 1, false},
		"a baseline that is used later":        {Baseline, []recording{{lines: handshake, ending: Ending{Exit: failed}}, done}, false, 2, false},
		"a baseline that is never used":        {Baseline, []recording{left}, false, 2, true},
		"a mute baseline":                      {Baseline, []recording{mute(Ending{Exit: good}, launched{})}, false, 2, false},
		"a baseline that needs no request":     {Baseline, []recording{{lines: handshake, ending: Ending{Exit: good}}}, false, 1, false},
		"stopped early":                        {"a", []recording{stopped, done}, false, 2, false},
		"stopped early, and late":              {"a", []recording{stopped, {lines: handshake, ending: Ending{Late: true}, found: true}}, false, 2, true},
		"stopped early together":               {"a", []recording{{ending: Ending{Silent: true}, launched: launched{combined: true, idle: true}}}, false, 1, false},
		"idle":                                 {"a", []recording{idle, done}, false, 2, false},
		"idle, as with an ordinary server":     {"a", []recording{idle}, true, 1, false},
		"left":                                 {"a", []recording{left, done}, false, 2, false},
		"left twice":                           {"a", []recording{left}, false, 2, true},
		"left, and nothing was found":          {"a", []recording{{lines: handshake, ending: Ending{Exit: failed}}}, false, 1, false},
		"a missed limit":                       {"a", []recording{{lines: pinged, ending: Ending{Exit: good}, found: true}, done}, false, 2, false},
		"a missed limit, twice":                {"a", []recording{{lines: pinged, ending: Ending{Exit: good}, found: true}}, false, 2, true},
		"a missed limit, and a person":         {"a", []recording{{lines: pinged, ending: Ending{Attended: true}, found: true}}, false, 1, true},
		"mute, then left, then as it is to be": {"a", []recording{mute(Ending{Exit: failed}, beside), left, done}, false, 3, false},
		"left, then stopped early":             {"a", []recording{left, stopped, done}, false, 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := (&Engine{Settings: Settings{Revision: schema.Default()}, Trace: wire.NewTrace(wire.DefaultLimits), Parallel: 1}).begin(nil)
			base := done.of(t, e.Engine, Baseline)
			launched := 0
			play := func(before *T) played {
				launch := c.launches[min(launched, len(c.launches)-1)].of(t, e.Engine, c.scenario)
				launched++
				if launch.Scenario.Name != Baseline {
					launch.Baseline = base
				}
				if before != nil {
					again := e.fresh(before)
					launch.before, launch.whole = again.before, again.whole
				}
				a := e.played(t.Context(), launch, func() {})
				a.judged, a.hangs, a.alone = func() {}, func() bool { return c.hangs }, func() bool { return true }
				return a
			}
			last, _ := excuses.Settle(t.Context(), play(nil), func(a played) (played, bool) { return play(a.T), true })
			if launched != c.want || last.Accused() != c.found {
				t.Errorf("after %d launches it is accused: %v", launched, last.Accused())
			}
			if last.Scenario.Name == Baseline && last.unbegun() != (e.launches.stopped() != "") {
				t.Errorf("a client without initialize is launched on: %q", e.launches.stopped())
			}
		})
	}
}

// TestDifferenceIsNoted: the run tells of a finding that did not come again alone.
func TestDifferenceIsNoted(t *testing.T) {
	e := &Engine{Settings: Settings{Revision: schema.Default()}, Trace: wire.NewTrace(wire.DefaultLimits)}
	before := recording{lines: handshake, found: true}.of(t, e, "a")
	after := recording{lines: work}.of(t, e, "a")
	after.noteDifference(before)
	if notes := after.Recorder().Record.At("ping.either-side", wire.Client).Notes; len(notes) != 1 {
		t.Errorf("the notes are %q", notes)
	}
}

// TestExcusesAreDocumented compares the table with that of docs/design.md.
func TestExcusesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	_, rows, _ := strings.Cut(string(text), "### Excuses of clients\n")
	rows, _, _ = strings.Cut(rows, "\n## ")
	for line := range strings.Lines(rows) {
		if name, ok := strings.CutPrefix(line, "| `"); ok {
			name, _, _ = strings.Cut(name, "`")
			documented = append(documented, name)
		}
	}
	if rows := excuses.Names(); !slices.Equal(rows, documented) {
		t.Errorf("docs/design.md lists %q; the table is %q", documented, rows)
	}
}
