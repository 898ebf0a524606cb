package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
)

// authorizationFlags are those of a run against an authorization server.
type authorizationFlags struct {
	judgingFlags
	families familyFlags
	limits   limitFlags
	http     httpFlags
	checks   suites.AuthorizationChecks
}

func (f *authorizationFlags) register(cmd *cobra.Command) {
	f.judgingFlags.register(cmd)
	f.reports.registerAgainst(cmd)
	f.families.register(cmd)
	f.limits.registerTimeout(cmd, answerTimeout, answerUsage)
	f.limits.registerRunTimeout(cmd)
	f.http.registerAddress(cmd, "`URL` of the issuer, or of a server that it protects")
	f.http.login.registerClient(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.checks.RedirectURI, "redirect-uri", "", "the redirect `URI` of --client-id")
	flags.StringVar(&f.checks.Resource, "resource", "",
		"ask for tokens for the resource `URI` (default: that of the server at --url, if it is not an issuer)")
	flags.StringVar(&f.checks.Scope, "scope", "", "ask for tokens with this `SCOPE`")
}

func authorizationCommand() *cobra.Command {
	var f authorizationFlags
	cmd := &cobra.Command{
		Use:   "authorization --url URL [flags]",
		Short: "Test an authorization server alone",
		Long: `Tests an authorization server as a client sees it: its metadata, registration, authorization
requests, codes, tokens and refresh tokens. --url is its issuer, or a server that it protects.

The run registers clients of its own and deletes them at the end if the server lets it. With
--client-id, it uses that client, and what could end what belongs to the client is left to
--thorough. A code comes only from a server that grants an authorization without asking a user:
what takes a code is otherwise untested, and the report says so.

` + exitCodes,
		Example: `  mcpconform authorization --url https://issuer.example
  mcpconform authorization --url https://issuer.example --resource https://mcp.example/mcp
  mcpconform authorization --url https://mcp.example/mcp --html report.html
  mcpconform authorization --url https://issuer.example --client-id my-client --client-secret-env SECRET`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.register(cmd)
	return cmd
}

func (f *authorizationFlags) run(cmd *cobra.Command) error {
	if f.http.url == "" {
		return errors.New("--url is missing; it says where the authorization server is, or a server that it protects")
	}
	if err := f.limits.check(); err != nil {
		return err
	}
	if _, err := f.selection.parties([]wire.Party{wire.AuthorizationServer}); err != nil {
		return err
	}
	if err := f.reports.checkRun(wire.AuthorizationServer, shardFlags{}); err != nil {
		return err
	}
	var err error
	if f.checks.Endpoint, err = f.http.endpoint(nil, f.limits.timeout); err != nil {
		return err
	}
	f.checks.ClientID, f.checks.ClientSecret = f.http.login.client, os.Getenv(f.http.login.clientSecret)
	o := f.judging()
	if o.Expected, err = f.verdict.expected(); err != nil {
		return err
	}
	o.Budget, o.Timeout, o.RunTimeout = f.families.budget(), f.limits.timeout, f.limits.run
	o.Redactor, o.Target.URL = f.checks.Endpoint.Redactor, f.checks.Endpoint.String()
	o.Progress, o.Ginkgo = f.reports.progress(), true
	run, trace, err := suites.Run(cmd.Context(), f.checks, o)
	if err != nil {
		return err
	}
	return f.reports.write(os.Stdout, run, trace)
}
