package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func readSSE(t *testing.T, r io.Reader, max int) ([]SSEItem, error) {
	t.Helper()
	reader := NewSSEReader(r, max)
	var items []SSEItem
	for {
		item, err := reader.Next()
		if err != nil {
			return items, err
		}
		items = append(items, item)
	}
}

func TestSSEReader(t *testing.T) {
	data := func(s string) SSEItem { return SSEItem{Data: []byte(s)} }
	comment := func(s string) SSEItem { return SSEItem{IsComment: true, SSE: SSE{Comment: s}} }
	tests := []struct {
		name, in string
		want     []SSEItem
	}{
		{"nothing", "", nil},
		{"blank lines", "\n\r\n\r\r\n", nil},
		{"LF", "data: a\n\ndata: b\n\n", []SSEItem{data("a"), data("b")}},
		{"CR", "data: a\r\rdata: b\r\r", []SSEItem{data("a"), data("b")}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []SSEItem{data("a"), data("b")}},
		{"mixed ends", "data: a\r\n\rdata: b\n\r\n", []SSEItem{data("a"), data("b")}},
		{"byte order mark", "\uFEFFdata: a\n\n", []SSEItem{data("a")}},
		{"second byte order mark", "data: a\n\n\uFEFFdata: b\n\n", []SSEItem{data("a"), {Faults: []string{`the unknown field "\ufeffdata" is ignored`}}}},
		{"only one space is taken", "data:a\ndata:  b\ndata\ndata:c \n\n", []SSEItem{data("a\n b\n\nc ")}},
		{"colon in the data", `data: {"a":1}` + "\n\n", []SSEItem{data(`{"a":1}`)}},
		{"data without a value", "data\n\n", []SSEItem{data("")}},
		{"all fields", "event: message\nid: 7\nretry: 100\ndata: x\n\n", []SSEItem{
			{Data: []byte("x"), SSE: SSE{Event: "message", ID: "7", HasID: true, Retry: "100"}},
		}},
		{"the last field counts", "id: 1\nid: 2\nevent: a\nevent: b\ndata: x\n\n", []SSEItem{
			{Data: []byte("x"), SSE: SSE{Event: "b", ID: "2", HasID: true}},
		}},
		{"fields do not outlive their event", "event: a\nid: 1\ndata: x\n\ndata: y\n\n", []SSEItem{
			{Data: []byte("x"), SSE: SSE{Event: "a", ID: "1", HasID: true}}, data("y"),
		}},
		{"no data", "id: 9\n\n", []SSEItem{{SSE: SSE{ID: "9", HasID: true}}}},
		{"empty id", "id\ndata: x\n\n", []SSEItem{{Data: []byte("x"), SSE: SSE{HasID: true}}}},
		{"id with NUL", "id: 1\x00\ndata: x\n\n", []SSEItem{
			{Data: []byte("x"), Faults: []string{"the id contains NUL and is ignored"}},
		}},
		{"retry that is no number", "retry: 1.5\nretry: -1\nretry:\n\n", []SSEItem{{Faults: []string{
			`retry is "1.5", not a number of milliseconds, and is ignored`,
			`retry is "-1", not a number of milliseconds, and is ignored`,
			`retry is "", not a number of milliseconds, and is ignored`,
		}}}},
		{"unknown field", "dato: x\n\n", []SSEItem{{Faults: []string{`the unknown field "dato" is ignored`}}}},
		{"field names are case-sensitive", "Data: x\n\n", []SSEItem{{Faults: []string{`the unknown field "Data" is ignored`}}}},
		{"comment", ": ping\n\n:\n", []SSEItem{comment("ping"), comment("")}},
		{"comment inside an event", "data: a\n:c\ndata: b\n\n", []SSEItem{comment("c"), data("a\nb")}},
		{"end inside an event", "data: a\n\ndata: b\n", []SSEItem{data("a"), {Data: []byte("b"), Incomplete: true}}},
		{"end inside a line", "id: 1\ndata: b", []SSEItem{{Data: []byte("b"), SSE: SSE{ID: "1", HasID: true}, Incomplete: true}}},
		{"end inside a comment", ": b", nil},
		{"not UTF-8", "data: \xff\n\n", []SSEItem{data("\xff")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			readers := map[string]io.Reader{
				"at once":      strings.NewReader(tt.in),
				"byte by byte": iotest.OneByteReader(strings.NewReader(tt.in)),
			}
			for how, r := range readers {
				got, err := readSSE(t, r, 1000)
				if !errors.Is(err, io.EOF) {
					t.Errorf("%s: error %v, want EOF", how, err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("%s: items (-want +got):\n%s", how, diff)
				}
			}
		})
	}
}

// An event counts as soon as its blank line is there, even one that ends with
// a CR whose LF may or may not follow.
func TestSSEReaderDoesNotWait(t *testing.T) {
	for _, end := range []string{"\n\n", "\r\r", "\r\n\r"} {
		r, w := io.Pipe()
		reader := NewSSEReader(r, 100)
		go func() { _, _ = io.WriteString(w, "data: a"+end) }()
		item, err := reader.Next()
		if err != nil || string(item.Data) != "a" {
			t.Errorf("after %q: %q, %v", end, item.Data, err)
		}
		_ = w.Close()
	}
}

func TestSSEReaderError(t *testing.T) {
	broken := errors.New("reset")
	items, err := readSSE(t, io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(broken)), 100)
	if !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if len(items) != 2 || !items[1].Incomplete || string(items[1].Data) != "b" {
		t.Errorf("items %+v", items)
	}
}

// endless repeats a text for ever and counts how much was taken.
type endless struct {
	text string
	n    int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.text[e.n%len(e.text)]
		e.n++
	}
	return len(p), nil
}

func TestSSEReaderLimit(t *testing.T) {
	const max = 50_000
	for name, text := range map[string]string{
		"line": "data", "data lines": "data: x\n", "data lines and comments": "data: x\n:c\n",
		"blank lines": "\n", "ids": "id: 1\n", "comment": ":",
	} {
		t.Run(name, func(t *testing.T) {
			in := &endless{text: text}
			reader := NewSSEReader(in, max)
			for {
				item, err := reader.Next()
				if err != nil {
					if !errors.Is(err, ErrSSETooLong) {
						t.Errorf("error %v", err)
					}
					break
				}
				if len(item.Data) > max+sseOverhead {
					t.Errorf("%d bytes of data", len(item.Data))
				}
				if !item.IsComment && item.Dropped == 0 {
					t.Errorf("a cut off item says nothing of it")
				}
			}
			if in.n > 4*max {
				t.Errorf("%d bytes read", in.n)
			}
		})
	}
}

func TestSSEReaderLongest(t *testing.T) {
	const max = 100_000
	in := "data: " + strings.Repeat("x", max) + "\n\n"
	items, err := readSSE(t, strings.NewReader(in), max)
	if !errors.Is(err, io.EOF) || len(items) != 1 || len(items[0].Data) != max || items[0].Dropped != 0 {
		t.Errorf("%d items, error %v", len(items), err)
	}
}

func FuzzSSEReader(f *testing.F) {
	for _, seed := range []string{
		"data: a\n\n", "id: 1\r\nevent: x\r\ndata: y\r\n\r\n", ": c\r\rdata\r\r", "\uFEFFretry: 12\ndata: z", "data: \x00\n:\n\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		const max = 64
		whole, err := readSSE(t, bytes.NewReader(in), max)
		if !errors.Is(err, io.EOF) && !errors.Is(err, ErrSSETooLong) {
			t.Fatalf("error %v", err)
		}
		if !errors.Is(err, io.EOF) {
			return // how much was seen beyond the limit depends on the pieces
		}
		pieces, err := readSSE(t, iotest.OneByteReader(bytes.NewReader(in)), max)
		if !errors.Is(err, io.EOF) {
			t.Fatalf("byte by byte: error %v", err)
		}
		if diff := cmp.Diff(whole, pieces); diff != "" {
			t.Fatalf("byte by byte differs:\n%s", diff)
		}
		for _, item := range whole {
			if len(item.Data) > max+sseOverhead {
				t.Fatalf("%d bytes of data", len(item.Data))
			}
		}
	})
}
