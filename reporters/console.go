package reporters

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/mcpconform/mcpconform/suites/result"
)

// ConsoleOptions say how Console renders.
type ConsoleOptions struct {
	// Color turns ANSI colours on; see ColorEnabled.
	Color bool
	// Width of the terminal in columns, 40 at least; 0 means that there is none: running
	// text then has 80 columns, and the evidence is not made to fit them.
	Width int
	// Verbose lists every requirement and every finding.
	Verbose bool
	// Files are the reports that were written besides.
	Files []File
}

// File is a report that was written.
type File struct{ Kind, Path string }

// ColorEnabled tells whether w should get colours: NO_COLOR turns them off,
// CLICOLOR_FORCE on; otherwise w has to be a terminal that is not dumb. getenv
// is os.Getenv or a replacement.
func ColorEnabled(w io.Writer, getenv func(string) string) bool {
	if getenv("NO_COLOR") != "" {
		return false
	}
	if force := getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	return getenv("TERM") != "dumb" && isTerminal(w)
}

// TerminalWidth returns the width of the terminal that w is, or 0 if w is none.
func TerminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	n, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return n
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// style is an SGR parameter string.
type style string

const (
	bold      style = "1"
	dim       style = "2"
	red       style = "31"
	green     style = "32"
	yellow    style = "33"
	magenta   style = "35"
	cyan      style = "36"
	boldRed   style = "1;31"
	boldGreen style = "1;32"
	boldAmber style = "1;33"
)

func verdictStyle(v result.Overall) style {
	switch v {
	case result.Conformant:
		return boldGreen
	case result.Incomplete:
		return boldAmber
	}
	return boldRed
}

// Bounds on what is shown unless the report is verbose.
const (
	briefFindings     = 2
	briefNames        = 4 // of further cases
	briefIDs          = 3
	briefTools        = 6
	briefConsequences = 12 // ids under their cause
	briefRecall       = 12 // ids of one outcome at the end
)

// Bounds in columns.
const (
	maxProse = 100 // running text; longer lines read badly
	maxEvent = 240 // an event where no terminal has to hold it
	maxQuote = 60  // JSON of the target inside a message
)

type console struct {
	*view
	ConsoleOptions
	eventWidth int // columns of a line with an event
	eventRoom  int // columns of the text of an event, on two such lines in a terminal
	w          *bufio.Writer
}

// Console writes the report for people. Each requirement that was broken in its own right gets a block, with evidence
// and advice. Then follow the requirements that were not exercised, with reasons, a recap of the broken ones by id,
// the paths of the other reports, and the counts. The verdict comes last, where a terminal leaves the eye. Every line
// fits the width, except addresses, which have to stay whole.
func Console(w io.Writer, run *result.Run, opts ConsoleOptions) error {
	v, err := newView(run)
	if err != nil {
		return err
	}
	c := newConsole(w, v, opts)
	c.heading()
	if c.Verbose {
		c.list()
	}
	for _, o := range []outcome{outFail, outError, outWarn, outDisputed} {
		for _, q := range c.yours(c.reading.causes[o]) {
			c.block(o, q)
		}
	}
	c.ofTheSDK()
	c.harness()
	c.notes()
	c.uncalledTools()
	c.expectedFailures()
	c.notUsed()
	c.untested()
	c.features()
	c.recall()
	c.comparison()
	for _, f := range c.Files {
		c.println(c.paint(fmt.Sprintf("%-12s ", f.Kind), dim) + line(f.Path, limitMessage))
	}
	if len(c.Files) > 0 {
		c.println("")
	}
	c.summary()
	return c.w.Flush()
}

func newConsole(w io.Writer, v *view, opts ConsoleOptions) *console {
	c := &console{view: v, ConsoleOptions: opts, eventWidth: max(opts.Width, 40), w: bufio.NewWriter(w)}
	if opts.Width <= 0 {
		c.Width, c.eventWidth = 80, maxEvent
	}
	c.Width = max(c.Width, 40)
	if c.eventRoom = c.eventWidth - fieldIndent; opts.Width > 0 && !c.Verbose {
		c.eventRoom *= 2
	}
	return c
}

// limit bounds one message: a few lines unless the report is verbose.
func (c *console) limit() int {
	if c.Verbose {
		return limitMessage
	}
	return limitBrief
}

func (c *console) paint(s string, st style) string { return paint(c.Color, s, st) }

// paint wraps s, which is clean already, in a style, where colours are on.
func paint(color bool, s string, st style) string {
	if !color || s == "" || st == "" {
		return s
	}
	return "\x1b[" + string(st) + "m" + s + "\x1b[0m"
}

func (c *console) println(s string) {
	c.w.WriteString(s)
	c.w.WriteByte('\n')
}

// prose writes running text after a lead, with further lines indented. The
// text is painted line by line.
func (c *console) prose(lead string, indent int, s string, st style) {
	used := columns(stripSGR(lead))
	for i, text := range wrap(s, min(c.Width, maxProse)-indent, used-indent) {
		if i > 0 {
			lead = strings.Repeat(" ", indent)
		}
		c.println(lead + c.paint(text, st))
	}
}

// field writes "  Name        text".
func (c *console) field(name, s string, st style) {
	c.prose(c.paint(fmt.Sprintf("  %-*s", fieldIndent-2, name), dim), fieldIndent, s, st)
}

const fieldIndent = 15

func (c *console) heading() {
	tool := line(c.Tool.Name, limitName)
	if c.Tool.Version != "" {
		tool += " " + line(c.Tool.Version, limitName)
	}
	subject := fmt.Sprintf("· MCP %s %s", line(c.Revision, limitName), line(c.Role, limitName))
	if c.Transport != "" {
		subject += " over " + transportName(c.Transport)
	}
	if b := c.Budget(); b != result.Default {
		subject += " · " + b.String()
	}
	if !c.Recorded {
		subject += fmt.Sprintf(" · seed %d", c.Seed)
	}
	c.prose(c.paint(tool, bold)+" ", 2, subject, "")
	name, address := c.targetName(), c.targetAddress()
	if address != "" && address != name {
		name += " (" + address + ")"
	}
	c.prose("", 0, name, "")
	c.println("")
}

func (c *console) block(o outcome, q *result.Requirement) {
	title, id := told[o].mark+" "+strings.ToUpper(told[o].label), line(q.ID, limitName)
	origin := strings.Join(append(grade(q), line(q.Page, limitName)), " · ")
	if columns(title)+columns(id)+columns(origin)+4 <= c.Width {
		c.println(c.paint(title, told[o].style) + "  " + c.paint(id, bold) + "  " + c.paint(origin, dim))
	} else {
		c.prose(c.paint(title, told[o].style)+"  ", 2, id, bold)
		c.prose("  ", 2, origin, dim)
	}
	c.field("Requirement", line(q.Summary, c.limit()), "")
	if len(q.Findings) == 0 && q.Reason != "" {
		c.field("Reason", line(q.Reason, c.limit()), "")
	}
	c.findings(q, told[o].style)
	if advice := c.advice(q); advice != "" {
		c.field("To do", line(advice, limitMessage), green)
	}
	for _, k := range c.known(q, !c.Verbose) {
		c.field("SDK", k.words, "")
		c.address("", k.thread)
	}
	if also := c.alsoBreaks(q); len(also) > 0 {
		c.field("Also breaks", c.listing(also, briefConsequences), "")
	}
	c.dispute(q)
	for _, note := range q.Notes {
		c.field("Note", line(note, c.limit()), "")
	}
	if link := c.link(q); link != "" {
		c.address("See", link)
	}
	c.println("")
}

// address writes an address, which stays whole so that it can be followed.
func (c *console) address(name, address string) {
	c.println(c.paint(fmt.Sprintf("  %-*s", fieldIndent-2, name), dim) + line(address, limitMessage))
}

// dispute says who contests the findings: one thread unless the report is verbose.
func (c *console) dispute(q *result.Requirement) {
	if q.Disputed == nil {
		return
	}
	if c.Verbose || len(q.Disputed.Threads) == 0 {
		for _, words := range dispute(q) {
			c.field("Disputed", words, "")
		}
		return
	}
	more := ""
	if n := len(q.Disputed.Threads) - 1; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	c.address("Disputed", q.Disputed.Threads[0].URL+more)
}

// clip fits a line of printable characters into n columns.
func clip(s string, n int) string {
	if columns(s) <= n {
		return s
	}
	return first(s, n-1) + "…"
}

// singleQuoted finds what unescaped has put between single quotes.
var singleQuoted = regexp.MustCompile(`'[^']*"[^']*'`)

// kindOf is the message of a finding without what differs from case to case: texts in
// quotation marks, JSON and numbers.
func kindOf(message string) string {
	return differing.ReplaceAllString(message[:min(len(message), limitMessage)], "…")
}

var differing = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\{[^{}]*\}|-?[0-9]+`)

// listing joins ids, at most so many unless the report is verbose.
func (c *console) listing(ids []string, most int) string {
	if c.Verbose || len(ids) <= most {
		return strings.Join(ids, ", ")
	}
	return strings.Join(ids[:most], ", ") + fmt.Sprintf(" and %d more", len(ids)-most)
}

// list writes one line for each requirement, page by page.
func (c *console) list() {
	for _, p := range c.pages {
		c.println(c.paint(line(p.name, limitName), bold))
		for _, q := range p.requirements {
			o := c.outcome(q)
			s := line(q.ID, limitName) + " (" + line(q.Level, limitName)
			if q.Exercised > 0 {
				s += fmt.Sprintf(", %d×", q.Exercised)
			}
			s += ")"
			if why := c.reason(q); why != "" && o != outPass {
				s += ": " + why
			}
			c.prose(fmt.Sprintf("  %s ", c.paint(told[o].mark, told[o].style)), 6, s, "")
		}
		c.println("")
	}
	if len(c.unobservable) > 0 {
		c.println(c.paint("not observed from the other end", bold))
		for _, q := range c.unobservable {
			s := line(q.ID, limitName) + " (" + line(q.Level, limitName) + ")"
			if q.Reason != "" {
				s += ": " + line(q.Reason, c.limit())
			}
			c.prose("  · ", 6, s, "")
		}
		c.println("")
	}
}

func (c *console) harness() {
	if len(c.Harness) == 0 {
		return
	}
	c.prose(c.paint("! mcpconform broke the protocol itself ", magenta), 2,
		"(a bug of mcpconform, not of the target; please report it):", "")
	shown := len(c.Harness)
	if !c.Verbose {
		shown = min(shown, briefFindings)
	}
	for i := range c.Harness[:shown] {
		f := &c.Harness[i]
		c.prose("  - ", 4, line(f.Message, c.limit()), "")
		if n := len(f.Evidence); n > 0 {
			c.event(&f.Evidence[n-1], f.Message)
		}
	}
	if more := len(c.Harness) - shown; more > 0 {
		c.println(fmt.Sprintf("  - and %d more", more))
	}
	c.println("")
}

func (c *console) notes() {
	if len(c.Notes) == 0 {
		return
	}
	shown := len(c.Notes)
	if !c.Verbose {
		shown = min(shown, 5)
	}
	for _, note := range c.Notes[:shown] {
		c.prose(c.paint("Note: ", dim), 6, line(note, c.limit()), "")
	}
	if more := len(c.Notes) - shown; more > 0 {
		c.println(c.paint(fmt.Sprintf("      and %d more notes", more), dim))
	}
	c.println("")
}

// uncalledTools says which tools were left alone, and what allows calls of them.
func (c *console) uncalledTools() {
	groups := c.uncalled()
	if len(groups) == 0 {
		return
	}
	most := briefTools
	if c.Verbose {
		most = len(c.Uncalled)
	}
	for _, g := range groups {
		c.prose(c.paint("Not called: ", dim), 6, g.words(most), "")
	}
	c.prose(strings.Repeat(" ", 6), 6, uncalledHelp, dim)
	c.println("")
}

func (c *console) expectedFailures() {
	if len(c.ExpectedFailures) == 0 {
		return
	}
	as := 0
	for i := range c.ExpectedFailures {
		x := &c.ExpectedFailures[i]
		words := staleWords(x)
		if words == "" {
			as++
			if c.Verbose {
				c.prose(c.paint("  ≈ ", cyan), 4, line(x.ID, limitName)+": "+line(x.Reason, c.limit()), "")
			}
			continue
		}
		st := boldAmber
		if x.Status == "untested" {
			if !c.Verbose {
				continue
			}
			st = dim
		}
		c.prose(c.paint("▲ Expected failure ", st), 2, line(x.ID, limitName)+" "+words, "")
	}
	c.prose("", 0, fmt.Sprintf("Expected failures: %d of %d listed failed as expected", as, len(c.ExpectedFailures)),
		"")
	c.println("")
}

// untested tells what the user can do so that more is exercised: most
// reasons apply to several requirements, so they are grouped.
func (c *console) untested() {
	n := c.counts[outInconclusive]
	if n == 0 {
		return
	}
	lead := c.paint("Untested ", cyan)
	text := fmt.Sprintf("(%d apply, but nothing exercised %s):", n, plural(n, "it", "them"))
	if !c.Verbose {
		c.briefly(lead, text)
		return
	}
	c.prose(lead, 2, text, "")
	for _, kind := range unexercisedKinds {
		groups := c.reasonsOf(kind)
		if words := c.unexercised(kind); words != "" && len(groups) > 0 {
			c.prose("  ", 2, fmt.Sprintf("%s (%d):", words, number(groups)), "")
		}
		for _, g := range groups {
			c.group(g)
		}
	}
	c.println("")
}

// group shows a reason, and the requirements that have it.
func (c *console) group(g *reasonGroup) {
	c.prose(fmt.Sprintf("%4d  ", len(g.requirements)), 6, g.reason, "")
	c.prose(strings.Repeat(" ", 6), 6, strings.Join(idsOf(g.requirements), ", "), dim)
}

// briefKinds says in few words what kind of reason untested requirements have.
var briefKinds = map[result.Unexercised]string{
	result.NotProvoked: "could not be provoked", result.NeverDone: "did not come up", result.NotRun: "were not tried",
}

// briefly says in three lines how many requirements are untested, and why most of them
// are, or what kinds of reasons there are and what would change the most frequent one.
func (c *console) briefly(lead, text string) {
	width := min(c.Width, maxProse)
	var parts []string
	for _, kind := range unexercisedKinds {
		for _, g := range c.reasonsOf(kind) {
			if 2*len(g.requirements) > c.counts[outInconclusive] {
				c.prose(lead, 2, text+" -v says why.", "")
				c.prose("  ", 2, clip(g.brief(), 2*width-20), "")
				c.println("")
				return
			}
		}
		if n, words := number(c.reasonsOf(kind)), briefKinds[kind]; n > 0 && words != "" {
			parts = append(parts, fmt.Sprintf("%d %s", n, words))
		}
	}
	if len(parts) > 0 {
		text += " " + strings.Join(parts, ", ") + "."
	}
	c.prose(lead, 2, text+" -v says why.", "")
	if help, n := c.help(); n > 0 {
		c.println(clip(fmt.Sprintf("  This helps with %d of them: %s", n, help), width))
	} else if groups := c.reasonsOf(result.NotProvoked); len(groups) > 0 {
		c.println(clip("  "+groups[0].brief(), width))
	}
	c.println("")
}

// brief says how many requirements have the reason, and what helps if it says so.
func (g *reasonGroup) brief() string {
	if _, helps, ok := strings.Cut(g.reason, "("+result.Helps); ok {
		return fmt.Sprintf("This helps with %d of them: %s", len(g.requirements), strings.TrimSuffix(helps, ")"))
	}
	return fmt.Sprintf("%d of them: %s", len(g.requirements), g.reason)
}

// number counts the requirements of groups.
func number(groups []*reasonGroup) int {
	n := 0
	for _, g := range groups {
		n += len(g.requirements)
	}
	return n
}

// recall names once more what was broken, with what follows from it.
func (c *console) recall() {
	any := false
	words := map[outcome]string{outFail: "Failed", outError: "Error", outWarn: "Warned", outDisputed: "Disputed"}
	for _, o := range []outcome{outFail, outError, outWarn, outDisputed} {
		ids := idsOf(c.yours(c.having(o)))
		if len(ids) == 0 {
			continue
		}
		text := strings.Join(ids, ", ")
		if o != outFail {
			text = c.listing(ids, briefRecall)
		}
		any = true
		c.prose(c.paint(fmt.Sprintf("%-9s ", words[o]), told[o].style), 10, text, "")
	}
	if any {
		c.println("")
	}
}

func (c *console) summary() {
	if c.Run.Verdict == result.Incomplete {
		c.prose(c.paint("Incomplete because: ", boldAmber), 2, Incomplete(c.Run)+".", "")
	}
	parts := make([]string, 0, len(outcomes))
	for _, o := range outcomes {
		if n := c.counts[o]; n > 0 {
			parts = append(parts, c.paint(o.counted(n), told[o].style))
		}
	}
	n := c.total()
	tail := fmt.Sprintf("(%d %s, %.1f s)", n, plural(n, "requirement", "requirements"), seconds(c.Seconds))
	if len(parts) == 0 {
		c.println(c.paint("No requirement was judged ", dim) + c.paint(tail, dim))
	} else {
		c.columns(parts, tail)
	}
	word, detail := c.verdictWords()
	if c.Run.Verdict == result.Incomplete {
		detail = c.basis() // the reason stands above the counts
	}
	c.prose(c.paint(strings.ToUpper(word)+":", verdictStyle(c.Run.Verdict))+" ", 2, detail+".", "")
	if exit, because := c.decision(); exit != "" {
		c.prose(c.paint(strings.ToUpper(exit)+":", verdictStyle(c.Against.Verdict(c.Run)))+" ", 2, because+".", "")
	}
}

// columns writes the counts with separators, on as many lines as they need.
func (c *console) columns(parts []string, tail string) {
	used := 0
	for i, part := range append(slices.Clone(parts), c.paint(tail, dim)) {
		size := columns(stripSGR(part))
		sep := " · "
		if i == len(parts) {
			sep = "  "
		}
		switch {
		case used == 0:
		case used+columns(sep)+size > c.Width:
			c.println("")
			used = 0
		default:
			c.w.WriteString(sep)
			used += columns(sep)
		}
		c.w.WriteString(part)
		used += size
	}
	c.println("")
}

// stripSGR removes the sequences that paint writes.
func stripSGR(s string) string { return sgr.ReplaceAllString(s, "") }

var sgr = regexp.MustCompile("\x1b\\[[^m]*m")
