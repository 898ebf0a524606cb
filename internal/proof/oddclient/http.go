package oddclient

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var (
	ofSending   = "basic/transports#sending-messages-to-the-server"
	ofListening = "basic/transports#listening-for-messages-from-the-server"
	ofSessions  = "basic/transports#session-management"
)

// contentType gives bodies of JSON another field.
func contentType(field string) apply {
	return Heads(func(h *Head) {
		if h.Get("Content-Type") == "application/json" {
			h.Set("Content-Type", field)
		}
	})
}

// unlistening does not open the GET stream by itself.
func unlistening(meanwhile func(ctx context.Context, conn *transport.HTTPConn)) apply {
	return Wrapping(func(conn transport.Conn) transport.Conn {
		raw, ok := conn.(*transport.HTTPConn)
		if !ok {
			return conn
		}
		return &quiet{Conn: conn, raw: raw, meanwhile: meanwhile}
	})
}

type quiet struct {
	transport.Conn
	raw       *transport.HTTPConn
	meanwhile func(ctx context.Context, conn *transport.HTTPConn) // before initialized; it may be nil
}

func (c *quiet) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
	if m := wire.Parse(out.Raw); m.Method != "notifications/initialized" {
		return c.Conn.Send(ctx, out)
	}
	if c.meanwhile != nil {
		c.meanwhile(ctx, c.raw)
	}
	// A raw request does not begin to listen.
	stream, err := c.raw.Open(ctx, transport.Request{Defaults: true, Body: out.Raw, Header: out.Header})
	if err != nil {
		return nil, err
	}
	return stream.Request(), nil
}

// onHTTP does something with the connection before the client leaves.
func onHTTP(action func(ctx context.Context, conn *transport.HTTPConn)) apply {
	return func(c *client.Standalone) {
		raw := ConnectionOf(c)
		Doing(func(ctx context.Context, _ *client.Session) {
			if raw() != nil && raw().SessionID() != "" && !raw().Lost() {
				action(ctx, raw())
			}
		})(c)
	}
}

// reopening opens GET streams and closes each of them again.
func reopening(ctx context.Context, conn *transport.HTTPConn, times int) {
	for range times {
		s, err := conn.Open(ctx, transport.Request{Method: http.MethodGet, Defaults: true})
		if err != nil {
			return
		}
		Passes(ctx, 20*time.Millisecond)
		s.Close()
	}
}

// atMessages does something at each message of the server on the streams of the client's requests of one kind.
func atMessages(kind string, action func(ctx context.Context, conn *transport.HTTPConn, e *wire.Event)) apply {
	return Wrapping(func(conn transport.Conn) transport.Conn {
		raw, ok := conn.(*transport.HTTPConn)
		if !ok {
			return conn
		}
		ctx, cancel := context.WithCancel(context.Background())
		c := &watched{Conn: conn, cancel: cancel, done: make(chan struct{})}
		go func() {
			defer close(c.done)
			for from := 0; ; {
				e, err := raw.Log().Await(ctx, from, func(e *wire.Event) bool {
					return e.Kind == wire.KindMessage && e.From == wire.Server && strings.HasPrefix(e.Stream, kind)
				})
				if err != nil {
					return
				}
				action(ctx, raw, e)
				from = e.Seq + 1
			}
		}()
		return c
	})
}

// watched is a connection beside which a goroutine runs until it is closed.
type watched struct {
	transport.Conn
	cancel context.CancelFunc
	done   chan struct{}
}

func (c *watched) Close(ctx context.Context) error {
	c.cancel()
	<-c.done
	return c.Conn.Close(ctx)
}

const (
	bothListed = "Accept lists both content types; HTTP leaves order, weights, parameters and further types " +
		"to the client."
	anyCase   = "Names of header fields and media types are case-insensitive in HTTP."
	mayListen = "The client may issue a GET, may be connected to several streams at a time, and may close " +
		"a stream at any time."
	moreFields  = "HTTP requests may carry further header fields, which a recipient ignores if it does not know them."
	noMediaType = "The text names Accept and says nothing of the Content-Type of requests."
)

var httpOddities = []Oddity{
	odd("http.accept-order", "Accept lists text/event-stream before application/json.", bothListed, ofSending,
		Fields(http.MethodPost, "Accept", "Accept: text/event-stream, application/json")),
	odd("http.accept-weights", "Accept has weights and a wildcard.", bothListed, ofSending,
		Fields(http.MethodPost, "Accept", "Accept: application/json;q=0.9, text/event-stream; q=0.5, */*;q=0.1")),
	odd("http.accept-parameters", "The types in Accept have parameters.", bothListed, ofSending,
		Fields(http.MethodPost, "Accept",
			`Accept: application/json; charset=utf-8, text/event-stream;charset="utf-8";q=1.0`)),
	odd("http.accept-two-fields", "Accept comes in two header fields.",
		"HTTP lets a list be sent in several fields of the same name.", ofSending,
		Fields(http.MethodPost, "Accept", "Accept: application/json", "Accept: text/event-stream")),
	odd("http.accept-case", "The types in Accept have capitals, and empty elements stand between them.", anyCase,
		ofSending, Fields(http.MethodPost, "Accept", "Accept: Application/JSON,, Text/Event-Stream ,")),
	odd("http.accept-more", "Accept lists six further types.", bothListed, ofSending, Fields(http.MethodPost, "Accept",
		"Accept: text/html, text/plain;q=0.3, application/json, image/*, text/event-stream, application/xml, */*")),
	odd("http.get-accept", "Accept of a GET lists application/json beside text/event-stream.",
		"The GET has to list text/event-stream; other types are not excluded.", ofListening,
		Fields(http.MethodGet, "Accept", "Accept: application/json;q=0.1, text/event-stream")).Only(overEitherHTTP),
	odd("http.content-type-charset", "Content-Type is application/json; charset=utf-8.", noMediaType, ofSending,
		contentType("Content-Type: application/json; charset=utf-8")).Only(overEitherHTTP),
	odd("http.content-type-case", "Content-Type is Application/Json.", anyCase, ofSending,
		contentType("Content-Type: Application/Json")).Only(overEitherHTTP),
	odd("http.content-type-missing", "POSTs of messages have no Content-Type.", noMediaType, ofSending,
		Heads(func(h *Head) {
			if h.Get("Accept") == "application/json, text/event-stream" {
				h.Set("Content-Type")
			}
		})),
	odd("http.names-lower", "All names of header fields are in lower case.", anyCase, ofSessions,
		Heads(func(h *Head) { renamed(h, strings.ToLower) })).Only(overEitherHTTP).In("http/delete"),
	odd("http.names-upper", "All names of header fields are in capitals.", anyCase, ofSessions,
		Heads(func(h *Head) { renamed(h, strings.ToUpper) })).Only(overEitherHTTP),
	odd("http.fields-reversed", "The header fields come in the reverse order.",
		"The order of fields with different names has no meaning in HTTP.", "basic/transports#streamable-http",
		Heads(func(h *Head) {
			for i, j := 0, len(h.Fields)-1; i < j; i, j = i+1, j-1 {
				h.Fields[i], h.Fields[j] = h.Fields[j], h.Fields[i]
			}
		})).Only(overEitherHTTP),
	odd("http.blanks", "No blank, or several, stand between a field's name and its value, and after that.",
		"HTTP allows optional whitespace around the value of a field.", "basic/transports#protocol-version-header",
		Heads(func(h *Head) {
			for i, field := range h.Fields {
				name, value, _ := strings.Cut(field, ": ")
				h.Fields[i] = name + ":" + value
				if i%2 == 0 {
					h.Fields[i] = name + ": \t " + value + " \t"
				}
			}
		})).Only(overEitherHTTP),
	odd("http.more-fields", "Requests have cookies, trace headers and a referrer.", moreFields, ofSending,
		Heads(func(h *Head) {
			h.Fields = append(h.Fields, "Cookie: theme=dark; session=1",
				"Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
				"X-Request-Id: 17", "Accept-Language: de, en;q=0.5", "Cache-Control: no-cache", "DNT: 1")
		})).Only(overEitherHTTP),
	odd("http.accept-encoding", "Requests accept compressed answers.", moreFields, ofSending,
		Fields("", "Accept-Encoding", "Accept-Encoding: identity, gzip;q=0.5, br;q=0")).Only(overEitherHTTP),
	odd("http.user-agent-none", "Requests have no User-Agent.", "HTTP does not require the field.", ofSending,
		Fields("", "User-Agent")).Only(overEitherHTTP),
	odd("http.origin", "Requests have the Origin of the server itself, as those of a page that it serves.",
		"Servers validate Origin; a client may send it, and its own origin is a good one.",
		"basic/transports#security-warning", Heads(func(h *Head) {
			h.Fields = append(h.Fields, "Origin: http://"+h.Get("Host"), "Sec-Fetch-Site: same-origin")
		})).Only(overEitherHTTP),
	odd("http.connection-close", "Each request asks for the connection to be closed.",
		"HTTP leaves the life of connections to both sides.", "basic/transports#streamable-http",
		Fields("", "Connection", "Connection: close")).Only(overEitherHTTP),
	odd("http.chunked", "The bodies of POSTs come in chunks, without Content-Length.",
		"HTTP has two ways to delimit a body; the text chooses none.", ofSending, RequestsAs(func(h *Head) {
			if h.Get("Content-Length") != "" && h.Get("Content-Length") != "0" {
				h.Set("Content-Length", "Transfer-Encoding: chunked")
			}
		}, func(conn net.Conn, text []byte) error {
			var b bytes.Buffer
			for len(text) > 0 {
				n := min(len(text), 50)
				b.WriteString(strconv.FormatInt(int64(n), 16) + "\r\n" + string(text[:n]) + "\r\n")
				text = text[n:]
			}
			b.WriteString("0" + HeadEnd)
			_, err := conn.Write(b.Bytes())
			return err
		})).Only(overEitherHTTP),
	odd("http.slow-body", "The body of a POST comes in three pieces, a tenth of a second apart.",
		"No page gives a pace.", ofSending, RequestsAs(func(*Head) {}, func(conn net.Conn, text []byte) error {
			third := (len(text) + 2) / 3
			for len(text) > 0 {
				n := min(third, len(text))
				if _, err := conn.Write(text[:n]); err != nil {
					return err
				}
				if text = text[n:]; len(text) > 0 {
					<-time.After(100 * time.Millisecond)
				}
			}
			return nil
		})).Only(overEitherHTTP).Open(ids.HTTPClientAccepted), // the client does not wait until all is asked
	odd("http.expect", "POSTs expect 100-continue.", "HTTP lets a client ask whether the server wants the body.",
		ofSending, Fields(http.MethodPost, "Expect", "Expect: 100-continue")).Only(overEitherHTTP),
	odd("http.absolute-target", "The request line has the whole URL.",
		"A server has to accept the absolute form of the request target, which clients send to proxies.", ofSending,
		Heads(func(h *Head) {
			method, rest, _ := strings.Cut(h.Line, " ")
			h.Line = method + " http://" + h.Get("Host") + rest
		})).Only(overEitherHTTP),
	odd("http.version-early", "initialize has MCP-Protocol-Version already.",
		"The field is required on subsequent requests, and not excluded on the first one.",
		"basic/transports#protocol-version-header",
		Sending(Calls("initialize"), func(_ *wire.Message, out outgoing) []outgoing {
			out.Header = http.Header{"MCP-Protocol-Version": {client.Version}}
			return []outgoing{out}
		})).In(LostSession, "lifecycle/refused"),
	odd("http.delete-fields", "DELETE has Accept and Content-Type.", moreFields, ofSessions, Heads(func(h *Head) {
		if h.Method() == http.MethodDelete {
			h.Fields = append(h.Fields, "Accept: */*", "Content-Type: application/json")
		}
	})).In("http/delete", "http/plain"),
	odd("http.never-listens", "The client opens no GET stream.", mayListen, ofListening, unlistening(nil)).
		In("http/listening", "http/plain", Requests, Sampling, LostSession, CutStream).
		Open("http.client.get-*", "http.server.*", "*.list-changed.*", "logging.*", "http.get.*",
			ids.LifecycleShutdownHTTPClose),
	odd("http.listens-first", "The GET stream is open before notifications/initialized.", mayListen, ofListening,
		unlistening(func(ctx context.Context, conn *transport.HTTPConn) { _, _ = conn.Listen(ctx) })).
		In("http/listening", "http/plain", "lifecycle/early-ping"),
	odd("http.listens-late", "The GET stream opens after all other requests.", mayListen, ofListening,
		All(func(c *client.Standalone) {
			raw := ConnectionOf(c)
			unlistening(nil)(c)
			Doing(func(ctx context.Context, _ *client.Session) {
				if raw() != nil && !raw().Lost() {
					_, _ = raw().Listen(ctx)
				}
			})(c)
		})).In("http/listening", "http/plain").Open("http.client.get-*", "*.list-changed.*"),
	odd("http.listens-thrice", "Three GET streams are open at the same time.", mayListen,
		"basic/transports#multiple-connections", All(unlistening(func(ctx context.Context, conn *transport.HTTPConn) {
			for range 3 {
				_, _ = conn.Listen(ctx)
			}
		}))).In("http/listening", CutStream, LostSession),
	odd("http.listens-in-turn", "GET streams are opened and closed again, without Last-Event-ID.",
		"The client may close a stream at any time; Last-Event-ID belongs to a GET that resumes a broken one.",
		ofListening, onHTTP(func(ctx context.Context, conn *transport.HTTPConn) { reopening(ctx, conn, 4) })).
		In("http/listening", CutStream, "lists/changed"),
	odd("http.listens-briefly", "The only GET stream is closed as soon as it is open.", mayListen, ofListening,
		unlistening(func(ctx context.Context, conn *transport.HTTPConn) { reopening(ctx, conn, 1) })).
		In("http/listening", "http/plain").
		Open("http.client.get-*", "*.list-changed.*", ids.LifecycleShutdownHTTPClose),
	odd("http.listens-for-one",
		"The GET stream is closed behind the first message on it, and opened again without Last-Event-ID.",
		mayListen, ofListening, ListeningForOne).
		In("http/listening", CutStream, LostSession, "lists/changed", Notifications, Requests, Sampling),
	odd("http.resumes-behind-each",
		"The stream of a POST is closed behind the first event with an id, and resumed from there.",
		"Disconnection may occur at any time, and a client resumes if it wishes to.",
		"basic/transports#resumability-and-redelivery", ClosingBehind(http.MethodPost)).
		In(CutStream, Requests, Notifications, Sampling),
	odd("http.leaves-answered-streams",
		"The stream of a POST is closed as soon as the response to the request has come on it.",
		"Disconnection may occur at any time; the server need not send anything behind the response.", ofSending,
		atMessages("post:", func(_ context.Context, conn *transport.HTTPConn, e *wire.Event) {
			if e.Msg.IsResponse() {
				conn.Drop(e.Stream)
			}
		})).In(CutStream, "http/broken-end", "http/sse-answers", Requests, "time/*"),
	odd("http.preflights",
		"Before each message comes a preflight request with OPTIONS, without the headers of the session.",
		"Browsers ask whether a page may make a request; the page has no part in that.", ofSending,
		func(c *client.Standalone) {
			raw := ConnectionOf(c)
			SendingOn(func(ctx context.Context, _ transport.Conn) {
				if raw() != nil {
					_, _ = raw().Do(ctx, transport.Request{Method: http.MethodOptions, Header: http.Header{
						"Access-Control-Request-Method":  {http.MethodPost},
						"Access-Control-Request-Headers": {"content-type,mcp-session-id"},
					}})
				}
			})(c)
		}).Only(overEitherHTTP),
	odd("http.resumes-behind-nothing",
		"A stream is resumed while it goes on, by the id of an event whose data is empty.",
		"Disconnection may occur at any time, and every event with an id sets the last id, whatever its data.",
		"basic/transports#resumability-and-redelivery", Wrapping(func(conn transport.Conn) transport.Conn {
			return &resumingBehind{conn, Replies("behind an event whose data is empty"), "primed"}
		})).In("exchange/frames"),
	odd("http.leaves-streams", "Answers are still under way when the client deletes its session.",
		"A client that no longer needs a session deletes it; disconnection may occur at any time.", ofSessions,
		onHTTP(func(ctx context.Context, conn *transport.HTTPConn) {
			if !conn.Log().Conversation().Declared(wire.Server, "tools") {
				return
			}
			for _, id := range []string{"left-1", "left-2"} {
				_, _ = conn.Send(ctx, outgoing{Raw: []byte(`{"jsonrpc":"2.0","id":"` + id +
					`","method":"tools/call","params":{"name":"slow","arguments":{"seconds":3}}}`)})
			}
		})).In("http/delete", "http/plain"),
	odd("http.posts-in-turn", "Each message is sent once the head of the response to the one before has come.",
		"Each message is a request of its own; nothing says that two are under way at the same time.", ofSending,
		All(Impatient, Wrapping(func(conn transport.Conn) transport.Conn {
			last := make(chan *wire.Event, 1)
			last <- nil
			return inTurn{conn, last}
		}))).In("time/*", "http/listening"),
}

// inTurn is a connection that sends one message at a time.
type inTurn struct {
	transport.Conn
	last chan *wire.Event // holds the message before, or nil, unless one is being sent
}

func (c inTurn) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
	var last *wire.Event
	select {
	case last = <-c.last:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { c.last <- last }()
	if last != nil {
		if _, err := c.Log().Await(ctx, last.Seq, func(e *wire.Event) bool {
			return e.Stream == last.Stream && (e.Kind == wire.KindHTTPResponse || e.Kind == wire.KindStreamEnd)
		}); err != nil {
			return nil, err
		}
	}
	sent, err := c.Conn.Send(ctx, out)
	if sent != nil {
		last = sent
	}
	return sent, err
}

// resumingBehind is a connection that resumes a stream behind an id before it sends certain messages.
type resumingBehind struct {
	transport.Conn
	which match
	last  string
}

func (c *resumingBehind) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
	if r, ok := c.Conn.(Resumer); ok && c.which(wire.Parse(out.Raw)) {
		_, _ = r.Resume(ctx, c.last)
	}
	return c.Conn.Send(ctx, out)
}

// renamed changes the spelling of the names of all fields.
func renamed(h *Head, spell func(string) string) {
	for i, field := range h.Fields {
		name, value, _ := strings.Cut(field, ":")
		h.Fields[i] = spell(name) + ":" + value
	}
}

// inPieces writes each line over stdio in pieces.
func inPieces(cut func(line []byte) [][]byte) apply {
	return Wrapping(func(conn transport.Conn) transport.Conn {
		raw, ok := conn.(*transport.StdioConn)
		if !ok {
			return conn
		}
		return &pieces{Conn: conn, raw: raw, cut: cut}
	})
}

type pieces struct {
	transport.Conn
	raw *transport.StdioConn
	cut func(line []byte) [][]byte
}

func (c *pieces) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
	line := append(out.Raw[:len(out.Raw):len(out.Raw)], '\n')
	return c.raw.Write(ctx, out, c.cut(line)...)
}

var ofStdio = "basic/transports#stdio"

var stdioOddities = []Oddity{
	odd("stdio.pieces", "A line is written in pieces of seven bytes.",
		"Newlines delimit messages; how they are written is left open.", ofStdio,
		inPieces(func(line []byte) (all [][]byte) {
			for len(line) > 0 {
				n := min(7, len(line))
				all, line = append(all, line[:n]), line[n:]
			}
			return all
		})),
	odd("stdio.newline-apart", "The newline is written by itself.",
		"Newlines delimit messages; how they are written is left open.", ofStdio,
		inPieces(func(line []byte) [][]byte { return [][]byte{line[:len(line)-1], line[len(line)-1:]} })),
	odd("stdio.hanging-up",
		"When a notification with an unknown method comes, the client closes stdin, and gives the server ten "+
			"seconds to exit.",
		"A client shuts down by closing stdin, at any time, and what is a reasonable time to wait then is left open.",
		"basic/lifecycle#stdio", func(c *client.Standalone) {
			l := &Launcher{Launcher: c.Launcher}
			c.Launcher = l
			SendingOn(func(ctx context.Context, conn transport.Conn) {
				if Told(conn, unknownNotification) {
					_ = l.Process.Stdin().Close()
					select {
					case <-l.Process.Done():
					case <-time.After(10 * time.Second):
					case <-ctx.Done():
					}
				}
			})(c)
		}).In(Notifications, "hostile/lists", "stdio/stubborn", "exchange/beside", "sequences/session").
		Open(unheard...),
	odd("stdio.carriage-returns", "Lines end with CR LF.", "The carriage return before the newline is whitespace "+
		"of JSON.", ofStdio, Rewriting(Anything, func(text string) string { return text + "\r" })),
	odd("stdio.blanks", "Blanks stand before and after each message on its line.",
		"Whitespace around a JSON text is part of it.", ofStdio,
		Rewriting(Anything, func(text string) string { return " \t" + text + "  " })),
	odd("stdio.several-per-write", "notifications/initialized and the first ping come in one write.",
		"Newlines delimit messages; how many a write holds is left open.", ofStdio,
		Wrapping(func(conn transport.Conn) transport.Conn {
			raw, ok := conn.(*transport.StdioConn)
			if !ok {
				return conn
			}
			return &joined{Conn: conn, raw: raw}
		})),
	odd("stdio.closes-late", "A second passes between the last answer and the end of stdin.",
		"The client closes the input stream first; when is its own affair.", "basic/lifecycle#stdio",
		Closing(func(ctx context.Context, conn transport.Conn) error {
			Passes(ctx, time.Second)
			return conn.Close(ctx)
		})).In("stdio/shutdown", "stdio/stubborn"),
}

// joined writes initialized only together with the message that follows it.
type joined struct {
	transport.Conn
	raw  *transport.StdioConn
	held []byte
}

func (c *joined) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
	switch m := wire.Parse(out.Raw); {
	case m.Method == "notifications/initialized":
		sent, err := c.raw.Write(ctx, out) // recorded, not written
		c.held = append(out.Raw[:len(out.Raw):len(out.Raw)], '\n')
		return sent, err
	case c.held != nil && m.Kind == wire.Request:
		line := append(c.held, out.Raw...)
		c.held = nil
		return c.raw.Write(ctx, out, append(line, '\n'))
	}
	return c.Conn.Send(ctx, out)
}
