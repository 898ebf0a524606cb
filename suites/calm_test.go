package suites_test

import (
	"context"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/calmmatrix"
	"github.com/mcpconform/mcpconform/internal/proof/oddserver"
	"github.com/mcpconform/mcpconform/suites/result"
)

// slow are oddities that take a run longer than others, and why.
var slow = map[string]string{
	"http.busy":                        "which requests are refused is a matter of chance, and so whether what waits has to wait again",
	"http.sessions-end-of-3":           "hardly a session lasts for as long as what waits needs to begin",
	"http.sessions-end-of-7":           "whether what waits loses its session is a matter of chance",
	"http.sessions-end-of-20":          "whether what waits loses its session is a matter of chance",
	"http.sessions-end-of-50":          "whether what waits loses its session is a matter of chance",
	"http.too-many-requests-as-errors": "a run has two thousand requests, and the server takes twenty in a second",
	"moments.in-turn-slowly":           "the server takes one request after the other, and two seconds for each list",
}

// TestCalmMatrix is the counterpart of the kill matrix: servers that are odd and legal
// are not accused of anything.
func TestCalmMatrix(t *testing.T) {
	brief.WholeRuns(t)
	oddities := oddserver.Oddities()
	m := calmmatrix.Matrix{
		File: "../docs/calm-matrix.md",
		Head: "# Calm matrix\n\n" +
			"Each legal oddity of the mock server, and what the specification says about it. The suites find nothing on a server\n" +
			"with it, and whatever passes on the reference server passes there, but for the requirements that cannot be tried.\n" +
			"A finding fails the build. Written by `go test ./suites -run TestCalmMatrix -update`.\n\n" +
			"In this test, oddities that do not hide each other share a run, and those that leave much untried are tried over one\n" +
			"transport. Only a part of the runs is made, and with `MCPCONFORM_WHOLE=1` one for each oddity over any of its transports. With\n" +
			"`-whole`, each oddity is tried alone over each of its transports, with several seeds; with `-oddity PREFIX` those whose id\n" +
			"begins with this.\n",
		OneOf: 16,
		// Four checks wait at the same time for a minute until the server gives up a request. Each may be tried once
		// more, alone. All else has a minute.
		Limit: 6 * time.Minute,
		// They are tried once, while all else is tried.
		Alone: 100 * time.Second,
		Slow:  slow,
		Run: func(ctx context.Context, seed uint64, over string, chosen ...int) (*result.Run, error) {
			o := serverOptions()
			for _, i := range chosen {
				oddities[i].Apply(&o)
			}
			return conduct(ctx, seed, over, o)
		},
		Reference: referenceRun,
	}
	for _, o := range oddities {
		over := o.Transports
		if over == nil {
			over = transports
		}
		m.Oddities = append(m.Oddities, calmmatrix.Oddity{
			ID: o.ID, Summary: o.Summary, Why: o.Why, Source: o.Source, Transports: over, Untried: o.Untried, Changes: o.Changes,
		})
	}
	m.Test(t)
}
