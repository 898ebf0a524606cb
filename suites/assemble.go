package suites

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/expected"
	"github.com/mcpconform/mcpconform/suites/judge"
	"github.com/mcpconform/mcpconform/suites/result"
)

// evidenceOf a run: what the checks said and what the rules saw.
type evidence struct {
	role      wire.Party // of the target
	transport string
	outcomes  []check.Outcome
	report    judge.Report
	// declared reports whether a party declared a capability; nil when no
	// handshake took place.
	declared func(p wire.Party, path []string) bool
	// passive says that nothing was provoked: rules alone saw the exchange.
	passive bool
	// cause is why nothing could be tried, or nil.
	cause error
	// redactor takes secrets out of what is shown; it may be nil.
	redactor *transport.Redactor
}

// maxFindings bounds the findings kept for one requirement.
const maxFindings = 5

// assemble gives each selected requirement that binds the target its verdict.
func (v *evidence) assemble(catalogue []schema.Requirement, s Selection) []result.Requirement {
	byRequirement := make(map[string][]check.Outcome)
	for _, o := range v.outcomes {
		for _, id := range o.Check.Requirements {
			byRequirement[id] = append(byRequirement[id], o)
		}
	}
	rules := ruleNames()
	var all []result.Requirement
	for _, r := range catalogue {
		if !binds(r, v.role) || !s.Includes(r) {
			continue
		}
		q := result.Requirement{
			ID: r.ID, Level: string(r.Level), Party: string(r.Party), Page: r.Page, Anchor: r.Anchor,
			Summary: r.Summary, Observable: r.Observable, Checks: slices.Clone(rules[r.ID]),
		}
		v.fill(&q, r, byRequirement[r.ID])
		all = append(all, q)
	}
	return all
}

// binds reports whether a requirement is judged on a party.
func binds(r schema.Requirement, p wire.Party) bool {
	judged := r.JudgedParty()
	return judged == schema.Both || judged == schema.Party(p)
}

// ruleNames returns the names of the passive rules by requirement.
func ruleNames() map[string][]string {
	names := make(map[string][]string)
	for _, r := range judge.Rules() {
		for _, id := range r.Requirements {
			names[id] = append(names[id], "rule: "+r.Name)
		}
	}
	return names
}

func (v *evidence) fill(q *result.Requirement, r schema.Requirement, outcomes []check.Outcome) {
	mild := r.Level != schema.Must && r.Level != schema.MustNot
	var breaks, warns []result.Finding
	found := func(onlyWarns bool, f result.Finding) {
		if onlyWarns {
			warns = append(warns, f)
		} else {
			breaks = append(breaks, f)
		}
	}
	for _, o := range outcomes {
		q.Checks = append(q.Checks, o.Check.Name)
	}
	// A check may report on requirements beside those that it is about.
	for _, o := range v.outcomes {
		for _, id := range o.Exercised {
			if id == q.ID {
				q.Exercised++
			}
		}
		for _, n := range o.Notes {
			if n.Requirement == q.ID && !slices.Contains(q.Notes, n.Message) {
				q.Notes = append(q.Notes, n.Message)
			}
		}
		for _, f := range o.Findings {
			if f.Requirement != q.ID {
				continue
			}
			q.Exercised++
			found(f.Mild, result.Finding{Check: o.Check.Name, Message: f.Message, Evidence: shown(v.redactor, f.Evidence)})
		}
	}
	if seen := v.report[judge.Key{Requirement: q.ID, Party: v.role}]; seen != nil {
		q.Exercised += seen.Exercised
		q.Notes = append(q.Notes, seen.Notes...)
		q.Omitted += seen.Omitted
		for _, f := range seen.Violations {
			found(f.Mild, result.Finding{Check: "rule: " + f.Rule, Message: f.Message, Evidence: shown(v.redactor, f.Evidence)})
		}
	}
	// What decides the verdict comes first, and each thing once before any again.
	q.Findings = slices.Concat(newFirst(breaks), newFirst(warns))
	if more := len(q.Findings) - maxFindings; more > 0 {
		q.Findings = q.Findings[:maxFindings]
		q.Omitted += more
	}
	switch {
	case len(breaks) > 0 && !mild:
		q.Verdict = result.Fail
	case len(q.Findings) > 0:
		q.Verdict = result.Warn
	default:
		q.Verdict, q.Reason = v.withoutFinding(q, r, outcomes)
	}
}

// newFirst returns findings with those behind the others that say the same as one
// before.
func newFirst(findings []result.Finding) []result.Finding {
	var first, again []result.Finding
	for _, f := range findings {
		if slices.ContainsFunc(first, func(g result.Finding) bool { return g.Message == f.Message }) {
			again = append(again, f)
		} else {
			first = append(first, f)
		}
	}
	return append(first, again...)
}

func (v *evidence) withoutFinding(q *result.Requirement, r schema.Requirement, outcomes []check.Outcome) (result.Verdict, string) {
	for _, o := range outcomes {
		if o.Verdict == check.Broken {
			return result.Error, o.Check.Name + ": " + o.Reason
		}
	}
	if seen := v.report[judge.Key{Requirement: q.ID, Party: v.role}]; seen != nil && seen.Broken != "" {
		return result.Error, seen.Broken
	}
	if !r.Observable {
		return result.Skip, "not observable: " + r.How
	}
	if q.Exercised > 0 {
		return result.Pass, ""
	}
	if len(r.Transports) > 0 && !slices.Contains(r.Transports, v.transport) {
		return result.Skip, "applies to " + strings.Join(r.Transports, " and ") + " only"
	}
	if v.cause != nil {
		for _, o := range outcomes {
			// Some checks are run in spite of it.
			if o.Verdict == check.Inconclusive && o.Reason != "" && o.Reason != v.cause.Error() {
				return result.Inconclusive, withHelp(o.Reason, r)
			}
		}
		return result.Inconclusive, v.cause.Error()
	}
	if missing := v.undeclared(r); missing != "" {
		return result.Skip, missing
	}
	reason, skipped := "", ""
	for _, o := range outcomes {
		switch o.Verdict {
		case check.Inconclusive:
			reason = o.Reason
		case check.Skipped:
			skipped = o.Reason
		}
	}
	switch {
	case reason != "":
		return result.Inconclusive, withHelp(reason, r)
	case skipped != "":
		return result.Skip, skipped
	case v.passive && len(q.Checks) == 0:
		return result.Inconclusive, "shows only when provoked, which a run of mcpconform " + string(v.role) + " does"
	case v.passive:
		return result.Inconclusive, "nothing in the exchange showed it"
	case len(q.Checks) == 0:
		return result.Inconclusive, "no check of this version tries it"
	}
	return result.Inconclusive, withHelp("nothing in this run exercised it", r)
}

// withHelp adds what the user can configure.
func withHelp(reason string, r schema.Requirement) string {
	if r.Config == "" {
		return reason
	}
	return reason + " (configuration that helps: " + r.Config + ")"
}

// undeclared says which capability a requirement depends on that the target
// has not declared, or "".
func (v *evidence) undeclared(r schema.Requirement) string {
	party, path, ok := strings.Cut(r.Capability, ".")
	if !ok || v.declared == nil || wire.Party(party) != v.role {
		return ""
	}
	if v.declared(wire.Party(party), strings.Split(path, ".")) {
		return ""
	}
	return fmt.Sprintf("the %s does not declare %s", party, path)
}

// verdict returns the overall verdict of a run. Failures that were expected do
// not count, and expected ones that did not come do.
func verdict(run *result.Run, cause error) (result.Overall, string) {
	passed, broken := 0, ""
	for _, q := range run.Requirements {
		switch {
		case q.Expected != "":
		case q.Verdict == result.Fail, q.Verdict == result.Warn && run.Strict:
			return result.NotConformant, ""
		case q.Verdict == result.Error:
			broken = q.ID
		}
		if q.Verdict == result.Pass {
			passed++
		}
	}
	switch {
	case cause != nil:
		return result.Incomplete, cause.Error()
	case expected.Stale(run):
		return result.NotConformant, ""
	case broken != "":
		return result.Incomplete, "mcpconform could not tell whether " + broken + " is met"
	case passed == 0:
		return result.Incomplete, "nothing was exercised"
	}
	return result.Conformant, ""
}
