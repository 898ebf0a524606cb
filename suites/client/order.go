package client

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/mcpconform/mcpconform/suites/internal/ending"
)

// unit waits for a launch: it is a combined launch, or a scenario alone.
type unit struct {
	alone    *Scenario    // nil for a combined launch
	index    int          // of the scenario
	combined *combinedRun // of the scenario, or itself; nil if the scenario has none
}

// scenario returns the scenario that the unit runs.
func (u unit) scenario() *Scenario {
	if u.alone == nil {
		return u.combined.t.Scenario
	}
	return u.alone
}

// units returns all units in the order in which they begin. Scenarios that keep the client waiting come first, then
// units that others wait for, then the rest.
func units(scenarios []*Scenario, combinedLaunches map[int]*combinedRun) []unit {
	var all []unit
	for i, s := range scenarios {
		if j := combinedLaunches[i]; j != nil &&
			!slices.ContainsFunc(all, func(u unit) bool { return u.combined == j }) {
			all = append(all, unit{combined: j})
		}
		all = append(all, unit{alone: s, index: i, combined: combinedLaunches[i]})
	}
	rank := func(u unit) int {
		switch s := u.scenario(); {
		case s.Name == Baseline, s.Lane == Waiting:
			return 0
		case u.combined != nil, leads(s, scenarios):
			return 1
		}
		return 2
	}
	slices.SortStableFunc(all, func(a, b unit) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}

// leads reports whether others of the scenarios name this one in After.
func leads(s *Scenario, scenarios []*Scenario) bool {
	return slices.ContainsFunc(scenarios, func(other *Scenario) bool { return slices.Contains(other.After, s.Name) })
}

// depends reports whether a unit has to wait for the outcome of another before it waits for its launch. It also
// reports true for the baseline.
func (x *execution) depends(u unit) bool {
	s := u.scenario()
	_, asks := x.Needed[s.Name]
	asks = asks || u.alone == nil && slices.ContainsFunc(u.combined.members,
		func(t *T) bool { return x.Needed[t.Scenario.Name] != nil })
	return s.Name == Baseline || asks || x.first(s) != nil || u.alone != nil && u.combined != nil
}

// awaited is the run of a scenario that others wait for.
type awaited struct {
	once  sync.Once
	ended chan struct{} // closed when t is known
	t     *T
}

// await waits for the outcome of the scenario. It is nil if the scenario is not run.
func (a *awaited) await() *T {
	if a == nil {
		return nil
	}
	<-a.ended
	return a.t
}

// publish tells those that wait for a scenario its outcome, at the first call.
func (x *execution) publish(t *T) {
	if a := x.awaited[t.Scenario.Name]; a != nil {
		a.once.Do(func() {
			a.t = t
			close(a.ended)
		})
	}
}

// needed reports whether a scenario is to be run.
func (x *execution) needed(s *Scenario) bool {
	ask, ok := x.Needed[s.Name]
	if !ok {
		return true
	}
	x.awaited[Baseline].await()
	return ask()
}

// first returns the scenario that another names in After, or nil if it is not run.
func (x *execution) first(s *Scenario) *awaited {
	for _, name := range s.After {
		if a := x.awaited[name]; a != nil {
			return a
		}
	}
	return nil
}

// excused says why a client is not launched for a scenario, or "". The scenario that it follows has then shown that it
// would show nothing.
func (x *execution) excused(ctx context.Context, s *Scenario) string {
	first := x.first(s)
	if first == nil {
		return ""
	}
	select {
	case <-first.ended:
	case <-ctx.Done():
		return cutShort(ctx)
	}
	if why := s.Excused(first.t); why != "" {
		return "in scenario " + first.t.Scenario.Name + " " + why
	}
	return ""
}

// cutShort says why a run ended early: a client could not be started, the user ended it, or the time limit of the run
// did.
func cutShort(ctx context.Context) string {
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		return "the client cannot be started: " + cause.Error()
	}
	return ending.Cause(ctx).Error()
}
