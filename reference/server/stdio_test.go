package server_test

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type object = map[string]any

// dial opens a stdio connection to a server of its own. The session is closed
// with the test.
func dial(t *testing.T, o server.Options, c client.Options) *client.Session {
	t.Helper()
	d := &transport.Stdio{Launcher: transport.Func{Name: "reference", Run: server.New(o).RunStdio}}
	conn, err := d.Dial(t.Context(), wire.NewTrace(wire.DefaultLimits).Connect("stdio", t.Name()))
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	s := client.New(conn, c)
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// start dials and initializes.
func start(t *testing.T, o server.Options, c client.Options) *client.Session {
	t.Helper()
	s := dial(t, o, c)
	if _, err := s.Initialize(t.Context()); err != nil {
		t.Fatalf("initialize: %v", err)
	}
	return s
}

func call(t *testing.T, s *client.Session, method string, params any) *client.Exchange {
	t.Helper()
	x, err := s.Call(t.Context(), method, params)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return x
}

func tool(t *testing.T, s *client.Session, name string, arguments object) object {
	t.Helper()
	params := object{"name": name}
	if arguments != nil {
		params["arguments"] = arguments
	}
	x := call(t, s, "tools/call", params)
	if x.Result() == nil {
		t.Fatalf("tool %s: no result, but %s", name, x.Response.Raw)
	}
	return x.Result()
}

// sent returns what the server has sent so far, responses left out.
func sent(s *client.Session) []*wire.Message {
	var all []*wire.Message
	for _, e := range s.Log().Events() {
		if e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.Method != "" {
			all = append(all, e.Msg)
		}
	}
	return all
}

func methodsOf(messages []*wire.Message) []string {
	var methods []string
	for _, m := range messages {
		methods = append(methods, m.Method)
	}
	return methods
}

// everything is a client that can do all.
func everything() client.Options {
	return client.Options{
		Capabilities: object{"roots": object{"listChanged": true}, "sampling": object{}, "elicitation": object{}},
		Answers: map[string]client.Answer{
			"roots/list": func(context.Context, any) (any, *wire.Error) {
				return object{"roots": []any{object{"uri": "file:///tmp"}}}, nil
			},
			"sampling/createMessage": func(context.Context, any) (any, *wire.Error) {
				return object{"role": "assistant", "model": "m", "content": object{"type": "text", "text": "hi"}}, nil
			},
			"elicitation/create": func(context.Context, any) (any, *wire.Error) {
				return object{"action": "accept", "content": object{"username": "u", "email": "u@example.org"}}, nil
			},
		},
	}
}

func TestInitialize(t *testing.T) {
	for asked, want := range map[string]string{
		"2025-06-18": "2025-06-18", "2024-11-05": "2024-11-05", "1.0.0": "2025-06-18", "2999-01-01": "2025-06-18",
	} {
		s := start(t, server.Options{}, client.Options{Version: asked})
		if got := s.Init.Result()["protocolVersion"]; got != want {
			t.Errorf("asked for %s: got %v, want %s", asked, got, want)
		}
		for _, path := range []string{"tools.listChanged", "resources.subscribe", "resources.listChanged", "prompts.listChanged", "logging", "completions"} {
			if !s.Capability(path) {
				t.Errorf("capability %s is not declared", path)
			}
		}
	}
}

func TestLeftOutCapabilityIsRefused(t *testing.T) {
	s := start(t, server.Options{Without: []string{"tools", "resources.subscribe"}}, client.Options{})
	if s.Capability("tools") || s.Capability("resources.subscribe") || !s.Capability("resources") {
		t.Fatalf("declared: %v", s.Init.Result()["capabilities"])
	}
	for method, want := range map[string]int64{"tools/list": -32601, "resources/subscribe": -32601} {
		if x := call(t, s, method, object{"uri": "test://static-text"}); x.Error() == nil || x.Error().Code != want {
			t.Errorf("%s: %s, want error %d", method, x.Response.Raw, want)
		}
	}
}

// TestErrors sends what must be refused to an initialized session, one after
// the other, and a ping behind each.
func TestErrors(t *testing.T) {
	s := start(t, server.Options{}, client.Options{})
	tests := []struct {
		name, method string
		params       any
		code         int64
	}{
		{"unknown method", "no/such", nil, -32601},
		{"second initialize", "initialize", s.InitializeParams(), -32600},
		{"params are an array", "ping", []any{}, -32600},
		{"_meta is no object", "ping", object{"_meta": 3}, -32602},
		{"progress token", "ping", object{"_meta": object{"progressToken": 1.5}}, -32602},
		{"unknown tool", "tools/call", object{"name": "none"}, -32602},
		{"tool without name", "tools/call", nil, -32602},
		{"tool argument missing", "tools/call", object{"name": "echo"}, -32602},
		{"tool argument of another type", "tools/call", object{"name": "echo", "arguments": object{"text": 1}}, -32602},
		{"tool argument beyond all numbers", "tools/call", object{"name": "slow", "arguments": object{"seconds": json.Number("1e999999999")}}, -32602},
		{"arguments are an array", "tools/call", object{"name": "echo", "arguments": []any{}}, -32602},
		{"tools cursor", "tools/list", object{"cursor": "x"}, -32602},
		{"tools cursor type", "tools/list", object{"cursor": 1}, -32602},
		{"resources cursor", "resources/list", object{"cursor": "x"}, -32602},
		{"templates cursor", "resources/templates/list", object{"cursor": "x"}, -32602},
		{"prompts cursor", "prompts/list", object{"cursor": "x"}, -32602},
		{"unknown resource", "resources/read", object{"uri": "test://none"}, -32002},
		{"no URI", "resources/read", object{"uri": "../../etc/passwd"}, -32002},
		{"dot segments", "resources/read", object{"uri": "test://template/../data"}, -32002},
		{"uri is a number", "resources/read", object{"uri": 1}, -32602},
		{"uri is missing", "resources/subscribe", object{}, -32602},
		{"unknown prompt", "prompts/get", object{"name": "none"}, -32602},
		{"prompt argument missing", "prompts/get", object{"name": "test_prompt_with_arguments"}, -32602},
		{"prompt argument of another type", "prompts/get", object{"name": "travel", "arguments": object{"country": 1}}, -32602},
		{"level", "logging/setLevel", object{"level": "loud"}, -32602},
		{"completion without argument", "completion/complete", object{"ref": object{"type": "ref/prompt", "name": "travel"}}, -32602},
		{"completion of unknown prompt", "completion/complete", object{"ref": object{"type": "ref/prompt", "name": "none"}, "argument": object{"name": "a", "value": ""}}, -32602},
		{"completion of unknown type", "completion/complete", object{"ref": object{"type": "ref/x"}, "argument": object{"name": "a", "value": ""}}, -32602},
		{"completion value", "completion/complete", object{"ref": object{"type": "ref/prompt", "name": "travel"}, "argument": object{"name": "city", "value": 1}}, -32602},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			x := call(t, s, test.method, test.params)
			if x.Error() == nil || x.Error().Code != test.code {
				t.Errorf("got %s, want error %d", x.Response.Raw, test.code)
			}
			if len(x.Response.Msg.Issues) > 0 {
				t.Errorf("issues: %v", x.Response.Msg.Issues)
			}
			if err := s.Fence(t.Context()); err != nil {
				t.Errorf("ping: %v", err)
			}
		})
	}
}

// TestRawLines writes lines and compares every line that comes back before the
// answer to a ping.
func TestRawLines(t *testing.T) {
	tests := []struct {
		name, line string
		want       string // error code and id, or "silent"
	}{
		{"not JSON", `{"jsonrpc":`, "-32700 null"},
		{"not UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":{\"x\":\"\xff\"}}", "-32700 null"},
		{"too deep", strings.Repeat("[", 100_000), "-32700 null"},
		{"number", `17`, "-32600 null"},
		{"batch", `[{"jsonrpc":"2.0","id":7000,"method":"ping"}]`, "-32600 null"},
		{"no method", `{"jsonrpc":"2.0","id":7000}`, "-32600 7000"},
		{"numeric method", `{"jsonrpc":"2.0","id":7000,"method":1}`, "-32600 7000"},
		{"wrong jsonrpc", `{"jsonrpc":"1.0","id":"a","method":"ping"}`, `-32600 "a"`},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, "-32600 null"},
		{"fractional id", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, "-32600 null"},
		{"other case", `{"jsonrpc":"2.0","ID":7,"METHOD":"ping"}`, "-32600 null"},
		{"method and result", `{"jsonrpc":"2.0","id":7000,"method":"ping","result":{}}`, "-32600 7000"},
		{"notification of wrong version", `{"jsonrpc":"1.0","method":"notifications/initialized"}`, "silent"},
		{"unknown notification", `{"jsonrpc":"2.0","method":"notifications/none"}`, "silent"},
		{"request method without id", `{"jsonrpc":"2.0","method":"tools/list"}`, "silent"},
		{"malformed cancellation", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}`, "silent"},
		{"cancellation of nothing", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{"a":[]}}}`, "silent"},
		{"stray response", `{"jsonrpc":"2.0","id":99,"result":{}}`, "silent"},
		{"malformed response", `{"jsonrpc":"2.0","id":99,"result":4}`, "silent"},
		{"stray error", `{"jsonrpc":"2.0","id":null,"error":{}}`, "silent"},
		{"blank", "  ", "silent"},
	}
	s := start(t, server.Options{}, client.Options{})
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			from := s.Log().Len()
			if _, err := s.Send(t.Context(), []byte(test.line)); err != nil {
				t.Fatal(err)
			}
			ping, err := s.Start(t.Context(), "ping", nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.AwaitEvent(t.Context(), from, "pong", func(e *wire.Event) bool {
				return e.From == wire.Server && e.Kind == wire.KindMessage && e.Msg.ID.Key() == ping.ID.Key()
			}); err != nil {
				t.Fatal(err)
			}
			got := "silent"
			for _, e := range s.Log().Events()[from:] {
				if e.From == wire.Server && e.Kind == wire.KindMessage && e.Msg.ID.Key() != ping.ID.Key() {
					code, _ := wire.At(e.Msg.Value(), "error", "code").(json.Number)
					got = code.String() + " " + e.Msg.ID.String()
				}
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestFraming(t *testing.T) {
	s := dial(t, server.Options{}, client.Options{})
	conn := s.Conn.(*transport.StdioConn)
	ping := `{"jsonrpc":"2.0","id":"%","method":"ping"}`
	p := func(id string) string { return strings.Replace(ping, "%", id, 1) }
	for _, chunks := range [][]string{
		{p("crlf") + "\r\n"},
		{p("split")[:11], p("split")[11:], "\n"},
		{p("two") + "\n" + p("two-b") + "\n"},
		{p("a\u2028b\u0085c") + "\n"},
	} {
		from := s.Log().Len()
		var bytes [][]byte
		for _, c := range chunks {
			bytes = append(bytes, []byte(c))
		}
		if _, err := conn.Write(t.Context(), transport.Outgoing{Raw: []byte(chunks[0])}, bytes...); err != nil {
			t.Fatal(err)
		}
		last := strings.TrimSpace(strings.Join(chunks, ""))
		want := wire.Parse([]byte(last[strings.LastIndex(last, "\n")+1:])).ID
		e, err := s.AwaitEvent(t.Context(), from, "answer", func(e *wire.Event) bool {
			return e.From == wire.Server && e.Kind == wire.KindMessage && e.Msg.ID == want
		})
		if err != nil || e.Msg.Kind != wire.Result {
			t.Errorf("%q: %v", chunks, err)
		}
	}
}

// The last line of a client is a message without its newline, too, unless the rest of it was lost with the client.
func TestLastLine(t *testing.T) {
	for cause, want := range map[error]int{io.EOF: 1, io.ErrUnexpectedEOF: 0} {
		trace := wire.NewTrace(wire.DefaultLimits)
		stdin, feed := io.Pipe()
		served := make(chan error, 1)
		go func() {
			served <- server.New(server.Options{Trace: trace}).RunStdio(t.Context(), stdin, io.Discard, io.Discard)
		}()
		if _, err := io.WriteString(feed, "\n{"); err != nil {
			t.Fatal(err)
		}
		_ = feed.CloseWithError(cause)
		if err := <-served; err != nil {
			t.Errorf("%v: %v", cause, err)
		}
		got := 0
		for _, e := range trace.Logs()[0].Events() {
			if e.Kind == wire.KindMessage && string(e.Raw) == "{" {
				got++
			}
		}
		if got != want {
			t.Errorf("%v: the last line is recorded %d times, not %d", cause, got, want)
		}
	}
}

func TestTooLongLine(t *testing.T) {
	s := dial(t, server.Options{MaxMessage: 1000}, client.Options{})
	from := s.Log().Len()
	if _, err := s.Send(t.Context(), []byte(`{"x":"`+strings.Repeat("y", 200_000)+`"}`)); err != nil {
		t.Fatal(err)
	}
	e, err := s.AwaitEvent(t.Context(), from, "error", func(e *wire.Event) bool {
		return e.From == wire.Server && e.Kind == wire.KindMessage
	})
	if err != nil || e.Msg.Error == nil || e.Msg.Error.Code != -32600 {
		t.Fatalf("got %v, %v", e, err)
	}
	if err := s.Fence(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestBeforeInitialize(t *testing.T) {
	s := dial(t, server.Options{}, client.Options{})
	if err := s.Fence(t.Context()); err != nil {
		t.Errorf("ping: %v", err)
	}
	if x := call(t, s, "tools/list", nil); x.Error() == nil || x.Error().Code != -32600 {
		t.Errorf("tools/list before initialize: %s", x.Response.Raw)
	}
	if x := call(t, s, "initialize", object{"protocolVersion": "2025-06-18"}); x.Error() == nil || x.Error().Code != -32602 {
		t.Errorf("initialize without capabilities: %s", x.Response.Raw)
	}
	if _, err := s.Initialize(t.Context()); err != nil {
		t.Errorf("initialize after all: %v", err)
	}
}

// list walks through a paginated list.
func list(t *testing.T, s *client.Session, method, member string) (items []any, pages int) {
	t.Helper()
	params := object{}
	for {
		result := call(t, s, method, params).Result()
		page, _ := result[member].([]any)
		items = append(items, page...)
		pages++
		next, ok := result["nextCursor"].(string)
		if !ok || pages > 100 {
			return items, pages
		}
		again := call(t, s, method, object{"cursor": next}).Result()
		if diff := cmp.Diff(again, call(t, s, method, object{"cursor": next}).Result()); diff != "" {
			t.Errorf("%s: the same cursor gives another page:\n%s", method, diff)
		}
		params = object{"cursor": next}
	}
}

func TestLists(t *testing.T) {
	s := start(t, server.Options{}, client.Options{})
	for _, l := range []struct {
		method, member, key string
		atLeast             int
	}{
		{"tools/list", "tools", "name", 20},
		{"resources/list", "resources", "uri", 6},
		{"resources/templates/list", "resourceTemplates", "uriTemplate", 5},
		{"prompts/list", "prompts", "name", 7},
	} {
		items, pages := list(t, s, l.method, l.member)
		seen := make(map[any]bool)
		for _, item := range items {
			seen[wire.At(item, l.key)] = true
		}
		if len(items) < l.atLeast || len(seen) != len(items) || pages < 2 {
			t.Errorf("%s: %d items, %d of them different, on %d pages", l.method, len(items), len(seen), pages)
		}
	}
	cursor := call(t, s, "tools/list", nil).Result()["nextCursor"]
	if x := call(t, s, "prompts/list", object{"cursor": cursor}); x.Error() == nil || x.Error().Code != -32602 {
		t.Errorf("a cursor of tools/list with prompts/list: %s", x.Response.Raw)
	}
}

func TestEveryToolPromptAndResourceWorks(t *testing.T) {
	s := start(t, server.Options{}, everything())
	arguments := map[string]object{
		"test_sampling": {"prompt": "p"}, "test_elicitation": {"message": "m"}, "echo": {"text": "Grüße 🌍"},
		"sum": {"a": 1, "b": 2.5}, "slow": {"seconds": 0.01},
	}
	want := map[string]string{
		"test_sampling": "LLM response: hi", "test_roots": "1 roots: file:///tmp", "echo": "Grüße 🌍", "sum": `{"sum":3.5}`,
		"test_elicitation": `User response: accept, {"email":"u@example.org","username":"u"}`,
	}
	tools, _ := list(t, s, "tools/list", "tools")
	for _, item := range tools {
		name := wire.At(item, "name").(string)
		result := tool(t, s, name, arguments[name])
		if failed := result["isError"] == true; failed != (name == "test_error_handling") {
			t.Errorf("tool %s: %v", name, result)
		}
		first, _ := result["content"].([]any)[0].(object)
		if text, ok := want[name]; ok && first["text"] != text {
			t.Errorf("tool %s: got %v, want %s", name, first, text)
		}
	}
	if got := tool(t, s, "sum", arguments["sum"])["structuredContent"]; wire.At(got, "sum") != json.Number("3.5") {
		t.Errorf("structured content: %v", got)
	}
	resources, _ := list(t, s, "resources/list", "resources")
	for _, item := range resources {
		if x := call(t, s, "resources/read", object{"uri": wire.At(item, "uri")}); x.Result() == nil {
			t.Errorf("read %v: %s", item, x.Response.Raw)
		}
	}
	if x := call(t, s, "resources/read", object{"uri": "test://template/42/data"}); x.Result() == nil {
		t.Errorf("read by template: %s", x.Response.Raw)
	}
	prompts, _ := list(t, s, "prompts/list", "prompts")
	for _, item := range prompts {
		given := object{}
		all, _ := wire.At(item, "arguments").([]any)
		for _, a := range all {
			given[wire.At(a, "name").(string)] = "test://x"
		}
		if x := call(t, s, "prompts/get", object{"name": wire.At(item, "name"), "arguments": given}); x.Result() == nil {
			t.Errorf("get %v: %s", item, x.Response.Raw)
		}
	}
	followsTheSchema(t, s.Log())
}

// followsTheSchema validates every message of the server.
func followsTheSchema(t *testing.T, log *wire.Log) {
	t.Helper()
	revision := schema.Default()
	asked := make(map[string]string) // methods of the client's requests by id
	for _, e := range log.Events() {
		switch {
		case e.Kind != wire.KindMessage:
			continue
		case e.From == wire.Client && e.Msg.Kind != wire.Request:
			continue
		case e.From == wire.Client:
			asked[e.Msg.ID.Key()] = e.Msg.Method
			continue
		}
		for _, issue := range e.Msg.Issues {
			t.Errorf("%s: %s", e.Raw, issue.Detail)
		}
		var definition string
		value := e.Msg.Value()
		known := true
		switch e.Msg.Kind {
		case wire.Request:
			definition, known = schema.Default().Request(schema.Server, e.Msg.Method)
		case wire.Notification:
			definition, known = schema.Default().Notification(schema.Server, e.Msg.Method)
		case wire.Result:
			definition, known = schema.Default().Result(asked[e.Msg.ID.Key()])
			value = e.Msg.Result
		default:
			definition = "JSONRPCError"
		}
		if !known {
			t.Errorf("no definition for %s", e.Raw)
		}
		for _, violation := range revision.Validate(definition, value) {
			t.Errorf("%s: %+v", e.Raw, violation)
		}
	}
}

func TestAsksOnlyWhatTheClientDeclared(t *testing.T) {
	s := start(t, server.Options{}, client.Options{})
	for name, arguments := range map[string]object{
		"test_sampling": {"prompt": "p"}, "test_elicitation": {"message": "m"}, "test_roots": nil,
	} {
		if result := tool(t, s, name, arguments); result["isError"] != true {
			t.Errorf("%s: %v", name, result)
		}
	}
	if asked := methodsOf(sent(s)); len(asked) > 0 {
		t.Errorf("the server sent %v", asked)
	}
}

func TestElicitationOutcomes(t *testing.T) {
	for name, test := range map[string]struct {
		answer any
		failed bool
	}{
		"decline":    {object{"action": "decline"}, false},
		"cancel":     {object{"action": "cancel"}, false},
		"unfitting":  {object{"action": "accept", "content": object{"username": 1}}, true},
		"no address": {object{"action": "accept", "content": object{"username": "u", "email": "sample"}}, true},
		"unknown":    {object{"action": "reject"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := everything()
			c.Answers["elicitation/create"] = func(context.Context, any) (any, *wire.Error) { return test.answer, nil }
			s := start(t, server.Options{}, c)
			result := tool(t, s, "test_elicitation", object{"message": "m"})
			if (result["isError"] == true) != test.failed {
				t.Errorf("got %v", result)
			}
		})
	}
}

func TestListChanges(t *testing.T) {
	s := start(t, server.Options{}, client.Options{})
	for _, test := range []struct{ tool, method, member string }{
		{"toggle_tool", "tools/list", "tools"},
		{"toggle_resource", "resources/list", "resources"},
		{"toggle_prompt", "prompts/list", "prompts"},
	} {
		before, _ := list(t, s, test.method, test.member)
		for _, grown := range []int{1, 0} {
			from := len(sent(s))
			tool(t, s, test.tool, nil)
			after, _ := list(t, s, test.method, test.member)
			if len(after) != len(before)+grown {
				t.Errorf("%s: %d items, then %d", test.tool, len(before), len(after))
			}
			want := []string{"notifications/" + test.member + "/list_changed"}
			if diff := cmp.Diff(want, methodsOf(sent(s)[from:])); diff != "" {
				t.Errorf("%s:\n%s", test.tool, diff)
			}
		}
	}
}

func TestSessionsAreIndependent(t *testing.T) {
	one := server.New(server.Options{})
	connect := func() *client.Session {
		d := &transport.Stdio{Launcher: transport.Func{Name: "reference", Run: one.RunStdio}}
		conn, err := d.Dial(t.Context(), wire.NewTrace(wire.DefaultLimits).Connect("stdio", ""))
		if err != nil {
			t.Fatal(err)
		}
		s := client.New(conn, client.Options{})
		if _, err := s.Initialize(t.Context()); err != nil {
			t.Fatal(err)
		}
		return s
	}
	a, b := connect(), connect()
	tool(t, a, "toggle_tool", nil)
	inA, _ := list(t, a, "tools/list", "tools")
	inB, _ := list(t, b, "tools/list", "tools")
	if len(inA) != len(inB)+1 || len(sent(b)) > 0 {
		t.Errorf("%d and %d tools; the other session was sent %v", len(inA), len(inB), methodsOf(sent(b)))
	}
	if n := len(one.Sessions()); n != 2 {
		t.Errorf("%d sessions", n)
	}
	for _, s := range []*client.Session{a, b} {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n := len(one.Sessions()); n != 0 {
		t.Errorf("%d sessions remain", n)
	}
}

func TestSubscription(t *testing.T) {
	s := start(t, server.Options{}, client.Options{})
	watched := object{"uri": "test://watched-resource"}
	first := call(t, s, "resources/read", watched).Result()
	tool(t, s, "update_resource", nil)
	call(t, s, "resources/subscribe", watched)
	tool(t, s, "update_resource", nil)
	call(t, s, "resources/unsubscribe", watched)
	tool(t, s, "update_resource", nil)
	if diff := cmp.Diff([]string{"notifications/resources/updated"}, methodsOf(sent(s))); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(first, call(t, s, "resources/read", watched).Result()) {
		t.Error("the contents did not change")
	}
}

func TestLogLevels(t *testing.T) {
	s := start(t, server.Options{}, client.Options{})
	for level, want := range map[string]int{"debug": 8, "warning": 5, "emergency": 1} {
		call(t, s, "logging/setLevel", object{"level": level})
		from := len(sent(s))
		tool(t, s, "log_levels", nil)
		if got := len(sent(s)) - from; got != want {
			t.Errorf("level %s: %d messages, want %d", level, got, want)
		}
	}
}

func TestProgress(t *testing.T) {
	s := start(t, server.Options{}, client.Options{})
	tool(t, s, "test_tool_with_progress", nil)
	if n := len(sent(s)); n > 0 {
		t.Errorf("%d notifications without a token", n)
	}
	for _, token := range []any{"token", json.Number("7")} {
		from := len(sent(s))
		call(t, s, "tools/call", object{"name": "test_tool_with_progress", "_meta": object{"progressToken": token}})
		if err := s.Fence(t.Context()); err != nil {
			t.Fatal(err)
		}
		var values []string
		for _, m := range sent(s)[from:] {
			if wire.At(m.Params, "progressToken") != token {
				t.Errorf("token %v came back as %v", token, wire.At(m.Params, "progressToken"))
			}
			values = append(values, string(wire.At(m.Params, "progress").(json.Number)))
		}
		if diff := cmp.Diff([]string{"0", "50", "100"}, values); diff != "" {
			t.Error(diff)
		}
	}
}

func TestCancellation(t *testing.T) {
	s := start(t, server.Options{}, client.Options{})
	p, err := s.Start(t.Context(), "tools/call", object{
		"name": "slow", "arguments": object{"seconds": 60}, "_meta": object{"progressToken": "t"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AwaitNotification(t.Context(), p.Request.Seq, "notifications/progress"); err != nil {
		t.Fatal(err)
	}
	if err := s.Notify(t.Context(), "notifications/cancelled", object{"requestId": p.ID.String()}); err != nil {
		t.Fatal(err) // the id as a string is another one: ignored
	}
	if err := s.Notify(t.Context(), "notifications/cancelled", object{"requestId": json.RawMessage(p.ID.String())}); err != nil {
		t.Fatal(err)
	}
	if err := s.Fence(t.Context()); err != nil {
		t.Fatal(err)
	}
	from := s.Log().Len()
	// The slow tool is known to have ended once its id is free again.
	for {
		x, err := s.Call(t.Context(), "ping", nil)
		if err != nil || x.Result() == nil {
			t.Fatalf("ping: %v", err)
		}
		q, err := s.StartID(t.Context(), p.ID, "ping", nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := q.Await(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if again.Result() != nil {
			if _, isTool := again.Result()["content"]; isTool {
				t.Error("the cancelled request was answered")
			}
			break
		}
	}
	for _, e := range s.Log().Events()[from:] {
		if e.Kind == wire.KindMessage && e.Msg.Method == "notifications/progress" {
			t.Error("progress after the cancellation")
		}
	}
}

func TestRootsAreFetchedAnewAfterAChange(t *testing.T) {
	s := start(t, server.Options{}, everything())
	tool(t, s, "test_roots", nil)
	from := s.Log().Len()
	if err := s.Notify(t.Context(), "notifications/roots/list_changed", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AwaitNotification(t.Context(), from, "roots/list"); err != nil {
		t.Error(err)
	}
}

func TestCompletion(t *testing.T) {
	s := start(t, server.Options{}, client.Options{})
	ask := func(ref object, name, value string, context object) object {
		params := object{"ref": ref, "argument": object{"name": name, "value": value}}
		if context != nil {
			params["context"] = object{"arguments": context}
		}
		o, _ := call(t, s, "completion/complete", params).Result()["completion"].(object)
		return o
	}
	travel := object{"type": "ref/prompt", "name": "travel"}
	if diff := cmp.Diff(object{"values": []any{"Kyoto"}, "total": json.Number("1"), "hasMore": false},
		ask(travel, "city", "k", object{"country": "Japan"})); diff != "" {
		t.Error(diff)
	}
	many := ask(object{"type": "ref/resource", "uri": "test://template/{id}/data"}, "id", "", nil)
	if values, _ := many["values"].([]any); len(values) != 100 || many["hasMore"] != true || many["total"] != json.Number("150") {
		t.Errorf("%d values, total %v, hasMore %v", len(values), many["total"], many["hasMore"])
	}
}

// TestPipedInput answers all that stands in a file and then exits.
func TestPipedInput(t *testing.T) {
	input := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"test_simple_text"}}
{"jsonrpc":"2.0","id":3,"method":"ping"}`
	var out strings.Builder
	trace := wire.NewTrace(wire.DefaultLimits)
	err := server.New(server.Options{Trace: trace}).RunStdio(t.Context(), strings.NewReader(input), &out, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for line := range strings.Lines(out.String()) {
		ids = append(ids, wire.Parse([]byte(line)).ID.String())
	}
	if diff := cmp.Diff([]string{"1", "2", "3"}, ids); diff != "" {
		t.Error(diff)
	}
	var kinds []string
	for _, e := range trace.Logs()[0].Events() {
		kinds = append(kinds, string(e.From)+" "+string(e.Kind)+" "+e.Stream)
	}
	slices.Sort(kinds)
	if diff := cmp.Diff([]string{
		"client close stdin", "client message stdin", "client message stdin", "client message stdin", "client message stdin",
		"server close stdout", "server message stdout", "server message stdout", "server message stdout",
	}, kinds); diff != "" {
		t.Error(diff)
	}
}

// TestContextEnds tests that the end of the context ends a server whose stdin and stdout are stuck, with the answer
// of a handler or with a refusal.
func TestContextEnds(t *testing.T) {
	for _, line := range []string{pingBody, "nonsense"} {
		in, feed := io.Pipe()
		stuck, out := io.Pipe()
		defer func() { _, _ = feed.Close(), stuck.Close() }()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- server.New(server.Options{}).RunStdio(ctx, in, out, io.Discard) }()
		if _, err := io.WriteString(feed, strings.Repeat(line+"\n", 3)); err != nil {
			t.Fatal(err)
		}
		// The first answer is under way, and gets stuck.
		if _, err := stuck.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		cancel()
		select {
		case err := <-done:
			if err == nil {
				t.Error("no error")
			}
		case <-time.After(30 * time.Second):
			t.Fatal("the server goes on")
		}
	}
}
