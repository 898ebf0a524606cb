package reporters

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/suites/result"
)

// matrix holds several runs side by side: a row for each requirement that some
// run could observe, in the order of its first occurrence.
type matrix struct {
	views []*view
	rows  []matrixRow
}

type matrixRow struct {
	any   *result.Requirement // from the first run that has it
	of    *view
	cells []*result.Requirement // one a run; nil if the run does not have it
}

func newMatrix(runs []*result.Run) (*matrix, error) {
	if len(runs) == 0 {
		return nil, errNoRun
	}
	m := new(matrix)
	index := make(map[string]int)
	for i, run := range runs {
		v, err := newView(run)
		if err != nil {
			return nil, err
		}
		m.views = append(m.views, v)
		for _, p := range v.pages {
			for _, q := range p.requirements {
				at, ok := index[q.ID]
				if !ok {
					at = len(m.rows)
					index[q.ID] = at
					m.rows = append(m.rows, matrixRow{any: q, of: v, cells: make([]*result.Requirement, len(runs))})
				}
				m.rows[at].cells[i] = q
			}
		}
	}
	return m, nil
}

// pages groups the rows by page, in the order of first occurrence.
func (m *matrix) pages() (names []string, rows map[string][]matrixRow) {
	rows = make(map[string][]matrixRow)
	for _, row := range m.rows {
		if rows[row.any.Page] == nil {
			names = append(names, row.any.Page)
		}
		rows[row.any.Page] = append(rows[row.any.Page], row)
	}
	return names, rows
}

// broken tells whether one of the runs is bad in the row.
func (m *matrix) broken(row matrixRow) bool {
	for i, q := range row.cells {
		if q != nil && slices.Contains(broken, m.views[i].outcome(q)) {
			return true
		}
	}
	return false
}

// remarkable tells whether a reader wants to see the row: the runs differ, or
// one of them is bad.
func (m *matrix) remarkable(row matrixRow) bool {
	var seen outcome
	for i, q := range row.cells {
		if q == nil {
			continue
		}
		o := m.views[i].outcome(q)
		if seen != "" && o != seen {
			return true
		}
		seen = o
	}
	return m.broken(row)
}

// runName tells the i-th run from the others.
func (m *matrix) runName(i int) string {
	v := m.views[i]
	return fmt.Sprintf("%s (%s, %s)", v.targetName(), transportName(v.Transport), line(v.Revision, limitName))
}

// MatrixMarkdown writes several runs side by side in Markdown: what was run,
// then for each page of the specification a table of requirements by run.
func MatrixMarkdown(w io.Writer, runs []*result.Run) error {
	m, err := newMatrix(runs)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "# MCP conformance: %d %s\n\n", len(runs), plural(len(runs), "run", "runs"))
	fmt.Fprintf(b, "| # | Target | Verdict | Role | Date |")
	for _, o := range outcomes {
		fmt.Fprintf(b, " %s %s |", told[o].mark, told[o].label)
	}
	fmt.Fprintf(b, "\n| --: | --- | --- | --- | --- |%s\n", strings.Repeat(" --: |", len(outcomes)))
	for i, v := range m.views {
		fmt.Fprintf(b, "| %d | %s | **%s** | %s | %s |", i+1, mdCell(m.runName(i)), mdText(verdictName(v.Run.Verdict)),
			mdCell(line(v.Role, limitName)), timestamp(v.Started, "2006-01-02"))
		for _, o := range outcomes {
			fmt.Fprintf(b, " %d |", v.counts[o])
		}
		fmt.Fprintln(b)
	}
	fmt.Fprintln(b)
	names, rows := m.pages()
	for _, name := range names {
		fmt.Fprintf(b, "## %s\n\n| Requirement | Level | Basis |", mdCell(line(name, limitName)))
		for i := range m.views {
			fmt.Fprintf(b, " %d |", i+1)
		}
		fmt.Fprintf(b, "\n| --- | --- | --- |%s\n", strings.Repeat(" --- |", len(m.views)))
		for _, row := range rows[name] {
			fmt.Fprintf(b, "| %s | %s | %s |", row.of.mdLink(row.any), mdCell(line(row.any.Level, limitName)),
				mdCell(basis(row.any)))
			for i, q := range row.cells {
				if q == nil {
					fmt.Fprint(b, " |")
					continue
				}
				o := m.views[i].outcome(q)
				fmt.Fprintf(b, " %s %s |", told[o].mark, told[o].label)
			}
			fmt.Fprintln(b)
		}
		fmt.Fprintln(b)
	}
	return b.Flush()
}

// MatrixConsole writes several runs side by side for people: the runs with
// their verdicts, then the requirements in which they differ or that one of
// them breaks; with opts.Verbose all.
func MatrixConsole(w io.Writer, runs []*result.Run, opts ConsoleOptions) error {
	m, err := newMatrix(runs)
	if err != nil {
		return err
	}
	c := newConsole(w, m.views[0], opts)
	for i, v := range m.views {
		word, detail := v.verdictWords()
		c.prose(fmt.Sprintf("%3d  ", i+1), 5, m.runName(i), bold)
		c.prose("     "+c.paint(word+":", verdictStyle(v.Run.Verdict))+" ", 5, detail, "")
	}
	shown := 0
	names, rows := m.pages()
	for _, name := range names {
		headed := false
		for _, row := range rows[name] {
			if !c.Verbose && !m.remarkable(row) {
				continue
			}
			if !headed {
				c.println("")
				c.println(c.paint(line(name, limitName), bold))
				headed = true
			}
			shown++
			var cells strings.Builder
			for i, q := range row.cells {
				if q == nil {
					cells.WriteString("   ")
					continue
				}
				o := m.views[i].outcome(q)
				cells.WriteString("  " + c.paint(told[o].mark, told[o].style))
			}
			graded := line(row.any.ID, limitName) + " (" + strings.Join(grade(row.any), ", ") + ")"
			c.prose(cells.String()+"  ", 3*len(runs)+4, graded, "")
		}
	}
	c.println("")
	var legend []string
	for _, o := range outcomes {
		legend = append(legend, o.marked())
	}
	c.prose("", 0, strings.Join(legend, ", "), dim)
	if left := len(m.rows) - shown; left > 0 {
		c.prose("", 0, fmt.Sprintf("%d more have the same outcome in every run, and none of them is broken.", left),
			dim)
	}
	return c.w.Flush()
}
