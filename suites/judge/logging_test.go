package judge_test

import (
	"testing"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/judge"
)

func setLevel(id int, level string) string {
	return exchange(id, "logging/setLevel", `{"level":"`+level+`"}`, `{}`)
}

func logMessage(level string) string {
	return notice("notifications/message", `{"level":"`+level+`","data":"x"}`)
}

func TestLogging(t *testing.T) {
	runFeatureCases(t, []featureCase{
		{
			id: "logging.filter.none-below", party: wire.Server,
			good: setLevel(1, "warning") + logMessage("warning") + logMessage("alert"), bad: setLevel(1, "warning") + logMessage("notice"),
		},
		{
			id: "logging.filter.none-below", party: wire.Server,
			good: setLevel(1, "error") + setLevel(2, "debug") + logMessage("debug"), bad: setLevel(1, "debug") + setLevel(2, "emergency") + logMessage("alert"),
		},
		{
			// Between request and answer either level may be in force.
			id: "logging.filter.none-below", party: wire.Server, silent: true, good: setLevel(1, "debug") + logMessage("debug"),
			bad: request(1, "logging/setLevel", `{"level":"error"}`) + logMessage("debug") + answer(1, "{}"),
		},
		{id: "logging.default.server-decides", party: wire.Client, silent: true, good: logMessage("debug") + ping, bad: setLevel(1, "debug") + logMessage("debug") + ping},
		{
			id: "logging.message.any-data", party: wire.Client, silent: true,
			good: notice("notifications/message", `{"level":"info","data":null}`) + ping, bad: logMessage("info") + ping,
		},
		{
			id: "logging.message.logger-optional", party: wire.Client, silent: true,
			good: notice("notifications/message", `{"level":"info","logger":"l","data":1}`) + ping, bad: logMessage("info") + ping,
		},
	})
}

// Over HTTP, what travels on a stream of its own may have been sent before the
// level was set.
func TestLogLevelAcrossStreams(t *testing.T) {
	for stream, broken := range map[string]bool{"get:1": false, "post:2": true, "post:3": true} {
		l := wire.NewTrace(wire.DefaultLimits).Connect("http", t.Name())
		add := func(from wire.Party, stream, raw string) {
			if _, err := l.Append(wire.Event{Kind: wire.KindMessage, From: from, Stream: stream, Raw: []byte(raw)}); err != nil {
				t.Fatal(err)
			}
		}
		add(wire.Server, "get:1", `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":1}}`)
		add(wire.Client, "post:2", `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}`)
		add(wire.Server, "post:2", `{"jsonrpc":"2.0","id":1,"result":{}}`)
		add(wire.Server, stream, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":1}}`)
		seen := judge.Judge([]*wire.Log{l})[judge.Key{Requirement: "logging.filter.none-below", Party: wire.Server}]
		if got := seen != nil && len(seen.Violations) > 0; got != broken {
			t.Errorf("on stream %s: broken is %v, want %v", stream, got, broken)
		}
	}
}
