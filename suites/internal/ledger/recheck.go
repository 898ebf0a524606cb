package ledger

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/result"
)

// RulePrefix begins the name of a source that is a passive rule.
const RulePrefix = "rule: "

// A Discrepancy is a statement of results that the trace of their run, or the catalogue,
// contradicts.
type Discrepancy struct {
	Requirement string // "" if it is about the run
	Message     string
}

// Recheck holds results against the trace of their run.
type Recheck struct {
	Discrepancies []Discrepancy
	// Judged counts the requirements with the same findings of rules in the trace. Provoked counts those with a
	// verdict from checks or scenarios alone. Silent counts those that nothing exercised.
	Judged, Provoked, Silent int
	// Events counts the events that findings quote, all of which are in the trace.
	Events int
	// Unknown lists requirements about which the rules need more than the trace: secrets,
	// which are not in it.
	Unknown []string
}

// needSettings are the requirements that rules judge by secrets of the configuration,
// which nobody else has.
var needSettings = map[string]bool{
	ids.LoggingSecurityNoCredentials:  true,
	ids.LoggingSecurityNoPersonalData: true,
}

// rechecker compares one run.
type rechecker struct {
	*Ledger
	run    *result.Run
	found  Recheck
	events map[string]*wire.Event // by connection and number
	quoted map[string]bool
}

// Recheck compares results with what the rules find in the trace, of which the ledger
// has the record and the evidence.
func (l *Ledger) Recheck(run *result.Run, catalogue []schema.Requirement) Recheck {
	k := &rechecker{Ledger: l, run: run, events: make(map[string]*wire.Event), quoted: make(map[string]bool)}
	for _, log := range l.Evidence.Logs {
		for _, e := range log.Events() {
			k.events[address(e.Conn, e.Seq)] = e
		}
	}
	k.whole(catalogue)
	k.target()
	k.times()
	for i := range run.Harness {
		k.evidence("", run.Harness[i].Evidence)
	}
	k.overall(catalogue)
	k.found.Events = len(k.quoted)
	return k.found
}

func address(connection string, seq int) string { return fmt.Sprintf("%s#%d", connection, seq) }

func (k *rechecker) say(id, format string, args ...any) {
	k.found.Discrepancies = append(k.found.Discrepancies, Discrepancy{id, fmt.Sprintf(format, args...)})
}

// whole compares the requirements of the run with the catalogue, and each with the trace.
func (k *rechecker) whole(catalogue []schema.Requirement) {
	given := k.run.ByID()
	var order []string
	for _, q := range catalogue {
		if !Binds(q, k.Party) {
			continue
		}
		r := given[q.ID]
		delete(given, q.ID)
		if r == nil {
			k.say(q.ID, "the results lack the requirement, which binds a %s", k.Party)
			continue
		}
		order = append(order, q.ID)
		k.requirement(q, r)
	}
	n := 0
	for _, r := range k.run.Requirements {
		if given[r.ID] != nil {
			k.say(r.ID, "the catalogue has no such requirement on a %s", k.Party)
			continue
		}
		if n < len(order) && r.ID != order[n] {
			k.say(r.ID, "the requirements are not in the order of the catalogue")
			return
		}
		n++
	}
}

// requirement compares one requirement with the catalogue and the trace.
func (k *rechecker) requirement(q schema.Requirement, r *result.Requirement) {
	stated := result.Requirement{
		ID: q.ID, Level: string(q.Level), Basis: string(q.Basis), Standard: q.Standard, Party: string(q.Party),
		Page:   q.Page,
		Anchor: q.Anchor, Lead: q.Lead, Text: q.Text, Summary: q.Summary, Observable: q.Observable,
		Unobserved: q.Unobserved,
	}
	claimed := result.Requirement{
		ID: r.ID, Level: r.Level, Basis: r.Basis, Standard: r.Standard, Party: r.Party, Page: r.Page,
		Anchor: r.Anchor, Lead: r.Lead, Text: r.Text, Summary: r.Summary, Observable: r.Observable,
		Unobserved: r.Unobserved,
	}
	if !reflect.DeepEqual(stated, claimed) {
		k.say(q.ID, "level, text or place differ from the catalogue: %s there is %q", q.Level, q.Summary)
	}
	for i := range r.Findings {
		k.evidence(q.ID, r.Findings[i].Evidence)
	}
	if k.foreign(q) {
		return // the run says nothing of it
	}
	if needSettings[q.ID] {
		k.found.Unknown = append(k.found.Unknown, q.ID)
		return
	}
	e := k.record[Key{q.ID, k.Party}]
	if e == nil {
		e = &Entry{}
	}
	if !k.findings(q, r, e) {
		k.found.Unknown = append(k.found.Unknown, q.ID)
		return
	}
	k.verdictOf(q, r, e)
	switch {
	case e.Exercised > 0:
		k.found.Judged++
	case r.Exercised > 0:
		k.found.Provoked++
	default:
		k.found.Silent++
	}
}

// findings compares the findings of rules, both ways. It reports whether the rules see
// what they saw in the run: where a secret stood in what the target sent, they may not.
func (k *rechecker) findings(q schema.Requirement, r *result.Requirement, e *Entry) bool {
	judged := (&Ledger{}).findings(inOrder(e.Findings))
	among := func(f result.Finding, list []result.Finding) bool {
		return slices.ContainsFunc(list, func(g result.Finding) bool { return reflect.DeepEqual(f, g) })
	}
	sees := true
	for _, f := range r.Findings {
		if strings.HasPrefix(f.Check, RulePrefix) && !among(f, judged) {
			if k.redacted(f) {
				sees = false
				continue
			}
			k.say(q.ID, "the trace does not show what %q is said to have found: %s", f.Check,
				wire.Quote(f.Message, 200))
		}
	}
	missing := 0
	for _, g := range judged {
		if among(g, r.Findings) {
			continue
		}
		missing++
		switch {
		case len(r.Findings) == maxFindings && r.Omitted >= missing:
		case k.redacted(g):
			sees = false
		default:
			k.say(q.ID, "the trace shows a finding of %q that the results leave out: %s", g.Check,
				wire.Quote(g.Message, 200))
		}
	}
	return sees
}

// redacted reports whether a secret was taken out of a message of the target that a finding quotes.
func (k *rechecker) redacted(f result.Finding) bool {
	return slices.ContainsFunc(f.Evidence, func(quoted result.Event) bool {
		e := k.events[address(quoted.Connection, quoted.Seq)]
		if e == nil || e.From != k.Party {
			return false
		}
		held := string(e.Raw)
		if e.SSE != nil {
			held += e.SSE.Event + e.SSE.ID + e.SSE.Retry + e.SSE.Comment
		}
		return strings.Contains(held, transport.Redacted)
	})
}

// verdictOf compares the verdict, the count and the dispute with what follows from the
// findings of both sources.
func (k *rechecker) verdictOf(q schema.Requirement, r *result.Requirement, e *Entry) {
	all := Entry{Exercised: r.Exercised, Findings: slices.Clone(e.Findings)}
	provoked := 0
	for _, f := range r.Findings {
		if strings.HasPrefix(f.Check, RulePrefix) {
			continue
		}
		provoked++
		claim := Finding{Source: f.Check, Message: f.Message, WarnOnly: r.Verdict == result.Warn}
		if d, ok := k.Revision.Disputed(q.ID, f.Message); ok {
			claim.Disputed = d.ID
		}
		if claim.Disputed != f.Disputed {
			k.say(q.ID, "a finding is marked with the dispute %q, and is about %q", f.Disputed, claim.Disputed)
		}
		all.Findings = append(all.Findings, claim)
	}
	if r.Verdict == result.Error {
		all.Error = r.Reason
	}
	least := e.Exercised + provoked
	onlyRules := !slices.ContainsFunc(r.Checks, func(name string) bool { return !strings.HasPrefix(name, RulePrefix) })
	switch {
	case r.Exercised < least:
		k.say(q.ID, "the trace shows it exercised %d times, and the results %d times", least, r.Exercised)
	case onlyRules && least == 0 && r.Exercised > 0:
		k.say(q.ID, "rules alone serve it and the trace never shows it exercised, and the results %d times",
			r.Exercised)
	}
	want, _ := Decide(q, &all)
	if (want == result.Pass || want == result.Inconclusive) && !q.Observable {
		want = result.Skip
	}
	elsewhere := len(q.Transports) > 0 && !slices.Contains(q.Transports, k.run.Transport)
	switch {
	case want == result.Inconclusive && elsewhere:
		want = result.Skip
	case want == result.Inconclusive && r.Verdict == result.Skip:
		want = k.skipped(q, r)
	}
	if want != r.Verdict {
		k.say(q.ID, "the verdict is said to be %s; %s follows from the findings and counts", r.Verdict, want)
	}
	if r.NotUsed != "" && (r.Verdict != result.Inconclusive || k.used().seen[r.NotUsed]) {
		k.say(q.ID, "it is said to be about what the target does not use, %q; the trace or the verdict says otherwise",
			r.NotUsed)
	}
	contested := k.disputed(inOrder(all.Findings))
	if (contested == nil) != (r.Disputed == nil) || contested != nil && !reflect.DeepEqual(contested, r.Disputed) {
		k.say(q.ID, "what the results say of a dispute does not follow from the findings")
	}
}

// skipped returns the verdict on what is said not to apply: a check or scenario may know,
// but whether a capability is declared shows in the trace.
func (k *rechecker) skipped(q schema.Requirement, r *result.Requirement) result.Verdict {
	if strings.Contains(r.Reason, "does not declare") &&
		r.Reason == fmt.Sprintf("the %s does not declare %s", k.Party, afterParty(q.Capability)) &&
		k.undeclared(q) == "" {
		return result.Inconclusive
	}
	return result.Skip
}

func afterParty(capability string) string {
	_, path, _ := strings.Cut(capability, ".")
	return path
}

// evidence looks up the events that a finding quotes.
func (k *rechecker) evidence(id string, events []result.Event) {
	for _, e := range events {
		at := address(e.Connection, e.Seq)
		seen := k.events[at]
		if seen == nil {
			k.say(id, "a finding quotes event %d of the connection %s, which the trace does not have", e.Seq,
				wire.Quote(e.Connection, 40))
			continue
		}
		if !e.Quotes(seen) {
			k.say(id, "a finding quotes event %d of the connection %s otherwise than the trace has it", e.Seq,
				wire.Quote(e.Connection, 40))
			continue
		}
		k.quoted[at] = true
	}
}

// target compares what the results say of the target with how it introduced itself.
func (k *rechecker) target() {
	t := k.run.Target
	if t.Name == "" && t.Version == "" && t.ProtocolVersion == "" && k.run.Verdict != result.Conformant {
		return
	}
	for _, log := range k.Evidence.Logs {
		if log.Transport == transport.NameOAuth {
			continue
		}
		c := log.Conversation()
		if c.Init == nil {
			continue
		}
		said, member := c.Init.Request.Msg.Params, "clientInfo"
		if k.Party == wire.Server {
			said, member = c.Init.Result(), "serverInfo"
		}
		text := func(path ...string) string {
			s, _ := wire.At(said, path...).(string)
			return s
		}
		if text(member, "name") != t.Name || text(member, "title") != t.Title || text(member, "version") != t.Version ||
			text("protocolVersion") != t.ProtocolVersion {
			continue
		}
		var declared any
		if len(t.Capabilities) > 0 && json.Unmarshal(t.Capabilities, &declared) != nil {
			continue
		}
		if a, err := json.Marshal(declared); err == nil {
			if b, err := json.Marshal(wire.At(said, "capabilities")); err == nil && string(a) == string(b) {
				return
			}
		}
	}
	k.say("",
		"the target is said to be %s, version %s: in the trace nobody introduces itself so, with these capabilities",
		wire.Quote(t.Name, 80), wire.Quote(t.Version, 40))
}

// quiet is how long a run may go on, in seconds, after the last event: the judge needs
// some time, and so does a target that is waited for in vain.
const quiet = 900

// times compares the duration of the run with its events. A process of the run may end after it.
func (k *rechecker) times() {
	last, message := 0.0, 0.0
	for _, log := range k.Evidence.Logs {
		for _, e := range log.Events() {
			last = math.Max(last, e.At.Seconds())
			if e.Kind == wire.KindMessage {
				message = math.Max(message, e.At.Seconds())
			}
		}
	}
	switch s := k.run.Seconds; {
	case s < message:
		k.say("", "the run is said to have taken %.3f s, and its last message is at %.3f s", s, message)
	case s > last+quiet:
		k.say("", "the run is said to have taken %.3f s, and nothing happened after %.3f s", s, last)
	}
}

// overall compares the verdict of the run with the verdicts on requirements and with
// what the trace shows.
func (k *rechecker) overall(catalogue []schema.Requirement) {
	claimed := k.run.Verdict
	if other := k.OtherRevision(); other != nil {
		if claimed != result.Incomplete {
			k.say("", "the verdict is said to be %s, and the trace shows that %s", claimed, other)
		}
		return
	}
	want, why := judged(k.run, nil)
	if want == result.Conformant {
		missing, unused := k.shortfall(catalogue)
		if len(unused) > 0 {
			missing = append(missing, unusedBy(k.run.Role, unused))
		}
		if len(missing) > 0 {
			want, why = result.Incomplete, strings.Join(missing, "; ")
		}
	}
	switch {
	case want == claimed && (claimed == result.Incomplete) == (k.run.Reason != ""):
	case want == result.Conformant && claimed == result.Incomplete && k.run.Reason != "":
		// Why a run was cut short need not show in the trace.
	case why != "":
		k.say("", "the verdict is said to be %s; it should be %s: %s", claimed, want, why)
	default:
		k.say("", "the verdict is said to be %s, with the reason %q; %s follows from those on the requirements",
			claimed, k.run.Reason, want)
	}
}
