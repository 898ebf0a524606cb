package match

import (
	"fmt"

	"github.com/onsi/gomega/types"
)

// fact matches a boolean.
type fact struct {
	want   bool
	reason string
}

// BeTrueBecause matches true. The reason, with arguments as for fmt.Sprintf, says what was
// seen if it is false. It is Gomega's of that name, without what else comes with it.
func BeTrueBecause(format string, args ...any) types.GomegaMatcher {
	return &fact{true, fmt.Sprintf(format, args...)}
}

// BeFalseBecause matches false. The reason says what was seen if it is true.
func BeFalseBecause(format string, args ...any) types.GomegaMatcher {
	return &fact{false, fmt.Sprintf(format, args...)}
}

// Match implements types.GomegaMatcher.
func (m *fact) Match(actual any) (bool, error) {
	is, ok := actual.(bool)
	if !ok {
		return false, fmt.Errorf("a %T is neither true nor false", actual)
	}
	return is == m.want, nil
}

// FailureMessage implements types.GomegaMatcher.
func (m *fact) FailureMessage(any) string { return m.reason }

// NegatedFailureMessage implements types.GomegaMatcher.
func (m *fact) NegatedFailureMessage(any) string {
	return fmt.Sprintf("%t came, where %t was expected", m.want, !m.want)
}
