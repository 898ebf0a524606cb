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

// Check is Expect for a requirement of its own, and lets the body go on: the evidence
// so far was that of this finding.
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

// Assume ends the body as inconclusive unless a value is as expected: it is the
// control, or what the check needs before it can tell anything.
func (t *T) Assume(actual any) *match.Expectation {
	return t.expect(actual, func(message string) { t.Inconclusive("%s", message) })
}

// expect adds what a value shows to the evidence before it tells what is wrong with it. A value
// that is as expected counts when the body returns.
func (t *T) expect(actual any, unmet func(message string)) *match.Expectation {
	return match.Expect(actual, nil, func(message string, shown []*wire.Event) {
		for _, e := range shown {
			if !slices.Contains(t.evidence, e) {
				t.Show(e)
			}
		}
		unmet(message)
	})
}
