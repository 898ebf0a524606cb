package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
)

// listenFlags choose the transport of a server that runs by itself.
type listenFlags struct {
	http, sse string
}

func (f *listenFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.http, "http", "", "serve Streamable HTTP at `ADDR`, such as :8080 (loopback unless a host is named)")
	cmd.Flags().StringVar(&f.sse, "sse", "", "serve the HTTP+SSE transport of 2024-11-05 at `ADDR`")
	cmd.MarkFlagsMutuallyExclusive("http", "sse")
}

// transport returns the name of the transport that was chosen.
func (f *listenFlags) transport() string {
	switch {
	case f.http != "":
		return transport.NameHTTP
	case f.sse != "":
		return transport.NameSSE
	}
	return transport.NameStdio
}

// serve runs a server until its client has gone or, over HTTP, until the
// context ends. Where it listens is told on stderr.
func (f *listenFlags) serve(ctx context.Context, o server.Options, stderr io.Writer) error {
	path, addr := "/mcp", f.http
	switch f.transport() {
	case transport.NameStdio:
		err := server.New(o).RunStdio(ctx, os.Stdin, os.Stdout, stderr)
		var exit *server.ExitError
		switch {
		case errors.As(err, &exit):
			return exitError(exit.Code)
		case err != nil && ctx.Err() != nil:
			return nil // it was told to end
		}
		return err
	case transport.NameHTTP:
		o.HTTP.NoLegacy = true
	case transport.NameSSE:
		o.HTTP.NoStreamable = true
		path, addr = "/sse", f.sse
	}
	l, err := server.Listen(addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "mcpconform: serving at http://%s%s\n", l.Addr(), path)
	return server.New(o).HTTP().Serve(ctx, l)
}

func referenceServerCommand() *cobra.Command {
	var f listenFlags
	cmd := &cobra.Command{
		Use:   "server [flags]",
		Short: "Serve every feature of the revision, over stdio unless told otherwise",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.serve(cmd.Context(), server.Options{}, cmd.ErrOrStderr())
		},
	}
	f.register(cmd)
	return cmd
}
