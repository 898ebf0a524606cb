package reporters

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/suites/result"
)

// change is one kind of difference from an earlier run.
type change struct {
	word, means string
	ids         []string
	style       style
}

// changes are the differences from the earlier run, what needs action first.
func (v *view) changes() []change {
	a := v.Against
	if a == nil {
		return nil
	}
	return []change{
		{"New", "failures that the earlier results do not have", a.New, boldRed},
		{"Stale", "entries of the expected-failures file that hold no longer", a.Stale, boldAmber},
		{"Unsettled", "were judged then and were not exercised now", a.Unsettled, boldAmber},
		{"Mended", "failed then and do not now", a.Mended, green},
		{"Added", "requirements that the catalogue did not have then", a.Added, dim},
	}
}

// compared says in words what changed since the earlier run.
func (v *view) compared() string {
	var parts []string
	for _, c := range v.changes() {
		if n := len(c.ids); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ToLower(c.word)))
		}
	}
	breaking := v.Against.Breaking()
	if breaking > 0 {
		parts = append(parts, fmt.Sprintf("%d breaking %s of the offer", breaking,
			plural(breaking, "change", "changes")))
	}
	if n := len(v.Against.Offer) - breaking; n > 0 {
		parts = append(parts, fmt.Sprintf("%d other %s of the offer", n, plural(n, "change", "changes")))
	}
	if len(parts) == 0 {
		return "nothing changed"
	}
	return strings.Join(parts, ", ")
}

// base names the earlier results.
func (v *view) base() string { return cmp.Or(line(v.Against.File, limitName), "the earlier results") }

// decision says with which exit code a run ends that was compared with an earlier one, whatever
// its verdict is, and why; "" without an earlier one.
func (v *view) decision() (exit, because string) {
	a := v.Against
	if a == nil {
		return "", ""
	}
	var counts []string
	count := func(n int, one, many string) {
		if n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, plural(n, one, many)))
		}
	}
	count(len(a.New), "failure is new since "+v.base(), "failures are new since "+v.base())
	count(len(a.Stale), "entry of the expected-failures file became stale",
		"entries of the expected-failures file became stale")
	if a.FailOnBreaking {
		count(a.Breaking(), "change of the offer breaks clients", "changes of the offer break clients")
	}
	verdict := a.Verdict(v.Run)
	switch {
	case verdict == result.NotConformant:
		because = strings.Join(counts, ", ")
	case verdict == result.Conformant:
		because = "only what is new since " + v.base() + " counts, and nothing is"
	case v.Verdict == result.Incomplete:
		because = "nothing is new since " + v.base() + ", but the run is incomplete"
	case len(a.Unjudged) > 0:
		count(len(a.Unjudged), "requirement was not tried to the end", "requirements were not tried to the end")
		because = "nothing is new since " + v.base() + ", but " + counts[0]
	default:
		because = "nothing is new since " + v.base() + ", but what the server offers cannot be compared"
	}
	return fmt.Sprintf("exit code %d", verdict.ExitCode()), because
}

// decided is the decision as a clause after the verdict, or "".
func (v *view) decided() string {
	exit, because := v.decision()
	if exit == "" {
		return ""
	}
	return "; against the earlier results " + v.compared() + "; " + exit + ": " + because
}

// comparisonNotes are what a reader of a comparison must know beside the changes.
func (v *view) comparisonNotes() []string {
	a := v.Against
	if a == nil {
		return nil
	}
	var notes []string
	if a.Base != v.Tool {
		notes = append(notes, fmt.Sprintf("the earlier results are of %s %s", line(a.Base.Name, limitName),
			line(a.Base.Version, limitName)))
	}
	if a.Left > 0 {
		notes = append(notes, fmt.Sprintf("%d %s not compared: only one of the runs judged %s", a.Left,
			plural(a.Left, "requirement was", "requirements were"), plural(a.Left, "it", "them")))
	}
	if a.OfferUnknown != "" {
		notes = append(notes, line(a.OfferUnknown, limitMessage))
	}
	if len(a.OfferIncomplete) > 0 {
		notes = append(notes, "not all that the server lists could be compared: "+
			line(strings.Join(a.OfferIncomplete, ", "), limitName))
	}
	if a.FailOnBreaking {
		notes = append(notes, "breaking changes of the offer count (--fail-on-breaking)")
	}
	if n := len(a.Unjudged); n > 0 {
		notes = append(notes, fmt.Sprintf("%d %s not tried to the end in this run", n,
			plural(n, "requirement was", "requirements were")))
	}
	return notes
}

// offerChanges are the changes of what a server offers as lines, of which at most so many
// break clients and as many do not.
func (v *view) offerChanges(most int) (breaking, compatible []string) {
	if v.Against == nil {
		return nil, nil
	}
	left := make(map[bool]int)
	for _, x := range v.Against.Offer {
		list := &compatible
		if x.Breaking {
			list = &breaking
		}
		if len(*list) == most {
			left[x.Breaking]++
			continue
		}
		text := x.Kind
		if x.Name != "" {
			text += " " + line(x.Name, limitName) + ":"
		}
		*list = append(*list, line(text+" "+x.What, limitMessage))
	}
	if n := left[true]; n > 0 {
		breaking = append(breaking, fmt.Sprintf("and %d more", n))
	}
	if n := left[false]; n > 0 {
		compatible = append(compatible, fmt.Sprintf("and %d more", n))
	}
	return breaking, compatible
}

// isNew reports whether a failure is new since the earlier run, or whether there is
// nothing to compare with.
func (v *view) isNew(q *result.Requirement) bool {
	return v.Against == nil || slices.Contains(v.Against.New, q.ID)
}

// isStale reports whether an entry of the expected-failures file is stale and counts: with
// an earlier run, if it became so since.
func (v *view) isStale(x *result.ExpectedFailure) bool {
	return x.Stale() && (v.Against == nil || slices.Contains(v.Against.Stale, x.ID))
}

// comparison shows what changed since the earlier run.
func (c *console) comparison() {
	if c.Against == nil {
		return
	}
	c.prose(c.paint("Against the earlier results: ", bold), 2, c.compared()+".", "")
	for _, x := range c.changes() {
		if len(x.ids) == 0 {
			continue
		}
		ids := make([]string, len(x.ids))
		for i, id := range x.ids {
			ids[i] = line(id, limitName)
		}
		text := strings.Join(ids, ", ")
		if x.style != boldRed {
			text = c.listing(ids, briefRecall)
		}
		c.prose("  "+c.paint(fmt.Sprintf("%-10s ", x.word), x.style), 13, text+" ("+x.means+")", "")
	}
	most := briefRecall
	if c.Verbose {
		most = len(c.Against.Offer)
	}
	breaking, compatible := c.offerChanges(most)
	for _, list := range []struct {
		word  string
		lines []string
		style style
	}{{"Breaking", breaking, boldRed}, {"Offer", compatible, dim}} {
		for i, text := range list.lines {
			word := list.word
			if i > 0 {
				word = ""
			}
			c.prose("  "+c.paint(fmt.Sprintf("%-10s ", word), list.style), 13, text, "")
		}
	}
	for _, note := range c.comparisonNotes() {
		c.prose("  "+c.paint("Note       ", dim), 13, note, "")
	}
	c.println("")
}

// mdComparison is the section of a Markdown document about the earlier run, or "".
func (v *view) mdComparison() string {
	if v.Against == nil {
		return ""
	}
	var b strings.Builder
	exit, because := v.decision()
	fmt.Fprintf(&b, "**%s**: %s.\n\n", mdText(strings.ToUpper(exit[:1])+exit[1:]), mdText(because))
	fmt.Fprintf(&b, "**Against the earlier results**: %s.\n\n", mdText(v.compared()))
	verdict := b.Len()
	for _, x := range v.changes() {
		if len(x.ids) == 0 {
			continue
		}
		ids := make([]string, 0, limitListed+1)
		for i, id := range x.ids {
			if i == limitListed {
				ids = append(ids, fmt.Sprintf("and %d more", len(x.ids)-i))
				break
			}
			ids = append(ids, mdCode(line(id, limitName), false))
		}
		fmt.Fprintf(&b, "- %s (%s): %s\n", x.word, x.means, strings.Join(ids, ", "))
	}
	breaking, compatible := v.offerChanges(limitListed)
	for _, list := range []struct {
		word  string
		lines []string
	}{{breakingOffer, breaking}, {compatibleOffer, compatible}} {
		if len(list.lines) == 0 {
			continue
		}
		fmt.Fprintf(&b, "- %s:\n", list.word)
		for _, text := range list.lines {
			fmt.Fprintf(&b, "  - %s\n", mdText(text))
		}
	}
	for _, note := range v.comparisonNotes() {
		fmt.Fprintf(&b, "- %s\n", mdText(note))
	}
	if b.Len() > verdict {
		b.WriteString("\n")
	}
	return b.String()
}

// limitListed bounds how many changes of one kind a document lists.
const limitListed = 50

// The names of the changes of an offer in documents.
const (
	breakingOffer   = "Breaking changes of what the server offers"
	compatibleOffer = "Other changes of what the server offers"
)
