package check

import (
	"maps"
	"slices"
	"sync"
)

// schedule is told of checks, and gives the next one that may begin: those that wait begin first, the last ones when
// no other waits, and those of a lane one after the other.
type schedule struct {
	mu      sync.Mutex
	changed *sync.Cond
	waiting []*Future     // those that are begun first in front
	busy    map[Lane]bool // a check of the lane is being run
	closed  bool
}

func newSchedule() *schedule {
	s := &schedule{busy: make(map[Lane]bool)}
	s.changed = sync.NewCond(&s.mu)
	return s
}

func (s *schedule) add(f *Future) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.waiting, func(other *Future) bool { return other.Check.order() > f.Check.order() })
	if i < 0 {
		i = len(s.waiting)
	}
	s.waiting = slices.Insert(s.waiting, i, f)
	s.changed.Signal()
}

// next waits for a check that may begin and for which there is a session. It returns nil when no more will come.
func (s *schedule) next(hasSession func(*Check) bool) *Future {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		passed := maps.Clone(s.busy) // and the lanes whose next check has no session yet
		i := slices.IndexFunc(s.waiting, func(f *Future) bool {
			lane, last := f.Check.own(), f.Check.Needs.Lane == Last
			if passed[lane] || last && s.waiting[0].Check.Needs.Lane != Last {
				return false
			}
			begins := hasSession(f.Check)
			passed[lane] = lane != "" && !begins
			return begins
		})
		if i >= 0 {
			f := s.waiting[i]
			s.waiting = slices.Delete(s.waiting, i, i+1)
			if lane := f.Check.own(); lane != "" {
				s.busy[lane] = true
			}
			return f
		}
		if len(s.waiting) == 0 && s.closed {
			return nil
		}
		s.changed.Wait()
	}
}

// change changes the schedule, and has it look again for a check that may begin.
func (s *schedule) change(by func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	by()
	s.changed.Broadcast()
}

// order says when a check begins. A check with a long wait begins before others, which use the time, unless it can
// wait in a session that an early check leaves. The checks of a lane follow each other, and begin early as well.
func (c *Check) order() int {
	switch {
	case c.takesLong() && c.Needs.Session != Own:
		return 0
	case c.leaves():
		return 1
	case c.takesLong(), c.own() != "":
		return 2
	case c.Needs.Lane == Last:
		return 4
	}
	return 3
}

// hasSession reports whether there is a session for a check, or one can be opened at once.
func (e *Engine) hasSession(c *Check) bool {
	now, idle := true, c.Needs.Session == None
	switch c.Needs.Session {
	case Own:
		now, idle = e.pool.has(c.key(), c.Needs.Lane == Last)
	case Shared:
		_, idle = e.pool.has(c.key(), false)
	}
	return now && (idle || len(e.launches) < cap(e.launches))
}
