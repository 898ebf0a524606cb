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
	{ID: "stdio.shared-line", Requirement: ids.StdioMessageNewlineDelimited, Transports: OverStdio,
		Summary: "Log messages are not ended by a newline.", Collateral: []string{ids.BaseJSONWellFormed},
		Apply: frames("notifications/message", func(frame []byte) []byte {
			return append(bytes.TrimSuffix(frame, []byte("\n")), frame...)
		})},
	{ID: "stdio.pretty-printed", Requirement: ids.StdioMessageNoEmbeddedNewlines, Transports: OverStdio,
		Summary:    "Log messages are indented JSON over several lines.",
		Collateral: []string{ids.BaseJSONWellFormed, ids.StdioServerStdoutClean},
		Apply: frames("notifications/message", func(frame []byte) []byte {
			var b bytes.Buffer
			_ = json.Indent(&b, frame, "", "  ")
			return b.Bytes()
		})},
	{ID: "stdio.long-lines-broken", Requirement: ids.StdioMessageNoEmbeddedNewlines, Transports: OverStdio,
		Summary:    "Messages are broken into lines of 64 KiB.",
		Collateral: []string{ids.BaseResponsePresent, ids.BaseJSONWellFormed},
		Apply: Framing(func(_ *server.Outgoing, frame []byte) []byte {
			return bytes.Join(slices.Collect(slices.Chunk(frame, 64<<10)), []byte("\n"))
		})},
	{ID: "stdio.raw-newline-in-string", Requirement: ids.StdioMessageNoEmbeddedNewlines, Transports: OverStdio,
		Summary:    "A newline in the text of log messages is not escaped.",
		Collateral: []string{ids.BaseJSONWellFormed, ids.StdioServerStdoutClean},
		Apply: frames("notifications/message", func(frame []byte) []byte {
			return bytes.Replace(frame, []byte(`"logger":"`), []byte("\"logger\":\"\n"), 1)
		})},
	{ID: "stdio.banner", Requirement: ids.StdioServerStdoutClean, Transports: OverStdio,
		Summary: "A banner is printed on stdout at the start.",
		Apply: func(o *server.Options) {
			o.Behaviour.Stdio.Start = func(stdout, _ io.Writer) {
				_, _ = fmt.Fprintln(stdout, "MCP server running on stdio")
			}
		}},
	{ID: "stdio.log-on-stdout", Requirement: ids.StdioServerStdoutClean, Transports: OverStdio,
		Summary: "Log lines are written to stdout between the messages.",
		Apply: Responses("tools/call", func(out *server.Outgoing) {
			out.Raw = []byte("[INFO] tools/call done\n" + Text(out.Message))
		})},
	{ID: "stdio.json-log-on-stdout", Requirement: ids.StdioServerStdoutClean, Transports: OverStdio,
		Summary:    "Log lines in JSON are written to stdout between the messages.",
		Collateral: []string{ids.BaseJSONRPCVersion, ids.BaseResponseResultOrError},
		Apply: Responses("tools/call", func(out *server.Outgoing) {
			out.Raw = []byte(`{"level":"info","msg":"tools/call done"}` + "\n" + Text(out.Message))
		})},
	{ID: "stdio.blank-lines", Requirement: ids.StdioServerStdoutClean, Transports: OverStdio,
		Summary: "Messages have a blank line between them.",
		Apply:   Framing(func(_ *server.Outgoing, frame []byte) []byte { return append(frame, '\n') })},
	{ID: "stdio.bad-json-kills", Requirement: ids.StdioServerSurvivesInvalidJSON, Transports: OverStdio,
		Summary: "A line that is not JSON ends the process.",
		Apply: dying(func(line []byte) bool {
			return len(line) > 0 && !json.Valid(line) && line[0] != '{' && utf8.Valid(line)
		})},
	{ID: "stdio.blank-line-kills", Requirement: ids.StdioServerSurvivesInvalidJSON, Form: ByValue,
		Transports: OverStdio, Summary: "A blank line ends the process.",
		Apply: dying(func(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 })},
	{ID: "stdio.broken-message-kills", Requirement: ids.BaseErrorParseSurvive, Transports: OverStdio,
		Summary: "A message that is broken off ends the process.",
		Apply: dying(func(line []byte) bool {
			return !json.Valid(line) && bytes.HasPrefix(line, []byte("{")) && utf8.Valid(line)
		})},
	{ID: "stdio.bad-json-deafens", Requirement: ids.StdioServerSurvivesInvalidJSON, Transports: OverStdio,
		Summary:    "After a line that is not JSON nothing is answered any more.",
		Collateral: []string{ids.BaseErrorParseSurvive, ids.BaseResponsePresent},
		Apply: All(
			func(o *server.Options) { o.Behaviour.Valid = func(m *wire.Message) bool { return m.Has(wire.NotJSON) } },
			unresponsiveAfter(func(_ *server.Session, m *wire.Message) bool { return m.Has(wire.NotJSON) }),
		)},
	{ID: "stdio.null-kills", Requirement: ids.StdioServerSurvivesNonMessage, Form: ByValue, Transports: OverStdio,
		Summary: "A line with JSON null ends the process.",
		Apply:   dying(func(line []byte) bool { return string(line) == "null" })},
	{ID: "stdio.batch-kills", Requirement: ids.StdioServerSurvivesNonMessage, Form: ByValue, Transports: OverStdio,
		Summary: "A line with an array ends the process.", Collateral: []string{ids.BaseBatchNotServed},
		Apply: dying(func(line []byte) bool { return json.Valid(line) && line[0] == '[' })},
	{ID: "stdio.stray-response-kills", Requirement: ids.StdioServerSurvivesNonMessage, Transports: OverStdio,
		Summary: "A response that nobody asked for ends the process.", Apply: dyingOf(`"mcpconform-stray"`)},
	{ID: "stdio.bad-utf8-kills", Requirement: ids.StdioServerSurvivesInvalidUTF8, Transports: OverStdio,
		Summary: "A line that is not UTF-8 ends the process.",
		Apply:   dying(func(line []byte) bool { return !utf8.Valid(line) })},
	{ID: "stdio.crlf-refused", Requirement: ids.StdioMessageCrlfAccepted, Transports: OverStdio,
		Summary: "A line that ends with a carriage return is dropped.",
		Apply: Inbound(func(raw []byte) []byte {
			if bytes.HasSuffix(raw, []byte("\r")) {
				return nil
			}
			return raw
		})},
	{ID: "stdio.chunk-is-message", Requirement: ids.StdioMessageSplitWrites, Transports: OverStdio,
		Summary:    "Each read of stdin is taken for a whole message.",
		Collateral: []string{ids.StdioMessageLarge, ids.BaseResponseIDEcho, ids.BaseResponsePresent},
		Apply: chunks(func(chunk []byte) []byte {
			if len(chunk) > 0 && !bytes.HasSuffix(chunk, []byte("\n")) {
				return append(chunk, '\n')
			}
			return chunk
		})},
	{ID: "stdio.first-line-only", Requirement: ids.StdioMessageSeveralPerWrite, Transports: OverStdio,
		Summary: "Only the first line of each read of stdin is served.", Apply: chunks(firstLine)},
	{ID: "stdio.unicode-line-ends", Requirement: ids.StdioMessageOnlyNewlineDelimits, Transports: OverStdio,
		Summary: "U+0085 ends a line, too.",
		Collateral: []string{ids.CompletionAnswered, ids.BaseRequestStringIDServed, ids.ProgressTokenAnyMeans,
			ids.BaseResponsePresent, ids.BaseResponseIDEcho, ids.CancellationInProgress},
		Apply: Inbound(func(raw []byte) []byte { return bytes.ReplaceAll(raw, []byte("\u0085"), []byte("\n")) })},
	{ID: "stdio.script-line-ends", Requirement: ids.StdioMessageOnlyNewlineDelimits, Transports: OverStdio,
		Summary: "U+2028 and U+2029 end a line, as in JavaScript.",
		Collateral: []string{ids.CompletionAnswered, ids.BaseRequestStringIDServed, ids.ProgressTokenAnyMeans,
			ids.ProgressRequest, ids.BaseResponsePresent, ids.BaseResponseIDEcho, ids.CancellationInProgress},
		Apply: Inbound(func(raw []byte) []byte {
			return []byte(strings.NewReplacer("\u2028", "\n", "\u2029", "\n").Replace(string(raw)))
		})},
	{ID: "stdio.long-line-kills", Requirement: ids.StdioMessageLarge, Transports: OverStdio,
		Summary: "A line longer than 64 KiB ends the process.",
		Apply:   dying(func(line []byte) bool { return len(line) > 64<<10 })},
	{ID: "stdio.long-line-dropped", Requirement: ids.StdioMessageLarge, Transports: OverStdio,
		Summary:    "A line longer than 512 KiB is dropped without an answer.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply: Inbound(func(raw []byte) []byte {
			if len(raw) > 512<<10 {
				return nil
			}
			return raw
		})},
	{
		ID: "stdio.long-line-cut", Requirement: ids.StdioMessageLarge, Transports: OverStdio,
		Collateral: []string{ids.BaseResponseIDEcho, ids.BaseResponsePresent}, // what is left of the line has no id
		Summary:    "Only the first 512 KiB of a line are read.",
		Apply:      Inbound(func(raw []byte) []byte { return raw[:min(len(raw), 512<<10)] }),
	},
}
