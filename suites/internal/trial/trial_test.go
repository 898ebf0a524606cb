package trial

import (
	"context"
	"slices"
	"testing"
)

// tried is an attempt of the tests: what was seen in it, and its number.
type tried struct {
	seen   string
	number int
}

// row is a row of the tests.
type row = Excuse[tried]

// sees is a row that fits what has this name.
func sees(name string, x row) row {
	x.Name = name
	x.Fits = func(a tried) string { return When(a.seen == name, "it saw "+name) }
	return x
}

func TestSettle(t *testing.T) {
	never := func(tried) bool { return false }
	for name, c := range map[string]struct {
		table  Table[tried]
		seen   []string // by each attempt
		number int      // of the attempt that counts
		reason string
	}{
		"nothing fits":               {Table[tried]{sees("a", row{Again: 1})}, []string{"b"}, 0, ""},
		"excused at once":            {Table[tried]{sees("a", row{})}, []string{"a"}, 0, "it saw a"},
		"excused after all attempts": {Table[tried]{sees("a", row{Again: 2})}, []string{"a", "a", "a"}, 2, "it saw a"},
		"seen once":                  {Table[tried]{sees("a", row{Again: 2})}, []string{"a", "b"}, 1, ""},
		"stands":                     {Table[tried]{sees("a", row{Again: 1, Stands: true})}, []string{"a", "a"}, 1, ""},
		"never ready":                {Table[tried]{sees("a", row{Again: 1, Ready: never})}, []string{"a"}, 0, "it saw a"},
		"never ready, and it stands": {Table[tried]{sees("a", row{Again: 1, Ready: never, Stands: true})}, []string{"a"}, 0, ""},
		"cannot be played again":     {Table[tried]{sees("a", row{Again: 1})}, []string{"a"}, 0, ""},
		"one row, then another":      {Table[tried]{sees("a", row{Again: 1}), sees("b", row{})}, []string{"a", "b"}, 1, "it saw b"},
		"the row behind one that ran": {
			Table[tried]{sees("a", row{Again: 1, Stands: true}), {Fits: func(tried) string { return "always" }}},
			[]string{"a", "a"}, 1, "always"},
	} {
		t.Run(name, func(t *testing.T) {
			play := func(before tried) (tried, bool) {
				next := before.number + 1
				if next == len(c.seen) {
					return before, false
				}
				return tried{c.seen[next], next}, true
			}
			if name != "cannot be played again" {
				c.seen = append(c.seen, "too often")
			}
			last, reason := c.table.Settle(t.Context(), tried{c.seen[0], 0}, play)
			if last.number != c.number || reason != c.reason {
				t.Errorf("attempt %d counts: %q; want attempt %d: %q", last.number, reason, c.number, c.reason)
			}
		})
	}
}

// TestSettleEnds: nothing is played or excused once the run has ended.
func TestSettleEnds(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	table := Table[tried]{sees("a", row{Again: 1})}
	last, reason := table.Settle(ended, tried{"a", 0}, func(tried) (tried, bool) {
		t.Error("it was played again")
		return tried{}, false
	})
	if last.seen != "a" || reason != "" {
		t.Errorf("%v: %q", last, reason)
	}
}

// TestLearn: a row learns from the attempt that it asked for, and from no other.
func TestLearn(t *testing.T) {
	var learned []int
	learn := func(before, after tried) { learned = append(learned, before.number, after.number) }
	table := Table[tried]{sees("a", row{Again: 1, Learn: learn}), sees("b", row{Again: 1, Stands: true})}
	_, _ = table.Settle(t.Context(), tried{"a", 0}, func(before tried) (tried, bool) {
		return tried{"b", before.number + 1}, true
	})
	if want := []int{0, 1}; !slices.Equal(learned, want) {
		t.Errorf("it learned from %v, not from %v", learned, want)
	}
	if names := table.Without("a").Names(); !slices.Equal(names, []string{"b"}) {
		t.Errorf("the rest is %q", names)
	}
}
