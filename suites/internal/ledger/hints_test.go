package ledger

import (
	"testing"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
)

// A reason ends with the hints for the party that is judged, and with none of a recording.
func TestWithHelp(t *testing.T) {
	q, ok := schema.Default().Lookup("progress.notify")
	if !ok {
		t.Fatal("the catalogue has no progress.notify")
	}
	for _, test := range []struct {
		ledger Ledger
		want   string
	}{
		{Ledger{Revision: schema.Default(), Party: wire.Server}, "why (this helps: name a tool that reports progress)"},
		{Ledger{Revision: schema.Default(), Party: wire.Server, Given: []string{"toolRoles.progress"}}, "why"},
		{Ledger{Revision: schema.Default(), Party: wire.Client}, "why (this helps: use a client command that asks for progress)"},
		{Ledger{Revision: schema.Default(), Party: wire.Client, Given: []string{"tools/call", "progressToken"}}, "why"},
		{Ledger{Revision: schema.Default(), Party: wire.Server, Passive: true}, "why"},
	} {
		if got := test.ledger.withHelp("why", q); got != test.want {
			t.Errorf("%s, given %v: %q, want %q", test.ledger.Party, test.ledger.Given, got, test.want)
		}
	}
}
