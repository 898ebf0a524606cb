package suites

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlainest(t *testing.T) {
	one := func(name string, cost int, requirements ...string) trial {
		return trial{name: name, unit: name, cost: cost, requirements: requirements}
	}
	in := func(unit string, t trial) trial {
		t.unit = unit
		return t
	}
	needing := func(t trial, needs ...string) trial {
		t.needs = needs
		return t
	}
	for _, tt := range []struct {
		name   string
		all    []trial
		before []string
		want   []string
	}{
		{name: "nothing"},
		{name: "each is the only one", all: []trial{one("a", 9, "x"), one("b", 1, "y")}, want: []string{"a", "b"}},
		{name: "the dearer one goes", all: []trial{one("a", 2, "x"), one("b", 1, "x")}, want: []string{"b"}},
		{name: "the last of equals goes", all: []trial{one("a", 1, "x"), one("b", 1, "x")}, want: []string{"a"}},
		{name: "two take the place of one", all: []trial{one("a", 8, "x", "y"), one("b", 1, "x"), one("c", 1, "y")}, want: []string{"b", "c"}},
		{name: "one takes the place of two", all: []trial{one("a", 2, "x", "y"), one("b", 2, "x"), one("c", 2, "y")}, want: []string{"a"}},
		{name: "what was seen before", all: []trial{one("a", 1, "x"), one("b", 1, "x", "y")}, before: []string{"x"}, want: []string{"b"}},
		{name: "all was seen before", all: []trial{one("a", 1, "x")}, before: []string{"x"}},
		{name: "waiting is for longer runs", all: []trial{{name: "a", unit: "a", requirements: []string{"x", "y"}, patient: true}, one("b", 9, "x")}, want: []string{"b"}},
		{
			name: "a cheaper one may lack what it needs",
			all:  []trial{one("a", 5, "x"), needing(one("b", 1, "x"), "a tool")}, want: []string{"a"},
		},
		{
			name: "either may lack what it needs",
			all:  []trial{needing(one("a", 5, "x"), "a tool"), needing(one("b", 1, "x"), "another tool")}, want: []string{"a", "b"},
		},
		{
			name: "both need the same",
			all:  []trial{needing(one("a", 5, "x"), "a tool", "a prompt"), needing(one("b", 1, "x"), "a tool")}, want: []string{"b"},
		},
		{
			name: "a whole unit goes, rather than a part of another",
			all:  []trial{in("u", one("a", 1, "x")), in("u", one("b", 1, "y")), in("v", one("c", 4, "x")), in("v", one("d", 4, "z"))},
			want: []string{"a", "b", "d"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := make(map[string]bool)
			for _, id := range tt.before {
				before[id] = true
			}
			got := slices.Sorted(maps.Keys(plainest(tt.all, before)))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
