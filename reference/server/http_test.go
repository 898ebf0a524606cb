package server_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

const initializeBody = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// site is a server over HTTP, written to by hand.
type site struct {
	t   *testing.T
	url string
	// session is sent as Mcp-Session-Id unless empty.
	session string
}

func serve(t *testing.T, o server.Options) *site {
	t.Helper()
	h := server.New(o).HTTP()
	ts := httptest.NewServer(h)
	t.Cleanup(func() {
		h.Close()
		ts.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return &site{t: t, url: ts.URL}
}

// do sends a request; header pairs override, and an empty value removes. The
// body of the response is closed with the test.
func (s *site) do(method, path, body string, header ...string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	if s.session != "" {
		r.Header.Set("Mcp-Session-Id", s.session)
	}
	for i := 0; i < len(header); i += 2 {
		switch {
		case header[i] == "Host":
			r.Host = header[i+1]
		case header[i+1] == "":
			r.Header.Del(header[i])
		default:
			r.Header.Set(header[i], header[i+1])
		}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func (s *site) post(body string, header ...string) *http.Response {
	s.t.Helper()
	return s.do(http.MethodPost, "/mcp", body, header...)
}

func (s *site) read(resp *http.Response) string {
	s.t.Helper()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(raw)
}

// begin initializes a session.
func (s *site) begin() *site {
	s.t.Helper()
	resp := s.post(initializeBody)
	s.session = resp.Header.Get("Mcp-Session-Id")
	if body := s.read(resp); resp.StatusCode != 200 || !strings.Contains(body, `"result"`) {
		s.t.Fatalf("initialize: %d %s", resp.StatusCode, body)
	}
	resp = s.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if body := s.read(resp); resp.StatusCode != 202 || body != "" {
		s.t.Fatalf("initialized: %d %q", resp.StatusCode, body)
	}
	return s
}

// events reads SSE events one by one.
type events struct {
	t *testing.T
	r *wire.SSEReader
}

func eventsOf(t *testing.T, resp *http.Response) *events {
	t.Helper()
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("no stream: %d %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	return &events{t, wire.NewSSEReader(bufio.NewReader(resp.Body), 1<<20)}
}

// next returns the id and message of the next event; nil at the end.
func (e *events) next() (id string, m *wire.Message) {
	e.t.Helper()
	item, err := e.r.Next()
	if err != nil {
		return "", nil
	}
	return item.SSE.ID, wire.Parse(item.Data)
}

const pingBody = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

func callBody(id, name string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + name + `","_meta":{"progressToken":` + id + `}}}`
}

func TestHTTPStatuses(t *testing.T) {
	const notification = `{"jsonrpc":"2.0","method":"notifications/x"}`
	tests := []struct {
		name, method, path, body string
		header                   []string
		want                     int
	}{
		{"ping", "POST", "/mcp", pingBody, nil, 200},
		{"notification", "POST", "/mcp", notification, nil, 202},
		{"response", "POST", "/mcp", `{"jsonrpc":"2.0","id":9,"result":{}}`, nil, 202},
		{"version header", "POST", "/mcp", pingBody, []string{"Mcp-Protocol-Version", "2025-06-18"}, 200},
		{"older version header", "POST", "/mcp", pingBody, []string{"Mcp-Protocol-Version", "2025-03-26"}, 200},
		{"bad version header", "POST", "/mcp", pingBody, []string{"Mcp-Protocol-Version", "1.0"}, 400},
		{"bad version header of a notification", "POST", "/mcp", notification, []string{"Mcp-Protocol-Version", "1.0"}, 400},
		{"bad version header of GET", "GET", "/mcp", "", []string{"Mcp-Protocol-Version", "1.0"}, 400},
		{"no session", "POST", "/mcp", pingBody, []string{"Mcp-Session-Id", ""}, 400},
		{"no session with GET", "GET", "/mcp", "", []string{"Mcp-Session-Id", ""}, 400},
		{"no session with DELETE", "DELETE", "/mcp", "", []string{"Mcp-Session-Id", ""}, 400},
		{"unknown session", "POST", "/mcp", pingBody, []string{"Mcp-Session-Id", "none"}, 404},
		{"unknown session with a notification", "POST", "/mcp", notification, []string{"Mcp-Session-Id", "none"}, 404},
		{"unknown session with GET", "GET", "/mcp", "", []string{"Mcp-Session-Id", "none"}, 404},
		{"unknown session with DELETE", "DELETE", "/mcp", "", []string{"Mcp-Session-Id", "none"}, 404},
		{"unknown session with initialize", "POST", "/mcp", initializeBody, []string{"Mcp-Session-Id", "none"}, 404},
		{"loopback origin", "POST", "/mcp", pingBody, []string{"Origin", "http://localhost:3000"}, 200},
		{"IPv6 loopback origin", "POST", "/mcp", pingBody, []string{"Origin", "http://[::1]:3000"}, 200},
		{"foreign origin", "POST", "/mcp", pingBody, []string{"Origin", "https://evil.example"}, 403},
		{"origin that begins like loopback", "POST", "/mcp", pingBody, []string{"Origin", "http://localhost.evil.example"}, 403},
		{"null origin", "POST", "/mcp", initializeBody, []string{"Origin", "null"}, 403},
		{"foreign origin with GET", "GET", "/mcp", "", []string{"Origin", "https://evil.example"}, 403},
		{"foreign origin with DELETE", "DELETE", "/mcp", "", []string{"Origin", "https://evil.example"}, 403},
		{"foreign host", "POST", "/mcp", pingBody, []string{"Host", "evil.example"}, 403},
		{"configured origin", "POST", "/mcp", pingBody, []string{"Origin", "https://app.example"}, 200},
		{"PUT", "PUT", "/mcp", pingBody, nil, 405},
		{"OPTIONS", "OPTIONS", "/mcp", "", nil, 405},
		{"other path", "POST", "/other", pingBody, nil, 404},
		{"JSON only", "POST", "/mcp", pingBody, []string{"Accept", "application/json"}, 200},
		{"SSE only", "POST", "/mcp", pingBody, []string{"Accept", "text/event-stream"}, 200},
		{"anything", "POST", "/mcp", pingBody, []string{"Accept", "*/*"}, 200},
		{"any case, any order, parameters", "POST", "/mcp", pingBody, []string{"Accept", "Text/Event-Stream;q=0.5, text/html, APPLICATION/JSON;q=0.9"}, 200},
		{"neither", "POST", "/mcp", pingBody, []string{"Accept", "text/html"}, 406},
		{"GET for JSON", "GET", "/mcp", "", []string{"Accept", "application/json"}, 406},
		{"charset", "POST", "/mcp", pingBody, []string{"Content-Type", "application/json; charset=utf-8"}, 200},
		{"plain text", "POST", "/mcp", pingBody, []string{"Content-Type", "text/plain"}, 415},
		{"no content type", "POST", "/mcp", pingBody, []string{"Content-Type", ""}, 415},
		{"not JSON", "POST", "/mcp", `{"jsonrpc"`, nil, 400},
		{"empty", "POST", "/mcp", "", nil, 400},
		{"batch", "POST", "/mcp", "[" + pingBody + "]", nil, 400},
		{"malformed notification", "POST", "/mcp", `{"jsonrpc":"1.0","method":"notifications/x"}`, nil, 400},
		{"too large", "POST", "/mcp", `{"x":"` + strings.Repeat("y", 100_000) + `"}`, nil, 413},
		{"second initialize", "POST", "/mcp", initializeBody, nil, 200},
	}
	s := serve(t, server.Options{MaxMessage: 10_000, HTTP: server.HTTPOptions{Origins: []string{"https://app.example"}}}).begin()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			resp := s.do(test.method, test.path, test.body, test.header...)
			if resp.StatusCode != test.want {
				t.Errorf("got %d, want %d", resp.StatusCode, test.want)
			}
			body := s.read(resp)
			if test.want == 202 && body != "" {
				t.Errorf("body %q", body)
			}
			if test.want == 405 && resp.Header.Get("Allow") != "POST, GET, DELETE" {
				t.Errorf("Allow: %q", resp.Header.Get("Allow"))
			}
			if resp := s.post(pingBody); resp.StatusCode != 200 {
				t.Errorf("the ping behind it: %d", resp.StatusCode)
			}
		})
	}
}

func TestHTTPRefusedInitializeGivesNoSession(t *testing.T) {
	s := serve(t, server.Options{})
	resp := s.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	if body := s.read(resp); resp.Header.Get("Mcp-Session-Id") != "" || !strings.Contains(body, "-32602") {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, body)
	}
}

func TestHTTPDelete(t *testing.T) {
	s := serve(t, server.Options{}).begin()
	listening := s.do("GET", "/mcp", "")
	if resp := s.do("DELETE", "/mcp", ""); resp.StatusCode != 204 {
		t.Errorf("DELETE: %d", resp.StatusCode)
	}
	if rest := s.read(listening); rest != "" {
		t.Errorf("the listening stream held %q", rest)
	}
	for method, body := range map[string]string{"POST": pingBody, "GET": "", "DELETE": ""} {
		if resp := s.do(method, "/mcp", body); resp.StatusCode != 404 {
			t.Errorf("%s after DELETE: %d", method, resp.StatusCode)
		}
	}
}

func TestHTTPOptions(t *testing.T) {
	s := serve(t, server.Options{HTTP: server.HTTPOptions{NoGet: true, NoDelete: true, NoSessionID: true, NoLegacy: true, AlwaysSSE: true, NoEventID: true}}).begin()
	if s.session != "" {
		t.Errorf("session id %q", s.session)
	}
	for _, method := range []string{"GET", "DELETE"} {
		if resp := s.do(method, "/mcp", ""); resp.StatusCode != 405 || resp.Header.Get("Allow") != "POST" {
			t.Errorf("%s: %d, Allow %q", method, resp.StatusCode, resp.Header.Get("Allow"))
		}
	}
	if resp := s.do("GET", "/sse", ""); resp.StatusCode != 404 {
		t.Errorf("legacy: %d", resp.StatusCode)
	}
	if id, m := eventsOf(t, s.post(pingBody)).next(); id != "" || m == nil || m.Kind != wire.Result {
		t.Errorf("ping: id %q, %v", id, m)
	}
}

// TestHTTPStreams has notifications of a request on its own stream, others on
// the listening stream, and nothing twice.
func TestHTTPStreams(t *testing.T) {
	s := serve(t, server.Options{}).begin()
	first, second := eventsOf(t, s.do("GET", "/mcp", "")), s.do("GET", "/mcp", "")
	progress := eventsOf(t, s.post(callBody("5", "test_tool_with_progress")))
	var got []string
	ids := make(map[string]bool)
	for {
		id, m := progress.next()
		if m == nil {
			break
		}
		got = append(got, m.Method+m.ID.String())
		ids[id] = true
	}
	want := []string{"notifications/progress", "notifications/progress", "notifications/progress", "5"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if resp := s.post(callBody("6", "toggle_tool")); resp.Header.Get("Content-Type") != "application/json" {
		t.Errorf("a simple answer is %s", resp.Header.Get("Content-Type"))
	}
	id, m := eventsOf(t, second).next()
	if m == nil || m.Method != "notifications/tools/list_changed" {
		t.Errorf("the newest listening stream brought %v", m)
	}
	if ids[id] || len(ids) != 4 {
		t.Errorf("event ids are not unique: %v and %s", ids, id)
	}
	// The first stream gets what comes once the second has gone, and nothing else.
	if err := second.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if resp := s.do("DELETE", "/mcp", ""); resp.StatusCode != 204 {
		t.Fatal(resp.StatusCode)
	}
	if _, m := first.next(); m != nil {
		t.Errorf("the first listening stream brought %s", m.Raw)
	}
}

// TestHTTPBacklog keeps unrelated messages until a listening stream is opened.
func TestHTTPBacklog(t *testing.T) {
	s := serve(t, server.Options{}).begin()
	s.read(s.post(callBody("1", "toggle_tool")))
	s.read(s.post(callBody("2", "toggle_prompt")))
	e := eventsOf(t, s.do("GET", "/mcp", ""))
	for _, want := range []string{"notifications/tools/list_changed", "notifications/prompts/list_changed"} {
		if _, m := e.next(); m == nil || m.Method != want {
			t.Errorf("got %v, want %s", m, want)
		}
	}
}

// TestHTTPResume cuts two streams of running requests and resumes one.
func TestHTTPResume(t *testing.T) {
	release := make(chan struct{})
	wait := func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		r.Progress(1, 3, "begun")
		r.Progress(2, 3, "waiting")
		r.Detach()
		select {
		case <-release:
		case <-ctx.Done():
		}
		return next(ctx, r)
	}
	s := serve(t, server.Options{Behaviour: server.Behaviour{
		Methods: map[string]server.Middleware{"tools/call": server.Named("test_simple_text", wait)},
	}}).begin()
	cut := func(id string) (last string) {
		resp := s.post(callBody(id, "test_simple_text"))
		last, m := eventsOf(t, resp).next()
		if m == nil || last == "" {
			t.Fatalf("first event: %v, id %q", m, last)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		return last
	}
	last := cut("7")
	cut("8")
	e := eventsOf(t, s.do("GET", "/mcp", "", "Last-Event-Id", last))
	if _, m := e.next(); m == nil || wire.Show(wire.At(m.Params, "progress")) != "2" {
		t.Fatalf("replayed: %v", m)
	}
	close(release)
	if _, m := e.next(); m == nil || m.Kind != wire.Result || m.ID.String() != "7" {
		t.Fatalf("resumed: %v", m)
	}
	if _, m := e.next(); m != nil {
		t.Errorf("more on the resumed stream: %s", m.Raw)
	}
	// Once more, now that all is over: the same again.
	again := eventsOf(t, s.do("GET", "/mcp", "", "Last-Event-Id", last))
	var got []string
	for {
		_, m := again.next()
		if m == nil {
			break
		}
		got = append(got, m.Method+m.ID.String())
	}
	if diff := cmp.Diff([]string{"notifications/progress", "7"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestHTTPResumeOfTheListeningStream(t *testing.T) {
	s := serve(t, server.Options{}).begin()
	resp := s.do("GET", "/mcp", "")
	s.read(s.post(callBody("1", "toggle_tool")))
	last, _ := eventsOf(t, resp).next()
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	s.read(s.post(callBody("2", "toggle_prompt")))
	e := eventsOf(t, s.do("GET", "/mcp", "", "Last-Event-Id", last))
	if id, m := e.next(); m == nil || m.Method != "notifications/prompts/list_changed" || id == last {
		t.Errorf("resumed: %v with id %s", m, id)
	}
}

// TestHTTPCancellation ends the stream of the cancelled request without a
// response, and a dropped connection cancels nothing.
func TestHTTPCancellation(t *testing.T) {
	s := serve(t, server.Options{}).begin()
	e := eventsOf(t, s.post(`{"jsonrpc":"2.0","id":"slow","method":"tools/call","params":{"name":"slow","arguments":{"seconds":60},"_meta":{"progressToken":"p"}}}`))
	if _, m := e.next(); m == nil || m.Method != "notifications/progress" {
		t.Fatalf("got %v", m)
	}
	if resp := s.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"slow"}}`); resp.StatusCode != 202 {
		t.Fatal(resp.StatusCode)
	}
	for {
		_, m := e.next()
		if m == nil {
			break
		}
		if m.IsResponse() {
			t.Errorf("answered: %s", m.Raw)
		}
	}
}

func TestLegacy(t *testing.T) {
	s := serve(t, server.Options{})
	resp := s.do("GET", "/sse", "")
	stream := wire.NewSSEReader(bufio.NewReader(resp.Body), 1<<20)
	first, err := stream.Next()
	if err != nil || first.SSE.Event != "endpoint" {
		t.Fatalf("first event: %+v, %v", first, err)
	}
	endpoint := string(first.Data)
	for body, want := range map[string]int{initializeBody: 202, "nonsense": 400} {
		if resp := s.do("POST", endpoint, body); resp.StatusCode != want {
			t.Errorf("POST %s: %d, want %d", body, resp.StatusCode, want)
		}
	}
	answer, err := stream.Next()
	if err != nil || wire.Parse(answer.Data).Kind != wire.Result || answer.SSE.Event != "message" {
		t.Errorf("answer: %+v, %v", answer, err)
	}
	for _, test := range []struct {
		method, path string
		header       []string
		want         int
	}{
		{"POST", "/messages", nil, 400},
		{"POST", "/messages?sessionId=none", nil, 404},
		{"POST", "/sse", nil, 405},
		{"GET", "/messages", nil, 405},
		{"GET", "/sse", []string{"Origin", "https://evil.example"}, 403},
		{"GET", "/sse", []string{"Origin", "null"}, 403},
		{"POST", endpoint, []string{"Origin", "https://evil.example"}, 403},
		{"POST", endpoint, []string{"Content-Type", "text/plain"}, 415},
	} {
		if resp := s.do(test.method, test.path, pingBody, test.header...); resp.StatusCode != test.want {
			t.Errorf("%s %s %v: %d, want %d", test.method, test.path, test.header, resp.StatusCode, test.want)
		}
	}
}

// TestServe stops although a stream is open.
func TestServe(t *testing.T) {
	l, err := server.Listen(":0")
	if err != nil {
		t.Fatal(err)
	}
	if host := l.Addr().(*net.TCPAddr).IP; !host.IsLoopback() {
		t.Errorf("bound to %v", host)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- server.New(server.Options{}).HTTP().Serve(ctx, l) }()
	s := (&site{t: t, url: "http://" + l.Addr().String()}).begin()
	listening := s.do("GET", "/mcp", "")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if rest := s.read(listening); rest != "" {
		t.Errorf("the stream ended with %q", rest)
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestDriver runs every tool over HTTP and compares what the two ends record.
func TestDriver(t *testing.T) {
	for _, name := range []string{"http", "sse", "always SSE"} {
		t.Run(name, func(t *testing.T) {
			trace := wire.NewTrace(wire.DefaultLimits)
			h := server.New(server.Options{Trace: trace, HTTP: server.HTTPOptions{AlwaysSSE: name == "always SSE"}}).HTTP()
			ts := httptest.NewServer(h)
			defer ts.Close()
			var dialer transport.Dialer = &transport.HTTP{Endpoint: transport.Endpoint{URL: ts.URL + "/mcp"}}
			if name == "sse" {
				dialer = &transport.SSE{Endpoint: transport.Endpoint{URL: ts.URL + "/sse"}}
			}
			log := wire.NewTrace(wire.DefaultLimits).Connect(dialer.Transport(), "")
			conn, err := dialer.Dial(t.Context(), log)
			if err != nil {
				t.Fatal(err)
			}
			s := client.New(conn, everything())
			if _, err := s.Initialize(t.Context()); err != nil {
				t.Fatal(err)
			}
			for tool, arguments := range map[string]object{
				"test_sampling": {"prompt": "p"}, "test_elicitation": {"message": "m"}, "test_roots": nil, "test_tool_with_logging": nil,
				"toggle_tool": nil, "toggle_resource": nil, "slow": {"seconds": 0.05}, "echo": {"text": "Grüße\u2028🌍"},
			} {
				x := call(t, s, "tools/call", object{"name": tool, "arguments": orEmpty(arguments), "_meta": object{"progressToken": tool}})
				if x.Result() == nil || x.Result()["isError"] == true {
					t.Errorf("%s: %s", tool, x.Response.Raw)
				}
			}
			for _, method := range []string{"notifications/tools/list_changed", "notifications/resources/list_changed"} {
				if _, err := s.AwaitNotification(t.Context(), 0, method); err != nil {
					t.Error(err)
				}
			}
			followsTheSchema(t, log)
			if err := s.Close(context.Background()); err != nil {
				t.Error(err)
			}
			h.Close()
			if n := len(trace.Logs()); n != 1 {
				t.Fatalf("%d logs", n)
			}
			if diff := cmp.Diff(digest(log), digest(trace.Logs()[0])); diff != "" {
				t.Errorf("the client's record (-) and the server's (+) differ:\n%s", diff)
			}
		})
	}
}

// TestRecordOfWhatIsWritten wants the record to hold what stands on a stream, also where the behaviour has changed
// the text of an event.
func TestRecordOfWhatIsWritten(t *testing.T) {
	for name, test := range map[string]struct {
		text string // of the event of a response
		want string // kind, id and text of its record
	}{
		"another name":  {"event: other\nid: 1-1\ndata: {}\n\n", "message 1-1 {}"},
		"other data":    {"id: 1-1\ndata: {}\ndata:\n\n", "message 1-1 {}\n"},
		"other id":      {": a comment\nid: x\ndata: {}\n\n", "message x {}"},
		"no id":         {"data: {}\n\n", "message  {}"},
		"nothing said":  {"id: x\ndata:\n\n", "sse x "},
		"unfinished":    {"id: x\ndata: {}\n", "sse  id: x\ndata: {}\n"},
		"no event":      {"{}\n", "sse  {}\n"},
		"comment alone": {":\n", "sse  :\n"},
	} {
		t.Run(name, func(t *testing.T) {
			trace := wire.NewTrace(wire.DefaultLimits)
			b := server.Behaviour{Frame: func(out *server.Outgoing, frame []byte) []byte {
				if out.Answers == nil || out.Answers.Method != "ping" {
					return frame
				}
				return append(frame[:0], test.text...)
			}}
			s := serve(t, server.Options{Behaviour: b, Trace: trace, HTTP: server.HTTPOptions{AlwaysSSE: true}}).begin()
			if got := s.read(s.post(pingBody)); got != test.text {
				t.Errorf("%q was written", got)
			}
			for _, e := range trace.Logs()[0].Events() {
				if e.SSE == nil || e.Stream != "post:3" {
					continue
				}
				if got := string(e.Kind) + " " + e.SSE.ID + " " + string(e.Raw); got != test.want {
					t.Errorf("recorded is %q, not %q", got, test.want)
				}
				return
			}
			t.Error("nothing is recorded")
		})
	}
}

func orEmpty(o object) object {
	if o == nil {
		return object{}
	}
	return o
}

// digest lists the events of each stream in order. The ends of streams are left
// out, as one side may close what the other still holds open, and so are the
// POSTs of responses, which are sent at the same time as others. The legacy
// transport's POSTs are: their 202 means nothing for the order.
func digest(log *wire.Log) map[string][]string {
	streams := make(map[string][]string)
	unordered := make(map[string]bool)
	for _, e := range log.Events() {
		if e.Kind == wire.KindStreamEnd || e.Kind == wire.KindNote || e.Kind == wire.KindClose {
			continue
		}
		line := string(e.From) + " " + string(e.Kind) + " " + string(e.Raw)
		if e.HTTP != nil {
			line += e.HTTP.Method + " " + http.StatusText(e.HTTP.Status) + " " + e.HTTP.Header.Get("Content-Type")
		}
		if e.SSE != nil {
			line += " " + e.SSE.Event + " " + e.SSE.ID
		}
		if e.From == wire.Client && (log.Transport == "sse" && e.Stream != "get:1" || e.Kind == wire.KindMessage && e.Msg.IsResponse()) {
			unordered[e.Stream] = true
		}
		streams[e.Stream] = append(streams[e.Stream], line)
	}
	for name := range unordered {
		delete(streams, name)
	}
	return streams
}
