package source

import (
	"fmt"
	"strings"

	"github.com/mcpconform/mcpconform/schema"
)

// PositionsDocument is the rendering of positions.yaml for people, seen from the
// folder of package schema.
const PositionsDocument = "../docs/positions.md"

const positionsHead = `# Positions

<!-- Rendered from schema/%s/positions.yaml by: go generate ./schema -->

At some places the specification, revision %[1]s, can be read in more than one
way, contradicts itself or leaves open what happens. This is how mcpconform
judges there, and why. If you read a place differently, please open an issue that
names the id.
`

// DescribePositions renders the positions as Markdown. It fails if one of them
// names a requirement that is not among the given ones.
func DescribePositions(positions []schema.Position, requirements []schema.Requirement) ([]byte, error) {
	byID := map[string]schema.Requirement{}
	for _, r := range requirements {
		byID[r.ID] = r
	}
	var b strings.Builder
	fmt.Fprintf(&b, positionsHead, schema.DefaultVersion)
	for _, p := range positions {
		var links []string
		for _, id := range p.Requirements {
			r, ok := byID[id]
			if !ok {
				return nil, fmt.Errorf("position %s: there is no requirement %s", p.ID, id)
			}
			links = append(links, fmt.Sprintf("[`%s`](%s)", id, r.URL(schema.DefaultVersion)))
		}
		fmt.Fprintf(&b, "\n## %s\n\n`%s`\n\n", prose(p.Title), p.ID)
		fmt.Fprintf(&b, "- **Text:** %s\n- **Position:** %s\n- **Reason:** %s\n- **Requirements:** %s\n",
			prose(p.Ambiguity), prose(p.Position), prose(p.Reason), strings.Join(links, ", "))
	}
	return []byte(b.String()), nil
}

// prose keeps characters of plain text from being taken for markup.
func prose(text string) string {
	return strings.NewReplacer("_", `\_`, "*", `\*`, "<", "&lt;").Replace(text)
}
