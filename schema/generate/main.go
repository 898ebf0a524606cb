// Command generate renders the YAML files in the folder of each revision as the JSON that package schema embeds. It
// also renders docs/positions.md, docs/disputed.md and docs/grading.md, which are about the default revision, and the
// constants of package ids. Run it by "go generate ./schema" after a change of one of the files.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/internal/source"
)

func main() {
	// go generate starts it in the folder of package schema.
	dirs, err := filepath.Glob("20*")
	for _, dir := range dirs {
		err = errors.Join(err, run(dir))
	}
	if err == nil {
		err = errors.Join(describe(schema.DefaultVersion), constants(dirs))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// run renders the sources in the folder of a revision as JSON.
func run(dir string) error {
	return errors.Join(
		convert(dir, source.GeneratedFile, source.Requirements),
		convert(dir, source.PositionsJSON, source.Positions),
		convert(dir, source.DisputedJSON, source.Disputes),
		convert(dir, source.AdviceJSON, source.Advice),
		convert(dir, source.ConsequencesJSON, source.Consequences),
		convert(dir, source.SDKsJSON, source.KnownFaults),
		convert(dir, source.UsesJSON, source.Uses),
		convert(dir, source.SDKSignsJSON, source.SDKs),
		convert(dir, source.HintsJSON, source.Hints),
		convert(dir, source.MethodsJSON, source.Methods),
	)
}

// describe renders the documents about a revision.
func describe(dir string) error {
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
	return nil
}

// constants renders package ids for the catalogues in some folders.
func constants(dirs []string) error {
	var catalogues [][]schema.Requirement
	for _, dir := range dirs {
		requirements, err := source.Requirements(dir)
		if err != nil {
			return err
		}
		catalogues = append(catalogues, requirements)
	}
	text, err := source.DescribeIDs(catalogues...)
	if err != nil {
		return err
	}
	return os.WriteFile(source.IDsFile, text, 0o644)
}

// convert reads a file of sources in dir and writes what it says as JSON.
func convert[T any](dir, name string, read func(string) ([]T, error)) error {
	list, err := read(dir)
	if err != nil {
		return err
	}
	data, err := source.Generate(list)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(filepath.Join(dir, name), data, 0o644)
}
