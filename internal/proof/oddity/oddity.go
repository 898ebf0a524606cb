// Package oddity says what an oddity is, for servers (package oddserver) and clients (package oddclient) alike.
package oddity

import (
	"context"
	"strings"

	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/schema"
)

// An Of is one legal difference of a peer from the reference. P is the type of the peer's options. A finding on it is a
// false accusation (docs/calm-matrix.md).
type Of[P any] struct {
	// ID is stable and unique: topic, dot, what is odd in kebab case.
	ID string
	// Summary says in one line how the wire differs.
	Summary string
	// Why says in one line why that is legal.
	Why string
	// Source is the place that allows it, or the place that would have to forbid it and does not.
	Source schema.Source
	// Transports on which the oddity shows; none means all.
	Transports []string
	// Scenarios in which the oddity of a client shows besides those in which everything does.
	Scenarios []string
	// Untried lists requirements that a peer with this oddity leaves open; an asterisk
	// at the end stands for the rest of the id.
	Untried []string
	// Changes names the part that the oddity replaces: two oddities that replace the same part hide each other. It is
	// empty for an oddity that only adds something.
	Changes string
	// Apply adds the oddity to the options of a peer; that of a client may be nil. Several can be added to the same.
	Apply func(o *P)
	// Run, unless nil, runs a client in place of its own method.
	Run func(ctx context.Context, p P) error
}

// New returns an oddity that shows on the transports of its topic. The place that allows it is a page and a heading, as
// in page#heading.
func New[P any](id, summary, why, place string, apply func(o *P)) Of[P] {
	page, anchor, _ := strings.Cut(place, "#")
	return Of[P]{ID: id, Summary: summary, Why: why, Source: schema.Source{Page: page, Anchor: anchor},
		Transports: mockserver.TransportsOf(id), Apply: apply}
}

// The methods below return an oddity that says more.

// Only names the transports on which the oddity shows, where these are not those of its topic.
func (o Of[P]) Only(transports []string) Of[P] {
	o.Transports = transports
	return o
}

// Everywhere says that the oddity shows on all transports.
func (o Of[P]) Everywhere() Of[P] {
	o.Transports = nil
	return o
}

// In names scenarios in which the oddity of a client shows.
func (o Of[P]) In(scenarios ...string) Of[P] {
	o.Scenarios = scenarios
	return o
}

// Open lists requirements that a peer with the oddity leaves open.
func (o Of[P]) Open(requirements ...string) Of[P] {
	o.Untried = requirements
	return o
}

// Replaces names the part that the oddity replaces.
func (o Of[P]) Replaces(part string) Of[P] {
	o.Changes = part
	return o
}

// Running runs a client in place of its own method.
func (o Of[P]) Running(run func(ctx context.Context, p P) error) Of[P] {
	o.Run = run
	return o
}
