package main

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/reporters"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/result"
)

// reportFlags say which reports are written.
type reportFlags struct {
	junit, sarif, json, markdown, html, attestation, badge, trace string
	verbose, quiet, github                                        bool
	against                                                       string      // path of earlier results
	base                                                          *result.Run // what is there, once check has read it
	failOnBreaking                                                bool
}

// reportFile is a file that a flag names; "" writes none.
type reportFile struct {
	flag, name, usage string
	path              *string
}

// files are all that can be written.
func (f *reportFlags) files() []reportFile {
	return []reportFile{
		{"junit", "JUnit report", "write a JUnit report to `FILE`", &f.junit},
		{"sarif", "SARIF log", "write a SARIF 2.1.0 log for code scanning to `FILE`", &f.sarif},
		{"json", "Results", "write results.json to `FILE`", &f.json},
		{"markdown", "Checklist", "write the checklist as Markdown to `FILE`", &f.markdown},
		{"html", "HTML report", "write the report as an HTML page to `FILE`", &f.html},
		{"attestation", "Attestation", "write an in-toto statement about the results of --json to `FILE`",
			&f.attestation},
		{"badge", "Badge", "write a badge with the verdict to `FILE`: SVG or, if it ends in .json, for shields.io",
			&f.badge},
		{"trace", "Trace", "write everything that crossed the wire to `FILE` (JSON Lines)", &f.trace},
	}
}

func (f *reportFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	for _, file := range f.files() {
		flags.StringVar(file.path, file.flag, "", file.usage)
	}
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "list every requirement on the console")
	flags.BoolVar(&f.github, "github", onGitHub(),
		"write annotations and a step summary for GitHub Actions; on by itself there")
	registerQuiet(cmd, &f.quiet, "print one line, the verdict, and errors")
}

// registerAgainst declares the flags of the commands that can compare.
func (f *reportFlags) registerAgainst(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.failOnBreaking, "fail-on-breaking", false,
		"with --against: exit with 1 if what the server offers changed so that clients break")
	cmd.Flags().StringVar(&f.against, "against", "",
		"compare with the earlier results.json `FILE`: only failures that are new then count")
}

// checkRun is check before a run, which has to be comparable with the earlier results.
func (f *reportFlags) checkRun(role wire.Party, shard shardFlags) error {
	if err := f.check(); err != nil || f.base == nil {
		return err
	}
	if shard.of > 0 {
		return errors.New("--against cannot be given with --shard; give it to mcpconform report, which makes " +
			"one result of the shards")
	}
	for _, m := range [][3]string{
		{"role", f.base.Role, string(role)}, {"revision", f.base.Revision, schema.DefaultVersion},
	} {
		if m[1] != m[2] {
			return fmt.Errorf("--against: %w", &result.ComparisonError{What: m[0], Base: m[1], Run: m[2]})
		}
	}
	return nil
}

// compare adds to the run what changed since the earlier one.
func (f *reportFlags) compare(run *result.Run) error {
	if f.base == nil {
		return nil
	}
	c, err := result.Compare(f.base, run)
	if err != nil {
		return fmt.Errorf("--against: %w", err)
	}
	c.File, c.FailOnBreaking = f.against, f.failOnBreaking
	run.Against = c
	return nil
}

func (f *reportFlags) progress() *reporters.Progress {
	mode := reporters.ProgressAuto
	if f.quiet {
		mode = reporters.ProgressQuiet
	}
	return reporters.NewProgress(guarded(os.Stderr), reporters.ProgressOptions{
		Mode: mode, Color: reporters.ColorEnabled(os.Stderr, os.Getenv),
	})
}

// check reports the first file that cannot be written, before the run, which may
// take long.
func (f *reportFlags) check() error {
	if f.attestation != "" && f.json == "" {
		return errors.New("--attestation needs --json; it attests results.json")
	}
	if f.failOnBreaking && f.against == "" {
		return errors.New("--fail-on-breaking needs --against, the earlier results")
	}
	if f.against != "" {
		base, err := readResults(f.against)
		switch {
		case err != nil:
			return fmt.Errorf("--against: %w", err)
		case base.Shard != nil:
			return fmt.Errorf("--against: %s is shard %d of %d; mcpconform report makes one result of the shards",
				f.against, base.Shard.Index, base.Shard.Of)
		case f.failOnBreaking && base.Role != string(wire.Server):
			return fmt.Errorf("--fail-on-breaking is about what servers offer; %s is about a %s", f.against, base.Role)
		}
		f.base = base
	}
	named := make(map[string]string)
	for _, file := range f.files() {
		if *file.path == "" {
			continue
		}
		if other := named[*file.path]; other != "" {
			return fmt.Errorf("--%s and --%s name the same file, %s", other, file.flag, *file.path)
		}
		named[*file.path] = file.flag
		if err := checkFile(*file.path); err != nil {
			return fmt.Errorf("--%s: %w", file.flag, err)
		}
	}
	return nil
}

// checkFile reports whether a file can be written, and leaves it as it was.
func checkFile(path string) error {
	if path == "" || path == "-" {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a folder; give the name of a file", path)
	case err == nil && !info.Mode().IsRegular():
		return nil // such as a pipe, which can be opened only once
	case err == nil:
		return openable(path, os.O_WRONLY)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := openable(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL); err != nil {
		return err
	}
	return os.Remove(path)
}

func openable(path string, flag int) error {
	f, err := os.OpenFile(path, flag, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// write writes all reports, one of them on a console, and returns the exit code of the run. If one cannot be
// written, the others still are.
func (f *reportFlags) write(console io.Writer, run *result.Run, trace *wire.Trace) error {
	incomparable := f.compare(run)
	failed := f.writeFiles(run, trace)
	if f.quiet {
		text, err := reporters.VerdictLine(run)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(guarded(f.beside(console)), text); err != nil {
			failed = err
		}
	} else {
		o := f.consoleOptions(console)
		for _, file := range f.files() {
			if path := *file.path; failed == nil && path != "" && path != "-" {
				o.Files = append(o.Files, reporters.File{Kind: file.name, Path: path})
			}
		}
		if err := reporters.Console(guarded(console), run, o); err != nil {
			failed = err
		}
	}
	if err := f.tellGitHub(console, []reporters.Member{{Run: run}}); err != nil {
		failed = err
		fmt.Fprintln(guarded(os.Stderr), "mcpconform: "+err.Error())
	}
	if incomparable != nil {
		return incomparable
	}
	return ended(exit(run, failed))
}

// beside returns where lines for people go, which must not stand in a report on stdout.
func (f *reportFlags) beside(console io.Writer) io.Writer {
	for _, file := range f.files() {
		if *file.path == "-" {
			return os.Stderr
		}
	}
	return console
}

// exit returns the exit code of a run whose reports failed to be written unless that is nil.
func exit(run *result.Run, failed error) int {
	switch {
	case failed != nil:
		return exitIncomplete
	case run.Against != nil:
		return run.Against.Verdict(run).ExitCode()
	}
	return run.Verdict.ExitCode()
}

// writeFiles writes all reports but the one on the console.
func (f *reportFlags) writeFiles(run *result.Run, trace *wire.Trace) (failed error) {
	digest := sha256.New() // of results.json
	for _, r := range []struct {
		path   string
		render func(io.Writer) error
	}{
		{f.trace, func(w io.Writer) error { _, err := trace.WriteTo(w); return err }},
		{f.json, func(w io.Writer) error { return reporters.JSON(io.MultiWriter(w, digest), run) }},
		{f.attestation, func(w io.Writer) error {
			about := reporters.SHA256("results.json", hex.EncodeToString(digest.Sum(nil)))
			return reporters.Attestation(w, run, reporters.Attested{Verdict: run.Verdict,
				Subjects: []reporters.Descriptor{about}})
		}},
		{f.junit, func(w io.Writer) error { return reporters.JUnit(w, run, reporters.JUnitOptions{}) }},
		{f.sarif, func(w io.Writer) error {
			return reporters.SARIF(w, run, reporters.SARIFOptions{Location: sarifLocation(run)})
		}},
		{f.markdown, func(w io.Writer) error { return reporters.Checklist(w, run) }},
		{f.html, func(w io.Writer) error { return reporters.HTML(w, run) }},
		{f.badge, func(w io.Writer) error {
			b, err := reporters.NewBadge(run)
			if err != nil {
				return err
			}
			return writeBadge(w, f.badge, b)
		}},
	} {
		if r.path == "" {
			continue
		}
		if err := writeFile(r.path, r.render); err != nil {
			failed = err
			fmt.Fprintln(guarded(os.Stderr), "mcpconform: "+err.Error())
		}
	}
	return failed
}

// sarifLocation returns the file at which code scanning shows the results: the configuration
// in the current folder, or else the first word of the command that names a file below it.
func sarifLocation(run *result.Run) string {
	for _, path := range append([]string{reporters.DefaultLocation}, run.Target.Command...) {
		info, err := os.Stat(path)
		if err == nil && info.Mode().IsRegular() && filepath.IsLocal(path) {
			return filepath.ToSlash(filepath.Clean(path))
		}
	}
	return ""
}

// writeBadge writes a badge in the form that the name of its file asks for.
func writeBadge(w io.Writer, path string, b reporters.BadgeText) error {
	if strings.HasSuffix(path, ".json") {
		return reporters.BadgeJSON(w, b)
	}
	return reporters.BadgeSVG(w, b)
}

// writeFile writes a report as a whole or not at all; "-" is stdout. Half a report could be taken for a whole one, so
// it is written beside its place first. A pipe or another special file is written to directly.
func writeFile(path string, render func(io.Writer) error) error {
	if path == "-" {
		return render(guarded(os.Stdout))
	}
	kept := os.FileMode(0) // of a file that is there
	switch info, err := os.Stat(path); {
	case err != nil:
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	case !info.Mode().IsRegular():
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return fill(file, render)
	default:
		kept = info.Mode().Perm()
		if target, err := filepath.EvalSymlinks(path); err == nil {
			path = target
		}
	}
	file, err := os.OpenFile(filepath.Join(filepath.Dir(path), "."+rand.Text()), os.O_WRONLY|os.O_CREATE|os.O_EXCL,
		0o644)
	if err != nil {
		// A file can be there in a folder in which nothing else may be made.
		if file, err = os.Create(path); err != nil {
			return err
		}
		if err = fill(file, render); err != nil {
			_ = os.Truncate(path, 0)
		}
		return err
	}
	err = fill(file, render)
	if err == nil && kept != 0 {
		err = os.Chmod(file.Name(), kept)
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// fill writes a report to a file and closes it.
func fill(file *os.File, render func(io.Writer) error) error {
	w := bufio.NewWriter(file)
	err := render(w)
	if err == nil {
		err = w.Flush()
	}
	return errors.Join(err, file.Close())
}

// consoleOptions fit the terminal, if it is one, at which the report is read.
func (f *reportFlags) consoleOptions(console io.Writer) reporters.ConsoleOptions {
	o := reporters.ConsoleOptions{Verbose: f.verbose}
	if file, ok := console.(*os.File); ok {
		o.Color, o.Width = reporters.ColorEnabled(file, os.Getenv), reporters.TerminalWidth(file)
	}
	return o
}
