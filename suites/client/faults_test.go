package client_test

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mcpconform/mcpconform/internal/proof/brief"
	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/client"
	clients "github.com/mcpconform/mcpconform/suites/internal/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

// TestFaultyServers runs the reference client against each fault of servers. The client must not be blamed for any of
// them, and the run has to end.
func TestFaultyServers(t *testing.T) {
	const atOnce = 100 // scenarios, of which a run records all that is judged
	parts := [][]string{{"faults/*"}}
	if brief.Each() {
		var names []string
		for _, s := range clients.Faulty() {
			names = append(names, s.Name)
		}
		parts = slices.Collect(slices.Chunk(names, atOnce))
	}
	transports := []string{transport.NameStdio, transport.NameHTTP, transport.NameSSE}
	for at, over := range transports {
		t.Run(over, func(t *testing.T) {
			parts := parts
			if len(parts) > len(transports) { // each fault over one of the transports
				parts = brief.Sample(t, slices.Concat(parts[at:], parts[:at]), len(transports))
			}
			for _, names := range parts {
				run := conducted(t, suites.ClientScenarios{Transport: over, Scenarios: names, Launch: func(p client.Endpoint) (transport.Process, error) {
					return suites.ReferenceClient(p, answerTime).Launch()
				}}, suites.Options{Timeout: 20 * time.Second})
				if run.Verdict != result.Conformant {
					t.Errorf("the run of %s and others is %s: %s", names[0], run.Verdict, run.Reason)
				}
				for _, q := range run.Requirements {
					if q.Verdict == result.Fail || q.Verdict == result.Warn || q.Verdict == result.Error {
						t.Errorf("%s is %s: %s", q.ID, q.Verdict, q.Findings[0].Message)
						for _, e := range q.Findings[0].Evidence {
							t.Logf("%s %s", e.Stream, e.Text)
						}
					}
				}
			}
		})
	}
}

// begin opens a session with a server over HTTP.
func begin(ctx context.Context, p client.Endpoint, patience time.Duration) (*reference.Session, error) {
	dialer := &transport.HTTP{Endpoint: transport.Endpoint{URL: p.URL, Dial: p.Dial}}
	conn, err := dialer.Dial(ctx, wire.NewTrace(wire.DefaultLimits).Connect(dialer.Transport(), "a client"))
	if err != nil {
		return nil, err
	}
	s := reference.New(conn, reference.Options{Timeout: patience})
	if _, err := s.Initialize(ctx); err != nil {
		_ = s.Close(ctx)
		return nil, err
	}
	return s, nil
}

// readOn reads a list for as long as there are cursors.
func readOn(ctx context.Context, p client.Endpoint) error {
	s, err := begin(ctx, p, answerTime)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close(context.WithoutCancel(ctx)) }()
	var params any
	for {
		x, err := s.Call(ctx, "prompts/list", params)
		if err != nil {
			return err
		}
		cursor, more := x.Result()["nextCursor"].(string)
		if !more {
			return nil
		}
		params = map[string]any{"cursor": cursor}
	}
}

// A person would give up a list that never ends, and no program has to. A client that reads until it is stopped costs
// one limit, and is not blamed.
func TestEndlessLists(t *testing.T) {
	t.Parallel()
	run := conduct(t, suites.ClientScenarios{Transport: transport.NameHTTP, Scenarios: []string{"faults/*-list", "lists/endless"}, Launch: func(p client.Endpoint) (transport.Process, error) {
		return transport.Func{Name: "client", Run: func(ctx context.Context, _ io.Reader, _, _ io.Writer) error {
			return readOn(ctx, p)
		}}.Launch()
	}}, suites.Options{Timeout: 5 * time.Second})
	for _, q := range run.Requirements {
		if q.Verdict == result.Fail || q.Verdict == result.Warn {
			t.Errorf("%s is %s: %s", q.ID, q.Verdict, q.Findings[0].Message)
		}
	}
	want := []string{"mcpconform stopped the client at the time limit in lists/endless, faults/endless-list, faults/circular-list; if it may take longer, raise --timeout"}
	if diff := cmp.Diff(want, run.Notes); diff != "" {
		t.Error(diff)
	}
}
