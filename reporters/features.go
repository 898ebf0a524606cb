package reporters

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/suites/result"
)

// feature counts what became of the requirements on one feature of the protocol.
type feature struct {
	Name   string
	Counts [len(featureColumns)]int // by column
}

// featureColumns are the words over the columns: each requirement is counted in one.
var featureColumns = [...]string{"passed", "broken", "not followed", "not used", "untested", "n/a"}

const (
	featurePassed = iota
	featureBroken
	featureNotFollowed
	featureNotUsed
	featureUntested
	featureInapplicable
)

// featurePages are the pages of the specification by feature, in the order in which a session meets them.
var featurePages = []struct{ name, page string }{
	{"messages", "basic/index"}, {"handshake", "basic/lifecycle"}, {"transport", "basic/transports"},
	{"authorization", "basic/authorization"}, {"authorization", "basic/security_best_practices"},
	{"tools", "server/tools"}, {"resources", "server/resources"}, {"prompts", "server/prompts"},
	{"completion", "server/utilities/completion"}, {"logging", "server/utilities/logging"},
	{"pagination", "server/utilities/pagination"}, {"sampling", "client/sampling"},
	{"elicitation", "client/elicitation"},
	{"roots", "client/roots"}, {"progress", "basic/utilities/progress"},
	{"cancellation", "basic/utilities/cancellation"}, {"ping", "basic/utilities/ping"},
}

// featureOf names the feature that a requirement is about. The type definitions are one page for all features: there
// the first segment of the id tells.
func featureOf(q *result.Requirement) string {
	group, _, _ := strings.Cut(q.ID, ".")
	for _, f := range featurePages {
		if f.page == q.Page || q.Page == "schema" && f.name == group {
			return f.name
		}
	}
	switch {
	case q.Page == result.ScriptPages, strings.HasPrefix(q.Page, result.ScriptPages+"/"):
		return "scripts"
	case q.Page == "schema" && group == "lifecycle":
		return "handshake"
	case strings.HasSuffix(q.Page, "/basic/transports"):
		return "transport" // HTTP+SSE is that of an older revision
	}
	return "messages"
}

// byFeature counts the observable requirements by feature, without those of which there are none.
func (v *view) byFeature() []feature {
	var list []feature
	for _, name := range append(slices.Clone(featurePages), struct{ name, page string }{name: "scripts"}) {
		if len(list) == 0 || list[len(list)-1].Name != name.name {
			list = append(list, feature{Name: name.name})
		}
	}
	for _, p := range v.pages {
		for _, q := range p.requirements {
			name := featureOf(q)
			at := slices.IndexFunc(list, func(f feature) bool { return f.Name == name })
			list[at].Counts[columnOf(q)]++
		}
	}
	return slices.DeleteFunc(list, func(f feature) bool { return f.Counts == [len(featureColumns)]int{} })
}

// columnOf returns the column in which a requirement is counted. A disputed or expected failure counts as broken all
// the same.
func columnOf(q *result.Requirement) int {
	switch q.Verdict {
	case result.Pass:
		return featurePassed
	case result.Fail:
		return featureBroken
	case result.Warn:
		return featureNotFollowed
	case result.Skip:
		return featureInapplicable
	case result.Inconclusive:
		if q.NotUsed != "" {
			return featureNotUsed
		}
	}
	return featureUntested
}

// words says what became of the requirements where a table has no room.
func (f feature) words() string {
	var parts []string
	for i, n := range f.Counts {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, featureColumns[i]))
		}
	}
	return strings.Join(parts, ", ")
}

// features shows the table by feature, and names those that do not apply below it.
func (c *console) features() {
	const width = 14
	head := fmt.Sprintf("%-*s", width, "Feature")
	for _, word := range featureColumns {
		head += "  " + word
	}
	narrow := len(head) > c.Width
	if !narrow {
		c.println(c.paint(head, dim))
	}
	var apart []string
	for _, f := range c.byFeature() {
		if !slices.ContainsFunc(f.Counts[:featureInapplicable], func(n int) bool { return n > 0 }) {
			apart = append(apart, f.Name)
			continue
		}
		if narrow {
			c.prose(f.Name+": ", 2, f.words(), "")
			continue
		}
		row := fmt.Sprintf("%-*s", width, f.Name)
		for i, n := range f.Counts {
			cell := fmt.Sprintf("  %*s", len(featureColumns[i]), count(n))
			switch {
			case n > 0 && i == featureBroken:
				cell = c.paint(cell, boldRed)
			case n > 0 && i == featureNotFollowed:
				cell = c.paint(cell, boldAmber)
			}
			row += cell
		}
		c.println(row)
	}
	if len(apart) > 0 {
		c.prose("Not applicable: ", 2, strings.Join(apart, ", "), "")
	}
	c.println("")
}

// count writes a number in a table, in which nothing is a dash.
func count(n int) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprint(n)
}

// features writes the table by feature.
func (c *checklist) features() {
	c.printf("| Feature |")
	for _, word := range featureColumns {
		c.printf(" %s |", word)
	}
	c.printf("\n| --- |%s\n", strings.Repeat(" --: |", len(featureColumns)))
	for _, f := range c.byFeature() {
		c.printf("| %s |", f.Name)
		for _, n := range f.Counts {
			c.printf(" %s |", count(n))
		}
		c.printf("\n")
	}
	c.printf("\n")
}

// notUsed says what the target did not use, with the number of requirements on each of these uses.
func (c *console) notUsed() {
	uses := make(map[string]int)
	for _, q := range c.having(outNotUsed) {
		uses[line(q.NotUsed, limitName)]++
	}
	if len(uses) == 0 {
		return
	}
	names := slices.SortedFunc(maps.Keys(uses), func(a, b string) int {
		return cmp.Or(cmp.Compare(uses[b], uses[a]), strings.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, uses[name])
	}
	text := fmt.Sprintf("(%d: offered, and the %s made no use of it): ", c.counts[outNotUsed], line(c.Role, limitName))
	c.prose(c.paint("Not used ", cyan), 2, text+c.listing(names, briefUses), "")
	if c.Verbose {
		for _, g := range c.byReason(c.having(outNotUsed)) {
			c.group(g)
		}
	}
	if c.Verbose || c.counts[outInconclusive] == 0 {
		c.println("")
	}
}

// briefUses is how many uses the brief report names.
const briefUses = 8

// help returns what would help with the most of the untested requirements, and with how many; 0 if nothing is known.
func (v *view) help() (what string, n int) {
	helps := make(map[string]int)
	for _, q := range v.having(outInconclusive) {
		if _, help, ok := strings.Cut(v.reason(q), "("+result.Helps); ok {
			helps[strings.TrimSuffix(help, ")")]++
		}
	}
	for help, of := range helps {
		if of > n || of == n && help < what {
			what, n = help, of
		}
	}
	return what, n
}
