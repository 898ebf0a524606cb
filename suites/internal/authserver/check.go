// Package authserver holds the checks of authorization servers: what the page basic/authorization, and the standards
// that it makes binding, demand of them and a client can see.
package authserver

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/ending"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
	"github.com/mcpconform/mcpconform/suites/internal/match"
)

// Check is something that is tried with an authorization server.
type Check struct {
	Name         string
	Requirements []schema.ID
	// Harmful checks end what belongs to a client, or try wrong secrets. They are run on clients that the run has
	// registered for itself, and on others only if everything is to be tried.
	Harmful bool
	Body    func(t *T)
}

// Checks returns all checks, in the order of their pages.
func Checks() []*Check {
	var all []*Check
	for _, c := range slices.Concat(metadataChecks, registrationChecks, authorizationChecks, tokenChecks,
		refreshChecks) {
		all = append(all, &c)
	}
	return all
}

// T is what the body of a check works with. Its methods that can fail end the body.
type T struct {
	context.Context
	*Target
	*ledger.Recorder

	check    *Check
	log      *wire.Log
	requests int           // so far
	twins    []*wire.Event // of what was accepted, for the evidence of what is not refused
}

// stop unwinds the body of a check that has nothing more to say.
type stop struct{}

// Try runs a check and returns what it recorded.
func (a *Target) Try(ctx context.Context, c *Check) (record ledger.Record) {
	t := &T{Context: ctx, Target: a, Recorder: ledger.NewRecorder(a.Revision, c.Name), check: c, log: a.connect(c.Name)}
	defer t.log.End()
	defer func() {
		switch r := recover().(type) {
		case nil, stop:
		default:
			t.Error(c.Requirements[0], party, fmt.Sprintf("panic: %v\n%s", r, debug.Stack()))
		}
		record = t.Record
	}()
	if err := ending.Cause(ctx); err != nil {
		t.notRun(err)
	}
	if c.Harmful && a.given() && !a.Thorough {
		t.untried("it could end what belongs to the given client: --thorough tries it")
	}
	c.Body(t)
	return nil // set above
}

// party is whom the checks judge.
const party = wire.AuthorizationServer

// untried ends the body: of its requirements, those of which nothing is known yet could not be provoked.
func (t *T) untried(format string, args ...any) {
	for _, id := range t.unknown() {
		t.Inconclusive(id, party, fmt.Sprintf(format, args...))
	}
	panic(stop{})
}

// without ends the body: of its requirements, those of which nothing is known yet do not apply.
func (t *T) without(format string, args ...any) {
	for _, id := range t.unknown() {
		t.Skip(id, party, fmt.Sprintf(format, args...))
	}
	panic(stop{})
}

func (t *T) notRun(cause error) {
	for _, id := range t.unknown() {
		t.NotRun(id, party, cause.Error())
	}
	panic(stop{})
}

// unknown returns the requirements of the check of which nothing is recorded.
func (t *T) unknown() []string {
	return slices.DeleteFunc(slices.Clone(t.check.Requirements), func(id string) bool {
		return t.Record[ledger.Key{Requirement: id, Party: party}] != nil
	})
}

// note remarks something on the first requirement of the check.
func (t *T) note(format string, args ...any) {
	t.Note(t.check.Requirements[0], party, fmt.Sprintf(format, args...))
}

// expect is for a requirement: an answer that is as expected meets it, another one breaks it.
func (t *T) expect(id string, a *answer) *match.Expectation { return t.judge(id, a, t.Fail) }

// prefer is expect for what only warns, whatever the level of the requirement.
func (t *T) prefer(id string, a *answer) *match.Expectation { return t.judge(id, a, t.Warn) }

func (t *T) judge(id string, a *answer, unmet func(string, wire.Party, string, ...*wire.Event)) *match.Expectation {
	unsatisfied := func(message string, _ []*wire.Event) {
		unmet(id, party, message, slices.Concat(t.twins, a.events)...)
	}
	return &match.Expectation{Actual: a, Satisfied: func() { t.Pass(id, party) }, Unsatisfied: unsatisfied}
}

// fact is expect for what is not an answer but follows from some.
func (t *T) fact(id string, holds bool, message string, from ...*answer) {
	var events []*wire.Event
	for _, a := range from {
		events = append(events, a.events...)
	}
	t.Recorder.Check(holds, id, party, message, events...)
}

// assume ends the body as untried unless an answer is as expected.
func (t *T) assume(a *answer) *match.Expectation {
	untried := func(message string, _ []*wire.Event) { t.untried("%s", message) }
	return &match.Expectation{Actual: a, Unsatisfied: untried}
}

// must ends the body if a request was not answered.
func (t *T) must(err error) {
	switch {
	case err == nil:
	case t.Err() != nil && ending.Cause(t.Context) != nil:
		t.notRun(ending.Cause(t.Context))
	default:
		t.untried("%s", err)
	}
}

// each does something with each entry of a map, in the order of the names.
func each[V any](entries map[string]V, do func(name string, v V)) {
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		do(name, entries[name])
	}
}
