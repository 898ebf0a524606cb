package judge_test

import (
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
)

// The framing of language servers is called by its name, whoever uses it.
func TestContentLengthIsNamed(t *testing.T) {
	for party, id := range map[wire.Party]string{wire.Client: "stdio.client.stdin-clean", wire.Server: "stdio.server.stdout-clean"} {
		log := wire.NewTrace(wire.DefaultLimits).Connect(transport.NameStdio, "framed")
		raw := []byte("Content-Length: 40")
		_, _ = log.Append(wire.Event{Kind: wire.KindMessage, From: party, Raw: raw, Msg: wire.Parse(raw)})
		seen := judge.Judge(schema.Default(), []*wire.Log{log}, judge.Options{})[judge.Key{Requirement: id, Party: party}]
		if seen == nil || len(seen.Findings) != 1 || !strings.Contains(seen.Findings[0].Message, "as in the protocol of language servers") {
			t.Errorf("%s: %+v", party, seen)
		}
	}
}
