package calmmatrix

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each oddity is tried once, over the first transport if it has it.
func TestOnce(t *testing.T) {
	attempts := []attempt{
		{over: "stdio", oddities: []int{0, 1}}, {over: "stdio", oddities: []int{2}},
		{over: "http", oddities: []int{0, 1, 3}}, {over: "http", oddities: []int{4}}, {over: "sse", oddities: []int{1, 4}},
	}
	for first, want := range map[string][]attempt{
		"stdio": {attempts[0], attempts[1], attempts[2], attempts[3]},
		"http":  {attempts[2], attempts[3], attempts[1]},
		"sse":   {attempts[4], attempts[0], attempts[1], attempts[2]},
	} {
		if diff := cmp.Diff(want, once(attempts, first), cmp.AllowUnexported(attempt{})); diff != "" {
			t.Errorf("%s first: %s", first, diff)
		}
	}
}
