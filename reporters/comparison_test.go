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

// A file that was read is written again byte by byte, as the verification of bundles needs.
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

// Each report says what decides the exit code of a run that is compared, whatever the verdict
// on the target is; and JUnit has a failure or an error exactly if that code is not 0.
func TestDecisionIsShown(t *testing.T) {
	broken := func(id string) result.Requirement {
		return result.Requirement{ID: id, Level: "MUST", Party: "server", Page: "server/tools", Observable: true, Verdict: result.Fail, Exercised: 1}
	}
	untried := broken("b")
	untried.Verdict = result.Inconclusive
	stale := result.ExpectedFailure{ID: "a", Status: "passed"}
	const old = "exit code 0: only what is new since base.json counts, and nothing is"
	for name, tt := range map[string]struct {
		run     result.Run
		against result.Comparison
		want    string
		bad     int // test cases that failed, or had an error
	}{
		"old":      {result.Run{Verdict: result.NotConformant}, result.Comparison{}, old, 0},
		"new":      {result.Run{Verdict: result.NotConformant}, result.Comparison{New: []string{"a"}}, "exit code 1: 1 failure is new since base.json", 2},
		"breaking": {result.Run{Verdict: result.NotConformant}, result.Comparison{FailOnBreaking: true, Offer: []result.OfferChange{{Breaking: true}}}, "exit code 1: 1 change of the offer breaks clients", 1},
		"stale": {result.Run{Verdict: result.NotConformant, ExpectedFailures: []result.ExpectedFailure{stale}}, result.Comparison{Stale: []string{"a"}},
			"exit code 1: 1 entry of the expected-failures file became stale", 2},
		"stale before": {result.Run{Verdict: result.NotConformant, ExpectedFailures: []result.ExpectedFailure{stale}}, result.Comparison{}, old, 0},
		"incomplete": {result.Run{Verdict: result.Incomplete, Reason: "it was cut short"}, result.Comparison{},
			"exit code 3: nothing is new since base.json, but the run is incomplete", 2},
		"unjudged": {result.Run{Verdict: result.NotConformant}, result.Comparison{Unjudged: []string{"b"}},
			"exit code 3: nothing is new since base.json, but 1 requirement was not tried to the end", 1},
		"unknown offer": {result.Run{Verdict: result.NotConformant}, result.Comparison{FailOnBreaking: true, OfferUnknown: "none"},
			"exit code 3: nothing is new since base.json, but what the server offers cannot be compared", 1},
	} {
		t.Run(name, func(t *testing.T) {
			run := &tt.run
			run.Revision, run.Role, run.Transport, run.Requirements = "2025-06-18", "server", "stdio", []result.Requirement{broken("a"), untried}
			run.Against = &tt.against
			run.Against.File = "base.json"
			quiet, err := VerdictLine(run)
			if err != nil {
				t.Fatal(err)
			}
			junit := render(t, func(w io.Writer, run *result.Run) error { return JUnit(w, run, JUnitOptions{}) }, run)
			for report, text := range map[string]string{
				"the line":    quiet,
				"the console": render(t, func(w io.Writer, run *result.Run) error { return Console(w, run, ConsoleOptions{}) }, run),
				"GitHub":      annotated(t, Member{Run: run}),
				"the summary": render(t, func(w io.Writer, run *result.Run) error { return StepSummary(w, []Member{{Run: run}}, MaxStepSummary) }, run),
				"JUnit":       junit,
				"the page":    render(t, HTML, run),
				"the list":    render(t, Checklist, run),
			} {
				text = strings.Join(strings.Fields(strings.NewReplacer(`\`, "", "**", "", "<b>", "", "</b>", "").Replace(text)), " ")
				if !strings.Contains(strings.ToLower(text), strings.ToLower(tt.want)) {
					t.Errorf("%s does not say %q:\n%s", report, tt.want, text)
				}
				if word := verdictName(run.Verdict); !strings.Contains(strings.ToLower(text), word) && report != "JUnit" {
					t.Errorf("%s does not say that the target is %s:\n%s", report, word, text)
				}
			}
			if n := strings.Count(junit, "<failure ") + strings.Count(junit, "<error "); n != tt.bad {
				t.Errorf("JUnit has %d failures and errors, want %d:\n%s", n, tt.bad, junit)
			}
		})
	}
}
