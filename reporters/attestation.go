package reporters

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/mcpconform/mcpconform/suites/result"
)

// The types of in-toto statements and their envelopes, as far as they are written or read
// here (https://github.com/in-toto/attestation, spec/v1 and spec/predicates/test-result.md;
// https://github.com/secure-systems-lab/dsse).
const (
	statementType = "https://in-toto.io/Statement/v1"
	// TestResultType is the predicate type of the statement that Attestation writes.
	TestResultType = "https://in-toto.io/attestation/test-result/v0.1"
	payloadType    = "application/vnd.in-toto+json"
)

// TestResult is what a statement says of all tests together.
type TestResult string

// The values that the predicate type has.
const (
	TestPassed TestResult = "PASSED"
	TestWarned TestResult = "WARNED"
	TestFailed TestResult = "FAILED"
)

// Descriptor is a resource of in-toto: a subject, or a part of the configuration.
type Descriptor struct {
	Name        string            `json:"name,omitempty"`
	Digest      map[string]string `json:"digest,omitempty"` // by algorithm, in lower-case hexadecimal
	Annotations map[string]any    `json:"annotations,omitempty"`
}

// SHA256 returns the descriptor of a file.
func SHA256(name, digest string) Descriptor {
	return Descriptor{Name: name, Digest: map[string]string{"sha256": digest}}
}

// Statement is an in-toto statement about tests.
type Statement struct {
	Type          string       `json:"_type"`
	Subject       []Descriptor `json:"subject"`
	PredicateType string       `json:"predicateType"`
	Predicate     struct {
		Result        TestResult   `json:"result"`
		Configuration []Descriptor `json:"configuration"`
		PassedTests   []string     `json:"passedTests"`
		WarnedTests   []string     `json:"warnedTests"`
		FailedTests   []string     `json:"failedTests"`
	} `json:"predicate"`
}

// Attested is what a statement is about, beside the run.
type Attested struct {
	// Subjects are the artifacts that hold the results, or that were tested.
	Subjects []Descriptor
	// Verdict is that of the run or, for a certificate, that on its class.
	Verdict result.Overall
	// Configuration names what the tests were, beside what the run says.
	Configuration []Descriptor
}

// tested is the result of all tests by the verdict and the recommendations that were broken.
func tested(verdict result.Overall, warnings int) TestResult {
	switch {
	case verdict != result.Conformant:
		return TestFailed
	case warnings > 0:
		return TestWarned
	}
	return TestPassed
}

// Attestation writes an unsigned in-toto statement (v1) with the predicate test-result: each
// requirement that was exercised is a test. A failure that does not count, because it is
// disputed or expected, is a test with a warning.
func Attestation(w io.Writer, run *result.Run, of Attested) error {
	v, err := newView(run)
	if err != nil {
		return err
	}
	ids := func(kinds ...outcome) []string {
		list := []string{}
		for _, o := range kinds {
			list = append(list, idsOf(v.having(o))...)
		}
		slices.Sort(list)
		return list
	}
	s := Statement{Type: statementType, Subject: of.Subjects, PredicateType: TestResultType}
	s.Predicate.PassedTests = ids(outPass)
	s.Predicate.WarnedTests = ids(outWarn, outDisputed, outExpected)
	s.Predicate.FailedTests = ids(outFail, outError)
	s.Predicate.Result = tested(of.Verdict, len(s.Predicate.WarnedTests))
	target := map[string]any{}
	for name, text := range map[string]string{"name": run.Target.Name, "version": run.Target.Version} {
		if text != "" {
			target[name] = line(text, limitName)
		}
	}
	annotations := map[string]any{
		"version": run.Tool.Version, "revision": run.Revision, "role": run.Role, "transport": run.Transport,
		"target": target, "verdict": of.Verdict, "started": timestamp(run.Started, "2006-01-02T15:04:05Z"),
	}
	for name, set := range map[string]bool{"strict": run.Strict, "partial": run.Partial, "quick": run.Quick,
		"thorough": run.Thorough} {
		if set {
			annotations[name] = true
		}
	}
	if run.Seed != 0 {
		annotations["seed"] = run.Seed
	}
	s.Predicate.Configuration = append([]Descriptor{{Name: run.Tool.Name, Annotations: annotations}},
		of.Configuration...)
	return WriteJSON(w, s, "attestation")
}

// MaxAttestation is the size in bytes above which ReadAttestation refuses a file.
const MaxAttestation = 16 << 20

// ReadAttestation reads a statement about tests: by itself, in a DSSE envelope, or in the
// bundle that Sigstore keeps with a signature. It returns how many signatures the envelope
// has. It verifies none.
func ReadAttestation(r io.Reader) (s *Statement, signatures int, err error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxAttestation+1))
	if err != nil {
		return nil, 0, fmt.Errorf("read attestation: %w", err)
	}
	if len(text) > MaxAttestation {
		return nil, 0, fmt.Errorf("read attestation: it is larger than %d MiB", MaxAttestation>>20)
	}
	type envelope struct {
		PayloadType string            `json:"payloadType"`
		Payload     []byte            `json:"payload"` // in base64
		Signatures  []json.RawMessage `json:"signatures"`
	}
	var outer struct {
		envelope
		Sigstore *envelope `json:"dsseEnvelope"`
	}
	if err := json.Unmarshal(text, &outer); err != nil {
		return nil, 0, fmt.Errorf("read attestation: %w", locate(text, err))
	}
	e := outer.envelope
	if outer.Sigstore != nil {
		e = *outer.Sigstore
	}
	if e.PayloadType != "" || e.Payload != nil {
		if e.PayloadType != payloadType {
			return nil, 0, fmt.Errorf("read attestation: the envelope holds %s, not %s", quote(e.PayloadType),
				payloadType)
		}
		text = e.Payload
	}
	s = new(Statement)
	if err := json.Unmarshal(bytes.TrimSpace(text), s); err != nil {
		return nil, 0, fmt.Errorf("read attestation: the statement: %w", locate(text, err))
	}
	switch {
	case s.Type == "":
		return nil, 0, errors.New("read attestation: it is neither an in-toto statement nor an envelope with one")
	case s.Type != statementType:
		return nil, 0, fmt.Errorf("read attestation: the statement is of type %s, not %s", quote(s.Type), statementType)
	case s.PredicateType != TestResultType:
		return nil, 0, fmt.Errorf("read attestation: the predicate is of type %s, not %s", quote(s.PredicateType),
			TestResultType)
	}
	return s, len(e.Signatures), nil
}

// About reports whether one of the statement's subjects has a SHA-256.
func (s *Statement) About(digest string) bool {
	return slices.ContainsFunc(s.Subject, func(d Descriptor) bool { return d.Digest["sha256"] == digest })
}
