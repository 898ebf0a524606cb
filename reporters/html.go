package reporters

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpconform/mcpconform/suites/result"
)

var (
	//go:embed report.html.tmpl
	htmlSource string
	//go:embed report.css
	htmlStyle string
	//go:embed report.js
	htmlScript string

	htmlTemplate = sync.OnceValue(func() *template.Template {
		return template.Must(template.New("report").Parse(htmlSource))
	})

	// htmlPolicy lets the page run its own style and script, by their digests,
	// and load or send nothing at all.
	htmlPolicy = fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'",
		cspDigest(htmlStyle), cspDigest(htmlScript))
)

func cspDigest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

const (
	mostOpen  = 10 // failures of a run that are unfolded from the start
	mostShown = 6  // events of a finding, likewise, if it is the first of its kind
)

type htmlPage struct {
	Policy                                      string
	Style                                       template.CSS
	Script                                      template.JS
	Target, Revision, Tool, Word, Detail, Class string
	Facts                                       []htmlFact
	Tiles                                       []htmlTile
	Total                                       int
	Broken                                      []htmlRow
	OfSDK                                       []htmlRow // broken by known faults of the target's SDK
	SDKTitle, SDKBy, SDKHelp                    string
	Levels                                      []string
	Table                                       []htmlTableRow
	FeatureColumns                              []string
	Features                                    []feature
	Pages                                       []htmlSection
	Expected                                    []htmlExpected
	Harness                                     []htmlFinding
	Notes, Uncalled                             []string
	UncalledHelp                                string
	Compared                                    string // with an earlier run; "" without one
	Exit, Because                               string // what then decided, likewise
	Changes                                     []htmlChange
	ComparisonNotes                             []string
	OfferChanges                                []htmlOffer
	Unexercised                                 []htmlReasons
	Unobservable                                htmlFold
}

type htmlFact struct {
	Name, Value      string
	Code, Link, Wide bool
}

type htmlTile struct {
	Class, Label  string
	Count, Offset int
}

// htmlTableRow counts the requirements with one outcome by level.
type htmlTableRow struct {
	Class, Mark, Label string
	Counts             []int
}

// htmlSection is a page of the specification: what needs attention on it, and the rest,
// which is folded.
type htmlSection struct {
	Name, Summary string
	Rows          []htmlRow
	Folds         []htmlFold
}

// htmlChange is one kind of difference from an earlier run.
type htmlChange struct {
	Word, Means, Value string
	Requirements       []htmlLink
}

// htmlOffer are changes of one kind of what a server offers.
type htmlOffer struct {
	Word  string
	Lines []string
}

// htmlReasons are the reasons of one kind why requirements are inconclusive.
type htmlReasons struct {
	Kind   string
	Total  int
	Groups []htmlReason
}

type htmlReason struct {
	Reason       string
	Requirements []htmlLink
}

type htmlFold struct {
	Summary string
	Rows    []htmlRow
}

type htmlRow struct {
	ID, Anchor, Level, Grade, Party, Summary, Class, Mark string
	Label, Reason, Remark, Exercised, URL, Again, Advice  string

	Open          bool
	Omitted       int
	Checks, Notes []string
	SDKs          []htmlThread // that are known to cause it
	Disputed      *htmlDispute
	Findings      []htmlFinding
	// Cause is what broke the requirement too, and Brought what was broken with it.
	Cause   *htmlLink
	Brought []htmlLink
	// Change is what kind of difference from an earlier run the requirement shows, if any.
	Change string
}

// htmlDispute says who contests the findings of a requirement.
type htmlDispute struct {
	Threads  []htmlThread
	Position string
}

type htmlThread struct {
	URL, Says string
	Link      bool
}

func newHTMLThread(address, says string) htmlThread {
	address = line(address, limitMessage)
	return htmlThread{address, line(says, limitMessage), isLinkable(address)}
}

// htmlLink leads to a requirement of the page.
type htmlLink struct {
	ID, Anchor, Class, Mark, Label string
}

type htmlFinding struct {
	Message string
	Events  []htmlEvent
	// Open shows the events at once; More counts those that are left out.
	Open bool
	More int
}

// htmlEvent is an event of the evidence. Its text is Head, then Lines.
type htmlEvent struct {
	Class, Arrow, Way, Where, Head string
	Lines                          []jsonLine
}

type htmlExpected struct {
	ID, Reason, Expires, State string
}

// HTML writes the report as one page that needs nothing else: no network, no
// other file, and no script but a filter, without which it is complete too.
func HTML(w io.Writer, run *result.Run) error {
	v, err := newView(run)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	if err := htmlTemplate().Execute(b, v.html()); err != nil {
		return fmt.Errorf("write HTML: %w", err)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write HTML: %w", err)
	}
	return nil
}

func (v *view) html() *htmlPage {
	p := &htmlPage{
		Policy:   htmlPolicy,
		Style:    template.CSS(htmlStyle),
		Script:   template.JS(htmlScript),
		Target:   v.targetName(),
		Revision: line(v.Revision, limitName),
		Tool:     line(v.Tool.Name+" "+v.Tool.Version, limitName),
		Class:    verdictClass(v.Run.Verdict),
		Total:    v.total(),
		Facts:    v.htmlFacts(),
		Harness:  v.htmlFindings(v.Harness),
	}
	p.Word, p.Detail = v.verdictWords()
	p.FeatureColumns, p.Features = featureColumns[:], v.byFeature()
	v.countsTo(p)
	place := v.anchors()
	rows := v.pagesTo(p, place)
	v.findingsTo(p, rows)
	for _, q := range v.unobservable {
		p.Unobservable.Rows = append(p.Unobservable.Rows, v.htmlRow(q, place))
	}
	p.Unobservable.Summary = fmt.Sprintf("%d of which nothing is observed", len(v.unobservable))
	v.remarksTo(p, place)
	return p
}

// countsTo adds the counts of each outcome, in all and by level.
func (v *view) countsTo(p *htmlPage) {
	offset := 0
	names, table := v.levelCounts()
	p.Levels = names
	for _, o := range outcomes {
		n := v.counts[o]
		if n > 0 || o == outPass || o == outFail || o == outWarn || o == outInconclusive {
			p.Tiles = append(p.Tiles, htmlTile{Class: string(o), Label: told[o].label, Count: n, Offset: offset})
		}
		offset += n
		if n > 0 {
			row := htmlTableRow{Class: string(o), Mark: told[o].mark, Label: told[o].label}
			for _, name := range names {
				row.Counts = append(row.Counts, table[name][o])
			}
			p.Table = append(p.Table, row)
		}
	}
}

// pagesTo adds a section for each page of the specification, and returns the row of each requirement.
func (v *view) pagesTo(p *htmlPage, place anchors) map[*result.Requirement]htmlRow {
	rows := make(map[*result.Requirement]htmlRow)
	few := v.counts[outFail]+v.counts[outError] <= mostOpen
	changed := v.htmlChanges(p, place)
	for _, page := range v.pages {
		s := htmlSection{Name: line(page.name, limitName)}
		by := make(map[outcome][]htmlRow)
		for _, q := range page.requirements {
			o := v.outcome(q)
			row := v.htmlRow(q, place)
			row.Change = changed[q.ID]
			row.Open = few && (o == outFail || o == outError)
			by[o] = append(by[o], row)
			rows[q] = row
		}
		var parts []string
		for _, o := range outcomes {
			if len(by[o]) == 0 {
				continue
			}
			counted := o.counted(len(by[o]))
			parts = append(parts, counted)
			switch o {
			case outPass, outSkip, outInconclusive, outNotUsed: // they need nobody's attention
				s.Folds = append(s.Folds, htmlFold{counted, by[o]})
			default:
				s.Rows = append(s.Rows, by[o]...)
			}
		}
		s.Summary = strings.Join(parts, ", ")
		p.Pages = append(p.Pages, s)
	}
	return rows
}

// findingsTo adds what counts first: the target's own findings, and apart from them those of its SDK.
func (v *view) findingsTo(p *htmlPage, rows map[*result.Requirement]htmlRow) {
	for _, o := range broken {
		for _, q := range v.yours(v.reading.causes[o]) {
			if o != outExpected {
				p.Broken = append(p.Broken, rows[q])
			}
		}
	}
	for _, g := range v.sdkGroups() {
		for _, q := range g.requirements {
			p.OfSDK = append(p.OfSDK, rows[q])
		}
	}
	if v.Target.SDK != nil {
		p.SDKTitle, _ = v.sdkTitle()
		p.SDKBy, p.SDKHelp = line(v.Target.SDK.Evidence, limitMessage), sdkHelp
	}
}

// remarksTo adds expected failures, notes, and why requirements were not exercised.
func (v *view) remarksTo(p *htmlPage, place anchors) {
	for i := range v.ExpectedFailures {
		x := &v.ExpectedFailures[i]
		p.Expected = append(p.Expected, htmlExpected{line(x.ID, limitName), line(x.Reason, limitMessage),
			line(x.Expires, limitName), stateOf(x)})
	}
	for _, note := range v.Notes {
		p.Notes = append(p.Notes, line(note, limitMessage))
	}
	p.addReasons(v, "Not used: the "+line(v.Role, limitName)+" never did what they are about",
		v.byReason(v.having(outNotUsed)), place)
	for _, kind := range unexercisedKinds {
		p.addReasons(v, "Untested: "+cmp.Or(v.unexercised(kind), "other reasons"), v.reasonsOf(kind), place)
	}
	for _, g := range v.uncalled() {
		p.Uncalled = append(p.Uncalled, g.words(len(g.tools)))
	}
	p.UncalledHelp = uncalledHelp
}

// addReasons adds requirements that were not exercised for reasons of one kind, if there are any.
func (p *htmlPage) addReasons(v *view, kind string, groups []*reasonGroup, place anchors) {
	r := htmlReasons{Kind: kind, Total: number(groups)}
	for _, g := range groups {
		reason := htmlReason{Reason: g.reason}
		for _, q := range g.requirements {
			reason.Requirements = append(reason.Requirements, v.htmlLink(q, place))
		}
		r.Groups = append(r.Groups, reason)
	}
	if r.Total > 0 {
		p.Unexercised = append(p.Unexercised, r)
	}
}

// anchors are the ids of the elements that show the requirements.
type anchors map[*result.Requirement]string

// anchors gives each requirement an id: its own, which people put into links, if that
// can stand in an address; else one that cannot clash.
func (v *view) anchors() anchors {
	ids := make(anchors)
	taken := make(map[string]bool)
	for i := range v.Requirements {
		q := &v.Requirements[i]
		id := q.ID
		if len(id) > limitName || taken[id] || !strings.Contains(id, ".") || strings.IndexFunc(id, func(r rune) bool {
			return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '.' || r == '-')
		}) >= 0 {
			id = fmt.Sprintf("requirement_%d", i+1)
		}
		taken[id] = true
		ids[q] = id
	}
	return ids
}

// htmlChanges adds what changed since the earlier run to the page, and returns the kind of
// the change by the id of the requirement.
func (v *view) htmlChanges(p *htmlPage, place anchors) map[string]string {
	if v.Against == nil {
		return nil
	}
	byID := v.ByID()
	p.Compared, p.ComparisonNotes = v.compared(), v.comparisonNotes()
	p.Exit, p.Because = v.decision()
	breaking, compatible := v.offerChanges(limitListed)
	for _, o := range []htmlOffer{{breakingOffer, breaking}, {compatibleOffer, compatible}} {
		if len(o.Lines) > 0 {
			p.OfferChanges = append(p.OfferChanges, o)
		}
	}
	changed := make(map[string]string)
	for _, c := range v.changes() {
		if len(c.ids) == 0 {
			continue
		}
		h := htmlChange{Word: c.word, Means: c.means, Value: strings.ToLower(c.word)}
		for _, id := range c.ids {
			q := byID[id]
			if q == nil {
				h.Requirements = append(h.Requirements, htmlLink{ID: line(id, limitName)})
				continue
			}
			h.Requirements = append(h.Requirements, v.htmlLink(q, place))
			if changed[id] == "" {
				changed[id] = h.Value
			}
		}
		p.Changes = append(p.Changes, h)
	}
	return changed
}

func (v *view) htmlLink(q *result.Requirement, place anchors) htmlLink {
	o := v.outcome(q)
	return htmlLink{ID: line(q.ID, limitName), Anchor: place[q], Class: string(o), Mark: told[o].mark,
		Label: told[o].label}
}

func (v *view) htmlFacts() []htmlFact {
	t := &v.Target
	var facts []htmlFact
	add := func(f htmlFact) {
		if f.Value != "" {
			facts = append(facts, f)
		}
	}
	address := v.targetAddress()
	add(htmlFact{Name: "Protocol revision", Value: line(v.Revision, limitName)})
	if t.ProtocolVersion != v.Revision {
		add(htmlFact{Name: "Negotiated revision", Value: line(t.ProtocolVersion, limitName)})
	}
	add(htmlFact{Name: "Role and transport", Value: line(v.Role, limitName) + ", " + transportName(v.Transport)})
	add(htmlFact{Name: v.addressName(), Value: address, Code: true, Link: t.URL != "" && isLinkable(address),
		Wide: t.URL == ""})
	if t.Title != "" {
		add(htmlFact{Name: "Target name", Value: line(t.Name, limitName), Code: true})
	}
	add(htmlFact{Name: "Date", Value: fmt.Sprintf("%s, took %.1f s", timestamp(v.Started, "2006-01-02 15:04 UTC"),
		seconds(v.Seconds))})
	add(htmlFact{Name: "Tool", Value: line(v.Tool.Name+" "+v.Tool.Version, limitName)})
	if t.SDK != nil {
		add(htmlFact{Name: "SDK", Value: v.sdkName()})
	}
	if v.Strict {
		add(htmlFact{Name: "Strict", Value: "yes: recommendations count"})
	}
	add(htmlFact{Name: "Budget", Value: v.budget()})
	return facts
}

func (v *view) htmlRow(q *result.Requirement, place anchors) htmlRow {
	o := v.outcome(q)
	row := htmlRow{
		ID: line(q.ID, limitName), Anchor: place[q], Level: line(q.Level, limitName),
		Grade: strings.Join(grade(q), " · "),
		Party: line(q.Party, limitName), Summary: line(q.Summary, limitMessage), Class: string(o), Mark: told[o].mark,
		Label:  told[o].label,
		Reason: line(q.Reason, limitMessage), Remark: v.reason(q), URL: v.link(q), Again: v.again(q),
		Advice: line(v.advice(q), limitMessage), Omitted: omitted(q), Findings: v.htmlFindings(q.Findings),
	}
	if !q.Observable {
		row.Class, row.Label = "unobservable", q.Unobserved.Words()
	}
	if row.Remark == "" {
		row.Remark = row.Summary
	}
	if o == outExpected {
		row.Reason = v.reason(q)
	}
	switch q.Exercised {
	case 0:
		row.Exercised = "not exercised"
	case 1:
		row.Exercised = "exercised once"
	default:
		row.Exercised = fmt.Sprintf("exercised %d times", q.Exercised)
	}
	for _, name := range q.Checks {
		row.Checks = append(row.Checks, line(name, limitName))
	}
	for _, note := range q.Notes {
		row.Notes = append(row.Notes, line(note, limitMessage))
	}
	if d := q.Disputed; d != nil {
		row.Disputed = &htmlDispute{Position: line(d.Position, limitMessage)}
		for _, t := range d.Threads {
			row.Disputed.Threads = append(row.Disputed.Threads, newHTMLThread(t.URL, t.Says))
		}
	}
	for _, k := range v.known(q, true) {
		row.SDKs = append(row.SDKs, newHTMLThread(k.thread, k.words))
	}
	if cause := v.reading.cause[q.ID]; cause != nil {
		link := v.htmlLink(cause, place)
		row.Cause = &link
	}
	for _, b := range v.reading.brought[q.ID] {
		row.Brought = append(row.Brought, v.htmlLink(b, place))
	}
	return row
}

// again is the command that judges the requirement alone, or "" if the run does not
// say how it was made.
func (v *view) again(q *result.Requirement) string {
	if !q.Observable || v.outcome(q) == outSkip || v.link(q) == "" {
		return ""
	}
	words := []string{"mcpconform", v.Role, "--select", q.ID}
	if v.Seed != 0 {
		words = append(words, "--seed", strconv.FormatUint(v.Seed, 10))
	}
	if v.Thorough {
		words = append(words, "--thorough")
	}
	command := v.Target.Command
	given := len(command) == 1 && v.Role == "server" // to a flag, as one text
	embedded := len(command) == 1 && ours(command[0])
	switch {
	case embedded && !strings.HasPrefix(command[0], "(embedded "), // as of a trace
		len(command) == 0 && v.Target.URL == "",
		v.Role == "client" && v.Transport == "custom": // which the run does not name
		return ""
	case v.Role == "client", v.Transport == "sse":
		words = append(words, "--transport", v.Transport)
	case v.Role != "server":
		return ""
	}
	address := v.Target.URL
	switch {
	case embedded:
	case given && v.Transport == "custom" && (address == "" || strings.Contains(command[0], address)):
		words = append(words, "--transport-command", command[0])
	case address == "":
		words = append(append(words, "--"), command...)
	default:
		if given {
			if u, err := url.Parse(address); err == nil && u.Port() != "" && strings.Contains(command[0], "{port}") {
				address = strings.Replace(address, ":"+u.Port(), ":{port}", 1)
			}
			words = append(words, "--start", command[0])
		}
		words = append(words, "--url", address)
	}
	return commandLine(words)
}

func (v *view) htmlFindings(findings []result.Finding) []htmlFinding {
	var out []htmlFinding
	kinds := make(map[string]bool)
	for i := range findings {
		if i == limitFindings {
			out = append(out, htmlFinding{Message: fmt.Sprintf("and %d more in results.json", len(findings)-i)})
			break
		}
		f := &findings[i]
		shown := f.Evidence[:min(len(f.Evidence), limitEvents)]
		kind := kindOf(f.Message)
		found := htmlFinding{
			Message: line(f.Message, limitMessage) + times(f),
			Open:    !kinds[kind] && len(shown) <= mostShown, More: len(f.Evidence) - len(shown),
		}
		kinds[kind] = true
		for j := range shown {
			found.Events = append(found.Events, v.htmlEvent(&shown[j]))
		}
		out = append(out, found)
	}
	return out
}

func (v *view) htmlEvent(e *result.Event) htmlEvent {
	out := htmlEvent{Arrow: direction(v.Role, e)}
	switch out.Arrow {
	case "←":
		out.Class, out.Way = "received", "from the "+line(v.Role, limitName)
	case "→":
		out.Class, out.Way = "sent", "to the "+line(v.Role, limitName)
	default:
		out.Class, out.Way = "seen", "seen"
	}
	var where []string
	if label := eventLabel(e); label != "" {
		where = append(where, label)
	}
	where = append(where, fmt.Sprintf("%.3f s", seconds(e.Seconds)))
	if e.Connection != "" {
		where = append(where, fmt.Sprintf("%s #%d", line(e.Connection, limitName), e.Seq))
	}
	if e.Truncated {
		where = append(where, "shortened")
	}
	out.Where = strings.Join(where, " · ")
	if e.Text == "" {
		out.Head = "(empty)"
		return out
	}
	head, body := splitJSON(e.Text, e.Truncated)
	out.Head = text(head)
	if body != "" {
		out.Lines = layOut(text(body))
	}
	return out
}
