package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mcpconform/mcpconform/reporters"
)

// onGitHub reports whether this process is a step of GitHub Actions.
func onGitHub() bool { return os.Getenv("GITHUB_ACTIONS") == "true" }

// guarded returns where to write texts of a target: GitHub Actions takes lines of stdout and
// stderr for commands, whatever the flags are.
func guarded(w io.Writer) io.Writer {
	if onGitHub() {
		return reporters.Guard(w)
	}
	return w
}

// tellGitHub writes annotations, unless only one line is to be printed, and the summary
// of the step.
func (f *reportFlags) tellGitHub(console io.Writer, members []reporters.Member) error {
	if !f.github {
		return nil
	}
	if !f.quiet {
		if err := reporters.GitHub(f.beside(console), members); err != nil {
			return fmt.Errorf("--github: %w", err)
		}
	}
	path := os.Getenv("GITHUB_STEP_SUMMARY")
	if path == "" {
		return nil
	}
	if err := appendSummary(path, members); err != nil {
		return fmt.Errorf("--github: write the step summary: %w", err)
	}
	return nil
}

// appendSummary adds to what earlier commands of the step have written.
func appendSummary(path string, members []reporters.Member) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	const margin = 1 << 10
	var text bytes.Buffer
	if err := reporters.StepSummary(&text, members, reporters.MaxStepSummary-margin-int(info.Size())); err != nil {
		return err
	}
	_, err = file.Write(text.Bytes())
	return err
}
