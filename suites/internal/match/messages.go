package match

import (
	"fmt"

	"github.com/onsi/gomega/types"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// carry matches messages among which one fits.
type carry struct {
	what  string
	fits  func(*wire.Event) bool
	found *wire.Event
}

// Carry matches messages, in their order, if one of them fits. what names the wanted one in a clause: "an answer to
// the notification".
func Carry(what string, fits func(*wire.Event) bool) types.GomegaMatcher {
	return &carry{what: what, fits: fits}
}

// Match implements types.GomegaMatcher.
func (m *carry) Match(actual any) (bool, error) {
	events, ok := actual.([]*wire.Event)
	if !ok {
		return false, fmt.Errorf("a %T does not carry messages", actual)
	}
	for _, e := range events {
		if m.fits(e) {
			m.found = e
			return true, nil
		}
	}
	return false, nil
}

// FailureMessage implements types.GomegaMatcher.
func (m *carry) FailureMessage(any) string { return m.what + " was expected, and did not come" }

// NegatedFailureMessage implements types.GomegaMatcher.
func (m *carry) NegatedFailureMessage(any) string { return m.what + " came, where none was expected" }

// Evidence returns the message that fits.
func (m *carry) Evidence() []*wire.Event {
	if m.found == nil {
		return nil
	}
	return []*wire.Event{m.found}
}
