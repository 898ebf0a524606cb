package judge_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
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
		seen := judge.Judge(schema.Default(), []*wire.Log{l}, judge.Options{})[judge.Key{Requirement: "logging.filter.none-below", Party: wire.Server}]
		if got := seen != nil && len(seen.Findings) > 0; got != broken {
			t.Errorf("on stream %s: broken is %v, want %v", stream, got, broken)
		}
	}
}

// A level that another client set since may hold for all, unless it is as
// strict, was in force before, or belongs to another process.
func TestLogLevelOfAnotherClient(t *testing.T) {
	set := func(id int, level string) string { return request(id, "logging/setLevel", `{"level":"`+level+`"}`) }
	type step struct {
		log  int
		line string
	}
	own := func(more ...step) []step { return append([]step{{0, set(1, "error")}, {0, answer(1, "{}")}}, more...) }
	message := step{0, logMessage("debug")}
	for _, tt := range []struct {
		name, transport string
		steps           []step
		broken          bool
	}{
		{"alone", "http", own(message), true},
		{"set since", "http", own(step{1, set(1, "debug")}, message), false},
		{"set since over SSE", "sse", own(step{1, set(1, "debug")}, step{1, answer(1, "{}")}, message), false},
		{"answered since", "http", append([]step{{1, set(1, "debug")}}, own(step{1, answer(1, "{}")}, message)...), false},
		{"answered before", "http", append([]step{{1, set(1, "debug")}, {1, answer(1, "{}")}}, own(message)...), true},
		{"as strict", "http", own(step{1, set(1, "info")}, message), true},
		{"no level", "http", own(step{1, set(1, "trace")}, message), true},
		{"set afterwards", "http", own(message, step{1, set(1, "debug")}), true},
		{"another process", "stdio", own(step{1, set(1, "debug")}, message), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			trace := wire.NewTrace(wire.DefaultLimits)
			logs := []*wire.Log{trace.Connect(tt.transport, "own"), trace.Connect(tt.transport, "other")}
			var last time.Duration
			for _, s := range tt.steps {
				e := wire.Event{Kind: wire.KindMessage, From: wire.Server, Stream: "post:1", Raw: []byte(strings.Trim(s.line, "<> \n"))}
				if strings.HasPrefix(s.line, ">") {
					e.From = wire.Client
				}
				kept, err := logs[s.log].Append(e)
				if err != nil {
					t.Fatal(err)
				}
				// Events of different logs are told apart by their time alone.
				kept.At = max(kept.At, last+1)
				last = kept.At
			}
			seen := judge.Judge(schema.Default(), logs, judge.Options{})[judge.Key{Requirement: "logging.filter.none-below", Party: wire.Server}]
			if seen == nil || len(seen.Findings) > 0 != tt.broken || len(seen.Notes) > 0 == tt.broken {
				t.Errorf("got %+v, want broken %t, or a note", seen, tt.broken)
			}
		})
	}
}

// TestLogContents looks for known secrets and personal data in every text of log messages. Without known values the
// requirements are not exercised.
func TestLogContents(t *testing.T) {
	const credentials, personal = "logging.security.no-credentials", "logging.security.no-personal-data"
	known := judge.Options{Secrets: []string{"", "pass\"word"}, Personal: []string{"jane@example.com"}}
	for _, tt := range []struct {
		name, lines string
		options     judge.Options
		exercised   map[string]int
		broken      []string
	}{
		{"nothing is known", logMessage("info"), judge.Options{}, nil, nil},
		{"only secrets are known", logMessage("info"), judge.Options{Secrets: known.Secrets}, map[string]int{credentials: 1}, nil},
		{"clean", logMessage("info") + logMessage("debug"), known, map[string]int{credentials: 2, personal: 2}, nil},
		{
			"in the data, escaped", notice("notifications/message", `{"level":"info","data":[{"a":"the pass\u0022word is"}]}`), known,
			map[string]int{credentials: 1, personal: 1}, []string{credentials},
		},
		{
			"as the name of a member", notice("notifications/message", `{"level":"info","data":{"jane@example.com":1}}`), known,
			map[string]int{credentials: 1, personal: 1}, []string{personal},
		},
		{
			"as the logger", notice("notifications/message", `{"level":"info","logger":"mail.jane@example.com","data":1}`), known,
			map[string]int{credentials: 1, personal: 1}, []string{personal},
		},
		{"elsewhere", exchange(1, "tools/call", `{"name":"pass\"word"}`, `{"content":[{"type":"text","text":"jane@example.com"}]}`), known, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			report := judge.Judge(schema.Default(), []*wire.Log{conversation(t, tt.lines)}, tt.options)
			for _, id := range []string{credentials, personal} {
				seen := report[judge.Key{Requirement: id, Party: wire.Server}]
				if seen == nil {
					seen = new(ledger.Entry)
				}
				if seen.Exercised != tt.exercised[id] || len(seen.Findings) > 0 != slices.Contains(tt.broken, id) {
					t.Errorf("%s: exercised %d times, broken: %+v; want %d, %t", id, seen.Exercised, seen.Findings, tt.exercised[id], slices.Contains(tt.broken, id))
				}
			}
		})
	}
}

// A level that was asked for and never confirmed is out of the question some time after the stream
// has ended on which the answer would come.
func TestLevelNeverConfirmed(t *testing.T) {
	for over, answers := range map[string]string{transport.NameHTTP: "post:1", transport.NameSSE: "get:1"} {
		l := wire.NewTrace(wire.DefaultLimits).Connect(over, t.Name())
		asked, err := l.Append(wire.Event{
			Kind: wire.KindMessage, From: wire.Client, Stream: "post:1", Raw: []byte(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		any := func(int) bool { return true }
		later := asked.At + time.Hour
		for _, ended := range []bool{false, true} {
			if ended {
				if _, err := l.Append(wire.Event{Kind: wire.KindStreamEnd, From: wire.Client, Stream: answers}); err != nil {
					t.Fatal(err)
				}
			}
			set := judge.LevelsSet([]*wire.Log{l})
			if !set.Elsewhere("another", asked.At, asked.At, any) {
				t.Errorf("over %s, ended %t: the level cannot have come into force at once", over, ended)
			}
			if set.Elsewhere("another", later, later, any) == ended {
				t.Errorf("over %s, ended %t: the level can have come into force an hour later: %t", over, ended, !ended)
			}
		}
	}
}
