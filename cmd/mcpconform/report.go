package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/reporters"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/result"
)

func reportCommand() *cobra.Command {
	var reports reportFlags
	cmd := &cobra.Command{
		Use:   "report RESULTS.json...",
		Short: "Render results again, several of them side by side, or shards as one",
		Long: `Renders results again. Those of several runs are shown side by side; those of the shards of one
run, which --shard made, are merged into one result. A shard that is missing makes it incomplete.`,
		Example: `  mcpconform report results.json --html report.html
  mcpconform report typescript.json python.json go.json --markdown matrix.md
  mcpconform report shard-*.json --json results.json --junit report.xml`,
		Args: some("the results are missing; give RESULTS.json files, as --json writes them"),
		RunE: func(_ *cobra.Command, args []string) error {
			if reports.trace != "" {
				return errors.New("--trace: results do not contain a trace")
			}
			if err := reports.check(); err != nil {
				return err
			}
			var runs []*result.Run
			for _, path := range args {
				run, err := readResults(path)
				if err != nil {
					return err
				}
				runs = append(runs, run)
			}
			if slices.ContainsFunc(runs, func(r *result.Run) bool { return r.Shard != nil }) {
				whole, err := suites.Merge(runs)
				if err != nil {
					return fmt.Errorf("merge shards: %w", err)
				}
				return reports.write(os.Stdout, whole, nil)
			}
			if len(runs) == 1 {
				return reports.write(os.Stdout, runs[0], nil)
			}
			return reports.matrix(runs)
		},
	}
	reports.register(cmd)
	reports.registerAgainst(cmd)
	return cmd
}

func readResults(path string) (*result.Run, error) { return readFile(path, reporters.ReadJSON) }

// readFile reads a file, and names it in the error if that fails.
func readFile[T any](path string, read func(io.Reader) (*T, error)) (*T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return content, nil
}

// matrix shows several runs side by side. Reports of single runs make no sense
// of them.
func (f *reportFlags) matrix(runs []*result.Run) error {
	for _, file := range f.files() {
		if *file.path != "" && file.path != &f.markdown {
			return fmt.Errorf("--%s: several results can only be shown on the console or written with --markdown",
				file.flag)
		}
	}
	if f.base != nil {
		return errors.New("--against: several results that are shown side by side cannot be compared with an " +
			"earlier one; give one, or the shards of one run")
	}
	if err := f.writeMatrix(runs); err != nil {
		return err
	}
	if err := f.tellGitHub(os.Stdout, reporters.Members(runs)); err != nil {
		return err
	}
	code := exitConformant
	for _, run := range runs {
		code = worst(code, exit(run, nil))
	}
	return ended(code)
}

func (f *reportFlags) writeMatrix(runs []*result.Run) error {
	if f.markdown != "" {
		if err := writeFile(f.markdown, func(w io.Writer) error {
			return reporters.MatrixMarkdown(w, runs)
		}); err != nil {
			return err
		}
	}
	switch {
	case f.quiet:
		text, err := reporters.RunsLine(runs)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(guarded(f.beside(os.Stdout)), text)
		return err
	case f.markdown != "":
		return nil
	}
	return reporters.MatrixConsole(guarded(os.Stdout), runs, f.consoleOptions(os.Stdout))
}
