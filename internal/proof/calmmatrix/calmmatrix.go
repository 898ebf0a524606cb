// Package calmmatrix runs the suites against peers that are odd and legal, to prove
// that nobody is accused falsely, and keeps the tables of these oddities.
package calmmatrix

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/killmatrix"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/internal/yamlfile"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/result"
)

var (
	only = flag.String("oddity", "",
		"try only the oddities whose id begins with this, or with one of several with commas between them, each "+
			"alone over each of its transports")
)

// Oddity is a row of a matrix.
type Oddity struct {
	ID      string
	Summary string // how the wire differs
	Why     string // why the specification allows that
	Source  schema.Source
	// Transports over which it is tried.
	Transports []string
	// Untried lists requirements, or patterns of their ids as in [path.Match], that
	// cannot be tried on a peer with the oddity.
	Untried []string
	// Changes names what the oddity changes as a whole: two that change the same do not
	// share a run. It is empty for those that only add something.
	Changes string
}

// Matrix is a table of oddities.
type Matrix struct {
	File     string // path of the file that holds it
	Head     string // beginning of the file
	Oddities []Oddity
	// Run runs the suites with a seed over a transport against a peer with the oddities at
	// the given positions, in virtual time.
	Run func(ctx context.Context, seed uint64, over string, oddities ...int) (*result.Run, error)
	// Reference returns a run over a transport against the peer that the others are compared with. Nil
	// stands for Run without oddities.
	Reference func(t *testing.T, over string) *result.Run
	// OneOf is of how many runs one is made, unless each oddity is tried: then over one of its transports, or with
	// -oddity and -whole over each.
	OneOf int
	// Limit is how long a run may take. Zero sets none.
	Limit time.Duration
	// Alone is the same for a run with one oddity that Slow does not have. Waits for what never comes run beside each
	// other, so a legal peer costs few. Zero stands for Limit.
	Alone time.Duration
	// Slow are the oddities that may take longer, up to Limit, by their ids, and why.
	Slow map[string]string
	// Partial says that Run makes only a part of a run, unless [brief.Whole] says otherwise.
	// Each oddity then has runs of its own over all of its transports, and what was not
	// tried in them is not compared.
	Partial bool
}

// limit returns how long a run may take.
func (m *Matrix) limit(a attempt) time.Duration {
	if len(a.oddities) > 1 || m.Alone == 0 || m.Slow[m.Oddities[a.oddities[0]].ID] != "" {
		return m.Limit
	}
	return m.Alone
}

// partial reports whether the runs are not comparable with that of the reference peer.
func (m *Matrix) partial() bool { return m.Partial && !brief.Whole() }

// attempt is one run of the suites.
type attempt struct {
	over     string
	seed     uint64
	oddities []int
}

// Test runs the suites against a peer with each oddity and wants what the reference
// peer gets: nothing is found, and what passes there passes. The file must hold the
// matrix; with -update it is written.
func (m *Matrix) Test(t *testing.T) {
	m.sources(t)
	m.compare(t)
	attempts := m.attempts()
	if len(attempts) == 0 {
		t.Fatalf("no oddity begins with %q", *only)
	}
	if !separate() && brief.Each() {
		attempts = once(attempts, brief.Sample(t, m.transports(), len(m.transports()))[0])
	}
	attempts = seeded(attempts)
	if !separate() {
		attempts = brief.Part(t, attempts, m.OneOf)
	}
	reference := make(map[string]map[string]result.Verdict)
	for _, a := range attempts {
		over := a.over
		if reference[over] != nil || m.partial() {
			continue
		}
		if m.Reference != nil {
			reference[over] = verdicts(m.Reference(t, over))
			continue
		}
		virtual.Test(t, func(t *testing.T) {
			run, err := m.Run(t.Context(), 0, over)
			if err != nil {
				t.Fatal(err)
			}
			reference[over] = verdicts(run)
		})
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(attempts); n = int(next.Add(1)) - 1 {
				a := attempts[n]
				t.Run(m.name(a), func(t *testing.T) {
					m.try(t, a, reference[a.over])
				})
			}
		})
	}
	workers.Wait()
}

// sources wants each oddity to name a heading of the specification, below which the sentence
// stands that makes it legal.
func (m *Matrix) sources(t *testing.T) {
	revision := filepath.Join(filepath.Dir(m.File), "..", "schema", schema.DefaultVersion)
	file, err := yamlfile.Read(filepath.Join(revision, "headings.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var pages []struct {
		Page    string
		Anchors []string
	}
	if err := file.Decode(&pages); err != nil {
		t.Fatal(err)
	}
	anchors := make(map[string][]string)
	for _, p := range pages {
		anchors[p.Page] = p.Anchors
	}
	for _, o := range m.Oddities {
		if !slices.Contains(anchors[o.Source.Page], o.Source.Anchor) {
			t.Errorf("%s: page %s has no heading with the anchor %q", o.ID, o.Source.Page, o.Source.Anchor)
		}
	}
}

func verdicts(run *result.Run) map[string]result.Verdict {
	all := make(map[string]result.Verdict)
	for _, q := range run.Requirements {
		all[q.ID] = q.Verdict
	}
	return all
}

func (m *Matrix) transports() []string {
	var all []string
	for _, o := range m.Oddities {
		for _, over := range o.Transports {
			if !slices.Contains(all, over) {
				all = append(all, over)
			}
		}
	}
	return all
}

// separate reports whether each oddity is tried alone over each of its transports.
func separate() bool { return brief.Whole() || *only != "" }

// alone reports whether an oddity shares no run with others. An oddity that leaves much untried would hide the
// effects of the others.
func (m *Matrix) alone(o Oddity) bool {
	return separate() || m.Partial ||
		slices.ContainsFunc(o.Untried, func(pattern string) bool { return strings.HasSuffix(pattern, "*") })
}

// attempts returns the runs to make. An oddity with a run of its own is tried over one transport, unless all are
// tried over all transports.
func (m *Matrix) attempts() []attempt {
	var all []attempt
	for _, over := range m.transports() {
		var shared []attempt
		for i, o := range m.Oddities {
			if !slices.Contains(o.Transports, over) || !brief.Begins(o.ID, *only) {
				continue
			}
			if m.alone(o) {
				if separate() || m.Partial || over == o.Transports[0] {
					all = append(all, attempt{over: over, oddities: []int{i}})
				}
				continue
			}
			fits := slices.IndexFunc(shared, func(a attempt) bool { return m.fits(a, o) })
			if fits < 0 {
				fits = len(shared)
				shared = append(shared, attempt{over: over})
			}
			shared[fits].oddities = append(shared[fits].oddities, i)
		}
		all = append(all, shared...)
	}
	return all
}

// once leaves out the runs of which others have each oddity: those over the given transport come first.
func once(attempts []attempt, first string) []attempt {
	rank := func(a attempt) int {
		if a.over == first {
			return 0
		}
		return 1
	}
	chosen := slices.Clone(attempts)
	slices.SortStableFunc(chosen, func(a, b attempt) int { return rank(a) - rank(b) })
	met := make(map[int]bool)
	return slices.DeleteFunc(chosen, func(a attempt) bool {
		before := len(met)
		for _, i := range a.oddities {
			met[i] = true
		}
		return len(met) == before
	})
}

// seeded gives each run one of a few seeds, or makes it with each of them.
func seeded(runs []attempt) []attempt {
	const few = 3
	var all []attempt
	for i, a := range runs {
		for seed := range uint64(few) {
			if a.seed = seed; brief.Whole() || seed == uint64(i%few) {
				all = append(all, a)
			}
		}
	}
	return all
}

// maxShared bounds how many oddities share a run.
const maxShared = 16

// fits reports whether a run has room for one more oddity. An oddity of one transport shares a run with its own topic
// only.
func (m *Matrix) fits(a attempt, o Oddity) bool {
	if first := m.Oddities[a.oddities[0]]; m.topic(first) != m.topic(o) {
		return false
	}
	return len(a.oddities) < maxShared && !slices.ContainsFunc(a.oddities, func(i int) bool {
		return o.Changes != "" && m.Oddities[i].Changes == o.Changes
	})
}

// topic returns the beginning of the id of an oddity that is particular to a transport.
func (m *Matrix) topic(o Oddity) string {
	if len(o.Transports) == len(m.transports()) {
		return ""
	}
	topic, _, _ := strings.Cut(o.ID, ".")
	return topic
}

func (m *Matrix) name(a attempt) string {
	name := m.Oddities[a.oddities[0]].ID
	if others := len(a.oddities) - 1; others > 0 {
		name += fmt.Sprintf("-and-%d-others", others)
	}
	return fmt.Sprintf("%s/%s/seed-%d", name, a.over, a.seed)
}

// try makes one run. If something is wrong with one that several oddities share, each
// is tried alone, to tell which it is.
func (m *Matrix) try(t *testing.T, a attempt, reference map[string]result.Verdict) {
	problems := m.problems(t, a, reference)
	if len(a.oddities) > 1 && len(problems) > 0 {
		for _, i := range a.oddities {
			for _, p := range m.problems(t, attempt{a.over, a.seed, []int{i}}, reference) {
				t.Errorf("%s: %s", m.Oddities[i].ID, p)
			}
		}
	}
	for _, p := range problems {
		t.Errorf("%s: %s", strings.Join(m.ids(a), " and "), p)
	}
}

func (m *Matrix) ids(a attempt) []string {
	var ids []string
	for _, i := range a.oddities {
		ids = append(ids, m.Oddities[i].ID)
	}
	return ids
}

// problems makes one run and says what differs from the reference.
func (m *Matrix) problems(t *testing.T, a attempt, reference map[string]result.Verdict) (problems []string) {
	virtual.Test(t, func(t *testing.T) {
		run, err := m.Run(t.Context(), a.seed, a.over, a.oddities...)
		if err != nil {
			problems = append(problems, err.Error())
			return
		}
		if took, limit := time.Duration(run.Seconds*float64(time.Second)), m.limit(a); limit > 0 && took > limit {
			problems = append(problems, fmt.Sprintf("the run took %v, and may take %v", took, limit))
		}
		for _, q := range run.Requirements {
			switch q.Verdict {
			case result.Fail, result.Warn, result.Error:
				problems = append(problems, fmt.Sprintf("%s is %s: %s", q.ID, q.Verdict, killmatrix.Why(q)))
			case result.Skip, result.Inconclusive:
				if reference[q.ID] == result.Pass && !m.untried(a, q.ID) {
					problems = append(problems, fmt.Sprintf("%s is %s: %s", q.ID, q.Verdict, q.Reason))
				}
			}
		}
		for _, h := range run.Harness {
			problems = append(problems, fmt.Sprintf("mcpconform has sent a faulty message: %s: %s %v", h.Check,
				h.Message, h.Evidence))
		}
	})
	return problems
}

// untried reports whether a requirement need not be tried on a peer with the oddities.
func (m *Matrix) untried(a attempt, id string) bool {
	return slices.ContainsFunc(a.oddities, func(i int) bool {
		return slices.ContainsFunc(m.Oddities[i].Untried, func(pattern string) bool {
			ok, err := path.Match(pattern, id)
			return ok && err == nil
		})
	})
}

// compare compares the matrix with the file, or writes the file.
func (m *Matrix) compare(t *testing.T) {
	text := m.text()
	if killmatrix.Update() {
		if err := os.WriteFile(m.File, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	written, err := os.ReadFile(m.File)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(written), string(text)); diff != "" {
		t.Errorf("%s is out of date; run this test with -update (-file +now):\n%s", m.File, diff)
	}
}

// text renders the matrix, by page in the order in which the catalogue of requirements
// has the pages.
func (m *Matrix) text() []byte {
	first := make(map[string]int)
	for i, r := range slices.Backward(schema.Default().Catalogue()) {
		first[r.Page] = i
	}
	sorted := slices.Clone(m.Oddities)
	slices.SortStableFunc(sorted, func(a, b Oddity) int {
		return cmp.Compare(first[a.Source.Page], first[b.Source.Page])
	})
	var b bytes.Buffer
	b.WriteString(m.Head)
	page := ""
	for _, o := range sorted {
		if o.Source.Page != page {
			page = o.Source.Page
			fmt.Fprintf(&b,
				"\n## %s\n\n| oddity | on the wire | why it is legal | over | not tried |\n|---|---|---|---|---|\n",
				page)
		}
		over := strings.Join(o.Transports, ", ")
		if len(o.Transports) == len(m.transports()) {
			over = "all"
		}
		untried := ""
		if len(o.Untried) > 0 {
			untried = "`" + strings.Join(o.Untried, "` `") + "`"
		}
		killmatrix.Row(&b, []string{"`" + o.ID + "`", o.Summary,
			fmt.Sprintf("%s ([%s](%s))", o.Why, o.Source.Anchor, o.Source.URL(schema.DefaultVersion)), over, untried})
	}
	return b.Bytes()
}
