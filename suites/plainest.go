package suites

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
	"github.com/mcpconform/mcpconform/suites/internal/tree"
	"github.com/mcpconform/mcpconform/suites/result"
)

// trial is a check or a scenario in the choice of a quick run.
type trial struct {
	name         string
	unit         string // trials of one unit share one session or launch
	requirements []string
	cost         int
	patient      bool     // it waits until the target gives up
	needs        []string // that the target may lack
}

// plainest returns the names of the trials that a quick run makes: together they try as much as all trials, except for
// requirements that were tried before or that only patient trials try. A trial is left out if others that need no more
// try its requirements. The dearest ones are left out first, whole units before parts of them.
func plainest(all []trial, before map[string]bool) map[string]bool {
	all = slices.DeleteFunc(slices.Clone(all), func(t trial) bool { return t.patient })
	kept := all
	leave := func(from []trial) {
		rest := slices.DeleteFunc(slices.Clone(kept), func(t trial) bool {
			return slices.ContainsFunc(from, func(f trial) bool { return f.name == t.name })
		})
		for _, t := range from {
			for _, id := range t.requirements {
				if !before[id] && !slices.ContainsFunc(rest, func(other trial) bool { return other.tries(id, t) }) {
					return
				}
			}
		}
		kept = rest
	}
	units := make(map[string][]trial)
	for _, t := range all {
		units[t.unit] = append(units[t.unit], t)
	}
	var order [][]trial
	for _, t := range all {
		if members := units[t.unit]; members[0].name == t.name {
			order = append(order, members)
		}
	}
	slices.Reverse(order) // of equals the first is kept: it is the plainer one
	slices.SortStableFunc(order, func(a, b []trial) int { return -cmp.Compare(share(a), share(b)) })
	for _, members := range order {
		leave(members)
	}
	for _, members := range order {
		slices.SortStableFunc(members, func(a, b trial) int {
			return -cmp.Compare(share([]trial{a}), share([]trial{b}))
		})
		for _, t := range members {
			leave([]trial{t})
		}
	}
	names := make(map[string]bool, len(kept))
	for _, t := range kept {
		names[t.name] = true
	}
	return names
}

// plainest returns the specs of a quick run, and notes the requirements of longer runs. before returns the requirements
// that were tried already. In another run plainest returns all.
func (r *run) plainest(specs []*tree.Spec, before func() map[string]bool, of func(*tree.Spec) trial) []*tree.Spec {
	if r.Budget != result.Quick {
		return specs
	}
	trials := make([]trial, len(specs))
	for i, s := range specs {
		trials[i] = of(s)
	}
	kept := plainest(trials, before())
	r.ledger.Evidence.Longer = make(map[string]bool)
	return slices.DeleteFunc(slices.Clone(specs), func(s *tree.Spec) bool {
		if kept[s.Name] {
			return false
		}
		for _, id := range slices.Concat(s.Requirements, s.Shows) {
			r.ledger.Evidence.Longer[id] = true
		}
		return true
	})
}

// seen returns the requirements that the rules have seen the target meet or break so far.
func (r *run) seen() map[string]bool {
	seen := make(map[string]bool)
	for k, e := range judge.Judge(r.Revision, r.Trace.Logs(), r.judging) {
		if k.Party == r.stimulus.party() && e.Exercised > 0 {
			seen[k.Requirement] = true
		}
	}
	return seen
}

// tries reports whether a trial tries a requirement wherever another one does.
func (t trial) tries(id string, other trial) bool {
	return slices.Contains(t.requirements, id) && !slices.ContainsFunc(t.needs, func(need string) bool {
		return !slices.Contains(other.needs, need)
	})
}

// share returns what one requirement costs in trials.
func share(trials []trial) float64 {
	var ids []string
	cost := 0
	for _, t := range trials {
		ids, cost = append(ids, t.requirements...), cost+t.cost
	}
	slices.Sort(ids)
	return float64(cost) / float64(max(1, len(slices.Compact(ids))))
}

// The costs of trials, in requests, roughly.
const (
	costSession = 5  // of its own
	costTool    = 5  // in one role
	costFamily  = 10 // a check without one sends the plain value
	costWait    = 50 // for what may not come
)

// checkTrial returns a check as a trial on a server. The offers of the server decide its needs.
func checkTrial(c *check.Check, t *check.Target) trial {
	n := c.Needs
	x := trial{name: c.Name, unit: c.Name, requirements: c.Requirements, patient: c.Patient()}
	x.cost = 1 + costFamily*len(c.Families) + costTool*len(n.ToolRoles)
	if n.Session != check.Shared && n.Session != check.Own {
		x.cost += costSession
	}
	if n.Lane == check.Waiting || n.Lane == check.Last {
		x.cost += costWait
	}
	if n.Server != "" && !t.Declares(n.Server) {
		x.needs = append(x.needs, n.Server)
	}
	if !c.Applies(t.Transport) {
		x.needs = append(x.needs, "another transport")
	}
	if n.Authorization {
		x.needs = append(x.needs, "authorization")
	}
	known := slices.ContainsFunc(n.ToolRoles, func(role string) bool { _, ok := t.ToolFor(role); return ok })
	if lacks := n.Lacking != nil && n.Lacking(t) != ""; lacks || len(n.ToolRoles) > 0 && !known {
		x.needs = append(x.needs, cmp.Or(strings.Join(n.ToolRoles, " "), c.Name))
	}
	return x
}

// scenarioTrial returns a scenario as a trial on a client. The acts of a client are known only afterwards: so what a
// scenario needs is a matter of cost.
func scenarioTrial(s *client.Scenario) trial {
	x := trial{name: s.Name, unit: unit(s), requirements: s.Requirements, patient: s.Lane == client.Waiting}
	x.cost = 1 + costTool*len(s.After)
	if s.Needs != "" || s.UserActions != "" {
		x.cost += costTool
	}
	if x.unit == x.name {
		x.cost += costSession
	}
	return x
}
