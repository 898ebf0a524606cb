// Package oddity says what an oddity is, for servers (package oddserver) and clients (package oddclient) alike.
package oddity

import (
	"context"
	"strings"

	"github.com/mcpconform/mcpconform/schema"
)

// Of is one way in which a peer that has options of type P may differ from the reference and yet keep to the
// specification. A finding on it is a false accusation (docs/calm-matrix.md).
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

// At names a place in the specification: a page and a heading, as in page#heading.
func At(place string) schema.Source {
	page, anchor, _ := strings.Cut(place, "#")
	return schema.Source{Page: page, Anchor: anchor}
}
