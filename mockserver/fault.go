package mockserver

import (
	"slices"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/schema"
)

type (
	apply  = func(o *server.Options)
	object = map[string]any
	list   = []any
)

// Fault is one way to break one requirement.
type Fault struct {
	// ID is stable and unique: topic, dot, what is wrong in kebab case.
	ID string
	// Requirement that the fault breaks.
	Requirement string
	// Transports on which the fault shows; none means all.
	Transports []string
	// Summary says in one line how the wire differs.
	Summary string
	// Collateral lists further requirements that the fault may break: those
	// that say the same from another side, and those that cannot be met by a
	// server with this fault.
	Collateral []string
	// Form says in which form the class of fault shows: "" is the plain one.
	Form Form
	// WarnOnly marks the fault of a MUST that is only warned of, because the
	// specification leaves room for it or contradicts itself.
	WarnOnly bool
	// Apply adds the fault to a server's options. Several faults can be added
	// to the same options.
	Apply func(o *server.Options)
}

// Form is what it takes for a fault to show, beyond the plain stimulus.
type Form string

// The forms.
const (
	ByValue    Form = "value"      // a member of a family of stimuli beside the plain one
	BySession  Form = "session"    // a second session
	AtOnce     Form = "concurrent" // several requests at the same time
	InSequence Form = "sequence"   // one order or moment
	InOrder    Form = "in-order"   // a client that ends in order, and reports nothing
)

// topics returns the faults by topic.
func topics() [][]Fault {
	return [][]Fault{
		baseFaults, metaFaults, lifecycleFaults, stdioFaults, pingFaults, progressFaults, cancellationFaults,
		toolFaults, resourceFaults, promptFaults, contentFaults, completionFaults, loggingFaults, paginationFaults,
		clientFaults, schemaFaults, httpFaults, authFaults, familyFaults, threadFaults, pairFaults, momentFaults,
		factFaults,
		bystanderFaults, divertedFaults,
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

// Shows reports whether the fault shows on a transport.
func (f Fault) Shows(transport string) bool {
	return len(f.Transports) == 0 || slices.Contains(f.Transports, transport)
}
