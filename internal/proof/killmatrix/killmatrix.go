// Package killmatrix runs the suites against peers with known faults, to prove that checks and rules catch them. It
// keeps the tables of the faults and of the checks that catch them.
package killmatrix

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/result"
)

var (
	update = flag.Bool("update", false, "write the kill and calm matrices")
	seed   = flag.Uint64("seed", 0, "choose the members of families with this seed")
	mode   = flag.String("budget", result.Default.String(),
		"run as --quick or --thorough does, and tell which faults the run misses: quick or thorough")
	only = flag.String("fault", "",
		"try only the faults whose id begins with this, or one of these set apart by commas; -update then leaves "+
			"the others unchanged")
)

// Update reports whether the tables are to be written.
func Update() bool { return *update }

// Fault is a row of a matrix.
type Fault struct {
	ID          string
	Requirement schema.ID // the one that it breaks
	Summary     string
	Form        string // what it takes for the fault to show; "" is the plain stimulus
	Scenario    string // the one that shows it, in a matrix with Scenarios
	Collateral  []schema.ID
	WarnOnly    bool
	// Run tries the fault, in virtual time unless it needs a Process.
	Run     func(ctx context.Context) (*result.Run, error)
	Process bool
	// Selected tries the fault, in virtual time, where nothing is selected but the
	// requirement that it breaks. Nil if that is not tried.
	Selected func(ctx context.Context) (*result.Run, error)
}

func (f Fault) requirement() schema.Requirement {
	r, _ := schema.Default().Lookup(f.Requirement)
	return r
}

// want returns the verdict by which the fault is caught. A difference from an example is only a note.
func (f Fault) want() result.Verdict {
	q := f.requirement()
	switch must := q.Level == schema.Must || q.Level == schema.MustNot; {
	case q.Illustrative():
		return result.Pass
	case must && !f.WarnOnly:
		return result.Fail
	}
	return result.Warn
}

// noted reports whether a run noted that the target does other than an example.
func noted(q result.Requirement) bool {
	return q.Basis == string(schema.ByExample) && q.Verdict == result.Pass && len(q.Notes) > 0
}

// caught reports whether a run shows the fault in the requirement that it is about.
func (f Fault) caught(q result.Requirement) bool {
	return q.Verdict == f.want() && (q.Verdict != result.Pass || noted(q))
}

// Seed returns the seed of the runs of a kill matrix.
func Seed() uint64 { return *seed }

// Budget returns the budget of the runs of a kill matrix.
func Budget() result.Budget {
	for _, b := range []result.Budget{result.Quick, result.Thorough} {
		if b.String() == *mode {
			return b
		}
	}
	return result.Default
}

// Matrix is a table of faults.
type Matrix struct {
	File      string // path of the file that holds it
	Head      string // beginning of the file
	Scenarios bool   // has a column for them
	Faults    []Fault
	// OneOf is of how many faults one is tried in a whole run, unless each is. Zero tries all. A run that selects the
	// requirement of a fault costs little: one of six faults is tried so, or each. The whole runs remain a sample.
	OneOf int
}

// kill is what the runs said about a fault.
type kill struct {
	by []string // checks, scenarios and rules that found it; in the file, those that are bound to
	// missed says why the fault was not caught; "" if it was.
	missed string
	// problems say why the run is not as it should be otherwise.
	problems []string
}

// Test tries the faults: each must be caught, also by what the file says catches it, and no
// requirement may be found broken that the fault does not break. Then the file must hold the
// matrix; with -update it is written.
func (m *Matrix) Test(t *testing.T) {
	var chosen []int
	for i, f := range m.Faults {
		if brief.Begins(f.ID, *only) {
			chosen = append(chosen, i)
		}
	}
	if len(chosen) == 0 {
		t.Fatalf("no fault begins with %q", *only)
	}
	selected := slices.DeleteFunc(slices.Clone(chosen), func(i int) bool { return m.Faults[i].Selected == nil })
	if *only == "" && m.OneOf > 0 && !*update {
		if len(selected) > 0 {
			chosen, selected = brief.Sample(t, chosen, m.OneOf), brief.Part(t, selected, 6)
		} else {
			chosen = brief.Part(t, chosen, m.OneOf)
		}
	}
	written, err := os.ReadFile(m.File)
	if err != nil && !*update {
		t.Fatal(err)
	}
	kills := make([]*kill, len(m.Faults)) // nil for those that are not tried
	var workers sync.WaitGroup
	for _, i := range chosen {
		kills[i] = new(kill)
		if m.Faults[i].Process {
			// It mostly waits, so that it runs at the same time as the others.
			workers.Go(func() { t.Run(m.Faults[i].ID, func(t *testing.T) { m.Faults[i].try(t, kills[i]) }) })
		}
	}
	each(chosen, func(i int) {
		if f := m.Faults[i]; !f.Process {
			t.Run(f.ID, func(t *testing.T) {
				virtual.Test(t, func(t *testing.T) { f.try(t, kills[i]) })
			})
		}
	})
	if Budget() != result.Default {
		selected = nil
	}
	each(selected, func(i int) {
		f := m.Faults[i]
		t.Run(f.ID+" selected", func(t *testing.T) { virtual.Test(t, f.trySelected) })
	})
	workers.Wait()
	if Budget() != result.Default {
		m.detection(t, kills)
		return
	}
	if t.Failed() || *only != "" && !*update {
		return
	}
	m.compare(t, string(written), kills)
}

// each does something with each item, on all processors.
func each[E any](items []E, do func(E)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(items); n = int(next.Add(1)) - 1 {
				do(items[n])
			}
		})
	}
	workers.Wait()
}

// try runs a fault and compares the run with what the fault announces.
func (f Fault) try(t *testing.T, k *kill) {
	run, err := f.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	*k = judged(f, run)
	for _, p := range k.problems {
		t.Error(p)
	}
	if k.missed != "" && Budget() == result.Default {
		t.Error(k.missed)
	}
}

// trySelected wants the fault caught where its requirement alone is selected.
func (f Fault) trySelected(t *testing.T) {
	run, err := f.Selected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(run.Requirements, func(q result.Requirement) bool { return q.ID == f.Requirement })
	if i < 0 {
		t.Fatalf("%s is not in the results of a run that selects it", f.Requirement)
	}
	if q := run.Requirements[i]; !f.caught(q) {
		t.Errorf("where it alone is selected, %s is %s, not %s: %s\nname it under Shows in a check "+
			"that shows the fault",
			q.ID, q.Verdict, f.want(), Why(q))
	}
}

// detection tells how many of the faults were caught that were tried, by form, and which were not.
func (m *Matrix) detection(t *testing.T, kills []*kill) {
	for _, f := range forms {
		tried := 0
		var missed []string
		for i, k := range kills {
			if k == nil || m.Faults[i].Form != f.form {
				continue
			}
			if tried++; k.missed != "" {
				missed = append(missed, m.Faults[i].ID)
			}
		}
		t.Logf("%s: a %s run catches %d of %d; it misses %s", f.name, Budget(), tried-len(missed), tried,
			strings.Join(missed, ", "))
	}
}

// compare compares the matrix with the file, or writes the file. For faults that
// were not tried, the file says what catches them.
func (m *Matrix) compare(t *testing.T, written string, kills []*kill) {
	before := caughtBy(written)
	for i, f := range m.Faults {
		by, ok := before[f.ID]
		switch {
		case kills[i] == nil && !ok:
			t.Fatalf("%s does not have the fault %s, which was not tried: run this test with -fault %[2]s -update",
				m.File, f.ID)
		case kills[i] == nil:
			kills[i] = &kill{by: by}
		case *update || !ok:
			kills[i].by = bound(kills[i].by)
		default:
			if missing := without(by, kills[i].by); len(missing) > 0 {
				t.Errorf("%s says that %s is caught by %s, and it was by %s; run this test with -fault %[2]s -update",
					m.File, f.ID, strings.Join(missing, ", "), strings.Join(kills[i].by, ", "))
			}
			kills[i].by = by
		}
	}
	text := m.text(kills)
	if *update {
		if err := os.WriteFile(m.File, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(written, string(text)); diff != "" {
		t.Errorf("%s is out of date; run this test with -update (-file +now):\n%s", m.File, diff)
	}
}

// bound leaves out what catches a fault by the way, if something else does: which of the
// sequences meets a fault, and at what moment, is a matter of chance.
func bound(by []string) []string {
	steady := slices.DeleteFunc(slices.Clone(by), func(name string) bool {
		return strings.TrimPrefix(name, "scenario: ") == "sequences/session"
	})
	if len(steady) == 0 {
		return by
	}
	return steady
}

// without returns what of all is not among some.
func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(some, name) })
}

// judged compares a run with what the fault announces.
func judged(f Fault, run *result.Run) kill {
	var k kill
	if !slices.ContainsFunc(run.Requirements, func(q result.Requirement) bool { return q.ID == f.Requirement }) {
		k.problems = append(k.problems, f.Requirement+
			" is not a requirement on the target; if it is new, run go generate ./schema")
	}
	for _, q := range run.Requirements {
		found := q.Verdict == result.Fail || q.Verdict == result.Warn || q.Verdict == result.Error
		switch {
		case q.ID == f.Requirement:
			if !f.caught(q) {
				k.missed = fmt.Sprintf("%s is %s, not %s: %s", q.ID, q.Verdict, f.want(), Why(q))
			}
			if noted(q) {
				k.by = append(k.by, "a note")
			}
			for _, finding := range q.Findings {
				if !slices.Contains(k.by, finding.Check) {
					k.by = append(k.by, finding.Check)
				}
			}
		case found && !slices.Contains(f.Collateral, q.ID):
			k.problems = append(k.problems, fmt.Sprintf("%s is %s: %s", q.ID, q.Verdict, Why(q)))
		}
	}
	for _, h := range run.Harness {
		k.problems = append(k.problems, "mcpconform has sent a faulty message: "+h.Message)
	}
	slices.Sort(k.by)
	return k
}

// Why returns the reason of a verdict: its first finding with the evidence, if
// there is one.
func Why(q result.Requirement) string {
	if len(q.Findings) == 0 {
		return q.Reason
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", q.Findings[0].Check, q.Findings[0].Message)
	for _, e := range q.Findings[0].Evidence {
		fmt.Fprintf(&b, "\n        %s %s %.300s", e.Kind, e.From, e.Text)
	}
	return b.String()
}

// text renders the matrix in the order of the catalogue's pages.
func (m *Matrix) text(kills []*kill) []byte {
	columns := []string{"fault", "on the wire", "requirement", "level", "caught by"}
	if m.Scenarios {
		columns = slices.Insert(columns, 4, "scenario")
	}
	var b bytes.Buffer
	b.WriteString(m.Head)
	m.countForms(&b)
	page := ""
	for _, i := range m.byPage() {
		f := m.Faults[i]
		r := f.requirement()
		if r.Page != page {
			page = r.Page
			fmt.Fprintf(&b, "\n## %s\n\n", page)
			Row(&b, columns)
			b.WriteString(strings.Repeat("|---", len(columns)) + "|\n")
		}
		summary := f.Summary
		if f.Form != "" {
			summary += " *(" + f.Form + ")*"
		}
		cells := []string{"`" + f.ID + "`", summary, "`" + f.Requirement + "`", string(r.Level),
			strings.Join(kills[i].by, ", ")}
		if m.Scenarios {
			cells = slices.Insert(cells, 4, f.Scenario)
		}
		Row(&b, cells)
	}
	return b.Bytes()
}

// forms are those in which faults show, and what each takes.
var forms = []struct{ form, name, takes string }{
	{"", "plain", "the plain stimulus"},
	{"value", "value", "another value than the plain one"},
	{"session", "session", "a second session"},
	{"concurrent", "concurrent", "several requests at the same time"},
	{"sequence", "sequence", "one order, or one moment"},
}

// countForms writes how many faults there are of each form.
func (m *Matrix) countForms(b *bytes.Buffer) {
	count := make(map[string]int)
	for _, f := range m.Faults {
		count[f.Form]++
	}
	fmt.Fprintf(b, "\nThe matrix has %d faults, by what it takes for one to show:\n\n", len(m.Faults))
	Row(b, []string{"form", "what it takes", "faults"})
	b.WriteString("|---|---|---:|\n")
	for _, f := range forms {
		Row(b, []string{f.name, f.takes, strconv.Itoa(count[f.form])})
	}
}

// Row writes a row of a table.
func Row(b *bytes.Buffer, cells []string) {
	for _, c := range cells {
		b.WriteString("| " + strings.ReplaceAll(c, "|", `\|`) + " ")
	}
	b.WriteString("|\n")
}

// caughtBy reads from a matrix what catches each fault.
func caughtBy(text string) map[string][]string {
	by := make(map[string][]string)
	for line := range strings.Lines(text) {
		line, found := strings.CutPrefix(strings.TrimSuffix(line, " |\n"), "| `")
		if id, _, ok := strings.Cut(line, "`"); found && ok {
			last := line[strings.LastIndex(line, " | ")+len(" | "):]
			by[id] = strings.Split(strings.ReplaceAll(last, `\|`, "|"), ", ")
		}
	}
	return by
}

// byPage returns the positions of the faults as the catalogue of requirements
// has the pages.
func (m *Matrix) byPage() []int {
	first := make(map[string]int)
	for i, r := range slices.Backward(schema.Default().Catalogue()) {
		first[r.Page] = i
	}
	order := make([]int, len(m.Faults))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return first[m.Faults[a].requirement().Page] - first[m.Faults[b].requirement().Page]
	})
	return order
}
