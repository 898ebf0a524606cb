package mockserver

import (
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/schema"
)

type (
	apply  = func(o *server.Options)
	object = map[string]any
	list   = []any
)

// Fault is one way to break one requirement.
type Fault = FaultOf[server.Options]

// FaultOf is a fault of a peer that has options of a type: a server here, a client in package mockclient.
type FaultOf[P any] struct {
	// ID is stable and unique: topic, dot, what is wrong in kebab case.
	ID string
	// Requirement that the fault breaks.
	Requirement schema.ID
	// Form says in which form the class of fault shows: "" is the plain one.
	Form Form
	// Scenario in which the fault of a client shows; "" is the one with an ordinary server.
	Scenario string
	// Transports on which the fault shows; none means all.
	Transports []string
	// WarnOnly marks the fault of a MUST that is only warned of, because the
	// specification leaves room for it or contradicts itself.
	WarnOnly bool
	// Crashes says that the process of a client with the fault is ended by a signal where its run fails.
	Crashes bool
	// Summary says in one line how the wire differs.
	Summary string
	// Collateral lists further requirements that the fault may break: those
	// that say the same from another side, and those that cannot be met by a
	// peer with this fault.
	Collateral []schema.ID
	// Apply adds the fault to the options of a peer. Several faults can be added
	// to the same options.
	Apply func(o *P)
}

// New returns a fault that shows on the transports of its topic.
func New[P any](id string, requirement schema.ID, summary string, apply func(o *P)) FaultOf[P] {
	return FaultOf[P]{ID: id, Requirement: requirement, Summary: summary, Transports: TransportsOf(id), Apply: apply}
}

var fault = New[server.Options]

// TransportsOf returns the transports that the topic of a fault or an oddity is about; none means all.
func TransportsOf(id string) []string {
	switch topic, _, _ := strings.Cut(id, "."); topic {
	case "http", "auth":
		return []string{transport.NameHTTP}
	case "sse", "legacy":
		return []string{transport.NameSSE}
	case "stdio":
		return []string{transport.NameStdio}
	}
	return nil
}

// The methods below return a fault that says more.

// Seen says in which form the fault shows.
func (f FaultOf[P]) Seen(form Form) FaultOf[P] {
	f.Form = form
	return f
}

// In names the scenario in which the fault of a client shows.
func (f FaultOf[P]) In(scenario string) FaultOf[P] {
	f.Scenario = scenario
	return f
}

// Only names the transports on which the fault shows, where these are not those of its topic.
func (f FaultOf[P]) Only(transports []string) FaultOf[P] {
	f.Transports = transports
	return f
}

// Everywhere says that the fault shows on all transports.
func (f FaultOf[P]) Everywhere() FaultOf[P] {
	f.Transports = nil
	return f
}

// Warns marks the fault of a MUST that is only warned of.
func (f FaultOf[P]) Warns() FaultOf[P] {
	f.WarnOnly = true
	return f
}

// Crashing says that a signal ends the process.
func (f FaultOf[P]) Crashing() FaultOf[P] {
	f.Crashes = true
	return f
}

// Also lists the collateral.
func (f FaultOf[P]) Also(collateral ...schema.ID) FaultOf[P] {
	f.Collateral = collateral
	return f
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

// Topics are faults by topic.
type Topics[P any] [][]FaultOf[P]

// All returns all faults. The caller owns the slice.
func (t Topics[P]) All() []FaultOf[P] { return slices.Concat(t...) }

// Find returns the fault with an id.
func (t Topics[P]) Find(id string) (f FaultOf[P], ok bool) {
	for _, faults := range t {
		if i := slices.IndexFunc(faults, func(f FaultOf[P]) bool { return f.ID == id }); i >= 0 {
			return faults[i], true
		}
	}
	return f, false
}

func topics() Topics[server.Options] {
	return Topics[server.Options]{
		baseFaults, metaFaults, lifecycleFaults, stdioFaults, pingFaults, progressFaults, cancellationFaults,
		toolFaults, resourceFaults, promptFaults, contentFaults, completionFaults, loggingFaults, paginationFaults,
		clientFaults, schemaFaults, httpFaults, authFaults, familyFaults, threadFaults, pairFaults, momentFaults,
		factFaults, bystanderFaults, divertedFaults,
	}
}

// Catalogue returns all faults, grouped by topic. The caller owns the slice.
func Catalogue() []Fault { return topics().All() }

// Find returns the fault with an id.
func Find(id string) (Fault, bool) { return topics().Find(id) }

// Level returns the level of the requirement that the fault breaks.
func (f FaultOf[P]) Level() schema.Level {
	r, _ := schema.Default().Lookup(f.Requirement)
	return r.Level
}

// Page returns the specification's page of the requirement.
func (f FaultOf[P]) Page() string {
	r, _ := schema.Default().Lookup(f.Requirement)
	return r.Page
}

// Shows reports whether the fault shows on a transport.
func (f FaultOf[P]) Shows(transport string) bool {
	return len(f.Transports) == 0 || slices.Contains(f.Transports, transport)
}

// Transport returns one on which the fault shows.
func (f FaultOf[P]) Transport() string {
	if len(f.Transports) > 0 {
		return f.Transports[0]
	}
	return "http"
}
