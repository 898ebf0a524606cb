package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/result"
)

func judgeCommand() *cobra.Command {
	var reports reportFlags
	var role string
	var strict bool
	cmd := &cobra.Command{
		Use:   "judge TRACE",
		Short: "Judge a recorded trace (see --trace)",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			party := wire.Party(role)
			if party != wire.Client && party != wire.Server {
				return fmt.Errorf("--role is %q; it takes server or client", role)
			}
			f, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			trace, err := wire.ReadTrace(f, wire.DefaultLimits)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			run, err := suites.Recorded(trace, party, suites.Options{
				Strict: strict, Tool: result.Tool{Name: "mcpconform", Version: version()},
				Target: result.Target{Command: []string{"(trace)", args[0]}},
			})
			if err != nil {
				return err
			}
			return reports.write(run, trace)
		},
	}
	reports.register(cmd)
	cmd.Flags().StringVar(&role, "role", "server", "whose conformance is judged: `server` or client")
	cmd.Flags().BoolVar(&strict, "strict", false, "a broken SHOULD makes the target not conformant")
	return cmd
}
