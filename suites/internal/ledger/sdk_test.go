package ledger

import (
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/expected"
	"github.com/mcpconform/mcpconform/suites/result"
)

const typeScript = "the TypeScript SDK"

// built returns a run on a target that is built on an SDK, in which a requirement warns.
func built(sdk *result.SDK, id string, messages ...string) *result.Run {
	q := result.Requirement{ID: id, Observable: true, Verdict: result.Warn}
	for _, m := range messages {
		q.Findings = append(q.Findings, result.Finding{Message: m})
	}
	return &result.Run{Revision: "2025-06-18", Target: result.Target{SDK: sdk}, Requirements: []result.Requirement{q}}
}

// Findings are of the SDK if that is recognised and known to cause each of them.
func TestAttribute(t *testing.T) {
	const dump, other = `error -32603: "[ { \"code\": \"invalid_type\" } ]"`, "error -32603: boom"
	for _, test := range []struct {
		name     string
		sdk      *result.SDK
		id       string
		messages []string
		want     string
	}{
		{"known by its text", &result.SDK{Name: typeScript}, "base.error.invalid-params", []string{dump}, "typescript-invalid-params"},
		{"one finding is another", &result.SDK{Name: typeScript}, "base.error.invalid-params", []string{dump, other}, ""},
		{"known without a text", &result.SDK{Name: typeScript}, "pagination.error.invalid-cursor-code", []string{other}, "typescript-pagination"},
		{"another SDK", &result.SDK{Name: "the Go SDK"}, "base.error.invalid-params", []string{dump}, ""},
		{"no SDK", nil, "base.error.invalid-params", []string{dump}, ""},
		{"mended later", &result.SDK{Name: "the Go SDK", Version: "1.3.0"}, "base.jsonrpc.member-case", []string{other}, "go-member-case"},
		{"mended", &result.SDK{Name: "the Go SDK", Version: "1.8.0"}, "base.jsonrpc.member-case", []string{other}, ""},
	} {
		run := built(test.sdk, test.id, test.messages...)
		attribute(run)
		got := ""
		if f := run.Requirements[0].SDK; f != nil {
			got = f.ID
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// With ExpectSDK, what the SDK causes does not count; where it causes nothing, that is stale.
func TestExpectSDK(t *testing.T) {
	for _, test := range []struct {
		name, id, status string
		sdk              *result.SDK
		verdict          result.Verdict
		partial          bool
		stale            bool
	}{
		{"known", "pagination.error.invalid-cursor-code", expected.Failed, &result.SDK{Name: typeScript}, result.Warn, false, false},
		{"not known", "ping.response-empty", expected.Passed, &result.SDK{Name: typeScript}, result.Warn, false, true},
		{"not recognised", "ping.response-empty", expected.Unmatched, nil, result.Warn, false, true},
		{"a selection", "ping.response-empty", expected.Untested, nil, result.Warn, true, false},
	} {
		run := built(test.sdk, test.id, "x")
		run.Partial, run.Strict = test.partial, true
		l := &Ledger{Revision: schema.Default(), ExpectSDK: true}
		l.Conclude(run, nil, nil, time.Time{})
		if got := run.ExpectedFailures[0]; got.ID != expected.SDK || got.Status != test.status || expected.Stale(run) != test.stale {
			t.Errorf("%s: %+v, want %s", test.name, got, test.status)
		}
		if covered := run.Requirements[0].Expected != ""; covered != (test.status == expected.Failed) {
			t.Errorf("%s: the failure is expected: %t", test.name, covered)
		}
	}
}
