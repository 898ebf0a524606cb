package reporters

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcpconform/mcpconform/suites/result"
)

func sarif(w io.Writer, run *result.Run) error { return SARIF(w, run, SARIFOptions{}) }

func sarifOf(t *testing.T, run *result.Run) sarifRun {
	t.Helper()
	var log sarifLog
	if err := json.Unmarshal([]byte(render(t, sarif, run)), &log); err != nil {
		t.Fatal(err)
	}
	return log.Runs[0]
}

func TestSARIFResults(t *testing.T) {
	run := sampleRun()
	run.Against = &result.Comparison{New: []string{"stdio.stdout.only-messages"}}
	got := sarifOf(t, run)
	levels, states, suppressed := map[string]string{}, map[string]string{}, map[string]int{}
	seen := map[string]bool{}
	for _, r := range got.Results {
		levels[r.RuleID], states[r.RuleID], suppressed[r.RuleID] = r.Level, r.BaselineState, len(r.Suppressions)
		if id := got.Tool.Driver.Rules[r.RuleIndex].ID; id != r.RuleID {
			t.Errorf("the rule of %s is %s", r.RuleID, id)
		}
		if print := r.PartialFingerprints["mcpconformRequirement/v1"]; len(print) != 64 || seen[print] {
			t.Errorf("%s has the fingerprint %q", r.RuleID, print)
		} else {
			seen[print] = true
		}
		if uri := r.Locations[0].PhysicalLocation.ArtifactLocation.URI; uri != DefaultLocation {
			t.Errorf("%s is at %s", r.RuleID, uri)
		}
	}
	for id, want := range map[string]string{
		"lifecycle.version.echo-supported": "error", "stdio.stdout.only-messages": "error", "tools.list.unique-names": "warning",
		"tools.error.unknown-tool-protocol-error": "note", "tools.call.unknown-tool": "error", "tools.list.answered": "", "stdio.shutdown.exits": "",
	} {
		if levels[id] != want {
			t.Errorf("%s is %q, want %q", id, levels[id], want)
		}
	}
	if states["stdio.stdout.only-messages"] != "new" || states["lifecycle.version.echo-supported"] != "unchanged" {
		t.Errorf("%v", states)
	}
	if suppressed["tools.call.unknown-tool"] != 1 || suppressed["stdio.stdout.only-messages"] != 0 {
		t.Errorf("%v", suppressed)
	}
	rule := got.Tool.Driver.Rules[0]
	if !strings.HasPrefix(rule.HelpURI, "https://modelcontextprotocol.io/specification/2025-06-18/basic/lifecycle#version-negotiation") || rule.DefaultConfiguration.Level != "error" {
		t.Errorf("%+v", rule)
	}
	run.Verdict, run.Reason = result.Incomplete, "interrupted"
	if i := sarifOf(t, run).Invocations[0]; i.ExecutionSuccessful || i.ToolExecutionNotifications[0].Message.Text != "The run is incomplete: interrupted." {
		t.Errorf("%+v", i)
	}
}

// A fingerprint does not depend on how the target breaks a requirement, nor on its name.
func TestSARIFFingerprints(t *testing.T) {
	calm, wild := sampleRun(), sampleRun()
	plant(wild, hostile)
	a, b := sarifOf(t, calm).Results, sarifOf(t, wild).Results
	if len(a) != len(b) {
		t.Fatalf("%d and %d results", len(a), len(b))
	}
	for i := range a {
		for name, value := range a[i].PartialFingerprints {
			if b[i].PartialFingerprints[name] != value {
				t.Errorf("%s of %s differs", name, a[i].RuleID)
			}
		}
	}
}

// Nothing that a target says becomes a link or a placeholder.
func TestSARIFText(t *testing.T) {
	run := sampleRun()
	plantAll(run, "[x](javascript:alert(1)) {0} "+hostile)
	for _, r := range sarifOf(t, run).Results {
		rest := strings.NewReplacer(`\\`, "", `\[`, "", `\]`, "", "{{", "", "}}", "").Replace(r.Message.Text)
		if strings.ContainsAny(rest, "[]{}") {
			t.Errorf("%q", r.Message.Text)
		}
	}
}

// The official schema is not ours to distribute: its path is given.
func TestSARIFSchema(t *testing.T) {
	path := os.Getenv("MCPCONFORM_SARIF_SCHEMA")
	if path == "" {
		t.Skip("left out: the schema of SARIF 2.1.0 of OASIS; MCPCONFORM_SARIF_SCHEMA is the path of it")
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	doc, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("sarif.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("sarif.json")
	if err != nil {
		t.Fatal(err)
	}
	wild, blank, compared := sampleRun(), sampleRun(), sampleRun()
	plantAll(wild, hostile)
	plantAll(blank, "")
	compared.Against = &result.Comparison{}
	for name, run := range map[string]*result.Run{
		"sample": sampleRun(), "hostile": wild, "blank": blank, "compared": compared, "empty": {Verdict: result.Incomplete},
	} {
		log, err := jsonschema.UnmarshalJSON(strings.NewReader(render(t, sarif, run)))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(log); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
