package client_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const initResult = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"logging":{},"prompts":{"listChanged":false}},"serverInfo":{"name":"s","version":"1"}}`

// A peer sees each line of the client and writes lines; it ends with its
// script or with its input.
type peer struct {
	in  *bufio.Scanner
	out io.Writer
}

// next returns the client's next message; nil at the end.
func (p *peer) next() *wire.Message {
	if !p.in.Scan() {
		return nil
	}
	return wire.Parse(bytes.Clone(p.in.Bytes()))
}

func (p *peer) say(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

// rest reads to the end.
func (p *peer) rest() {
	for p.in.Scan() {
	}
}

// dial starts a session with a peer that follows a script.
func dial(t *testing.T, o client.Options, script func(p *peer)) *client.Session {
	t.Helper()
	return dialThrough(t, func(c transport.Conn) transport.Conn { return c }, o, script)
}

// dialThrough is dial with a connection that is wrapped.
func dialThrough(t *testing.T, wrap func(transport.Conn) transport.Conn, o client.Options, script func(p *peer)) *client.Session {
	t.Helper()
	d := &transport.Stdio{Launcher: transport.Func{Name: "script", Run: func(_ context.Context, in io.Reader, out, _ io.Writer) error {
		script(&peer{bufio.NewScanner(in), out})
		return nil
	}}}
	conn, err := d.Dial(t.Context(), wire.NewTrace(wire.Limits{Message: 1 << 16, Total: 1 << 20, Events: 1000}).Connect("stdio", t.Name()))
	if err != nil {
		t.Fatal(err)
	}
	if o.Timeout == 0 {
		o.Timeout = time.Minute // no test waits for it
	}
	s := client.New(wrap(conn), o)
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// sent returns what the client has sent, one text a message.
func sent(s *client.Session) []string {
	var list []string
	for _, e := range s.Log().Events() {
		if e.Kind == wire.KindMessage && e.From == wire.Client {
			list = append(list, string(e.Raw))
		}
	}
	return list
}

func TestInitialize(t *testing.T) {
	s := dial(t, client.Options{Capabilities: map[string]any{"roots": map[string]any{}}}, func(p *peer) {
		p.say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, p.next().ID, initResult)
		p.rest()
	})
	x, err := s.Initialize(t.Context())
	if err != nil || x != s.Init {
		t.Fatalf("Initialize = %v, %v", x, err)
	}
	want := []string{
		`{"id":1,"jsonrpc":"2.0","method":"initialize","params":{"capabilities":{"roots":{}},"clientInfo":{"name":"mcpconform","title":"mcpconform reference client","version":"1.0.0"},"protocolVersion":"2025-06-18"}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	}
	if diff := cmp.Diff(want, sent(s)); diff != "" {
		t.Errorf("sent (-want +got)\n%s", diff)
	}
	for path, declared := range map[string]bool{
		"tools": true, "tools.listChanged": true, "logging": true, "prompts": true, "prompts.listChanged": false,
		"resources": false, "resources.subscribe": false, "tools.listChanged.x": false,
	} {
		if s.Capability(path) != declared {
			t.Errorf("capability %s is declared: %t", path, !declared)
		}
	}
	if events := x.Events(); len(events) != 2 || events[0] != x.Request || events[1] != x.Response {
		t.Errorf("events %v", events)
	}
}

func TestInitializeRefused(t *testing.T) {
	for _, c := range []struct{ answer, want string }{
		{`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"not \"today\""}}`, `initialize was answered with error -32603: "not \"today\""`},
		{`{"jsonrpc":"2.0","id":1,"result":null}`, "initialize was answered with something that is not a result"},
		{`{"jsonrpc":"2.0","id":1,"error":null}`, "initialize was answered with error 0: \"\""},
	} {
		s := dial(t, client.Options{}, func(p *peer) {
			p.next()
			p.say("%s", c.answer)
			p.rest()
		})
		_, err := s.Initialize(t.Context())
		var refused *client.RefusedError
		if !errors.As(err, &refused) || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.answer, err, c.want)
		}
		if s.Capability("tools") || len(sent(s)) != 1 {
			t.Errorf("%s: the session went on: %q", c.answer, sent(s))
		}
	}
}

// If a server answers initialize and ends, the handshake has succeeded, whether or
// not initialized still arrives.
func TestInitializeAndGone(t *testing.T) {
	s := dial(t, client.Options{}, func(p *peer) { p.say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, p.next().ID, initResult) })
	if x, err := s.Initialize(t.Context()); err != nil || x.Result() == nil {
		t.Errorf("Initialize = %v, %v", x, err)
	}
	var closed *client.ClosedError
	if err := s.Fence(t.Context()); !errors.As(err, &closed) || !strings.Contains(err.Error(), "exited with status 0") {
		t.Errorf("the next request: %v", err)
	}
}

// An answer is found by its id, however spelled, whatever else arrives.
func TestAwait(t *testing.T) {
	for name, answer := range map[string]string{
		"plain":            `{"jsonrpc":"2.0","id":1,"result":{"x":1}}`,
		"as string":        `{"jsonrpc":"2.0","id":"1","result":{"x":1}}`,
		"as fraction":      `{"jsonrpc":"2.0","id":1.0,"result":{"x":1}}`,
		"without id":       `{"jsonrpc":"2.0","result":{"x":1}}`,
		"with a null id":   `{"jsonrpc":"2.0","id":null,"result":{"x":1}}`,
		"in a batch":       `[{"jsonrpc":"2.0","id":1,"result":{"x":1}}]`,
		"without envelope": `{"id":1,"result":{"x":1}}`,
		"twice":            `{"jsonrpc":"2.0","id":1,"result":{"x":1}}` + "\n" + `{"jsonrpc":"2.0","id":1,"result":{"x":2}}`,
	} {
		s := dial(t, client.Options{}, func(p *peer) {
			p.next()
			p.say("some text\n")
			p.say(`{"jsonrpc":"2.0","id":7,"result":{"x":0}}`)
			p.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"x":0}}`)
			p.say("%s", answer)
			p.rest()
		})
		x, err := s.Call(t.Context(), "test", nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if x.Result()["x"] != json.Number("1") || x.Error() != nil {
			t.Errorf("%s: the answer is %s", name, x.Response.Raw)
		}
	}
}

// If several requests are open, a response without an id belongs to none of them.
func TestAwaitDoesNotGuess(t *testing.T) {
	s := dial(t, client.Options{}, func(p *peer) {
		a, b := p.next(), p.next()
		p.say(`{"jsonrpc":"2.0","error":{"code":1,"message":"whose?"}}`)
		p.say(`{"jsonrpc":"2.0","id":%s,"result":{"of":"b"}}`, b.ID)
		p.say(`{"jsonrpc":"2.0","id":%s,"result":{"of":"a"}}`, a.ID)
		p.rest()
	})
	answers := make(chan *client.Exchange)
	var pending []*client.Pending
	for _, name := range []string{"a", "b"} {
		p, err := s.Start(t.Context(), name, map[string]any{})
		if err != nil {
			t.Fatal(err)
		}
		pending = append(pending, p)
	}
	for _, p := range pending {
		go func() {
			x, _ := p.Await(t.Context())
			answers <- x
		}()
	}
	for range pending {
		x := <-answers
		if got := x.Result()["of"]; got != x.Request.Msg.Method {
			t.Errorf("request %s got the answer %s", x.Request.Msg.Method, x.Response.Raw)
		}
	}
}

func TestSilence(t *testing.T) {
	s := dial(t, client.Options{Timeout: 250 * time.Millisecond}, func(p *peer) { p.rest() })
	x, err := s.Call(t.Context(), "test", nil)
	var late *client.TimeoutError
	if !errors.As(err, &late) || err.Error() != "no answer to test within 250ms" || x.Request == nil || x.Response != nil {
		t.Errorf("Call = %+v, %v", x, err)
	}
	events := s.Log().Events()
	told := false
	for _, e := range events {
		told = told || e.Kind == wire.KindTimeout && e.From == wire.Server && e.Note == "answer to test"
	}
	if !told {
		t.Error("the log does not tell of the timeout")
	}
	if got := sent(s); !strings.Contains(got[len(got)-1], `"requestId":1`) {
		t.Errorf("the request was not given up: %q", got)
	}
	// initialize must not be cancelled (basic/lifecycle#timeouts).
	if _, err := s.Initialize(t.Context()); !errors.As(err, &late) {
		t.Errorf("Initialize: %v", err)
	}
	if got := sent(s); !strings.Contains(got[len(got)-1], `"initialize"`) {
		t.Errorf("after initialize came %q", got[len(got)-1])
	}
}

func TestInterrupted(t *testing.T) {
	s := dial(t, client.Options{}, func(p *peer) { p.rest() })
	cause := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	p, err := s.Start(ctx, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	cancel(cause)
	if _, err := p.Await(ctx); !errors.Is(err, cause) {
		t.Errorf("Await: %v", err)
	}
	for _, e := range s.Log().Events() {
		if e.Kind == wire.KindTimeout {
			t.Error("an interruption counts as a timeout of the server")
		}
	}
}

// The error says how a connection ended.
func TestEnd(t *testing.T) {
	for _, c := range []struct {
		name   string
		script func(p *peer)
		want   string
	}{
		{"exit", func(p *peer) { p.next() }, "the server exited with status 0"},
		{"half an answer", func(p *peer) { p.next(); fmt.Fprint(p.out, `{"jsonrpc":"2.0","id":1,"res`) }, "the server exited with status 0"},
		{"closed", func(p *peer) { p.next(); _ = p.out.(io.Closer).Close(); p.rest() }, "the server closed its stdout"},
		{"closed before", func(p *peer) { _ = p.out.(io.Closer).Close(); p.rest() }, "the server closed its stdout"},
		{"flood", func(p *peer) {
			p.next()
			for {
				if _, err := fmt.Fprintln(p.out, "text"); err != nil {
					return
				}
			}
		}, "reading was stopped: the peer sent more than the limits allow"},
		{"endless line", func(p *peer) { p.next(); _, _ = p.out.Write(bytes.Repeat([]byte("x"), 1<<17)); p.rest() },
			"reading was stopped: a line is longer than 65536 bytes"},
	} {
		s := dial(t, client.Options{}, c.script)
		_, err := s.Call(t.Context(), "test", nil)
		var closed *client.ClosedError
		if !errors.As(err, &closed) || err.Error() != "no answer to test: "+c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
		if strings.HasPrefix(c.name, "closed") {
			// It still reads, but cannot answer any more.
			if _, err := s.Call(t.Context(), "test", nil); !errors.As(err, &closed) {
				t.Errorf("%s, afterwards: %v", c.name, err)
			}
			continue
		}
		if _, err := s.Log().Await(t.Context(), 0, func(e *wire.Event) bool { return e.Kind == wire.KindExit }); err != nil {
			t.Fatal(err)
		}
		_, err = s.Call(t.Context(), "test", nil)
		if !errors.As(err, &closed) && !errors.Is(err, wire.ErrFlood) {
			t.Errorf("%s, afterwards: %v", c.name, err)
		}
	}
}

func TestAnswers(t *testing.T) {
	s := dial(t, client.Options{Answers: map[string]client.Answer{
		"result": func(_ context.Context, params any) (any, *wire.Error) { return params, nil },
		"error": func(context.Context, any) (any, *wire.Error) {
			return nil, &wire.Error{Code: -1, Message: "<no>", Data: map[string]any{"k": json.Number("1.50")}}
		},
		"silent": func(context.Context, any) (any, *wire.Error) { return nil, nil },
	}}, func(p *peer) {
		p.next()
		for i, request := range []string{
			`"id":"<é>","method":"result","params":{"a":[1.0]}`, `"id":1e2,"method":"error"`, `"id":3,"method":"silent"`, `"id":4,"method":"ping"`,
			`"id":5,"method":"unknown"`, `"id":null,"method":"ping"`, `"id":6.5,"method":"ping"`, `"method":"ping"`,
		} {
			p.say(`{"jsonrpc":"2.0",%s}`, request)
			if i != 2 && i < 5 {
				p.next() // one after the other: they are answered side by side
			}
		}
		p.say(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		p.rest()
	})
	if err := s.Fence(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"id":1,"jsonrpc":"2.0","method":"ping"}`,
		`{"id":"<é>","jsonrpc":"2.0","result":{"a":[1.0]}}`,
		`{"error":{"code":-1,"data":{"k":1.50},"message":"<no>"},"id":1e2,"jsonrpc":"2.0"}`,
		`{"id":4,"jsonrpc":"2.0","result":{}}`,
		`{"error":{"code":-32601,"message":"Method not found: unknown"},"id":5,"jsonrpc":"2.0"}`,
	}
	if diff := cmp.Diff(want, sent(s)); diff != "" {
		t.Errorf("sent (-want +got)\n%s", diff)
	}
}

// A slow answer delays neither other answers nor the end.
func TestSlowAnswer(t *testing.T) {
	s := dial(t, client.Options{Answers: map[string]client.Answer{
		"slow": func(ctx context.Context, _ any) (any, *wire.Error) { <-ctx.Done(); return map[string]any{}, nil },
	}}, func(p *peer) {
		p.next()
		p.say(`{"jsonrpc":"2.0","id":1,"method":"slow"}`)
		p.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		p.next()
		p.say(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		p.rest()
	})
	if err := s.Fence(t.Context()); err != nil {
		t.Error(err)
	}
}

// A peer sends endless requests and does not read the answers.
func TestRequestFlood(t *testing.T) {
	s := dial(t, client.Options{}, func(p *peer) {
		for i := range 5000 {
			p.say(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i)
		}
	})
	if _, err := s.Log().Await(t.Context(), 0, func(e *wire.Event) bool { return e.Kind == wire.KindExit }); err != nil {
		t.Error(err)
	}
}

func TestSend(t *testing.T) {
	s := dial(t, client.Options{}, func(p *peer) { p.rest() })
	e, err := s.Send(t.Context(), []byte("no JSON"), client.Deliberately("a", "b"), client.Deliberately("c"))
	if err != nil || string(e.Raw) != "no JSON" || cmp.Diff([]string{"a", "b", "c"}, e.Deliberate) != "" {
		t.Errorf("Send = %+v, %v", e, err)
	}
	if err := s.Notify(t.Context(), "n", map[string]any{"k": "<"}); err != nil {
		t.Error(err)
	}
	if got := sent(s)[1]; got != `{"jsonrpc":"2.0","method":"n","params":{"k":"<"}}` {
		t.Errorf("sent %s", got)
	}
	if a, b := s.NextID(), s.NextID(); a.Key() == b.Key() {
		t.Errorf("the id %s is given twice", a)
	}
	chosen := wire.IntID(4)
	if _, err := s.StartID(t.Context(), chosen, "ping", nil); err != nil {
		t.Error(err)
	}
	for range 3 {
		if id := s.NextID(); id.Key() == chosen.Key() {
			t.Errorf("the id %s is given though a request was sent with it", id)
		}
	}
}

func TestAwaitNotification(t *testing.T) {
	s := dial(t, client.Options{}, func(p *peer) {
		p.next()
		p.say(`{"jsonrpc":"2.0","method":"n","params":{"i":0}}`)
		p.say(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		p.say(`{"jsonrpc":"2.0","method":"n","params":{"i":1}}`)
		p.rest()
	})
	x, err := s.Call(t.Context(), "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	for from, want := range map[int]string{0: "0", x.Response.Seq: "1"} {
		e, err := s.AwaitNotification(t.Context(), from, "n")
		if err != nil || wire.Show(wire.At(e.Msg.Params, "i")) != want {
			t.Errorf("from %d: %v, %v", from, e, err)
		}
	}
}

func TestDescribeEnd(t *testing.T) {
	for want, e := range map[string]*wire.Event{
		"the connection ended":            nil,
		"the server exited with status 2": {Kind: wire.KindExit, Exit: &wire.Exit{Code: 2}},
		"the server closed its stdout":    {Kind: wire.KindClose, Stream: "stdout"},
		"reset":                           {Kind: wire.KindStreamEnd, Note: "reset"},
	} {
		if got := client.DescribeEnd(e); got != want {
			t.Errorf("%+v is described as %q, want %q", e, got, want)
		}
	}
}

// Messages that are deliberately malformed, or have an id in use, get their answers, too.
func TestAwaitRaw(t *testing.T) {
	for name, c := range map[string]struct{ raw, answer string }{
		"a method that is no string": {`{"jsonrpc":"2.0","id":1,"method":7}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":""}}`},
		"an id of another type":      {`{"jsonrpc":"2.0","id":1,"method":7}`, `{"jsonrpc":"2.0","id":"1","error":{"code":-32600,"message":""}}`},
		"a batch":                    {`[{"jsonrpc":"2.0","id":1,"method":"test"}]`, `{"jsonrpc":"2.0","id":1,"result":{}}`},
	} {
		s := dial(t, client.Options{}, func(p *peer) {
			p.next()
			p.say("%s", c.answer)
			p.rest()
		})
		pending, err := s.StartRaw(t.Context(), wire.IntID(1), "test", []byte(c.raw))
		if err != nil {
			t.Fatal(err)
		}
		if x, err := pending.Await(t.Context()); err != nil || x.Request != pending.Request || string(x.Response.Raw) != c.answer {
			t.Errorf("%s: %+v, %v", name, x, err)
		}
	}
	s := dial(t, client.Options{}, func(p *peer) {
		p.next()
		p.say(`{"jsonrpc":"2.0","id":%s,"result":{}}`, p.next().ID)
		p.rest()
	})
	var both []*client.Pending
	for _, method := range []string{"a", "b"} {
		p, err := s.StartID(t.Context(), wire.IntID(7), method, nil)
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, p)
	}
	for _, p := range both {
		if x, err := p.Await(t.Context()); err != nil || x.Request != p.Request || x.Result() == nil {
			t.Errorf("%s, of two requests with one id and one response: %+v, %v", p.Method, x, err)
		}
	}
}
