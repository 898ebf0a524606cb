package check

import (
	"slices"
	"testing"
)

// TestLanesKeepTheirOrder: a check of a lane that has no session yet holds up those behind it in the lane, and no
// others. The check that leaves the session of a lane comes first.
func TestLanesKeepTheirOrder(t *testing.T) {
	s := newSchedule()
	for _, c := range []*Check{
		{Name: "last", Needs: Needs{Session: None, Lane: Last}},
		{Name: "second", Needs: Needs{Session: Own, Lane: "lane"}},
		{Name: "third", Needs: Needs{Session: None, Lane: "lane"}},
		{Name: "first", Needs: Needs{Session: Raw, Lane: "lane"}},
		{Name: "other", Needs: Needs{Session: None}},
	} {
		s.add(&Future{Check: c})
	}
	s.change(func() { s.closed = true })
	full := true
	hasSession := func(c *Check) bool { return c.Needs.Session == None || !full }
	var names []string
	for range 5 {
		c := s.next(hasSession).Check
		s.change(func() { delete(s.busy, c.own()) })
		names = append(names, c.Name)
		full = false
	}
	if want := []string{"other", "first", "second", "third", "last"}; !slices.Equal(names, want) {
		t.Errorf("the checks begin in the order %q, want %q", names, want)
	}
	if f := s.next(hasSession); f != nil {
		t.Errorf("%s begins twice", f.Check.Name)
	}
}
