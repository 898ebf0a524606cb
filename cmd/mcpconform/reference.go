package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/reference/authserver"
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
	origin := "http://" + l.Addr().String()
	fmt.Fprintf(stderr, "mcpconform: serving at %s%s\n", origin, path)
	if p := o.HTTP.Protection; p != nil {
		as, err := authserver.New(authserver.Options{Issuer: origin})
		if err != nil {
			return err
		}
		as.Protect(p, true)
		// It guards nothing but what the program makes up.
		fmt.Fprintf(stderr, "mcpconform: an access token for it is %s\n", as.Issue(origin+path, tokenLife))
	}
	return server.New(o).HTTP().Serve(ctx, l)
}

// tokenLife is how long the token is good with which a protected server begins.
const tokenLife = 24 * time.Hour

func referenceServerCommand() *cobra.Command {
	var f listenFlags
	var protected bool
	cmd := &cobra.Command{
		Use:   "server [flags]",
		Short: "Serve every feature of the revision, over stdio unless told otherwise",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var o server.Options
			if protected {
				if f.transport() == transport.NameStdio {
					return errors.New("--protected is for servers over HTTP: --http or --sse is missing")
				}
				o.HTTP.Protection = &server.Protection{}
			}
			return f.serve(cmd.Context(), o, cmd.ErrOrStderr())
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&protected, "protected", false, "demand access tokens, and be the authorization server that issues them to everybody")
	return cmd
}
