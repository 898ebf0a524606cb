package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
)

func explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain ID...",
		Short: "Explain requirements: what they say, how they are tried, what breaks them",
		Long: `Explains each requirement that is named by its ID. A glob, such as 'tools.error.*', lists the
requirements that it matches.`,
		Example: `  mcpconform explain tools.error.unknown-tool-code
  mcpconform explain 'pagination.*'`,
		Args: some("explain takes the IDs of requirements, or globs; mcpconform checklist lists all requirements"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for i, arg := range args {
				if i > 0 {
					fmt.Fprintln(cmd.OutOrStdout())
				}
				if err := explainAny(cmd.OutOrStdout(), arg); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// explainAny explains the requirement with an ID, or lists those that a glob matches.
func explainAny(w io.Writer, arg string) error {
	revision := schema.Default()
	if r, ok := revision.Lookup(arg); ok {
		return explain(w, revision, r)
	}
	if !strings.ContainsAny(arg, "*?[") {
		return fmt.Errorf("%q is not a requirement; the nearest are:\n  %s", arg,
			strings.Join(revision.Nearest(arg, 5), "\n  "))
	}
	switch err := revision.CheckPattern(arg); {
	case errors.Is(err, path.ErrBadPattern):
		return fmt.Errorf("%q is not a glob: a bracket is open, or a backslash stands at its end", arg)
	case err != nil:
		return fmt.Errorf("no requirement matches %q; mcpconform checklist lists them", arg)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range revision.Catalogue() {
		if r.Matches(arg) {
			fmt.Fprintf(t, "%s\t%s\t%s\n", r.ID, r.Level, r.Summary)
		}
	}
	return t.Flush()
}

// nearest names the things whose names resemble one that does not exist.
func nearest[T any](name string, things []T, nameOf func(T) string) string {
	names := make([]string, len(things))
	for i, thing := range things {
		names[i] = nameOf(thing)
	}
	return strings.Join(schema.NearestOf(names, name, 3), ", ")
}

// some accepts any number of arguments but none, for which it has a message.
func some(missing string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New(missing)
		}
		return nil
	}
}

// one accepts exactly one argument. Its error names the argument.
func one(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s takes %s", cmd.Name(), what)
		}
		return nil
	}
}

func explain(w io.Writer, revision *schema.Revision, r schema.Requirement) error {
	var b strings.Builder
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-12s %s\n", name, value)
		}
	}
	fmt.Fprintf(&b, "%s\n%s\n\n", r.ID, r.Summary)
	row("level", string(r.Level))
	row("basis", basis(r))
	row("binds", string(r.Party))
	row("judged on", string(r.Judged))
	row("page", r.URL(revision.Version))
	for _, s := range r.Sources {
		row("also", s.URL(revision.Version))
	}
	row("transports", strings.Join(r.Transports, ", "))
	row("capability", r.Capability)
	if r.Observable {
		row("tried by", r.How)
		row("violated by", r.Violation)
		row("what to do", revision.AdviceFor(r.ID))
		row("checks", strings.Join(suites.Served(revision, wire.Server, wire.Client)[r.ID], ", "))
		row("helps", strings.Join(r.Config, "; "))
	} else {
		label := "not seen"
		if r.Unobserved != schema.Invisible {
			label = r.Unobserved.Words()
		}
		row(label, r.How)
		row("judged by", strings.Join(r.Through, ", "))
	}
	for _, f := range revision.KnownFaults() {
		if slices.Contains(f.Requirements, r.ID) {
			fmt.Fprintf(&b, "\nknown of     %s (%s)\n  %s\n             %s\n  to do      %s\n", f.SDK, f.Versions,
				f.Thread, f.Says, f.Advice)
		}
	}
	for _, p := range revision.PositionsFor(r.ID) {
		fmt.Fprintf(&b, "\nposition     %s\n  the text   %s\n  we take    %s\n  because    %s\n", p.Title, p.Ambiguity,
			p.Position, p.Reason)
	}
	for _, d := range revision.DisputesFor(r.ID) {
		fmt.Fprintf(&b, "\ndisputed     %s; it counts only with --strict\n", d.Title)
		for _, t := range d.Threads {
			fmt.Fprintf(&b, "  %s\n             %s\n", t.URL, t.Says)
		}
		fmt.Fprintf(&b, "  we hold    %s\n", d.Position)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// basis names the basis of a requirement, and explains it.
func basis(r schema.Requirement) string {
	return string(r.Basis) + ": " + cmp.Or(r.Standard, map[schema.Basis]string{
		schema.ByKeyword:     "a sentence with a keyword in capitals",
		schema.BySchema:      "the type definitions",
		schema.ByStandard:    "a standard that the text makes binding",
		schema.ByStatement:   "the text states it as a fact",
		schema.ByExample:     "an example shows it",
		schema.ByImplication: "it follows from the text, which does not say it",
	}[r.Basis])
}
