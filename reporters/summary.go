package reporters

import (
	"fmt"
	"io"
	"strings"

	"github.com/mcpconform/mcpconform/suites/result"
)

// Member is one of several targets that were tested together.
type Member struct {
	Name string
	Run  *result.Run // nil if it was not tested
	Err  error       // why not
}

// Reason says in one sentence why the member is not conformant, or "".
func (m Member) Reason() string {
	if m.Run == nil {
		if m.Err == nil {
			return "not tested"
		}
		return "not tested: " + line(m.Err.Error(), limitMessage)
	}
	switch m.Run.Verdict {
	case result.Conformant:
		return ""
	case result.Incomplete:
		return Incomplete(m.Run)
	}
	v, err := newView(m.Run)
	if err != nil {
		return err.Error()
	}
	broken := v.having(outFail)
	if m.Run.Strict {
		broken = append(broken, v.having(outWarn)...)
	}
	ids := idsOf(broken[:min(len(broken), briefIDs)])
	text := strings.Join(ids, ", ")
	if more := len(broken) - len(ids); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if text == "" {
		return v.basis()
	}
	return text
}

// Summary writes a table of targets that were tested together: the verdict on each,
// the counts, and what is wrong.
func Summary(w io.Writer, members []Member, opts ConsoleOptions) error {
	c := newConsole(w, nil, opts)
	const longest = 30
	name := func(m Member) string { return line(m.Name, longest) }
	width := 0
	for _, m := range members {
		width = max(width, columns(name(m)))
	}
	for _, m := range members {
		word, st, counts := "not tested", boldAmber, ""
		if m.Run != nil {
			v, err := newView(m.Run)
			if err != nil {
				return err
			}
			word, st = verdictName(m.Run.Verdict), verdictStyle(m.Run.Verdict)
			var parts []string
			for _, o := range []outcome{outFail, outError, outWarn, outDisputed, outExpected, outInconclusive,
				outNotUsed, outPass} {
				if n := v.counts[o]; n > 0 || o == outPass {
					parts = append(parts, o.counted(n))
				}
			}
			counts = strings.Join(parts, " · ") + fmt.Sprintf("  (%.1f s)", seconds(m.Run.Seconds))
		}
		padded := name(m) + strings.Repeat(" ", width-columns(name(m)))
		lead := c.paint(padded, bold) + "  " + c.paint(fmt.Sprintf("%-14s", strings.ToUpper(word)), st) + "  "
		indent := width + 18
		if counts == "" {
			counts, m.Run = strings.TrimPrefix(m.Reason(), "not tested: "), nil
		}
		if indent+20 > c.Width {
			c.println(strings.TrimRight(lead, " "))
			lead, indent = "  ", 2
		}
		c.prose(lead, indent, counts, "")
		if m.Run != nil {
			if why := m.Reason(); why != "" {
				c.prose(strings.Repeat(" ", indent), indent, why, dim)
			}
		}
	}
	return c.w.Flush()
}
