package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/suites/client"
)

// Names of commands that clients under test call.
const (
	bridgeName = "bridge"
	browseName = "browse"
)

// bridgeCommand is the server process that a client starts over stdio.
func bridgeCommand() *cobra.Command {
	return &cobra.Command{
		Use: bridgeName + " ADDR TOKEN", Short: "Connect a client over stdio to the run that started it", Hidden: true,
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			// The command's context would end with a signal, but the run has to
			// see signals and decide what they do.
			code, err := client.Bridge(context.Background(), args[0], args[1], os.Stdin, os.Stdout, os.Stderr)
			if err != nil {
				return err
			}
			os.Exit(code)
			return nil
		},
	}
}

func browseCommand() *cobra.Command {
	return &cobra.Command{
		Use: browseName + " URL", Short: "Open a page as a user who grants everything", Hidden: true,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return visit(cmd.Context(), args[0]) },
	}
}
