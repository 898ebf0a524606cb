package reporters

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/suites/result"
)

// offered is an offer with every member, and with hostile texts.
func offered() *result.Offer {
	hostile := strings.ToValidUTF8(hostile, "\uFFFD")
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": map[string]any{hostile: map[string]any{"default": 1e30}}})
	if err != nil {
		panic(err)
	}
	return &result.Offer{
		Tools: []result.OfferedTool{{
			Name: hostile, Title: hostile, Description: hostile, InputSchema: schema, OutputSchema: schema, Annotations: json.RawMessage(`{"readOnlyHint":true, "n":1.50}`),
		}},
		Prompts:      []result.OfferedPrompt{{Name: hostile, Arguments: []result.OfferedArgument{{Name: hostile, Required: true}}}},
		Resources:    []result.OfferedResource{{URI: hostile, Name: hostile, MIMEType: hostile}},
		Templates:    []result.OfferedTemplate{{URITemplate: hostile, Name: hostile}},
		Instructions: hostile, Incomplete: []string{result.OfferResources}, Omitted: 3,
	}
}

// What was written is written again byte by byte once it was read, as bundles are verified.
func TestOfferIsWrittenAgain(t *testing.T) {
	run := &result.Run{Role: "server", Verdict: result.Incomplete, Offer: offered()}
	text := render(t, JSON, run)
	again, err := ReadJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text, render(t, JSON, again)); diff != "" {
		t.Errorf("-first +again:\n%s", diff)
	}
	if changes := result.Changes(again, run); len(changes) > 0 {
		t.Errorf("it changed: %+v", changes)
	}
}

// The changes of an offer are shown escaped and bounded, what breaks first.
func TestOfferChangesAreShown(t *testing.T) {
	run := sampleRun()
	run.Against = &result.Comparison{FailOnBreaking: true, OfferIncomplete: []string{"tools"}}
	for i := range 60 {
		run.Against.Offer = append(run.Against.Offer, result.OfferChange{Kind: "tool", Name: "forecast", What: "was removed", Breaking: i < 59})
	}
	run.Against.Offer[0].Name, run.Against.Offer[0].What = hostile, hostile
	console := func(o ConsoleOptions) string {
		return render(t, func(w io.Writer, run *result.Run) error { return Console(w, run, o) }, run)
	}
	for name, tt := range map[string]struct {
		text string
		want []string
		most int
	}{
		"console": {
			console(ConsoleOptions{}),
			[]string{"59 breaking changes of the offer, 1 other change of the offer.", "Breaking tool ", "and 47 more", "Offer tool forecast: was removed", "could be compared: tools", "--fail-on-breaking"}, 12,
		},
		"verbose":   {console(ConsoleOptions{Verbose: true}), []string{"Breaking tool "}, 59},
		"checklist": {render(t, Checklist, run), []string{"- Breaking changes of what the server offers: - tool ", "and 9 more", "Other changes"}, 50},
		"HTML":      {render(t, HTML, run), []string{"<b>Breaking changes of what the server offers</b>", "and 9 more"}, 50},
		"GitHub":    {annotated(t, Member{Run: run}), []string{"::error title=Breaking change of the offer::tool forecast"}, 12},
	} {
		text := strings.Join(strings.Fields(strings.ReplaceAll(tt.text, `\`, "")), " ")
		for _, want := range tt.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q:\n%s", name, want, text)
			}
		}
		for _, raw := range []string{"\x1b[2J", "<script>alert", "\u202e"} {
			if strings.Contains(tt.text, raw) && (raw[0] != '<' || name == "HTML") {
				t.Errorf("%s holds %q", name, raw)
			}
		}
		if n := strings.Count(text, "tool forecast: was removed"); n > tt.most {
			t.Errorf("%s says it %d times, want at most %d", name, n, tt.most)
		}
	}
	run.Against = &result.Comparison{OfferUnknown: "the earlier results do not hold what the server offered"}
	if text := render(t, Checklist, run); !strings.Contains(text, "the earlier results do not hold what the server offered") {
		t.Error("the checklist does not say that the offers cannot be compared")
	}
}
