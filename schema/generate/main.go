// Command generate renders requirements.yaml, advice.yaml, consequences.yaml, sdks.yaml, uses.yaml,
// positions.yaml and disputed.yaml as the JSON that package schema embeds, the latter two as
// docs/positions.md and docs/disputed.md, and what the requirements are graded by as docs/grading.md. Run it
// by "go generate ./schema" after a change of one of them.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mcpconform/mcpconform/schema/internal/source"
)

func main() {
	// go generate starts it in the folder of package schema.
	if err := run("2025-06-18"); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	requirements, err := source.Requirements(dir)
	if err != nil {
		return err
	}
	positions, err := source.Positions(dir)
	if err != nil {
		return err
	}
	disputes, err := source.Disputes(dir)
	if err != nil {
		return err
	}
	regradings, err := source.Regradings(dir)
	if err != nil {
		return err
	}
	documents := []struct {
		name     string
		describe func() ([]byte, error)
	}{
		{source.PositionsDocument, func() ([]byte, error) { return source.DescribePositions(positions, requirements) }},
		{source.DisputedDocument, func() ([]byte, error) { return source.DescribeDisputes(disputes, requirements) }},
		{source.GradingDocument, func() ([]byte, error) { return source.DescribeGrading(regradings, requirements) }},
	}
	for _, d := range documents {
		text, err := d.describe()
		if err != nil {
			return err
		}
		if err := os.WriteFile(d.name, text, 0o644); err != nil {
			return err
		}
	}
	return errors.Join(
		write(filepath.Join(dir, source.GeneratedFile), requirements),
		write(filepath.Join(dir, source.PositionsJSON), positions),
		write(filepath.Join(dir, source.DisputedJSON), disputes),
		convert(dir, source.AdviceJSON, source.Advice),
		convert(dir, source.ConsequencesJSON, source.Consequences),
		convert(dir, source.SDKsJSON, source.KnownFaults),
		convert(dir, source.UsesJSON, source.Uses),
		convert(dir, source.SDKSignsJSON, source.SDKs),
		convert(dir, source.HintsJSON, source.Hints),
	)
}

// convert reads a file of sources in dir and writes what it says as JSON.
func convert[T any](dir, name string, read func(string) ([]T, error)) error {
	list, err := read(dir)
	if err != nil {
		return err
	}
	return write(filepath.Join(dir, name), list)
}

func write[T any](path string, list []T) error {
	data, err := source.Generate(list)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, data, 0o644)
}
