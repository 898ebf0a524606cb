package suites_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/memory"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/mockserver/mockclient"
	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reporters"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/expected"
	"github.com/mcpconform/mcpconform/suites/result"
)

// sharded runs the checks against a server with a fault, or the i-th of n shards of them.
func sharded(t *testing.T, fault string, i, n int, more ...expected.Entry) *result.Run {
	t.Helper()
	o := serverOptions()
	if f, ok := mockserver.Find(fault); ok {
		f.Apply(&o)
	} else if fault != "" {
		t.Fatalf("there is no fault %s", fault)
	}
	dialer, stop, err := serve(t.Context(), transport.NameHTTP, o)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	run, _, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: dialer, Settings: check.Settings{CallTools: check.CallAll, ToolRoles: rolesOn(o)}},
		suites.Options{Shard: i, Shards: n, Expected: more, Target: result.Target{Command: []string{"server"}}})
	if err != nil {
		t.Fatal(err)
	}
	return throughAFile(t, run)
}

// throughAFile returns results as a file holds them.
func throughAFile(t *testing.T, run *result.Run) *result.Run {
	t.Helper()
	var b bytes.Buffer
	if err := reporters.JSON(&b, run); err != nil {
		t.Fatal(err)
	}
	read, err := reporters.ReadJSON(&b)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// sameVerdicts expects the same of merged shards as of a whole run.
func sameVerdicts(t *testing.T, whole, merged *result.Run) {
	t.Helper()
	if merged.Verdict != whole.Verdict || merged.Partial != whole.Partial || merged.Shard != nil {
		t.Errorf("the shards together are %s (%s), and the whole %s (%s)", merged.Verdict, merged.Reason, whole.Verdict, whole.Reason)
	}
	if len(whole.Requirements) != len(merged.Requirements) {
		t.Fatalf("%d requirements, not %d", len(merged.Requirements), len(whole.Requirements))
	}
	for i, q := range whole.Requirements {
		m := merged.Requirements[i]
		kind := m.Unexercised
		if q.NotUsed != "" {
			kind = q.Unexercised // no shard knows that
		}
		if m.ID != q.ID || m.Verdict != q.Verdict || kind != q.Unexercised || (m.Disputed == nil) != (q.Disputed == nil) || m.Expected != q.Expected {
			t.Errorf("%s is %s (%s), and in the whole %s (%s)", m.ID, m.Verdict, m.Reason, q.Verdict, q.Reason)
		}
	}
}

// TestShards: whatever the server breaks, the shards together say what the whole says.
func TestShards(t *testing.T) {
	brief.WholeRuns(t)
	for _, fault := range []string{"", "tools.listed-but-unknown", "lifecycle.own-version"} {
		t.Run("fault "+fault, inVirtualTime(func(t *testing.T) {
			const n = 4
			whole := sharded(t, fault, 0, 0)
			var shards []*result.Run
			tried := make(map[string]int)
			for i := n; i >= 1; i-- {
				run := sharded(t, fault, i, n)
				if run.Verdict == result.Incomplete {
					t.Errorf("shard %d: %s", i, run.Reason)
				}
				for _, q := range run.Requirements {
					for _, c := range q.Checks {
						if !strings.HasPrefix(c, "rule: ") && !strings.HasPrefix(c, "lifecycle/handshake") {
							tried[c] |= 1 << i
						}
					}
				}
				shards = append(shards, run)
			}
			for name, in := range tried {
				if in&(in-1) != 0 {
					t.Errorf("%s is in several shards: %b", name, in)
				}
			}
			merged, err := suites.Merge(shards)
			if err != nil {
				t.Fatal(err)
			}
			sameVerdicts(t, whole, merged)
			lacking, err := suites.Merge(shards[1:3])
			if err != nil {
				t.Fatal(err)
			}
			want := "shards 1 and 4 of 4 are missing"
			if lacking.Verdict == result.Conformant || lacking.Reason != want && !slices.Contains(lacking.Notes, want) {
				t.Errorf("without two shards the run is %s: %s", lacking.Verdict, lacking.Reason)
			}
		}))
	}
}

// TestShardsOfClients: the same for a client.
func TestShardsOfClients(t *testing.T) {
	brief.WholeRuns(t)
	run := func(t *testing.T, fault string, i, n int) *result.Run {
		t.Helper()
		f, faulty := mockclient.Find(fault)
		run, _, err := suites.Run(t.Context(), suites.ClientScenarios{Network: new(memory.Network), Launch: func(p client.Endpoint) (transport.Process, error) {
			return transport.Func{Name: "client", Run: func(ctx context.Context, _ io.Reader, _, _ io.Writer) error {
				c := reference.Standalone{URL: p.URL, Dial: p.Dial, Timeout: 3 * time.Second, UserActions: p.UserActions,
					Authorizer: &reference.Authorizer{ID: p.ClientID, Secret: p.ClientSecret}}
				if faulty {
					f.Apply(&c)
				}
				return c.Run(ctx)
			}}.Launch()
		}}, suites.Options{Shard: i, Shards: n, Target: result.Target{Command: []string{"client"}}})
		if err != nil {
			t.Fatal(err)
		}
		return throughAFile(t, run)
	}
	for _, fault := range []string{"", "sampling.unknown"} {
		t.Run("fault "+fault, inVirtualTime(func(t *testing.T) {
			whole := run(t, fault, 0, 0)
			var shards []*result.Run
			for i := 1; i <= 3; i++ {
				shards = append(shards, run(t, fault, i, 3))
			}
			merged, err := suites.Merge(shards)
			if err != nil {
				t.Fatal(err)
			}
			sameVerdicts(t, whole, merged)
		}))
	}
}

// shard makes the results of one shard by hand.
func shardOf(i, of int, verdicts ...result.Requirement) *result.Run {
	run := &result.Run{Revision: schema.DefaultVersion, Format: result.Format, Role: "server", Transport: "http", Verdict: result.Conformant, Shard: &result.Shard{Index: i, Of: of, Plan: "p"}}
	run.Target.URL = "http://localhost/mcp"
	run.Requirements = verdicts
	for n := range run.Requirements {
		q := &run.Requirements[n]
		q.ID, q.Level, q.Observable = fmt.Sprintf("a.%d", n), "MUST", true
		if q.Reason == "elsewhere" {
			q.Unexercised = result.NotRun
			run.Shard.Elsewhere = append(run.Shard.Elsewhere, q.ID)
		}
		if q.Verdict == result.Pass {
			q.Exercised = 1
		}
	}
	return run
}

func TestMerge(t *testing.T) {
	is := func(v result.Verdict) result.Requirement { return result.Requirement{Verdict: v} }
	elsewhere := result.Requirement{Verdict: result.Inconclusive, Reason: "elsewhere"}
	unprovoked := result.Requirement{Verdict: result.Inconclusive, Unexercised: result.NotProvoked, Reason: "no tool"}
	never := result.Requirement{Verdict: result.Inconclusive, Unexercised: result.NeverDone, Reason: "nothing"}
	failed := func(message string, d *result.Dispute) result.Requirement {
		return result.Requirement{Verdict: result.Fail, Disputed: d, Findings: []result.Finding{{Message: message, Evidence: []result.Event{{Connection: "c1", Kind: "message"}}}}}
	}
	contested := &result.Dispute{ID: "d"}
	a := shardOf(1, 2, failed("x", nil), is(result.Pass), elsewhere, is(result.Skip), unprovoked, failed("x", contested), failed("x", contested), is(result.Pass), failed("x", nil))
	b := shardOf(2, 2, is(result.Pass), elsewhere, unprovoked, never, is(result.Skip), failed("y", nil), is(result.Pass), is(result.Error), failed("x", nil))
	run, err := suites.Merge([]*result.Run{b, a})
	if err != nil {
		t.Fatal(err)
	}
	want := []result.Verdict{result.Fail, result.Pass, result.Inconclusive, result.Skip, result.Inconclusive, result.Fail, result.Fail, result.Error, result.Fail}
	for i, q := range run.Requirements {
		if q.Verdict != want[i] {
			t.Errorf("%s is %s, not %s", q.ID, q.Verdict, want[i])
		}
	}
	if q := run.Requirements[2]; q.Reason != "no tool" || q.Unexercised != result.NotProvoked {
		t.Errorf("the reason is %q", q.Reason)
	}
	if q := run.Requirements[5]; q.Disputed != nil || len(q.Findings) != 2 || q.Findings[1].Evidence[0].Connection != "2/c1" {
		t.Errorf("%+v", q)
	}
	if q := run.Requirements[8]; len(q.Findings) != 1 || q.Omitted != 1 {
		t.Errorf("what two shards say alike is not told once and counted: %+v", q)
	}
	if run.Requirements[6].Disputed == nil {
		t.Error("a dispute is lost")
	}
	if run.Verdict != result.NotConformant || a.Requirements[0].Findings[0].Evidence[0].Connection != "c1" {
		t.Errorf("%s: %s", run.Verdict, run.Reason)
	}
}

// TestMergeEvidence: what "conformant" needs is shown by all shards together, and one
// that was cut short cuts the whole short.
func TestMergeEvidence(t *testing.T) {
	pass := result.Requirement{Verdict: result.Pass}
	both := func(change func(a, b *result.Run)) (*result.Run, error) {
		a, b := shardOf(1, 2, pass), shardOf(2, 2, pass)
		change(a, b)
		return suites.Merge([]*result.Run{a, b})
	}
	for name, tt := range map[string]struct {
		change func(a, b *result.Run)
		want   result.Overall
		reason string
	}{
		"whole":       {func(_, _ *result.Run) {}, result.Conformant, ""},
		"used by one": {func(a, _ *result.Run) { a.Shard.Unused = []string{"tools"} }, result.Conformant, ""},
		"used by none": {func(a, b *result.Run) {
			a.Shard.Unused, b.Shard.Unused = []string{"tools"}, []string{"prompts", "tools"}
		}, result.Incomplete, "the server declares what nothing in the run used: tools"},
		"cut":           {func(_, b *result.Run) { b.Shard.Cut = "the run was interrupted" }, result.Incomplete, "shard 2 of 2: the run was interrupted"},
		"nothing in it": {func(_, b *result.Run) { b.Requirements[0].Verdict, b.Requirements[0].Exercised = result.Skip, 0 }, result.Conformant, ""},
		"stale in part": {func(a, b *result.Run) {
			a.ExpectedFailures = []result.ExpectedFailure{{ID: "base.error.*", Reason: "r", Status: expected.Untested}}
			b.ExpectedFailures = a.ExpectedFailures
		}, result.Conformant, ""},
		"expected": {func(a, b *result.Run) {
			a.ExpectedFailures = []result.ExpectedFailure{{ID: "a.0", Reason: "r", Status: expected.Untested}}
			b.ExpectedFailures = []result.ExpectedFailure{{ID: "a.0", Reason: "r", Status: expected.Failed}}
			b.Requirements[0] = result.Requirement{ID: "a.0", Level: "MUST", Observable: true, Verdict: result.Fail, Expected: "r"}
		}, result.Incomplete, "all that was exercised is disputed or an expected failure, so that nothing counts"},
		"stale": {func(a, b *result.Run) {
			a.ExpectedFailures = []result.ExpectedFailure{{ID: "a.0", Reason: "r", Status: expected.Untested}}
			b.ExpectedFailures = a.ExpectedFailures
		}, result.NotConformant, ""},
	} {
		run, err := both(tt.change)
		if err != nil || run.Verdict != tt.want || run.Reason != tt.reason {
			t.Errorf("%s: %v: %s: %s", name, err, run.Verdict, run.Reason)
		}
	}
}

func TestMergeRefuses(t *testing.T) {
	pass := result.Requirement{Verdict: result.Pass}
	for name, change := range map[string]func(b *result.Run){
		"twice":          func(b *result.Run) { b.Shard.Index = 1 },
		"a whole":        func(b *result.Run) { b.Shard = nil },
		"other target":   func(b *result.Run) { b.Target.URL = "http://localhost/other" },
		"other command":  func(b *result.Run) { b.Target.Command = []string{"x"} },
		"other tool":     func(b *result.Run) { b.Tool.Version = "2" },
		"other revision": func(b *result.Run) { b.Revision = "x" },
		"other role":     func(b *result.Run) { b.Role = "client" },
		"other wire":     func(b *result.Run) { b.Transport = "stdio" },
		"other plan":     func(b *result.Run) { b.Shard.Plan = "q" },
		"other number":   func(b *result.Run) { b.Shard.Of = 3 },
		"strict":         func(b *result.Run) { b.Strict = true },
		"other seed":     func(b *result.Run) { b.Seed = 7 },
		"budget":         func(b *result.Run) { b.Thorough = true },
		"selection":      func(b *result.Run) { b.Requirements = nil },
		"expectations":   func(b *result.Run) { b.ExpectedFailures = []result.ExpectedFailure{{ID: "x"}} },
	} {
		a, b := shardOf(1, 2, pass), shardOf(2, 2, pass)
		change(b)
		if run, err := suites.Merge([]*result.Run{a, b}); err == nil {
			raw, _ := json.Marshal(run)
			t.Errorf("%s is merged: %.200s", name, raw)
		}
	}
}
