package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// all returns the messages that the server has sent, as they were written.
func all(s *client.Session, from int) []string {
	var lines []string
	for _, e := range s.Log().Events()[from:] {
		if e.Kind == wire.KindMessage && e.From == wire.Server {
			lines = append(lines, string(e.Raw))
		}
	}
	return lines
}

func methods(name string, m server.Middleware) server.Behaviour {
	return server.Behaviour{Methods: map[string]server.Middleware{name: m}}
}

// TestFaultsOnStdio expresses one fault at each depth and looks at what comes
// for one message before the answer to a fence; every fault has a twin without it.
func TestFaultsOnStdio(t *testing.T) {
	type hook = func(out *server.Outgoing) []*server.Outgoing
	send := func(method string, f hook) server.Behaviour {
		return server.Behaviour{Send: server.OnResponse(method, f)}
	}
	one := func(out *server.Outgoing) []*server.Outgoing { return []*server.Outgoing{out} }
	request := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":70,"method":"` + method + `","params":` + params + `}`
	}
	tests := []struct {
		name      string
		behaviour server.Behaviour
		send      string
		want      []string
		twin      []string // without the fault
	}{
		{
			"string ids", send("logging/setLevel", func(out *server.Outgoing) []*server.Outgoing {
				out.Message["id"] = out.Answers.ID.Key()
				return one(out)
			}),
			request("logging/setLevel", `{"level":"info"}`),
			[]string{`{"id":"70","jsonrpc":"2.0","result":{}}`}, []string{`{"id":70,"jsonrpc":"2.0","result":{}}`},
		},
		{
			"twice", send("logging/setLevel", func(out *server.Outgoing) []*server.Outgoing { return []*server.Outgoing{out, out.Clone()} }),
			request("logging/setLevel", `{"level":"info"}`),
			slices.Repeat([]string{`{"id":70,"jsonrpc":"2.0","result":{}}`}, 2), []string{`{"id":70,"jsonrpc":"2.0","result":{}}`},
		},
		{
			"dropped", send("logging/setLevel", func(*server.Outgoing) []*server.Outgoing { return nil }),
			request("logging/setLevel", `{"level":"info"}`),
			nil, []string{`{"id":70,"jsonrpc":"2.0","result":{}}`},
		},
		{
			"unanswered", methods("logging/setLevel", server.Always(server.NoAnswer)),
			request("logging/setLevel", `{"level":"info"}`),
			nil, []string{`{"id":70,"jsonrpc":"2.0","result":{}}`},
		},
		{
			"ignored", server.Behaviour{Receive: func(_ *server.Session, m *wire.Message, next func()) {
				if m.Method != "logging/setLevel" {
					next()
				}
			}},
			request("logging/setLevel", `{"level":"info"}`),
			nil, []string{`{"id":70,"jsonrpc":"2.0","result":{}}`},
		},
		{
			"both outcomes", send("logging/setLevel", func(out *server.Outgoing) []*server.Outgoing {
				out.Message["error"] = nil
				return one(out)
			}),
			request("logging/setLevel", `{"level":"info"}`),
			[]string{`{"error":null,"id":70,"jsonrpc":"2.0","result":{}}`}, []string{`{"id":70,"jsonrpc":"2.0","result":{}}`},
		},
		{
			"string code", send("*", func(out *server.Outgoing) []*server.Outgoing {
				if p := out.RPCError(); p != nil {
					p["code"] = fmt.Sprint(p["code"])
				}
				return one(out)
			}),
			request("none", `{}`),
			[]string{`{"error":{"code":"-32601","message":"Method not found: none"},"id":70,"jsonrpc":"2.0"}`},
			[]string{`{"error":{"code":-32601,"message":"Method not found: none"},"id":70,"jsonrpc":"2.0"}`},
		},
		{
			"result is an array", methods("ping", server.Always([]any{})), request("ping", `{}`),
			[]string{`{"id":70,"jsonrpc":"2.0","result":[]}`}, []string{`{"id":70,"jsonrpc":"2.0","result":{}}`},
		},
		{
			"other code", methods("*", server.Recode(server.MethodNotFound, -32000)), request("none", `{}`),
			[]string{`{"error":{"code":-32000,"message":"Method not found: none"},"id":70,"jsonrpc":"2.0"}`},
			[]string{`{"error":{"code":-32601,"message":"Method not found: none"},"id":70,"jsonrpc":"2.0"}`},
		},
		{
			"notification answered", server.Behaviour{Receive: func(s *server.Session, m *wire.Message, next func()) {
				if next(); m.Method == "notifications/x" {
					s.Send(&server.Outgoing{Raw: []byte(`{"id":null}`)})
				}
			}},
			`{"jsonrpc":"2.0","method":"notifications/x"}`, []string{`{"id":null}`}, nil,
		},
		{
			"batch served", server.Behaviour{Batches: true},
			`[{"jsonrpc":"2.0","id":70,"method":"ping"}]`,
			[]string{`{"id":70,"jsonrpc":"2.0","result":{}}`},
			[]string{`{"error":{"code":-32600,"message":"Invalid request: the message is an array, which is a JSON-RPC batch"},"id":null,"jsonrpc":"2.0"}`},
		},
		{
			"version not looked at", server.Behaviour{Valid: func(m *wire.Message) bool { return m.Kind == wire.Request }},
			`{"jsonrpc":"1.0","id":70,"method":"ping"}`,
			[]string{`{"id":70,"jsonrpc":"2.0","result":{}}`},
			[]string{`{"error":{"code":-32600,"message":"Invalid request: member \"jsonrpc\" is \"1.0\", not \"2.0\""},"id":70,"jsonrpc":"2.0"}`},
		},
		{
			"U+2028 ends a line", server.Behaviour{Inbound: func(raw []byte) []byte { return bytes.ReplaceAll(raw, []byte("\u2028"), []byte("\n")) }},
			pingBody + "\u2028" + pingBody,
			slices.Repeat([]string{`{"id":1,"jsonrpc":"2.0","result":{}}`}, 2),
			[]string{`{"error":{"code":-32700,"message":"Parse error: not JSON: there is more after the end of the value at byte 40"},"id":null,"jsonrpc":"2.0"}`},
		},
		{
			"pretty-printed", server.Behaviour{Frame: func(out *server.Outgoing, frame []byte) []byte {
				if out.Answers != nil && out.Answers.Method == "logging/setLevel" {
					return bytes.ReplaceAll(frame, []byte(`,"j`), []byte(",\n\"j"))
				}
				return frame
			}},
			request("logging/setLevel", `{"level":"info"}`),
			[]string{`{"id":70,`, `"jsonrpc":"2.0","result":{}}`}, []string{`{"id":70,"jsonrpc":"2.0","result":{}}`},
		},
		{
			"level ignored, list of tools, then undeclared notification",
			methods("logging/setLevel", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				r.Notify("notifications/resources/updated", map[string]any{"uri": "test://x"})
				return next(ctx, r)
			}),
			request("logging/setLevel", `{"level":"info"}`),
			[]string{
				`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://x"}}`,
				`{"id":70,"jsonrpc":"2.0","result":{}}`,
			},
			[]string{`{"id":70,"jsonrpc":"2.0","result":{}}`},
		},
		{
			"no error for unknown resources",
			methods("resources/read", server.Named("test://none", server.Always(map[string]any{"contents": []any{}}))),
			request("resources/read", `{"uri":"test://none"}`),
			[]string{`{"id":70,"jsonrpc":"2.0","result":{"contents":[]}}`},
			[]string{`{"error":{"code":-32002,"data":{"uri":"test://none"},"message":"Resource not found"},"id":70,"jsonrpc":"2.0"}`},
		},
		{
			"completion totals",
			methods("completion/complete", server.Edit(func(_ *server.Request, result map[string]any) { result["completion"].(map[string]any)["total"] = 0 })),
			request("completion/complete", `{"ref":{"type":"ref/prompt","name":"travel"},"argument":{"name":"country","value":"p"}}`),
			[]string{`{"id":70,"jsonrpc":"2.0","result":{"completion":{"hasMore":false,"total":0,"values":["Peru"]}}}`},
			[]string{`{"id":70,"jsonrpc":"2.0","result":{"completion":{"hasMore":false,"total":1,"values":["Peru"]}}}`},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, run := range []struct {
				behaviour server.Behaviour
				want      []string
			}{{test.behaviour, test.want}, {server.Behaviour{}, test.twin}} {
				s := start(t, server.Options{Behaviour: run.behaviour}, client.Options{})
				from := s.Log().Len()
				if _, err := s.Send(t.Context(), []byte(test.send)); err != nil {
					t.Fatal(err)
				}
				p, err := s.StartID(t.Context(), wire.StringID("fence"), "resources/templates/list", nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := p.Await(t.Context()); err != nil {
					t.Fatal(err)
				}
				got := slices.DeleteFunc(all(s, from), func(line string) bool { return strings.Contains(line, "fence") })
				if diff := cmp.Diff(run.want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestFaultsOfTheHandshake(t *testing.T) {
	t.Run("echoes any version", func(t *testing.T) {
		b := server.Behaviour{Lifecycle: server.Lifecycle{Version: func(asked string) string { return asked }}}
		s := start(t, server.Options{Behaviour: b}, client.Options{Version: "1.0.0"})
		if got := s.Init.Result()["protocolVersion"]; got != "1.0.0" {
			t.Errorf("got %v", got)
		}
	})
	t.Run("serves early and again", func(t *testing.T) {
		b := server.Behaviour{Lifecycle: server.Lifecycle{Early: true, Again: true}}
		s := dial(t, server.Options{Behaviour: b}, client.Options{})
		for _, method := range []string{"tools/list", "initialize", "initialize"} {
			if x := call(t, s, method, s.InitializeParams()); x.Result() == nil {
				t.Errorf("%s: %s", method, x.Response.Raw)
			}
		}
	})
	t.Run("speaks first", func(t *testing.T) {
		b := server.Behaviour{Connected: func(_ context.Context, s *server.Session) { s.Notify("notifications/tools/list_changed", nil) }}
		s := dial(t, server.Options{Behaviour: b}, client.Options{})
		if _, err := s.AwaitNotification(t.Context(), 0, "notifications/tools/list_changed"); err != nil {
			t.Error(err)
		}
	})
	t.Run("declares nothing, serves everything", func(t *testing.T) {
		b := methods("initialize", server.Edit(func(_ *server.Request, result map[string]any) { result["capabilities"] = map[string]any{} }))
		s := start(t, server.Options{Behaviour: b}, client.Options{})
		if s.Capability("tools") || call(t, s, "tools/list", nil).Result() == nil {
			t.Error("tools")
		}
	})
	t.Run("asks for what was not declared", func(t *testing.T) {
		s := start(t, server.Options{Behaviour: server.Behaviour{IgnoreCapabilities: true}}, client.Options{})
		tool(t, s, "test_roots", nil)
		if diff := cmp.Diff([]string{"roots/list"}, methodsOf(sent(s))); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("asks the client", func(t *testing.T) {
		answers := make(chan error, 1)
		b := server.Behaviour{Initialized: func(ctx context.Context, s *server.Session) {
			_, err := s.Call(ctx, "no/such", nil)
			answers <- err
		}}
		start(t, server.Options{Behaviour: b}, client.Options{})
		if err := <-answers; err == nil || !strings.Contains(err.Error(), "-32601") {
			t.Errorf("got %v", err)
		}
	})
}

func TestFaultsOfOrderAndTime(t *testing.T) {
	t.Run("progress after the response", func(t *testing.T) {
		b := server.Behaviour{Send: server.OnResponse("tools/call", func(out *server.Outgoing) []*server.Outgoing {
			token, _ := out.Answers.Token()
			late := out.Answers.Notification("notifications/progress", map[string]any{"progressToken": token, "progress": 999})
			return []*server.Outgoing{out, late}
		})}
		s := start(t, server.Options{Behaviour: b}, client.Options{})
		from := call(t, s, "tools/call", object{"name": "test_simple_text", "_meta": object{"progressToken": "t"}}).Response.Seq
		if _, err := s.AwaitNotification(t.Context(), from, "notifications/progress"); err != nil {
			t.Error(err)
		}
	})
	t.Run("reordered", func(t *testing.T) {
		// Each first response of a pair waits for the second.
		type key struct{}
		b := server.Behaviour{Send: server.OnResponse("ping", func(out *server.Outgoing) []*server.Outgoing {
			held := out.Session.Value(key{}, func() any { return make(chan *server.Outgoing, 1) }).(chan *server.Outgoing)
			select {
			case first := <-held:
				return []*server.Outgoing{out, first}
			default:
				held <- out
				return nil
			}
		})}
		s := start(t, server.Options{Behaviour: b}, client.Options{})
		from := s.Log().Len()
		one, err := s.Start(t.Context(), "ping", nil)
		if err != nil {
			t.Fatal(err)
		}
		two := call(t, s, "ping", nil)
		x, err := one.Await(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := all(s, from); len(got) != 2 || got[0] != string(two.Response.Raw) || got[1] != string(x.Response.Raw) {
			t.Errorf("got %v", got)
		}
	})
	t.Run("held back", func(t *testing.T) {
		b := server.Behaviour{}
		gate := make(chan struct{})
		b.Send = server.OnResponse("tools/list", func(out *server.Outgoing) []*server.Outgoing {
			out.Until, out.Delay = gate, 1
			return []*server.Outgoing{out}
		})
		s := start(t, server.Options{Behaviour: b}, client.Options{})
		p, err := s.Start(t.Context(), "tools/list", nil)
		if err != nil {
			t.Fatal(err)
		}
		fence := call(t, s, "ping", nil)
		close(gate)
		x, err := p.Await(t.Context())
		if err != nil || x.Response.Seq < fence.Response.Seq {
			t.Errorf("%v, %v", x, err)
		}
	})
	t.Run("answers what was cancelled", func(t *testing.T) {
		s := start(t, server.Options{Behaviour: server.Behaviour{AnswerCancelled: true}}, client.Options{})
		p, err := s.Start(t.Context(), "tools/call", object{"name": "slow", "arguments": object{"seconds": 60}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Notify(t.Context(), "notifications/cancelled", object{"requestId": json.RawMessage(p.ID.String())}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Await(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestFaultsOfTheProcess(t *testing.T) {
	run := func(t *testing.T, b server.Behaviour, input string) (stdout, stderr string, err error) {
		t.Helper()
		var out, noise strings.Builder
		err = server.New(server.Options{Behaviour: b}).RunStdio(t.Context(), strings.NewReader(input), &out, &noise)
		return out.String(), noise.String(), err
	}
	t.Run("banner and noise", func(t *testing.T) {
		b := server.Behaviour{Stdio: server.Stdio{Start: func(stdout, stderr io.Writer) {
			_, _ = io.WriteString(stdout, "ready\n")
			_, _ = io.WriteString(stderr, "noise\n")
		}}}
		if out, noise, err := run(t, b, ""); out != "ready\n" || noise != "noise\n" || err != nil {
			t.Errorf("%q, %q, %v", out, noise, err)
		}
	})
	t.Run("dies of bad JSON", func(t *testing.T) {
		b := server.Behaviour{Stdio: server.Stdio{ExitCode: 3, Quit: func(_ int, line []byte) bool { return !json.Valid(line) }}}
		out, _, err := run(t, b, pingBody+"\nnonsense\n"+pingBody+"\n")
		if exit, ok := err.(*server.ExitError); !ok || exit.Code != 3 || strings.Count(out, "\n") != 1 {
			t.Errorf("%q, %v", out, err)
		}
	})
	t.Run("lingers", func(t *testing.T) {
		s := server.New(server.Options{Behaviour: server.Behaviour{Stdio: server.Stdio{Linger: func(*server.Session) bool { return true }}}})
		d := &transport.Stdio{Launcher: transport.Func{Name: "lingering", Run: s.RunStdio}, ExitWait: 1}
		conn, err := d.Dial(t.Context(), wire.NewTrace(wire.DefaultLimits).Connect("stdio", ""))
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err = conn.Log().Await(t.Context(), 0, func(e *wire.Event) bool { return e.Kind == wire.KindSignal })
		if err != nil {
			t.Error("a signal was not needed")
		}
	})
	t.Run("buffers its output until the end", func(t *testing.T) {
		var held bytes.Buffer
		b := server.Behaviour{Stdio: server.Stdio{Stdout: func(io.Writer) io.Writer { return &held }}}
		if out, _, err := run(t, b, pingBody); out != "" || held.Len() == 0 || err != nil {
			t.Errorf("%q, %q, %v", out, held.String(), err)
		}
	})
}

func TestFaultsOverHTTP(t *testing.T) {
	site := func(t *testing.T, h server.HTTP) *site {
		return serve(t, server.Options{Behaviour: server.Behaviour{HTTP: h}, HTTP: server.HTTPOptions{AlwaysSSE: h.Event != nil || h.KeepOpen != nil}})
	}
	reply := func(change func(r *server.Reply)) server.HTTP { return server.HTTP{Reply: change} }
	status := func(situation server.Situation, status int) server.HTTP {
		return reply(func(r *server.Reply) {
			if r.Situation == situation {
				r.Status = status
			}
		})
	}
	t.Run("trusts any origin", func(t *testing.T) {
		s := site(t, reply(func(r *server.Reply) { r.Pass = r.Situation == server.ForeignOrigin })).begin()
		if resp := s.post(pingBody, "Origin", "https://evil.example"); resp.StatusCode != 200 {
			t.Error(resp.StatusCode)
		}
	})
	t.Run("other statuses", func(t *testing.T) {
		s := site(t, status(server.UnknownSession, 400)).begin()
		if resp := s.post(pingBody, "Mcp-Session-Id", "none"); resp.StatusCode != 400 {
			t.Error(resp.StatusCode)
		}
		s = site(t, status(server.MissingSession, 404)).begin()
		if resp := s.post(pingBody, "Mcp-Session-Id", ""); resp.StatusCode != 404 {
			t.Error(resp.StatusCode)
		}
		s = site(t, status(server.ListeningSSE, 501)).begin()
		if resp := s.do("GET", "/mcp", ""); resp.StatusCode != 501 {
			t.Error(resp.StatusCode)
		}
	})
	t.Run("body with 202", func(t *testing.T) {
		s := site(t, reply(func(r *server.Reply) {
			if r.Situation == server.Accepted && strings.Contains(r.Request.Header.Get("Mcp-Protocol-Version"), "2025") {
				r.Body = []byte("null")
			}
		})).begin()
		if body := s.read(s.post(`{"jsonrpc":"2.0","method":"notifications/x"}`, "Mcp-Protocol-Version", "2025-06-18")); body != "null" {
			t.Errorf("%q", body)
		}
	})
	t.Run("serves without and with unknown sessions", func(t *testing.T) {
		s := site(t, reply(func(r *server.Reply) {
			r.Pass = r.Situation == server.MissingSession || r.Situation == server.UnknownSession
		})).begin()
		for _, id := range []string{"", "none"} {
			if resp := s.post(pingBody, "Mcp-Session-Id", id); resp.StatusCode != 200 {
				t.Errorf("%q: %d", id, resp.StatusCode)
			}
		}
	})
	t.Run("ids repeat", func(t *testing.T) {
		s := site(t, server.HTTP{Event: func(e *server.Event) []*server.Event { e.ID = "1"; return []*server.Event{e} }}).begin()
		for range 2 {
			if id, m := eventsOf(t, s.post(pingBody)).next(); m == nil || id != "1" {
				t.Errorf("%q, %v", id, m)
			}
		}
	})
	t.Run("stays open", func(t *testing.T) {
		s := site(t, server.HTTP{KeepOpen: func(r *server.Request) bool { return r.Method == "ping" }}).begin()
		e := eventsOf(t, s.post(pingBody))
		if _, m := e.next(); m == nil || m.Kind != wire.Result {
			t.Fatal(m)
		}
		if resp := s.do("DELETE", "/mcp", ""); resp.StatusCode != 204 { // only this ends it
			t.Error(resp.StatusCode)
		}
		if _, m := e.next(); m != nil {
			t.Error(m)
		}
	})
	t.Run("cuts and cannot tell streams apart", func(t *testing.T) {
		h := server.HTTP{
			Event:  func(e *server.Event) []*server.Event { e.Cut = e.Out.Method != ""; return []*server.Event{e} },
			Replay: func(_ *server.Session, _ string, _, all []*server.Event) []*server.Event { return all },
		}
		s := site(t, h).begin()
		e := eventsOf(t, s.post(callBody("5", "test_tool_with_progress")))
		last, m := e.next()
		if _, end := e.next(); m == nil || end != nil {
			t.Fatalf("not cut: %v, %v", m, end)
		}
		replayed := eventsOf(t, s.do("GET", "/mcp", "", "Last-Event-Id", last))
		if _, m := replayed.next(); m == nil || m.ID.String() != `"i"` {
			t.Errorf("replayed: %v", m)
		}
	})
	t.Run("leaves an event without an id", func(t *testing.T) {
		sent := 0
		s := site(t, server.HTTP{Event: func(e *server.Event) []*server.Event {
			if e.Out.Method != "" {
				if sent++; sent == 2 {
					e.ID = ""
				}
			}
			return []*server.Event{e}
		}}).begin()
		e := eventsOf(t, s.post(callBody("5", "test_tool_with_progress")))
		first, _ := e.next()
		left, _ := e.next()
		for m := (&wire.Message{}); m != nil; {
			_, m = e.next()
		}
		if first == "" || left != "" {
			t.Fatalf("ids %q, %q", first, left)
		}
		replayed := eventsOf(t, s.do("GET", "/mcp", "", "Last-Event-Id", first))
		if id, m := replayed.next(); id == "" || m == nil {
			t.Errorf("it was replayed, and leaves its reader at the event before: %v", m)
		}
	})
	t.Run("sessions live on", func(t *testing.T) {
		s := site(t, server.HTTP{KeepSession: true}).begin()
		if a, b := s.do("DELETE", "/mcp", ""), s.post(pingBody); a.StatusCode != 204 || b.StatusCode != 200 {
			t.Errorf("%d, %d", a.StatusCode, b.StatusCode)
		}
	})
	t.Run("counts sessions", func(t *testing.T) {
		n := 0
		s := site(t, server.HTTP{SessionID: func() string { n++; return "session " + strconv.Itoa(n) }}).begin()
		if s.session != "session 1" {
			t.Error(s.session)
		}
	})
	t.Run("wants a key", func(t *testing.T) {
		s := site(t, server.HTTP{Middleware: func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
		}})
		if resp := s.post(pingBody); resp.StatusCode != 401 {
			t.Error(resp.StatusCode)
		}
	})
	t.Run("tells all listeners, and the wrong request", func(t *testing.T) {
		b := server.Behaviour{Send: func(out *server.Outgoing) []*server.Outgoing {
			if out.Method == "notifications/progress" {
				out.To = nil
			}
			return []*server.Outgoing{out}
		}}
		s := serve(t, server.Options{Behaviour: b}).begin()
		listening := eventsOf(t, s.do("GET", "/mcp", ""))
		if resp := s.post(callBody("5", "test_tool_with_progress")); resp.Header.Get("Content-Type") != "application/json" {
			t.Error(resp.Header)
		}
		if _, m := listening.next(); m == nil || m.Method != "notifications/progress" {
			t.Error(m)
		}
	})
}

// TestBreaksAreDeclared notes on every event of the server what is broken on purpose.
func TestBreaksAreDeclared(t *testing.T) {
	trace := wire.NewTrace(wire.DefaultLimits)
	b := server.Behaviour{Breaks: []string{"base.response.once"}}
	err := server.New(server.Options{Behaviour: b, Trace: trace}).RunStdio(t.Context(), strings.NewReader(pingBody), io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range trace.Logs()[0].Events() {
		if declared := slices.Contains(e.Deliberate, "base.response.once"); declared != (e.From == wire.Server) {
			t.Errorf("%s of the %s: %v", e.Kind, e.From, e.Deliberate)
		}
	}
}
