package match

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

var _ gomega.OmegaMatcher = HaveResult() // they work with And, Or and Not

func message(raw string) *wire.Event {
	return &wire.Event{Kind: wire.KindMessage, From: wire.Server, Msg: wire.Parse([]byte(raw)), Raw: []byte(raw)}
}

func head(status int) *wire.Event {
	return &wire.Event{Kind: wire.KindHTTPResponse, From: wire.Server, HTTP: &wire.Head{Status: status}}
}

// exchange is that of a ping, answered with a message, or for "" with nothing.
func exchange(status int, raw string) *client.Exchange {
	x := &client.Exchange{Request: message(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)}
	if status != 0 {
		x.Head = head(status)
	}
	if raw != "" {
		x.Response = message(raw)
	}
	return x
}

func response(status int, raw ...string) *transport.Response {
	r := &transport.Response{Status: status, Head: head(status)}
	for _, text := range raw {
		r.Messages = append(r.Messages, message(text))
	}
	return r
}

const (
	result  = `{"jsonrpc":"2.0","id":1,"result":{"isError":false,"n":1.0}}`
	failed  = `{"jsonrpc":"2.0","id":1,"result":{"isError":true}}`
	refused = `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Bad \"params\""}}`
	odd     = `{"jsonrpc":"2.0","id":1,"result":"pong"}`
	uncoded = `{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":""}}`
	told    = `{"jsonrpc":"2.0","method":"notifications/message"}`
)

// expectation is how each failure says what was expected.
var expectation = regexp.MustCompile(`, not |; .+ was expected|, where .+ was expected| was expected, and |; it was to be `)

func TestMatchers(t *testing.T) {
	is := func(raw string) func(*wire.Event) bool {
		return func(e *wire.Event) bool { return string(e.Raw) == raw }
	}
	for _, tt := range []struct {
		name    string
		matcher types.GomegaMatcher
		actual  any
		want    bool
		// The matcher's message for a failure: for To if it does not match, and for ToNot if it does.
		message string
	}{
		{"answered", BeAnswered(), exchange(0, refused), true, `ping was answered with error -32602: "Bad \"params\""; no JSON-RPC response was expected`},
		{"not answered", BeAnswered(), exchange(400, ""), false, "ping was answered with HTTP status 400 and no JSON-RPC response on any stream, not with a JSON-RPC response"},
		{"silence", BeAnswered(), exchange(0, ""), false, "ping was not answered; it was to be answered with a JSON-RPC response"},
		{"result", HaveResult(), exchange(0, failed), true, "ping was answered with a result with isError; an error was expected"},
		{"error for a result", HaveResult(), exchange(200, refused), false, `ping was answered with error -32602: "Bad \"params\"", not with a result`},
		{"result that is not an object", HaveResult(), exchange(0, odd), false, `ping was answered with a result that is not an object: "pong"; an object was expected`},
		{"request for a response", HaveResult(), exchange(0, told), false, "ping was answered with a message that is not a response, not with a result"},
		{"result over HTTP", HaveResult(), response(200, told, result), true, "the request was answered with HTTP status 200 and a result; an error was expected"},
		{"result with an error status", HaveResult(), response(500, result), false, "the request was answered with HTTP status 500, not with a result"},
		{"success", Succeed(), exchange(0, result), true, "ping was answered with a result; an error or a result with isError was expected"},
		{"tool that failed", Succeed(), exchange(0, failed), false, "ping was answered with a result with isError, not with a plain result"},
		{"error", HaveError(), exchange(0, refused), true, `ping was answered with error -32602: "Bad \"params\""; a result was expected`},
		{"no error", HaveError(), exchange(0, result), false, "ping was answered with a result, not with a JSON-RPC error"},
		{"code of a message", HaveErrorCode(-32700), message(refused), false, `the request was answered with error -32602: "Bad \"params\"", not with error -32700`},
		{"code", HaveErrorCode(-32602), exchange(0, refused), true, `ping was answered with error -32602: "Bad \"params\""; a result or another error was expected`},
		{"other code", HaveErrorCode(-32601, -32002), exchange(0, refused), false, `ping was answered with error -32602: "Bad \"params\"", not with error -32601 or -32002`},
		{"no code", HaveErrorCode(0), exchange(0, uncoded), false, `ping was answered with error "x": "", not with error 0`},
		{"code of a result", HaveErrorCode(-1, -2, -3), exchange(0, result), false, "ping was answered with a result, not with error -1, -2 or -3"},
		{"code over HTTP", HaveErrorCode(-32602), response(400, refused), true, "the request was answered with HTTP status 400 and error -32602; a result or another error was expected"},
		{"status", HaveHTTPStatus(400, 404), head(404), true, "the request was answered with HTTP status 404; another status was expected"},
		{"other status", HaveHTTPStatus(401), response(200, result), false, "the request was answered with HTTP status 200 and a result, not with 401"},
		{"accepted", BeAccepted(), response(202), true, "the request was answered with HTTP status 202; an error status was expected"},
		{"not accepted", BeAccepted(), head(302), false, "the request was answered with HTTP status 302, not with success"},
		{"turned down", BeTurnedDown(), response(400), true, "the request was answered with HTTP status 400; a status below 400 was expected"},
		{"not turned down", BeTurnedDown(), exchange(200, result), false, "ping was answered with a result, not with an error status"},
		{"other name", HaveErrorCode(-32700), Named("text that is not JSON", message(refused)), false, `text that is not JSON was answered with error -32602: "Bad \"params\"", not with error -32700`},
		{"fact", BeTrueBecause("the request is a %s, not a POST", "GET"), false, false, "the request is a GET, not a POST"},
		{"fact that must not be", BeFalseBecause("the request is a GET, not a POST"), true, false, "the request is a GET, not a POST"},
		{"fact where another is wanted", BeTrueBecause("the request is a GET, not a POST"), true, true, "true came, where false was expected"},
		{"member", HaveMember("n", 1), exchange(0, result), true, "the result of ping has n 1; another value, or none, was expected"},
		{"other member", HaveMember("isError", true), exchange(0, result), false, "the result of ping has isError false, not true"},
		{"no member", HaveMember("none", "x"), map[string]any{}, false, `the object has no member none; "x" was expected`},
		{"member of an error", HaveMember("isError", true), exchange(0, refused), false, `ping was answered with error -32602: "Bad \"params\"", not with a result whose isError is true`},
		{"same JSON", EqualJSON([]any{1, "a"}), []any{json.Number("1.0"), "a"}, true, `the same came, where something else was expected: [1.0,"a"]`},
		{"other items", EqualJSON([]any{"a", "b"}), []any{"a", "c"}, false, `what came differs: /1 is "c", not "b"`},
		{"one item less", EqualJSON([]any{"a", "b"}), []any{"a"}, false, `what came differs: /1 is missing, where "b" was expected`},
		{"one item more", EqualJSON([]any{"a"}), []any{"x", "a"}, false, `what came differs: /0 is "x", where nothing was expected`},
		{"many differences", EqualJSON(map[string]any{"a/": 1, "b": 2, "c": 3, "d": nil}), map[string]any{"a/": 2, "b": nil, "c": json.Number("9007199254740993"), "e": "x"}, false, ""},
		{"null", EqualJSON(nil), "x", false, `what came differs: it is "x", not null`},
		{"large numbers", EqualJSON(json.Number("9007199254740992")), json.Number("9007199254740993"), false, "what came differs: it is 9007199254740993, not 9007199254740992"},
		{"message", Carry("a log message", is(told)), []*wire.Event{message(result), message(told)}, true, "a log message came, where none was expected"},
		{"no message", Carry("a log message", is(told)), []*wire.Event{message(result)}, false, "a log message was expected, and did not come"},
		{"nothing at all", Carry("a log message", is(told)), []*wire.Event(nil), false, "a log message was expected, and did not come"},
	} {
		got, err := tt.matcher.Match(tt.actual)
		if err != nil || got != tt.want {
			t.Errorf("%s: matches: %t, %v", tt.name, got, err)
			continue
		}
		text := tt.matcher.FailureMessage
		if got {
			text = tt.matcher.NegatedFailureMessage
		}
		if said := text(tt.actual); !expectation.MatchString(said) {
			t.Errorf("%s: it does not say what was expected: %s", tt.name, said)
		}
		if tt.message != "" && text(tt.actual) != tt.message {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, text(tt.actual), tt.message)
		}
	}
}

// At most three differences are told, in whatever order they are found.
func TestManyDifferences(t *testing.T) {
	m := EqualJSON([]any{1, 2, 3, 4, 5})
	got := m.FailureMessage([]any{"a", "b", "c", "d", "e"})
	if want := `what came differs: /0 is "a", not 1; /1 is "b", not 2; /2 is "c", not 3; and 2 more`; got != want {
		t.Errorf("got %s", got)
	}
}

// A value that a matcher cannot match is a mistake of the check.
func TestMistakes(t *testing.T) {
	for _, m := range []types.GomegaMatcher{HaveResult(), HaveHTTPStatus(200), HaveMember("a", 1), Carry("x", nil), BeTrueBecause("it is false")} {
		if _, err := m.Match(7); err == nil {
			t.Errorf("%T matches a number", m)
		}
	}
}

func TestEvidence(t *testing.T) {
	x, r, e := exchange(200, result), response(200, result), message(told)
	x.Head.Seq, x.Response.Seq = 1, 2
	for _, tt := range []struct {
		actual any
		want   []*wire.Event
	}{
		{x, []*wire.Event{x.Request, x.Head, x.Response}},
		{r, []*wire.Event{r.Head, r.Messages[0]}},
		{e, []*wire.Event{e}},
		{Named("a ping", x), []*wire.Event{x.Request, x.Head, x.Response}},
		{7, nil},
	} {
		got := Evidence(tt.actual)
		if len(got) != len(tt.want) {
			t.Errorf("%T: %v", tt.actual, got)
			continue
		}
		for i := range got {
			if got[i] != tt.want[i] {
				t.Errorf("%T: %v", tt.actual, got)
			}
		}
	}
}
