package check_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
)

// prepared returns why the handshake fails with what a dialer reaches.
func prepared(t *testing.T, d transport.Dialer, timeout time.Duration) error {
	t.Helper()
	e := engine(timeout)
	e.Dialer = d
	_, err := e.Prepare(t.Context())
	e.Finish(t.Context())
	if err == nil {
		t.Fatal("the handshake succeeds")
	}
	return err
}

// TestHintOfOutput tests the hints from the output of a process that does not answer initialize.
func TestHintOfOutput(t *testing.T) {
	for name, c := range map[string]struct {
		stdout, stderr string
		want           string // the end of the error
		exits          bool
	}{
		"silent":            {want: "no answer to initialize within 3s; if it may take longer, raise --start-timeout"},
		"headers":           {stdout: "Content-Length: 20\r\n\r\n{}", want: "an MCP message is one line, without headers"},
		"a log":             {stdout: "\nINFO ready\nINFO still ready\n", want: `the first line on stdout is not a message: "INFO ready"; what is not a message belongs on stderr`},
		"a log, then exits": {stdout: "usage: server DIR\n", exits: true, want: `"usage: server DIR"; what is not a message belongs on stderr`},
		"a log on stderr":   {stderr: "INFO ready\n", want: "raise --start-timeout"},
		"exits":             {exits: true, want: "exited with status 0"},
		"messages":          {stdout: "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\nINFO ready\n", want: "raise --start-timeout"},
		"npx asks":          {stdout: "Need to install the following packages:\nserver@1.0.0\nOk to proceed? (y) ", want: "npx -y does not ask"},
		"npx gives up":      {stderr: "npm error npx canceled due to missing packages and no YES option: [\"server@1\"]\n", exits: true, want: "npx -y does not ask"},
		"HTTP":              {stderr: "INFO: Uvicorn running on http://127.0.0.1:8000/?token=secret (Press CTRL+C to quit)\n", want: "it says that it serves http://127.0.0.1:8000; a server over HTTP is given as --start COMMAND --url URL"},
		"HTTP, port only":   {stdout: "Server listening on port 3000\n", want: "it says that it serves a port; a server over HTTP is given as --start COMMAND --url URL"},
		"HTTP of others":    {stderr: "fetching https://example.com/data\n", want: "raise --start-timeout"},
	} {
		virtually(t, name, func(t *testing.T) {
			err := prepared(t, &transport.Stdio{Launcher: transport.Func{Name: "odd", Run: func(_ context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
				_, _ = io.WriteString(stderr, c.stderr)
				_, _ = io.WriteString(stdout, c.stdout)
				if !c.exits {
					_, _ = io.Copy(io.Discard, stdin)
				}
				return nil
			}}}, time.Second)
			if !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("%q; want it to end with %q", err, c.want)
			}
			var late *client.TimeoutError
			var closed *client.ClosedError
			if !errors.As(err, &late) && !errors.As(err, &closed) {
				t.Errorf("the hint hides what happened: %T", err)
			}
		})
	}
}

// TestHintOfResponse tests the hints from the answer of a server over HTTP that gives no result.
func TestHintOfResponse(t *testing.T) {
	answer := func(status int, headers ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(headers)-1; i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(status)
			if len(headers)%2 == 1 {
				_, _ = io.WriteString(w, headers[len(headers)-1])
			}
		}
	}
	auto := func(e transport.Endpoint) transport.Dialer { return &transport.HTTP{Endpoint: e, OrOlder: true} }
	streamable := func(e transport.Endpoint) transport.Dialer { return &transport.HTTP{Endpoint: e} }
	older := func(e transport.Endpoint) transport.Dialer { return &transport.SSE{Endpoint: e} }
	const webSocket = "the server wants a WebSocket: the URL of one begins with ws:// or wss://"
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		path  string
		dial  func(transport.Endpoint) transport.Dialer
		want  string // the end of the error
	}{
		"426":                     {answer(426, "Upgrade", "websocket"), "/mcp", auto, webSocket},
		"426 without a name":      {answer(426), "/mcp", auto, webSocket},
		"426 to another protocol": {answer(426, "Upgrade", "h2c"), "/mcp", auto, "HTTP status 426"},
		"a version of WebSocket":  {answer(400, "Sec-WebSocket-Version", "13", "Bad Request"), "/mcp", auto, webSocket},
		"a web page":              {answer(200, "Content-Type", "text/html; charset=utf-8", "<html>"), "/", auto, "the answer is an HTML page, as of a website or a sign-in; the usual paths are /mcp and /sse"},
		"404":                     {answer(404, "not here"), "/mcp/", auto, "nothing is at this path; the usual paths are /sse and /"},
		"404 of a session":        {answer(404, "Content-Type", "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Session not found"}}`), "/mcp", auto, `"Session not found"`},
		"405":                     {answer(405), "/api", auto, "this path does not take POST; the usual paths are /mcp and /sse"},
		"405, one transport only": {answer(405), "/sse", streamable, "without --transport http, HTTP+SSE, the older transport, is tried as well"},
		"403":                     {answer(403), "/mcp", streamable, "HTTP status 403"},
		"421":                     {answer(421, "Content-Type", "text/html", "<html>"), "/mcp", auto, "try localhost in place of 127.0.0.1, or the other way round"},
		"500":                     {answer(500, "oops"), "/mcp", streamable, `HTTP status 500: "oops"`},
		"TLS":                     {answer(400, "Client sent an HTTP request to an HTTPS server.\n"), "/mcp", auto, "the server wants TLS: the URL begins with https://"},
		"HTTP+SSE":                {answer(405), "/mcp", older, "without --transport sse, Streamable HTTP is tried first"},
		"a stream without an end": {answer(200, "Content-Type", "text/event-stream", ": hello\n\n"), "/mcp", older, "without --transport sse, Streamable HTTP is tried first"},
		"an endpoint elsewhere":   {answer(200, "Content-Type", "text/event-stream", "event: endpoint\ndata: http://example.com/\n\n"), "/sse", older, "to which mcpconform sends nothing"},
		"no answer":               {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "/sse", older, "within 50ms; if it may take longer, raise --timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.serve)
			defer server.Close()
			timeout := time.Minute
			if name == "no answer" {
				timeout = 50 * time.Millisecond
			}
			err := prepared(t, c.dial(transport.Endpoint{URL: server.URL + c.path, Timeout: timeout}), timeout)
			if !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("%q; want it to end with %q", err, c.want)
			}
		})
	}
	t.Run("plain HTTP", func(t *testing.T) {
		server := httptest.NewServer(answer(200))
		defer server.Close()
		err := prepared(t, auto(transport.Endpoint{URL: strings.Replace(server.URL, "http://", "https://", 1)}), time.Minute)
		if want := "the server does not speak TLS: the URL begins with http://"; !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q; want it to end with %q", err, want)
		}
	})
}

// The limit of a start is that of a start alone.
func TestStartTimeout(t *testing.T) {
	e := engine(time.Hour)
	e.StartTimeout = 20 * time.Millisecond
	e.Dialer = &transport.Stdio{Launcher: transport.Func{Name: "silent", Run: func(_ context.Context, stdin io.Reader, _, _ io.Writer) error {
		_, err := io.Copy(io.Discard, stdin)
		return err
	}}}
	_, err := e.Prepare(t.Context())
	e.Finish(t.Context())
	var late *client.TimeoutError
	if !errors.As(err, &late) || !late.Start || late.After != e.StartTimeout {
		t.Errorf("error %v", err)
	}
}
