package ledger

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/suites/expected"
	"github.com/mcpconform/mcpconform/suites/result"
)

// Merge makes one run of the shards of it that there are. The error says why they do
// not belong together.
func Merge(shards []*result.Run, today time.Time) (*result.Run, error) {
	shards, err := sorted(shards)
	if err != nil {
		return nil, err
	}
	run := gathered(shards)
	missing := absent(shards)
	for i := range shards[0].Requirements {
		run.Requirements = append(run.Requirements, mergeRequirement(shards, i, missing))
	}
	attribute(run)
	expectAgain(run, shards[0], today)
	run.Verdict, run.Reason = judged(run, cutShort(shards, missing))
	if run.Verdict == result.Conformant {
		unused := slices.Clone(shards[0].Shard.Unused)
		for _, r := range shards[1:] {
			unused = slices.DeleteFunc(unused, func(name string) bool { return !slices.Contains(r.Shard.Unused, name) })
		}
		if len(unused) > 0 {
			run.Verdict, run.Reason = result.Incomplete, unusedBy(run.Role, unused)
		}
	}
	if missing != "" && run.Verdict == result.NotConformant {
		run.Notes = append(run.Notes, missing)
	}
	return run, nil
}

// sorted returns the shards of one run by their index.
func sorted(shards []*result.Run) ([]*result.Run, error) {
	shards = slices.Clone(shards)
	for _, r := range shards {
		if r.Shard == nil {
			return nil, fmt.Errorf("the results of a whole run, of %s, stand among those of shards", describe(r))
		}
	}
	if len(shards) == 0 {
		return nil, errors.New("there are no shards")
	}
	slices.SortStableFunc(shards, func(a, b *result.Run) int { return a.Shard.Index - b.Shard.Index })
	for i, r := range shards[1:] {
		if err := together(shards[0], r); err != nil {
			return nil, err
		}
		if shards[i].Shard.Index == r.Shard.Index {
			return nil, fmt.Errorf("shard %d of %d is there twice", r.Shard.Index, r.Shard.Of)
		}
	}
	return shards, nil
}

// gathered returns a run with everything that the shards say beside their requirements.
func gathered(shards []*result.Run) *result.Run {
	first := shards[0]
	run := &result.Run{
		Format: result.Format, Tool: first.Tool, Revision: first.Revision, Role: first.Role, Transport: first.Transport,
		Target:  first.Target,
		Started: first.Started, Strict: first.Strict, Seed: first.Seed, Quick: first.Quick, Thorough: first.Thorough,
		Partial: first.Shard.Partial,
	}
	for _, r := range shards {
		if run.Target.Name == "" && r.Target.Name != "" {
			run.Target = r.Target
		}
		if run.Target.SDK == nil {
			run.Target.SDK = r.Target.SDK
		}
		if run.Offer == nil {
			run.Offer = r.Offer
		}
		if r.Started.Before(run.Started) {
			run.Started = r.Started
		}
		run.Seconds = math.Max(run.Seconds, r.Seconds)
		for _, n := range r.Notes {
			if !slices.Contains(run.Notes, n) {
				run.Notes = append(run.Notes, n)
			}
		}
		for _, u := range r.Uncalled {
			if !slices.Contains(run.Uncalled, u) {
				run.Uncalled = append(run.Uncalled, u)
			}
		}
		for _, f := range r.Harness {
			run.Harness = append(run.Harness, located(f, r.Shard))
		}
	}
	return run
}

// expectAgain applies the expected failures of a shard to the whole run.
func expectAgain(run, shard *result.Run, today time.Time) {
	expectSDK := false
	var entries []expected.Entry
	for _, x := range shard.ExpectedFailures {
		if x.ID == expected.SDK {
			expectSDK = true
			continue
		}
		entries = append(entries, expected.Entry{ID: x.ID, Reason: x.Reason, Expires: x.Expires})
	}
	expected.Apply(run, entries, today)
	if expectSDK {
		expected.ApplySDK(run)
	}
}

// together reports why two shards are not of one run.
func together(a, b *result.Run) error {
	differ := func(what, x, y string) error {
		return fmt.Errorf("the shards are not of one run: shard %d has %s %s, shard %d %s", a.Shard.Index, what, x,
			b.Shard.Index, y)
	}
	for _, m := range []struct{ what, a, b string }{
		{"the version of mcpconform", a.Tool.Name + " " + a.Tool.Version, b.Tool.Name + " " + b.Tool.Version},
		{"the revision", a.Revision, b.Revision},
		{"the role", a.Role, b.Role},
		{"the transport", a.Transport, b.Transport},
		{"the number of shards", fmt.Sprint(a.Shard.Of), fmt.Sprint(b.Shard.Of)},
		{"the strictness", fmt.Sprint(a.Strict), fmt.Sprint(b.Strict)},
		{"the seed", fmt.Sprint(a.Seed), fmt.Sprint(b.Seed)},
		{"the budget", a.Budget().String(), b.Budget().String()},
		{"the target", strings.Join(a.Target.Command, " "), strings.Join(b.Target.Command, " ")},
	} {
		if m.a != m.b {
			return differ(m.what, strconv.Quote(m.a), strconv.Quote(m.b))
		}
	}
	// A server that is started for the run has another port each time.
	if len(a.Target.Command) == 0 && a.Target.URL != b.Target.URL {
		return differ("the target", strconv.Quote(a.Target.URL), strconv.Quote(b.Target.URL))
	}
	// A target that could not be started did not give its name.
	if x, y := a.Target.Name+" "+a.Target.Version, b.Target.Name+" "+b.Target.Version; a.Target.Name != "" &&
		b.Target.Name != "" && x != y {
		return differ("the target", strconv.Quote(x), strconv.Quote(y))
	}
	same := a.Shard.Plan == b.Shard.Plan && slices.EqualFunc(a.Requirements, b.Requirements,
		func(p, q result.Requirement) bool { return p.ID == q.ID }) &&
		slices.EqualFunc(a.ExpectedFailures, b.ExpectedFailures, func(x, y result.ExpectedFailure) bool {
			return x.ID == y.ID && x.Reason == y.Reason && x.Expires == y.Expires
		})
	if !same {
		return fmt.Errorf("the shards are not of one run: shards %d and %d were made with other selections, "+
			"scripts or expected failures",
			a.Shard.Index, b.Shard.Index)
	}
	return nil
}

func describe(r *result.Run) string {
	for _, s := range []string{r.Target.Name, r.Target.URL, strings.Join(r.Target.Command, " ")} {
		if s != "" {
			return strconv.Quote(s)
		}
	}
	return "a " + r.Role
}

// absent names the shards that are not there, in a clause, or "".
func absent(shards []*result.Run) string {
	var numbers []string
	of := shards[0].Shard.Of
	for n := 1; n <= of; n++ {
		if !slices.ContainsFunc(shards, func(r *result.Run) bool { return r.Shard.Index == n }) {
			numbers = append(numbers, fmt.Sprint(n))
		}
	}
	switch n := len(numbers); n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("shard %s of %d is missing", numbers[0], of)
	default:
		return fmt.Sprintf("shards %s and %s of %d are missing", strings.Join(numbers[:n-1], ", "), numbers[n-1], of)
	}
}

// cutShort is why the whole was not carried out to its end, or nil.
func cutShort(shards []*result.Run, missing string) error {
	var reasons []string
	if missing != "" {
		reasons = append(reasons, missing)
	}
	for _, r := range shards {
		if r.Shard.Cut != "" {
			reasons = append(reasons, fmt.Sprintf("shard %d of %d: %s", r.Shard.Index, r.Shard.Of, r.Shard.Cut))
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return errors.New(strings.Join(reasons, "; "))
}

// The ranks of what a shard says of a requirement, from what counts most.
const (
	broken = iota
	ignored
	unknown
	satisfied
	unprovoked
	cut
	inapplicable
	unseen
	elsewhere // another shard tries it
)

func rankOf(r *result.Run, q *result.Requirement) int {
	switch q.Verdict {
	case result.Fail:
		return broken
	case result.Warn:
		return ignored
	case result.Error:
		return unknown
	case result.Pass:
		return satisfied
	case result.Skip:
		return inapplicable
	}
	switch {
	case slices.Contains(r.Shard.Elsewhere, q.ID):
		return elsewhere
	case q.Unexercised == result.NeverDone:
		return unseen
	case q.Unexercised == result.NotRun:
		return cut
	}
	return unprovoked
}

// mergeRequirement returns what the shards together say of their i-th requirement, as
// [Decide] does of all that one run has recorded.
func mergeRequirement(shards []*result.Run, i int, missing string) result.Requirement {
	order := slices.Clone(shards)
	slices.SortStableFunc(order, func(a, b *result.Run) int {
		return rankOf(a, &a.Requirements[i]) - rankOf(b, &b.Requirements[i])
	})
	merged := order[0].Requirements[i]
	decides := rankOf(order[0], &merged)
	merged.Exercised, merged.Omitted, merged.Expected = 0, 0, ""
	merged.Checks, merged.Findings, merged.Notes = nil, nil, nil
	if decides == elsewhere {
		merged.Reason = "no shard tried it"
		if missing != "" {
			merged.Reason += "; " + missing
		}
	}
	for _, r := range shards {
		q := &r.Requirements[i]
		merged.Exercised += q.Exercised
		merged.Omitted += q.Omitted
		for _, name := range q.Checks {
			if !slices.Contains(merged.Checks, name) {
				merged.Checks = append(merged.Checks, name)
			}
		}
		for _, n := range q.Notes {
			merged.Notes = once(merged.Notes, n, maxNotes)
		}
	}
	for _, r := range order {
		if q := &r.Requirements[i]; rankOf(r, q) == decides && q.Disputed == nil {
			merged.Disputed = nil // some of the findings that decide are not disputed
		}
	}
	mergeFindings(&merged, order, i)
	return merged
}

// mergeFindings takes the findings of all shards on a requirement, each message once for each check. The first check
// with a message comes before others with the same.
func mergeFindings(merged *result.Requirement, order []*result.Run, i int) {
	var repeated []result.Finding
	for _, r := range order {
		for _, f := range r.Requirements[i].Findings {
			same := func(g result.Finding) bool { return g.Message == f.Message }
			alike := func(g result.Finding) bool { return same(g) && g.Check == f.Check }
			said := false
			for _, list := range [][]result.Finding{merged.Findings, repeated} {
				if at := slices.IndexFunc(list, alike); at >= 0 && !said {
					list[at].Repeated += 1 + f.Repeated
					said = true
				}
			}
			switch {
			case said:
				merged.Omitted++
			case slices.ContainsFunc(merged.Findings, same):
				repeated = append(repeated, located(f, r.Shard))
			default:
				merged.Findings = append(merged.Findings, located(f, r.Shard))
			}
		}
	}
	merged.Findings = append(merged.Findings, repeated...)
	if more := len(merged.Findings) - maxFindings; more > 0 {
		merged.Findings = merged.Findings[:maxFindings]
		merged.Omitted += more
	}
}

// located returns a finding whose evidence says in which shard's trace it is.
func located(f result.Finding, s *result.Shard) result.Finding {
	f.Evidence = slices.Clone(f.Evidence)
	for i := range f.Evidence {
		f.Evidence[i].Connection = fmt.Sprintf("%d/%s", s.Index, f.Evidence[i].Connection)
	}
	return f
}
