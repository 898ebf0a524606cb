package reporters

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/suites/result"
)

// findings shows what was found about a requirement: the smallest case with the events that decide
// it, and how many others there are. A verbose report shows all.
func (c *console) findings(q *result.Requirement, st style) {
	if len(q.Findings) == 0 {
		return
	}
	if c.Verbose {
		for i := range q.Findings {
			c.finding(&q.Findings[i], st)
		}
		if more := omitted(q); more > 0 {
			c.field("And", fmt.Sprintf("%d more like these, only counted", more), dim)
		}
		return
	}
	shown := smallest(q.Findings)
	c.finding(shown, st)
	if words := others(q, shown); words != "" {
		c.field("And", words, dim)
	}
}

// smallest returns the finding of the gravest kind with the shortest evidence. The first finding is of the gravest
// kind.
func smallest(findings []result.Finding) *result.Finding {
	best := &findings[0]
	for i := range findings[1:] {
		f := &findings[1+i]
		if f.Disputed == best.Disputed && kindOf(f.Message) == kindOf(best.Message) && size(f) < size(best) {
			best = f
		}
	}
	return best
}

// size is how much a finding shows.
func size(f *result.Finding) int {
	n := len(f.Message)
	for i := range f.Evidence {
		n += len(f.Evidence[i].Text)
	}
	return n
}

// others says how many findings a requirement has besides the one that is shown, and what they are
// about.
func others(q *result.Requirement, shown *result.Finding) string {
	n := len(q.Findings) - 1 + omitted(q)
	if n == 0 {
		return ""
	}
	var names []string
	for i := range q.Findings {
		if name := apart(q.Findings[i].Message, shown.Message); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	words := fmt.Sprintf("%d more", n)
	if len(names) > 0 {
		words += ": " + strings.Join(names[:min(len(names), briefNames)], ", ")
	}
	if len(names) > briefNames {
		words += ", …"
	}
	return words + " (-v)"
}

// apart returns the first name in a message that another message does not have: a method, or a text in
// quotation marks. It is the message where there is none.
func apart(message, other string) string {
	if message == other {
		return ""
	}
	for _, word := range telltales(message) {
		if !strings.Contains(other, word) && len(word) <= maxQuote {
			return line(word, maxQuote)
		}
	}
	return clip(line(message, limitBrief), maxQuote)
}

func (c *console) finding(f *result.Finding, st style) {
	if c.Verbose {
		for i := range f.Evidence {
			c.event(&f.Evidence[i], f.Message)
		}
	} else {
		for _, e := range c.telling(f) {
			c.event(e, f.Message)
		}
	}
	c.field("Found", c.message(f)+times(f), st)
}

// message is the message of a finding; JSON of the target in it stands in the evidence as well, and
// is cut short.
func (c *console) message(f *result.Finding) string {
	text := unescaped(f.Message)
	if !c.Verbose {
		text = singleQuoted.ReplaceAllStringFunc(text, func(q string) string {
			if columns(q) <= maxQuote {
				return q
			}
			return first(q, maxQuote-2) + "…'"
		})
	}
	return line(text, c.limit())
}

// times says how often a finding was made, if more than once.
func times(f *result.Finding) string {
	if f.Repeated < 1 || f.Repeated == math.MaxInt {
		return ""
	}
	return fmt.Sprintf(" (%d times)", 1+f.Repeated)
}

func (c *console) event(e *result.Event, message string) {
	name, st := "", style("")
	switch arrow := direction(c.Role, e); {
	case strings.HasPrefix(e.Kind, "process-"):
		name = "Process"
	case e.Stream == "stderr" || e.Kind == "stderr":
		name, st = "stderr", dim
	case arrow == "→":
		name = "Sent"
	case arrow == "←":
		name = "Came back"
	}
	lead := direction(c.Role, e) + " "
	if label := strings.TrimPrefix(eventLabel(e), name); label != "" {
		lead += strings.TrimSuffix(strings.TrimSuffix(label, " http-request"), " http-response") + ": "
	}
	lead = first(lead, c.Width/2)
	shown := e.Text
	if !c.Verbose {
		shown = gist(e, message)
	}
	text := excerpt(shown, c.eventRoom-columns(lead), message)
	if text == "" {
		text, st = "(empty)", dim
	}
	field := c.paint(fmt.Sprintf("  %-*s", fieldIndent-2, name), dim) + c.paint(lead, cyan)
	for text != "" {
		part := first(text, c.eventWidth-fieldIndent-columns(lead))
		c.println(field + c.paint(part, st))
		text, lead = text[len(part):], ""
		field = strings.Repeat(" ", fieldIndent)
	}
}

// ofTheSDK shows what the SDK of the target is known to cause, by its faults. A verbose report shows
// each requirement as it shows the others.
func (c *console) ofTheSDK() {
	title, ok := c.sdkTitle()
	if !ok {
		return
	}
	help := sdkHelp + " -v shows them in full."
	if c.Verbose {
		help = "It was recognised because " + line(c.Target.SDK.Evidence, limitBrief) + ". " + sdkHelp
	}
	c.prose("", 2, title, bold)
	c.prose("  ", 2, help, dim)
	for _, g := range c.sdkGroups() {
		if c.Verbose {
			for _, q := range g.requirements {
				c.block(c.outcome(q), q)
			}
			continue
		}
		c.sdkGroup(g)
	}
	if !c.Verbose {
		c.println("")
	}
}

func (c *console) sdkGroup(g *sdkGroup) {
	q := g.requirements[0]
	o := c.outcome(q)
	c.prose(c.paint(told[o].mark+" "+strings.ToUpper(told[o].label), told[o].style)+"  ", 2,
		strings.Join(idsOf(g.requirements), ", "), bold)
	c.field("Found", clip(c.message(smallest(q.Findings)), 2*(min(c.Width, maxProse)-fieldIndent)-8), "")
	c.field("To do", line(g.Advice, limitMessage), green)
	c.address("SDK", line(g.Thread, limitMessage)+" ("+mended(g.SDKFault)+")")
	if link := c.link(q); link != "" {
		c.address("See", link)
	}
}
