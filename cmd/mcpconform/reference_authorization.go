package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/reference/authserver"
	"github.com/mcpconform/mcpconform/reference/server"
)

// authorizationServerFlags are those of an authorization server that runs by itself.
type authorizationServerFlags struct {
	http         string
	issuer       string
	client       string
	clientSecret string // name of the variable
	redirects    []string
	options      authserver.Options
}

func (f *authorizationServerFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.http, "http", "", "serve at `ADDR`, such as :9000 (loopback unless a host is named)")
	flags.StringVar(&f.issuer, "issuer", "", "the issuer `URL`, which may have a path (default: the address)")
	flags.StringVar(&f.client, "client-id", "", "register the client `ID` beforehand")
	flags.StringVar(&f.clientSecret, "client-secret-env", "",
		"the secret of --client-id is in the environment variable `VAR`")
	flags.StringArrayVar(&f.redirects, "redirect-uri", nil, "a redirect `URI` of --client-id, repeatable")
	flags.BoolVar(&f.options.NoRegistration, "no-registration", false, "register no clients")
	flags.BoolVar(&f.options.NoRefresh, "no-refresh", false, "issue no refresh tokens")
	flags.StringSliceVar(&f.options.Scopes, "scopes", nil,
		"know these `SCOPE,...`, which a token has unless fewer are asked for")
	flags.DurationVar(&f.options.Life, "token-life", time.Hour, "how long an access token is valid")
	choose(cmd, &f.options.TokenAuth, "token-auth", "",
		"offer only this method of client authentication (default: all)",
		authserver.AuthNone+"\tpublic clients", authserver.AuthPost+"\ta secret in the body",
		authserver.AuthBasic+"\ta secret in the header")
}

func referenceAuthorizationCommand() *cobra.Command {
	var f authorizationServerFlags
	cmd := &cobra.Command{
		Use:   "authorization-server --http ADDR [flags]",
		Short: "Issue access tokens to everybody, as an OAuth 2.1 authorization server",
		Example: `  mcpconform reference authorization-server --http :9000
  mcpconform reference authorization-server --http :9000 --client-id me --redirect-uri http://127.0.0.1/cb`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.serve(cmd) },
	}
	f.register(cmd)
	return cmd
}

func (f *authorizationServerFlags) serve(cmd *cobra.Command) error {
	secret := os.Getenv(f.clientSecret)
	switch {
	case f.http == "":
		return errors.New("--http is missing; it says where to serve")
	case f.client == "" && (f.clientSecret != "" || len(f.redirects) > 0):
		return errors.New("--client-secret-env and --redirect-uri need --client-id")
	case f.clientSecret != "" && secret == "":
		return fmt.Errorf("--client-secret-env: the environment variable %s is empty", f.clientSecret)
	case f.client != "" && len(f.redirects) == 0:
		return errors.New("--client-id needs --redirect-uri")
	}
	l, err := server.Listen(f.http)
	if err != nil {
		return err
	}
	o := f.options
	o.SignedTokens = true
	if o.Issuer = f.issuer; o.Issuer == "" {
		o.Issuer = "http://" + l.Addr().String()
	}
	if f.client != "" {
		o.Clients = []authserver.Client{{ID: f.client, Secret: secret, Redirects: slices.Clone(f.redirects)}}
	}
	as, err := authserver.New(o)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "mcpconform: serving the issuer %s\n", as.Issuer())
	return serveHTTP(cmd.Context(), as, l)
}

// serveHTTP serves until the context ends, and then ends all connections.
func serveHTTP(ctx context.Context, h http.Handler, l net.Listener) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 30 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}
