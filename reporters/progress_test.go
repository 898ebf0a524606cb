package reporters

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpconform/mcpconform/suites/result"
)

// lockedBuffer can be read while a Progress writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
	// wrote gets a value after each write, if it is not nil.
	wrote chan struct{}
}

func (w *lockedBuffer) Write(p []byte) (int, error) {
	w.mu.Lock()
	n, err := w.b.Write(p)
	w.mu.Unlock()
	if w.wrote != nil {
		w.wrote <- struct{}{}
	}
	return n, err
}

func (w *lockedBuffer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// screen is what a terminal shows on the line after text was written to it.
func screen(text string) string {
	if at := strings.LastIndexByte(text, '\r'); at >= 0 {
		text = text[at+1:]
	}
	return strings.TrimSuffix(text, "\x1b[K")
}

func TestProgressBar(t *testing.T) {
	defer goleak.VerifyNone(t)
	w := &lockedBuffer{wrote: make(chan struct{}, 1)}
	p := NewProgress(w, ProgressOptions{Mode: ProgressBar, Width: func() int { return 100 }})
	ticks := make(chan time.Time)
	clock := time.Unix(1000, 0)
	p.now = func() time.Time { return clock }
	p.ticks = func() (<-chan time.Time, func()) { return ticks, func() {} }
	p.Start(4)
	<-w.wrote
	if got := screen(w.String()); !strings.Contains(got, "0/4") {
		t.Errorf("at the start: %q", got)
	}
	p.Phase("start \x1b[31mtarget")
	p.Done("a", result.Pass, false, "")
	p.Done("b", result.Fail, false, "bad")
	before := len(w.String())
	for range 100 {
		p.Done("c", result.Warn, false, "meh")
	}
	if len(w.String()) != before {
		t.Error("drawn without a tick")
	}
	ticks <- time.Time{}
	<-w.wrote
	got := screen(w.String())
	for _, want := range []string{"102/4", "1 failed", "100 warnings", `start \x1b[31mtarget`} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	w.wrote = nil
	p.Stop()
	if got := screen(w.String()); got != "" {
		t.Errorf("left on the line: %q", got)
	}
	after := w.String()
	p.Stop()
	p.Done("d", result.Fail, false, "late")
	p.Phase("late")
	if w.String() != after {
		t.Error("written after Stop")
	}
}

func TestProgressFitsTheWidth(t *testing.T) {
	p := NewProgress(new(bytes.Buffer), ProgressOptions{Mode: ProgressQuiet})
	p.Start(300)
	p.Phase(strings.Repeat("世界 ", 50))
	for _, v := range []result.Verdict{result.Fail, result.Error, result.Warn, result.Pass} {
		p.Done(strings.Repeat("x", 200), v, false, "")
	}
	for n := 1; n < 200; n++ {
		if got := p.status(n); columns(got) > n {
			t.Fatalf("%d columns of %d: %q", columns(got), n, got)
		}
	}
	p.Stop()
}

func TestProgressLines(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, ProgressOptions{}) // a buffer is not a terminal
	p.Done("early", result.Fail, false, "not started")
	p.Start(3)
	p.Phase("server/tools")
	p.Done("a.pass", result.Pass, false, "")
	p.Done("a.fail", result.Fail, false, "wrong \x1b[2J\ncode")
	p.Done("a.warn", result.Warn, false, "")
	p.Done("a.contested", result.Fail, true, "contested")
	p.Stop()
	want := "… server/tools\n✗ fail a.fail wrong \\x1b[2J\\ncode\n▲ warn a.warn\n≷ disputed a.contested contested\n"
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}

func TestProgressQuiet(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, ProgressOptions{Mode: ProgressQuiet})
	p.Start(1)
	p.Phase("x")
	p.Done("a", result.Fail, false, "x")
	p.Stop()
	if b.Len() > 0 {
		t.Errorf("wrote %q", b.String())
	}
}

func TestProgressConcurrent(t *testing.T) {
	defer goleak.VerifyNone(t)
	w := new(lockedBuffer)
	p := NewProgress(w, ProgressOptions{Mode: ProgressBar})
	for range 3 { // a Progress can be used again
		p.Start(100)
		var group sync.WaitGroup
		for range 10 {
			group.Go(func() {
				for range 10 {
					p.Phase("x")
					p.Done("a", result.Pass, false, "")
				}
			})
		}
		group.Wait()
		if p.done != 100 {
			t.Errorf("%d done", p.done)
		}
		group.Go(p.Stop)
		p.Stop()
		group.Wait()
	}
	if got := screen(w.String()); got != "" {
		t.Errorf("left on the line: %q", got)
	}
}
