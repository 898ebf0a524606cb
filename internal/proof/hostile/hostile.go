// Package hostile holds runs on hostile peers to what has to hold in each of them.
package hostile

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/leftover"
	"github.com/mcpconform/mcpconform/internal/proof/wellformed"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/reporters"
	"github.com/mcpconform/mcpconform/suites/result"
)

// Limits of runs on hostile peers, and of the peers that keep a record as well.
var Limits = wire.Limits{Message: 1 << 20, Total: 8 << 20, Events: 20_000, Run: 16 << 20}

// memory is how much more than before a run may hold, in bytes: 64 MB, and as much for its peer,
// which is in the same process.
const memory = 128 << 20

// Played is a run on a hostile peer that has ended.
type Played struct {
	Run   *result.Run
	Trace *wire.Trace
	// Took is how long it lasted, by the clock that its limit was measured with.
	Took, Limit time.Duration
	// Legal says that the peer did nothing that is not allowed.
	Legal bool
}

// Faults returns which invariants a run breaks: it ends within twice its limit; every requirement has a verdict, and
// a reason unless that is pass; no message of ours and no check is at fault; a record that a limit cut does not end
// green, and a legal peer is not accused; and every report is written, and well-formed.
func (p Played) Faults() []string {
	var all []string
	fault := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if p.Took > 2*p.Limit {
		fault("it took %v, with a limit of %v", p.Took, p.Limit)
	}
	if len(p.Run.Requirements) < 100 {
		fault("it has %d requirements", len(p.Run.Requirements))
	}
	for _, q := range p.Run.Requirements {
		switch {
		case q.Verdict == "", q.Verdict == result.Error:
			fault("%s is %q: %s", q.ID, q.Verdict, q.Reason)
		case q.Verdict != result.Pass && q.Verdict != result.Fail && q.Verdict != result.Warn && q.Reason == "":
			fault("%s is %s without a reason", q.ID, q.Verdict)
		case p.Legal && (q.Verdict == result.Fail || q.Verdict == result.Warn):
			fault("%s is %s, and all of it was legal: %s", q.ID, q.Verdict, q.Findings[0].Message)
		}
	}
	for _, f := range p.Run.Harness {
		fault("a message of mcpconform is at fault: %s", f.Message)
	}
	for _, l := range p.Trace.Logs() {
		if l.Cut() && p.Run.Verdict == result.Conformant && (!p.Trace.Lossy || len(p.Run.Notes) == 0) {
			fault("the record of %s (%s) was cut by a limit, and the run is %s", l.ID, l.Label, p.Run.Verdict)
		}
	}
	if p.Run.Verdict == result.Incomplete && p.Run.Reason == "" {
		fault("the run is incomplete without a reason")
	}
	return append(all, p.reported()...)
}

// reports are all of them, by names of files.
func (p Played) reports() map[string]func(io.Writer) error {
	run, members := p.Run, []reporters.Member{{Run: p.Run}}
	return map[string]func(io.Writer) error{
		"trace.jsonl":  func(w io.Writer) error { _, err := p.Trace.WriteTo(w); return err },
		"results.json": func(w io.Writer) error { return reporters.JSON(w, run) },
		"statement.json": func(w io.Writer) error {
			return reporters.Attestation(w, run, reporters.Attested{
				Subjects: []reporters.Descriptor{reporters.SHA256("results.json", strings.Repeat("0", 64))},
				Verdict:  run.Verdict,
			})
		},
		"junit.xml":     func(w io.Writer) error { return reporters.JUnit(w, run, reporters.JUnitOptions{}) },
		"results.sarif": func(w io.Writer) error { return reporters.SARIF(w, run, reporters.SARIFOptions{}) },
		"checklist.md":  func(w io.Writer) error { return reporters.Checklist(w, run) },
		"report.html":   func(w io.Writer) error { return reporters.HTML(w, run) },
		"badge.svg": func(w io.Writer) error {
			b, err := reporters.NewBadge(run)
			if err != nil {
				return err
			}
			return reporters.BadgeSVG(w, b)
		},
		"console.txt": func(w io.Writer) error {
			return reporters.Console(w, run, reporters.ConsoleOptions{Verbose: true})
		},
		"annotations.github": func(w io.Writer) error { return reporters.GitHub(w, members) },
		"step.md":            func(w io.Writer) error { return reporters.StepSummary(w, members, 1<<20) },
	}
}

// reported returns what is wrong with the reports.
func (p Played) reported() []string {
	var all []string
	for name, write := range p.reports() {
		var b bytes.Buffer
		err := write(&b)
		if err == nil {
			err = wellformed.Report(name, b.String())
		}
		if err != nil {
			all = append(all, name+": "+err.Error())
		}
	}
	return all
}

// Meter measures what a run holds, in real time, and what it leaves behind.
type Meter struct {
	before        uint64
	held          peak
	files, temps  int
	running       int
	percent       int
	settling      time.Duration // how long what a run has left may take to end
	seen          atomic.Int64  // how often it was measured
	stop, stopped chan struct{}
}

// ballast is held for ever and has no pointers: collecting costs nothing for it, and begins when a part of it was
// allocated, however little else is held.
var ballast = sync.OnceValue(func() []byte { return make([]byte, memory) })

// NewMeter begins to measure. It collects garbage each time that the held memory, with the ballast, may have grown by
// a quarter.
func NewMeter() *Meter {
	_ = ballast()
	m := &Meter{percent: debug.SetGCPercent(25), settling: 10 * time.Second, stop: make(chan struct{}),
		stopped: make(chan struct{})}
	// Descriptors that the program opens once for all pipes and sockets are there from now on.
	if r, w, err := os.Pipe(); err == nil {
		_, _ = r.Close(), w.Close()
	}
	runtime.GC()
	_, m.before = live()
	m.files, m.temps, m.running = leftover.Descriptors(), temps(), runtime.NumGoroutine()
	go func() {
		defer close(m.stopped)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			m.held.saw(live())
			m.seen.Add(1)
			select {
			case <-tick.C:
			case <-m.stop:
				return
			}
		}
	}()
	return m
}

// live returns how many bytes were reachable at the last collection, and its number.
func live() (collection, bytes uint64) {
	sample := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64(), sample[1].Value.Uint64()
}

// peak is the maximum of the held memory. A collection also counts allocations during its own run, and these are many
// if it waits for a processor. Two collections, one after the other, therefore measure the held memory. A growth far
// beyond [memory] is measured many times, at each quarter.
type peak struct {
	collection, last, most uint64
}

func (p *peak) saw(collection, bytes uint64) {
	if collection == p.collection {
		return
	}
	p.most = max(p.most, min(p.last, bytes))
	p.collection, p.last = collection, bytes
}

// more returns how much more was held than before.
func (m *Meter) more() uint64 { return m.held.most - min(m.held.most, m.before) }

// temps returns how many temporary files there are.
func temps() int {
	entries, _ := os.ReadDir(os.TempDir())
	return len(entries)
}

// Faults ends the measurement and returns what was held beyond most bytes, and what is left.
func (m *Meter) Faults(most uint64) []string {
	close(m.stop)
	<-m.stopped
	debug.SetGCPercent(m.percent)
	var all []string
	if m.more() > most {
		all = append(all, fmt.Sprintf("it held %d MiB", m.more()>>20))
	}
	deadline := time.Now().Add(m.settling)
	for _, left := range []struct {
		what  string
		were  int
		count func() int
	}{{"goroutines", m.running, runtime.NumGoroutine}, {"open files", m.files, leftover.Descriptors},
		{"temporary files", m.temps, temps}} {
		now := left.count()
		for now > left.were && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond) //nolint:forbidigo // what ends by itself cannot be awaited
			now = left.count()
		}
		if now > left.were {
			all = append(all, fmt.Sprintf("%d %s, of which there were %d", now, left.what, left.were))
		}
	}
	return all
}

// Test plays a run, in whatever time play chooses, and holds it to the invariants.
func Test(t *testing.T, play func(t *testing.T) Played) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir()) // for this run alone
	m := NewMeter()
	p := play(t)
	most := uint64(memory)
	if p.Trace.Limits != Limits {
		most += uint64(p.Trace.Limits.Run) // which the run may keep
	}
	faults := append(p.Faults(), m.Faults(most)...)
	if p.Run != nil {
		t.Logf("%s %s after %v, %d MiB more", p.Run.Verdict, p.Run.Reason, p.Took, m.more()>>20)
	}
	for _, f := range faults {
		t.Error(f)
	}
}
