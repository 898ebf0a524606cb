package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/reference/authserver"
	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
)

// referenceCommand holds the reference peers as programs of their own.
func referenceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "reference", Short: "Run a reference peer by itself",
		Example: `  mcpconform reference server --http :8080
  mcpconform reference authorization-server --http :9000
  mcpconform reference client http://localhost:8080/mcp`,
		Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(referenceServerCommand(), referenceClientCommand(), referenceAuthorizationCommand())
	return cmd
}

// listenFlags choose the transport of a server that runs by itself.
type listenFlags struct {
	http, sse, ws string
	issuing       authserver.Options // of the authorization server that is served with a protected server
}

func (f *listenFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.http, "http", "",
		"serve Streamable HTTP at `ADDR`, such as :8080 (loopback unless a host is named)")
	cmd.Flags().StringVar(&f.sse, "sse", "", "serve the HTTP+SSE transport of 2024-11-05 at `ADDR`")
	cmd.Flags().StringVar(&f.ws, "ws", "", "serve WebSocket, a custom transport, at `ADDR`")
	cmd.MarkFlagsMutuallyExclusive("http", "sse", "ws")
}

// transport returns the name of the transport that was chosen.
func (f *listenFlags) transport() string {
	switch {
	case f.http != "":
		return transport.NameHTTP
	case f.sse != "":
		return transport.NameSSE
	case f.ws != "":
		return transport.NameCustom
	}
	return transport.NameStdio
}

// serve runs a server until its client has gone or, over HTTP, until the
// context ends. It writes to stderr where it listens.
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
			return nil // the context ended it
		}
		return err
	case transport.NameHTTP:
		o.HTTP.NoLegacy = true
	case transport.NameSSE:
		o.HTTP.NoStreamable = true
		path, addr = "/sse", f.sse
	case transport.NameCustom:
		addr = f.ws
	}
	l, err := server.Listen(addr)
	if err != nil {
		return err
	}
	if f.ws != "" {
		fmt.Fprintf(stderr, "mcpconform: serving at ws://%s%s\n", l.Addr(), path)
		return server.New(o).ServeWebSocket(ctx, l)
	}
	origin := "http://" + l.Addr().String()
	fmt.Fprintf(stderr, "mcpconform: serving at %s%s\n", origin, path)
	if p := o.HTTP.Protection; p != nil && p.Verify == nil {
		issuing := f.issuing
		issuing.Issuer = origin
		as, err := authserver.New(issuing)
		if err != nil {
			return err
		}
		as.Protect(p, true)
		// The token may be printed: the server has only made-up data.
		fmt.Fprintf(stderr, "mcpconform: an access token for this server is %s\n", as.Issue(origin+path, tokenLife))
	}
	return server.New(o).HTTP().Serve(ctx, l)
}

// tokenLife is how long the first token of a protected server is valid.
const tokenLife = 24 * time.Hour

func referenceServerCommand() *cobra.Command {
	var f listenFlags
	var protected bool
	var by authserver.Verifier
	cmd := &cobra.Command{
		Use:   "server [flags]",
		Short: "Serve every feature of the revision, over stdio unless a flag names another transport",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var o server.Options
			switch changed := cmd.Flags().Changed; {
			case changed("token-life") && !protected:
				return errors.New("--token-life needs --protected")
			case changed("scopes") && !protected && by.Issuer == "":
				return errors.New("--scopes needs --protected or --protected-by")
			}
			if protected || by.Issuer != "" {
				if f.http == "" && f.sse == "" {
					return errors.New("--protected and --protected-by need a server over HTTP: --http or --sse")
				}
				o.HTTP.Protection = &server.Protection{}
			}
			if by.Issuer != "" {
				by.Scopes = f.issuing.Scopes
				by.Protect(o.HTTP.Protection)
			}
			return f.serve(cmd.Context(), o, cmd.ErrOrStderr())
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&protected, "protected", false,
		"require access tokens, and serve as the authorization server that issues them to everybody")
	cmd.Flags().StringVar(&by.Issuer, "protected-by", "",
		"require access tokens of the authorization server with this issuer `URL`, which have to be JWTs (RFC 9068)")
	cmd.Flags().StringSliceVar(&f.issuing.Scopes, "scopes", nil,
		"with access tokens: name these `SCOPE,...`, and require the last one for tool calls")
	cmd.Flags().DurationVar(&f.issuing.Life, "token-life", time.Hour,
		"with --protected: how long an access token is valid")
	cmd.MarkFlagsMutuallyExclusive("protected", "protected-by")
	return cmd
}

// standaloneFlags are those of a client that runs by itself.
type standaloneFlags struct {
	limits      limitFlags
	userActions string
	quiet       bool
	over        string
}

func (f *standaloneFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.limits.registerTimeout(cmd, reference.DefaultTimeout, answerUsage)
	flags.StringVar(&f.userActions, "act", os.Getenv("MCPCONFORM_ACT"),
		"the user actions: what to do where a user would decide (default: $MCPCONFORM_ACT)")
	choose(cmd, &f.over, "transport", transportAuto, "transport at the URL",
		transportAuto+"\tStreamable HTTP, or WebSocket if the URL says so", transport.NameSSE+"\tthe older HTTP+SSE")
	registerQuiet(cmd, &f.quiet, "print only errors")
}

// run runs the client, with some changes, against the server that the arguments name.
func (f *standaloneFlags) run(cmd *cobra.Command, args []string, changes ...func(*reference.Standalone)) error {
	if err := f.limits.check(); err != nil {
		return err
	}
	c := reference.Standalone{Timeout: f.limits.timeout, UserActions: f.userActions}
	if !f.quiet {
		c.Output = discreet{cmd.OutOrStdout(), newRedactor(nil, args)}
	}
	if strings.HasPrefix(args[0], "http://") || strings.HasPrefix(args[0], "https://") ||
		transport.IsWebSocket(args[0]) {
		if len(args) > 1 {
			return errors.New("give either a URL alone, or a COMMAND after --")
		}
		c.URL, c.Legacy = args[0], f.over == transport.NameSSE
	} else {
		c.Launcher = transport.Command{Args: args}
	}
	for _, change := range changes {
		change(&c)
	}
	if err := c.Run(cmd.Context()); err != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "mcpconform: "+newRedactor(nil, args).String(err.Error()))
		return exitError(exitNotConformant)
	}
	return nil
}

// referenceClientCommand runs the reference client by itself.
func referenceClientCommand() *cobra.Command {
	var f standaloneFlags
	cmd := &cobra.Command{
		Use:   "client [flags] URL | client [flags] -- COMMAND [ARG...]",
		Short: "Use everything that a server offers, once, and disconnect",
		Example: `  mcpconform reference client http://localhost:8080/mcp
  mcpconform reference client -- ./my-server --stdio`,
		Args: some("the server is missing; give its URL, or COMMAND after --"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.register(cmd)
	return cmd
}
