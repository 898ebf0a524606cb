package reporters

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcpconform/mcpconform/suites/result"
)

// testResultSchema states what the specifications of the statement (v1), of resource
// descriptors and of the predicate test-result (v0.1) demand.
const testResultSchema = `{
	"type": "object",
	"required": ["_type", "subject", "predicateType", "predicate"],
	"properties": {
		"_type": {"const": "https://in-toto.io/Statement/v1"},
		"subject": {"type": "array", "minItems": 1, "items": {"allOf": [{"$ref": "#/$defs/resource"}], "required": ["digest"]}},
		"predicateType": {"const": "https://in-toto.io/attestation/test-result/v0.1"},
		"predicate": {
			"type": "object",
			"additionalProperties": false,
			"required": ["result", "configuration"],
			"properties": {
				"result": {"enum": ["PASSED", "WARNED", "FAILED"]},
				"configuration": {"type": "array", "items": {"$ref": "#/$defs/resource"}},
				"url": {"type": "string", "format": "uri"},
				"passedTests": {"$ref": "#/$defs/names"}, "warnedTests": {"$ref": "#/$defs/names"}, "failedTests": {"$ref": "#/$defs/names"}
			}
		}
	},
	"$defs": {
		"names": {"type": "array", "items": {"type": "string"}},
		"resource": {
			"type": "object",
			"additionalProperties": false,
			"anyOf": [{"required": ["name"]}, {"required": ["uri"]}, {"required": ["digest"]}, {"required": ["content"]}],
			"properties": {
				"name": {"type": "string"}, "uri": {"type": "string"}, "content": {"type": "string"},
				"downloadLocation": {"type": "string"}, "mediaType": {"type": "string"},
				"digest": {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string", "pattern": "^[0-9a-f]+$"}},
				"annotations": {"type": "object"}
			}
		}
	}
}`

func TestAttestation(t *testing.T) {
	decode := func(text string) any {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("test-result", decode(testResultSchema)); err != nil {
		t.Fatal(err)
	}
	schema := c.MustCompile("test-result")
	requirement := func(id string, v result.Verdict, disputed bool) result.Requirement {
		q := result.Requirement{ID: id, Verdict: v, Observable: true}
		if disputed {
			q.Disputed = &result.Dispute{ID: "d"}
		}
		return q
	}
	run := &result.Run{
		Tool: result.Tool{Name: "mcpconform", Version: "1"}, Target: result.Target{Name: "weather"},
		Requirements: []result.Requirement{
			requirement("z", result.Pass, false), requirement("a", result.Pass, false), requirement("b", result.Skip, false),
			requirement("c", result.Inconclusive, false), requirement("d", result.Warn, false), requirement("e", result.Fail, true),
			requirement("f", result.Fail, false), requirement("g", result.Error, false),
		},
	}
	quiet := &result.Run{Tool: run.Tool, Requirements: run.Requirements[:3]}
	subject := SHA256("results.json", strings.Repeat("0f", 32))
	for _, tt := range []struct {
		name                   string
		run                    *result.Run
		verdict                result.Overall
		want                   TestResult
		passed, warned, failed []string
	}{
		{"conformant", quiet, result.Conformant, TestPassed, []string{"a", "z"}, []string{}, []string{}},
		{"incomplete", quiet, result.Incomplete, TestFailed, []string{"a", "z"}, []string{}, []string{}},
		{"with warnings", run, result.Conformant, TestWarned, []string{"a", "z"}, []string{"d", "e"}, []string{"f", "g"}},
		{"not conformant", run, result.NotConformant, TestFailed, []string{"a", "z"}, []string{"d", "e"}, []string{"f", "g"}},
		{"hostile", sampleRun(), result.NotConformant, TestFailed, nil, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := Attestation(&b, tt.run, Attested{Subjects: []Descriptor{subject}, Verdict: tt.verdict, Configuration: []Descriptor{SHA256("class", "00")}}); err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(decode(b.String())); err != nil {
				t.Error(err)
			}
			s, signatures, err := ReadAttestation(&b)
			if err != nil || signatures != 0 || s.Predicate.Result != tt.want || !s.About(subject.Digest["sha256"]) || s.About("") {
				t.Fatalf("%v, %d signatures, %+v; want %s", err, signatures, s, tt.want)
			}
			if tt.passed == nil {
				return
			}
			if diff := cmp.Diff([][]string{tt.passed, tt.warned, tt.failed}, [][]string{s.Predicate.PassedTests, s.Predicate.WarnedTests, s.Predicate.FailedTests}); diff != "" {
				t.Error(diff)
			}
			if n := len(s.Predicate.Configuration); n != 2 || s.Predicate.Configuration[0].Name != "mcpconform" {
				t.Errorf("the configuration is %+v", s.Predicate.Configuration)
			}
		})
	}
}

func TestReadAttestation(t *testing.T) {
	statement := fmt.Sprintf(`{"_type": %q, "subject": [{"digest": {"sha256": "0f"}}], "predicateType": %q, "predicate": {"result": "PASSED", "configuration": []}}`,
		statementType, TestResultType)
	envelope := func(kind, text string) string {
		return fmt.Sprintf(`{"payloadType": %q, "payload": %q, "signatures": [{"sig": "x"}, {"sig": "y"}]}`, kind, base64.StdEncoding.EncodeToString([]byte(text)))
	}
	for _, tt := range []struct {
		name, text string
		signatures int
		says       string // in an error
	}{
		{"statement", statement, 0, ""},
		{"envelope", envelope(payloadType, statement), 2, ""},
		{"Sigstore bundle", `{"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "dsseEnvelope": ` + envelope(payloadType, statement) + `}`, 2, ""},
		{"other payload", envelope("text/plain", statement), 0, `holds "text/plain"`},
		{"empty payload", envelope(payloadType, ""), 0, "the statement: "},
		{"payload that is not base64", `{"payloadType": "` + payloadType + `", "payload": "*"}`, 0, "illegal base64"},
		{"other predicate", strings.Replace(statement, "test-result", "vuln", 1), 0, "the predicate is of type"},
		{"other statement", strings.Replace(statement, "Statement/v1", "Statement/v0.1", 1), 0, "the statement is of type"},
		{"something else", `{"results": []}`, 0, "neither an in-toto statement nor"},
		{"not JSON", "nonsense", 0, "not valid JSON"},
		{"too large", strings.Repeat(" ", MaxAttestation+1), 0, "larger than 16 MiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, signatures, err := ReadAttestation(strings.NewReader(tt.text))
			switch {
			case tt.says == "" && (err != nil || signatures != tt.signatures || !s.About("0f")):
				t.Errorf("%v, %d signatures: %+v", err, signatures, s)
			case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)):
				t.Errorf("%v, want an error with %q", err, tt.says)
			}
		})
	}
	// An unknown member is no reason to refuse what another tool wrote.
	var whole map[string]any
	if err := json.Unmarshal([]byte(statement), &whole); err != nil {
		t.Fatal(err)
	}
	whole["predicate"].(map[string]any)["url"] = "https://ci.example/1"
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadAttestation(bytes.NewReader(text)); err != nil {
		t.Error(err)
	}
}
