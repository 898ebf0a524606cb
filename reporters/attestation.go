package reporters

import (
	"encoding/hex"
	"io"

	"github.com/mcpconform/mcpconform/suites/result"
)

// AttestationType is the predicate type of the statement that Attestation writes.
const AttestationType = "https://mcpconform.dev/attestation/v1"

// Subject is what an attestation is about: an artifact and its digests, such as
// {"sha256": "…"}, in lower-case hexadecimal.
type Subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

type statement struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     predicate `json:"predicate"`
}

type predicate struct {
	Tool          result.Tool            `json:"tool"`
	Revision      string                 `json:"revision"`
	Role          string                 `json:"role"`
	Transport     string                 `json:"transport"`
	Target        attestedTarget         `json:"target"`
	Verdict       result.Overall         `json:"verdict"`
	Strict        bool                   `json:"strict,omitempty"`
	Partial       bool                   `json:"partial,omitempty"`
	Counts        map[result.Verdict]int `json:"counts"`
	Started       string                 `json:"started"`
	ResultsSHA256 string                 `json:"resultsSha256"`
}

type attestedTarget struct {
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
}

// Attestation writes an unsigned in-toto statement (v1) that the run came to its
// verdict. digest is the SHA-256 of the run's results.json as it was written.
// Without subjects, results.json itself is the subject: in-toto wants one.
func Attestation(w io.Writer, run *result.Run, digest [32]byte, subjects ...Subject) error {
	if run == nil {
		return errNoRun
	}
	sum := hex.EncodeToString(digest[:])
	if len(subjects) == 0 {
		subjects = []Subject{{Name: "results.json", Digest: map[string]string{"sha256": sum}}}
	}
	return WriteJSON(w, statement{
		Type:          "https://in-toto.io/Statement/v1",
		Subject:       subjects,
		PredicateType: AttestationType,
		Predicate: predicate{
			Tool:      run.Tool,
			Revision:  run.Revision,
			Role:      run.Role,
			Transport: run.Transport,
			Target:    attestedTarget{Name: line(run.Target.Name, limitName), Version: line(run.Target.Version, limitName)},
			Verdict:   run.Verdict,
			Strict:    run.Strict,
			Partial:   run.Partial,
			Counts:    run.Counts(),
			// RFC 3339, in UTC.
			Started:       timestamp(run.Started, "2006-01-02T15:04:05Z"),
			ResultsSHA256: sum,
		},
	}, "attestation")
}
