package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// ErrSSETooLong reports an event, or a run of lines without one, that is longer
// than a reader's limit.
var ErrSSETooLong = errors.New("an event of the stream is longer than the limit")

// InsideEvent is what the record says of an event for which [SSEItem.Incomplete] holds.
const InsideEvent = "the stream ended inside this event"

// SSEItem is one thing that an event stream holds: an event or a comment.
type SSEItem struct {
	SSE       SSE
	IsComment bool // the item is one comment line and nothing else
	// Data holds the data lines joined by newlines; nil when there is none.
	Data []byte
	// Incomplete says that the stream ended before the blank line that
	// dispatches an event: a client must not act on it.
	Incomplete bool
	// Dropped counts bytes that were seen beyond the limit. The rest of the stream cannot be parsed any more.
	Dropped int64
	// Faults lists what a client ignores, one clause each: unknown fields, an
	// id with NUL, a retry that is not a number.
	Faults []string
}

// SSEReader reads an event stream as the HTML standard interprets it (section
// "Server-sent events"): lines end with CR, LF or CRLF, a blank line ends an
// event. Comments are items of their own. Bytes that are not UTF-8 are kept as
// they are.
type SSEReader struct {
	r       *bufio.Reader
	long    []byte // room for a line that r does not hold
	max     int
	used    int  // bytes read since the last event
	skipLF  bool // the line before ended with CR: an LF belongs to it
	begun   bool
	pending SSEItem // the event being read
	fields  bool    // pending has at least one line
	err     error   // what comes once pending is delivered
}

// sseOverhead is what field names and line ends may add to the data of an event.
const sseOverhead = 4 << 10

// maxSSEFaults bounds the faults kept for one event.
const maxSSEFaults = 8

// NewSSEReader returns a reader that accepts events of up to max bytes.
func NewSSEReader(r io.Reader, max int) *SSEReader {
	in := sseInput.Get().(*bufio.Reader)
	in.Reset(r)
	return &SSEReader{r: in, max: max + sseOverhead}
}

// Room for the next stream: a run reads thousands, most of which hold one line.
var (
	sseInput = sync.Pool{New: func() any { return bufio.NewReader(nil) }}
	sseLines sync.Pool // *[]byte
)

// mostSSELine is how much room for a line is kept.
const mostSSELine = 1 << 20

// end notes why nothing more is read, and gives back the room.
func (r *SSEReader) end(err error) {
	r.err = err
	r.r.Reset(nil)
	sseInput.Put(r.r)
	r.r = nil
	if room := r.long; room != nil && cap(room) <= mostSSELine {
		sseLines.Put(&room)
	}
	r.long = nil
}

// Next returns the next event or comment as soon as the stream holds all of
// it. At the end of the stream it returns io.EOF, or the error that ended it;
// an event that was not finished then comes first, marked Incomplete. An item
// beyond the limit comes cut off, with Dropped set, and ErrSSETooLong after it.
func (r *SSEReader) Next() (SSEItem, error) {
	for r.err == nil {
		before := r.used
		line, dropped, err := r.line()
		if !r.begun {
			r.begun = true
			line = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF"))
		}
		if err != nil {
			if len(line) > 0 && line[0] != ':' {
				r.field(line)
			}
			r.pending.Incomplete = true
			r.pending.Dropped = dropped
			r.end(err)
			break
		}
		switch {
		case len(line) > 0 && line[0] == ':':
			r.used = before
			return SSEItem{IsComment: true, SSE: SSE{Comment: string(fieldValue(line))}}, nil
		case len(line) > 0:
			r.field(line)
			if cap(r.long) > mostSSELine {
				r.long = nil // it is held no longer than the value
			}
		case r.fields:
			return r.take(), nil
		}
	}
	if r.fields {
		return r.take(), nil
	}
	return SSEItem{}, r.err
}

func (r *SSEReader) take() SSEItem {
	item := r.pending
	r.pending, r.fields, r.used = SSEItem{}, false, 0
	return item
}

// line returns the next line without its end, which is valid until the next is read. If the
// line is beyond the limit, it returns the part that fits and how many more bytes it has seen.
// The last, unterminated line comes with the error that ended the stream.
func (r *SSEReader) line() (line []byte, dropped int64, err error) {
	line = r.long[:0]
	for {
		first, err := r.r.Peek(1)
		if len(first) == 0 {
			return line, 0, err
		}
		if r.skipLF {
			r.skipLF = false
			if first[0] == '\n' {
				_, _ = r.r.Discard(1)
				continue
			}
		}
		buffered, _ := r.r.Peek(r.r.Buffered())
		end := bytes.IndexAny(buffered, "\r\n")
		n := end
		if end < 0 {
			n = len(buffered)
		}
		if room := r.max - r.used; n >= room {
			return append(line, buffered[:room]...), int64(max(1, n-room)), ErrSSETooLong
		}
		r.used += n
		if end < 0 {
			line = r.lengthen(line, buffered)
			_, _ = r.r.Discard(n)
			continue
		}
		r.used++
		r.skipLF = buffered[end] == '\r'
		_, _ = r.r.Discard(end + 1)
		if len(line) == 0 {
			return buffered[:n], 0, nil
		}
		return r.lengthen(line, buffered[:n]), 0, nil
	}
}

// lengthen appends to a line in the room for it.
func (r *SSEReader) lengthen(line, more []byte) []byte {
	if r.long == nil {
		if room, ok := sseLines.Get().(*[]byte); ok {
			line = (*room)[:0]
		}
	}
	r.long = append(line, more...)
	return r.long
}

func fieldValue(line []byte) []byte {
	_, value, _ := bytes.Cut(line, []byte{':'})
	return bytes.TrimPrefix(value, []byte{' '})
}

func (r *SSEReader) field(line []byte) {
	r.fields = true
	p := &r.pending
	name, _, _ := bytes.Cut(line, []byte{':'})
	value := fieldValue(line)
	switch string(name) {
	case "data":
		if p.Data == nil {
			p.Data = make([]byte, 0, len(value))
		} else {
			p.Data = append(p.Data, '\n')
		}
		p.Data = append(p.Data, value...)
	case "event":
		p.SSE.Event = string(value)
	case "id":
		if bytes.IndexByte(value, 0) >= 0 {
			r.fault("the id contains NUL and is ignored")
			return
		}
		p.SSE.ID, p.SSE.HasID = string(value), true
	case "retry":
		if len(value) == 0 || len(bytes.Trim(value, "0123456789")) > 0 {
			r.fault("retry is %s, not a number of milliseconds, and is ignored", Quote(string(value), 40))
			return
		}
		p.SSE.Retry = string(value)
	default:
		r.fault("the unknown field %s is ignored", Quote(string(name), 40))
	}
}

func (r *SSEReader) fault(format string, args ...any) {
	if len(r.pending.Faults) < maxSSEFaults {
		r.pending.Faults = append(r.pending.Faults, fmt.Sprintf(format, args...))
	}
}

// Fault returns the faults of the item as one clause, or "".
func (i SSEItem) Fault() string { return strings.Join(i.Faults, "; ") }
