package main

import (
	"fmt"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/cmd/mcpconform/internal/config"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/expected"
	"github.com/mcpconform/mcpconform/suites/result"
)

func judgeCommand() *cobra.Command {
	var reports reportFlags
	var role, expectedFile string
	var strict bool
	var selection suites.Selection
	cmd := &cobra.Command{
		Use:   "judge TRACE",
		Short: "Judge a recorded trace (see --trace)",
		Args:  one("one TRACE, as --trace writes it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			party := wire.Party(role)
			if party != wire.Client && party != wire.Server {
				return fmt.Errorf("--role is %q; it takes server or client", role)
			}
			if _, err := concerned(selection, []wire.Party{party}); err != nil {
				return err
			}
			if err := reports.check(); err != nil {
				return err
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
			var entries []expected.Entry
			if expectedFile != "" {
				if entries, err = config.LoadExpected(expectedFile); err != nil {
					return fmt.Errorf("--expected-failures: %w", err)
				}
			}
			redactor := newRedactor(nil, nil)
			keepSecret(redactor, trace)
			run, _, err := suites.Run(cmd.Context(), suites.Recording{Party: party}, suites.Options{
				Ginkgo: true, Trace: trace,
				Selection: selection, Expected: entries, Strict: strict, Tool: result.Tool{Name: "mcpconform", Version: version()},
				Target: result.Target{Command: []string{"(trace " + args[0] + ")"}}, Redactor: redactor,
			})
			if err != nil {
				return err
			}
			return reports.write(run, trace)
		},
	}
	reports.register(cmd)
	cmd.Flags().StringVar(&role, "role", "server", "whose conformance is judged: `server` or client")
	registerSelection(cmd, &selection)
	cmd.Flags().StringVar(&expectedFile, "expected-failures", "", "failures listed in `FILE` do not count, as long as they fail")
	cmd.Flags().BoolVar(&strict, "strict", false, "a broken SHOULD makes the target not conformant")
	return cmd
}

// keepSecret makes known the credentials in the heads of a trace, which need not
// be one of ours.
func keepSecret(r *transport.Redactor, trace *wire.Trace) {
	for _, l := range trace.Logs() {
		for _, e := range l.Events() {
			if e.HTTP == nil {
				continue
			}
			u, err := url.Parse(e.HTTP.URL)
			if err != nil {
				u = nil
			}
			r.AddHead(e.HTTP.Header, u)
		}
	}
}
