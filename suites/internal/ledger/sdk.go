package ledger

import (
	"slices"

	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/result"
)

// attribute marks the requirements of a run whose findings are all known of the SDK on which
// the target is built. A version of the SDK that mends a fault does not have it.
func attribute(run *result.Run) {
	if run.Target.SDK == nil {
		return
	}
	known := slices.DeleteFunc(run.Protocol().KnownFaults(), func(f schema.KnownFault) bool {
		return f.SDK != run.Target.SDK.Name || f.MendedIn(run.Target.SDK.Version)
	})
	for i := range run.Requirements {
		q := &run.Requirements[i]
		q.SDK = nil
		for j := range q.Findings {
			texts := []string{q.Findings[j].Message}
			for _, e := range q.Findings[j].Evidence {
				texts = append(texts, e.Text)
			}
			at := slices.IndexFunc(known, func(f schema.KnownFault) bool { return f.Fits(q.ID, texts) })
			if at < 0 {
				q.SDK = nil
				break
			}
			if f := known[at]; q.SDK == nil {
				q.SDK = &result.SDKFault{
					ID: f.ID, Versions: f.Versions, Mended: f.Mended, Thread: f.Thread, Says: f.Says, Advice: f.Advice,
				}
			}
		}
	}
}
