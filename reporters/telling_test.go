package reporters

import (
	"testing"

	"github.com/mcpconform/mcpconform/suites/result"
)

// The events that a report shows in brief are those that decide: not the control, not what went
// before, and over HTTP no head that says nothing.
func TestTelling(t *testing.T) {
	event := func(from, stream, kind, text string) result.Event {
		return result.Event{Connection: "c1", From: from, Stream: stream, Kind: kind, Text: text}
	}
	sent := func(text string) result.Event { return event("client", "stdin", "message", text) }
	got := func(text string) result.Event { return event("server", "stdout", "message", text) }
	for name, test := range map[string]struct {
		message string
		events  []result.Event
		want    []int
	}{
		"a control behind it": {
			"with the params {}, tools/call was answered with error -32603: \"boom\"",
			[]result.Event{
				sent(`{"id":1,"method":"tools/call","params":{}}`), got(`{"id":1,"error":{"code":-32603,"message":"boom"}}`),
				sent(`{"id":2,"method":"tools/call","params":{"name":"echo"}}`), got(`{"id":2,"result":{}}`),
			},
			[]int{0, 1},
		},
		"what went before": {
			`the template states "a/b", but "demo://1" is "text/plain"`,
			[]result.Event{
				sent(`{"id":1,"method":"completion/complete"}`), got(`{"id":1,"result":{}}`),
				sent(`{"id":2,"method":"resources/read","params":{"uri":"demo://1"}}`), got(`{"id":2,"result":{"mimeType":"text/plain"}}`),
			},
			[]int{2, 3},
		},
		"nothing is named": {
			"a tool result embeds a resource, but the server does not declare resources",
			[]result.Event{
				got(`{"id":1,"result":{"capabilities":{}}}`), sent(`{"id":2,"method":"tools/call"}`), got(`{"id":2,"result":{}}`),
			},
			[]int{1, 2},
		},
		"not an answer": {
			"progress came well after the cancellation",
			[]result.Event{
				sent(`{"id":1,"method":"tools/call"}`), sent(`{"method":"notifications/cancelled"}`), got(`{"method":"notifications/progress"}`),
			},
			[]int{0, 1, 2},
		},
		"a header over HTTP": {
			"with the header Origin: http://evil.example, the request was answered with HTTP status 200",
			[]result.Event{
				event("client", "post:1", "message", `{"id":1,"method":"ping"}`),
				event("client", "post:1", "http-request", "POST /mcp\nAccept: */*\nOrigin: http://evil.example"),
				event("server", "post:1", "http-response", "200 OK\nDate: now"),
				event("server", "post:1", "message", `{"id":1,"result":{}}`),
			},
			[]int{1, 2},
		},
	} {
		v := &view{Run: &result.Run{Role: "server"}}
		f := &result.Finding{Message: test.message, Evidence: test.events}
		shown := v.telling(f)
		if len(shown) != len(test.want) {
			t.Errorf("%s: %d events are shown, want %v", name, len(shown), test.want)
			continue
		}
		for i, e := range shown {
			if e != &f.Evidence[test.want[i]] {
				t.Errorf("%s: event %d is %q", name, i, e.Text)
			}
		}
	}
}

func TestUnescaped(t *testing.T) {
	for text, want := range map[string]string{
		`error -32603: "[ { \"code\": \"invalid_type\" } ]", not`: `error -32603: '[{"code":"invalid_type"}]', not`,
		`{"message":"[\n  {\n    \"code\": 1\n  }\n]"}`:           `{"message":'[{"code":1}]'}`,
		`{"message":"cut [ { \"code\""}`:                          `{"message":'cut [{"code"'}`,
		`{"a":"plain","b":"tab\there"}`:                           `{"a":"plain","b":"tab\there"}`,
	} {
		if got := unescaped(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestGist(t *testing.T) {
	for _, test := range []struct{ kind, text, message, want string }{
		{"http-request", "POST /mcp\nAccept: */*\nOrigin: null", "with the header Origin: null", "POST /mcp · Origin: null"},
		{"message", "event: message\nid: 7\n{\"id\":1}", "x", `{"id":1}`},
		{"message", "event: message\nid: 7-abc\n{\"id\":1}", `the event with the id "7-abc"`, `id: 7-abc · {"id":1}`},
	} {
		if got := gist(&result.Event{Kind: test.kind, Text: test.text}, test.message); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
