package reporters

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/result"
)

// The table counts each requirement of the catalogue in one row: that of its page or, of the type definitions, that
// of its id.
func TestFeatures(t *testing.T) {
	catalogue := schema.Default().Catalogue()
	run := &result.Run{Role: "server"}
	verdicts := []result.Verdict{result.Pass, result.Fail, result.Warn, result.Skip, result.Inconclusive, result.Error}
	for i, q := range catalogue {
		r := result.Requirement{ID: q.ID, Page: q.Page, Observable: q.Observable, Verdict: verdicts[i%len(verdicts)]}
		if i%(2*len(verdicts)) == 4 {
			r.NotUsed = "sampling"
		}
		run.Requirements = append(run.Requirements, r)
	}
	v, err := newView(run)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	sums, total := [len(featureColumns)]int{}, 0
	for _, f := range v.byFeature() {
		names = append(names, f.Name)
		for i, n := range f.Counts {
			sums[i] += n
			total += n
		}
	}
	if total != v.total() || slices.Contains(sums[:], 0) || sums[featureNotUsed] != v.counts[outNotUsed] {
		t.Errorf("%d of %d requirements are in the table: %v", total, v.total(), sums)
	}
	want := "messages handshake transport authorization tools resources prompts completion logging pagination sampling elicitation roots progress cancellation ping"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("the features are\n%s, want\n%s", got, want)
	}
	for id, want := range map[string]string{"logging.filter.all-above": "logging", "schema.call-tool-result": "messages", "sse.server.endpoint-event": "transport"} {
		q, _ := schema.Default().Lookup(id)
		if got := featureOf(&result.Requirement{ID: id, Page: q.Page}); got != want {
			t.Errorf("%s is about %s, want %s", id, got, want)
		}
	}
	for _, width := range []int{40, 60, 80} {
		text := render(t, func(w io.Writer, run *result.Run) error { return Console(w, run, ConsoleOptions{Width: width}) }, run)
		at := strings.Index(text, "\nmessages") + 1
		for row := range strings.Lines(text[at:][:strings.Index(text[at:], "\n\n")]) {
			if n := columns(strings.TrimSpace(row)); n > width {
				t.Errorf("width %d: a row of %d columns: %s", width, n, row)
			}
		}
	}
}
