package client_test

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/calmmatrix"
	"github.com/mcpconform/mcpconform/internal/proof/memory"
	"github.com/mcpconform/mcpconform/internal/proof/oddclient"
	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/client"
	clients "github.com/mcpconform/mcpconform/suites/internal/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

// part is how many scenarios there are for each in which an oddity is tried, besides
// those that it names. Each scenario sees oddities of every topic.
const part = 24

// TestCalmMatrix runs the scenarios with clients that are odd and legal: none of them
// may be accused.
func TestCalmMatrix(t *testing.T) {
	brief.WholeRuns(t)
	oddities := oddclient.Oddities()
	over := []string{transport.NameStdio, transport.NameHTTP, transport.NameSSE}
	m := calmmatrix.Matrix{
		File: "../../docs/calm-matrix-clients.md",
		Head: "# Calm matrix of clients\n\n" +
			"Clients that are odd and legal: how each differs on the wire, and why the specification allows it. The scenarios find\n" +
			"fault with none of them, over any transport; a finding fails the build. The last column names what a client with the oddity\n" +
			"leaves open. Written by `go test ./suites/client -run TestCalmMatrix -update`. The test tries each in the scenarios in\n" +
			"which it shows and in a part of the others, and wants no finding. With `-whole` it tries each in all of them, and also wants\n" +
			"whatever passes on the reference client to pass, but for what the last column names. Faults of clients are in\n" +
			"`kill-matrix-clients.md`.\n",
		OneOf: 8, Partial: true,
		Run: func(ctx context.Context, seed uint64, transport string, chosen ...int) (*result.Run, error) {
			var odd []oddclient.Oddity
			var scenarios []string // none for all
			for _, i := range chosen {
				odd = append(odd, oddities[i])
				if !brief.Whole() {
					scenarios = append(scenarios, meeting(oddities[i], i+slices.Index(over, transport))...)
				}
			}
			return calmRun(ctx, seed, transport, scenarios, odd)
		},
	}
	for _, o := range oddities {
		if o.Transports == nil {
			o.Transports = over
		}
		m.Oddities = append(m.Oddities, calmmatrix.Oddity{
			ID: o.ID, Summary: o.Summary, Why: o.Why, Source: o.Source, Transports: o.Transports, Untried: o.Untried,
		})
	}
	m.Test(t)
}

// meeting returns the scenarios in which an oddity is tried: those that it names, and
// a part of the others, which differs from one oddity to the next.
func meeting(o oddclient.Oddity, offset int) []string {
	names := slices.Clone(o.Scenarios)
	for i, s := range clients.Scenarios() {
		if (i+offset)%part == 0 {
			names = append(names, s.Name)
		}
	}
	return names
}

// calmRun runs scenarios against a client with oddities.
func calmRun(ctx context.Context, seed uint64, over string, scenarios []string, odd []oddclient.Oddity) (*result.Run, error) {
	s := suites.ClientScenarios{
		Transport: over, Scenarios: scenarios, Bridge: []string{"bridge"}, Network: new(memory.Network),
		Launch: func(p client.Endpoint) (transport.Process, error) {
			return transport.Func{Name: "odd client", Run: func(ctx context.Context, _ io.Reader, _, _ io.Writer) error {
				c := reference.Standalone{
					URL: p.URL, Dial: p.Dial, Legacy: p.Transport == transport.NameSSE, Timeout: answerTime, UserActions: p.UserActions,
					Authorizer: &reference.Authorizer{ID: p.ClientID, Secret: p.ClientSecret},
				}
				if p.Transport == transport.NameStdio {
					c.Launcher = transport.Func{Name: p.Scenario, Run: p.Serve}
				}
				return oddclient.Start(ctx, c, odd...)
			}}.Launch()
		},
	}
	run, _, err := suites.Run(ctx, s, suites.Options{Timeout: 20 * time.Second, Seed: seed})
	return run, err
}

// The oddities are told apart, and their sources are places that the catalogue knows.
func TestOdditiesAreSound(t *testing.T) {
	places := make(map[schema.Source]bool)
	catalogue := schema.Default().Catalogue()
	for _, r := range catalogue {
		places[schema.Source{Page: r.Page, Anchor: r.Anchor}] = true
	}
	seen := make(map[string]bool)
	for _, o := range oddclient.Oddities() {
		if seen[o.ID] {
			t.Errorf("two oddities are named %s", o.ID)
		}
		seen[o.ID] = true
		if o.Summary == "" || o.Why == "" || o.Apply == nil && o.Run == nil {
			t.Errorf("%s is incomplete", o.ID)
		}
		if !places[o.Source] {
			t.Errorf("%s: the catalogue has no requirement at %s#%s", o.ID, o.Source.Page, o.Source.Anchor)
		}
		for _, pattern := range o.Scenarios {
			if !slices.ContainsFunc(clients.Scenarios(), func(s *client.Scenario) bool { return s.Named(pattern) }) {
				t.Errorf("%s: there is no scenario %s", o.ID, pattern)
			}
		}
	}
}
