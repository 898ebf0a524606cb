// Package mockclient is the reference client told to misbehave: a catalogue of
// faults, each of which breaks one requirement of the revision in a way that
// clients have been seen to break it. It is to clients what package mockserver
// is to servers.
//
//	c := client.Standalone{URL: url}
//	fault, _ := mockclient.Find("http.accept-json-only")
//	fault.Apply(&c)
//	err := c.Run(ctx)
package mockclient

import (
	"slices"

	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
)

type (
	apply  = func(c *client.Standalone)
	object = map[string]any
	list   = []any
	match  = func(m *wire.Message) bool
)

// Fault is one way to break one requirement.
type Fault struct {
	// ID is stable and unique: topic, dot, what is wrong in kebab case.
	ID string
	// Requirement that the fault breaks.
	Requirement string
	// Scenario in which the fault shows; "" is the one with an ordinary server.
	Scenario string
	// Transports on which the fault shows; none means all.
	Transports []string
	// Summary says in one line how the wire differs.
	Summary string
	// Collateral lists further requirements that the fault may break: those
	// that say the same from another side, and those that cannot be met by a
	// client with this fault.
	Collateral []string
	// WarnOnly says that the fault breaks a MUST and yet only earns a warning,
	// because the specification leaves room for it or contradicts itself.
	WarnOnly bool
	// Form says in which form the class of fault shows: "" is the plain one.
	Form mockserver.Form
	// Crashes says that a process with the fault is ended by a signal where its run fails.
	Crashes bool
	// Apply adds the fault to a client. Several can be added to the same.
	Apply func(c *client.Standalone)
}

// topics returns the faults by topic.
func topics() [][]Fault {
	return [][]Fault{
		baseFaults, metaFaults, lifecycleFaults, timeFaults, utilityFaults, featureFaults, listFaults,
		toleranceFaults(), contentFaults(),
		schemaFaults(), httpFaults, authFaults, stdioFaults, familyFaults, threadFaults, momentFaults, factFaults,
		leavingFaults(),
	}
}

// Catalogue returns all faults, grouped by topic. The caller owns the slice.
func Catalogue() []Fault { return slices.Concat(topics()...) }

// Find returns the fault with an id.
func Find(id string) (Fault, bool) {
	for _, faults := range topics() {
		if i := slices.IndexFunc(faults, func(f Fault) bool { return f.ID == id }); i >= 0 {
			return faults[i], true
		}
	}
	return Fault{}, false
}

// Level returns the level of the requirement that the fault breaks.
func (f Fault) Level() schema.Level {
	r, _ := schema.Default().Lookup(f.Requirement)
	return r.Level
}

// Page returns the specification's page of the requirement.
func (f Fault) Page() string {
	r, _ := schema.Default().Lookup(f.Requirement)
	return r.Page
}

// Transport returns one on which the fault shows.
func (f Fault) Transport() string {
	if len(f.Transports) > 0 {
		return f.Transports[0]
	}
	return "http"
}
