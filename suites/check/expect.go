package check

import (
	"slices"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/internal/match"
)

// Expect ends the body with a failure, as Fail does, unless a value is as expected.
func (t *T) Expect(actual any) *match.Expectation {
	return t.expect(actual, func(message string) { t.Fail("%s", message) })
}

// Check is Expect for another requirement, and the body continues. A finding takes the evidence collected so far.
func (t *T) Check(id string, actual any) *match.Expectation {
	return t.expect(actual, func(message string) {
		t.Violation(id, message)
		t.Clear()
	})
}

// WarnUnless is Check for what only warns, whatever the requirement's level.
func (t *T) WarnUnless(id string, actual any) *match.Expectation {
	return t.expect(actual, func(message string) {
		t.Warning(id, message)
		t.Clear()
	})
}

// Assume ends the body as inconclusive unless a value is as expected. Use it for the control, and for conditions of
// the check.
func (t *T) Assume(actual any) *match.Expectation {
	return t.expect(actual, func(message string) { t.Inconclusive("%s", message) })
}

// expect adds the events of a value to the evidence before it reports a mismatch. An expected value counts when the
// body returns.
func (t *T) expect(actual any, unmet func(message string)) *match.Expectation {
	return &match.Expectation{Actual: actual, Unsatisfied: func(message string, shown []*wire.Event) {
		for _, e := range shown {
			if !slices.Contains(t.evidence, e) {
				t.Show(e)
			}
		}
		unmet(message)
	}}
}
