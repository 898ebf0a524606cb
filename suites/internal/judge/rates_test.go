package judge_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
)

// As no rate is named, only floods are accused.
func TestRates(t *testing.T) {
	const id = "logging.rate-limit"
	for _, c := range []struct {
		name     string
		count    int
		apart    time.Duration
		findings int
		seen     bool
	}{
		{"a flood", 1001, 0, 1, true},
		{"as many as fit into a second", 1000, 0, 0, true},
		{"a busy server", 5000, 2 * time.Millisecond, 0, true},
		{"a single one", 1, 0, 0, true},
		{"none", 0, 0, 0, false},
	} {
		l := wire.NewTrace(wire.DefaultLimits).Connect("stdio", t.Name())
		for i := range c.count {
			raw := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%d}}`, i)
			sent, err := l.Append(wire.Event{Kind: wire.KindMessage, From: wire.Server, Stream: "stdout", Raw: []byte(raw)})
			if err != nil {
				t.Fatal(err)
			}
			sent.At = time.Duration(i) * c.apart
		}
		e := judge.Judge(schema.Default(), []*wire.Log{l}, judge.Options{})[judge.Key{Requirement: id, Party: wire.Server}]
		if e.Exercised > 0 != c.seen || len(e.Findings) != c.findings {
			t.Errorf("%s: got %+v", c.name, e)
		}
	}
}

func TestProgressMessages(t *testing.T) {
	progress := func(message string) string {
		return request(1, "tools/call", `{"name":"t","_meta":{"progressToken":1}}`) +
			`< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":` + message + `}}` + "\n"
	}
	runFeatureCases(t, []featureCase{
		{id: "progress.message-readable", party: wire.Server, good: progress(`"50 %"`), bad: progress(`" … "`)},
		{id: "progress.message-readable", party: wire.Server, good: progress(`"進行中"`), bad: progress(`""`)},
		{id: "progress.message-readable", party: wire.Server, good: progress(`"✓"`), bad: progress(`"--"`)},
	})
}
