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
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
)

type (
	apply  = func(c *client.Standalone)
	object = map[string]any
	list   = []any
	match  = func(m *wire.Message) bool
)

// Fault is one way to break one requirement.
type Fault = mockserver.FaultOf[client.Standalone]

var fault = mockserver.New[client.Standalone]

// The forms of faults.
const (
	byValue    = mockserver.ByValue
	bySession  = mockserver.BySession
	atOnce     = mockserver.AtOnce
	inSequence = mockserver.InSequence
)

func topics() mockserver.Topics[client.Standalone] {
	return mockserver.Topics[client.Standalone]{
		baseFaults, metaFaults, lifecycleFaults, timeFaults, utilityFaults, featureFaults, listFaults,
		toleranceFaults(), contentFaults(),
		schemaFaults(), httpFaults, authFaults, stdioFaults, familyFaults, threadFaults, momentFaults, factFaults,
		leavingFaults(),
	}
}

// Catalogue returns all faults, grouped by topic. The caller owns the slice.
func Catalogue() []Fault { return topics().All() }

// Find returns the fault with an id.
func Find(id string) (Fault, bool) { return topics().Find(id) }
