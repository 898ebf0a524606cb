package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/reference/script"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

// clientFlags are those of a run against a client.
type clientFlags struct {
	runFlags
	transport  string
	bridge     string
	scenarios  []string
	list       bool
	authorizes bool
	serve      bool
	servers    string
}

func (f *clientFlags) register(cmd *cobra.Command) {
	f.runFlags.register(cmd, wire.Client)
	f.limits.registerTimeout(cmd, client.DefaultTimeout, "how long the client may take in one scenario")
	flags := cmd.Flags()
	choose(cmd, &f.transport, "transport", "",
		"transport (default: stdio if the arguments contain {command} or {config}, else http)",
		transport.NameHTTP+"\tStreamable HTTP", transport.NameStdio+"\tthe client starts its server",
		transport.NameSSE+"\tthe older HTTP+SSE", transportWS+"\tWebSocket, a custom transport")
	flags.StringVar(&f.bridge, "transport-command", "",
		"serve the client over a custom transport with the shell `COMMAND`, which passes messages on as lines "+
			"of its stdin and stdout")
	flags.StringSliceVar(&f.scenarios, "scenario", nil,
		"besides the baseline, run only the scenario `NAME`: a name or glob, repeatable")
	flags.BoolVar(&f.serve, "serve", false, "launch nothing; wait for clients that you connect, until Ctrl-C")
	flags.StringVar(&f.servers, "servers", "", "with --serve, list the scenarios in the mcpServers file `FILE`")
	flags.BoolVar(&f.list, "list-scenarios", false, "list the scenarios and exit")
	flags.BoolVar(&f.authorizes, "authorizes", false,
		"the client obtains authorization where a server requires it; not obtaining it is a failure")
}

func clientCommand() *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use:   "client [flags] [-- COMMAND [ARG...]]",
		Short: "Test a client; without a target, the embedded reference client",
		Long: `Starts a server for each scenario and launches the client against it.

Over HTTP, {url} in the arguments is replaced by the server's URL; without {url}, the URL
is appended. Over WebSocket the same holds. Over stdio, {command} is replaced by the command that starts the server: an
argument that is just {command} becomes the command's words as separate arguments; within a
longer argument, the words are joined by blanks. {config} is the path of an mcpServers file
that names the command. Without either, the words are appended.

The environment of the client holds MCPCONFORM_URL, MCPCONFORM_COMMAND,
MCPCONFORM_SCENARIO, MCPCONFORM_TRANSPORT, MCPCONFORM_ACT (the user actions: what to do where
a user would decide) and, for clients written for the official conformance tool,
MCP_CONFORMANCE_SCENARIO and MCP_CONFORMANCE_PROTOCOL_VERSION.

With --transport-command, a program of yours serves the client over a transport of your
own: it passes on what the client sends as lines of its stdout, and sends the lines of its
stdin. {port} in it, and in the arguments of the client, is a free port. It is started for
each scenario, and again for a client that connects again. The client is launched when it
has written a line to stderr, or after two seconds.

With --serve, nothing is launched: the scenarios wait for a client that a person connects,
and Ctrl-C ends the run.

` + exitCodes,
		Example: `  mcpconform client -- node my-client.js {url}
  mcpconform client --transport stdio -- ./my-client --server {config}
  mcpconform client --scenario "exchange/*" --env API_KEY -- ./my-client
  mcpconform client --transport ws -- ./my-client {url}
  mcpconform client --transport-command "nc -l 127.0.0.1 {port}" -- ./my-client --port {port}
  mcpconform client --serve --servers servers.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.list {
				return f.listScenarios(cmd.OutOrStdout())
			}
			_, run, trace, err := f.test(cmd, args)
			if err != nil {
				return err
			}
			return f.reports.write(os.Stdout, run, trace)
		},
	}
	f.register(cmd)
	return cmd
}

// test tests the client that a command names.
func (f *clientFlags) test(cmd *cobra.Command, args []string) (clientOptions, *result.Run, *wire.Trace, error) {
	o, err := f.options(args)
	if err != nil {
		return o, nil, nil, err
	}
	if err := f.reports.checkRun(wire.Client, f.shard); err != nil {
		return o, nil, nil, err
	}
	if f.serve {
		o.Announce = func(endpoints []client.Endpoint) { f.announce(cmd.ErrOrStderr(), endpoints) }
	} else {
		o.Progress = f.reports.progress()
	}
	o.Ginkgo = true
	run, trace, err := suites.Run(cmd.Context(), o.ClientScenarios, o.Options)
	return o, run, trace, err
}

// announce tells a person where the endpoints of the scenarios are and what to do.
func (f *clientFlags) announce(w io.Writer, endpoints []client.Endpoint) {
	named := make(map[string]client.Endpoint, len(endpoints))
	var instructed []client.Endpoint
	fmt.Fprintln(w,
		"Connect the client to all of these servers or to those that matter, and use what they offer: list, "+
			"call, read.")
	fmt.Fprintln(w, "Then disconnect the client, or leave it connected, and press Ctrl-C here to get the report.")
	fmt.Fprintln(w)
	for _, p := range endpoints {
		named["mcpconform-"+strings.ReplaceAll(p.Scenario, "/", "-")] = p
		at := p.URL
		if len(p.Command) > 0 {
			at = strings.Join(p.Command, " ")
		}
		fmt.Fprintf(w, "  %-30s %s\n", p.Scenario, at)
		if p.ClientID != "" {
			fmt.Fprintf(w, "  %-30s client id %s, client secret %s\n", "", p.ClientID, p.ClientSecret)
		}
		if p.UserActions != "" {
			instructed = append(instructed, p)
		}
	}
	if len(instructed) > 0 {
		fmt.Fprintln(w,
			"\nIn these scenarios, perform the user actions in this order when the client asks you or lets you:")
		for _, p := range instructed {
			fmt.Fprintf(w, "  %-30s %s\n", p.Scenario, p.UserActions)
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
		fmt.Fprintln(w, "mcpconform: "+err.Error())
	}
}

// available returns all scenarios: those that are built in, and those that run
// the user's scripts.
func available(scripts []*script.Script) ([]*client.Scenario, error) {
	scenarios, err := suites.OrdinaryScenarios(scripts)
	if err != nil {
		return nil, fmt.Errorf("--scripts: %w", err)
	}
	return scenarios, nil
}

func (f *clientFlags) listScenarios(w io.Writer) error {
	scripts, err := f.scripts.read(wire.Client)
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
	_, err = fmt.Fprintf(w,
		"%-26s %-16s a server with one of the faults that mcpconform mock --list shows; run only if --scenario "+
			"names it\n",
		client.FaultPrefix+"ID", "")
	return err
}

// clientOptions are those of a run of a client.
type clientOptions struct {
	suites.Options
	suites.ClientScenarios
}

// transportWS is WebSocket, the custom transport that is built in.
const transportWS = "ws"

// bridged has the client served through a transport command.
func (f *clientFlags) bridged(o *clientOptions, args []string) error {
	switch {
	case f.transport != "":
		return errors.New("--transport-command is the transport; --transport cannot be given with it")
	case f.serve:
		return errors.New("--serve cannot be given with --transport-command, which serves clients that are launched")
	case len(args) == 0:
		return errors.New("--transport-command needs COMMAND, the client; the embedded reference client does " +
			"not speak other transports")
	case !strings.Contains(f.bridge, transport.PortPlaceholder) &&
		slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, transport.PortPlaceholder) }):
		return errors.New("COMMAND contains {port}, and --transport-command does not; the two have to agree on it")
	}
	o.Transport, o.TransportCommand = transport.NameCustom, transport.Command{Args: transport.Shell(f.bridge)}
	return nil
}

func (f *clientFlags) options(args []string) (clientOptions, error) {
	scripts, err := f.scripts.read(wire.Client)
	if err != nil {
		return clientOptions{}, err
	}
	o := clientOptions{
		f.running(scripts),
		suites.ClientScenarios{Transport: f.transport, Scenarios: f.scenarios, Authorizes: f.authorizes,
			GivesUpAfter: f.limits.givesUp},
	}
	o.Redactor, o.Target.Command = newRedactor(nil, args), args
	if err := f.limits.check(); err != nil {
		return o, err
	}
	if _, err := f.selection.parties([]wire.Party{wire.Client},
		suites.OwnRequirements(scripts, wire.Client)...); err != nil {
		return o, err
	}
	if err := f.known(scripts); err != nil {
		return o, err
	}
	if o.Expected, err = f.verdict.expected(); err != nil {
		return o, err
	}
	o.Transport = transportFor(o.Transport, args)
	if f.bridge != "" {
		if err := f.bridged(&o, args); err != nil {
			return o, err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return o, fmt.Errorf("find the path of this program: %w", err)
	}
	o.Bridge = []string{self, bridgeName}
	switch {
	case f.serve && len(args) > 0:
		return o, errors.New("--serve launches nothing; COMMAND cannot be given with it")
	case f.servers != "" && !f.serve:
		return o, errors.New("--servers needs --serve")
	case f.serve:
		o.Target.Command = nil
		return o, nil
	case len(args) == 0:
		return o, f.embedded(&o, self)
	case isURL(args[0]):
		return o, errors.New("COMMAND is a URL; give the command of a client, or test a server at a URL with " +
			"mcpconform server --url URL")
	}
	return o, f.launched(&o, args, self)
}

// launched sets the launch of a client by its command. self is the path of this program, which is the client's browser.
func (f *clientFlags) launched(o *clientOptions, args []string, self string) error {
	command, err := f.stdio.command(args)
	if err != nil {
		return err
	}
	command.Isolation.Shown = []string{self}
	var given []string // variables that the user has set
	for _, e := range f.stdio.env {
		name, _, _ := strings.Cut(e, "=")
		given = append(given, name)
	}
	o.Redactor.AddEnv(command.Env...)
	o.Launch = client.Command{Args: args, Dir: command.Dir, Env: command.Env, Given: given,
		Browser: self + " " + browseName + " %s", Isolation: command.Isolation}.Launch
	return nil
}

// known returns an error if a scenario that the user names does not exist.
func (f *clientFlags) known(scripts []*script.Script) error {
	scenarios, err := available(scripts)
	if err != nil {
		return err
	}
	scenarios = append(scenarios, suites.FaultScenarios()...)
	for _, name := range f.scenarios {
		if !slices.ContainsFunc(scenarios, func(s *client.Scenario) bool { return s.Named(name) }) {
			return fmt.Errorf("--scenario: no scenario is called %q; the nearest are %s; --list-scenarios lists them",
				name, nearest(name, scenarios, func(s *client.Scenario) string { return s.Name }))
		}
	}
	return nil
}

// transportFor returns the transport that a name, or the placeholders in a command, ask for.
func transportFor(name string, args []string) string {
	launches := func(arg string) bool { return strings.Contains(arg, "{command}") || strings.Contains(arg, "{config}") }
	switch {
	case name == transportWS:
		return transport.NameCustom
	case name != "":
		return name
	case slices.ContainsFunc(args, launches):
		return transport.NameStdio
	}
	return transport.NameHTTP
}

// embedded makes the reference client the target; self is the path of this program.
func (f *clientFlags) embedded(o *clientOptions, self string) error {
	if i, err := f.stdio.isolation(); err != nil || i.Any() {
		return cmp.Or(err, errors.New("--sandbox, --target-memory and --target-processes are for clients that "+
			"mcpconform starts; give COMMAND"))
	}
	o.Target.Command = []string{"(embedded reference client)"}
	patience := f.limits.timeout / 6
	if o.Transport == transport.NameStdio {
		// Only a process can receive signals.
		own := []string{self, "reference", "client", "--quiet", "--timeout", patience.String(), "--", "{command}"}
		o.Launch = client.Command{Args: own}.Launch
		return nil
	}
	o.Launch = func(p client.Endpoint) (transport.Process, error) {
		return suites.ReferenceClient(p, patience).Launch()
	}
	return nil
}
