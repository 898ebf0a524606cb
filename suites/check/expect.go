package check

import (
	"fmt"
	"slices"

	"github.com/onsi/gomega/types"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/internal/match"
)

// Expectation is what a check expects of a value. It is a Gomega assertion, but
// for two things: a value that does not meet it is a finding of the check, and the
// description begins that finding.
//
// It reports whether the value is as expected. The description is a clause that
// says under which circumstances, "without a token", with arguments as for
// fmt.Sprintf.
type Expectation struct {
	t      *T
	actual any
	unmet  func(message string)
}

// Expect ends the body with a failure, as Fail does, unless a value is as expected.
func (t *T) Expect(actual any) *Expectation {
	return &Expectation{t, actual, func(message string) { t.Fail("%s", message) }}
}

// Check is Expect for a requirement of its own, and lets the body go on: the evidence
// so far was that of this finding.
func (t *T) Check(id string, actual any) *Expectation {
	return &Expectation{t, actual, func(message string) {
		t.Violation(id, message)
		t.Clear()
	}}
}

// WarnUnless is Check for what only warns, whatever the requirement's level.
func (t *T) WarnUnless(id string, actual any) *Expectation {
	return &Expectation{t, actual, func(message string) {
		t.Warning(id, message)
		t.Clear()
	}}
}

// Assume ends the body as inconclusive unless a value is as expected: it is the
// control, or what the check needs before it can tell anything.
func (t *T) Assume(actual any) *Expectation {
	return &Expectation{t, actual, func(message string) { t.Inconclusive("%s", message) }}
}

// To expects that a value fits.
func (e *Expectation) To(m types.GomegaMatcher, description ...any) bool {
	return e.met(m, true, description)
}

// ToNot expects that a value does not fit.
func (e *Expectation) ToNot(m types.GomegaMatcher, description ...any) bool {
	return e.met(m, false, description)
}

// met panics when the matcher cannot match such a value: that is a mistake of the
// check, never a finding about the target.
func (e *Expectation) met(m types.GomegaMatcher, want bool, description []any) bool {
	fits, err := m.Match(e.actual)
	switch {
	case err != nil:
		panic(fmt.Errorf("expectation of check %s: %w", e.t.check.Name, err))
	case fits == want:
		return true
	}
	tell := m.FailureMessage
	if fits {
		tell = m.NegatedFailureMessage
	}
	message := tell(e.actual)
	if len(description) > 0 {
		format, _ := description[0].(string)
		message = fmt.Sprintf(format, description[1:]...) + ", " + message
	}
	shown := match.Evidence(e.actual)
	if witness, ok := m.(interface{ Evidence() []*wire.Event }); ok {
		shown = append(shown, witness.Evidence()...)
	}
	for _, event := range shown {
		if !slices.Contains(e.t.evidence, event) {
			e.t.Show(event)
		}
	}
	e.unmet(message)
	return false
}
