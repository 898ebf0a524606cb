package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/reporters"
	"github.com/mcpconform/mcpconform/suites/result"
)

// reportFlags say which reports are written.
type reportFlags struct {
	junit, json, markdown, html, trace string
	verbose, quiet                     bool
}

func (f *reportFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.junit, "junit", "", "write a JUnit report to `FILE`")
	flags.StringVar(&f.json, "json", "", "write results.json to `FILE`")
	flags.StringVar(&f.markdown, "markdown", "", "write the checklist as Markdown to `FILE`")
	flags.StringVar(&f.html, "html", "", "write the report as an HTML page to `FILE`")
	flags.StringVar(&f.trace, "trace", "", "write everything that crossed the wire to `FILE` (JSON Lines)")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "list every requirement on the console")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing but errors")
}

func (f *reportFlags) progress() *reporters.Progress {
	mode := reporters.ProgressAuto
	if f.quiet {
		mode = reporters.ProgressQuiet
	}
	return reporters.NewProgress(os.Stderr, reporters.ProgressOptions{
		Mode: mode, Color: reporters.ColorEnabled(os.Stderr, os.Getenv),
	})
}

// write writes all reports and returns the exit code of the run. A report that
// cannot be written does not keep the others from it.
func (f *reportFlags) write(run *result.Run, trace *wire.Trace) error {
	return f.writeTo(os.Stdout, run, trace)
}

// writeTo is write with the console report elsewhere.
func (f *reportFlags) writeTo(console io.Writer, run *result.Run, trace *wire.Trace) error {
	var failed error
	for _, r := range []struct {
		path   string
		render func(io.Writer) error
	}{
		{f.trace, func(w io.Writer) error { _, err := trace.WriteTo(w); return err }},
		{f.json, func(w io.Writer) error { return reporters.JSON(w, run) }},
		{f.junit, func(w io.Writer) error { return reporters.JUnit(w, run, reporters.JUnitOptions{}) }},
		{f.markdown, func(w io.Writer) error { return reporters.Checklist(w, run) }},
		{f.html, func(w io.Writer) error { return reporters.HTML(w, run) }},
	} {
		if r.path == "" {
			continue
		}
		if err := writeFile(r.path, r.render); err != nil {
			failed = err
			fmt.Fprintln(os.Stderr, "mcpconform: "+err.Error())
		}
	}
	if !f.quiet {
		if err := reporters.Console(console, run, f.consoleOptions()); err != nil {
			failed = err
		}
	}
	switch {
	case failed != nil:
		return exitError(exitIncomplete)
	case run.Verdict == result.NotConformant:
		return exitError(exitNotConformant)
	case run.Verdict == result.Incomplete:
		return exitError(exitIncomplete)
	}
	return nil
}

// writeFile writes a report as a whole or not at all; "-" is stdout.
func writeFile(path string, render func(io.Writer) error) error {
	if path == "-" {
		return render(os.Stdout)
	}
	var b bytes.Buffer
	if err := render(&b); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if dir := filepath.Dir(path); dir != "." {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

func (f *reportFlags) consoleOptions() reporters.ConsoleOptions {
	return reporters.ConsoleOptions{
		Color: reporters.ColorEnabled(os.Stdout, os.Getenv), Width: reporters.TerminalWidth(os.Stdout), Verbose: f.verbose,
	}
}
