// Package reporters renders what a run found: for people at a terminal, for CI
// systems (JUnit XML), for programs (results.json), for a certification (the
// checklist in Markdown and HTML) and as an attestation.
//
// A reporter is a function that writes one document about one result.Run to an io.Writer. A run can hold any text
// that a target put on the wire, so every reporter treats all text as hostile. Text of a target stays in its place in
// the document, and no control, format or bidirectional character reaches a reader unescaped.
package reporters

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/suites/expected"
	"github.com/mcpconform/mcpconform/suites/result"
)

// errNoRun is what every reporter returns for a nil run.
var errNoRun = errors.New("reporters: no run to report")

// outcome is a verdict as a reader sees it. There are the six verdicts, and inconclusive is divided into untested and
// not used by the target. A failure that the expected-failures file covers is an outcome of its own. So is a disputed
// failure, which does not count.
type outcome string

const (
	outPass         = outcome(result.Pass)
	outSkip         = outcome(result.Skip)
	outInconclusive = outcome(result.Inconclusive) // untested
	outNotUsed      = outcome("not-used")
	outWarn         = outcome(result.Warn)
	outFail         = outcome(result.Fail)
	outError        = outcome(result.Error)
	outExpected     = outcome("expected")
	outDisputed     = outcome("disputed")
)

// outcomes in the order in which reports count them: what needs action first.
var outcomes = []outcome{outFail, outError, outWarn, outDisputed, outExpected, outInconclusive, outNotUsed, outPass,
	outSkip}

// told is how reports tell an outcome.
var told = map[outcome]struct {
	mark      string // a sign that stays readable without colour and in any font
	label     string // the outcome of one requirement
	one, many string // behind the number of requirements that have it
	style     style
}{
	outPass:         {"✓", "pass", "passed", "passed", green},
	outSkip:         {"–", "not applicable", "not applicable", "not applicable", dim},
	outInconclusive: {"?", "untested", "untested", "untested", cyan},
	outNotUsed:      {"·", "not used", "not used", "not used", cyan},
	outWarn:         {"▲", "warn", "warning", "warnings", boldAmber},
	outFail:         {"✗", "fail", "failed", "failed", boldRed},
	outError:        {"!", "error", "harness error", "harness errors", magenta},
	outExpected:     {"≈", "expected failure", "failed as expected", "failed as expected", cyan},
	outDisputed:     {"≷", "disputed", "disputed", "disputed", cyan},
}

// marked is the outcome of one requirement behind its mark.
func (o outcome) marked() string { return told[o].mark + " " + told[o].label }

// counted names n requirements with the outcome.
func (o outcome) counted(n int) string {
	return fmt.Sprintf("%d %s", n, plural(n, told[o].one, told[o].many))
}

// view is a run arranged for rendering.
type view struct {
	*result.Run
	pages        []page
	unobservable []*result.Requirement
	expected     map[string]string // requirement id to the reason given for its failure
	counts       map[outcome]int   // over observable requirements
	reading      *reading
}

// page holds the observable requirements of one page of the specification, in
// the order of the run.
type page struct {
	name         string
	requirements []*result.Requirement
}

func newView(run *result.Run) (*view, error) {
	if run == nil {
		return nil, errNoRun
	}
	v := &view{Run: run, expected: make(map[string]string), counts: make(map[outcome]int)}
	for i := range run.ExpectedFailures {
		if x := &run.ExpectedFailures[i]; x.Status == "failed" {
			v.expected[x.ID] = x.Reason
		}
	}
	index := make(map[string]int)
	for i := range run.Requirements {
		q := &run.Requirements[i]
		if !q.Observable {
			v.unobservable = append(v.unobservable, q)
			continue
		}
		at, ok := index[q.Page]
		if !ok {
			at = len(v.pages)
			index[q.Page] = at
			v.pages = append(v.pages, page{name: q.Page})
		}
		v.pages[at].requirements = append(v.pages[at].requirements, q)
		v.counts[v.outcome(q)]++
	}
	v.reading = v.read()
	return v, nil
}

// total counts the observable requirements.
func (v *view) total() int {
	n := 0
	for _, of := range v.counts {
		n += of
	}
	return n
}

func (v *view) outcome(q *result.Requirement) outcome {
	switch q.Verdict {
	case result.Pass, result.Skip:
		return outcome(q.Verdict)
	case result.Inconclusive:
		if q.NotUsed != "" {
			return outNotUsed
		}
		return outInconclusive
	case result.Fail, result.Warn:
		if _, ok := v.expectation(q); ok {
			return outExpected
		}
		if q.Disputed != nil && !v.Strict {
			return outDisputed
		}
		return outcome(q.Verdict)
	}
	return outError
}

// expectation returns why the requirement's failure was expected, if it was.
func (v *view) expectation(q *result.Requirement) (string, bool) {
	if q.Expected != "" {
		return q.Expected, true
	}
	reason, ok := v.expected[q.ID]
	if ok && reason == "" {
		reason = "listed without a reason"
	}
	return reason, ok
}

// having returns the observable requirements with the outcome, in the order of
// the run's pages.
func (v *view) having(o outcome) []*result.Requirement {
	var found []*result.Requirement
	for _, p := range v.pages {
		for _, q := range p.requirements {
			if v.outcome(q) == o {
				found = append(found, q)
			}
		}
	}
	return found
}

// idsOf returns the ids of some requirements.
func idsOf(list []*result.Requirement) []string {
	var ids []string
	for _, q := range list {
		ids = append(ids, line(q.ID, limitName))
	}
	return ids
}

// basis is what in the specification a requirement rests on, or "" for what a
// script of the user states.
func basis(q *result.Requirement) string { return line(cmp.Or(q.Standard, q.Basis), limitName) }

// grade is the level of a requirement and its basis, if any.
func grade(q *result.Requirement) []string {
	list := []string{line(q.Level, limitName)}
	if b := basis(q); b != "" {
		list = append(list, b)
	}
	return list
}

// link is the address of the requirement's sentence. A run may have been read
// from a file, so only characters that need no quoting in any of the formats
// are left as they are.
//
// It is "" for what a script of the user states.
func (v *view) link(q *result.Requirement) string {
	return safeURL(q.URL(v.Revision))
}

// mdLink is the requirement's id in Markdown, with a link to its sentence.
func (v *view) mdLink(q *result.Requirement) string {
	id := mdCode(line(q.ID, limitName), true)
	if link := v.link(q); link != "" {
		return "[" + id + "](" + link + ")"
	}
	return id
}

// isEscape reports whether s begins with a percent-encoded byte.
func isEscape(s string) bool {
	if len(s) < 3 {
		return false
	}
	_, err := hex.DecodeString(s[1:3])
	return err == nil
}

func safeURL(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			strings.IndexByte("/.-_~:#=,", c) >= 0, c == '%' && isEscape(s[i:]):
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// verdictWords says in words what the run's verdict is, why it is incomplete, and what
// it rests on.
func (v *view) verdictWords() (word, detail string) {
	detail = v.basis()
	if why := strings.TrimRight(line(v.Reason, limitMessage), "."); !strings.HasPrefix(detail, why) {
		detail = why + "; " + detail
	}
	return verdictName(v.Verdict), detail
}

// basis says in words what the run's verdict rests on.
func (v *view) basis() string {
	broken, ignored, expected, disputed := v.counts[outFail], v.counts[outWarn], v.counts[outExpected],
		v.counts[outDisputed]
	exercised := v.counts[outPass] + broken + ignored + expected + disputed
	var parts []string
	if n := exercised; n > 0 {
		parts = append(parts, fmt.Sprintf("%d %s exercised", n, plural(n, "requirement", "requirements")))
	} else {
		parts = append(parts, "nothing was exercised")
	}
	if broken > 0 {
		parts = append(parts, fmt.Sprintf("%d broken", broken))
	}
	if ignored > 0 {
		of := "not followed"
		if v.Strict {
			of = "not followed, which counts because the run is strict"
		}
		parts = append(parts, fmt.Sprintf("%d %s %s", ignored, plural(ignored, "recommendation", "recommendations"),
			of))
	}
	if broken == 0 && ignored == 0 && exercised > 0 && expected == 0 && disputed == 0 {
		parts = append(parts, "none broken")
	}
	if expected > 0 {
		parts = append(parts, fmt.Sprintf("%d broken as expected", expected))
	}
	if disputed > 0 {
		parts = append(parts, fmt.Sprintf("%d disputed, which %s not count", disputed, plural(disputed, "does", "do")))
	}
	holds := func(x result.ExpectedFailure) bool { return !x.Stale() }
	if n := len(slices.DeleteFunc(slices.Clone(v.ExpectedFailures), holds)); n > 0 {
		parts = append(parts, fmt.Sprintf("%d stale expected %s", n, plural(n, "failure", "failures")))
	}
	detail := strings.Join(parts, ", ")
	if v.Shard != nil {
		detail += fmt.Sprintf("; only shard %d of %d was run", v.Shard.Index, v.Shard.Of)
	}
	if v.Partial && (v.Shard == nil || v.Shard.Partial) {
		detail += "; only a selection was judged"
	}
	return detail
}

// budget says how much a run tried that is not the default, or "".
func (v *view) budget() string {
	switch v.Budget() {
	case result.Quick:
		return "quick: each requirement once, in the plainest way"
	case result.Thorough:
		return "thorough: all members of all families, and longer sequences"
	}
	return ""
}

// Incomplete returns the reason why a run is incomplete, without a full stop.
func Incomplete(run *result.Run) string {
	if why := strings.TrimRight(line(run.Reason, limitMessage), "."); why != "" {
		return why
	}
	return "nothing was exercised"
}

// dispute says who contests the findings of a requirement, and what mcpconform holds
// of it: a line a thread, and one for the position.
func dispute(q *result.Requirement) []string {
	if q.Disputed == nil {
		return nil
	}
	var lines []string
	for _, t := range q.Disputed.Threads {
		lines = append(lines, line(t.URL, limitMessage)+" "+line(t.Says, limitMessage))
	}
	return append(lines, "Our position: "+line(q.Disputed.Position, limitMessage))
}

// reasonGroup holds the requirements that were not exercised for the same reason.
type reasonGroup struct {
	reason       string
	requirements []*result.Requirement
}

// unexercisedKinds are the kinds of reasons in the order in which they are shown: first
// where the user can do something. Results of earlier versions have none.
var unexercisedKinds = []result.Unexercised{result.NotProvoked, result.NeverDone, result.NotRun, ""}

// reasonsOf returns what is untested for reasons of one kind, by reason.
func (v *view) reasonsOf(kind result.Unexercised) []*reasonGroup {
	return v.byReason(slices.DeleteFunc(v.having(outInconclusive),
		func(q *result.Requirement) bool { return q.Unexercised != kind }))
}

// byReason groups requirements by their reasons: first the one that most have.
func (v *view) byReason(list []*result.Requirement) []*reasonGroup {
	var groups []*reasonGroup
	for _, q := range list {
		why := v.reason(q)
		if why == "" {
			why = "nothing exercised it"
		}
		i := slices.IndexFunc(groups, func(g *reasonGroup) bool { return g.reason == why })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &reasonGroup{reason: why})
		}
		groups[i].requirements = append(groups[i].requirements, q)
	}
	slices.SortStableFunc(groups, func(a, b *reasonGroup) int {
		return cmp.Compare(len(b.requirements), len(a.requirements))
	})
	return groups
}

// unexercised says in words what kind of reason untested requirements have.
func (v *view) unexercised(kind result.Unexercised) string {
	target := line(v.Role, limitName)
	switch kind {
	case result.NeverDone:
		return "the " + target + " did nothing that they are about"
	case result.NotProvoked:
		return "they could not be provoked"
	case result.NotRun:
		return "nothing was run that tries them"
	}
	return ""
}

func verdictName(o result.Overall) string {
	switch o {
	case result.Conformant:
		return "conformant"
	case result.NotConformant:
		return "not conformant"
	case result.Incomplete:
		return "incomplete"
	}
	return line(string(o), limitName)
}

// staleWords says what is wrong with an entry of the expected-failures file;
// it is empty when nothing is.
func staleWords(x *result.ExpectedFailure) string {
	switch x.Status {
	case "passed":
		if x.ID == expected.SDK {
			return "covers nothing now: leave the flag out"
		}
		return "passes now: remove the entry"
	case "unmatched":
		if x.ID == expected.SDK {
			return "covers nothing, as no SDK was recognised: leave the flag out"
		}
		return "matches no requirement: correct or remove the entry"
	case "expired":
		if x.Expires != "" {
			return "expired on " + line(x.Expires, limitName)
		}
		return "expired"
	case "untested":
		return "was not tested in this run"
	case "failed":
		return ""
	}
	return line(x.Status, limitName)
}

// stateOf says what became of an entry of the expected-failures file.
func stateOf(x *result.ExpectedFailure) string { return cmp.Or(staleWords(x), "failed as expected") }

// targetName is the shortest text that tells a reader which target this was.
func (v *view) targetName() string {
	t := &v.Target
	if name := cmp.Or(t.Title, t.Name); name != "" {
		if t.Version != "" {
			name += " " + t.Version
		}
		return line(name, limitName)
	}
	if at := v.targetAddress(); at != "" {
		return at
	}
	return "unnamed " + line(v.Role, limitName)
}

// targetAddress is the command or URL that was given.
func (v *view) targetAddress() string {
	if v.Target.URL != "" {
		return line(v.Target.URL, limitMessage)
	}
	if len(v.Target.Command) == 1 && ours(v.Target.Command[0]) {
		return line(v.Target.Command[0][1:len(v.Target.Command[0])-1], limitMessage)
	}
	return commandLine(v.Target.Command)
}

// commandLine quotes the words of a command, so that it can be pasted.
func commandLine(command []string) string {
	words := make([]string, 0, len(command))
	size := 0
	for _, word := range command {
		if size += len(word); size > limitMessage {
			words = append(words, "…")
			break
		}
		words = append(words, shellWord(word))
	}
	return line(strings.Join(words, " "), limitMessage)
}

// addressName says which of the two targetAddress is.
func (v *view) addressName() string {
	if v.Target.URL != "" {
		return "Address"
	}
	return "Command"
}

// ours reports whether a word stands in the place of a command, such as
// "(embedded reference server)".
func ours(word string) bool {
	return len(word) > 2 && strings.HasPrefix(word, "(") && strings.HasSuffix(word, ")")
}

// shellWord quotes an argument.
func shellWord(s string) string {
	plain := s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			strings.ContainsRune("-_./:=@%+,{}", r))
	}) < 0
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func transportName(t string) string {
	switch t {
	case "http":
		return "Streamable HTTP"
	case "sse":
		return "HTTP+SSE (legacy)"
	case "custom":
		return "a custom transport"
	}
	return line(t, limitName)
}

// isLinkable tells whether an address may become a hyperlink.
func isLinkable(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// direction says which way an event went, seen from the harness.
func direction(role string, e *result.Event) string {
	from := e.From
	if from == "" {
		switch e.Stream {
		case "stdin":
			from = "client"
		case "stdout", "stderr":
			from = "server"
		}
	}
	switch from {
	case "":
		return "·"
	case role:
		return "←"
	}
	return "→"
}

// eventLabel names what the event's text does not say of itself; it is empty
// for a message over stdio.
func eventLabel(e *result.Event) string {
	var parts []string
	if s := e.Stream; s != "" && s != "stdin" && s != "stdout" {
		parts = append(parts, line(s, limitName))
	}
	if k := e.Kind; k != "" && k != "message" && k != e.Stream {
		parts = append(parts, line(k, limitName))
	}
	return strings.Join(parts, " ")
}

// eventLine renders an event as one line.
func eventLine(role string, e *result.Event) string {
	var b strings.Builder
	b.WriteString(direction(role, e))
	if label := eventLabel(e); label != "" {
		b.WriteString(" " + label + ":")
	}
	if e.Text != "" {
		b.WriteString(" " + line(e.Text, limitMessage))
	} else {
		b.WriteString(" (empty)")
	}
	if e.Truncated {
		b.WriteString(" [shortened]")
	}
	return b.String()
}

// reason returns what there is to say about a requirement beside its verdict.
func (v *view) reason(q *result.Requirement) string {
	if why, ok := v.expectation(q); ok && v.outcome(q) == outExpected {
		return "expected: " + line(why, limitMessage)
	}
	if q.Reason != "" {
		return line(q.Reason, limitMessage)
	}
	if len(q.Findings) > 0 && v.outcome(q) != outPass {
		return line(q.Findings[0].Message, limitMessage)
	}
	return ""
}

// omitted counts the findings of a requirement that were not kept. Repetitions of a kept finding do not count.
func omitted(q *result.Requirement) int {
	n := max(q.Omitted, 0)
	for i := range q.Findings {
		n = max(n-max(q.Findings[i].Repeated, 0), 0)
	}
	return n
}

// seconds returns a duration that can be printed whatever was measured.
func seconds(s float64) float64 {
	if math.IsNaN(s) || math.IsInf(s, 0) || s < 0 {
		return 0
	}
	return s
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// timestamp formats t in UTC, as written returns it.
func timestamp(t time.Time, layout string) string { return written(t).Format(layout) }

// written returns t in UTC, or the beginning of Unix time if the clock had a year that has no
// four digits, which would break the readers of every format.
func written(t time.Time) time.Time {
	if t = t.UTC(); t.Year() < 0 || t.Year() > 9999 {
		return time.Unix(0, 0).UTC()
	}
	return t
}
