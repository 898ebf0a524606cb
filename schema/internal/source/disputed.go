package source

import (
	"bytes"
	"fmt"

	"github.com/mcpconform/mcpconform/schema"
)

// DisputedDocument is the rendering of disputed.yaml for people, seen from the folder
// of package schema.
const DisputedDocument = "../docs/disputed.md"

const disputedHead = `# Disputed findings

<!-- Rendered from schema/%s/disputed.yaml by: go generate ./schema -->

The maintainers of the specification or of SDKs contest these findings. mcpconform reports them, marks them as disputed
and names the threads, so that readers can judge for themselves. They do not count towards the verdict, unless the run
is strict (` + "`--strict`" + `). Findings of another form on the same requirement count as ever.
`

// DescribeDisputes renders the disputes as Markdown. It fails if one of them names a
// requirement that does not exist.
func DescribeDisputes(disputes []schema.Dispute, requirements []schema.Requirement) ([]byte, error) {
	byID := make(map[string]schema.Requirement, len(requirements))
	for _, r := range requirements {
		byID[r.ID] = r
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, disputedHead, schema.DefaultVersion)
	for _, d := range disputes {
		r, ok := byID[d.Requirement]
		if !ok {
			return nil, fmt.Errorf("dispute %s: there is no requirement %s", d.ID, d.Requirement)
		}
		fmt.Fprintf(&b, "\n## %s\n\n", prose(d.Title))
		fmt.Fprintf(&b, "Requirement: [`%s`](%s) (%s). %s\n\n", r.ID, r.URL(schema.DefaultVersion), r.Level,
			prose(r.Summary))
		for _, t := range d.Threads {
			fmt.Fprintf(&b, "- <%s>: %s\n", t.URL, prose(t.Says))
		}
		fmt.Fprintf(&b, "\nOur position: %s\n", prose(d.Position))
	}
	return b.Bytes(), nil
}
