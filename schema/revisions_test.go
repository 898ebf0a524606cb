package schema

import (
	"slices"
	"testing"
)

func TestIsPublished(t *testing.T) {
	if !slices.IsSorted(Published) || !slices.Contains(Published, Version) {
		t.Errorf("the revisions are %q", Published)
	}
	for name, want := range map[string]bool{
		Version: true, "2024-11-05": true, "2026-07-28": true, "2031-01-02": true,
		"2025-01-07": false, "1.0": false, "": false, "DRAFT-2026-v1": false, "2031-13-02": false, "2031-01-02 ": false,
	} {
		if IsPublished(name) != want {
			t.Errorf("IsPublished(%q) is not %v", name, want)
		}
	}
}
