package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/cmd/mcpconform/internal/config"
	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/script"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

// clientFlags are those of a run against a client.
type clientFlags struct {
	reports    reportFlags
	transport  string
	scenarios  []string
	scripts    []string
	selection  suites.Selection
	timeout    time.Duration
	parallel   int
	strict     bool
	expected   string
	list       bool
	authorizes bool
	serve      bool
	servers    string
	env        runFlags // its environment only
}

func clientCommand() *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use:   "client [flags] [-- COMMAND [ARG...]]",
		Short: "Test a client; without a target, the embedded reference client",
		Long: `Starts a server for each scenario and launches the client against it.

Over HTTP, {url} in the arguments is replaced by the server's URL, or the URL is
appended. Over stdio, {command} is replaced by the command that starts the
server: an argument that is {command} alone by the command's words, as separate
arguments, any other by the words joined by blanks; {config} is the path of an
mcpServers file that names the command. Without either, the words are appended.

The environment of the client holds MCPCONFORM_URL, MCPCONFORM_COMMAND,
MCPCONFORM_SCENARIO, MCPCONFORM_TRANSPORT, MCPCONFORM_ACT (how to act where a
person would decide) and, for clients that were written for the official
conformance tool, MCP_CONFORMANCE_SCENARIO and MCP_CONFORMANCE_PROTOCOL_VERSION.

With --serve nothing is launched: the scenarios wait for a client that a person
connects, and the run ends with Ctrl-C.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.list {
				return f.listScenarios(cmd.OutOrStdout())
			}
			o, err := f.options(args)
			if err != nil {
				return err
			}
			if err := f.reports.check(); err != nil {
				return err
			}
			if f.serve {
				o.Announce = func(places []client.Place) { f.announce(cmd.ErrOrStderr(), places) }
			} else {
				o.Progress = f.reports.progress()
			}
			o.Ginkgo = true
			run, trace, err := suites.Run(cmd.Context(), o.ClientScenarios, o.Options)
			if err != nil {
				return err
			}
			return f.reports.write(run, trace)
		},
	}
	f.reports.register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.transport, "transport", "", "http, stdio or sse (default: stdio if the arguments hold {command} or {config}, else http)")
	flags.StringSliceVar(&f.scenarios, "scenario", nil, "only the scenario `NAME` beside the baseline: a name or glob, repeatable")
	flags.StringArrayVar(&f.scripts, "scripts", nil, "play the scripts in the folder `DIR` as well (docs/scripts.md), repeatable")
	flags.BoolVar(&f.serve, "serve", false, "launch nothing: let the scenarios wait for clients that you connect, until Ctrl-C")
	flags.StringVar(&f.servers, "servers", "", "with --serve, write the scenarios as an mcpServers `FILE`")
	flags.BoolVar(&f.list, "list-scenarios", false, "list the scenarios and end")
	registerSelection(cmd, &f.selection)
	flags.DurationVar(&f.timeout, "timeout", client.DefaultTimeout, "how long the client may take in one scenario")
	flags.IntVar(&f.parallel, "parallel", 0, "clients at a time (0: twice the processors)")
	flags.BoolVar(&f.strict, "strict", false, "a broken SHOULD makes the client not conformant")
	flags.BoolVar(&f.authorizes, "authorizes", false, "the client is meant to seek authorization where a server wants it: that it does not is held against it")
	flags.StringVar(&f.expected, "expected-failures", "", "failures listed in `FILE` do not count, as long as they fail")
	flags.StringArrayVar(&f.env.env, "env", nil, "environment variable of the client, `NAME=value` or NAME to pass ours on, repeatable")
	flags.BoolVar(&f.env.cleanEnv, "clean-env", false, "give the client only PATH, HOME and what --env names")
	flags.StringVar(&f.env.dir, "cwd", "", "working directory of the client")
	return cmd
}

// announce tells a person where the scenarios are and what to do.
func (f *clientFlags) announce(w io.Writer, places []client.Place) {
	named := make(map[string]client.Place, len(places))
	var acts []client.Place
	fmt.Fprintln(w, "Connect the client to each of these servers, or to those that matter, and use what is there: list, call, read.")
	fmt.Fprintln(w, "Then disconnect, or leave it, and press Ctrl-C here: the report follows.")
	fmt.Fprintln(w)
	for _, p := range places {
		named["mcpconform-"+strings.ReplaceAll(p.Scenario, "/", "-")] = p
		at := p.URL
		if len(p.Command) > 0 {
			at = strings.Join(p.Command, " ")
		}
		fmt.Fprintf(w, "  %-30s %s\n", p.Scenario, at)
		if p.ClientID != "" {
			fmt.Fprintf(w, "  %-30s with the client id %s and the client secret %s\n", "", p.ClientID, p.ClientSecret)
		}
		if p.Act != "" {
			acts = append(acts, p)
		}
	}
	if len(acts) > 0 {
		fmt.Fprintln(w, "\nSome want you to act, in this order, where the client asks you or lets you:")
		for _, p := range acts {
			fmt.Fprintf(w, "  %-30s %s\n", p.Scenario, p.Act)
		}
	}
	fmt.Fprintln(w)
	if f.servers == "" {
		return
	}
	if err := writeFile(f.servers, func(w io.Writer) error {
		text, err := client.Config(named)
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	}); err != nil {
		fmt.Fprintln(os.Stderr, "mcpconform: "+err.Error())
	}
}

// available returns all scenarios: those that are built in, and those that play
// the user's scripts.
func available(scripts []*script.Script) ([]*client.Scenario, error) {
	scripted, err := suites.ScriptScenarios(scripts)
	if err != nil {
		return nil, fmt.Errorf("--scripts: %w", err)
	}
	return append(client.Scenarios(), scripted...), nil
}

func (f *clientFlags) listScenarios(w io.Writer) error {
	scripts, err := readScripts(f.scripts, wire.Client)
	if err != nil {
		return err
	}
	scenarios, err := available(scripts)
	if err != nil {
		return err
	}
	for _, s := range scenarios {
		on := "all transports"
		if len(s.Transports) > 0 {
			on = strings.Join(s.Transports, ", ")
		}
		if _, err := fmt.Fprintf(w, "%-26s %-16s %d requirements\n", s.Name, on, len(s.Requirements)); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w, "%-26s %-16s with each fault that mcpconform mock --list shows; played only when --scenario names it\n", client.FaultPrefix+"ID", "")
	return err
}

// clientRun is what a run of a client needs.
type clientRun struct {
	suites.Options
	suites.ClientScenarios
}

func (f *clientFlags) options(args []string) (clientRun, error) {
	scripts, err := readScripts(f.scripts, wire.Client)
	if err != nil {
		return clientRun{}, err
	}
	o := clientRun{
		Options: suites.Options{
			Selection: f.selection, Scripts: scripts, Timeout: f.timeout, Parallel: f.parallel, Strict: f.strict,
			Tool: result.Tool{Name: "mcpconform", Version: version()}, Target: result.Target{Command: args}, Redactor: newRedactor(nil, args),
		},
		ClientScenarios: suites.ClientScenarios{Transport: f.transport, Scenarios: f.scenarios, Authorizes: f.authorizes},
	}
	if f.timeout <= 0 {
		return o, errors.New("--timeout has to be longer than nothing")
	}
	if f.parallel < 0 {
		return o, errors.New("--parallel is less than nothing; 0 leaves it to mcpconform")
	}
	if _, err := concerned(f.selection, []wire.Party{wire.Client}, suites.OwnRequirements(scripts, wire.Client)...); err != nil {
		return o, err
	}
	scenarios, err := available(scripts)
	if err != nil {
		return o, err
	}
	scenarios = append(scenarios, client.Faulty()...)
	for _, name := range f.scenarios {
		if !slices.ContainsFunc(scenarios, func(s *client.Scenario) bool { return s.Named(name) }) {
			return o, fmt.Errorf("--scenario %q: there is none of that name; --list-scenarios shows all", name)
		}
	}
	if f.expected != "" {
		entries, err := config.LoadExpected(f.expected)
		if err != nil {
			return o, fmt.Errorf("--expected-failures: %w", err)
		}
		o.Expected = entries
	}
	switch o.Transport {
	case "":
		o.Transport = transport.NameHTTP
		if slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "{command}") || strings.Contains(a, "{config}") }) {
			o.Transport = transport.NameStdio
		}
	case transport.NameHTTP, transport.NameStdio, transport.NameSSE:
	default:
		return o, fmt.Errorf("--transport is %q; it takes http, stdio or sse", f.transport)
	}
	self, err := os.Executable()
	if err != nil {
		return o, fmt.Errorf("find out how this program is called: %w", err)
	}
	o.Bridge = []string{self, bridgeName}
	switch {
	case f.serve && len(args) > 0:
		return o, errors.New("--serve takes no command: it launches nothing")
	case f.servers != "" && !f.serve:
		return o, errors.New("--servers is for --serve")
	case f.serve:
		o.Target.Command = nil
		return o, nil
	}
	if len(args) == 0 {
		o.Target.Command = []string{"(embedded reference client)"}
		if o.Transport == transport.NameStdio {
			// Signals can be sent to a process only.
			own := []string{self, "reference", "client", "--quiet", "--timeout", (f.timeout / 6).String(), "--", "{command}"}
			o.Launch = client.Command{Args: own}.Launch
			return o, nil
		}
		o.Launch = func(p client.Place) (transport.Process, error) {
			return suites.ReferenceClient(p, f.timeout/6).Launch()
		}
		return o, nil
	}
	env, err := f.env.environment()
	if err != nil {
		return o, err
	}
	o.Redactor.AddEnv(env...)
	o.Launch = client.Command{Args: args, Dir: f.env.dir, Env: env, Given: f.given(), Browser: self + " " + browseName + " %s"}.Launch
	return o, nil
}

// given returns the names of the variables that the user has set for the client.
func (f *clientFlags) given() []string {
	var names []string
	for _, e := range f.env.env {
		name, _, _ := strings.Cut(e, "=")
		names = append(names, name)
	}
	return names
}

// Names of commands that clients under test call.
const (
	bridgeName = "bridge"
	browseName = "browse"
)

// bridgeCommand is the server process of a client over stdio.
func bridgeCommand() *cobra.Command {
	return &cobra.Command{
		Use: bridgeName + " ADDR TOKEN", Short: "Connect a client over stdio to the run that has started it", Hidden: true,
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			// Not the command's context: it ends with a signal, which is for
			// the run to see and to react to.
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
		Use: browseName + " URL", Short: "Visit a page in the place of a user who grants everything", Hidden: true,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return client.Browse(cmd.Context(), args[0]) },
	}
}

// standaloneFlags are those of a client that runs by itself.
type standaloneFlags struct {
	client reference.Standalone
	quiet  bool
	over   string
}

func (f *standaloneFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.DurationVar(&f.client.Timeout, "timeout", reference.DefaultTimeout, "how long one answer may take")
	flags.StringVar(&f.client.Act, "act", os.Getenv("MCPCONFORM_ACT"), "how to decide where a person would (default: $MCPCONFORM_ACT)")
	flags.StringVar(&f.over, "transport", "auto", "transport at the URL: auto or sse (HTTP+SSE)")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing but errors")
}

// run takes the client, with what changes it, to the server that the arguments name.
func (f *standaloneFlags) run(cmd *cobra.Command, args []string, changes ...func(*reference.Standalone)) error {
	c := f.client
	if !f.quiet {
		c.Output = cmd.OutOrStdout()
	}
	if strings.HasPrefix(args[0], "http://") || strings.HasPrefix(args[0], "https://") {
		if len(args) > 1 {
			return errors.New("a URL takes no further arguments")
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
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("reference client takes a server: its URL, or a COMMAND after --")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.register(cmd)
	return cmd
}

// referenceCommand holds the reference peers as programs of their own.
func referenceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "reference", Short: "Run a reference peer by itself",
		Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(referenceServerCommand(), referenceClientCommand())
	return cmd
}
