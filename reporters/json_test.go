package reporters

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcpconform/mcpconform/suites/result"
)

func TestJSONRoundTrip(t *testing.T) {
	read := func(text string) *result.Run {
		run, err := ReadJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	for _, run := range []*result.Run{sampleRun(), fixedRun(), {Role: "client", Verdict: result.Incomplete}} {
		// Text that is not UTF-8 is replaced the first time.
		once := read(render(t, JSON, run))
		if diff := cmp.Diff(once, read(render(t, JSON, once))); diff != "" {
			t.Errorf("(-read +written and read again):\n%s", diff)
		}
	}
	run := sampleRun()
	plant(run, "Grüße \x1b\u009b \u202e\u2028 \U000e0041 \U0001f389 \ufffe \x7f <&> \"\\")
	run.Target.Capabilities = json.RawMessage("{}")
	text := render(t, JSON, run)
	back := read(text)
	back.Target.Capabilities = run.Target.Capabilities
	if diff := cmp.Diff(run, back); diff != "" {
		t.Errorf("(-run +read):\n%s", diff)
	}
	for _, r := range text {
		if r != '\n' && !printable(r) {
			t.Errorf("%q is not escaped", r)
		}
	}
}

// The target's capabilities are its own bytes, whatever they are.
func TestJSONCapabilities(t *testing.T) {
	for _, caps := range []string{`{"tools":{}}`, `{"a":"` + "\xff" + `"}`, `{"a":`, "\x00", `"\ud800"`, hostile} {
		run := sampleRun()
		run.Target.Capabilities = json.RawMessage(caps)
		if _, err := ReadJSON(strings.NewReader(render(t, JSON, run))); err != nil {
			t.Errorf("%q: %v", caps, err)
		}
		if string(run.Target.Capabilities) != caps {
			t.Error("the run was changed")
		}
	}
}

func TestReadJSONErrors(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"empty", "", "line 1: not valid JSON"},
		{"cut", "{\n\"format\":1,\n\"tool\":", "line 3: not valid JSON"},
		{"array", "[]", "cannot unmarshal array"},
		{"trailing", `{"format":1,"role":"server","verdict":"conformant"} x`, "line 1: not valid JSON"},
		{"no format", "{}", "no results of mcpconform"},
		{"later format", `{"format":2,"requirements":{}}`, "have format 2, this version reads format 1"},
		{"type", `{"format":1,"requirements":{}}`, "requirements"},
		{"run's verdict", `{"format":1,"role":"server","verdict":"super\u001b"}`, `unknown verdict "super\x1b"`},
		{"role", `{"format":1,"verdict":"conformant","role":"host"}`, `unknown role "host"`},
		{"verdict", `{"format":1,"role":"server","verdict":"conformant","requirements":[{"id":"a","verdict":"ok"}]}`, `"a" has the unknown verdict "ok"`},
		{"id", `{"format":1,"role":"server","verdict":"conformant","requirements":[{"verdict":"pass"}]}`, "requirement 0 has no id"},
		{"twice", `{"format":1,"role":"server","verdict":"conformant","requirements":[{"id":"a","verdict":"pass"},{"id":"a","verdict":"fail"}]}`, "occurs twice"},
		{"negative", `{"format":1,"role":"server","verdict":"conformant","requirements":[{"id":"a","verdict":"pass","exercised":-1}]}`, "negative count"},
		{"deep", strings.Repeat("[", 20000), "exceeded max depth"},
	} {
		run, err := ReadJSON(strings.NewReader(test.in))
		if err == nil || run != nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: run %v, error %v, want %s", test.name, run, err, test.want)
		}
	}
	var format *FormatError
	if _, err := ReadJSON(strings.NewReader(`{"format":7}`)); !errors.As(err, &format) || format.Got != 7 {
		t.Errorf("error %v is no FormatError of 7", err)
	}
	const small = `{"format":1,"role":"server","verdict":"conformant"}`
	if _, err := readJSON(strings.NewReader(small), int64(len(small))); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	if _, err := readJSON(strings.NewReader(small), int64(len(small))-1); !errors.Is(err, ErrResultsTooLarge) {
		t.Errorf("above the limit: %v", err)
	}
	if _, err := ReadJSON(strings.NewReader(`{"later":[1],` + small[1:])); err != nil {
		t.Errorf("unknown member: %v", err)
	}
}

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(ResultsSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("results.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("results.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestResultsSchema(t *testing.T) {
	schema := compileSchema(t)
	check := func(run *result.Run) error {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(render(t, JSON, run)))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(doc)
	}
	odd := sampleRun()
	plant(odd, hostile)
	offering := sampleRun()
	offering.Offer = offered()
	for name, run := range map[string]*result.Run{"sample": sampleRun(), "offer": offering, "fixed": fixedRun(), "hostile": odd,
		"incomplete": {Role: "client", Verdict: result.Incomplete}} {
		if err := check(run); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, spoil := range map[string]func(*result.Run){
		"unexercised pass":   func(run *result.Run) { run.Requirements[1].Exercised = 0 },
		"unobservable pass":  func(run *result.Run) { run.Requirements[1].Observable = false },
		"verdict":            func(run *result.Run) { run.Requirements[1].Verdict = "ok" },
		"verdict of the run": func(run *result.Run) { run.Verdict = "ok" },
		"level":              func(run *result.Run) { run.Requirements[1].Level = "must" },
		"status":             func(run *result.Run) { run.ExpectedFailures[0].Status = "ok" },
		"list of the offer":  func(run *result.Run) { run.Offer = &result.Offer{Incomplete: []string{"roots"}} },
		"requirement's id":   func(run *result.Run) { run.Requirements[1].ID = "" },
	} {
		run := sampleRun()
		spoil(run)
		if check(run) == nil {
			t.Errorf("%s: the schema accepts it", name)
		}
	}
}

// Every member of the form stands in the schema and in its documentation.
func TestResultsAreDocumented(t *testing.T) {
	docs, err := os.ReadFile(filepath.Join("..", "docs", "results.md"))
	if err != nil {
		t.Fatal(err)
	}
	var schema any
	if err := json.Unmarshal(ResultsSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	find := func(path ...string) map[string]any {
		at := schema
		for _, name := range path {
			at, _ = at.(map[string]any)[name]
		}
		m, _ := at.(map[string]any)
		return m
	}
	for _, test := range []struct {
		of   reflect.Type
		path []string
	}{
		{reflect.TypeFor[result.Run](), nil},
		{reflect.TypeFor[result.Tool](), []string{"properties", "tool"}},
		{reflect.TypeFor[result.Target](), []string{"properties", "target"}},
		{reflect.TypeFor[result.Requirement](), []string{"$defs", "requirement"}},
		{reflect.TypeFor[result.Finding](), []string{"$defs", "finding"}},
		{reflect.TypeFor[result.Dispute](), []string{"$defs", "dispute"}},
		{reflect.TypeFor[result.Thread](), []string{"$defs", "dispute", "properties", "threads", "items"}},
		{reflect.TypeFor[result.Event](), []string{"$defs", "event"}},
		{reflect.TypeFor[result.ExpectedFailure](), []string{"$defs", "expectedFailure"}},
		{reflect.TypeFor[result.Offer](), []string{"$defs", "offer"}},
		{reflect.TypeFor[result.OfferedTool](), []string{"$defs", "offer", "properties", "tools", "items"}},
		{reflect.TypeFor[result.OfferedPrompt](), []string{"$defs", "offer", "properties", "prompts", "items"}},
		{reflect.TypeFor[result.OfferedArgument](), []string{"$defs", "offer", "properties", "prompts", "items", "properties", "arguments", "items"}},
		{reflect.TypeFor[result.OfferedResource](), []string{"$defs", "offer", "properties", "resources", "items"}},
		{reflect.TypeFor[result.OfferedTemplate](), []string{"$defs", "offer", "properties", "resourceTemplates", "items"}},
	} {
		members := maps.Clone(find(append(test.path, "properties")...))
		required, _ := find(test.path...)["required"].([]any)
		want := map[string]bool{}
		for i := range test.of.NumField() {
			tag := test.of.Field(i).Tag.Get("json")
			name, optional, _ := strings.Cut(tag, ",")
			if name == "-" {
				continue
			}
			if optional == "" {
				want[name] = true
			}
			if members[name] == nil {
				t.Errorf("the schema of %s does not have %q", test.of, name)
			}
			if !strings.Contains(string(docs), "`"+name+"`") {
				t.Errorf("docs/results.md does not describe %q of %s", name, test.of)
			}
			delete(members, name)
		}
		for name := range members {
			t.Errorf("the schema of %s has %q, which is not written", test.of, name)
		}
		got := map[string]bool{}
		for _, name := range required {
			got[name.(string)] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("required members of %s (-written always +schema):\n%s", test.of, diff)
		}
	}
}
