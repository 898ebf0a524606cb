package client

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/onsi/gomega/types"
)

// parameter matches a request of the authorization flow by one of its parameters.
type parameter struct {
	name   string
	values []string
	seen   *wire.Event
}

// haveParameter matches a [client.Step] with a parameter that is not empty, or that has one of
// the values.
func haveParameter(name string, values ...string) types.GomegaMatcher {
	return &parameter{name: name, values: values}
}

// Match implements types.GomegaMatcher.
func (m *parameter) Match(actual any) (bool, error) {
	s, ok := actual.(client.Step)
	if !ok {
		return false, fmt.Errorf("a %T has no parameters", actual)
	}
	m.seen = s.Event
	value := s.Values.Get(m.name)
	return value != "" && (len(m.values) == 0 || slices.Contains(m.values, value)), nil
}

// FailureMessage implements types.GomegaMatcher.
func (m *parameter) FailureMessage(actual any) string {
	s, _ := actual.(client.Step)
	value := s.Values.Get(m.name)
	if value == "" {
		return fmt.Sprintf("the %s request has no %s", s.Step, m.name)
	}
	return fmt.Sprintf("the %s request has the %s %s, not %s", s.Step, m.name, wire.Quote(value, 40),
		strings.Join(m.values, " or "))
}

// NegatedFailureMessage implements types.GomegaMatcher.
func (m *parameter) NegatedFailureMessage(actual any) string {
	s, _ := actual.(client.Step)
	return fmt.Sprintf("the %s request has the %s %s; another one, or none, was expected", s.Step, m.name,
		wire.Quote(s.Values.Get(m.name), 40))
}

// Evidence returns the head of the request.
func (m *parameter) Evidence() []*wire.Event { return []*wire.Event{m.seen} }
