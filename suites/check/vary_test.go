package check

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/suites/internal/family"
)

// Another execution tries the plain member, those that showed something and those that
// were not tried; it tries all if none showed anything.
func TestDoubtfulMembers(t *testing.T) {
	all := []family.Member{{Is: "plain"}, {Is: "empty"}, {Is: "zero"}, {Is: "long"}}
	names := func(members []family.Member) (names []string) {
		for _, m := range members {
			names = append(names, m.Is)
		}
		return names
	}
	v := &variation{done: all[:3]}
	if diff := cmp.Diff(names(all), names(v.doubtful(all))); diff != "" {
		t.Error(diff)
	}
	v.findings = []*varied{{id: "base.response.present", shown: all[2:3]}}
	if diff := cmp.Diff([]string{"plain", "zero", "long"}, names(v.doubtful(all))); diff != "" {
		t.Error(diff)
	}
	v.findings[0].shown = all[:3]
	v.done = append(v.done, many(5)...)
	v.findings[0].shown = append(v.findings[0].shown, many(5)...)
	if diff := cmp.Diff([]string{"plain", "empty", "zero", "1"}, names(v.doubtful(v.done))); diff != "" {
		t.Error(diff)
	}
}

func many(n int) (members []family.Member) {
	for i := range n {
		members = append(members, family.Member{Is: strconv.Itoa(i + 1)})
	}
	return members
}
