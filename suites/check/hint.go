package check

import (
	"crypto/tls"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/internal/ending"
)

// explained adds a hint to the error of the first session: the reason that its connection shows, with advice, or else
// the time limit that has ended it. It changes no verdict: a hint is a guess, although a good one.
func (e *Engine) explained(err error) error {
	if errors.As(err, new(*UnauthorizedError)) {
		return err
	}
	for _, l := range slices.Backward(e.Trace.Logs()) {
		if l.Label != FirstLabel {
			continue
		}
		if hint := e.hint(err, l); hint != "" {
			return ending.Advise(err, hint)
		}
		break
	}
	return ending.Longer(err)
}

func (e *Engine) hint(err error, l *wire.Log) string {
	switch d := e.Dialer.(type) {
	case *transport.Stdio:
		var late *client.TimeoutError
		var closed *client.ClosedError
		if errors.As(err, &late) || errors.As(err, &closed) {
			return hintOfOutput(l)
		}
	case *transport.SSE:
		answered := func(e *wire.Event) bool { return e.Kind == wire.KindHTTPResponse }
		named := func(e *wire.Event) bool { return e.SSE != nil && e.SSE.Event == "endpoint" }
		if slices.ContainsFunc(l.Events(), answered) && !slices.ContainsFunc(l.Events(), named) {
			return "without --transport sse, Streamable HTTP is tried first"
		}
		return hintOfTLS(err)
	case *transport.HTTP:
		if x := e.target.Init; x != nil && x.Head != nil {
			return hintOfResponse(d, x)
		}
		return hintOfTLS(err)
	}
	return ""
}

// sayings are outputs of processes that are not servers over stdio, or not yet, with advice. The first match decides.
var sayings = []struct {
	line *regexp.Regexp
	hint func(found []string) string
}{
	{
		regexp.MustCompile(`(?i)^content-length: *\d+`),
		func([]string) string {
			return "it writes Content-Length headers to stdout, as language servers do; an MCP message is one " +
				"line, without headers"
		},
	},
	{
		regexp.MustCompile(
			`^Ok to proceed\?|^Need to install the following packages|npx canceled due to missing packages`),
		func([]string) string {
			return "npx asks whether it may install the package, and nobody answers; npx -y does not ask"
		},
	},
	{
		regexp.MustCompile(
			`(?i)\b(?:listen|run|serv|start|ready|available)\w*\b.*\b` +
				`(?:(https?://(?:localhost|[\d.]+|\[[\da-f:]+\])(?::\d+)?)|port\W{0,3}\d+)`),
		func(found []string) string {
			at := found[1]
			if at == "" {
				at = "a port"
			}
			return "it says that it serves " + at + "; a server over HTTP is given as --start COMMAND --url URL"
		},
	},
}

// mostLines bounds how much of the output of a process is looked at.
const mostLines = 200

// hintOfOutput returns a hint from the output of a process that did not answer initialize.
func hintOfOutput(l *wire.Log) string {
	var lines []string
	stray, spoke := "", false
	for _, e := range l.Events() {
		switch {
		case len(lines) == mostLines:
		case e.Kind == wire.KindStderr:
			lines = append(lines, string(e.Raw))
		case e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.Kind != wire.Invalid:
			spoke = true
		case e.Kind == wire.KindMessage && e.From == wire.Server:
			lines = append(lines, string(e.Raw))
			if text := strings.TrimSpace(string(e.Raw)); stray == "" && text != "" {
				stray = text
			}
		}
	}
	for _, s := range sayings {
		for _, line := range lines {
			if found := s.line.FindStringSubmatch(line); found != nil {
				return s.hint(found)
			}
		}
	}
	if stray == "" || spoke {
		return ""
	}
	return "the first line on stdout is not a message: " + wire.Quote(stray, 60) +
		"; what is not a message belongs on stderr"
}

// hintOfResponse says what an answer to initialize shows that is not a result.
func hintOfResponse(d *transport.HTTP, x *client.Exchange) string {
	head, body := x.Head.HTTP, ""
	if x.Body != nil {
		body = string(x.Body.Raw)
	}
	mediaType, _, _ := mime.ParseMediaType(head.Header.Get("Content-Type"))
	switch {
	case wantsWebSocket(head):
		return "the server wants a WebSocket: the URL of one begins with ws:// or wss://"
	case wantsTLS.MatchString(body) && head.Status == http.StatusBadRequest:
		return "the server wants TLS: the URL begins with https://"
	case head.Status == http.StatusMisdirectedRequest:
		return "the server does not answer to the host name in the URL: try localhost in place of 127.0.0.1, or the " +
			"other way round"
	case head.Status/100 == 4 && head.Status != http.StatusForbidden && !d.OrOlder:
		return "without --transport http, HTTP+SSE, the older transport, is tried as well"
	case x.Response != nil:
		return "" // the server's own words say more
	case head.Status == http.StatusNotFound:
		return "nothing is at this path; " + otherPaths(d.URL)
	case head.Status == http.StatusMethodNotAllowed:
		return "this path does not take POST; " + otherPaths(d.URL)
	case mediaType == "text/html":
		return "the answer is an HTML page, as of a website or a sign-in; " + otherPaths(d.URL)
	}
	return ""
}

// wantsWebSocket reports whether a response says that the server serves WebSockets there:
// some say so with 426, others with a version.
func wantsWebSocket(head *wire.Head) bool {
	upgrade := strings.ToLower(head.Header.Get("Upgrade"))
	switch {
	case head.Status/100 != 4:
		return false
	case strings.Contains(upgrade, "websocket"), head.Header.Get("Sec-Websocket-Version") != "":
		return true
	}
	return head.Status == http.StatusUpgradeRequired && upgrade == ""
}

// wantsTLS is what servers answer to plain HTTP at a port for TLS.
var wantsTLS = regexp.MustCompile(`(?i)\bHTTP request (?:was sent )?to (?:an? )?HTTPS (?:server|port)`)

// otherPaths says at which paths servers have their endpoints, other than that of a URL.
func otherPaths(rawURL string) string {
	here := "/"
	if u, err := url.Parse(rawURL); err == nil {
		here = path.Clean("/" + u.Path)
	}
	common := slices.DeleteFunc([]string{"/mcp", "/sse", "/"}, func(p string) bool { return p == here })
	return "the usual paths are " + strings.Join(common[:2], " and ")
}

// hintOfTLS says why a connection could not be secured, if that is known.
func hintOfTLS(err error) string {
	if errors.As(err, new(tls.RecordHeaderError)) {
		return "the server does not speak TLS: the URL begins with http://"
	}
	return ""
}
