package client_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/mockserver/mockclient"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites/result"
)

// crossing are the faults that show when a cancellation comes to a client behind its answer. The two cross where a
// sequence does not wait between them, and a client that handles messages at the same time may have answered or not:
// the seed decides what is sent, and not at which of several such moments the client is met.
var crossing = []string{"moments.late-cancellation-deafens", "moments.late-cancellation-death"}

// TestSeed wants two runs with one seed to say the same, of a client that does well and of those that
// show a fault at one moment.
func TestSeed(t *testing.T) {
	brief.WholeRuns(t)
	said := func(name string, run func(ctx context.Context) (*result.Run, error)) (all []string) {
		virtual.Test(t, func(t *testing.T) {
			r, err := run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range r.Requirements {
				all = append(all, fmt.Sprintf("%s %s %s", q.ID, q.Verdict, q.Reason))
				for _, f := range q.Findings {
					if slices.Contains(crossing, name) {
						f.Message = "" // it tells the sequence
					}
					all = append(all, f.Check+": "+f.Message)
				}
			}
		})
		return all
	}
	same := func(name string, run func(ctx context.Context) (*result.Run, error)) {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(said(name, run), said(name, run)); diff != "" {
				t.Errorf("two runs with one seed differ:\n%s", diff)
			}
		})
	}
	for _, over := range brief.Part(t, []string{transport.NameStdio, transport.NameHTTP, transport.NameSSE}, 3) {
		same(over, func(ctx context.Context) (*result.Run, error) { return calmRun(ctx, 7, over, nil, nil) })
	}
	for _, f := range slices.DeleteFunc(mockclient.Catalogue(), func(f mockclient.Fault) bool { return !strings.HasPrefix(f.ID, "moments.") }) {
		same(f.ID, func(ctx context.Context) (*result.Run, error) { return faultyRun(ctx, f) })
	}
}

// TestSequencesKeep wants found that a client forgets a fact after an action that has nothing to do with it,
// whichever they are.
func TestSequencesKeep(t *testing.T) {
	brief.WholeRuns(t)
	var tries []mockclient.Fault
	for _, f := range mockclient.Forgotten() {
		over := f.Transports
		if over == nil {
			over = []string{transport.NameStdio, transport.NameHTTP}
		}
		for _, name := range over {
			f.Transports = []string{name}
			tries = append(tries, f)
		}
	}
	for _, f := range brief.Sample(t, tries, 8) {
		t.Run(f.Transport()+"/"+f.ID, func(t *testing.T) {
			virtual.Test(t, func(t *testing.T) {
				run, err := faultyRun(t.Context(), f)
				if err != nil {
					t.Fatal(err)
				}
				i := slices.IndexFunc(run.Requirements, func(q result.Requirement) bool { return q.ID == f.Requirement })
				for _, found := range run.Requirements[i].Findings {
					t.Log(found.Check, found.Message)
				}
				if len(run.Requirements[i].Findings) == 0 {
					t.Errorf("%s is not found broken: %s", f.Requirement, run.Requirements[i].Reason)
				}
			})
		})
	}
}
