// Package tree holds the tree of a run: one spec for each check or scenario, and
// then one for each requirement, which gives it its verdict. It is built before
// anything runs. A runner filters it, starts what is left, and takes the outcome of
// each spec.
package tree

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
	"github.com/mcpconform/mcpconform/suites/result"
)

// Outcome of a spec.
type Outcome struct {
	Verdict result.Verdict
	// Disputed is true if maintainers contest all findings that decide the verdict. They do not count then.
	Disputed bool
	// Message says in one line what decided it.
	Message string
	// Record is what a check or scenario recorded.
	Record ledger.Record
	// Requirement is the result that a spec gives which is a requirement; else nil.
	Requirement *result.Requirement
}

// Spec is a leaf of the tree.
type Spec struct {
	Page   string // path of the specification's page
	Name   string
	Labels []string
	// Await waits for the outcome. It returns in bounded time, and soon after the
	// context has ended.
	Await func(ctx context.Context) Outcome
	// Judges is true for the spec of a requirement. The records of the other specs and of the rules decide it.
	Judges bool
	// Requirements are those that the spec serves.
	Requirements []schema.ID
	// Shows lists further requirements that the spec may find broken, if plainer exchanges do not show it.
	Shows []schema.ID
	// Cheap says that the spec takes neither a session of its own nor a wait.
	Cheap bool
	// Unit names what is not split into shards: specs of one unit share work. "": the
	// spec alone. Everywhere says that each shard needs the spec.
	Unit       string
	Everywhere bool

	once    sync.Once
	outcome Outcome
}

// Take returns the outcome of the spec. It waits for it only once.
func (s *Spec) Take(ctx context.Context) Outcome {
	s.once.Do(func() { s.outcome = s.Await(ctx) })
	return s.outcome
}

// Suite is a tree with what happens before and after its specs.
type Suite struct {
	Specs []*Spec
	// Filter is an expression of Ginkgo's language of label filters; "" leaves all.
	Filter string
	// Start is told which specs the filter leaves, before any is awaited.
	Start func(ctx context.Context, left []*Spec)
	// Interrupt ends the run early, so that the awaited outcomes come soon.
	Interrupt func()
	// Done is called with each outcome; it may be nil.
	Done func(*Spec, Outcome)
}

// InOrder runs a suite without a framework: spec after spec.
func InOrder(ctx context.Context, s *Suite) []Outcome {
	matches, err := types.ParseLabelFilter(s.Filter)
	if err != nil {
		panic(err) // ParseFilter has accepted it
	}
	var left []*Spec
	for _, spec := range s.Specs {
		if matches(spec.Labels) {
			left = append(left, spec)
		}
	}
	s.Start(ctx, left)
	outcomes := make([]Outcome, len(left))
	for i, spec := range left {
		outcomes[i] = spec.Take(ctx)
		s.done(spec, outcomes[i])
	}
	return outcomes
}

func (s *Suite) done(spec *Spec, o Outcome) {
	if s.Done != nil {
		s.Done(spec, o)
	}
}

// Keys of the labels, which are label sets: key, colon, value.
const (
	KeyID        = "id"
	KeyLevel     = "level"
	KeyPage      = "page"
	KeyParty     = "party"
	KeyTransport = "transport"
	KeySession   = "session" // of checks and scenarios: the kind of session that they need
)

// Label returns a label. Slashes and blanks, which filters do not accept, become
// hyphens: server/tools is server-tools, and MUST NOT is MUST-NOT.
func Label(key, value string) string {
	return key + ":" + escape.Replace(value)
}

var escape = strings.NewReplacer("/", "-", " ", "-")

// Labels returns the labels of a requirement on a party.
func Labels(q schema.Requirement, party string) []string {
	labels := []string{Label(KeyID, q.ID), Label(KeyLevel, string(q.Level)), Label(KeyPage, q.Page),
		Label(KeyParty, party)}
	for _, t := range q.Transports {
		labels = append(labels, Label(KeyTransport, t))
	}
	return labels
}

// ParseFilter reads an expression of Ginkgo's language of label filters.
func ParseFilter(expression string) (func(labels []string) bool, error) {
	f, err := types.ParseLabelFilter(expression)
	var fault types.GinkgoError
	switch {
	case errors.As(err, &fault):
		// The message shows the expression again, with a mark, and says what is wrong below.
		lines := strings.Split(strings.TrimSpace(ansi.ReplaceAllString(fault.Message, "")), "\n")
		return nil, fmt.Errorf("%q is not a label filter: %s", expression, strings.TrimSpace(lines[len(lines)-1]))
	case err != nil:
		return nil, fmt.Errorf("%q is not a label filter: %w", expression, err)
	}
	return f, nil
}

var ansi = regexp.MustCompile("\x1b\\[[0-9;]*m")

// AnyOf returns a filter for specs that have one of some values under a key.
func AnyOf(key string, values ...string) string {
	labels := make([]string, len(values))
	for i, v := range values {
		labels[i] = escape.Replace(v)
	}
	return key + ": containsAny {" + strings.Join(labels, ", ") + "}"
}
