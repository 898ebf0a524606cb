package hostile

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/leftover"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/result"
)

// sound is a run that breaks no invariant, and that a test may spoil.
func sound() Played {
	run := &result.Run{Verdict: result.Conformant, Role: "server"}
	for range 100 {
		run.Requirements = append(run.Requirements, result.Requirement{ID: "a", Level: "MUST", Verdict: result.Pass, Exercised: 1, Observable: true})
	}
	trace := wire.NewTrace(Limits)
	trace.Connect("stdio", "first")
	return Played{Run: run, Trace: trace, Took: time.Second, Limit: time.Second}
}

// Each invariant is noticed when it is broken.
func TestFaults(t *testing.T) {
	if faults := sound().Faults(); len(faults) > 0 {
		t.Errorf("a sound run has the faults %q", faults)
	}
	for want, spoil := range map[string]func(p *Played){
		"it took 3s":             func(p *Played) { p.Took = 3 * time.Second },
		"99 requirements":        func(p *Played) { p.Run.Requirements = p.Run.Requirements[1:] },
		"a is \"error\"":         func(p *Played) { p.Run.Requirements[0].Verdict = result.Error },
		"without a reason":       func(p *Played) { p.Run.Requirements[0].Verdict = result.Inconclusive },
		"all of it was legal":    func(p *Played) { p.Legal = true; accuse(p) },
		"mcpconform is at fault": func(p *Played) { p.Run.Harness = []result.Finding{{Message: "x"}} },
		"cut by a limit":         func(p *Played) { p.Trace.Logs()[0].Stop("more") },
		"incomplete without":     func(p *Played) { p.Run.Verdict = result.Incomplete },
	} {
		p := sound()
		spoil(&p)
		if faults := strings.Join(p.Faults(), "\n"); !strings.Contains(faults, want) {
			t.Errorf("nothing says %q: %s", want, faults)
		}
	}
}

func accuse(p *Played) {
	p.Run.Requirements[0].Verdict, p.Run.Requirements[0].Findings = result.Fail, []result.Finding{{Message: "x"}}
}

// The meter notices the remains of a run, and the memory that it held.
func TestMeter(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	m := NewMeter()
	m.settling = time.Millisecond
	held := make([]byte, 8<<20)
	for range 2 {
		runtime.GC()
		for seen := m.seen.Load(); m.seen.Load() < seen+2; {
			runtime.Gosched()
		}
	}
	file, err := os.CreateTemp("", "left")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ended := make(chan struct{})
	defer close(ended)
	go func() { <-ended }()
	faults := strings.Join(m.Faults(1<<20), "\n")
	held[0]++
	for _, want := range []string{"it held", "goroutines", "open files", "temporary files"} {
		if !strings.Contains(faults, want) && (want != "open files" || leftover.Descriptors() > 0) {
			t.Errorf("nothing says %q: %s", want, faults)
		}
	}
}

// Held memory is memory that two collections in a row have seen.
func TestPeak(t *testing.T) {
	for _, c := range []struct {
		name string
		saw  [][2]uint64 // number of the collection, bytes
		want uint64
	}{
		{"once, and looked at twice", [][2]uint64{{1, 5}, {2, 90}, {2, 90}, {3, 7}}, 7},
		{"for a while", [][2]uint64{{1, 5}, {2, 90}, {3, 80}, {4, 6}}, 80},
		{"and collections that nobody saw", [][2]uint64{{1, 5}, {4, 70}, {9, 90}}, 70},
	} {
		var p peak
		for _, s := range c.saw {
			p.saw(s[0], s[1])
		}
		if p.most != c.want {
			t.Errorf("%s: %d, want %d", c.name, p.most, c.want)
		}
	}
}
