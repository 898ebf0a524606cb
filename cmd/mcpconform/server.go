package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/cmd/mcpconform/internal/config"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/expected"
	"github.com/mcpconform/mcpconform/suites/result"
)

// serverFlags are those of a run against a server, and what the configuration
// says beside them.
type serverFlags struct {
	runFlags
	config    configFlags
	http      httpFlags
	callTools string
	protected bool
	fleet     fleetFlags

	settings check.Settings
	bytes    wire.Limits
	expected []expected.Entry
}

func (f *serverFlags) register(cmd *cobra.Command) {
	f.runFlags.register(cmd, wire.Server)
	f.config.register(cmd, "read the configuration from `FILE` (default: "+config.DefaultFile+", if it exists)")
	f.registerTarget(cmd)
	f.http.login.register(cmd)
	flags := cmd.Flags()
	choose(cmd, &f.callTools, "call-tools", string(check.CallSafe), "which tools may be called",
		string(check.CallNone)+"\tno tool", string(check.CallSafe)+
			"\ttools that are annotated read-only, or named in the configuration", string(check.CallAll)+"\tevery tool")
	flags.BoolVar(&f.fleet.all, "all", false,
		"test all servers of the --from file; {server} in the names of reports is the name of the server")
	flags.IntVar(&f.fleet.jobs, "jobs", 0,
		"with --all, how many servers are tested at a time (default: the number of processors)")
	flags.BoolVar(&f.protected, "protected", false,
		"the server requires an access token of everybody; serving a request without one is a failure")
}

// registerTarget declares the flags that say how a server is reached, and how fast it is.
func (f *serverFlags) registerTarget(cmd *cobra.Command) {
	f.limits.registerTimeout(cmd, answerTimeout, answerUsage)
	f.http.register(cmd)
	cmd.Flags().DurationVar(&f.limits.start, "start-timeout", 0,
		"how long the server may take to start: over stdio until it answers initialize, with --start until it "+
			"accepts connections (default: three times --timeout)")
	cmd.Flags().StringVar(&f.http.bridge, "transport-command", "",
		"reach a server over a custom transport through the shell `COMMAND`, which passes messages on as lines "+
			"of its stdin and stdout; {url} in it is --url")
}

func serverCommand() *cobra.Command {
	var f serverFlags
	cmd := &cobra.Command{
		Use:   "server [flags] [-- COMMAND [ARG...]]",
		Short: "Test a server; without a target, the embedded reference server",
		Long: `Tests a server over stdio, which COMMAND starts, or a server over HTTP or WebSocket at --url.
A server over any other transport is reached through a program, --transport-command.
Flags that are not given are taken from mcpconform.yaml, if that file exists.

` + exitCodes,
		Example: `  mcpconform server -- npx -y @modelcontextprotocol/server-everything
  mcpconform server --url https://mcp.example/mcp --bearer-env TOKEN --html report.html
  mcpconform server --start "./my-server --port {port}" --url http://localhost:{port}/mcp
  mcpconform server --url ws://localhost:8080/mcp
  mcpconform server --transport-command "nc localhost 9000"
  mcpconform server --from ~/.cursor/mcp.json --name my-server --select MUST
  mcpconform server --from ~/.cursor/mcp.json --all --html 'reports/{server}.html'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.checkFleet(cmd, args); err != nil {
				return err
			}
			if f.fleet.all {
				return f.testAll(cmd)
			}
			args, err := f.configure(cmd, args)
			if err != nil {
				return err
			}
			_, run, trace, err := f.test(cmd.Context(), args)
			if err != nil {
				return err
			}
			return f.reports.write(os.Stdout, run, trace)
		},
	}
	f.register(cmd)
	return cmd
}

// test tests the server that the flags or a command name.
func (f *serverFlags) test(ctx context.Context, args []string) (serverOptions, *result.Run, *wire.Trace, error) {
	o, err := f.options()
	if err != nil {
		return o, nil, nil, err
	}
	if err := f.reports.checkRun(wire.Server, f.shard); err != nil {
		return o, nil, nil, err
	}
	stop, err := f.target(ctx, &o, args)
	if err != nil {
		return o, nil, nil, err
	}
	o.Progress = f.reports.progress()
	o.Ginkgo = true
	run, trace, err := suites.Run(ctx, o.ServerChecks, o.Options)
	stop()
	return o, run, trace, err
}

// serverOptions are those of a run of a server.
type serverOptions struct {
	suites.Options
	suites.ServerChecks
}

// options returns all but the target.
func (f *serverFlags) options() (serverOptions, error) {
	if err := f.limits.check(); err != nil {
		return serverOptions{}, err
	}
	scripts, err := f.scripts.read(wire.Server)
	if err != nil {
		return serverOptions{}, err
	}
	if _, err := f.selection.parties([]wire.Party{wire.Server},
		suites.OwnRequirements(scripts, wire.Server)...); err != nil {
		return serverOptions{}, err
	}
	redactor := newRedactor(nil, nil)
	redactor.Add(f.settings.Secrets...) // also for what is said before a run
	settings := f.settings
	settings.CallTools, settings.GivesUpAfter = check.CallMode(f.callTools), f.limits.givesUp
	o := f.running(scripts)
	o.Redactor, o.Expected, o.Limits = redactor, f.expected, f.bytes
	return serverOptions{o, suites.ServerChecks{Settings: settings, StartTimeout: f.limits.startTime()}}, nil
}

// embeddedTime is how long the embedded reference server awaits an answer. No user has to state it.
const embeddedTime = time.Second

// target makes the server that the flags or a command name the run's target. The
// function that it returns stops what was started for the whole run.
func (f *serverFlags) target(ctx context.Context, o *serverOptions, args []string) (stop func(), err error) {
	if !f.http.given() && len(args) == 0 {
		if i, err := f.stdio.isolation(); err != nil || i.Any() {
			return nil, cmp.Or(err, errNothingLaunched)
		}
		o.Settings.GivesUpAfter = cmp.Or(o.Settings.GivesUpAfter, embeddedTime)
		embedded := server.New(server.Options{CallTimeout: o.Settings.GivesUpAfter})
		o.Dialer = &transport.Stdio{Launcher: transport.Func{Name: "the embedded reference server",
			Run: embedded.RunStdio}}
		o.Settings.CallTools = check.CallAll
		o.Target.Command = []string{"(embedded reference server)"}
		return func() {}, nil
	}
	if len(args) > 0 && isURL(args[0]) {
		return nil, errors.New("COMMAND is a URL; to test a server at a URL, give --url URL")
	}
	command, err := f.stdio.command(args)
	if err != nil {
		return nil, err
	}
	if f.http.bridge != "" {
		return func() {}, f.http.bridged(o, args, command)
	}
	if f.http.given() {
		return f.http.target(ctx, o, args, command)
	}
	o.Dialer = &transport.Stdio{Launcher: command}
	o.Target.Command = slices.Clone(args)
	o.Secrets(o.Redactor)
	return func() {}, nil
}
