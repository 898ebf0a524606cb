package client

import (
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/authserver"
	"github.com/mcpconform/mcpconform/reference/server"
)

// Combined is a combined launch: one server plays several scenarios at once, and none hides the subject of another.
// This saves the client's start for each of them. If the client comes through, a scenario without findings needs no
// launch of its own. The others run in smaller combined launches or alone, and only the last run of each counts.
type Combined struct {
	Name      string
	Scenarios []string
}

// Title is the name of the launch in place of a scenario's name. A client may tell by it whether the server is
// protected.
func (j Combined) Title() string {
	if strings.HasPrefix(j.Scenarios[0], "auth/") {
		return "auth/together/" + j.Name
	}
	return "together/" + j.Name
}

// Among returns the scenarios of the launch that are among others.
func (j Combined) Among(scenarios []*Scenario) []*Scenario {
	return slices.DeleteFunc(slices.Clone(scenarios),
		func(s *Scenario) bool { return !slices.Contains(j.Scenarios, s.Name) })
}

// combinedRun is one launch for several scenarios.
type combinedRun struct {
	t         *T
	members   []*T
	through   bool           // the client came through all of them
	satisfied bool           // it exited in time, and with no less work than with an ordinary server
	parts     []*combinedRun // smaller launches of the members without findings; none if they are not worthwhile
	done      chan struct{}  // closed when the other fields are set; the parts may not have run yet
}

// combinedRuns returns the combined launches with several scenarios to run, by the indices of the scenarios.
func (e *Engine) combinedRuns(scenarios []*Scenario) map[int]*combinedRun {
	runs := make(map[int]*combinedRun)
	for _, j := range e.Combined {
		members := j.Among(scenarios)
		if len(members) < 2 {
			continue
		}
		run := e.combinedRun(j.Title(), members)
		for _, s := range members {
			runs[slices.Index(scenarios, s)] = run
		}
	}
	return runs
}

// combinedRun makes one launch for the scenarios.
func (e *Engine) combinedRun(title string, scenarios []*Scenario) *combinedRun {
	run := &combinedRun{t: e.newRun(Combine(title, scenarios)), done: make(chan struct{})}
	run.t.combined = true
	for _, s := range scenarios {
		run.members = append(run.members, e.newRun(s))
	}
	return run
}

// Combine returns the scenario whose server plays several scenarios at once.
func Combine(title string, scenarios []*Scenario) *Scenario {
	first := scenarios[0]
	together := &Scenario{Name: title, Official: first.Official, After: first.After, Excused: first.Excused}
	var parts []func(*ScenarioRun) server.Options
	var setups []func() *AuthorizationSetup
	for _, s := range scenarios {
		parts = append(parts, s.Options)
		together.Faults = append(together.Faults, s.Faults...)
		together.UserActions = strings.TrimSpace(together.UserActions + " " + s.UserActions)
		if s.Authorization != nil {
			setups = append(setups, s.Authorization)
		}
	}
	together.Options = func(run *ScenarioRun) server.Options {
		var all server.Options
		for _, part := range parts {
			if part != nil {
				merge(reflect.ValueOf(&all).Elem(), reflect.ValueOf(part(run)))
			}
		}
		return all
	}
	if len(setups) > 0 {
		together.Authorization = func() *AuthorizationSetup { return protectedLike(setups) }
	}
	return together
}

// fewest is the least number of scenarios for which a further combined launch is worthwhile.
const fewest = 3

// parts returns smaller combined launches if the client did not come through. They hold the members without findings
// that nothing settles. If these are all members, each launch holds half of them. A launch with fewer than fewest
// members is left out.
func (e *Engine) parts(j *combinedRun) []*combinedRun {
	if j.through || j.t.Ending.Skipped != "" {
		return nil
	}
	var innocent []*Scenario
	for _, t := range j.members {
		if t.cleared() && !j.settles(t) {
			innocent = append(innocent, t.Scenario)
		}
	}
	name, half := j.t.Scenario.Name, (len(innocent)+1)/2
	switch {
	case len(innocent) < fewest:
		return nil
	case len(innocent) < len(j.members):
		return []*combinedRun{e.combinedRun(name+"/rest", innocent)}
	case half < fewest:
		return nil
	}
	return []*combinedRun{e.combinedRun(name+"/first", innocent[:half]), e.combinedRun(name+"/second", innocent[half:])}
}

// protectedLike returns a set-up that combines the peculiarities of others.
func protectedLike(setups []func() *AuthorizationSetup) *AuthorizationSetup {
	all := new(AuthorizationSetup)
	for _, setup := range setups {
		more := setup()
		servers := all.Servers
		for i, s := range more.Servers {
			if i == len(servers) {
				servers = append(servers, authserver.Options{})
			}
			merge(reflect.ValueOf(&servers[i]).Elem(), reflect.ValueOf(s))
		}
		more.Servers = nil
		merge(reflect.ValueOf(all).Elem(), reflect.ValueOf(*more))
		all.Servers = servers
	}
	return all
}

// judge judges each scenario by the acts of the client in the combined launch.
func (r *combinedRun) judge() {
	if r.t.Ending.Skipped != "" {
		return
	}
	r.through = r.came()
	r.satisfied = r.t.Ending.Exit != nil && r.undisturbed() && r.t.continuation().worked
	for _, t := range r.members {
		t.Conversations, t.Ending, t.Flow = r.t.Conversations, r.t.Ending, r.t.Flow
		t.ScenarioRun, t.others = r.t.ScenarioRun, r.t.others
		t.judge()
	}
	r.attribute()
}

// attribute leaves a finding of several members to the members that are about the requirement, because their servers
// have caused it.
func (r *combinedRun) attribute() {
	for _, t := range r.members {
		for _, k := range t.Recorder().Record.Keys() {
			q, _ := t.Revision.Lookup(k.Requirement)
			if !t.Scenario.about(q) && slices.ContainsFunc(r.members, func(other *T) bool {
				return other.Scenario.about(q) && other.HasFindings(k.Requirement)
			}) {
				delete(t.Recorder().Record, k)
			}
		}
	}
}

// came reports whether the client came through all of the scenarios. At a protected server it has done so once it has
// a token and has sent a request: the last scenario shows then.
func (r *combinedRun) came() bool {
	if r.t.ObtainedToken() && (len(r.t.Requests()) > 0 || r.t.Flow.Redirected()) {
		return true
	}
	c := r.t.continuation()
	return c.ok && c.decided && r.undisturbed()
}

// undisturbed reports whether the client has answered in time, and stayed to the end of each script.
func (r *combinedRun) undisturbed() bool { return !r.t.leftUnanswered() && !r.t.left.Load() }

// settles reports whether a member need not run alone. It must be cleared, and one of four things must hold.
// The client came through. Or the member was satisfied and judged as a whole, although the client ended in another
// way than with an ordinary server. Or the member is about the handshake, and the client left then: it has seen no
// other member. Or the client has to be stopped at an ordinary server as well: it hardly does more alone.
func (r *combinedRun) settles(t *T) bool {
	left := t.Scenario.Needs == NeedsHandshake && t.Ending.Exit != nil && len(t.Requests()) == 0
	stays := t.Baseline != nil && t.Baseline.Ending.Late
	return t.cleared() && (r.through || r.satisfied && t.judgedWhole() || left || stays)
}

// last returns the last combined launch that had a scenario as a member, and its run there. A scenario that is in
// none of the parts does not wait for them.
func (r *combinedRun) last(s *Scenario) (*combinedRun, *T) {
	<-r.done
	for _, part := range r.parts {
		if part.run(s) != nil {
			return part.last(s)
		}
	}
	return r, r.run(s)
}

// run returns the run of a scenario, or nil if it is no member.
func (r *combinedRun) run(s *Scenario) *T {
	if i := slices.IndexFunc(r.members, func(t *T) bool { return t.Scenario == s }); i >= 0 {
		return r.members[i]
	}
	return nil
}

// merge adds options to others. It panics if both set an option that only one can set. A test finds such a fault in
// the list of combined launches.
func merge(into, more reflect.Value) {
	switch {
	case more.IsZero():
	case into.Type() == reflect.TypeFor[map[string]server.Middleware]():
		b := server.Behaviour{Methods: into.Interface().(map[string]server.Middleware)}
		for method, m := range more.Interface().(map[string]server.Middleware) {
			b.Wrap(method, m)
		}
		into.Set(reflect.ValueOf(b.Methods))
	case into.Type() == reflect.TypeFor[func(http.Handler) http.Handler]() && !into.IsZero():
		outer := into.Interface().(func(http.Handler) http.Handler)
		inner := more.Interface().(func(http.Handler) http.Handler)
		into.Set(reflect.ValueOf(func(h http.Handler) http.Handler { return outer(inner(h)) }))
	case into.Type() == reflect.TypeFor[func(*server.Event) []*server.Event]() && !into.IsZero():
		first, second := into.Interface().(func(*server.Event) []*server.Event),
			more.Interface().(func(*server.Event) []*server.Event)
		into.Set(reflect.ValueOf(func(e *server.Event) []*server.Event {
			var all []*server.Event
			for _, e := range first(e) {
				all = append(all, second(e)...)
			}
			return all
		}))
	case into.Type() == reflect.TypeFor[func(*url.URL)]() && !into.IsZero():
		first, second := into.Interface().(func(*url.URL)), more.Interface().(func(*url.URL))
		into.Set(reflect.ValueOf(func(u *url.URL) {
			first(u)
			second(u)
		}))
	case into.Kind() == reflect.Struct:
		for i := range into.NumField() {
			merge(into.Field(i), more.Field(i))
		}
	case into.Kind() == reflect.Slice:
		into.Set(reflect.AppendSlice(into, more))
	case into.IsZero(), into.Comparable() && into.Equal(more):
		into.Set(more)
	default:
		panic(fmt.Sprintf("two scenarios of a combined launch set a %s", into.Type()))
	}
}
