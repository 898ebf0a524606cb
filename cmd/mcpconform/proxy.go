package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
)

// proxyFlags are those of the proxy.
type proxyFlags struct {
	judgingFlags
	stdio          stdioFlags
	http           httpFlags
	listen, role   string
	stdin          io.Reader
	stdout, stderr io.Writer
}

const roleBoth = "both"

// anyPort is where the proxy listens unless it is told.
const anyPort = "127.0.0.1:0"

func proxyCommand() *cobra.Command {
	var f proxyFlags
	cmd := &cobra.Command{
		Use:   "proxy [flags] [-- COMMAND [ARG...]]",
		Short: "Stand between a real client and a real server, and judge both",
		Long: `Passes on what a client and a server send to each other, and judges both by the passive
rules. It changes nothing but the origin of a protected server over HTTP where that names
itself and its resource metadata: there the client finds the proxy.

With COMMAND, it is a server over stdio: in the client's configuration, name it in the
place of the server, and the server's own command after --. With --url, it listens for
clients over HTTP and passes their requests on until Ctrl-C ends it. If the URL is that of a
WebSocket, it is a server over stdio here too: a line is a message.

The report is printed on stderr. When both parties are judged, each has its own report
files: the party's name stands before the extension. A session that grows beyond the limits
of the record goes on; what was not recorded is not judged.

` + exitCodes + `
The party that is not conformant decides, where two are judged.`,
		Example: `  mcpconform proxy --html report.html -- npx -y my-server
  mcpconform proxy --url https://mcp.example/mcp --listen 127.0.0.1:9000 --role client
  mcpconform proxy --url wss://mcp.example/mcp --html report.html`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.stdin, f.stdout, f.stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			return f.run(cmd.Context(), args)
		},
	}
	f.register(cmd)
	f.stdio.register(cmd, wire.Server)
	f.http.register(cmd)
	cmd.Flags().StringVar(&f.listen, "listen", anyPort, "listen for clients over HTTP at `ADDRESS`")
	f.registerRole(cmd, &f.role, roleBoth, roleBoth)
	return cmd
}

func (f *proxyFlags) run(ctx context.Context, args []string) error {
	parties := []wire.Party{wire.Server, wire.Client}
	if f.role != roleBoth {
		parties = []wire.Party{wire.Party(f.role)}
	}
	parties, err := f.selection.parties(parties)
	if err != nil {
		return err
	}
	entries, err := f.verdict.expected()
	if err != nil {
		return err
	}
	for _, p := range parties {
		reports := f.reportsOn(p, len(parties))
		if err := reports.check(); err != nil {
			return err
		}
	}
	o := f.judging()
	o.Ginkgo, o.Expected, o.Limits = true, entries, wire.DefaultLimits
	switch {
	case f.http.given():
		err = f.relayHTTP(ctx, &o, args)
	case len(args) > 0:
		err = f.relayStdio(ctx, &o, args)
	default:
		err = errors.New("the server is missing; give COMMAND after --, or --url")
	}
	var start *transport.StartError
	if err != nil && !errors.As(err, &start) {
		return err
	}
	if err != nil {
		fmt.Fprintln(guarded(f.stderr), "mcpconform: "+o.Redactor.String(err.Error()))
	}
	return f.judge(context.WithoutCancel(ctx), parties, o)
}

func (f *proxyFlags) relayStdio(ctx context.Context, o *suites.Options, args []string) error {
	command, err := f.stdio.command(args)
	if err != nil {
		return err
	}
	o.Trace, o.Target.Command = relayedTrace(o.Limits), slices.Clone(args)
	o.Redactor = newRedactor(command.Env, args)
	d := &transport.Stdio{Launcher: command}
	return d.RelayStdio(ctx, o.Trace.Connect(transport.NameStdio, "relayed session"), f.stdin, f.stdout,
		guarded(f.stderr))
}

// relayedTrace returns the trace of sessions that may last for days: its limits
// end the record, and never the session.
func relayedTrace(limits wire.Limits) *wire.Trace {
	trace := wire.NewTrace(limits)
	trace.Lossy = true
	return trace
}

// relayHTTP serves clients until the context ends.
func (f *proxyFlags) relayHTTP(ctx context.Context, o *suites.Options, args []string) error {
	if i, err := f.stdio.isolation(); err != nil || i.Any() {
		return cmp.Or(err, errNothingLaunched)
	}
	if f.http.start != "" {
		return errors.New("--start: the proxy cannot start a server over HTTP; start the server first")
	}
	e, err := f.http.endpoint(args, 0)
	if err != nil {
		return err
	}
	o.Trace, o.Redactor, o.Target.URL = relayedTrace(o.Limits), e.Redactor, e.String()
	if transport.IsWebSocket(f.http.url) {
		if f.listen != anyPort {
			return errors.New("--listen cannot be given with the URL of a WebSocket: the proxy is then a server " +
				"over stdio for its client")
		}
		d := &transport.WebSocket{Endpoint: e}
		return d.RelayStdio(ctx, o.Trace.Connect(transport.NameCustom, "relayed session"), f.stdin, f.stdout)
	}
	name := f.http.transport
	if name != transport.NameSSE {
		name = transport.NameHTTP
	}
	relay, err := transport.NewHTTPRelay(e, name, o.Trace)
	if err != nil {
		return err
	}
	defer relay.Close()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	fmt.Fprintln(guarded(f.stderr), "mcpconform: "+invitation(relay.URL(l.Addr().String()), e.Redactor))
	// The connections end before the relay, which a client that stalls would hold up.
	return serveHTTP(ctx, relay, l)
}

// invitation tells where clients find the server: the address is that of the relay,
// all else is the server's own.
func invitation(at string, r *transport.Redactor) string {
	shown := at
	if u, err := url.Parse(at); err == nil {
		shown = r.URL(u)
	}
	text := "clients find the server at " + shown + "; Ctrl-C ends the proxy and prints the report"
	if shown != at {
		text += " (in the place of " + transport.Redacted + ", use what --url has there)"
	}
	return text
}

// judge reports on each party and returns the worst exit code.
func (f *proxyFlags) judge(ctx context.Context, parties []wire.Party, o suites.Options) error {
	code := exitConformant
	for i, party := range parties {
		run, _, err := suites.Run(ctx, suites.Recording{Party: party}, o)
		if err != nil {
			return err
		}
		reports := f.reportsOn(party, len(parties))
		if reports.quiet && len(parties) > 1 {
			fmt.Fprintf(f.stderr, "%s: ", party)
		}
		if i > 0 {
			reports.trace = ""
			if !reports.quiet {
				fmt.Fprintln(f.stderr)
			}
		}
		var exit exitError
		switch err := reports.write(f.stderr, run, o.Trace); {
		case errors.As(err, &exit):
			code = worst(code, int(exit))
		case err != nil:
			return err
		}
	}
	return ended(code)
}

// reportsOn returns the flags for one of the parties: with two parties, the names
// of all reports but the trace have the party in them.
func (f *proxyFlags) reportsOn(party wire.Party, of int) reportFlags {
	reports := f.reports
	if of == 1 {
		return reports
	}
	for _, file := range reports.files() {
		if path := *file.path; path != "" && path != "-" && file.path != &reports.trace {
			ext := filepath.Ext(path)
			*file.path = strings.TrimSuffix(path, ext) + "." + string(party) + ext
		}
	}
	return reports
}
