// Command generate renders requirements.yaml, advice.yaml, consequences.yaml, sdks.yaml, uses.yaml,
// positions.yaml and disputed.yaml as the JSON that package schema embeds, the latter two as
// docs/positions.md and docs/disputed.md, and what the requirements are graded by as docs/grading.md. Run it
// by "go generate ./schema" after a change of one of them.
package main

import (
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
	document, err := source.DescribePositions(positions, requirements)
	if err != nil {
		return err
	}
	disputes, err := source.Disputes(dir)
	if err != nil {
		return err
	}
	disputed, err := source.DescribeDisputes(disputes, requirements)
	if err != nil {
		return err
	}
	advice, err := source.Advice(dir)
	if err != nil {
		return err
	}
	if err := write(filepath.Join(dir, source.AdviceJSON), advice); err != nil {
		return err
	}
	consequences, err := source.Consequences(dir)
	if err != nil {
		return err
	}
	if err := write(filepath.Join(dir, source.ConsequencesJSON), consequences); err != nil {
		return err
	}
	faults, err := source.KnownFaults(dir)
	if err != nil {
		return err
	}
	if err := write(filepath.Join(dir, source.SDKsJSON), faults); err != nil {
		return err
	}
	uses, err := source.Uses(dir)
	if err != nil {
		return err
	}
	if err := write(filepath.Join(dir, source.UsesJSON), uses); err != nil {
		return err
	}
	sdks, err := source.SDKs(dir)
	if err != nil {
		return err
	}
	if err := write(filepath.Join(dir, source.SDKSignsJSON), sdks); err != nil {
		return err
	}
	hints, err := source.Hints(dir)
	if err != nil {
		return err
	}
	if err := write(filepath.Join(dir, source.HintsJSON), hints); err != nil {
		return err
	}
	if err := write(filepath.Join(dir, source.DisputedJSON), disputes); err != nil {
		return err
	}
	if err := os.WriteFile(source.DisputedDocument, disputed, 0o644); err != nil {
		return err
	}
	if err := write(filepath.Join(dir, source.GeneratedFile), requirements); err != nil {
		return err
	}
	if err := write(filepath.Join(dir, source.PositionsJSON), positions); err != nil {
		return err
	}
	if err := os.WriteFile(source.PositionsDocument, document, 0o644); err != nil {
		return err
	}
	regradings, err := source.Regradings(dir)
	if err != nil {
		return err
	}
	if document, err = source.DescribeGrading(regradings, requirements); err != nil {
		return err
	}
	return os.WriteFile(source.GradingDocument, document, 0o644)
}

func write[T any](path string, list []T) error {
	data, err := source.Generate(list)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, data, 0o644)
}
