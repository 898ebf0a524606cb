//go:build unix

package transport

import (
	"io"
	"os"
	"strings"
	"testing"
)

// TestOutputFinish tests that the whole output of a process is read although another process keeps it open, and that
// no read waits for more.
func TestOutputFinish(t *testing.T) {
	text := strings.Repeat("a line\n", 5000)
	for _, open := range []bool{true, false} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if !open {
			_ = w.Close()
		}
		o := &output{file: r}
		o.finish(0)
		got, err := io.ReadAll(o)
		if err != nil || string(got) != text {
			t.Errorf("%d bytes were read, not %d: %v", len(got), len(text), err)
		}
		if held := o.held.Load(); held != open {
			t.Errorf("held is %t, and the writer is open: %t", held, open)
		}
		_, _ = o.Close(), w.Close()
	}
}

// A read that waits returns once the moment has passed.
func TestOutputFinishWhileReading(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	o := &output{file: r}
	ended := make(chan []byte)
	go func() {
		got, _ := io.ReadAll(o)
		ended <- got
	}()
	if _, err := io.WriteString(w, "x"); err != nil {
		t.Fatal(err)
	}
	o.finish(0)
	if got := <-ended; string(got) != "x" || !o.held.Load() {
		t.Errorf("%q was read, held %t", got, o.held.Load())
	}
	_, _ = o.Close(), w.Close()
}
