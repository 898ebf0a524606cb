package brief_test

import (
	"slices"
	"testing"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
)

func TestPart(t *testing.T) {
	t.Setenv("MCPCONFORM_WHOLE", "")
	if testing.Short() || brief.Race || brief.Whole() {
		t.Skip("the parts are others")
	}
	items := []int{0, 1, 2, 3, 4, 5, 6}
	for i, want := range [][]int{{0, 3, 6}, {1, 4}, {2, 5}, {0, 3, 6}} {
		if got := brief.Part(t, items, 3); !slices.Equal(got, want) {
			t.Errorf("part %d is %v, want %v", i, got, want)
		}
	}
	if got := brief.Sample(t, items, 100); !slices.Equal(got, items[:1]) {
		t.Errorf("of few items there is %v", got)
	}
	t.Setenv("MCPCONFORM_WHOLE", "1")
	if got := brief.Part(t, items, 3); !slices.Equal(got, items) {
		t.Errorf("each is %v", got)
	}
	if got := brief.Sample(t, items, 5); !slices.Equal(got, []int{0, 5}) {
		t.Errorf("of costly items there is %v", got)
	}
}
