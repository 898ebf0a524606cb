package server

import (
	"testing"

	"github.com/mcpconform/mcpconform/suites/check"
)

func TestSameItems(t *testing.T) {
	type item = map[string]any
	a, b, c := item{"name": "a"}, item{"name": "b"}, item{"name": "b", "title": "B"}
	for _, tt := range []struct {
		name         string
		before, then []map[string]any
		want         bool
	}{
		{"nothing", nil, []map[string]any{}, true},
		{"another order", []map[string]any{a, b}, []map[string]any{b, a}, true},
		{"one less", []map[string]any{a, b}, []map[string]any{b}, false},
		{"twice the same", []map[string]any{a, b}, []map[string]any{a, a}, false},
		{"a title", []map[string]any{a, b}, []map[string]any{a, c}, false},
	} {
		if got := sameItems(&check.List{Items: tt.before}, &check.List{Items: tt.then}); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}
