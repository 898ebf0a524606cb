package brief_test

import (
	"slices"
	"testing"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
)

func TestPart(t *testing.T) {
	t.Setenv("MCPCONFORM_PART", "")
	items := []int{0, 1, 2, 3, 4, 5, 6}
	if got := brief.Part(t, items, 2); !slices.Equal(got, []int{0, 2, 4, 6}) {
		t.Errorf("one of two is %v", got)
	}
	for i, want := range [][]int{{0, 3, 6}, {1, 4}, {2, 5}} {
		if got := brief.Part(t, items, 3); !slices.Equal(got, want) {
			t.Errorf("part %d is %v, want %v", i, got, want)
		}
	}
}

func TestPartOfACommit(t *testing.T) {
	t.Setenv("MCPCONFORM_PART", "16777214")
	if got := brief.Part(t, []int{0, 1, 2, 3, 4, 5, 6}, 4); !slices.Equal(got, []int{2, 6}) {
		t.Errorf("the part is %v", got)
	}
}
