package result

import (
	"fmt"
	"slices"
)

// Comparison tells what changed since an earlier run. The identity of a failure is the
// id of its requirement.
type Comparison struct {
	Base Tool   // of the earlier run
	File string // with the results of the earlier run; "" if they were in none
	// New are the requirements whose failures count now and that did not fail then.
	New []string
	// Mended are those that failed then and do not now.
	Mended []string
	// Unsettled are those that passed or were broken then and are inconclusive now.
	Unsettled []string
	// Unjudged are those among Unsettled, and those with a harness error, that this run
	// did not try to its end: the comparison says nothing about them.
	Unjudged []string
	// Added are the requirements that the earlier version of the catalogue did not have.
	// Their failures do not count as new: nobody knows since when they are there.
	Added []string
	// Left counts the requirements that only one of the runs judged, as it was partial, or that a quick run cannot
	// judge as the longer one before it did.
	Left int
	// Stale are the entries of the expected-failures file that became stale.
	Stale []string
	// Offer tells how what a server offers changed.
	Offer []OfferChange
	// OfferUnknown says why that cannot be told; "" if it can.
	OfferUnknown string
	// OfferIncomplete names the lists of which not all could be compared.
	OfferIncomplete []string
	// FailOnBreaking makes breaking changes of the offer count towards the verdict.
	FailOnBreaking bool
}

// Breaking counts the changes of what a server offers that break clients.
func (c *Comparison) Breaking() int {
	n := 0
	for _, x := range c.Offer {
		if x.Breaking {
			n++
		}
	}
	return n
}

// ComparisonError says why results cannot be compared.
type ComparisonError struct{ What, Base, Run string }

func (e *ComparisonError) Error() string {
	return fmt.Sprintf("the earlier results are about the %s %q, this run about %q; only results of the same "+
		"role, revision and transport can be compared",
		e.What, e.Base, e.Run)
}

// Breaks reports whether a requirement is broken in a way that the verdict rests on.
func (r *Run) Breaks(q *Requirement) bool {
	if !q.Observable || q.Expected != "" || q.Disputed != nil && !r.Strict {
		return false
	}
	return q.Verdict == Fail || q.Verdict == Warn && r.Strict
}

// Compare compares a run with an earlier one. The error is a *ComparisonError.
func Compare(base, run *Run) (*Comparison, error) {
	for _, m := range [][3]string{
		{"role", base.Role, run.Role}, {"revision", base.Revision, run.Revision},
		{"transport", base.Transport, run.Transport},
	} {
		if m[1] != m[2] {
			return nil, &ComparisonError{m[0], m[1], m[2]}
		}
	}
	c := &Comparison{Base: base.Tool}
	then := base.ByID()
	for i := range run.Requirements {
		q := &run.Requirements[i]
		b := then[q.ID]
		delete(then, q.ID)
		switch {
		case !q.Observable:
		case b == nil && base.Partial:
			c.Left++
		case b == nil:
			c.Added = append(c.Added, q.ID)
		case run.Quick && !base.Quick && tooQuick(b, q):
			c.Left++
		default:
			c.compare(run, b, q)
		}
	}
	for _, b := range then {
		if b.Observable && run.Partial {
			c.Left++
		}
	}
	for _, x := range run.ExpectedFailures {
		same := func(y ExpectedFailure) bool { return y.ID == x.ID && y.Status == x.Status }
		if x.Stale() && !slices.ContainsFunc(base.ExpectedFailures, same) {
			c.Stale = append(c.Stale, x.ID)
		}
	}
	c.offers(base, run)
	return c, nil
}

// offers compares what a server offered.
func (c *Comparison) offers(base, run *Run) {
	switch {
	case run.Role != "server":
	case base.Offer == nil:
		c.OfferUnknown = "the earlier results do not hold what the server offered"
	case run.Offer == nil:
		c.OfferUnknown = "the results do not hold what the server offers"
	default:
		c.Offer = Changes(base, run)
		for _, list := range []string{OfferTools, OfferPrompts, OfferResources, OfferTemplates} {
			if slices.Contains(base.Offer.Incomplete, list) || slices.Contains(run.Offer.Incomplete, list) {
				c.OfferIncomplete = append(c.OfferIncomplete, list)
			}
		}
	}
}

func (c *Comparison) compare(run *Run, b, q *Requirement) {
	broken := b.Verdict == Fail || b.Verdict == Warn && q.Verdict == Warn
	switch {
	case run.Breaks(q) && !broken:
		c.New = append(c.New, q.ID)
	case (q.Verdict == Pass || q.Verdict == Skip) && (b.Verdict == Fail || b.Verdict == Warn && run.Strict):
		c.Mended = append(c.Mended, q.ID)
	case q.Verdict == Inconclusive && (b.Verdict == Pass || b.Verdict == Fail || b.Verdict == Warn):
		c.Unsettled = append(c.Unsettled, q.ID)
		if q.Unexercised == NotRun {
			c.Unjudged = append(c.Unjudged, q.ID)
		}
	case q.Verdict == Error && b.Verdict != Error:
		c.Unjudged = append(c.Unjudged, q.ID)
	}
}

// tooQuick reports whether a longer run may still say of a requirement what the earlier one said: a quick run neither
// shows that a failure is mended, nor need it try what the other tried.
func tooQuick(b, q *Requirement) bool {
	switch q.Verdict {
	case Pass:
		return b.Verdict == Fail || b.Verdict == Warn
	case Inconclusive:
		return q.Unexercised != NotRun || q.Reason == QuickOnly
	}
	return false
}

// Verdict is that of the run when only what is new counts.
func (c *Comparison) Verdict(run *Run) Overall {
	switch {
	case len(c.New)+len(c.Stale) > 0, c.FailOnBreaking && c.Breaking() > 0:
		return NotConformant
	case run.Verdict == Incomplete || len(c.Unjudged) > 0, c.FailOnBreaking && c.OfferUnknown != "":
		return Incomplete
	}
	return Conformant
}

// Stale reports whether an entry no longer holds.
func (x *ExpectedFailure) Stale() bool { return x.Status == "passed" || x.Status == "unmatched" }
