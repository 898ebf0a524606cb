package mockserver_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/script"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// confirming asks before it does what it is told to, and goes on as the client
// answers. Each | stands for three backticks.
const confirming = `# A tool that asks

|json expect
{"method": "tools/call", "params": {"name": "order", "arguments": {"item": "${item=string}"}}}
|

|json send
{"method": "notifications/progress", "params": {"progressToken": "t", "progress": 1}}
|

|json send as=question
{"method": "elicitation/create", "params": {"message": "Order ${item}?", "requestedSchema": {"type": "object", "properties": {}}}}
|

|json when
{"result": {"action": "accept"}}
|

|json send
{"id": 7, "result": {"content": [{"type": "text", "text": "ordered ${item}"}]}}
|

|text otherwise
|

|json send
{"id": 7, "error": {"code": -32000, "message": "not confirmed"}}
|

|text end
|

|json expect
{"method": "notifications/done"}
|
`

// runScript starts a server that runs a script and returns a session with it, whose
// client answers elicitations with an action.
func runScript(t *testing.T, over, text, action string) (*client.Session, *mockserver.ScriptRun, func() []string) {
	t.Helper()
	s, err := script.Parse("order.md", []byte(strings.ReplaceAll(text, "|", "```")))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var lines []string
	var o server.Options
	run, err := mockserver.RunScript(&o, s, func(line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := server.New(o)
	var dialer transport.Dialer = &transport.Stdio{Launcher: transport.Func{Name: "script", Run: srv.RunStdio}}
	if over == transport.NameHTTP {
		l, err := server.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var served sync.WaitGroup
		served.Go(func() { _ = srv.HTTP().Serve(ctx, l) })
		t.Cleanup(func() { cancel(); served.Wait() })
		dialer = &transport.HTTP{Endpoint: transport.Endpoint{URL: "http://" + l.Addr().String() + server.PathMCP}}
	}
	conn, err := dialer.Dial(t.Context(), wire.NewTrace(wire.DefaultLimits).Connect(dialer.Transport(), t.Name()))
	if err != nil {
		t.Fatal(err)
	}
	session := client.New(conn, client.Options{
		Capabilities: map[string]any{"elicitation": map[string]any{}},
		Answers: map[string]client.Answer{"elicitation/create": func(context.Context, any) (any, *wire.Error) {
			return map[string]any{"action": action, "content": map[string]any{}}, nil
		}},
	})
	t.Cleanup(func() { _ = session.Close(context.Background()) })
	return session, run, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return lines
	}
}

func TestRunScript(t *testing.T) {
	for _, over := range []string{transport.NameStdio, transport.NameHTTP} {
		for action, want := range map[string]string{
			"accept":  `{"id":7,"jsonrpc":"2.0","result":{"content":[{"text":"ordered tea","type":"text"}]}}`,
			"decline": `{"error":{"code":-32000,"message":"not confirmed"},"id":7,"jsonrpc":"2.0"}`,
		} {
			t.Run(over+" "+action, func(t *testing.T) {
				s, run, lines := runScript(t, over, confirming, action)
				if _, err := s.Initialize(t.Context()); err != nil {
					t.Fatal(err)
				}
				// The server serves all other requests as ever.
				if x, err := s.Call(t.Context(), "tools/call", map[string]any{"name": "echo", "arguments": map[string]any{"text": "a"}}); err != nil || x.Result() == nil {
					t.Fatalf("another call: %v", err)
				}
				p, err := s.StartID(t.Context(), wire.IntID(7), "tools/call", map[string]any{"name": "order", "arguments": map[string]any{"item": "tea"}})
				if err != nil {
					t.Fatal(err)
				}
				x, err := p.Await(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, string(x.Response.Msg.Raw)); diff != "" {
					t.Error(diff)
				}
				if run.Finished() {
					t.Error("the script is finished before its last step")
				}
				if err := s.Notify(t.Context(), "notifications/done", nil); err != nil {
					t.Fatal(err)
				}
				if err := s.Fence(t.Context()); err != nil {
					t.Fatal(err)
				}
				if !run.Finished() {
					t.Errorf("the script is not finished: %q", lines())
				}
				want := []string{
					`order.md:3: the message that came is not the expected one: /params/arguments/item is missing`,
					"order.md:3: the script came to its end",
				}
				if diff := cmp.Diff(want, lines()); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// A script may answer the handshake itself, and send what is not a message. A
// client that leaves early leaves it unfinished.
func TestRunScriptHandshake(t *testing.T) {
	const text = "|json expect\n{\"method\": \"initialize\"}\n|\n|text send\nnoise\n|\n" +
		"|json send\n{\"result\": {\"protocolVersion\": \"1999-01-01\", \"capabilities\": {\"tools\": {}}, \"serverInfo\": {\"name\": \"scripted\", \"version\": \"1\"}}}\n|\n" +
		"|json expect\n{\"method\": \"tools/list\"}\n|\n|json send\n{\"id\": \"${id}\", \"result\": {\"tools\": 7}}\n|\n|json expect\n{\"method\": \"resources/list\"}\n|\n"
	s, run, lines := runScript(t, transport.NameStdio, text, "")
	x, err := s.Initialize(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if v := x.Result()["protocolVersion"]; v != "1999-01-01" {
		t.Errorf("the version is %v", v)
	}
	if x, err = s.Call(t.Context(), "tools/list", nil); err != nil || wire.Show(x.Result()["tools"]) != "7" {
		t.Errorf("got %v, %v", x.Result(), err)
	}
	noise := false
	for _, e := range s.Log().Events() {
		noise = noise || e.Kind == wire.KindMessage && string(e.Raw) == "noise"
	}
	if !noise {
		t.Error("the text was not sent")
	}
	_ = s.Close(context.Background())
	if diff := cmp.Diff([]string{"order.md:16: the session ended before this came"}, lines()); diff != "" || run.Finished() {
		t.Errorf("finished %t: %s", run.Finished(), diff)
	}
}

func TestRunScriptFaults(t *testing.T) {
	s, err := script.Parse("f.md", []byte(strings.ReplaceAll("|json expect\n{\"method\": \"ping\"}\n|\n|json never\n{}\n|\n", "|", "```")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mockserver.RunScript(new(server.Options), s, func(string) {}); err == nil || !strings.HasPrefix(err.Error(), "f.md:4: never is for scripts") {
		t.Errorf("got %v", err)
	}
	// A reference to nothing ends the script, and not the server.
	session, _, lines := runScript(t, transport.NameStdio, "|json expect\n{\"method\": \"ping\"}\n|\n|json send\n{\"id\": \"${id}\", \"result\": {\"a\": \"${b}\"}}\n|\n", "")
	if x, err := session.Call(t.Context(), "ping", nil); err != nil || x.Error() == nil || x.Error().Code != server.InternalError {
		t.Errorf("the request that the script took and cannot answer got %+v, %v", x.Response, err)
	}
	if diff := cmp.Diff([]string{"order.md:4: nothing was captured as b; the script ends here"}, lines()); diff != "" {
		t.Error(diff)
	}
}
