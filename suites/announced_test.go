package suites_test

import (
	"testing"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/suites/check"
)

// The run reads and tries a list that a server announces some time after the handshake: an early empty list is not
// final.
func TestAnnouncedLater(t *testing.T) {
	brief.WholeRuns(t)
	for oddity, wants := range map[string][]string{
		"tools.announced-later":     {"tools.list.callable", "progress.value-increases", "tools.output-schema.structured-present"},
		"resources.announced-later": {"resources.read.answered", "resources.subscribe.accepted"},
		"prompts.announced-later":   {"prompts.get.answered"},
	} {
		for _, over := range transports {
			t.Run(oddity+"/"+over, func(t *testing.T) {
				o := serverOptions()
				applyOddity(&o, oddity)
				passesUnaccused(t, whole(t, over, o, check.CallAll), wants...)
			})
		}
	}
}
