package check

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/suites/internal/family"
)

// Another execution tries the plain member, those that showed something and those that
// were not tried; it tries all if none of any family showed anything.
func TestDoubtfulMembers(t *testing.T) {
	all := []family.Member{{Is: "plain"}, {Is: "empty"}, {Is: "zero"}, {Is: "long"}}
	names := func(members []family.Member) (names []string) {
		for _, m := range members {
			names = append(names, m.Is)
		}
		return names
	}
	v := &variation{Findings: family.Findings{Tried: all[:3]}}
	if diff := cmp.Diff(names(all), names(v.doubtful(all, false))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"plain", "long"}, names(v.doubtful(all, true))); diff != "" {
		t.Error(diff)
	}
	v.All = []*family.Finding{{Requirement: "base.response.present", Shown: all[2:3]}}
	if diff := cmp.Diff([]string{"plain", "zero", "long"}, names(v.doubtful(all, true))); diff != "" {
		t.Error(diff)
	}
	v.All[0].Shown = all[:3]
	v.Tried = append(v.Tried, many(5)...)
	v.All[0].Shown = append(v.All[0].Shown, many(5)...)
	if diff := cmp.Diff([]string{"plain", "empty", "zero", "1"}, names(v.doubtful(v.Tried, true))); diff != "" {
		t.Error(diff)
	}
}

func many(n int) (members []family.Member) {
	for i := range n {
		members = append(members, family.Member{Is: strconv.Itoa(i + 1)})
	}
	return members
}
