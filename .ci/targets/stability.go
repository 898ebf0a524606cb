package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpconform/mcpconform/suites/result"
)

// overall is the name under which the verdict of a whole run is counted.
const overall = "(the run)"

// A tally counts the verdicts that the runs on one target gave to one requirement.
type tally map[result.Verdict]int

// String lists the verdicts, the most frequent one first.
func (t tally) String() string {
	verdicts := slices.SortedFunc(maps.Keys(t), func(a, b result.Verdict) int {
		if t[a] != t[b] {
			return t[b] - t[a]
		}
		return strings.Compare(string(a), string(b))
	})
	words := make([]string, len(verdicts))
	for i, v := range verdicts {
		words[i] = fmt.Sprintf("%s %d", v, t[v])
	}
	return strings.Join(words, ", ")
}

// differs says whether the runs disagree. On a busy machine a run may know less, so
// there inconclusive beside one other verdict is agreement.
func (t tally) differs(busy bool) bool {
	n := len(t)
	if busy && (t[result.Inconclusive] > 0 || t[result.Verdict(result.Incomplete)] > 0) {
		n--
	}
	return n > 1
}

// row is what the runs on one subject gave.
type row struct {
	subject  string
	runs     int
	median   time.Duration
	verdict  result.Overall
	verdicts map[string]tally // by requirement, and overall
	known    argued
	err      error
}

func stability(ctx context.Context, in *installer, repo string, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("stability", flag.ContinueOnError)
	n := flags.Int("n", 20, "how `often` each target is run")
	load := flags.Bool("load", false, "keep the machine busy meanwhile: two spinning threads a processor")
	doc := flags.String("doc", "", "write the table into this `file`, between its marks")
	keep := flags.String("keep", "", "keep the results of each run in this `directory`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *n < 1 {
		return errors.New("-n has to be at least 1")
	}
	subjects, err := in.data.subjects(flags.Args())
	if err != nil {
		return err
	}
	t, err := newTester(ctx, in, repo)
	if err != nil {
		return err
	}
	defer t.close()
	if t.keep = *keep; t.keep != "" {
		if err := os.MkdirAll(t.keep, 0o755); err != nil {
			return fmt.Errorf("keep the results: %w", err)
		}
	}
	state := "idle"
	if *load {
		state = "busy"
		defer busy(2 * runtime.NumCPU())()
	}
	known := make(map[string]argued) // by kind of target
	for _, s := range subjects {
		if known[s.target.Kind], err = in.argued(s.target.Kind); err != nil {
			return err
		}
	}
	var rows []row
	for _, s := range subjects {
		r := t.repeat(ctx, s, *n)
		r.known = known[s.target.Kind]
		rows = append(rows, r)
		fmt.Fprint(out, r.text(*load))
		if ctx.Err() != nil {
			break
		}
	}
	if *doc != "" {
		if err := replaceBetween(*doc, state, table(rows, *load)); err != nil {
			return err
		}
	}
	if err := unstable(rows, *load); err != nil {
		return err
	}
	return ctx.Err()
}

// unstable names the targets whose runs differ without a known reason.
func unstable(rows []row, load bool) error {
	var odd []string
	for _, r := range rows {
		if unexplained, _ := r.differences(load); r.err != nil || len(unexplained) > 0 {
			odd = append(odd, r.subject)
		}
	}
	if len(odd) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d targets are not stable: %s", len(odd), len(rows), strings.Join(odd, ", "))
}

// repeat runs one subject n times. It ends at the first run that gives no results.
func (t *tester) repeat(ctx context.Context, s subject, n int) row {
	r := row{subject: s.String(), verdicts: make(map[string]tally)}
	count := func(id string, v result.Verdict) {
		if r.verdicts[id] == nil {
			r.verdicts[id] = make(tally)
		}
		r.verdicts[id][v]++
	}
	var walls []time.Duration
	for range n {
		run, spent, err := t.run(ctx, s)
		if err != nil {
			r.err = err
			break
		}
		r.runs++
		r.verdict = run.Verdict
		walls = append(walls, spent.wall)
		count(overall, result.Verdict(run.Verdict))
		for _, q := range run.Requirements {
			count(q.ID, q.Verdict)
		}
	}
	r.median = median(walls)
	return r
}

// differences lists the requirements on which the runs disagree. It leaves out the known races of the target.
func (r row) differences(busy bool) (unexplained, races []string) {
	for _, id := range slices.Sorted(maps.Keys(r.verdicts)) {
		t := r.verdicts[id]
		switch line := id + ": " + t.String(); {
		case !t.differs(busy):
		case r.known.Timing[id] != "", r.known.Seldom[id] != "" && !t.differs(true):
			races = append(races, line)
		default:
			unexplained = append(unexplained, line)
		}
	}
	return unexplained, races
}

func (r row) text(busy bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d runs, median %.1f s, %s\n", r.subject, r.runs, r.median.Seconds(), r.verdict)
	unexplained, races := r.differences(busy)
	for _, line := range unexplained {
		fmt.Fprintln(&b, "  "+line)
	}
	for _, line := range races {
		fmt.Fprintln(&b, "  race of the target: "+line)
	}
	if r.err != nil {
		fmt.Fprintln(&b, "  stopped:", r.err)
	}
	return b.String()
}

func table(rows []row, busy bool) string {
	var b strings.Builder
	b.WriteString("| target | runs | median | verdict | verdicts that differ | races of the target " +
		"|\n|---|---|---|---|---|---|\n")
	for _, r := range rows {
		unexplained, races := r.differences(busy)
		if r.err != nil {
			unexplained = append(unexplained, "a run gave no results")
		}
		fmt.Fprintf(&b, "| %s | %d | %.1f s | %s | %s | %s |\n", r.subject, r.runs, r.median.Seconds(), r.verdict,
			strings.Join(unexplained, "; "), strings.Join(races, "; "))
	}
	return b.String()
}

// busy keeps that many threads spinning until the returned function is called.
func busy(threads int) (stop func()) {
	var done atomic.Bool
	var wait sync.WaitGroup
	for range threads {
		wait.Go(func() {
			for !done.Load() {
			}
		})
	}
	return func() { done.Store(true); wait.Wait() }
}

func median[T ~int64](values []T) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// replaceBetween puts text between the marks "<!-- NAME -->" and "<!-- end of NAME -->" of a file.
func replaceBetween(path, name, text string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
	head, rest, ok := strings.Cut(string(raw), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s has no place for the table: the lines %q and %q", path, strings.TrimSpace(begin), end)
	}
	return os.WriteFile(path, []byte(head+begin+"\n"+text+"\n"+end+tail), 0o644)
}
