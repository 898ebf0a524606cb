package suites_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/memory"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

// shaken is the answer to initialize of a server that offers everything.
const shaken = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{"subscribe":true},"prompts":{},"logging":{},"completions":{}},"serverInfo":{"name":"s","version":"1"}}}`

// over stdio, a server that says a text, byte for byte or all at once, and then is there.
func sluggish(text string, each time.Duration) func(*testing.T) transport.Dialer {
	return func(*testing.T) transport.Dialer {
		return &transport.Stdio{Launcher: transport.Func{Name: "sluggish", Run: func(ctx context.Context, in io.Reader, out, _ io.Writer) error {
			read := make(chan struct{})
			go func() {
				defer close(read)
				_, _ = io.Copy(io.Discard, in)
			}()
			for i := range len(text) {
				select {
				case <-time.After(each):
				case <-read:
					return nil
				case <-ctx.Done():
					return nil
				}
				if _, err := io.WriteString(out, text[i:i+1]); err != nil {
					return err
				}
			}
			select {
			case <-read:
			case <-ctx.Done():
			}
			return nil
		}}}
	}
}

// over HTTP, a server that says a text to each request, byte for byte, and then one thing
// without end.
func dribbling(text, endless string, each time.Duration) func(*testing.T) transport.Dialer {
	return func(t *testing.T) transport.Dialer {
		network := new(memory.Network)
		l, err := network.Listen()
		if err != nil {
			t.Fatal(err)
		}
		var serving sync.WaitGroup
		serving.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				serving.Go(func() {
					defer func() { _ = c.Close() }()
					if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
						_, _ = io.Copy(io.Discard, r.Body)
					}
					gone := make(chan struct{})
					serving.Go(func() {
						defer close(gone)
						_, _ = io.Copy(io.Discard, c)
					})
					say(c, gone, text, endless, each)
				})
			}
		})
		t.Cleanup(serving.Wait)
		t.Cleanup(func() { _ = l.Close() })
		return &transport.HTTP{Endpoint: transport.Endpoint{URL: "http://" + l.Addr().String() + "/mcp", Dial: network.Dial}}
	}
}

func say(c net.Conn, gone <-chan struct{}, text, endless string, each time.Duration) {
	for next := text; ; next = endless {
		for i := range len(next) {
			select {
			case <-time.After(each):
			case <-gone:
				return
			}
			if _, err := io.WriteString(c, next[i:i+1]); err != nil {
				return
			}
		}
		if endless == "" {
			<-gone
			return
		}
	}
}

// TestRunTimeout: whatever the server does, the run ends with its time limit and says so.
func TestRunTimeout(t *testing.T) {
	const limit = 9 * time.Second
	head := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
	for _, tt := range []struct {
		name   string
		dialer func(*testing.T) transport.Dialer
	}{
		{"silent", sluggish("", 0)},
		{"silent after the handshake", sluggish(shaken+"\n", 0)},
		{"handshake of one byte a second", sluggish(shaken+"\n", time.Second)},
		{"handshake of ten bytes a second", sluggish(shaken+"\n", time.Second/10)},
		{"silent over HTTP", dribbling("", "", 0)},
		{"other protocol", dribbling("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", "x", time.Second)},
		{"other protocol, silent", dribbling("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", "", 0)},
		{"endless hints", dribbling("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", time.Second/50)},
		{"endless headers", dribbling("HTTP/1.1 200 OK\r\n", "X-A: b\r\n", time.Second/10)},
		{"endless comments", dribbling(head, ": still here\n\n", time.Second/10)},
		{"endless body behind 202", dribbling("HTTP/1.1 202 Accepted\r\n\r\n", "x", time.Second/10)},
		{"a byte a second over HTTP", dribbling(head+"data: "+shaken+"\n\n", ": on\n\n", time.Second)},
	} {
		t.Run(tt.name, inVirtualTime(func(t *testing.T) {
			began := time.Now()
			run, _, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: tt.dialer(t)}, suites.Options{RunTimeout: limit, Timeout: 20 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			overtime(t, run, time.Since(began), limit)
		}))
	}
}

// overtime expects a run to have ended at its time limit.
func overtime(t *testing.T, run *result.Run, took, limit time.Duration) {
	t.Helper()
	const grace = 15 * time.Second // for processes to end
	if took > limit+grace {
		t.Errorf("it took %v", took)
	}
	said := strings.Contains(run.Reason, "--run-timeout")
	for _, q := range run.Requirements {
		said = said || strings.Contains(q.Reason, "--run-timeout")
		if q.Verdict == result.Error {
			t.Errorf("%s: %s", q.ID, q.Reason)
		}
		for _, f := range q.Findings {
			if strings.Contains(f.Message, "--run-timeout") || strings.Contains(f.Message, "interrupted") {
				t.Errorf("%s: the peer is accused of our limit: %s", q.ID, f.Message)
			}
		}
	}
	if took >= limit && !said {
		t.Errorf("nothing names the limit: %s: %s", run.Verdict, run.Reason)
	}
	if run.Verdict == result.Conformant || len(run.Requirements) < 100 {
		t.Errorf("the verdict is %s on %d requirements", run.Verdict, len(run.Requirements))
	}
}

// TestRunTimeoutOfClients: a client that does something for ever cannot keep a run from
// its end either.
func TestRunTimeoutOfClients(t *testing.T) {
	for name, do := range map[string]func(ctx context.Context, p client.Endpoint) error{
		"silent": func(ctx context.Context, _ client.Endpoint) error {
			<-ctx.Done()
			return ctx.Err()
		},
		"a byte a second": func(ctx context.Context, p client.Endpoint) error {
			c, err := p.Dial(ctx, "tcp", strings.TrimSuffix(strings.TrimPrefix(p.URL, "http://"), "/mcp"))
			if err != nil {
				return err
			}
			defer func() { _ = c.Close() }()
			for {
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
					return ctx.Err()
				}
				if _, err := io.WriteString(c, "P"); err != nil {
					return err
				}
			}
		},
		"request after request": func(ctx context.Context, p client.Endpoint) error {
			c := &http.Client{Transport: &http.Transport{DialContext: p.Dial}}
			defer c.CloseIdleConnections()
			for n := 1; ctx.Err() == nil; n++ {
				body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, n)
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, strings.NewReader(body))
				if err != nil {
					return err
				}
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Accept", "application/json, text/event-stream")
				if a, err := c.Do(r); err == nil {
					_ = a.Body.Close()
				}
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
				}
			}
			return errors.New("ended")
		},
	} {
		t.Run(name, func(t *testing.T) {
			const limit = 35 * time.Second
			virtual.Test(t, func(t *testing.T) {
				began := time.Now()
				run, _, err := suites.Run(t.Context(), suites.ClientScenarios{Network: new(memory.Network), Launch: func(p client.Endpoint) (transport.Process, error) {
					return transport.Func{Name: name, Run: func(ctx context.Context, _ io.Reader, _, _ io.Writer) error { return do(ctx, p) }}.Launch()
				}}, suites.Options{RunTimeout: limit, Timeout: 40 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				overtime(t, run, time.Since(began), limit)
			})
		})
	}
}
