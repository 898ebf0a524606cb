//go:build linux

package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// TestRelayPassesLimits tests that the relay passes on text beyond the limits, byte for byte. It only ends the
// record.
func TestRelayPassesLimits(t *testing.T) {
	const line = `{"jsonrpc":"2.0","method":"notifications/x"}` + "\n"
	long := strings.Repeat("y", 50_000)
	limits := wire.Limits{Message: 1000, Total: 1 << 20, Events: 20}
	for _, c := range []struct {
		name, text string
		stopped    bool
	}{
		{"within", line + "\nrest", false},
		{"events", strings.Repeat(line, 500) + "rest", true},
		{"long line", line + long + "\n" + line, true},
		{"endless line", line + long, true},
	} {
		t.Run("stdio/"+c.name, func(t *testing.T) {
			noLeaks(t)
			log := lossy(limits).Connect(NameStdio, "")
			d := &Stdio{Launcher: Func{Name: "echo", Run: func(_ context.Context, in io.Reader, out, errOut io.Writer) error {
				_, err := io.Copy(io.MultiWriter(out, errOut), in)
				return err
			}}}
			var out, errOut bytes.Buffer
			if err := d.RelayStdio(limit(t), log, strings.NewReader(c.text), &out, &errOut); err != nil {
				t.Fatal(err)
			}
			if out.String() != c.text || errOut.String() != c.text {
				t.Errorf("%d bytes were passed on, on stderr %d, of %d", out.Len(), errOut.Len(), len(c.text))
			}
			recorded(t, log, limits, c.stopped)
		})
		for _, mediaType := range []string{typeEvents, typeJSON} {
			t.Run(mediaType+"/"+c.name, func(t *testing.T) {
				upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", mediaType)
					for l := range strings.SplitAfterSeq(c.text, "\n") {
						fmt.Fprint(w, "data: "+l+"\n")
					}
				}))
				defer upstream.Close()
				want := get(t, upstream.URL)
				trace := lossy(limits)
				relay, err := NewHTTPRelay(Endpoint{URL: upstream.URL}, NameHTTP, trace)
				if err != nil {
					t.Fatal(err)
				}
				front := httptest.NewServer(relay)
				defer front.Close()
				if got := get(t, front.URL); got != want {
					t.Errorf("%d bytes were passed on, of %d", len(got), len(want))
				}
				relay.Close()
				recorded(t, trace.Logs()[0], limits, c.stopped)
			})
		}
	}
}

// Sessions without end are all passed on, and only as many are kept as the trace has room
// for. The last log says so.
func TestRelayOfManySessions(t *testing.T) {
	noLeaks(t)
	sessions := 0
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sessions++
		w.Header().Set("Mcp-Session-Id", strconv.Itoa(sessions))
		w.Header().Set("Content-Type", typeJSON)
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	}))
	defer upstream.Close()
	trace := lossy(wire.Limits{Message: 1000, Total: 1 << 20, Events: 20, Run: 1 << 16})
	relay, err := NewHTTPRelay(Endpoint{URL: upstream.URL}, NameHTTP, trace)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(relay)
	defer front.Close()
	for range 100 {
		resp, err := http.Post(front.URL, typeJSON, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`))
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(body), "result") {
			t.Fatalf("%q, %v", body, err)
		}
		_ = resp.Body.Close()
	}
	relay.Close()
	logs := trace.Logs()
	if len(logs) < 2 || len(logs) > 20 || len(relay.links) != len(logs) || sessions != 100 {
		t.Errorf("%d sessions, %d logs, %d links", sessions, len(logs), len(relay.links))
	}
	if last := logs[len(logs)-1]; !last.Stopped() || logs[0].Stopped() {
		t.Error(history(last))
	}
}

// Metadata and tokens that a client gets through the relay are not a part of its session, and no
// secret of theirs is kept.
func TestRelayBesideSessions(t *testing.T) {
	noLeaks(t)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", typeJSON)
		if r.URL.Path == "/mcp" || r.URL.Path == "/elsewhere" {
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
			return
		}
		fmt.Fprintf(w, `{"access_token":"secret-of-the-answer","asked":%q}`, r.Method+" "+r.URL.Path+" "+string(body))
	}))
	defer upstream.Close()
	for _, over := range []string{NameHTTP, NameSSE} {
		trace := wire.NewTrace(wire.DefaultLimits)
		relay, err := NewHTTPRelay(Endpoint{URL: upstream.URL + "/mcp"}, over, trace)
		if err != nil {
			t.Fatal(err)
		}
		front := httptest.NewServer(relay)
		post := func(path, kind, body string) string {
			resp, err := http.Post(front.URL+path, kind, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			answer, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Error(err)
			}
			return string(answer)
		}
		post("/mcp", typeJSON, `{"jsonrpc":"2.0","id":1,"method":"initialize"}`)
		for want, got := range map[string]string{
			"GET /.well-known/oauth-protected-resource/mcp ": get(t, front.URL+"/.well-known/oauth-protected-resource/mcp"),
			"POST /token code=secret-of-the-request":         post("/token", "application/x-www-form-urlencoded", "code=secret-of-the-request"),
			"POST /register {}":                              post("/register", typeJSON, "{}"),
		} {
			if !strings.Contains(got, want) || !strings.Contains(got, "secret-of-the-answer") {
				t.Errorf("%s: %s is not passed on: %s", over, want, got)
			}
		}
		post("/elsewhere", typeJSON, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		front.Close()
		relay.Close()
		heads := make(map[string]int)
		for _, l := range trace.Logs() {
			for _, e := range l.Events() {
				if e.Kind == wire.KindHTTPRequest {
					heads[l.Transport]++
				}
			}
		}
		if diff := cmp.Diff(map[string]int{over: 2, NameOAuth: 3}, heads); diff != "" {
			t.Errorf("%s: requests by the transport of the log (-want +got):\n%s", over, diff)
		}
		var kept bytes.Buffer
		if _, err := trace.WriteTo(&kept); err != nil || strings.Contains(kept.String(), "secret-of") {
			t.Errorf("%s: %v: %s", over, err, kept.String())
		}
	}
}

func lossy(limits wire.Limits) *wire.Trace {
	trace := wire.NewTrace(limits)
	trace.Lossy = true
	return trace
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return string(body)
}

func recorded(t *testing.T, log *wire.Log, limits wire.Limits, stopped bool) {
	t.Helper()
	if log.Stopped() != stopped || log.Len() > limits.Events+1 {
		t.Errorf("%d events were kept; the record was stopped: %t, want %t\n%s", log.Len(), log.Stopped(), stopped, cmp.Diff([]string(nil), history(log)))
	}
}

// A client that takes nothing does not keep the relay from its end.
func TestRelayBesideStalledClient(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(t.Context())
	d := &Stdio{ExitWait: time.Millisecond, Launcher: Func{Name: "talker", Run: func(ctx context.Context, _ io.Reader, out, _ io.Writer) error {
		for {
			if _, err := io.WriteString(out, "{}\n"); err != nil {
				return err
			}
			interrupt(errors.New("enough"))
		}
	}}}
	out, in := io.Pipe()
	defer out.Close()
	client, input := io.Pipe()
	defer input.Close()
	log := lossy(wire.DefaultLimits).Connect(NameStdio, "")
	if err := d.RelayStdio(ctx, log, client, in, io.Discard); err != nil {
		t.Fatal(err)
	}
	if events := log.Events(); events[len(events)-1].Kind != wire.KindExit {
		t.Error(history(log))
	}
}

// A relay before a WebSocket takes a line for a message and gives each message as a line,
// whatever line ends it has. It ends with either side, and with what it cannot record.
func TestRelayWebSocket(t *testing.T) {
	noLeaks(t)
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	answer := func(ctx context.Context, c *websocket.Conn) {
		if _, raw, err := c.Read(ctx); err != nil || string(raw) != ping {
			return
		}
		_ = c.Write(ctx, websocket.MessageText, []byte("{\"jsonrpc\":\r\n\"2.0\",\n\"id\":1,\"result\":{}}"))
	}
	limits := wire.Limits{Message: 100, Total: 1 << 20, Events: 1000}
	for name, tt := range map[string]struct {
		serve func(ctx context.Context, c *websocket.Conn)
		lines string
		out   string
		says  string
	}{
		"the client ends": {func(ctx context.Context, c *websocket.Conn) {
			answer(ctx, c)
			_, _, _ = c.Read(ctx) // the close frame
		}, "\n" + ping + "\n", "{\"jsonrpc\":  \"2.0\", \"id\":1,\"result\":{}}\n", "the WebSocket"},
		"the server ends": {func(ctx context.Context, c *websocket.Conn) {
			answer(ctx, c)
			_ = c.Close(websocket.StatusGoingAway, "bye")
		}, ping + "\n", "{\"jsonrpc\":  \"2.0\", \"id\":1,\"result\":{}}\n", `"bye"`},
		"too long a line": {answer, strings.Repeat("x", 200) + "\n", "", "a message of the client is longer than 100 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			log := lossy(limits).Connect(NameCustom, "")
			client, input := io.Pipe()
			defer input.Close()
			output, out := io.Pipe()
			relayed := make(chan error, 1)
			ctx, d := limit(t), &WebSocket{Endpoint: webSocket(t, tt.serve)}
			go func() {
				relayed <- d.RelayStdio(ctx, log, client, out)
				_ = out.Close()
			}()
			go func() { _, _ = io.WriteString(input, tt.lines) }() // the end need not take it all
			got := make([]byte, len(tt.out))
			if _, err := io.ReadFull(output, got); err != nil || string(got) != tt.out {
				t.Errorf("the client gets %q, %v", got, err)
			}
			if name == "the client ends" {
				_ = input.Close()
			}
			if err := <-relayed; err != nil {
				t.Error(err)
			}
			var notes []string
			for _, e := range log.Events() {
				notes = append(notes, e.Note)
			}
			if text := strings.Join(notes, "; "); !strings.Contains(text, tt.says) {
				t.Errorf("the log does not say %q: %s", tt.says, text)
			}
		})
	}
}
