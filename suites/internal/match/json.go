package match

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega/types"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// haveMember matches an object by one of its members.
type haveMember struct {
	name string
	want any
}

// HaveMember matches a decoded object, or the result that answered a request, with
// a member of a value.
func HaveMember(name string, value any) types.GomegaMatcher { return &haveMember{name, value} }

// object returns the object, what to call it and whether there is one.
func (m *haveMember) object(actual any) (object map[string]any, name string, err error) {
	if object, ok := actual.(map[string]any); ok {
		return object, "the object", nil
	}
	a, err := answerOf(actual)
	if err != nil {
		return nil, "", fmt.Errorf("a %T has no members", actual)
	}
	return a.result(), "the result of " + a.request, nil
}

// Match implements types.GomegaMatcher.
func (m *haveMember) Match(actual any) (bool, error) {
	object, _, err := m.object(actual)
	if err != nil {
		return false, err
	}
	v, has := object[m.name]
	return has && len(differences(m.want, v)) == 0, nil
}

// FailureMessage implements types.GomegaMatcher.
func (m *haveMember) FailureMessage(actual any) string {
	object, name, err := m.object(actual)
	v, has := object[m.name]
	switch {
	case err != nil:
		return err.Error()
	case object == nil:
		a, _ := answerOf(actual)
		return fmt.Sprintf("%s was answered with %s, not with a result whose %s is %s", a.request, a, m.name,
			wire.Show(m.want))
	case !has:
		return fmt.Sprintf("%s has no member %s; %s was expected", name, m.name, wire.Show(m.want))
	}
	return fmt.Sprintf("%s has %s %s, not %s", name, m.name, wire.Show(v), wire.Show(m.want))
}

// NegatedFailureMessage implements types.GomegaMatcher.
func (m *haveMember) NegatedFailureMessage(actual any) string {
	_, name, _ := m.object(actual)
	return fmt.Sprintf("%s has %s %s; another value, or none, was expected", name, m.name, wire.Show(m.want))
}

// equalJSON matches JSON that means the same.
type equalJSON struct{ want any }

// EqualJSON matches a value that means the same in JSON: 1.0 is 1, and the order of
// members does not matter.
func EqualJSON(want any) types.GomegaMatcher { return &equalJSON{want} }

// Match implements types.GomegaMatcher.
func (m *equalJSON) Match(actual any) (bool, error) {
	return len(differences(m.want, actual)) == 0, nil
}

// FailureMessage implements types.GomegaMatcher.
func (m *equalJSON) FailureMessage(actual any) string {
	const most = 3
	all := differences(m.want, actual)
	shown := strings.Join(all[:min(len(all), most)], "; ")
	if more := len(all) - most; more > 0 {
		shown += fmt.Sprintf("; and %d more", more)
	}
	return "what came differs: " + shown
}

// NegatedFailureMessage implements types.GomegaMatcher.
func (m *equalJSON) NegatedFailureMessage(actual any) string {
	return "the same came, where something else was expected: " + wire.Show(decoded(actual))
}

// differences returns, a clause each, where two values mean something else in JSON.
func differences(want, got any) []string {
	var r reporter
	cmp.Equal(decoded(want), decoded(got), cmp.Reporter(&r), cmp.Comparer(sameNumber))
	return r.found
}

// decoded returns a value as it is when it has been read from JSON.
func decoded(v any) any {
	value, _, err := wire.Decode(client.Marshal(v))
	if err != nil {
		return v // too deep, or too much of it
	}
	return value
}

// sameNumber compares what numbers mean as far as every reader keeps them, and
// else how they are spelled.
func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	const exact = 1 << 53
	x, errX := strconv.ParseFloat(string(a), 64)
	y, errY := strconv.ParseFloat(string(b), 64)
	return errX == nil && errY == nil && x == y && x < exact && x > -exact
}

// reporter collects where two values differ.
type reporter struct {
	path  cmp.Path
	found []string
}

// PushStep implements the interface that cmp.Reporter asks for.
func (r *reporter) PushStep(s cmp.PathStep) { r.path = append(r.path, s) }

// PopStep implements the interface that cmp.Reporter asks for.
func (r *reporter) PopStep() { r.path = r.path[:len(r.path)-1] }

// Report implements the interface that cmp.Reporter asks for.
func (r *reporter) Report(result cmp.Result) {
	if result.Equal() {
		return
	}
	want, got := r.path.Last().Values()
	switch at := r.pointer(); {
	case len(r.path) == 1: // here nil is not valid either
		r.found = append(r.found, fmt.Sprintf("%s is %s, not %s", at, shown(got), shown(want)))
	case !got.IsValid():
		r.found = append(r.found, fmt.Sprintf("%s is missing, where %s was expected", at, shown(want)))
	case !want.IsValid():
		r.found = append(r.found, fmt.Sprintf("%s is %s, where nothing was expected", at, shown(got)))
	default:
		r.found = append(r.found, fmt.Sprintf("%s is %s, not %s", at, shown(got), shown(want)))
	}
}

var escapes = strings.NewReplacer("~", "~0", "/", "~1")

func shown(v reflect.Value) string {
	if !v.IsValid() || v.Kind() == reflect.Interface && v.IsNil() {
		return "null"
	}
	return wire.Show(v.Interface())
}

// pointer returns the JSON pointer of the place, in what came if it is there.
func (r *reporter) pointer() string {
	var b strings.Builder
	for _, step := range r.path {
		switch s := step.(type) {
		case cmp.MapIndex:
			b.WriteByte('/')
			b.WriteString(escapes.Replace(s.Key().String()))
		case cmp.SliceIndex:
			want, got := s.SplitKeys()
			if got < 0 {
				got = want
			}
			fmt.Fprintf(&b, "/%d", got)
		}
	}
	if b.Len() == 0 {
		return "it"
	}
	return b.String()
}
