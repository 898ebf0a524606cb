package judge

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var stdioRules = []Rule{{
	Name: "stdio",
	Requirements: []string{ids.StdioServerStdoutClean, ids.StdioClientStdinClean, ids.StdioMessageNewlineDelimited,
		ids.StdioMessageNoEmbeddedNewlines, ids.StdioServerStderrLogging, ids.LifecycleShutdownStdioServerExits},
	Judge: judgeStdio,
}}

// basic/transports#stdio
func judgeStdio(c *Conversation, rec *Recorder) {
	if c.Transport != transport.NameStdio {
		return
	}
	judgeLines(c, rec)
	for _, e := range c.Events {
		if e.Kind == wire.KindStderr {
			rec.Pass(ids.StdioServerStderrLogging, wire.Server)
			if !utf8.Valid(e.Raw) {
				rec.Note(ids.StdioServerStderrLogging, wire.Server, "stderr holds bytes that are not UTF-8")
			}
		}
	}
	judgeExit(c, rec)
}

func judgeLines(c *Conversation, rec *Recorder) {
	tries := maxTries
	spread := 0 // the lines before this position belong to a message already judged
	for i, e := range c.Messages {
		clean := ids.StdioServerStdoutClean
		if e.From == wire.Client {
			clean = ids.StdioClientStdinClean
		}
		switch {
		case e.Dropped > 0 && !beginsObject(e.Raw):
			rec.Fail(clean, e.From, "a line does not begin like an MCP message and is longer than the limit", e)
		case e.Dropped > 0, e.Msg.Has(wire.TooDeep, wire.TooLarge):
			rec.Note(clean, e.From, "a message is larger, or nested deeper, than mcpconform reads")
		case e.Member:
		case e.Msg.Kind != wire.Invalid:
			rec.Pass(clean, e.From)
			rec.Pass(ids.StdioMessageNoEmbeddedNewlines, e.From)
			const delimited = ids.StdioMessageNewlineDelimited
			if transport.Unterminated(e) {
				rec.Warn(delimited, e.From, "the last message lacks its newline", e)
			} else if !cutShort(e) {
				rec.Pass(delimited, e.From)
			}
		case i < spread && e.From == wire.Server, cutShort(e):
		case sharesLine(e):
			rec.Fail(ids.StdioMessageNewlineDelimited, e.From, "two messages share one line", e)
		default:
			lines, end := pieces(c, i, &tries)
			if len(lines) < 2 {
				message := "a line is not an MCP message: " + faults(e.Msg)
				if lengthHeader.Match(e.Raw) {
					message = "a Content-Length header was written, as in the protocol of language servers; " +
						"an MCP message is one line, without headers"
				}
				rec.Fail(clean, e.From, message, e)
				continue
			}
			spread = end
			rec.Fail(ids.StdioMessageNoEmbeddedNewlines, e.From, "one message is spread over several lines", lines...)
		}
	}
}

// lengthHeader is how the messages of the Language Server Protocol begin.
var lengthHeader = regexp.MustCompile(`(?i)^content-length: *\d+`)

// beginsObject reports whether a text that was cut off may be the beginning of a JSON
// object. No sentence limits how long a message may be.
func beginsObject(text []byte) bool {
	const enough = 4 << 10
	d := json.NewDecoder(bytes.NewReader(text[:min(len(text), enough)]))
	first, err := d.Token()
	for err == nil {
		_, err = d.Token()
	}
	return first == json.Delim('{') && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
}

// sharesLine reports whether a line holds one message right after another.
func sharesLine(e *wire.Event) bool {
	_, _, err := wire.Decode(e.Raw)
	var syntax *wire.SyntaxError
	if !errors.As(err, &syntax) {
		return false
	}
	return wire.Parse(e.Raw[:syntax.Offset]).Kind != wire.Invalid && looksLikeMessage(e.Raw[syntax.Offset:])
}

func faults(m *wire.Message) string {
	if len(m.Raw) == 0 {
		return "it is empty"
	}
	text := ""
	for _, i := range m.Issues {
		if text != "" {
			text += "; "
		}
		text += i.Detail
	}
	return text
}

// Bounds of the search for messages that are spread over lines.
const (
	maxPieces = 200
	maxTries  = 20
)

// pieces returns the lines from the i-th message on that make up one JSON
// object when they are put together, and the position after the last of them;
// nil if there are none.
func pieces(c *Conversation, i int, tries *int) ([]*wire.Event, int) {
	first := c.Messages[i]
	if *tries == 0 || !looksLikeMessage(first.Raw) || !first.Msg.Has(wire.NotJSON) {
		return nil, 0
	}
	*tries--
	var text []byte
	var lines []*wire.Event
	var b brackets
	for at, e := range c.Messages[i:] {
		if e.From != first.From {
			continue
		}
		if len(lines) > 0 && e.Msg.Kind != wire.Invalid || len(lines) == maxPieces || len(text) > 1<<20 {
			return nil, 0
		}
		lines = append(lines, e)
		if b.inString {
			text = append(text, `\n`...) // a line break that should have been escaped
		} else {
			text = append(text, '\n')
		}
		text = append(text, e.Raw...)
		b.read(e.Raw)
		if b.depth > 0 {
			continue
		}
		v, _, err := wire.Decode(text)
		if _, ok := v.(map[string]any); err != nil || !ok {
			return nil, 0
		}
		return lines, i + at + 1
	}
	return nil, 0
}

// brackets follows the nesting of a JSON text from line to line, so that it
// need be decoded only where it can end.
type brackets struct {
	depth            int
	inString, escape bool
}

func (b *brackets) read(text []byte) {
	for _, c := range text {
		switch {
		case b.escape:
			b.escape = false
		case b.inString:
			b.escape = c == '\\'
			b.inString = c != '"'
		case c == '"':
			b.inString = true
		case c == '{' || c == '[':
			b.depth++
		case c == '}' || c == ']':
			b.depth--
		}
	}
}

// A server exits when its stdin is closed: the shutdown of basic/lifecycle#stdio
// does not begin with anything else.
func judgeExit(c *Conversation, rec *Recorder) {
	const id = ids.LifecycleShutdownStdioServerExits
	var spoke, closed, signalled, exited *wire.Event
	for _, e := range c.Events {
		switch {
		case e.Kind == wire.KindMessage && e.From == wire.Server && spoke == nil:
			spoke = e
		case e.Kind == wire.KindClose && e.From == wire.Client && closed == nil:
			closed = e
		case e.Kind == wire.KindSignal && signalled == nil:
			signalled = e
		case e.Kind == wire.KindExit:
			exited = e
		}
	}
	if closed == nil || exited == nil || exited.Seq < closed.Seq || spoke == nil {
		return // nobody knows why a server that never spoke has ended
	}
	if signalled != nil && signalled.Seq < exited.Seq {
		if signalled.At-closed.At < transport.ReasonableExit || c.waits(wire.Server, exited) ||
			c.waits(wire.Client, exited) {
			return // the wait was too short to tell, or one side waits for an answer of the other
		}
		// A process that takes long to start may take long to exit, and one that
		// was still starting has not read its stdin.
		if spoke.Seq > closed.Seq || signalled.At-closed.At < transport.ExitPerStart*rec.trace.slowestStart {
			return
		}
		rec.Fail(id, wire.Server, "the server was still running after its stdin had been closed for "+
			(signalled.At-closed.At).Round(10e6).String(), closed, signalled, exited)
		return
	}
	rec.Pass(id, wire.Server)
}

// slowestStart returns the longest time that a process took to its first message.
func slowestStart(logs []*wire.Log) time.Duration {
	var slowest time.Duration
	for _, l := range logs {
		if l.Transport != transport.NameStdio {
			continue
		}
		events := l.Events()
		if i := slices.IndexFunc(events, func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.From == wire.Server
		}); i >= 0 {
			slowest = max(slowest, events[i].At-events[0].At)
		}
	}
	return slowest
}

// waits reports whether a request of a party was unanswered at an event.
func (c *Conversation) waits(p wire.Party, at *wire.Event) bool {
	return slices.ContainsFunc(c.Exchanges, func(x *Exchange) bool {
		return x.From() == p && x.Request.Seq < at.Seq && (x.Response == nil || x.Response.Seq > at.Seq)
	})
}
