package schema

import (
	"errors"
	"slices"
	"testing"
)

func TestFor(t *testing.T) {
	for _, name := range Known() {
		r, err := For(name)
		if err != nil || r.Version != name || len(r.Catalogue()) == 0 || len(r.Names()) == 0 {
			t.Errorf("%s: %v", name, err)
		}
		if again, _ := For(name); again != r {
			t.Errorf("%s is read twice", name)
		}
		if earlier, later := r.Earlier("2024-11-05"), r.Later("2031-01-02"); !earlier || !later || r.Later(name) || r.Earlier("1.0") {
			t.Errorf("%s does not know which revisions are earlier and later", name)
		}
	}
	var unknown *UnknownRevisionError
	if _, err := For("2025-01-07"); !errors.As(err, &unknown) || unknown.Version != "2025-01-07" ||
		!slices.Contains(unknown.Known, DefaultVersion) {
		t.Errorf("the error for an unknown revision is %v", err)
	}
}

func TestIsPublished(t *testing.T) {
	if !slices.IsSorted(Published) || !slices.Contains(Published, DefaultVersion) {
		t.Errorf("the revisions are %q", Published)
	}
	for name, want := range map[string]bool{
		DefaultVersion: true, "2024-11-05": true, "2026-07-28": true, "2031-01-02": true,
		"2025-01-07": false, "1.0": false, "": false, "DRAFT-2026-v1": false, "2031-13-02": false, "2031-01-02 ": false,
	} {
		if IsPublished(name) != want {
			t.Errorf("IsPublished(%q) is not %v", name, want)
		}
	}
}
