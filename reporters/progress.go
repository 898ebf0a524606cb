package reporters

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/suites/result"
)

// ProgressMode says how a Progress shows itself.
type ProgressMode int

const (
	// ProgressAuto is ProgressBar on a terminal and ProgressLines elsewhere.
	ProgressAuto ProgressMode = iota
	// ProgressBar redraws one line and erases it in the end.
	ProgressBar
	// ProgressLines writes a line for each phase and each broken requirement.
	ProgressLines
	// ProgressQuiet writes nothing.
	ProgressQuiet
)

// ProgressOptions say how NewProgress shows itself.
type ProgressOptions struct {
	Mode  ProgressMode
	Color bool
	// Width returns the terminal's width in columns, or 0 if it is unknown. It
	// is asked at every redraw, as a terminal can be resized; nil asks w.
	Width func() int
}

// redrawEvery is the time between two redraws: quick enough to look alive, and
// slow enough for a terminal at the end of a slow line.
const redrawEvery = 100 * time.Millisecond

// Progress shows how far a run is. Its methods may be called concurrently, and
// after Stop they do nothing. Errors of the writer are ignored: a run does not
// fail because nobody can watch it.
type Progress struct {
	w    io.Writer
	opts ProgressOptions

	mu       sync.Mutex
	running  bool
	total    int
	done     int
	counts   map[outcome]int
	phase    string
	last     string // what was done last
	frame    int
	drawn    bool // something is on the line
	started  time.Time
	now      func() time.Time
	ticks    func() (<-chan time.Time, func())
	quit     chan struct{}
	finished chan struct{}
}

// NewProgress returns a Progress that writes to w, which is usually stderr.
func NewProgress(w io.Writer, opts ProgressOptions) *Progress {
	if opts.Mode == ProgressAuto {
		opts.Mode = ProgressLines
		if isTerminal(w) && os.Getenv("TERM") != "dumb" {
			opts.Mode = ProgressBar
		}
	}
	if opts.Width == nil {
		opts.Width = func() int { return TerminalWidth(w) }
	}
	return &Progress{
		w: w, opts: opts,
		counts: make(map[outcome]int),
		now:    time.Now,
		ticks: func() (<-chan time.Time, func()) {
			t := time.NewTicker(redrawEvery)
			return t.C, t.Stop
		},
	}
}

// Start begins showing a run of total requirements, or of an unknown number if
// total is 0. Every Start needs a Stop.
func (p *Progress) Start(total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running {
		p.total = total
		return
	}
	p.running, p.total, p.done, p.started = true, total, 0, p.now()
	clear(p.counts)
	p.phase, p.last = "", ""
	if p.opts.Mode != ProgressBar {
		return
	}
	p.quit, p.finished = make(chan struct{}), make(chan struct{})
	ticks, stop := p.ticks()
	p.draw()
	go p.redraw(ticks, stop, p.quit, p.finished)
}

// redraw draws at every tick, so that a silent target does not look like a
// harness that hangs. It ends when quit is closed.
func (p *Progress) redraw(ticks <-chan time.Time, stop func(), quit <-chan struct{}, finished chan<- struct{}) {
	defer close(finished)
	defer stop()
	for {
		select {
		case <-quit:
			return
		case <-ticks:
			p.mu.Lock()
			p.frame++
			p.draw()
			p.mu.Unlock()
		}
	}
}

// Phase tells what the run does now, such as "start target".
func (p *Progress) Phase(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running {
		return
	}
	p.phase = line(name, limitName)
	if p.opts.Mode == ProgressLines {
		fmt.Fprintf(p.w, "… %s\n", p.phase)
	}
}

// Done reports the verdict of the requirement or check called name, with its reason. It also says if the findings are
// disputed and do not count.
func (p *Progress) Done(name string, verdict result.Verdict, disputed bool, message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running {
		return
	}
	o := outcome(verdict)
	switch o {
	case outPass, outSkip, outInconclusive, outWarn, outFail:
	default:
		o = outError
	}
	if disputed {
		o = outDisputed
	}
	p.done++
	p.counts[o]++
	p.last = line(name, limitName)
	if p.opts.Mode != ProgressLines {
		return
	}
	switch o {
	case outFail, outError, outWarn, outDisputed:
		mark := paint(p.opts.Color, o.marked(), told[o].style)
		text := fmt.Sprintf("%s %s %s", mark, p.last, line(message, limitMessage))
		fmt.Fprintln(p.w, strings.TrimRight(text, " "))
	}
}

// Stop erases what is shown and waits until nothing more will be written.
func (p *Progress) Stop() {
	p.mu.Lock()
	if !p.running {
		p.mu.Unlock()
		return
	}
	p.running = false
	quit, finished := p.quit, p.finished
	p.quit, p.finished = nil, nil
	p.mu.Unlock()
	if quit == nil {
		return
	}
	close(quit)
	<-finished
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawn {
		io.WriteString(p.w, "\r\x1b[K")
		p.drawn = false
	}
}

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// draw replaces the line. The caller holds mu.
func (p *Progress) draw() {
	if !p.running {
		return
	}
	width := p.opts.Width()
	if width <= 0 {
		width = 80
	}
	// The last column stays free: writing to it makes some terminals wrap.
	io.WriteString(p.w, "\r"+p.status(width-1)+"\x1b[K")
	p.drawn = true
}

// status renders the line in at most n columns. It leaves out the least telling parts first if not all of them fit.
func (p *Progress) status(n int) string {
	type part struct {
		text string
		st   style
	}
	var b strings.Builder
	used := 0
	put := func(parts ...part) {
		size := 0
		for _, x := range parts {
			size += columns(x.text)
		}
		if used+size > n {
			return
		}
		used += size
		for _, x := range parts {
			b.WriteString(paint(p.opts.Color, x.text, x.st))
		}
	}
	put(part{spinner[p.frame%len(spinner)], cyan})
	if p.total > 0 {
		put(part{fmt.Sprintf(" %d/%d", p.done, p.total), ""})
	} else {
		put(part{fmt.Sprintf(" %d", p.done), ""})
	}
	for _, o := range []outcome{outFail, outError, outWarn, outDisputed} {
		if c := p.counts[o]; c > 0 {
			put(part{"  ", ""}, part{o.counted(c), told[o].style})
		}
	}
	if p.total > 0 {
		const cells = 20
		full := cells * min(max(p.done, 0), p.total) / p.total
		put(part{"  ", ""}, part{strings.Repeat("━", full), green}, part{strings.Repeat("─", cells-full), dim})
	}
	put(part{fmt.Sprintf("  %ds", int(p.now().Sub(p.started)/time.Second)), dim})
	what := p.phase
	if what == "" {
		what = p.last
	}
	if room := n - used - 2; what != "" && room >= 8 {
		put(part{"  " + excerpt(what, room, ""), dim})
	}
	return b.String()
}
