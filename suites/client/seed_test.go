package client_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/internal/virtual"
	"github.com/mcpconform/mcpconform/mockserver/mockclient"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites/internal/brief"
	"github.com/mcpconform/mcpconform/suites/result"
)

// TestSeed wants two runs with one seed to say the same, of a client that does well and of those that
// show a fault at one moment.
func TestSeed(t *testing.T) {
	brief.WholeRuns(t)
	said := func(run func(ctx context.Context) (*result.Run, error)) (all []string) {
		virtual.Test(t, func(t *testing.T) {
			r, err := run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range r.Requirements {
				all = append(all, fmt.Sprintf("%s %s %s", q.ID, q.Verdict, q.Reason))
				for _, f := range q.Findings {
					all = append(all, f.Check+": "+f.Message)
				}
			}
		})
		return all
	}
	same := func(name string, run func(ctx context.Context) (*result.Run, error)) {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(said(run), said(run)); diff != "" {
				t.Errorf("two runs with one seed differ:\n%s", diff)
			}
		})
	}
	for _, over := range brief.Part(t, []string{transport.NameStdio, transport.NameHTTP, transport.NameSSE}, max(1, brief.Usual(3))) {
		same(over, func(ctx context.Context) (*result.Run, error) { return calmRun(ctx, 7, over, nil, nil) })
	}
	for _, f := range slices.DeleteFunc(mockclient.Catalogue(), func(f mockclient.Fault) bool { return !strings.HasPrefix(f.ID, "moments.") }) {
		same(f.ID, func(ctx context.Context) (*result.Run, error) { return faultyRun(ctx, f) })
	}
}
