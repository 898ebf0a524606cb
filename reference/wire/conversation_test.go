package wire_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// event reads one event of a literal trace. Over stdio a line is "> message" of
// the client or "< message" of the server; over HTTP it begins with the stream,
// and may also be "GET", with "after ID" when it resumes a stream, "200 TYPE", "#ID"
// before the message of an SSE event, "body TEXT" of the server and "end".
func event(t testing.TB, line string) wire.Event {
	t.Helper()
	e := wire.Event{Kind: wire.KindMessage}
	if first, rest, _ := strings.Cut(line, " "); strings.Contains(first, ":") {
		e.Stream, line = first, rest
	}
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case word == ">" || word == "<":
		e.From = map[string]wire.Party{">": wire.Client, "<": wire.Server}[word]
		if e.Stream == "" {
			e.Stream = map[string]string{">": "stdin", "<": "stdout"}[word]
		}
		e.Raw = []byte(rest)
	case strings.HasPrefix(word, "#"):
		e.From, e.SSE, e.Raw = wire.Server, &wire.SSE{ID: word[1:], HasID: true}, []byte(rest)
	case word == "body":
		e.Kind, e.From, e.Raw = wire.KindBody, wire.Server, []byte(rest)
	case word == "end":
		e.Kind, e.From = wire.KindStreamEnd, wire.Server
	case word == "POST" || word == "GET":
		e.Kind, e.From, e.HTTP = wire.KindHTTPRequest, wire.Client, &wire.Head{Method: word, Header: make(http.Header)}
		if id, resumes := strings.CutPrefix(rest, "after "); resumes {
			e.HTTP.Header.Set("Last-Event-ID", id)
		}
	default:
		status, err := strconv.Atoi(word)
		if err != nil {
			t.Fatalf("no event: %s", line)
		}
		e.Kind, e.From = wire.KindHTTPResponse, wire.Server
		e.HTTP = &wire.Head{Status: status, Header: http.Header{"Content-Type": {rest}}}
	}
	return e
}

// literal returns the log of a literal trace, an event a line.
func literal(t testing.TB, transport, lines string) *wire.Log {
	t.Helper()
	l := wire.NewTrace(wire.DefaultLimits).Connect(transport, "")
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if _, err := l.Append(event(t, line)); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func request(id, method string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q}`, id, method)
}

func result(id string) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id) }

// told says in a line for each exchange and each stray which events they hold.
func told(c *wire.Conversation) []string {
	at := func(events ...*wire.Event) string {
		var list []string
		for _, e := range events {
			list = append(list, strconv.Itoa(e.Seq))
		}
		return strings.Join(list, ",")
	}
	var lines []string
	for _, x := range c.Exchanges {
		line := at(x.Request) + " " + x.Method()
		for _, part := range []struct {
			what   string
			events []*wire.Event
		}{
			{"head", []*wire.Event{x.Head}}, {"body", []*wire.Event{x.Body}}, {"answered", []*wire.Event{x.Response}}, {"again", x.Further},
			{"cancelled", []*wire.Event{x.Cancelled}}, {"progress", x.Progress},
		} {
			if len(part.events) > 0 && part.events[0] != nil {
				line += " " + part.what + " " + at(part.events...)
			}
		}
		if x.Resembling {
			line += " resembling"
		}
		lines = append(lines, line)
	}
	for _, s := range c.Stray {
		line := "stray " + at(s.Event)
		if s.Cause != nil {
			line += " after " + at(s.Cause)
		}
		if s.Awaited {
			line += " awaited"
		}
		if x := c.Meant(s.Event); x != nil {
			line += " means " + at(x.Request)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestConversation(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":"t"}}}`
	const progress = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}`
	const cancelled = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
	const noted = `{"jsonrpc":"2.0","method":"notifications/x"}`
	const unnamed = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m"}}`
	for _, c := range []struct {
		name, transport, trace string
		want                   []string
	}{
		{"answered", "stdio", "> " + request("1", "ping") + "\n< " + result("1"), []string{"0 ping answered 1"}},
		{"unanswered", "stdio", "> " + request("1", "ping"), []string{"0 ping"}},
		{"an id that is spelled differently", "stdio", "> " + request("1", "ping") + "\n< " + result("1.0"), []string{"0 ping answered 1"}},
		{"an id of another type", "stdio", "> " + request("1", "ping") + "\n< " + result(`"1"`), []string{"0 ping answered 1 resembling"}},
		{
			"an id of another type once more", "stdio", "> " + request("1", "ping") + "\n< " + result("1") + "\n< " + result(`"1"`),
			[]string{"0 ping answered 1", "stray 2 after 0"},
		},
		{
			"two requests answered with an id of another type", "stdio",
			"> " + request("1", "a") + "\n> " + request("1", "b") + "\n< " + result(`"1"`),
			[]string{"0 a answered 2 resembling", "1 b"},
		},
		{
			"of two types the exact one", "stdio", "> " + request("1", "a") + "\n> " + request(`"1"`, "b") + "\n< " + result("1") + "\n< " + result(`"1"`),
			[]string{"0 a answered 2", "1 b answered 3"},
		},
		{
			"an initialize without an id before another one", "stdio",
			`> {"jsonrpc":"2.0","method":"initialize"}` + "\n> " + request("1", "initialize") + "\n< " + `{"jsonrpc":"2.0","id":null,"result":{"protocolVersion":"2025-06-18"}}` +
				"\n< " + `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}`,
			[]string{"1 initialize answered 3", "stray 2 after 1 awaited"},
		},
		{
			"an empty id", "stdio", "> " + request(`""`, "a") + "\n< " + unnamed,
			[]string{"0 a", "stray 1 after 0 awaited means 0"},
		},
		{"two responses", "stdio", "> " + request("1", "ping") + "\n< " + result("1") + "\n< " + result("1"), []string{"0 ping answered 1 again 2"}},
		{
			"an id used twice at once", "stdio", "> " + request("1", "a") + "\n> " + request("1", "b") + "\n< " + result("1") + "\n< " + result("1") + "\n< " + result("1"),
			[]string{"0 a answered 2", "1 b answered 3 again 4"},
		},
		{
			"an id used three times at once", "stdio", "> " + request("1", "a") + "\n> " + request("1", "b") + "\n> " + request("1", "c") + "\n< " + result("1") + "\n< " + result("1"),
			[]string{"0 a answered 3", "1 b answered 4", "2 c"},
		},
		{
			"an id used again later", "stdio", "> " + request("1", "a") + "\n< " + result("1") + "\n> " + request("1", "b") + "\n< " + result("1"),
			[]string{"0 a answered 1", "2 b answered 3"},
		},
		{
			"both sides with one id", "stdio", "> " + request("1", "a") + "\n< " + request("1", "b") + "\n> " + result("1") + "\n< " + result("1"),
			[]string{"0 a answered 3", "1 b answered 2"},
		},
		{
			"a response to nothing", "stdio", "> " + noted + "\n< " + result("7"), []string{"stray 1 after 0"},
		},
		{
			"an id that is no id", "stdio", "> " + request("[1]", "a") + "\n< " + result("[1]"), []string{"0 a", "stray 1 after 0 awaited"},
		},
		{
			"a batch", "stdio", "> [" + request("1", "a") + "," + request("2", "b") + "]\n< " + result("2"),
			[]string{"1 a", "2 b answered 3"},
		},
		{
			"progress and cancellation", "stdio", "> " + call + "\n< " + progress + "\n< " + progress + "\n> " + cancelled + "\n> " + cancelled + "\n< " + progress,
			[]string{"0 tools/call cancelled 3 progress 1,2,5"},
		},
		{"the cancellation of the other side", "stdio", "> " + call + "\n< " + cancelled, []string{"0 tools/call"}},
		{"a cancellation that comes first", "stdio", "> " + cancelled + "\n> " + call, []string{"1 tools/call"}},

		// These cases find the request of a response without an id.
		{"the only one", "stdio", "> " + request("1", "a") + "\n< " + unnamed, []string{"0 a", "stray 1 after 0 awaited means 0"}},
		{"one of two", "stdio", "> " + request("1", "a") + "\n> " + request("2", "b") + "\n< " + unnamed, []string{"0 a", "1 b", "stray 2 after 1 awaited"}},
		{
			"the one that is left", "stdio", "> " + request("1", "a") + "\n> " + request("2", "b") + "\n< " + result("1") + "\n< " + unnamed,
			[]string{"0 a answered 2", "1 b", "stray 3 after 1 awaited means 1"},
		},
		{
			"each once", "stdio", "> " + request("1", "a") + "\n< " + unnamed + "\n< " + unnamed,
			[]string{"0 a", "stray 1 after 0 awaited means 0", "stray 2 after 0 awaited"},
		},
		{
			"a notification perhaps", "stdio", "> " + noted + "\n> " + request("1", "a") + "\n< " + unnamed,
			[]string{"1 a", "stray 2 after 1 awaited"},
		},
		{
			"a notification before a round trip", "stdio",
			"> " + noted + "\n> " + request("1", "a") + "\n< " + result("1") + "\n> " + request("2", "b") + "\n< " + unnamed,
			[]string{"1 a answered 2", "3 b", "stray 4 after 3 awaited means 3"},
		},
		{
			"what is not cancelled", "stdio",
			"> " + request("1", "a") + "\n> " + request("2", "b") + "\n> " + cancelled + "\n> " + request("3", "c") + "\n< " + result("3") + "\n< " + unnamed,
			[]string{"0 a cancelled 2", "1 b", "3 c answered 4", "stray 5 after 3 awaited means 1"},
		},

		// HTTP.
		{
			"a refusal", "http", "post:1 POST\npost:1 > " + request("1", "a") + "\npost:1 400 text/plain\npost:1 body no\npost:1 end",
			[]string{"1 a head 2 body 3"},
		},
		{
			"an id used twice at once, on two streams", "http",
			"post:1 POST\npost:1 > " + request("1", "a") + "\npost:2 POST\npost:2 > " + request("1", "b") + "\npost:2 200 application/json\npost:2 < " + result("1") +
				"\npost:1 200 application/json\npost:1 < " + result("1"),
			[]string{"1 a head 6 answered 7", "3 b head 4 answered 5"},
		},
		{
			"without an id on its stream", "http",
			"post:1 POST\npost:1 > " + request("1", "a") + "\npost:2 POST\npost:2 > " + request("2", "b") + "\npost:2 400 application/json\npost:2 < " + unnamed,
			[]string{"1 a", "3 b head 4", "stray 5 after 3 awaited means 3"},
		},
		{
			"without an id on a listening stream", "http",
			"get:1 GET\nget:1 200 text/event-stream\npost:1 POST\npost:1 > " + request("1", "a") + "\nget:1 < " + request("5", "b") + "\nget:1 < " + unnamed,
			[]string{"3 a", "4 b head 1", "stray 5 after 3 awaited"},
		},
		{
			"one too many, sent again", "http",
			"post:1 POST\npost:1 > " + request("1", "initialize") + "\npost:1 429\npost:2 POST\npost:2 > " + request("2", "initialize") + "\npost:2 200\npost:2 < " + result("2"),
			[]string{"1 initialize head 2", "4 initialize head 5 answered 6"},
		},
		{
			"an answer that was turned away", "http",
			"get:1 GET\nget:1 200 text/event-stream\nget:1 < " + request("1", "a") + "\npost:1 POST\npost:1 > " + result("1") + "\npost:1 401\npost:2 POST\npost:2 > " + result("1") + "\npost:2 202",
			[]string{"2 a head 1 answered 7"},
		},
		{
			"a second answer that was turned away", "http",
			"get:1 GET\nget:1 200 text/event-stream\nget:1 < " + request("1", "a") + "\npost:1 POST\npost:1 > " + result("1") + "\npost:1 202\n" +
				"post:2 POST\npost:2 > " + result("1") + "\npost:2 503\npost:3 POST\npost:3 > " + result("1") + "\npost:3 202",
			[]string{"2 a head 1 answered 4 again 10"},
		},
		{
			"a replay counts once", "http",
			"post:1 POST\npost:1 > " + request("1", "a") + "\npost:1 200 text/event-stream\npost:1 #1 " + noted + "\npost:1 #2 " + result("1") + "\n" +
				"get:1 GET after 1\nget:1 200 text/event-stream\nget:1 #2 " + result("1"),
			[]string{"1 a head 2 answered 4"},
		},
		{
			"a replay that is read first", "http",
			"post:1 POST\npost:1 > " + request("1", "a") + "\npost:1 200 text/event-stream\npost:1 #1 " + noted + "\n" +
				"get:1 GET after 1\nget:1 200 text/event-stream\nget:1 #2 " + result("1") + "\npost:1 #2 " + result("1"),
			[]string{"1 a head 2 answered 6"},
		},
		{
			"a replay in another spelling", "http",
			"post:1 POST\npost:1 > " + request("1", "a") + "\npost:1 200 text/event-stream\npost:1 #1 " + noted + "\npost:1 #2 " + result("1") + "\n" +
				"get:1 GET after 1\nget:1 200 text/event-stream\nget:1 #2 " + strings.ReplaceAll(result("1"), ",", " ,"),
			[]string{"1 a head 2 answered 4"},
		},
		{
			"the same event id without Last-Event-ID", "http",
			"post:1 POST\npost:1 > " + request("1", "a") + "\npost:1 200 text/event-stream\npost:1 #2 " + result("1") + "\n" +
				"get:1 GET\nget:1 200 text/event-stream\nget:1 #2 " + result("1"),
			[]string{"1 a head 2 answered 3 again 6"},
		},
		{
			"HTTP+SSE", "sse",
			"get:1 GET\nget:1 200 text/event-stream\npost:1 POST\npost:1 > " + request("1", "a") + "\npost:1 202\nget:1 < " + result("1"),
			[]string{"3 a head 4 answered 5"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := literal(t, c.transport, c.trace)
			if diff := cmp.Diff(c.want, told(l.Conversation())); diff != "" {
				t.Errorf("the events so far (-want +got):\n%s", diff)
			}
			l.End()
			if diff := cmp.Diff(c.want, told(l.Conversation())); diff != "" {
				t.Errorf("the whole log (-want +got):\n%s", diff)
			}
		})
	}
}

// TestConversationGrows tests that the conversation of a growing log equals that of the log so far.
func TestConversationGrows(t *testing.T) {
	whole := literal(t, "http", "post:1 POST\npost:1 > "+request("1", "a")+"\npost:1 200 text/event-stream\npost:1 #1 "+result(`"1"`)+
		"\npost:1 < "+result("1")+"\npost:1 end\npost:2 POST\npost:2 > "+request("1", "b")+"\npost:2 200 application/json\npost:2 < "+result("1"))
	l := wire.NewTrace(wire.DefaultLimits).Connect("http", "")
	for _, e := range whole.Events() {
		added, err := l.Append(wire.Event{Kind: e.Kind, From: e.From, Stream: e.Stream, Raw: e.Raw, HTTP: e.HTTP, SSE: e.SSE})
		if err != nil {
			t.Fatal(err)
		}
		c := l.Conversation()
		x := c.Of(added)
		now := l.Exchange(added)
		if (x == nil) != (now == nil) {
			t.Fatalf("event %d: the conversation has %v, the log %v", added.Seq, x, now)
		}
		if x != nil && (now.Request != x.Request || now.Response != x.Response || len(now.Further) != len(x.Further) || now.Head != x.Head ||
			l.RequestOf(added) != x.Request) {
			t.Errorf("event %d: the conversation has %+v, the log %+v", added.Seq, x, now)
		}
		if l.Asked(wire.Client, wire.StringID("1")) == (len(c.Exchanges) == 0) || l.Asked(wire.Server, wire.IntID(1)) {
			t.Errorf("event %d: the log does not know who asked", added.Seq)
		}
		if carrier := l.Carrier(added); carrier.Stream != e.Stream || carrier.Head != c.Carrier(added).Head {
			t.Errorf("event %d: it travelled in %+v", added.Seq, carrier)
		}
	}
	if a := l.Requests(wire.Client, "a"); len(a) != 1 || len(a[0].Further) != 1 || len(l.Requests(wire.Server, "a")) != 0 {
		t.Errorf("requests of the method a: %v", a)
	}
	if got := l.Conversation(); len(got.HTTP) != 2 || got.HTTP[0].Last != l.Events()[3] || !got.HTTP[0].Complete() || got.HTTP[1].Message() == nil {
		t.Errorf("HTTP exchanges %+v", got.HTTP)
	}
}

// TestExchangeIsACopy tests that a copy of an exchange, and the conversation of an ended log, do not change any more.
func TestExchangeIsACopy(t *testing.T) {
	l := literal(t, "stdio", "> "+request("1", "a")+"\n< "+result("1")+"\n< "+result("1"))
	asked := l.Events()[0]
	before := l.Exchange(asked)
	appendAll(t, l, event(t, "< "+result("1")))
	if after := l.Exchange(asked); len(before.Further) != 1 || len(after.Further) != 2 {
		t.Errorf("%d further responses, then %d", len(before.Further), len(after.Further))
	}
	l.End()
	ended := l.Conversation()
	appendAll(t, l, event(t, "< "+result("1")))
	l.Exchange(asked)
	if len(ended.Exchanges[0].Further) != 2 || len(l.Conversation().Exchanges[0].Further) != 3 {
		t.Errorf("%d further responses, then %d", len(ended.Exchanges[0].Further), len(l.Conversation().Exchanges[0].Further))
	}
	if ended == l.Conversation() {
		t.Error("the conversation lacks what came later")
	}
}

// A client records what it sends before the head of its request.
func TestHTTPExchangesInOrder(t *testing.T) {
	l := literal(t, "http", "post:1 > "+request("1", "a")+"\npost:3 > "+request("3", "c")+"\npost:2 > "+request("2", "b")+
		"\npost:2 POST\npost:1 POST\npost:2 200\npost:1 200")
	for range 2 {
		c := l.Conversation()
		if len(c.HTTP) != 2 || c.HTTP[0].Stream != "post:1" || c.HTTP[1].Stream != "post:2" {
			t.Errorf("HTTP exchanges %v", c.HTTP)
		}
		if c.Exchanges[0].Head != c.HTTP[0].Head || c.Carrier(c.Exchanges[1].Request) != nil || c.Carrier(c.Exchanges[2].Request) != c.HTTP[1] {
			t.Errorf("exchanges %v", told(c))
		}
		l.End()
	}
}

func TestForeignStreams(t *testing.T) {
	l := literal(t, "http", "post:1 POST\npost:1 > "+request("1", "server/discover")+"\npost:1 400\npost:2 POST\npost:2 > "+request("1", "initialize")+
		"\npost:2 200\npost:2 < "+result("1"))
	c := wire.Converse(l.Transport, l.Events(), map[string]bool{"post:1": true}, nil)
	if diff := cmp.Diff([]string{"4 initialize head 5 answered 6"}, told(c)); diff != "" || len(c.HTTP) != 2 || len(c.Messages) != 2 {
		t.Errorf("%d HTTP exchanges, %d messages (-want +got):\n%s", len(c.HTTP), len(c.Messages), diff)
	}
}

func TestHandshake(t *testing.T) {
	l := literal(t, "stdio", `
		> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{"roots":{"listChanged":false}}}}
		< {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}}
		> {"jsonrpc":"2.0","method":"notifications/initialized"}
		> {"jsonrpc":"2.0","id":2,"method":"initialize"}
		> {"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c, events := l.Conversation(), l.Events()
	if !c.Handshaken() || c.Init.Request != events[0] || c.Initialized != events[2] || c.Version != "2025-06-18" {
		t.Errorf("initialize %v, initialized %v, version %q", c.Init, c.Initialized, c.Version)
	}
	if c.Ready(events[1]) || !c.Ready(events[3]) {
		t.Error("the session is not ready from the initialized notification on")
	}
	for _, d := range []struct {
		party      wire.Party
		capability string
		want       bool
	}{
		{wire.Client, "roots", true}, {wire.Client, "roots.listChanged", false},
		{wire.Server, "tools", true}, {wire.Server, "roots", false},
	} {
		if c.Declared(d.party, d.capability) != d.want {
			t.Errorf("the %s declares %s: %v", d.party, d.capability, !d.want)
		}
	}
}

func TestExchangeEvents(t *testing.T) {
	l := literal(t, "http", "get:1 GET\nget:1 200 text/event-stream\nget:1 < "+request("9", "roots/list")+"\npost:1 POST\npost:1 > "+request("1", "a")+
		"\npost:1 500\npost:1 body oops\npost:2 POST\npost:2 > "+result("9"))
	for i, want := range [][]int{{2, 8}, {4, 5, 6}} {
		var got []int
		for _, e := range l.Conversation().Exchanges[i].Events() {
			got = append(got, e.Seq)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("exchange %d (-want +got):\n%s", i, diff)
		}
	}
}

// Some ask while others write.
func TestExchangesAreConcurrent(t *testing.T) {
	l := wire.NewTrace(wire.DefaultLimits).Connect("stdio", "")
	var work sync.WaitGroup
	for i := range 4 {
		work.Go(func() {
			for n := range 100 {
				id := strconv.Itoa(1000*i + n)
				asked, _ := l.Append(event(t, "> "+request(id, "ping")))
				answer, _ := l.Append(event(t, "< "+result(id)))
				if x := l.Exchange(answer); x == nil || x.Request != asked || x.Response != answer || l.Conversation().Of(answer) == nil {
					t.Errorf("request %s was answered by %v", id, x)
				}
			}
		})
	}
	work.Wait()
}

// Each event costs a fixed amount of work, whatever came before.
func TestConversationIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: long conversations")
	}
	for name, lines := range map[string]func(i int) (asked, answered string){
		"one id":     func(int) (string, string) { return request("1", "ping"), result("1") },
		"other type": func(int) (string, string) { return request("1", "ping"), result(`"1"`) },
		"no id": func(i int) (string, string) {
			return request(strconv.Itoa(i), "ping"), `{"jsonrpc":"2.0","error":{"code":1,"message":""}}`
		},
	} {
		const n = 20_000
		l := wire.NewTrace(wire.DefaultLimits).Connect("stdio", "")
		for i := range 2 * n {
			asked, answered := lines(i)
			line := "> " + asked
			if i >= n {
				line = "< " + answered
			}
			appendAll(t, l, event(t, line))
		}
		if c := l.Conversation(); len(c.Exchanges) != n || len(c.Messages) != 2*n {
			t.Errorf("%s: %d exchanges of %d messages", name, len(c.Exchanges), len(c.Messages))
		}
	}
}

func BenchmarkConversation(b *testing.B) {
	l := wire.NewTrace(wire.DefaultLimits).Connect("stdio", "")
	for i := range 10_000 {
		id := strconv.Itoa(i)
		for _, line := range []string{"> " + request(id, "ping"), "< " + result(id)} {
			if _, err := l.Append(event(b, line)); err != nil {
				b.Fatal(err)
			}
		}
	}
	events := l.Events()
	for b.Loop() {
		wire.Converse("stdio", events, nil, nil)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(events)), "ns/event")
}

func BenchmarkAppend(b *testing.B) {
	limits := wire.Limits{Message: 1 << 20, Total: 1 << 60, Events: 1 << 60}
	raw := []byte(request("1", "ping"))
	l := wire.NewTrace(limits).Connect("stdio", "")
	for b.Loop() {
		if _, err := l.Append(wire.Event{Kind: wire.KindMessage, From: wire.Client, Stream: "stdin", Raw: raw}); err != nil {
			b.Fatal(err)
		}
	}
}
