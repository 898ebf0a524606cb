package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/server"
)

func mockCommand() *cobra.Command {
	var f listenFlags
	var list bool
	var ids []string
	cmd := &cobra.Command{
		Use:   "mock --fault ID [flags] | mock --list",
		Short: "Serve like the reference server, but with faults",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if list {
				return listFaults(cmd.OutOrStdout())
			}
			o, err := faulty(ids, f.transport())
			if err != nil {
				return err
			}
			return f.serve(cmd.Context(), o, cmd.ErrOrStderr())
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "list the faults with the requirements that they break")
	cmd.Flags().StringSliceVar(&ids, "fault", nil, "have the fault with this `ID`, repeatable")
	f.register(cmd)
	_ = cmd.RegisterFlagCompletionFunc("fault", func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		var known []string
		for _, f := range mockserver.Catalogue() {
			if strings.HasPrefix(f.ID, prefix) {
				known = append(known, f.ID+"\t"+f.Summary)
			}
		}
		return known, cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// faulty returns the options of a server with faults.
func faulty(ids []string, transport string) (server.Options, error) {
	if len(ids) == 0 {
		return server.Options{}, errors.New("mock needs a --fault; --list shows them")
	}
	var o server.Options
	for _, id := range ids {
		fault, ok := mockserver.Find(id)
		if !ok {
			return server.Options{}, fmt.Errorf("there is no fault %q; mock --list shows those that there are", id)
		}
		if !fault.Shows(transport) {
			return server.Options{}, fmt.Errorf("the fault %s shows over %s only", id, strings.Join(fault.Transports, " and "))
		}
		fault.Apply(&o)
		o.Behaviour.Breaks = append(o.Behaviour.Breaks, fault.Requirement)
	}
	return o, nil
}

func listFaults(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range mockserver.Catalogue() {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", f.ID, f.Level(), f.Requirement, f.Summary)
	}
	return t.Flush()
}
