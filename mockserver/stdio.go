package mockserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// frames changes the lines of a method's messages.
func frames(method string, change func(frame []byte) []byte) apply {
	return Framing(func(out *server.Outgoing, frame []byte) []byte {
		if out.Method == method {
			return change(frame)
		}
		return frame
	})
}

// chunks changes what each read of stdin yields.
func chunks(change func(chunk []byte) []byte) apply {
	return func(o *server.Options) {
		o.Behaviour.Stdio.Stdin = func(r io.Reader) io.Reader { return &chunked{from: r, change: change} }
	}
}

// chunked is a reader that changes the result of each read.
type chunked struct {
	from   io.Reader
	change func([]byte) []byte
	left   []byte
	err    error
}

func (c *chunked) Read(p []byte) (int, error) {
	for len(c.left) == 0 {
		if c.err != nil {
			return 0, c.err
		}
		chunk := make([]byte, 64<<10)
		var n int
		n, c.err = c.from.Read(chunk)
		c.left = c.change(chunk[:n:n])
	}
	n := copy(p, c.left)
	c.left = c.left[n:]
	return n, nil
}

// firstLine returns what precedes the second line.
func firstLine(chunk []byte) []byte {
	if i := bytes.IndexByte(chunk, '\n'); i >= 0 {
		return chunk[:i+1]
	}
	return chunk
}

// basic/transports#stdio
var stdioFaults = []Fault{
	fault("stdio.shared-line", ids.StdioMessageNewlineDelimited, "Log messages are not ended by a newline.",
		frames("notifications/message", func(frame []byte) []byte {
			return append(bytes.TrimSuffix(frame, []byte("\n")), frame...)
		})).Also(ids.BaseJSONWellFormed),
	fault("stdio.pretty-printed", ids.StdioMessageNoEmbeddedNewlines,
		"Log messages are indented JSON over several lines.",
		frames("notifications/message", func(frame []byte) []byte {
			var b bytes.Buffer
			_ = json.Indent(&b, frame, "", "  ")
			return b.Bytes()
		})).Also(ids.BaseJSONWellFormed, ids.StdioServerStdoutClean),
	fault("stdio.long-lines-broken", ids.StdioMessageNoEmbeddedNewlines, "Messages are broken into lines of 64 KiB.",
		Framing(func(_ *server.Outgoing, frame []byte) []byte {
			return bytes.Join(slices.Collect(slices.Chunk(frame, 64<<10)), []byte("\n"))
		})).Also(ids.BaseResponsePresent, ids.BaseJSONWellFormed),
	fault("stdio.raw-newline-in-string", ids.StdioMessageNoEmbeddedNewlines,
		"A newline in the text of log messages is not escaped.",
		frames("notifications/message", func(frame []byte) []byte {
			return bytes.Replace(frame, []byte(`"logger":"`), []byte("\"logger\":\"\n"), 1)
		})).Also(ids.BaseJSONWellFormed, ids.StdioServerStdoutClean),
	fault("stdio.banner", ids.StdioServerStdoutClean, "A banner is printed on stdout at the start.",
		func(o *server.Options) {
			o.Behaviour.Stdio.Start = func(stdout, _ io.Writer) {
				_, _ = fmt.Fprintln(stdout, "MCP server running on stdio")
			}
		}),
	fault("stdio.log-on-stdout", ids.StdioServerStdoutClean, "Log lines are written to stdout between the messages.",
		Responses("tools/call",
			func(out *server.Outgoing) { out.Raw = []byte("[INFO] tools/call done\n" + Text(out.Message)) })),
	fault("stdio.json-log-on-stdout", ids.StdioServerStdoutClean,
		"Log lines in JSON are written to stdout between the messages.",
		Responses("tools/call", func(out *server.Outgoing) {
			out.Raw = []byte(`{"level":"info","msg":"tools/call done"}` + "\n" + Text(out.Message))
		})).Also(ids.BaseJSONRPCVersion, ids.BaseResponseResultOrError),
	fault("stdio.blank-lines", ids.StdioServerStdoutClean, "Messages have a blank line between them.",
		Framing(func(_ *server.Outgoing, frame []byte) []byte { return append(frame, '\n') })),
	fault("stdio.bad-json-kills", ids.StdioServerSurvivesInvalidJSON, "A line that is not JSON ends the process.",
		dying(func(line []byte) bool {
			return len(line) > 0 && !json.Valid(line) && line[0] != '{' && utf8.Valid(line)
		})),
	fault("stdio.blank-line-kills", ids.StdioServerSurvivesInvalidJSON, "A blank line ends the process.",
		dying(func(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 })).Seen(ByValue),
	fault("stdio.broken-message-kills", ids.BaseErrorParseSurvive, "A message that is broken off ends the process.",
		dying(func(line []byte) bool {
			return !json.Valid(line) && bytes.HasPrefix(line, []byte("{")) && utf8.Valid(line)
		})),
	fault("stdio.bad-json-deafens", ids.StdioServerSurvivesInvalidJSON,
		"After a line that is not JSON nothing is answered any more.", All(
			func(o *server.Options) { o.Behaviour.Valid = func(m *wire.Message) bool { return m.Has(wire.NotJSON) } },
			unresponsiveAfter(func(_ *server.Session, m *wire.Message) bool { return m.Has(wire.NotJSON) }),
		)).Also(ids.BaseErrorParseSurvive, ids.BaseResponsePresent),
	fault("stdio.null-kills", ids.StdioServerSurvivesNonMessage, "A line with JSON null ends the process.",
		dying(func(line []byte) bool { return string(line) == "null" })).Seen(ByValue),
	fault("stdio.batch-kills", ids.StdioServerSurvivesNonMessage, "A line with an array ends the process.",
		dying(func(line []byte) bool { return json.Valid(line) && line[0] == '[' })).Seen(ByValue).
		Also(ids.BaseBatchNotServed),
	fault("stdio.stray-response-kills", ids.StdioServerSurvivesNonMessage,
		"A response that nobody asked for ends the process.", dyingOf(`"mcpconform-stray"`)),
	fault("stdio.bad-utf8-kills", ids.StdioServerSurvivesInvalidUTF8, "A line that is not UTF-8 ends the process.",
		dying(func(line []byte) bool { return !utf8.Valid(line) })),
	fault("stdio.crlf-refused", ids.StdioMessageCrlfAccepted, "A line that ends with a carriage return is dropped.",
		Inbound(func(raw []byte) []byte {
			if bytes.HasSuffix(raw, []byte("\r")) {
				return nil
			}
			return raw
		})),
	fault("stdio.chunk-is-message", ids.StdioMessageSplitWrites, "Each read of stdin is taken for a whole message.",
		chunks(func(chunk []byte) []byte {
			if len(chunk) > 0 && !bytes.HasSuffix(chunk, []byte("\n")) {
				return append(chunk, '\n')
			}
			return chunk
		})).Also(ids.StdioMessageLarge, ids.BaseResponseIDEcho, ids.BaseResponsePresent),
	fault("stdio.first-line-only", ids.StdioMessageSeveralPerWrite,
		"Only the first line of each read of stdin is served.", chunks(firstLine)),
	fault("stdio.unicode-line-ends", ids.StdioMessageOnlyNewlineDelimits, "U+0085 ends a line, too.",
		Inbound(func(raw []byte) []byte { return bytes.ReplaceAll(raw, []byte("\u0085"), []byte("\n")) })).
		Also(ids.CompletionAnswered, ids.BaseRequestStringIDServed, ids.ProgressTokenAnyMeans,
			ids.BaseResponsePresent, ids.BaseResponseIDEcho, ids.CancellationInProgress),
	fault("stdio.script-line-ends", ids.StdioMessageOnlyNewlineDelimits,
		"U+2028 and U+2029 end a line, as in JavaScript.", Inbound(func(raw []byte) []byte {
			return []byte(strings.NewReplacer("\u2028", "\n", "\u2029", "\n").Replace(string(raw)))
		})).
		Also(ids.CompletionAnswered, ids.BaseRequestStringIDServed, ids.ProgressTokenAnyMeans, ids.ProgressRequest,
			ids.BaseResponsePresent, ids.BaseResponseIDEcho, ids.CancellationInProgress),
	fault("stdio.long-line-kills", ids.StdioMessageLarge, "A line longer than 64 KiB ends the process.",
		dying(func(line []byte) bool { return len(line) > 64<<10 })),
	fault("stdio.long-line-dropped", ids.StdioMessageLarge, "A line longer than 512 KiB is dropped without an answer.",
		Inbound(func(raw []byte) []byte {
			if len(raw) > 512<<10 {
				return nil
			}
			return raw
		})).Also(ids.BaseResponsePresent),
	fault("stdio.long-line-cut", ids.StdioMessageLarge, "Only the first 512 KiB of a line are read.",
		Inbound(func(raw []byte) []byte { return raw[:min(len(raw), 512<<10)] })).
		Also(ids.BaseResponseIDEcho, ids.BaseResponsePresent), // what is left of the line has no id
}
