package check

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	"github.com/mcpconform/mcpconform/suites/result"
)

// members are those of families that the checks of a run try.
type members struct {
	varied sync.Map      // by check and number of the family: the first [variation]
	shown  sync.Map      // the checks of which a variation has found something
	tries  chan struct{} // holds an entry for each member that is tried beside others
}

// Draw returns the members of a family that the check tries in this run, the plain one first. The check has to
// declare the family. Each check gets a sample of its own from a large family. A quick run draws like
// others, since the check may leave out some: [T.Vary] tries the first of those that are left.
func (t *T) Draw(name string) []family.Member {
	if !slices.Contains(t.check.Families, name) {
		panic(fmt.Sprintf("the check %s does not declare the family %s", t.check.Name, name))
	}
	choice := t.engine.Choice
	if !t.Further() {
		choice.Budget = result.Default
	}
	return choice.Draw(name, t.check.Name)
}

// DrawFew is Draw for a further place where the server gets such values. Only a thorough run tries there more than the
// plain member and those that are to be tried everywhere.
func (t *T) DrawFew(name string) []family.Member {
	return slices.DeleteFunc(t.Draw(name), func(m family.Member) bool {
		return !m.Plain() && !m.Everywhere && !t.Thorough()
	})
}

// DrawAt is Draw for the first of several places of a check, and DrawFew for the others.
func (t *T) DrawAt(place int, name string) []family.Member {
	if place == 0 {
		return t.Draw(name)
	}
	return t.DrawFew(name)
}

// Random returns the source of the random choices of the check in this run.
func (t *T) Random() rand.Source { return t.engine.Choice.Source(t.check.Name) }

// Thorough reports whether the run tries more than others.
func (t *T) Thorough() bool { return t.engine.Choice.Budget == result.Thorough }

// Further reports whether a check goes on, in other orders and sessions, once it has tried what it is about.
func (t *T) Further() bool { return t.engine.Choice.Budget != result.Quick }

// RunsAgain reports whether the check is run again, alone, if anything is wrong. Until then, one control behind all
// that a check sends does for a control behind each. A thorough run makes each of them.
func (t *T) RunsAgain() bool {
	again := t.concurrent && !t.Thorough()
	if t.varied != nil && again {
		t.varied.common = true
	}
	return again
}

// Count returns how often a check does something, by the budget of the run. A repeated check does it as often as in a
// quick run.
func (t *T) Count(quick, usual, thorough int) int {
	switch {
	case !t.Further(), t.plainly:
		return quick
	case t.Thorough():
		return thorough
	}
	return usual
}

// Most returns how many of n similar things a check does: all, or no more than a few in a quick run, or if it is
// repeated.
func (t *T) Most(n, few int) int { return t.Count(min(n, few), n, n) }

// Vary tries members of a family. All that try finds of one requirement becomes a single finding. It is about the
// smallest member, names the others, and says whether the plain one is as it should be.
//
// While all checks are run, the plain member is tried first, and then a few of the others
// at a time: where a try waits for an answer, by the methods of T, others go on, one after
// the other, so that a try may use the check as if it were alone. When the check is run
// again because some showed something, the members are tried one after the other, and those
// that were as they should be are left out, but for the plain one.
func (t *T) Vary(members []family.Member, try func(m family.Member)) {
	t.vary(members, try, t.concurrent)
}

// VaryInTurn is Vary with one member after the other. It is for tries that judge all messages of their time, and for
// messages that may crash a server.
func (t *T) VaryInTurn(members []family.Member, try func(m family.Member)) {
	t.vary(members, try, false)
}

func (t *T) vary(members []family.Member, try func(m family.Member), concurrent bool) {
	if t.plainly {
		try(members[0])
		return
	}
	if few := 1; len(members) > 0 {
		if members[0].Control() {
			few++
		}
		members = members[:t.Most(len(members), few)]
	}
	t.variations++
	key := fmt.Sprintf("%s, %d", t.check.Name, t.variations)
	if before, again := t.engine.varied.Load(key); again {
		_, shown := t.engine.shown.Load(t.check)
		members = before.(*variation).doubtful(members, shown)
	}
	v := &variation{turn: make(chan struct{}, 1), notes: make(map[string][]string)}
	v.turn <- struct{}{}
	t.varied = v
	defer func() {
		t.varied = nil
		t.engine.varied.LoadOrStore(key, v)
		if len(v.All) > 0 {
			t.engine.shown.Store(t.check, true)
		}
		for _, f := range v.All {
			record := t.rec.Fail
			if f.WarnOnly {
				record = t.rec.Warn
			}
			record(f.Requirement, wire.Server, v.Text(f), f.Proof...)
		}
		for _, m := range members {
			for _, note := range v.notes[m.Is] {
				t.Note("%s", note)
			}
		}
		if v.late {
			t.Note("the server is slow: mcpconform did not try %d of %d values", len(members)-len(v.Tried),
				len(members))
		}
	}()
	for i, m := range members {
		if i == 1 && concurrent { // the others are compared with the plain one
			v.tryBeside(t, members[i:], try)
			break
		}
		v.try(t, m, try)
	}
}

// tryBeside tries a few members at a time, and waits for all of them.
func (v *variation) tryBeside(t *T, members []family.Member, try func(m family.Member)) {
	v.concurrent = true
	<-v.turn
	var under sync.WaitGroup
	one := make(chan struct{}, 1) // that need not wait for other checks
	for _, m := range members {
		var slot chan struct{}
		select {
		case one <- struct{}{}:
			slot = one
		case t.engine.tries <- struct{}{}:
			slot = t.engine.tries
		}
		under.Go(func() {
			defer func() { <-slot }()
			v.turn <- struct{}{}
			defer func() { <-v.turn }()
			defer func() {
				if r := recover(); r != nil {
					v.stopped = r
				}
			}()
			if v.stopped == nil {
				v.try(t, m, try)
			}
		})
	}
	under.Wait()
	v.turn <- struct{}{}
	if v.stopped != nil {
		// The check runs again to find the cause among the members that were tried at the time.
		v.Tried, t.disturbed = nil, true
		panic(v.stopped)
	}
}

// try tries one member, unless the rest of the check needs the time that is left: a check that
// runs out of it is worth nothing.
func (v *variation) try(t *T, m family.Member, try func(m family.Member)) {
	v.late = v.late || len(v.Tried) > 0 && t.left() < checkTime*t.engine.Timeout/2
	if v.late {
		return
	}
	t.Clear()
	v.member = m
	try(m)
	v.Tried = append(v.Tried, m)
}

// yield waits for something. If several members of a family are tried at a time, the other tries continue meanwhile.
func (t *T) yield(wait func()) {
	v := t.varied
	if v == nil || !v.concurrent {
		wait()
		return
	}
	func() {
		member, evidence, unawaited, about := v.member, t.evidence, t.unawaited, t.about
		<-v.turn
		defer func() {
			v.turn <- struct{}{}
			v.member, t.evidence, t.unawaited, t.about = member, evidence, unawaited, about
		}()
		wait()
	}()
	if v.stopped != nil {
		panic(v.stopped) // the check has ended meanwhile
	}
}

// variation collects the findings while the members of a family are tried.
type variation struct {
	family.Findings
	member family.Member
	notes  map[string][]string // by what is special about the member: their order is that of the family

	turn       chan struct{} // holds an entry while a try uses the check
	concurrent bool          // several members are tried at a time
	late       bool          // the rest of them is left out
	stopped    any           // what ended the body, or nil
	common     bool          // one control is made for several members
}

// doubtful returns the members that another execution has to try: all if no member of any family has shown anything, or
// a control was for several. If the plain one showed something, a few others with the same result are enough.
func (v *variation) doubtful(members []family.Member, shown bool) []family.Member {
	if !shown || v.common {
		return members
	}
	holds := func(all []family.Member, m family.Member) bool {
		return slices.ContainsFunc(all, func(other family.Member) bool { return other.Is == m.Is })
	}
	return slices.DeleteFunc(slices.Clone(members), func(m family.Member) bool {
		shows := slices.ContainsFunc(v.All, func(f *family.Finding) bool {
			shown := f.Shown
			if shown[0].Plain() {
				shown = shown[:min(len(shown), 1+family.MostNamed)]
			}
			return holds(shown, m)
		})
		return !m.Plain() && !shows && holds(v.Tried, m)
	})
}
