package suites_test

import (
	"slices"
	"testing"

	"github.com/mcpconform/mcpconform/internal/virtual"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// What a server announces some time after the handshake is read and tried: a list that was empty then says nothing for good.
func TestAnnouncedLater(t *testing.T) {
	for oddity, wants := range map[string][]string{
		"tools.announced-later":     {"tools.list.callable", "progress.value-increases", "tools.output-schema.structured-present"},
		"resources.announced-later": {"resources.read.answered", "resources.subscribe.accepted"},
		"prompts.announced-later":   {"prompts.get.answered"},
	} {
		for _, over := range transports {
			t.Run(oddity+"/"+over, func(t *testing.T) {
				virtual.Test(t, func(t *testing.T) {
					o := serverOptions()
					applyOddity(&o, oddity)
					dialer, stop, err := serve(t.Context(), over, o)
					if err != nil {
						t.Fatal(err)
					}
					defer stop()
					run, _, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: dialer, Settings: check.Settings{CallTools: check.CallAll}}, suites.Options{})
					if err != nil {
						t.Fatal(err)
					}
					passed := make(map[string]bool)
					for _, q := range run.Requirements {
						passed[q.ID] = q.Verdict == result.Pass
						if len(q.Findings) > 0 {
							t.Errorf("%s is %s: %s", q.ID, q.Verdict, q.Findings[0].Message)
						}
						if slices.Contains(wants, q.ID) && !passed[q.ID] {
							t.Errorf("%s is %s: %s", q.ID, q.Verdict, q.Reason)
						}
					}
					for _, id := range wants {
						if _, ok := passed[id]; !ok {
							t.Errorf("no %s", id)
						}
					}
				})
			})
		}
	}
}
