package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/mcpconform/mcpconform/suites/result"
)

// argued holds the statements of a findings file about requirements: the reason for the finding, the objection of a
// maintainer, and the verdicts that vary with the timing of the target or with the run.
type argued struct {
	Reasons    map[string]string `yaml:"reasons"`
	Objections map[string]string `yaml:"objections"`
	Timing     map[string]string `yaml:"timing"`
	Seldom     map[string]string `yaml:"seldom"`
}

// judged are the kinds of targets that runs judge, and the files of their findings.
var judged = []struct{ kind, file string }{
	{"server", "findings.yaml"}, {"client", "client-findings.yaml"}, {authorizationServer,
		"authorization-findings.yaml"},
}

// argued reads what the file of findings on a kind of targets says.
func (in *installer) argued(kind string) (known argued, err error) {
	var file string
	for _, j := range judged {
		if j.kind == kind {
			file = j.file
		}
	}
	raw, err := os.ReadFile(filepath.Join(in.dir, file))
	if err == nil {
		err = yaml.Unmarshal(raw, &known)
	}
	if err != nil {
		return known, fmt.Errorf("%s: %w", file, err)
	}
	return known, nil
}

// outcome is the latest run on a subject.
type outcome struct {
	subject subject
	run     *result.Run
}

// interop writes what runs found on the targets, from the results that they left in a
// directory.
func interop(in *installer, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("interop", flag.ContinueOnError)
	doc := flags.String("doc", "", "write it into this `file`, between its marks")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("usage: targets interop [-doc FILE] DIR, with the results that `targets stability " +
			"-keep DIR` left there")
	}
	outcomes, err := in.data.outcomes(flags.Arg(0))
	if err != nil {
		return err
	}
	for _, j := range judged {
		known, err := in.argued(j.kind)
		if err != nil {
			return err
		}
		runs := slices.DeleteFunc(slices.Clone(outcomes),
			func(o outcome) bool { return o.subject.target.Kind != j.kind })
		if len(runs) == 0 {
			continue // what is written of them stays
		}
		name := strings.ReplaceAll(j.kind, "-", " ") + "s"
		parts := map[string]string{name: counts(runs), "findings on " + name: findings(runs, known)}
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			if *doc == "" {
				fmt.Fprintf(out, "%s\n\n%s\n", name, parts[name])
			} else if err := replaceBetween(*doc, name, parts[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// outcomes reads the results in a directory, which are named TARGET-TRANSPORT-N.json, and
// returns the latest for each subject that has any.
func (d *Data) outcomes(dir string) ([]outcome, error) {
	subjects, err := d.subjects(nil)
	if err != nil {
		return nil, err
	}
	var all []outcome
	for _, s := range subjects {
		files, err := filepath.Glob(filepath.Join(dir, s.target.Name+"-"+s.transport+"-*.json"))
		if err != nil {
			return nil, err
		}
		var latest *result.Run
		for _, file := range files {
			run, err := readRun(file)
			if err != nil {
				return nil, err
			}
			if latest == nil || run.Started.After(latest.Started) {
				latest = run
			}
		}
		if latest != nil {
			all = append(all, outcome{s, latest})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s holds no results of a target: go run ./.ci/targets stability -n 1 -keep %s", dir,
			dir)
	}
	return all, nil
}

func counts(outcomes []outcome) string {
	var b strings.Builder
	b.WriteString("| target | package | transport | verdict | pass | fail | warn | inconclusive " +
		"| skip |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, o := range outcomes {
		t, n := o.subject.target, o.run.Counts()
		fmt.Fprintf(&b, "| %s | %s %s | %s | %s | %d | %d | %d | %d | %d |\n", t.Name, t.Package, t.Version,
			o.subject.transport, o.run.Verdict,
			n[result.Pass], n[result.Fail], n[result.Warn], n[result.Inconclusive], n[result.Skip])
	}
	return b.String()
}

// findings lists the requirements that runs found broken, in the order of their ids.
func findings(outcomes []outcome, known argued) string {
	type broken struct {
		requirement result.Requirement
		link        string
		on          map[result.Verdict][]subject
	}
	all := make(map[string]*broken)
	for _, o := range outcomes {
		for _, q := range o.run.Requirements {
			if q.Verdict != result.Fail && q.Verdict != result.Warn {
				continue
			}
			if all[q.ID] == nil {
				all[q.ID] = &broken{q, q.URL(o.run.Revision), make(map[result.Verdict][]subject)}
			}
			all[q.ID].on[q.Verdict] = append(all[q.ID].on[q.Verdict], o.subject)
		}
	}
	const nothing = "This finding is not explained yet."
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(all)) {
		q := all[id]
		fmt.Fprintf(&b, "#### [`%s`](%s)\n\n%s, %s.", id, q.link, q.requirement.Level,
			cmp.Or(q.requirement.Standard, q.requirement.Basis))
		for _, v := range []result.Verdict{result.Fail, result.Warn} {
			if subjects := q.on[v]; len(subjects) > 0 {
				fmt.Fprintf(&b, " %s: %s.", strings.ToUpper(string(v[:1]))+string(v[1:]), grouped(subjects))
			}
		}
		fmt.Fprintf(&b, "\n\n- Why: %s\n- Against it, and the answer: %s\n\n", cmp.Or(known.Reasons[id], nothing),
			cmp.Or(known.Objections[id], nothing))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// grouped names subjects, each target once with its transports.
func grouped(subjects []subject) string {
	var names []string
	for i := 0; i < len(subjects); {
		target, over := subjects[i].target, []string(nil)
		for ; i < len(subjects) && subjects[i].target == target; i++ {
			over = append(over, subjects[i].transport)
		}
		names = append(names, target.Name+" ("+strings.Join(over, ", ")+")")
	}
	return strings.Join(names, ", ")
}
