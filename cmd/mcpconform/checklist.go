package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/reporters"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
)

func checklistCommand() *cobra.Command {
	var asJSON, asMarkdown bool
	var selects []string
	cmd := &cobra.Command{
		Use:   "checklist",
		Short: "List the requirements of the revision, before any run",
		Example: `  mcpconform checklist --select server/tools --select MUST
  mcpconform checklist --select client,http --markdown > checklist.md`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			entries, err := chosen(selects)
			if err != nil {
				return err
			}
			switch {
			case asJSON && asMarkdown:
				return errors.New("give either --json or --markdown")
			case asJSON:
				return reporters.WriteJSON(cmd.OutOrStdout(), map[string]any{"format": 1,
					"revision": schema.DefaultVersion, "requirements": entries}, "checklist")
			case asMarkdown:
				return checklistMarkdown(cmd.OutOrStdout(), entries)
			}
			return checklistText(cmd.OutOrStdout(), entries)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	cmd.Flags().BoolVar(&asMarkdown, "markdown", false, "write Markdown")
	registerPatterns(cmd, &selects, "select",
		"list only requirements that fit this: `ID`, glob, page, level, party (server, client, host …) or transport "+
			"(stdio, http, sse); repeatable, and all must fit")
	return cmd
}

// entry is a requirement as checklist --json lists it.
type entry struct {
	schema.Requirement
	URL    string   `json:"url"`
	Checks []string `json:"checks"`
}

func describe(r schema.Requirement, served map[string][]string) entry {
	r.Advice = schema.Default().AdviceFor(r.ID)
	return entry{Requirement: r, URL: r.URL(schema.DefaultVersion), Checks: append([]string{}, served[r.ID]...)}
}

// chosen returns the requirements that fit every pattern.
func chosen(patterns []string) ([]entry, error) {
	revision := schema.Default()
	served := suites.Served(revision, wire.Server, wire.Client)
	var out []entry
	for _, r := range revision.Catalogue() {
		if !slices.ContainsFunc(patterns, func(p string) bool { return !fit(p, r) }) {
			out = append(out, describe(r, served))
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	for _, p := range patterns {
		if err := revision.CheckPattern(p); err != nil && !slices.Contains(slices.Concat(parties, transports), p) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no requirement fits all of %s", strings.Join(patterns, ", "))
}

var (
	parties    = []string{"server", "client", "both", "host", "authorization-server"}
	transports = []string{"stdio", "http", "sse"}
)

// fit reports whether a pattern fits a requirement. A party also fits a requirement
// on both sides; a page that is called like a party has to be given in full.
func fit(p string, r schema.Requirement) bool {
	switch {
	case slices.Contains(parties, p):
		return string(r.Party) == p || r.Party == schema.Both && (p == "server" || p == "client")
	case slices.Contains(transports, p):
		return slices.Contains(r.Transports, p)
	}
	return r.Matches(p)
}

func checklistText(w io.Writer, entries []entry) error {
	var b strings.Builder
	observable, page := 0, ""
	for _, e := range entries {
		if e.Page != page {
			page = e.Page
			fmt.Fprintf(&b, "%s\n", page)
		}
		mark := " "
		if e.Observable {
			mark = "✓"
			observable++
		}
		fmt.Fprintf(&b, "  %s %-10s %-9s %-8s %-50s %s\n", mark, e.Level, e.Basis, e.Party, e.ID, e.Summary)
	}
	fmt.Fprintf(&b, "%d requirements, %d of them observable on the wire (✓)\n", len(entries), observable)
	_, err := io.WriteString(w, b.String())
	return err
}

func checklistMarkdown(w io.Writer, entries []entry) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Requirements of MCP %s\n", schema.DefaultVersion)
	cell := strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;")
	page := ""
	for _, e := range entries {
		if e.Page != page {
			page = e.Page
			fmt.Fprintf(&b, "\n## %s\n\n| Id | Level | Basis | Binds | Requirement "+
				"| How it is tried, or why nothing is observed |\n|---|---|---|---|---|---|\n", page)
		}
		how := e.How
		if !e.Observable {
			words := e.Unobserved.Words()
			how = "*" + strings.ToUpper(words[:1]) + words[1:] + ".* " + how
		}
		fmt.Fprintf(&b, "| [%s](%s) | %s | %s | %s | %s | %s |\n", e.ID, e.URL, e.Level,
			cmp.Or(e.Standard, string(e.Basis)), e.Party, cell.Replace(e.Summary), cell.Replace(how))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
