package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/mockserver/mockclient"
	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/script"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/suites/client"
)

// faultFlags choose the faults of a peer.
type faultFlags struct {
	list bool
	ids  []string
}

// register declares the flags; columns say what is listed of each fault.
func (f *faultFlags) register(cmd *cobra.Command, columns string) {
	cmd.Flags().BoolVar(&f.list, "list", false, "list the faults: "+columns)
	cmd.Flags().StringSliceVar(&f.ids, "fault", nil, "break a requirement with the fault `ID`, repeatable")
}

func mockCommand() *cobra.Command {
	var f listenFlags
	var faults faultFlags
	var file string
	cmd := &cobra.Command{
		Use:   "mock --fault ID [flags] | mock --script FILE [flags] | mock --list",
		Short: "Serve like the reference server, but with faults, or as a script says",
		Example: `  mcpconform mock --list
  mcpconform mock --fault ping.refused --http :8080
  mcpconform mock --script conversation.md --http :8080`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if faults.list {
				return listFaults(cmd.OutOrStdout())
			}
			if len(faults.ids) == 0 && file == "" {
				return errors.New("give --fault or --script; --list lists the faults")
			}
			o, err := faulty(faults.ids, f.transport())
			if err != nil {
				return err
			}
			if file != "" {
				return serveScript(cmd, &f, o, file)
			}
			return f.serve(cmd.Context(), o, cmd.ErrOrStderr())
		},
	}
	faults.register(cmd, "ID, level, page, transports, broken requirement, summary")
	cmd.Flags().StringVar(&file, "script", "",
		"run the script in `FILE` (docs/scripts.md); the exit code is 1 if it did not run to its end")
	f.register(cmd)
	cmd.AddCommand(mockClientCommand())
	return cmd
}

// serveScript serves a script, reports its progress on stderr, and ends with an exit
// code that says whether the script ran to its end.
func serveScript(cmd *cobra.Command, f *listenFlags, o server.Options, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("--script: %w", err)
	}
	s, err := script.Parse(file, text)
	if err != nil {
		return err
	}
	stderr, redactor := cmd.ErrOrStderr(), newRedactor(nil, nil)
	run, err := mockserver.RunScript(&o, s, func(line string) {
		fmt.Fprintln(stderr, "mcpconform: "+redactor.String(line))
	})
	if err != nil {
		return err
	}
	if err := f.serve(cmd.Context(), o, stderr); err != nil {
		return err
	}
	if !run.Finished() {
		return exitError(exitNotConformant)
	}
	return nil
}

// mockClientCommand runs the reference client with faults.
func mockClientCommand() *cobra.Command {
	var f standaloneFlags
	var faults faultFlags
	cmd := &cobra.Command{
		Use:   "client --fault ID [flags] URL | client --fault ID [flags] -- COMMAND [ARG...] | client --list",
		Short: "Use a server like the reference client, but with faults",
		Example: `  mcpconform mock client --list
  mcpconform mock client --fault ID http://localhost:8080/mcp`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if faults.list {
				return listClientFaults(cmd.OutOrStdout())
			}
			if len(faults.ids) == 0 || len(args) == 0 {
				return errors.New("give --fault and a server: its URL, or COMMAND after --; --list lists the faults")
			}
			var changes []func(*reference.Standalone)
			for _, id := range faults.ids {
				fault, ok := mockclient.Find(id)
				if !ok {
					return fmt.Errorf("no fault is called %q; the nearest are %s; mock client --list lists them", id,
						nearest(id, mockclient.Catalogue(), func(f mockclient.Fault) string { return f.ID }))
				}
				changes = append(changes, fault.Apply)
			}
			return f.run(cmd, args, changes...)
		},
	}
	faults.register(cmd, "ID, level, page, transports, broken requirement, scenario that shows it, summary")
	f.register(cmd)
	return cmd
}

// transportNames lists the transports on which a fault shows, as a column of a list.
func transportNames(names []string) string {
	if len(names) == 0 {
		return "all"
	}
	return strings.Join(names, ",")
}

func listClientFaults(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range mockclient.Catalogue() {
		scenario := f.Scenario
		if scenario == "" {
			scenario = client.Baseline
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", f.ID, f.Level(), f.Page(), transportNames(f.Transports),
			f.Requirement, scenario, f.Summary)
	}
	return t.Flush()
}

// faulty returns the options of a server with faults.
func faulty(ids []string, transport string) (server.Options, error) {
	var o server.Options
	for _, id := range ids {
		fault, ok := mockserver.Find(id)
		if !ok {
			return server.Options{}, fmt.Errorf("no fault is called %q; the nearest are %s; mock --list lists them", id,
				nearest(id, mockserver.Catalogue(), func(f mockserver.Fault) string { return f.ID }))
		}
		if !fault.Shows(transport) {
			return server.Options{}, fmt.Errorf("the fault %s can be seen only over %s", id,
				strings.Join(fault.Transports, " and "))
		}
		fault.Apply(&o)
		o.Behaviour.Breaks = append(o.Behaviour.Breaks, fault.Requirement)
	}
	return o, nil
}

func listFaults(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range mockserver.Catalogue() {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", f.ID, f.Level(), f.Page(), transportNames(f.Transports),
			f.Requirement, f.Summary)
	}
	return t.Flush()
}
