// Package ledger keeps what checks, scenarios and rules record of requirements,
// and makes the results of a run from it: only here findings are bounded, secrets
// are taken out, and verdicts are decided.
package ledger

import (
	"cmp"
	"maps"
	"slices"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
)

// Key names a requirement as it binds one party.
type Key struct {
	Requirement schema.ID
	Party       wire.Party
}

// Finding is one violation of a requirement.
type Finding struct {
	// Source is the check, scenario or rule that found it.
	Source  string
	Message string
	// WarnOnly findings warn, whatever the level of the requirement.
	WarnOnly bool
	// Disputed is the id of the dispute about it, or "".
	Disputed string
	// Repeated counts the findings that say the same of other events.
	Repeated int
	// Evidence holds the events that prove it, oldest first.
	Evidence []*wire.Event
}

// Reason is why nothing can be said of a requirement that applies.
type Reason struct {
	Text string
	// NotRun says that the run had ended before it was tried, rather than that the target
	// gave no occasion.
	NotRun bool
}

// Entry is what was recorded of one requirement on one party.
type Entry struct {
	// Exercised counts how often the party was seen to meet or break it.
	Exercised int
	Findings  []Finding
	Omitted   int // findings beyond the bound
	Notes     []string
	// Inconclusive holds reasons why nothing can be said, Skipped why it does not apply.
	Inconclusive []Reason
	Skipped      []string
	// Error says how the harness failed to judge; "" if it did not.
	Error string
}

// Record is what was recorded, by requirement and party.
type Record map[Key]*Entry

// Bounds of what is kept of one requirement.
const (
	maxFindings = 12
	maxNotes    = 5
	maxReasons  = 3
	maxEvidence = 12 // events of one finding: a peer can make them many
)

// At returns the entry of a requirement on a party, which is made if there is none.
func (r Record) At(id string, p wire.Party) *Entry {
	k := Key{id, p}
	e := r[k]
	if e == nil {
		e = &Entry{}
		r[k] = e
	}
	return e
}

// Findings returns all findings of a record, those of one requirement together,
// in the order of the ids.
func (r Record) Findings() []Finding {
	var all []Finding
	for _, k := range r.Keys() {
		all = append(all, r[k].Findings...)
	}
	return all
}

// Keys returns the keys of a record, sorted.
func (r Record) Keys() []Key {
	return slices.SortedFunc(maps.Keys(r), func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Requirement, b.Requirement), cmp.Compare(a.Party, b.Party))
	})
}

// Add adds what another record holds.
func (r Record) Add(more Record) {
	for _, k := range more.Keys() {
		from, to := more[k], r.At(k.Requirement, k.Party)
		to.Exercised += from.Exercised
		to.Omitted += from.Omitted
		to.Findings = append(to.Findings, from.Findings...)
		for _, n := range from.Notes {
			to.Notes = once(to.Notes, n, maxNotes)
		}
		for _, reason := range from.Inconclusive {
			to.Inconclusive = once(to.Inconclusive, reason, maxReasons)
		}
		for _, reason := range from.Skipped {
			to.Skipped = once(to.Skipped, reason, maxReasons)
		}
		if to.Error == "" {
			to.Error = from.Error
		}
	}
}

// once appends what is not in the list yet, up to a bound, unless it says nothing.
func once[T comparable](list []T, said T, bound int) []T {
	if said == *new(T) || len(list) >= bound || slices.Contains(list, said) {
		return list
	}
	return append(list, said)
}

// Anything declares an event as free to break any requirement.
const Anything = "*"

// Recorder records for one source: a check, a scenario or a rule.
type Recorder struct {
	// Revision tells what a finding is: whether maintainers dispute it, or it rests on an example alone.
	Revision *schema.Revision
	Record   Record
	Source   string
}

// NewRecorder returns a recorder with an empty record.
func NewRecorder(revision *schema.Revision, source string) *Recorder {
	return &Recorder{Revision: revision, Record: make(Record), Source: source}
}

// Pass records that a party met a requirement once.
func (r *Recorder) Pass(id string, p wire.Party) { r.Record.At(id, p).Exercised++ }

// Fail records that a party broke a requirement, and by that exercised it. The
// events are the proof, oldest first; nil ones are left out. It records nothing if
// the party declared the violation as deliberate, and a note if the requirement rests
// on an example alone.
func (r *Recorder) Fail(id string, p wire.Party, message string, events ...*wire.Event) {
	r.find(id, p, Finding{Message: message, Evidence: events})
}

// Warn is Fail with a finding that only warns, whatever the level.
func (r *Recorder) Warn(id string, p wire.Party, message string, events ...*wire.Event) {
	r.find(id, p, Finding{Message: message, WarnOnly: true, Evidence: events})
}

// Check is Pass or Fail, as the condition says.
func (r *Recorder) Check(ok bool, id string, p wire.Party, message string, events ...*wire.Event) {
	if ok {
		r.Pass(id, p)
	} else {
		r.Fail(id, p, message, events...)
	}
}

// Note records a remark that does not affect a verdict.
func (r *Recorder) Note(id string, p wire.Party, text string) {
	e := r.Record.At(id, p)
	e.Notes = once(e.Notes, text, maxNotes)
}

// Inconclusive records why nothing can be said of a requirement that applies.
func (r *Recorder) Inconclusive(id string, p wire.Party, reason string) {
	e := r.Record.At(id, p)
	e.Inconclusive = once(e.Inconclusive, Reason{Text: reason}, maxReasons)
}

// NotRun records that a requirement was not tried because the run had ended, and why it had.
func (r *Recorder) NotRun(id string, p wire.Party, cause string) {
	e := r.Record.At(id, p)
	e.Inconclusive = once(e.Inconclusive, Reason{Text: cause, NotRun: true}, maxReasons)
}

// Skip records why a requirement does not apply.
func (r *Recorder) Skip(id string, p wire.Party, reason string) {
	e := r.Record.At(id, p)
	e.Skipped = once(e.Skipped, reason, maxReasons)
}

// Error records that the harness failed to judge a requirement.
func (r *Recorder) Error(id string, p wire.Party, message string) {
	if e := r.Record.At(id, p); e.Error == "" {
		e.Error = r.Source + ": " + message
	}
}

func (r *Recorder) find(id string, p wire.Party, f Finding) {
	f.Evidence = slices.DeleteFunc(slices.Clone(f.Evidence), func(e *wire.Event) bool { return e == nil })
	for _, e := range f.Evidence {
		if e.From == p && (slices.Contains(e.Deliberate, id) || slices.Contains(e.Deliberate, Anything)) {
			return
		}
	}
	if q, ok := r.Revision.Lookup(id); ok && q.Illustrative() {
		r.Pass(id, p)
		r.Note(id, p, "other than in the example of the specification, which binds nobody: "+f.Message)
		return
	}
	f.Source, f.Evidence = r.Source, f.Evidence[:min(len(f.Evidence), maxEvidence)]
	if d, ok := r.Revision.Disputed(id, f.Message); ok {
		f.Disputed = d.ID
	}
	e := r.Record.At(id, p)
	e.Exercised++
	e.add(f)
}

// alike reports whether a finding says the same as another, of whatever events.
func (f Finding) alike(other Finding) bool {
	return f.Message == other.Message && f.Source == other.Source && rank(f) == rank(other)
}

// rank returns how little a finding decides: 0 for one that makes a MUST fail.
func rank(f Finding) int {
	n := 0
	if f.WarnOnly {
		n += 2
	}
	if f.Disputed != "" {
		n++
	}
	return n
}

// add keeps a finding, or counts it among the omitted, as one is that says the same as
// another. A finding that decides the verdict replaces one that only warns or is disputed.
func (e *Entry) add(f Finding) {
	said := slices.IndexFunc(e.Findings, f.alike)
	if said < 0 && len(e.Findings) < maxFindings {
		e.Findings = append(e.Findings, f)
		return
	}
	e.Omitted++
	if said >= 0 {
		e.Findings[said].Repeated++
		return
	}
	for i, k := range slices.Backward(e.Findings) {
		if rank(k) > rank(f) {
			e.Findings = append(slices.Delete(e.Findings, i, i+1), f)
			return
		}
	}
}
