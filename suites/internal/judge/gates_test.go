package judge

import (
	"testing"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// TestGates: what a message needs is known.
func TestGates(t *testing.T) {
	for _, g := range gates {
		if wire.Capability(g.method) == "" {
			t.Errorf("%s holds %s to no capability", g.requirement, g.method)
		}
	}
}
