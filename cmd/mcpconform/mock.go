package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
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
				return listFaults(cmd.OutOrStdout(), mockserver.Catalogue(),
					func(f mockserver.Fault) string { return f.Summary })
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
				return listFaults(cmd.OutOrStdout(), mockclient.Catalogue(), func(f mockclient.Fault) string {
					return cmp.Or(f.Scenario, client.Baseline) + "\t" + f.Summary
				})
			}
			if len(faults.ids) == 0 || len(args) == 0 {
				return errors.New("give --fault and a server: its URL, or COMMAND after --; --list lists the faults")
			}
			var changes []func(*reference.Standalone)
			for _, id := range faults.ids {
				fault, err := findFault(id, mockclient.Catalogue(), "mock client")
				if err != nil {
					return err
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

// listFaults lists faults; show is the last column.
func listFaults[P any](w io.Writer, all []mockserver.FaultOf[P], show func(f mockserver.FaultOf[P]) string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n",
			f.ID, f.Level(), f.Page(), transportNames(f.Transports), f.Requirement, show(f))
	}
	return t.Flush()
}

// findFault returns the fault with an id, or an error that names the command that lists all.
func findFault[P any](id string, all []mockserver.FaultOf[P], command string) (f mockserver.FaultOf[P], err error) {
	if i := slices.IndexFunc(all, func(f mockserver.FaultOf[P]) bool { return f.ID == id }); i >= 0 {
		return all[i], nil
	}
	return f, fmt.Errorf("no fault is called %q; the nearest are %s; %s --list lists them", id,
		nearest(id, all, func(f mockserver.FaultOf[P]) string { return f.ID }), command)
}

// faulty returns the options of a server with faults.
func faulty(ids []string, transport string) (server.Options, error) {
	var o server.Options
	for _, id := range ids {
		fault, err := findFault(id, mockserver.Catalogue(), "mock")
		if err != nil {
			return o, err
		}
		if !fault.Shows(transport) {
			return o, fmt.Errorf("the fault %s can be seen only over %s", id,
				strings.Join(fault.Transports, " and "))
		}
		fault.Apply(&o)
		o.Behaviour.Breaks = append(o.Behaviour.Breaks, fault.Requirement)
	}
	return o, nil
}
