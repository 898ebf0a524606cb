package source

import (
	"fmt"
	"strings"

	"github.com/mcpconform/mcpconform/schema"
)

// A Regrading says which level a requirement had before it was graded by its
// basis, and why it has another one.
type Regrading struct {
	ID     string       `yaml:"id"`
	Before schema.Level `yaml:"before"`
	Why    string       `yaml:"why"`
}

// GradingDocument says by what the requirements are graded, seen from the folder
// of package schema.
const GradingDocument = "../docs/grading.md"

const gradingHead = `# Grading

<!-- Rendered from schema/%s/regraded.yaml and requirements.yaml by: go generate ./schema -->

Each requirement has a basis: what in the specification, revision %[1]s, it rests on. The basis bounds its level, and
the level decides what a broken requirement is: a MUST fails, a SHOULD warns. A MAY cannot be broken: that the other
side copes with what is permitted is an entry of its own, which binds that side.

| Basis | The requirement rests on | Level at most |
| --- | --- | --- |
| keyword | a sentence with a keyword of RFC 2119 in capitals | that of the keyword |
| schema | the type definitions, schema.ts | MUST |
| standard | a standard that the text makes binding, named with its section | that of the standard |
| statement | a sentence that states a fact, or has the keyword in small letters | ` +
	`SHOULD; MUST where a [position](positions.md) says why |
| example | an example or a diagram alone; what differs is noted | SHOULD |
| implied | what follows from the text without being said | SHOULD |

` + "`mcpconform explain ID` shows basis, position and sentence of a requirement.\n"

var (
	bases = []schema.Basis{schema.ByKeyword, schema.BySchema, schema.ByStandard, schema.ByStatement, schema.ByExample,
		schema.ByImplication}
	levels = []schema.Level{schema.Must, schema.MustNot, schema.Should, schema.ShouldNot, schema.May}
)

// DescribeGrading renders how many requirements have which basis and level, and
// which levels the basis changed, as Markdown. It fails if a regrading names an
// unknown requirement or one that still has its level.
func DescribeGrading(regradings []Regrading, requirements []schema.Requirement) ([]byte, error) {
	byID := map[string]schema.Requirement{}
	now := map[schema.Basis]map[schema.Level]int{}
	before := map[schema.Basis]map[schema.Level]int{}
	for _, b := range bases {
		now[b], before[b] = map[schema.Level]int{}, map[schema.Level]int{}
	}
	for _, r := range requirements {
		byID[r.ID] = r
		now[r.Basis][r.Level]++
		before[r.Basis][r.Level]++
	}
	var b, rows strings.Builder
	for _, g := range regradings {
		r, ok := byID[g.ID]
		switch {
		case !ok:
			return nil, fmt.Errorf("regrading: there is no requirement %s", g.ID)
		case r.Level == g.Before:
			return nil, fmt.Errorf("regrading: %s is still %s", g.ID, g.Before)
		}
		before[r.Basis][r.Level]--
		before[r.Basis][g.Before]++
		fmt.Fprintf(&rows, "| [%s](%s) | %s | %s | %s | %s |\n", g.ID, r.URL(schema.DefaultVersion),
			g.Before, r.Level, r.Basis,
			prose(g.Why))
	}
	fmt.Fprintf(&b, gradingHead, schema.DefaultVersion)
	describeCounts(&b, now, before)
	fmt.Fprintf(&b,
		"\n## Changed levels\n\n%d requirements have another level than before they had a basis.\n\n| Requirement "+
			"| Before | Now | Basis | Why |\n| --- | --- | --- | --- | --- |\n%s",
		len(regradings), rows.String())
	return []byte(b.String()), nil
}

// describeCounts writes the table of requirements by basis and level, now and before they had a basis.
func describeCounts(b *strings.Builder, now, before map[schema.Basis]map[schema.Level]int) {
	fmt.Fprintf(b,
		"\n## Counts\n\nRequirements by basis and level. The number in brackets is the count without the changes "+
			"of level that follow from the basis.\n\n| Basis |")
	for _, l := range levels {
		fmt.Fprintf(b, " %s |", l)
	}
	fmt.Fprintf(b, " all |\n| --- |%s\n", strings.Repeat(" --: |", len(levels)+1))
	row := func(name string, of []schema.Basis) {
		total := 0
		fmt.Fprintf(b, "| %s |", name)
		for _, l := range levels {
			n, was := 0, 0
			for _, basis := range of {
				n += now[basis][l]
				was += before[basis][l]
			}
			total += n
			if n == was {
				fmt.Fprintf(b, " %d |", n)
			} else {
				fmt.Fprintf(b, " %d (%d) |", n, was)
			}
		}
		fmt.Fprintf(b, " %d |\n", total)
	}
	for _, basis := range bases {
		row(string(basis), []schema.Basis{basis})
	}
	row("all", bases)
}
