package match

import (
	"fmt"

	"github.com/onsi/gomega/types"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// Expectation is what a check or a scenario expects of a value. It is a Gomega
// assertion, but for two things: a value that does not meet it is a finding, and the
// description begins that finding.
//
// It reports whether the value is as expected. The description is a clause that
// says under which circumstances, "without a token", with arguments as for
// fmt.Sprintf.
type Expectation struct {
	Actual any
	// Satisfied is called if the value is as expected, unless it is nil. Unsatisfied gets the finding if it is not,
	// with the events that the value and the matcher show.
	Satisfied   func()
	Unsatisfied func(message string, shown []*wire.Event)
}

// To expects that a value fits.
func (e *Expectation) To(m types.GomegaMatcher, description ...any) bool {
	return e.judge(m, true, description)
}

// ToNot expects that a value does not fit.
func (e *Expectation) ToNot(m types.GomegaMatcher, description ...any) bool {
	return e.judge(m, false, description)
}

// judge panics when the matcher cannot match such a value: that is a mistake of the
// tester, never a finding about the target.
func (e *Expectation) judge(m types.GomegaMatcher, want bool, description []any) bool {
	fits, err := m.Match(e.Actual)
	switch {
	case err != nil:
		panic(fmt.Errorf("expectation: %w", err))
	case fits == want:
		if e.Satisfied != nil {
			e.Satisfied()
		}
		return true
	}
	tell := m.FailureMessage
	if fits {
		tell = m.NegatedFailureMessage
	}
	message := tell(e.Actual)
	if len(description) > 0 {
		format, _ := description[0].(string)
		message = fmt.Sprintf(format, description[1:]...) + ", " + message
	}
	shown := Evidence(e.Actual)
	if witness, ok := m.(interface{ Evidence() []*wire.Event }); ok {
		shown = append(shown, witness.Evidence()...)
	}
	e.Unsatisfied(message, shown)
	return false
}
