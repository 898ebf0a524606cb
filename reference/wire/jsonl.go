package wire

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"
	"unicode/utf8"
)

// line is the form of an event in a trace file: JSON Lines, one event a line.
// The first line of a connection also carries its transport and label.
type line struct {
	Conn       string      `json:"conn"`
	Seq        int         `json:"seq"`
	Seconds    float64     `json:"t"`
	Kind       EventKind   `json:"kind"`
	From       Party       `json:"from,omitempty"`
	Stream     string      `json:"stream,omitempty"`
	Transport  string      `json:"transport,omitempty"`
	Label      string      `json:"label,omitempty"`
	Raw        *string     `json:"raw,omitempty"`    // bytes that are UTF-8
	Base64     string      `json:"base64,omitempty"` // bytes that are not
	Dropped    int64       `json:"dropped,omitempty"`
	Method     string      `json:"method,omitempty"`
	URL        string      `json:"url,omitempty"`
	Status     int         `json:"status,omitempty"`
	Header     http.Header `json:"header,omitempty"`
	SSE        *sseLine    `json:"sse,omitempty"`
	Exit       *exitLine   `json:"exit,omitempty"`
	Note       string      `json:"note,omitempty"`
	Deliberate []string    `json:"deliberate,omitempty"`
}

type sseLine struct {
	Event   string  `json:"event,omitempty"`
	ID      *string `json:"id,omitempty"`
	Retry   string  `json:"retry,omitempty"`
	Comment string  `json:"comment,omitempty"`
}

type exitLine struct {
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"`
	Limit  string `json:"limit,omitempty"`
}

// WriteTo writes the trace as JSON Lines, one connection after the other.
func (t *Trace) WriteTo(w io.Writer) (int64, error) {
	counter := &countingWriter{w: w}
	buffered := bufio.NewWriter(counter)
	enc := json.NewEncoder(buffered)
	enc.SetEscapeHTML(false)
	for _, l := range t.Logs() {
		for _, e := range l.Events() {
			if e.Member {
				continue // read again from the batch
			}
			if t.Redact != nil {
				e = t.Redact(e)
			}
			if err := enc.Encode(toLine(l, e)); err != nil {
				return counter.n, fmt.Errorf("write trace: %w", err)
			}
		}
	}
	if err := buffered.Flush(); err != nil {
		return counter.n, fmt.Errorf("write trace: %w", err)
	}
	return counter.n, nil
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func toLine(l *Log, e *Event) line {
	out := line{
		Conn: e.Conn, Seq: e.Seq, Seconds: e.At.Seconds(), Kind: e.Kind, From: e.From,
		Stream: e.Stream, Dropped: e.Dropped, Note: e.Note, Deliberate: e.Deliberate,
	}
	if e.Seq == 0 {
		out.Transport, out.Label = l.Transport, l.Label
	}
	if e.Raw != nil {
		if s := string(e.Raw); utf8.ValidString(s) {
			out.Raw = &s
		} else {
			out.Base64 = base64.StdEncoding.EncodeToString(e.Raw)
		}
	}
	if e.HTTP != nil {
		out.Method, out.URL, out.Status, out.Header = e.HTTP.Method, e.HTTP.URL, e.HTTP.Status, e.HTTP.Header
	}
	if e.SSE != nil {
		out.SSE = &sseLine{Event: e.SSE.Event, Retry: e.SSE.Retry, Comment: e.SSE.Comment}
		if e.SSE.HasID {
			out.SSE.ID = &e.SSE.ID
		}
	}
	if e.Exit != nil {
		out.Exit = &exitLine{Code: e.Exit.Code, Signal: e.Exit.Signal, Limit: e.Exit.Limit}
	}
	return out
}

// Bounds of a trace file, in addition to the limits of its connections.
const (
	maxConnections = 100_000
	// JSON's escapes take up to six bytes for one; the rest of the line has room
	// in addition.
	maxEscape   = 6
	maxLineRest = 1 << 20
	// maxSeconds keeps the time of an event within a Duration.
	maxSeconds = 1e9
)

// ReadTrace reads a trace that WriteTo wrote, in whatever order its connections come. Errors name the line. The error
// is ErrFlood if the trace exceeds the limits.
func ReadTrace(r io.Reader, limits Limits) (*Trace, error) {
	t := NewTrace(limits)
	logs := make(map[string]*Log)
	lines := bufio.NewReader(r)
	for n := 1; ; n++ {
		text, err := readTraceLine(lines, maxEscape*limits.Message+maxLineRest)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read trace: line %d: %w", n, err)
		}
		if len(bytes.TrimSpace(text)) > 0 {
			if err := t.readLine(text, logs); err != nil {
				return nil, fmt.Errorf("read trace: line %d: %w", n, err)
			}
		}
		if err != nil {
			break
		}
	}
	for _, l := range logs {
		l.End()
	}
	return t, nil
}

// readTraceLine returns the next line, the last one together with io.EOF.
func readTraceLine(r *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		chunk, err := r.ReadSlice('\n')
		if len(line)+len(chunk) > most {
			return nil, fmt.Errorf("it is longer than %d bytes: %w", most, ErrFlood)
		}
		line = append(line, chunk...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// readLine adds the event of one line.
func (t *Trace) readLine(text []byte, logs map[string]*Log) error {
	var in line
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	e, err := fromLine(in)
	if err != nil {
		return err
	}
	l, ok := logs[in.Conn]
	switch {
	case ok:
	case in.Conn == "":
		return errors.New("the event belongs to no connection: member conn is missing")
	case in.Transport == "":
		return fmt.Errorf("connection %s begins without its transport", Quote(in.Conn, 40))
	case len(logs) >= maxConnections:
		return fmt.Errorf("there are more than %d connections: %w", maxConnections, ErrFlood)
	default:
		l = t.Connect(in.Transport, in.Label)
		l.ID = in.Conn
		logs[in.Conn] = l
	}
	stored, err := l.Append(e)
	if err != nil {
		return err
	}
	at := time.Duration(math.Round(in.Seconds * float64(time.Second)))
	for _, e := range l.Events()[stored.Seq:] {
		e.At = at // of the event, and of the members of a batch
	}
	return nil
}

func fromLine(in line) (Event, error) {
	e := Event{
		Kind: in.Kind, From: in.From, Stream: in.Stream, Dropped: in.Dropped,
		Note: in.Note, Deliberate: in.Deliberate,
	}
	if in.Raw != nil {
		e.Raw = []byte(*in.Raw)
	} else if in.Base64 != "" {
		raw, err := base64.StdEncoding.DecodeString(in.Base64)
		if err != nil {
			return e, fmt.Errorf("member base64: %w", err)
		}
		e.Raw = raw
	}
	if in.Method != "" || in.Status != 0 {
		e.HTTP = &Head{Method: in.Method, URL: in.URL, Status: in.Status, Header: in.Header}
	}
	if in.SSE != nil {
		e.SSE = &SSE{Event: in.SSE.Event, Retry: in.SSE.Retry, Comment: in.SSE.Comment}
		if in.SSE.ID != nil {
			e.SSE.ID, e.SSE.HasID = *in.SSE.ID, true
		}
	}
	if in.Exit != nil {
		e.Exit = &Exit{Code: in.Exit.Code, Signal: in.Exit.Signal, Limit: in.Exit.Limit}
	}
	return e, e.check(in.Seconds)
}

// check reports an event that no connection can have recorded. Readers of the log
// rely on this check.
func (e *Event) check(seconds float64) error {
	switch {
	case e.Kind == "":
		return errors.New("the line is not an event: member kind is missing")
	case e.From != "" && e.From != Client && e.From != Server:
		return fmt.Errorf("member from is %s, neither client nor server", Quote(string(e.From), 40))
	case e.Kind == KindMessage && e.From == "":
		return errors.New("the message has no sender: member from is missing")
	case e.Kind == KindExit && e.Exit == nil:
		return errors.New("the process exit lacks the member exit")
	case (e.Kind == KindHTTPRequest || e.Kind == KindHTTPResponse) && e.HTTP == nil:
		return errors.New("the head of an HTTP message has neither method nor status")
	case e.Kind == KindSSE && e.SSE == nil:
		return errors.New("the SSE event lacks the member sse")
	case seconds < 0 || seconds > maxSeconds:
		return fmt.Errorf("member t is %g, not a time of a run in seconds", seconds)
	}
	return nil
}
