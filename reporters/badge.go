package reporters

import (
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/mcpconform/mcpconform/suites/result"
)

// BadgeText is what a badge says: of what, on the left, and the verdict, on the right.
type BadgeText struct {
	Label, Message string
	Verdict        result.Overall // gives the colour
}

// NewBadge returns the badge of a run. It names omissions and waivers beside the verdict, since a badge is read
// without the report.
func NewBadge(run *result.Run) (BadgeText, error) {
	v, err := newView(run)
	if err != nil {
		return BadgeText{}, err
	}
	b := BadgeText{Label: "MCP " + line(run.Revision, limitName), Message: verdictName(run.Verdict),
		Verdict: run.Verdict}
	if n := v.counts[outExpected]; n > 0 {
		b.Message += fmt.Sprintf(", %d expected to fail", n)
	}
	if run.Partial {
		b.Message += ", in part"
	}
	if run.Quick {
		b.Message += ", quick"
	}
	if run.Strict {
		b.Message += ", strict"
	}
	return b, nil
}

// color is that of the right side. White text on each has a contrast of 4.5 to 1 at least.
func (b BadgeText) color() string {
	switch b.Verdict {
	case result.Conformant:
		return "#2d7a12"
	case result.NotConformant:
		return "#b3261e"
	}
	return "#8a5a00"
}

// BadgeJSON writes what shields.io reads from an endpoint (https://shields.io/badges/endpoint-badge).
func BadgeJSON(w io.Writer, b BadgeText) error {
	return WriteJSON(w, struct {
		SchemaVersion int    `json:"schemaVersion"`
		Label         string `json:"label"`
		Message       string `json:"message"`
		Color         string `json:"color"`
	}{1, b.Label, b.Message, strings.TrimPrefix(b.color(), "#")}, "badge")
}

// Sizes of a badge in pixels.
const (
	badgeHeight  = 20
	badgeFont    = 11
	badgeMargin  = 6  // beside each text
	badgeMostRun = 80 // characters of one text
)

// BadgeSVG writes the badge as an image of its own: no script, no font and no other file.
func BadgeSVG(w io.Writer, b BadgeText) error {
	label, message := brief(b.Label), brief(b.Message)
	left, right := textWidth(label)+2*badgeMargin, textWidth(message)+2*badgeMargin
	title := html.EscapeString(label + ": " + message)
	var texts strings.Builder
	for _, t := range []struct {
		at, width int
		text      string
	}{{badgeMargin, left - 2*badgeMargin, label}, {left + badgeMargin, right - 2*badgeMargin, message}} {
		fmt.Fprintf(&texts, `    <text x="%d" y="14" textLength="%d">%s</text>`+"\n", t.at, t.width,
			html.EscapeString(t.text))
	}
	_, err := fmt.Fprintf(w,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" role="img" aria-label="%[3]s">
  <title>%[3]s</title>
  <clipPath id="r"><rect width="%[1]d" height="%[2]d" rx="3"/></clipPath>
  <g clip-path="url(#r)">
    <rect width="%[4]d" height="%[2]d" fill="#555"/>
    <rect x="%[4]d" width="%[5]d" height="%[2]d" fill="%[6]s"/>
  </g>
  <g fill="#fff" font-family="Verdana,Geneva,DejaVu Sans,sans-serif" font-size="%[7]d">
%[8]s  </g>
</svg>
`, left+right, badgeHeight, title, left, right, b.color(), badgeFont, texts.String())
	return err
}

// brief bounds the width of a badge.
func brief(s string) string { return first(s, badgeMostRun) }

// textWidth estimates how wide a text is in the font of badges; textLength makes it so.
func textWidth(s string) int {
	tenths := 0
	for _, r := range s {
		switch {
		case strings.ContainsRune("fijlrtI.,:;|!'-() ", r):
			tenths += 43
		case strings.ContainsRune("mwMW", r):
			tenths += 98
		case 'A' <= r && r <= 'Z':
			tenths += 75
		default:
			tenths += 68 * max(cells(r), 1)
		}
	}
	return (tenths + 9) / 10
}
