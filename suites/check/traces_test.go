package check

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
)

// traced is an attempt in a trace of testdata/excuses, which holds no more than what a row reads. The finding of the
// attempt shows the last request of the trace.
type traced struct {
	lost bool     // a session of the finding: the server has said that it does not know it
	gone bool     // what the server says of such a session when it is asked
	rows []string // that fit, if each experiment that the trace allows comes out for the server
}

// reading reads the attempt from its trace.
func (c traced) reading(t *testing.T, name string) *reading {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "excuses", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	trace, err := wire.ReadTrace(file, wire.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	first := wire.NewTrace(wire.DefaultLimits).Connect(transport.NameStdio, FirstLabel)
	for _, e := range []wire.Event{
		{From: wire.Client, Raw: []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`)},
		{From: wire.Server, Raw: []byte(`{"jsonrpc":"2.0","id":1,"result":{"capabilities":{"tools":{},"prompts":{}}}}`)},
	} {
		e.Kind = wire.KindMessage
		if _, err := first.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	check := &Check{Name: "a/b", Requirements: []string{"a.b"}, Needs: Needs{Session: Fresh}}
	found := ledger.NewRecorder(schema.Default(), check.Name)
	r := &reading{logs: trace.Logs(), target: &Target{Init: first.Conversation().Exchanges[0]}}
	var last *wire.Exchange
	for _, l := range r.logs {
		for _, x := range l.Conversation().Exchanges {
			if last == nil || x.Request.At > last.Request.At {
				last = x
			}
		}
	}
	found.Fail("a.b", wire.Server, "something", last.Events()...)
	r.outcome = Outcome{Check: check, Verdict: Failed, Record: found.Record}
	for _, l := range r.logs {
		r.sessions = append(r.sessions, visit{log: l, seen: l.Events(), lost: c.lost && l.ID == last.Request.Conn})
	}
	return r
}

// TestExcusesOfTraces tells from traces which rows excuse a finding. Beside each trace that a row excuses
// stands one, with -not in its name, that looks like it and that no row excuses.
func TestExcusesOfTraces(t *testing.T) {
	lost := []string{"session-lost", "short-sessions"}
	for name, c := range map[string]traced{
		"too-many-requests":      {rows: []string{"too-many-requests"}},
		"too-many-requests-not":  {},
		"session-lost":           {lost: true, gone: true, rows: lost},
		"session-lost-not":       {},
		"no-further-session":     {rows: []string{"session-lost", "no-further-session", "no-room-yet", "short-sessions"}},
		"no-room-yet":            {rows: []string{"no-further-session", "no-room-yet"}},
		"no-further-session-not": {},
		"ended-at-will":          {lost: true, gone: true, rows: []string{"session-lost", "ended-at-will", "short-sessions"}},
		"ended-at-will-not":      {},
		"one-session":            {lost: true, gone: true, rows: []string{"session-lost", "one-session", "short-sessions"}},
		"declared-elsewhere":     {rows: []string{"declared-elsewhere"}},
		"declared-elsewhere-not": {},
		"limits-rate":            {rows: []string{"limits-rate"}},
		"limits-rate-not":        {},
		"limits-concurrency":     {rows: []string{"limits-concurrency"}},
		"limits-concurrency-not": {},
		// It ends after a faulty message, but after the client has ended another session: ended-at-will does not fit.
		"deleted-elsewhere": {lost: true, gone: true, rows: []string{"session-lost", "one-session", "short-sessions"}},
	} {
		t.Run(name, func(t *testing.T) {
			if fit := c.fitting(t, name, c.gone); !slices.Equal(fit, c.rows) {
				t.Errorf("%q fit, not %q", fit, c.rows)
			}
		})
	}
	// What the trace leaves open, the question decides: a server that serves the session after all did not end it.
	served := traced{lost: true}
	if fit := served.fitting(t, "ended-at-will", false); slices.Contains(fit, "ended-at-will") {
		t.Errorf("%q fit although the session is served", fit)
	}
}

// fitting returns the rows that fit the attempt.
func (c traced) fitting(t *testing.T, name string, gone bool) (fit []string) {
	r := c.reading(t, name)
	r.ask(func(int) bool { return gone })
	a := r.attempt()
	yes := func() bool { return true }
	with := experiments{
		opensAnother: func() bool { return false }, further: func() error { return errors.New("there is no room") },
		single: yes, shortLived: yes,
		limitsRate: func() bool { return len(ratable(a.refusals)) > 0 },
		limitsConcurrency: func() bool {
			return slices.ContainsFunc(a.refusals, func(r refused) bool { return r.concurrent })
		},
	}
	for _, row := range excuses {
		if row.Fits(played{&a, with}) != "" {
			fit = append(fit, row.Name)
		}
	}
	return fit
}

// TestRecordedTracesAreUsed: each row that reads the trace has a trace that it excuses.
func TestRecordedTracesAreUsed(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "excuses", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, row := range excuses.Names() {
		// These rest on times, on earlier attempts and on an experiment. TestExcused has them.
		if !slices.Contains([]string{"late-answer", "second-time", "short-sessions"}, row) &&
			!slices.Contains(files, filepath.Join("testdata", "excuses", row+".jsonl")) {
			t.Errorf("no trace for %s", row)
		}
	}
}
