package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
)

// registerSelection adds the flags that choose what is judged.
func registerSelection(cmd *cobra.Command, s *suites.Selection) {
	flags := cmd.Flags()
	flags.StringSliceVar(&s.Select, "select", nil, "only these requirements: `id`, glob, page or level, repeatable")
	flags.StringSliceVar(&s.Skip, "skip", nil, "not these requirements: `id`, glob, page or level, repeatable")
	flags.StringVar(&s.LabelFilter, "label-filter", "", "only what matches the `EXPRESSION` of Ginkgo's label filters, such as 'level: containsAny {MUST, SHOULD}'")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		// As by a script whose variable is empty: it would choose everything.
		for name, values := range map[string][]string{"select": s.Select, "skip": s.Skip} {
			if flags.Changed(name) && len(values) == 0 {
				return fmt.Errorf("--%s is empty; it takes an id, glob, page or level", name)
			}
		}
		return nil
	}
}

// concerned returns those of the parties of whom a selection leaves something
// to judge. It is an error if that is none.
func concerned(s suites.Selection, parties []wire.Party, own ...schema.Requirement) ([]wire.Party, error) {
	var left []wire.Party
	var faults []error
	for _, p := range parties {
		if err := s.Validate(p, own...); err != nil {
			faults = append(faults, err)
			continue
		}
		left = append(left, p)
	}
	if len(left) > 0 {
		return left, nil
	}
	// What is wrong with a pattern is the same for either party.
	if len(faults) > 1 && faults[0].Error() == faults[1].Error() {
		faults = faults[:1]
	}
	return nil, fmt.Errorf("--select, --skip: %w", errors.Join(faults...))
}
