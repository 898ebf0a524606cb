package main

import (
	"context"
	"io"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
)

// judgeFlags are those of the judgement of a recording.
type judgeFlags struct {
	judgingFlags
	role string
}

func judgeCommand() *cobra.Command {
	var f judgeFlags
	cmd := &cobra.Command{
		Use:   "judge TRACE",
		Short: "Judge a recorded trace (see --trace)",
		Long: `Judges one party of a trace that --trace has written. Only the passive rules apply: nothing
is sent, and a requirement that the recorded messages did not exercise is inconclusive.`,
		Example: `  mcpconform server --trace trace.jsonl -- ./my-server
  mcpconform judge trace.jsonl --role client --strict`,
		Args: one("one TRACE, as --trace writes it"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), args[0]) },
	}
	f.register(cmd)
	f.registerRole(cmd, &f.role, string(wire.Server))
	return cmd
}

func (f *judgeFlags) run(ctx context.Context, file string) error {
	party := wire.Party(f.role)
	if _, err := f.selection.parties([]wire.Party{party}); err != nil {
		return err
	}
	if err := f.reports.check(); err != nil {
		return err
	}
	trace, err := readFile(file, func(r io.Reader) (*wire.Trace, error) {
		return wire.ReadTrace(r, wire.DefaultLimits)
	})
	if err != nil {
		return err
	}
	entries, err := f.verdict.expected()
	if err != nil {
		return err
	}
	redactor := newRedactor(nil, nil)
	keepSecret(redactor, trace)
	o := f.judging()
	o.Ginkgo, o.Trace, o.Expected, o.Redactor = true, trace, entries, redactor
	o.Target.Command = []string{"(trace " + file + ")"}
	run, _, err := suites.Run(ctx, suites.Recording{Party: party}, o)
	if err != nil {
		return err
	}
	return f.reports.write(os.Stdout, run, trace)
}

// keepSecret makes known the credentials in the heads of a trace, which another
// program may have recorded.
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
