package ledger

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/expected"
	"github.com/mcpconform/mcpconform/suites/result"
)

func TestVerdictWithExpectedFailures(t *testing.T) {
	entry := func(id string) []expected.Entry { return []expected.Entry{{ID: id, Reason: "known"}} }
	for _, tt := range []struct {
		name     string
		verdicts []result.Verdict // of a, b, …
		entries  []expected.Entry
		strict   bool
		cause    error
		want     result.Overall
	}{
		{"fails", []result.Verdict{result.Fail, result.Pass}, nil, false, nil, result.NotConformant},
		{"fails as expected", []result.Verdict{result.Fail, result.Pass}, entry("a"), false, nil, result.Conformant},
		{"fails otherwise", []result.Verdict{result.Fail, result.Fail, result.Pass}, entry("a"), false, nil, result.NotConformant},
		{"warns, strictly", []result.Verdict{result.Warn, result.Pass}, nil, true, nil, result.NotConformant},
		{"warns as expected, strictly", []result.Verdict{result.Warn, result.Pass}, entry("a"), true, nil, result.Conformant},
		{"warns as expected", []result.Verdict{result.Warn, result.Pass}, entry("a"), false, nil, result.Conformant},
		{"passes unexpectedly", []result.Verdict{result.Pass}, entry("a"), false, nil, result.NotConformant},
		{"matches nothing", []result.Verdict{result.Pass}, entry("none"), false, nil, result.NotConformant},
		{"untested", []result.Verdict{result.Inconclusive, result.Pass}, entry("a"), false, nil, result.Conformant},
		{
			"expired", []result.Verdict{result.Fail, result.Pass}, []expected.Entry{{ID: "a", Reason: "known", Expires: "2026-01-01"}},
			false, nil, result.NotConformant,
		},
		{"only warns", []result.Verdict{result.Warn, result.Skip}, nil, false, nil, result.Conformant},
		{"fails only as expected", []result.Verdict{result.Fail, result.Skip}, entry("a"), false, nil, result.Incomplete},
		{"nothing", []result.Verdict{result.Inconclusive, result.Skip}, nil, false, nil, result.Incomplete},
		{"cut short", []result.Verdict{result.Inconclusive}, entry("none"), false, errors.New("cut short"), result.Incomplete},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run := &result.Run{Strict: tt.strict}
			for i, v := range tt.verdicts {
				run.Requirements = append(run.Requirements, result.Requirement{ID: string(rune('a' + i)), Observable: true, Verdict: v})
			}
			expected.Apply(run, tt.entries, time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
			got, why := judged(run, tt.cause)
			if got != tt.want {
				t.Errorf("got %s, want %s: %+v", got, tt.want, run.ExpectedFailures)
			}
			if says := why == "nothing was exercised"; says != (tt.name == "nothing") {
				t.Errorf("the reason is %q", why)
			}
		})
	}
}

// A requirement is disputed if nothing decides its verdict but disputed findings, and then
// it counts only in a strict run.
func TestDisputedFindings(t *testing.T) {
	const id, contested, plain = "tools.error.unknown-tool-protocol-error", "the answer is a result with isError", "the answer is a plain result"
	catalogue := schema.Default().Catalogue()
	// As if it were a MUST, so that other findings count.
	i := slices.IndexFunc(catalogue, func(q schema.Requirement) bool { return q.ID == id })
	catalogue[i].Level = schema.Must
	for _, tt := range []struct {
		name     string
		messages []string
		disputed bool
		strict   bool
		want     result.Overall
	}{
		{"all", []string{contested, contested}, true, false, result.Conformant},
		{"strict", []string{contested}, true, true, result.NotConformant},
		{"one of them", []string{contested, plain}, false, false, result.NotConformant},
		{"the last of many", []string{contested + " 1", contested + " 2", contested + " 3", contested + " 4", contested + " 5", contested + " 6", plain}, false, false, result.NotConformant},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := NewRecorder(schema.Default(), "tools/unknown-tool")
			for _, m := range tt.messages {
				r.Fail(id, wire.Server, m)
			}
			r.Pass("ping.response-empty", wire.Server)
			l := Ledger{Revision: schema.Default(), Party: wire.Server, Transport: "stdio"}
			l.Add(r.Record)
			_, contested, _ := l.Worst(r.Record, tt.strict, func(k Key) (schema.Requirement, bool) { return catalogue[i], k.Requirement == id })
			if want := tt.disputed && !tt.strict; contested != want {
				t.Errorf("the progress says disputed: %v, want %v", contested, want)
			}
			run := &result.Run{Strict: tt.strict}
			for _, q := range catalogue {
				if q.ID == id || q.ID == "ping.response-empty" {
					run.Requirements = append(run.Requirements, l.Requirement(q))
				}
			}
			for _, q := range run.Requirements {
				if q.ID == id && (q.Verdict != result.Fail || (q.Disputed != nil) != tt.disputed) {
					t.Errorf("%s is %s, disputed: %v: %+v", q.ID, q.Verdict, q.Disputed, q.Findings)
				}
			}
			if got, _ := judged(run, nil); got != tt.want {
				t.Errorf("the verdict is %s, not %s", got, tt.want)
			}
		})
	}
}

// However much only warns or says the same, what breaks a requirement decides, and
// each thing is shown once.
func TestBreachAmongWarnings(t *testing.T) {
	const id = "elicitation.schema.no-advanced"
	r := NewRecorder(schema.Default(), "rule: elicitation")
	for i := range 16 {
		if i%2 == 0 {
			r.Warn(id, wire.Server, "examples is an extension")
		} else {
			r.Fail(id, wire.Server, "pattern is not allowed")
		}
	}
	r.Fail(id, wire.Server, "const is not allowed")
	r.Warn(id, wire.Server, "$comment is an extension")
	catalogue := schema.Default().Catalogue()
	l := Ledger{Revision: schema.Default(), Party: wire.Server, Transport: "stdio"}
	l.Add(r.Record)
	q := l.Requirement(catalogue[slices.IndexFunc(catalogue, func(q schema.Requirement) bool { return q.ID == id })])
	if q.Verdict != result.Fail || len(q.Findings) != 4 || q.Omitted != 18-4 ||
		!strings.Contains(q.Findings[0].Message, "pattern") || !strings.Contains(q.Findings[1].Message, "const") {
		t.Errorf("%s with %d more than %+v", q.Verdict, q.Omitted, q.Findings)
	}
}

// The offer of a whole is that of the first shard that has one.
func TestMergeKeepsTheOffer(t *testing.T) {
	shard := func(i int, o *result.Offer) *result.Run {
		return &result.Run{Role: "server", Offer: o, Shard: &result.Shard{Index: i, Of: 3}}
	}
	first := &result.Offer{Instructions: "first"}
	whole, err := Merge([]*result.Run{shard(3, &result.Offer{Instructions: "last"}), shard(2, first), shard(1, nil)}, time.Now())
	if err != nil || whole.Offer != first {
		t.Errorf("the offer is %+v, error %v", whole.Offer, err)
	}
}
