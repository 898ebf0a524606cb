package ledger

import (
	"strings"

	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/result"
)

// hints returns what the user can configure so that a requirement can be tried. A
// recording cannot be configured.
func (l *Ledger) hints(q schema.Requirement) []string {
	if l.Passive {
		return nil
	}
	return l.Revision.HintsFor(q, schema.Party(l.Party), l.Transport, l.Given)
}

// withHelp adds the hints of a requirement to a reason.
func (l *Ledger) withHelp(reason string, q schema.Requirement) string {
	hints := l.hints(q)
	if len(hints) == 0 {
		return reason
	}
	return reason + " (" + result.Helps + strings.Join(hints, "; ") + ")"
}
