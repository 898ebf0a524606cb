package suites_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/killmatrix"
	"github.com/mcpconform/mcpconform/internal/proof/memory"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	suiteclient "github.com/mcpconform/mcpconform/suites/client"
	clients "github.com/mcpconform/mcpconform/suites/internal/client"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
	"github.com/mcpconform/mcpconform/suites/result"
)

// fuzzTime bounds, in virtual time, whatever a peer of bytes may cost.
const fuzzTime = time.Hour

// within fails if a context has ended: what should have ended by itself was ended.
func within(t *testing.T, ctx context.Context) {
	t.Helper()
	if ctx.Err() != nil {
		t.Errorf("it did not end within %v", fuzzTime)
	}
}

var idMember = regexp.MustCompile(`"id":("[^"]*"|-?[0-9]+)`)

// plays is a server over stdio that says the next of some texts whenever it reads a
// line; $id in a text is the id that the line has.
func plays(texts [][]byte) transport.Func {
	return transport.Func{Name: "a peer of bytes", Run: func(_ context.Context, in io.Reader, out, _ io.Writer) error {
		lines := bufio.NewReader(in)
		for _, text := range texts {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return err
			}
			id := []byte("null")
			if found := idMember.FindSubmatch(line); found != nil {
				id = found[1]
			}
			if _, err := out.Write(bytes.ReplaceAll(text, []byte("$id"), id)); err != nil {
				return err
			}
		}
		_, _ = io.Copy(io.Discard, lines)
		return nil
	}}
}

// FuzzSession plays a whole session from bytes, in virtual time: as a server over stdio and
// over HTTP to our client, and as a client over both to our server. Each ends by
// itself, leaves nothing behind, and every rule copes with what was recorded.
func FuzzSession(f *testing.F) {
	const shake = `{"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{},"completions":{},"logging":{}},"serverInfo":{"name":"s","version":"1"}}}` + "\n"
	const ask = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	for _, seed := range []string{
		shake + "\x00\x00" + `{"jsonrpc":"2.0","id":$id,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":"b"}}` + "\n",
		shake + "\x00" + `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n\x00[]\n\x00{}\n\x00" + `{"jsonrpc":"2.0","id":$id,"error":{"code":-32601,"message":""}}` + "\n",
		"\n\x00\xff\xfe\n", `{"jsonrpc":"2.0","id":1`,
		ask + `{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n" + `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"test_simple_text"}}` + "\n",
		ask + `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"x:"}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}` + "\n[]\n",
		"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nid: 1\nretry: 1\ndata: {}\n\n",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer resource_metadata=\"http://127.0.0.1:1/\"\r\nContent-Length: 0\r\n\r\n",
		"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nContent-Length: 2\r\n\r\n{}", "GET /sse HTTP/1.1\r\nHost: localhost\r\n\r\n", "DELETE /mcp HTTP/1.0\r\nMcp-Session-Id: \x00\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64<<10 {
			return
		}
		texts := bytes.Split(data, []byte{0})
		virtual.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), fuzzTime)
			defer cancel()
			_ = client.Standalone{Launcher: plays(texts), Timeout: time.Second}.Run(ctx)
			within(t, ctx)
		})
		virtual.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), fuzzTime)
			defer cancel()
			at := answers(t, texts)
			_ = client.Standalone{URL: at.URL + "/mcp", Dial: at.Dial, Timeout: time.Second}.Run(ctx)
			within(t, ctx)
		})
		trace := wire.NewTrace(wire.DefaultLimits)
		virtual.Test(t, func(t *testing.T) { speaks(t, trace, bytes.ReplaceAll(data, []byte{0}, nil)) })
		judge.Judge(schema.Default(), trace.Logs(), judge.Options{})
	})
}

// answers listens at a network in memory and says one of the texts on each connection,
// once something was sent.
func answers(t *testing.T, texts [][]byte) transport.Endpoint {
	network := new(memory.Network)
	l, err := network.Listen()
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				defer func() { _ = c.Close() }()
				if _, err := c.Read(make([]byte, 16<<10)); err != nil {
					return
				}
				_, _ = c.Write(texts[n%len(texts)])
			})
		}
	})
	t.Cleanup(served.Wait)
	t.Cleanup(func() { _ = l.Close() })
	return transport.Endpoint{URL: "http://" + l.Addr().String(), Dial: network.Dial}
}

// speaks sends bytes to our server, over stdio and over HTTP, and hangs up.
func speaks(t *testing.T, trace *wire.Trace, data []byte) {
	ctx, cancel := context.WithTimeout(t.Context(), fuzzTime)
	defer cancel()
	s := server.New(server.Options{Trace: trace, CallTimeout: time.Second})
	process, err := transport.Func{Name: "our server", Run: s.RunStdio}.Launch()
	if err != nil {
		t.Fatal(err)
	}
	var drained sync.WaitGroup
	for _, r := range []io.Reader{process.Stdout(), process.Stderr()} {
		drained.Go(func() { _, _ = io.Copy(io.Discard, r) })
	}
	_, _ = process.Stdin().Write(data)
	_ = process.Stdin().Close()
	<-process.Done()
	drained.Wait()

	network := new(memory.Network)
	l, err := network.Listen()
	if err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(ctx)
	var served sync.WaitGroup
	served.Go(func() { _ = s.HTTP().Serve(serving, l) })
	if c, err := network.Dial(ctx, "tcp", l.Addr().String()); err == nil {
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		var read sync.WaitGroup
		read.Go(func() { _, _ = io.Copy(io.Discard, c) })
		_, _ = c.Write(data)
		read.Wait()
		_ = c.Close()
	}
	stop()
	served.Wait()
	within(t, ctx)
}

// FuzzMetadata gives a run, and our client, the documents of a protected server and of its
// authorization server: nothing about them keeps either from ending.
func FuzzMetadata(f *testing.F) {
	const good = `{"resource":"http://127.0.0.1:20001/mcp","authorization_servers":["http://127.0.0.1:20001"]}`
	const issuer = `{"issuer":"http://127.0.0.1:20001","authorization_endpoint":"http://127.0.0.1:20001/a","token_endpoint":"http://127.0.0.1:20001/t","registration_endpoint":"http://127.0.0.1:20001/r","code_challenge_methods_supported":["S256"],"response_types_supported":["code"]}`
	for _, seed := range [][3]string{
		{good, issuer, "http://127.0.0.1:20001/meta"}, {`{"resource":7,"authorization_servers":["file:///etc/passwd","//x"]}`, `[]`, "file:///etc/passwd"},
		{good, `{"issuer":null,"authorization_endpoint":"javascript:1"}`, "http://169.254.169.254/"}, {`{"authorization_servers":["http://[::1%25x]:99999"]}`, "", "http://127.0.0.1:20001"},
		{"\xff", "{", `"`},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, resource, issuer, at string) {
		serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text := issuer
			switch {
			case strings.HasPrefix(r.URL.Path, "/mcp"):
				w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+at+`"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			case strings.Contains(r.URL.Path, "protected-resource"), r.URL.Path == "/meta":
				text = resource
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, text)
		})
		virtual.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), fuzzTime)
			defer cancel()
			e := below(listen(t, serve), server.PathMCP)
			_ = client.Standalone{URL: e.URL, Dial: e.Dial, Timeout: time.Second}.Run(ctx)
			run, _, err := suites.Run(ctx, suites.ServerChecks{Dialer: &transport.HTTP{Endpoint: e}}, suites.Options{
				Timeout: time.Second, Selection: suites.Selection{Select: []string{"auth.server.*"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range run.Harness {
				t.Errorf("a message of mcpconform is at fault: %s", h.Message)
			}
			noErrors(t, run)
			within(t, ctx)
		})
	})
}

// noErrors fails if a check or rule broke down: a hostile peer must not bring that about.
func noErrors(t *testing.T, run *result.Run) {
	t.Helper()
	for _, q := range run.Requirements {
		if q.Verdict == result.Error {
			t.Errorf("%s is an error: %s", q.ID, killmatrix.Why(q))
		}
	}
}

// recording is what one party said in recorded sessions.
type recording struct {
	answers map[string][]*wire.Event // of a server, by the method of the request
	says    [][]*wire.Event          // of a client, by session
}

// readRecording takes recorded connections apart.
func readRecording(logs []*wire.Log) recording {
	r := recording{answers: make(map[string][]*wire.Event)}
	for _, l := range logs {
		var said []*wire.Event
		for _, e := range l.Events() {
			switch {
			case e.Kind != wire.KindMessage || e.Msg == nil || e.Member:
			case e.From == wire.Client:
				said = append(said, e)
			case e.Msg.IsResponse():
				if x := l.Exchange(e); x != nil {
					r.answers[x.Method()] = append(r.answers[x.Method()], e)
				}
			default: // what a server says of its own accord comes with an answer
				r.answers["ping"] = append(r.answers["ping"], e)
			}
		}
		r.says = append(r.says, said)
	}
	return r
}

// mutated returns the texts of messages, so many of them changed.
func (m mutator) mutated(events []*wire.Event, changes uint8) [][]byte {
	events = slices.Clone(events)
	for range changes {
		events = m.change(events)
	}
	var texts [][]byte
	for _, e := range events {
		texts = append(texts, e.Raw)
	}
	return texts
}

// server plays the mutated answers of a recorded server: to each request one of those to
// requests of the same method.
func (r recording) server(m mutator, changes uint8) transport.Launcher {
	texts := make(map[string][][]byte)
	for _, method := range slices.Sorted(maps.Keys(r.answers)) {
		texts[method] = m.mutated(r.answers[method], changes)
	}
	return transport.Func{Name: "a recorded server", Run: func(_ context.Context, in io.Reader, out, _ io.Writer) error {
		next := make(map[string]int)
		for lines := bufio.NewReader(in); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return err
			}
			asked := wire.Parse(line)
			of := texts[asked.Method]
			if asked.Kind != wire.Request || len(of) == 0 {
				continue
			}
			text := of[next[asked.Method]%len(of)]
			next[asked.Method]++
			text = idMember.ReplaceAllLiteral(text, idMember.Find(line))
			if _, err := out.Write(append(slices.Clone(text), '\n')); err != nil {
				return err
			}
		}
	}}
}

// client plays what a recorded client said, mutated, to the server of a scenario.
func (r recording) client(m mutator, changes uint8) func(suiteclient.Endpoint) (transport.Process, error) {
	texts := m.mutated(r.says[m.IntN(len(r.says))], changes)
	return func(p suiteclient.Endpoint) (transport.Process, error) {
		return transport.Func{Name: "a recorded client", Run: func(ctx context.Context, _ io.Reader, _, _ io.Writer) error {
			d := &transport.HTTP{Endpoint: transport.Endpoint{URL: p.URL, Dial: p.Dial}}
			c, err := d.Dial(ctx, wire.NewTrace(wire.DefaultLimits).Connect(transport.NameHTTP, "recorded"))
			if err != nil {
				return err
			}
			for _, text := range texts {
				if _, err := c.Send(ctx, transport.Outgoing{Raw: text}); err != nil {
					break
				}
				time.Sleep(time.Millisecond)
			}
			return c.Close(ctx)
		}}.Launch()
	}
}

// FuzzRecorded runs the suites against recorded sessions of the reference implementations
// in which something was changed, left out, repeated or moved, in both roles: a run ends,
// and no check breaks down.
func FuzzRecorded(f *testing.F) {
	if brief.Race {
		f.Skip("a recording is judged by what judges other runs, so that there is nothing else to race for")
	}
	// Before the first input, which must not take long.
	logs, err := recorded()
	if err != nil {
		f.Fatal(err)
	}
	servers := readRecording(logs)
	_, trace, err := suites.Run(f.Context(), suites.ClientScenarios{
		Network: new(memory.Network), Scenarios: []string{"exchange/requests"},
		Launch: func(p suiteclient.Endpoint) (transport.Process, error) {
			return suites.ReferenceClient(p, 10*time.Second).Launch()
		},
	}, suites.Options{Timeout: time.Minute})
	if err != nil {
		f.Fatal(err)
	}
	recorded := readRecording(trace.Logs())
	recorded.says = slices.DeleteFunc(recorded.says, func(said []*wire.Event) bool { return len(said) == 0 })
	all := schema.Default().Catalogue()
	scenarios := clients.Scenarios()
	for seed := range uint64(8) {
		f.Add(seed, uint8(seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, changes uint8) {
		m := mutator{rand.New(rand.NewPCG(seed, 1))}
		one := []string{all[m.IntN(len(all))].Page}
		for _, s := range []suites.Stimulus{
			suites.ServerChecks{Dialer: &transport.Stdio{Launcher: servers.server(m, changes)}, Settings: check.Settings{CallTools: check.CallAll}},
			suites.ClientScenarios{Network: new(memory.Network), Scenarios: []string{scenarios[m.IntN(len(scenarios))].Name}, Launch: recorded.client(m, changes)},
		} {
			o := suites.Options{Timeout: time.Second}
			if _, server := s.(suites.ServerChecks); server {
				o.Selection.Select = one
			}
			virtual.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), fuzzTime)
				defer cancel()
				run, _, err := suites.Run(ctx, s, o)
				if err != nil {
					// Nothing of the page binds a server.
					return
				}
				for _, h := range run.Harness {
					t.Errorf("a message of mcpconform is at fault: %s", h.Message)
				}
				noErrors(t, run)
				within(t, ctx)
			})
		}
	})
}
