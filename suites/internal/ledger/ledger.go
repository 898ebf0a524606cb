package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/expected"
	"github.com/mcpconform/mcpconform/suites/result"
)

// Ledger gives each requirement its verdict from what was recorded in a run.
type Ledger struct {
	Revision *schema.Revision
	// Party is that of the target.
	Party     wire.Party
	Transport string
	// Declared reports whether a party declared a capability; nil when no
	// handshake took place.
	Declared func(p wire.Party, capability string) bool
	// Passive says that nothing was provoked: rules alone saw the exchange.
	Passive bool
	Cut
	// Given are the options and acts that hints are about and the run has, as [schema.Hint] names them.
	Given []string
	// ExpectSDK has findings that the target's SDK is known to cause not count.
	ExpectSDK bool
	// Evidence is what the verdict of a run without findings needs.
	Evidence Evidence
	// Redactor takes secrets out of all that leaves the ledger; nil takes out none.
	Redactor *transport.Redactor

	kept
}

// Cut is what cut a run short.
type Cut struct {
	// Cause is why the run was not carried out to its end, or nil. NotRun is
	// the same if no check was run because of it.
	Cause, NotRun error
	// LastWords is what the target said when it ended, which adds to why the run
	// is incomplete, or "".
	LastWords string
}

// kept is what a ledger was told, and has read.
type kept struct {
	record Record
	served map[Key][]string // names of checks, scenarios and rules
	usage  *usage           // see used
}

// Serve notes that a check, scenario or rule serves requirements on a party.
func (l *Ledger) Serve(source string, p wire.Party, ids ...string) {
	if l.served == nil {
		l.served = make(map[Key][]string)
	}
	for _, id := range ids {
		k := Key{id, p}
		if !slices.Contains(l.served[k], source) {
			l.served[k] = append(l.served[k], source)
		}
	}
}

// Add adds what was recorded.
func (l *Ledger) Add(r Record) {
	if l.record == nil {
		l.record = make(Record)
	}
	l.record.Add(r)
}

// Binds reports whether a requirement is judged on a party.
func Binds(q schema.Requirement, p wire.Party) bool {
	if p == wire.AuthorizationServer {
		return q.Party == schema.AuthorizationServer // also what is judged where a server names it
	}
	judged := q.JudgedParty()
	return judged == schema.Both || judged == schema.Party(p)
}

// Decide gives the verdict on a requirement that follows from an entry alone,
// with the finding or the reason that decides it. A requirement of which the
// entry says nothing is inconclusive without a reason.
func Decide(q schema.Requirement, e *Entry) (v result.Verdict, why string) {
	if e == nil {
		return result.Inconclusive, ""
	}
	must := q.Level == schema.Must || q.Level == schema.MustNot
	for _, f := range e.Findings {
		if must && !f.WarnOnly {
			return result.Fail, f.Message
		}
	}
	switch {
	case len(e.Findings) > 0:
		return result.Warn, e.Findings[0].Message
	case e.Error != "":
		return result.Error, e.Error
	case e.Exercised > 0:
		return result.Pass, ""
	case len(e.Inconclusive) > 0:
		return result.Inconclusive, e.Inconclusive[len(e.Inconclusive)-1].Text
	case len(e.Skipped) > 0:
		return result.Skip, e.Skipped[len(e.Skipped)-1]
	}
	return result.Inconclusive, ""
}

// weights are the verdicts; each outweighs those before it.
var weights = []result.Verdict{result.Skip, result.Inconclusive, result.Pass, result.Warn, result.Error, result.Fail}

// Worst returns the worst verdict that a record alone gives to a selected requirement, and says why. A verdict that
// rests on disputed findings alone counts less than others, unless strict.
func (l *Ledger) Worst(record Record, strict bool, selected func(Key) (schema.Requirement, bool)) (worst result.Verdict,
	contested bool, message string) {
	worst, message = result.Skip, "it said nothing about the selected requirements"
	best := 0
	for _, k := range record.Keys() {
		q, ok := selected(k)
		if !ok {
			continue
		}
		v, why := Decide(q, record[k])
		n := 2 * (1 + slices.Index(weights, v))
		doubt := !strict && (v == result.Fail || v == result.Warn) && l.disputed(inOrder(record[k].Findings)) != nil
		if doubt {
			n = 1 + 2*(1+slices.Index(weights, result.Pass))
		}
		if n > best {
			best, worst, contested, message = n, v, doubt, why
			if v == result.Fail || v == result.Warn {
				message = k.Requirement + ": " + why
			}
		}
	}
	return worst, contested, l.Redactor.String(message)
}

// Requirement returns the result of a requirement that binds the target, with the verdict from the whole record.
func (l *Ledger) Requirement(q schema.Requirement) result.Requirement {
	k := Key{q.ID, l.Party}
	r := result.Requirement{
		ID: q.ID, Level: string(q.Level), Basis: string(q.Basis), Standard: q.Standard,
		Party: string(q.Party), Page: q.Page, Anchor: q.Anchor, Lead: q.Lead, Text: q.Text,
		Summary: q.Summary, Observable: q.Observable, Unobserved: q.Unobserved, Checks: l.served[k],
	}
	e := l.record[k]
	r.Verdict, r.Reason = Decide(q, e)
	if e != nil && l.foreign(q) && (r.Verdict == result.Fail || r.Verdict == result.Warn) {
		// A fault in this revision may be right in theirs.
		r.Verdict, r.Unexercised, r.Reason = result.Inconclusive, result.NotRun, l.OtherRevision().Error()
		for _, f := range e.Findings {
			r.Notes = once(r.Notes, "in revision "+l.Revision.Version+" this would be a finding: "+f.Message, maxNotes)
		}
		return r
	}
	if e != nil {
		r.Exercised, r.Notes, r.Omitted = e.Exercised, e.Notes, e.Omitted
		findings := inOrder(e.Findings)
		r.Omitted += len(e.Findings) - len(findings)
		r.Findings, r.Disputed = l.findings(findings), l.disputed(findings)
		if more := len(r.Findings) - maxFindings; more > 0 {
			r.Findings = r.Findings[:maxFindings]
			r.Omitted += more
		}
	}
	switch r.Verdict {
	case result.Fail, result.Warn:
		r.Reason = ""
	case result.Error:
	default:
		if len(q.Through) > 0 {
			r.Verdict, r.Reason = result.Skip, "judged by "+strings.Join(q.Through, ", ")+": "+q.How
		} else if !q.Observable {
			r.Verdict, r.Reason = result.Skip, q.Unobserved.Words()+": "+q.How
		} else if r.Verdict != result.Pass {
			r.Verdict, r.Unexercised, r.Reason = l.untried(q, e)
			l.unused(q, &r)
		}
	}
	return r
}

// disputed returns the dispute about the findings of a requirement, or nil if there are
// findings that nobody disputes, beyond those that only warn beside disputed failures.
func (l *Ledger) disputed(findings []Finding) *result.Dispute {
	if len(findings) == 0 || findings[0].Disputed == "" {
		return nil
	}
	list := l.Revision.Disputes()
	i := slices.IndexFunc(list, func(d schema.Dispute) bool { return d.ID == findings[0].Disputed })
	if i < 0 {
		return nil
	}
	d := &result.Dispute{ID: list[i].ID, Title: list[i].Title, Position: list[i].Position}
	for _, t := range list[i].Threads {
		d.Threads = append(d.Threads, result.Thread(t))
	}
	return d
}

// inOrder returns the first of each group of findings that are alike. Findings that decide the verdict come first. A
// finding with the message of an earlier source comes behind the others of its kind.
func inOrder(findings []Finding) []Finding {
	var ranks [8][]Finding
	for i, f := range findings {
		if slices.ContainsFunc(findings[:i], f.alike) {
			continue
		}
		for _, again := range findings[i+1:] {
			if again.alike(f) {
				f.Repeated += 1 + again.Repeated
			}
		}
		at := 2 * rank(f)
		if slices.ContainsFunc(findings[:i], func(g Finding) bool {
			return g.Message == f.Message && rank(g) == rank(f)
		}) {
			at++
		}
		ranks[at] = append(ranks[at], f)
	}
	return slices.Concat(ranks[:]...)
}

// foreign reports whether a requirement is one that the target need not meet because
// it speaks another revision. All revisions negotiate alike.
func (l *Ledger) foreign(q schema.Requirement) bool {
	return l.OtherRevision() != nil && !strings.HasPrefix(q.ID, "lifecycle.version.")
}

// untried says why an observable requirement was neither satisfied nor broken. For a requirement that applies it also
// returns the kind of the reason.
func (l *Ledger) untried(q schema.Requirement, e *Entry) (result.Verdict, result.Unexercised, string) {
	if len(q.Transports) > 0 && !slices.Contains(q.Transports, l.Transport) {
		return result.Skip, "", "applies to " + strings.Join(q.Transports, " and ") + " only"
	}
	if e == nil {
		e = &Entry{}
	}
	if l.NotRun != nil {
		for _, reason := range e.Inconclusive {
			if !reason.NotRun { // some checks are run nevertheless
				return result.Inconclusive, result.NotProvoked, l.withHelp(reason.Text, q)
			}
		}
		return result.Inconclusive, result.NotRun, l.NotRun.Error()
	}
	if missing := l.undeclared(q); missing != "" {
		return result.Skip, "", missing
	}
	served := len(l.served[Key{q.ID, l.Party}]) > 0
	switch v, reason := Decide(q, e); {
	case v == result.Inconclusive && len(e.Inconclusive) > 0 && e.Inconclusive[len(e.Inconclusive)-1].NotRun:
		return v, result.NotRun, reason
	case reason != "" && v == result.Inconclusive:
		return v, result.NotProvoked, l.withHelp(reason, q)
	case reason != "":
		return v, "", reason
	case l.elsewhere(q.ID):
		return result.Inconclusive, result.NotRun, triedElsewhere
	case l.Evidence.Longer[q.ID]:
		return result.Inconclusive, result.NotRun, result.QuickOnly
	case l.Passive && !served:
		return result.Inconclusive, result.NotProvoked,
			"it has to be provoked, as mcpconform " + string(l.Party) + " does"
	case !served && l.Evidence.Partial:
		return result.Inconclusive, result.NotRun, "no check or scenario of this run tries it"
	case !served:
		return result.Inconclusive, result.NotRun, "no check of this version tries it"
	}
	kind := result.NeverDone
	if len(l.hints(q)) > 0 {
		kind = result.NotProvoked // the user can name what provokes it
	}
	return result.Inconclusive, kind, l.withHelp("the "+strings.ReplaceAll(string(l.Party), "-", " ")+
		" did nothing of this kind in this run", q)
}

// unused records on an inconclusive requirement that the target never made its use, or why the run cannot know it.
// Four kinds of run cannot know: a recording offers nothing, a quick run offers little, an incomplete run misses what
// it did not try, and a shard calls only a part of the tools.
func (l *Ledger) unused(q schema.Requirement, r *result.Requirement) {
	use, ok := l.Revision.UseOf(q, schema.Party(l.Party))
	partly := l.Passive || l.Cause != nil || l.Evidence.Partial || l.Evidence.Elsewhere != nil ||
		l.Evidence.Longer != nil
	if !ok || partly || r.Verdict != result.Inconclusive || r.Unexercised == result.NotRun {
		return
	}
	why, unused := l.used().unused(use, l.Evidence.Forbidden)
	switch {
	case unused:
		r.NotUsed, r.Unexercised, r.Reason = use.Name, result.NeverDone, why
	case why != "":
		r.Unexercised, r.Reason = result.NotProvoked, why
	}
}

// elsewhere reports whether another shard tries a requirement of which this one knows nothing.
func (l *Ledger) elsewhere(id string) bool {
	e := l.record[Key{id, l.Party}]
	return l.Evidence.Elsewhere[id] && l.NotRun == nil && (e == nil || len(e.Inconclusive)+len(e.Skipped) == 0)
}

// triedElsewhere is why a shard says nothing of a requirement.
const triedElsewhere = "another shard of the run tries it"

// undeclared says which capability a requirement depends on that the target
// has not declared, or "".
func (l *Ledger) undeclared(q schema.Requirement) string {
	party, capability, ok := strings.Cut(q.Capability, ".")
	if !ok || l.Declared == nil || wire.Party(party) != l.Party || l.Declared(l.Party, capability) {
		return ""
	}
	return fmt.Sprintf("the %s does not declare %s", party, capability)
}

// Own returns what was found in messages of mcpconform itself, which was the other
// party. It returns nothing if the target used an id or a token twice: then it
// cannot be told what belongs together, or who is at fault.
func (l *Ledger) Own() []result.Finding {
	for _, id := range []string{ids.BaseRequestIDUnique, ids.ProgressTokenUnique} {
		if e := l.record[Key{id, l.Party}]; l.Party == wire.Client && e != nil && len(e.Findings) > 0 {
			return nil
		}
	}
	var own []Finding
	for _, k := range l.record.Keys() {
		if k.Party != l.Party.Peer() {
			continue
		}
		for _, f := range l.record[k].Findings {
			f.Message = k.Requirement + ": " + f.Message
			own = append(own, f)
		}
	}
	slices.SortStableFunc(own, func(a, b Finding) int { return strings.Compare(a.Message, b.Message) })
	return l.findings(own)
}

// findings converts findings for a report. Secrets are taken out before a long
// event is shortened, which could cut one in two.
func (l *Ledger) findings(findings []Finding) []result.Finding {
	var out []result.Finding
	for _, f := range findings {
		evidence := make([]*wire.Event, 0, len(f.Evidence))
		for _, e := range f.Evidence {
			if !slices.Contains(evidence, e) {
				evidence = append(evidence, e)
			}
		}
		for i, e := range evidence {
			evidence[i] = l.Redactor.Event(e)
			if l.Party == wire.AuthorizationServer && e.From == wire.Server {
				named := *evidence[i]
				named.From = l.Party // in a log, it is the server
				evidence[i] = &named
			}
		}
		out = append(out, result.Finding{Check: f.Source, Message: f.Message, Repeated: f.Repeated,
			Disputed: f.Disputed, Evidence: result.NewEvents(evidence, f.Message)})
	}
	return out
}

// Conclude fills in what the ledger says of a run with its requirements, beside these: its
// verdict and the findings on mcpconform itself. Expected failures do not count
// until they expire. All secrets are taken out of the run.
func (l *Ledger) Conclude(run *result.Run, catalogue []schema.Requirement, expectations []expected.Entry,
	today time.Time) {
	run.Format, run.Role, run.Transport = result.Format, string(l.Party), l.Transport
	if !l.Passive {
		run.Harness = l.Own()
	}
	attribute(run)
	expected.Apply(run, expectations, today)
	if l.ExpectSDK {
		expected.ApplySDK(run)
	}
	if run.Shard != nil { // the merger of all shards knows more
		for _, q := range run.Requirements {
			if q.Verdict == result.Inconclusive && l.elsewhere(q.ID) {
				run.Shard.Elsewhere = append(run.Shard.Elsewhere, q.ID)
			}
		}
		for i := range run.ExpectedFailures {
			if x := &run.ExpectedFailures[i]; x.Status == expected.Passed {
				x.Status = expected.Untested // it may fail elsewhere
			}
		}
	}
	run.Verdict, run.Reason = l.verdict(run, catalogue)
	redact(l.Redactor, run)
}

// verdict returns the overall verdict of a run, and why it is incomplete.
func (l *Ledger) verdict(run *result.Run, catalogue []schema.Requirement) (result.Overall, string) {
	if other := l.OtherRevision(); other != nil {
		if run.Shard != nil {
			run.Shard.Cut = other.Error()
		}
		return result.Incomplete, other.Error()
	}
	cause := l.Cause
	if cause != nil && l.LastWords != "" {
		cause = fmt.Errorf("%w; its last words: %s", cause, l.LastWords)
	}
	listed := make(map[string]bool, len(run.Requirements))
	for _, r := range run.Requirements {
		listed[r.ID] = true
	}
	selected := slices.DeleteFunc(slices.Clone(catalogue), func(q schema.Requirement) bool { return !listed[q.ID] })
	missing, unused := l.shortfall(selected)
	v, why := judged(run, cause)
	if run.Shard != nil {
		run.Shard.Unused = unused
		if cause == nil && len(missing) > 0 {
			cause = errors.New(strings.Join(missing, "; "))
		}
		if cause != nil {
			run.Shard.Cut = cause.Error()
		}
	} else if len(unused) > 0 {
		missing = append(missing, unusedBy(run.Role, unused))
	}
	if v == result.Conformant && len(missing) > 0 {
		return result.Incomplete, strings.Join(missing, "; ")
	}
	return v, why
}

// judged returns the verdict that follows from the requirements of a run. Failures
// that were expected do not count, and expected ones that did not come do; disputed
// ones count if the run is strict. A recommendation that is not followed was exercised
// like one that is.
func judged(run *result.Run, cause error) (result.Overall, string) {
	exercised, excused, broken := 0, 0, ""
	for _, q := range run.Requirements {
		switch {
		case q.Verdict == result.Pass:
			exercised++
		case q.Verdict == result.Error:
			broken = q.ID
		case q.Verdict != result.Fail && q.Verdict != result.Warn:
		case q.Expected != "", q.Disputed != nil && !run.Strict:
			excused++
		case q.Verdict == result.Fail, run.Strict:
			return result.NotConformant, ""
		default:
			exercised++
		}
	}
	switch {
	case cause != nil:
		return result.Incomplete, cause.Error()
	case expected.Stale(run):
		return result.NotConformant, ""
	case broken != "":
		return result.Incomplete, "mcpconform could not tell whether " + broken + " is met"
	case exercised == 0 && excused > 0:
		return result.Incomplete, "all that was exercised is disputed or an expected failure, so that nothing counts"
	case exercised == 0:
		return result.Incomplete, "nothing was exercised"
	}
	return result.Conformant, ""
}
