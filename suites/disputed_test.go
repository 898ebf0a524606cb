package suites_test

import (
	"testing"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/result"
)

// Each dispute is about a finding that a fault shows: the requirement keeps its verdict,
// is marked, and does not count.
func TestDisputed(t *testing.T) {
	brief.WholeRuns(t)
	disputes := schema.Default().Disputes()
	for _, d := range disputes {
		t.Run(d.ID, func(t *testing.T) {
			fault, ok := mockserver.Find(d.Fault)
			if !ok || fault.Requirement != d.Requirement {
				t.Fatalf("the fault %s is about %q", d.Fault, fault.Requirement)
			}
			o := serverOptions()
			fault.Apply(&o)
			run := conducted(t, transport.NameStdio, o)
			for _, q := range run.Requirements {
				switch {
				case q.ID == d.Requirement:
					if q.Verdict != result.Fail && q.Verdict != result.Warn || q.Disputed == nil || q.Disputed.ID != d.ID || q.Findings[0].Disputed != d.ID {
						t.Errorf("%s is %s, disputed: %v", q.ID, q.Verdict, q.Disputed)
					}
				case q.Disputed != nil, q.Verdict == result.Fail:
					t.Errorf("%s is %s, disputed: %v", q.ID, q.Verdict, q.Disputed)
				}
			}
			if run.Verdict != result.Conformant {
				t.Errorf("the verdict is %s: %s", run.Verdict, run.Reason)
			}
		})
	}
}
