package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/cmd/mcpconform/internal/config"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// stdioFlags say how a target that is a program is launched.
type stdioFlags struct {
	env      []string
	cleanEnv bool
	dir      string

	sandbox   bool
	writable  []string
	memory    config.Size
	processes int
}

// register declares the flags for a party.
func (f *stdioFlags) register(cmd *cobra.Command, p wire.Party) {
	flags, party := cmd.Flags(), string(p)
	flags.StringArrayVar(&f.env, "env", nil, "set an environment variable of the "+party+
		", `NAME=value`, or pass ours on, NAME; repeatable")
	flags.BoolVar(&f.cleanEnv, "clean-env", false, "give the "+party+" only PATH, HOME and what --env names")
	flags.StringVar(&f.dir, "cwd", "", "start the "+party+" in the folder `DIR`")
	flags.BoolVar(&f.sandbox, "sandbox", false, "start the "+party+
		" in a sandbox (Linux, with bubblewrap): all folders read-only but empty temporary ones, and over stdio "+
		"no network")
	flags.StringArrayVar(&f.writable, "sandbox-write", nil,
		"with --sandbox, let the "+party+" write to the folder `DIR`, repeatable")
	flags.Var(&f.memory, "target-memory", "end the "+party+
		" when its processes hold more memory than `SIZE`, such as 512M (Linux)")
	flags.IntVar(&f.processes, "target-processes", 0, "end the "+party+" when it has more than `N` processes (Linux)")
}

// command returns how the program is launched. An environment that is nil is ours.
func (f *stdioFlags) command(args []string) (transport.Command, error) {
	env, err := f.environment()
	if err != nil {
		return transport.Command{}, err
	}
	isolation, err := f.isolation()
	return transport.Command{Args: args, Dir: f.dir, Env: env, Isolation: isolation}, err
}

// isolation returns the isolation of the program. It fails on a machine that lacks the means.
func (f *stdioFlags) isolation() (transport.Isolation, error) {
	i := transport.Isolation{Sandbox: f.sandbox, Memory: int64(f.memory), Processes: f.processes}
	switch {
	case f.processes < 0:
		return i, errors.New("--target-processes must be greater than 0")
	case len(f.writable) > 0 && !f.sandbox:
		return i, errors.New("--sandbox-write needs --sandbox; without it, nothing is kept from being written")
	}
	for _, folder := range f.writable {
		path, err := filepath.Abs(folder)
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		if err != nil {
			return i, fmt.Errorf("--sandbox-write: %w", err)
		}
		i.Writable = append(i.Writable, path)
	}
	if err := i.Check(); err != nil {
		flag := "--sandbox"
		if !f.sandbox {
			flag = "--target-memory, --target-processes"
		}
		return i, fmt.Errorf("%s: %w", flag, err)
	}
	return i, nil
}

// errNothingLaunched is the fault of isolating what runs already, or runs within this program.
var errNothingLaunched = errors.New("--sandbox, --target-memory and --target-processes are for what mcpconform " +
	"starts; give COMMAND, or --start with --url")

func (f *stdioFlags) environment() ([]string, error) {
	if !f.cleanEnv && len(f.env) == 0 {
		return nil, nil
	}
	var env []string
	if f.cleanEnv {
		for _, name := range []string{"PATH", "HOME", "SystemRoot"} {
			if v, ok := os.LookupEnv(name); ok {
				env = append(env, name+"="+v)
			}
		}
	} else {
		env = os.Environ()
	}
	for _, e := range f.env {
		name, _, given := strings.Cut(e, "=")
		switch v, ok := os.LookupEnv(name); {
		case given:
			env = append(env, e)
		case ok:
			env = append(env, name+"="+v)
		case !transport.IsVariable(name):
			return nil, errors.New("--env: the text is neither NAME=value nor the name of a variable")
		default:
			return nil, fmt.Errorf("--env %s: our environment has no variable of this name; NAME=value sets one", e)
		}
	}
	return env, nil
}

// httpFlags name a server that is reached over HTTP.
type httpFlags struct {
	url, transport string
	headers        []string
	bearerEnv      string
	login          loginFlags
	tls            transport.TLSOptions
	socket         string
	start          string
	bridge         string // shell command of a bridge to a custom transport
}

func (f *httpFlags) register(cmd *cobra.Command) {
	f.registerAddress(cmd,
		"`URL` of a server over HTTP: http, https or unix:///path/to.sock?path=/mcp; or over WebSocket: ws or wss")
	flags := cmd.Flags()
	choose(cmd, &f.transport, "transport", transportAuto, "transport at the URL",
		transportAuto+"\tfound out", transport.NameHTTP+"\tStreamable HTTP", transport.NameSSE+"\tthe older HTTP+SSE")
	flags.StringVar(&f.bearerEnv, "bearer-env", "", "send the bearer token in the environment variable `VAR`")
	flags.StringVar(&f.start, "start", "",
		"start the server with the shell `COMMAND` and stop it after the run; {port} in COMMAND and URL is a free port")
}

// registerAddress declares the flags that say where a party over HTTP is, and how it is reached.
func (f *httpFlags) registerAddress(cmd *cobra.Command, usage string) {
	flags := cmd.Flags()
	flags.StringVar(&f.url, "url", "", usage)
	flags.StringArrayVar(&f.headers, "header", nil,
		"send the header `'Name: value'` with every HTTP request, repeatable; reports do not show it")
	flags.BoolVar(&f.tls.Insecure, "insecure", false, "accept any TLS certificate")
	flags.StringVar(&f.tls.CAFile, "cacert", "", "trust the certificates in `FILE` (PEM) as well")
	flags.StringVar(&f.tls.CertFile, "cert", "", "show the client certificate in `FILE` (PEM)")
	flags.StringVar(&f.tls.KeyFile, "key", "", "use the key in `FILE` (PEM) for the client certificate")
	flags.StringVar(&f.socket, "unix-socket", "", "connect to the Unix socket `PATH`, whatever host the URL names")
}

// urlPlaceholder stands for --url in a transport command.
const urlPlaceholder = "{url}"

// bridged makes a server behind a transport command the run's target.
func (f *httpFlags) bridged(o *serverOptions, args []string, command transport.Command) error {
	rest := *f
	rest.url, rest.bridge = "", ""
	named := strings.Contains(f.bridge, urlPlaceholder)
	switch {
	case len(args) > 0:
		return errors.New("give either COMMAND (a server over stdio) or --transport-command (a program that " +
			"connects to a server)")
	case rest.given():
		return errors.New("--transport-command makes the connection itself; --start, --transport, --header, " +
			"--bearer-env, --unix-socket and the flags for TLS cannot be given with it")
	case f.url != "" && !named:
		return errors.New("--transport-command does not use --url; write {url} in it where the URL belongs, " +
			"or leave --url out")
	case f.url == "" && named:
		return errors.New("--transport-command contains {url}, which stands for --url; --url is missing")
	}
	command.Isolation.Network = true
	line := strings.ReplaceAll(f.bridge, urlPlaceholder, transport.ShellQuote(f.url))
	command.Args = transport.Shell(line)
	o.Redactor.AddEnv(command.Env...)
	o.Redactor.AddArgs(line)
	o.Target.Command = []string{o.Redactor.String(line)}
	if f.url != "" { // which may be in any form
		o.Redactor.AddArgs(f.url)
	}
	o.Target.URL = o.Redactor.String(f.url)
	o.Dialer = &transport.Stdio{Launcher: command, Bridge: true}
	o.Secrets(o.Redactor)
	return nil
}

// transportAuto has the transport found out.
const transportAuto = "auto"

// given reports whether any flag asks for a target over HTTP.
func (f *httpFlags) given() bool {
	return f.url != "" || f.start != "" || f.bridge != "" || f.socket != "" || len(f.headers) > 0 ||
		f.bearerEnv != "" ||
		f.tls != (transport.TLSOptions{}) || f.transport != transportAuto && f.transport != ""
}

// isURL reports whether an argument is a URL at which a server may be, and no program.
func isURL(arg string) bool {
	scheme, _, found := strings.Cut(arg, "://")
	return found && slices.Contains([]string{"http", "https", "ws", "wss"}, strings.ToLower(scheme))
}

// endpoint returns what the flags say of the server.
func (f *httpFlags) endpoint(args []string, timeout time.Duration) (transport.Endpoint, error) {
	e := transport.Endpoint{URL: f.url, Header: make(http.Header), Socket: f.socket, Timeout: timeout}
	switch {
	case len(args) > 0 && f.url == "" && f.start == "":
		return e,
			errors.New("COMMAND starts a server over stdio; --header, --bearer-env, --transport, --unix-socket " +
				"and the flags for TLS need a server over HTTP (--url)")
	case len(args) > 0:
		return e,
			errors.New("give either COMMAND (a server over stdio) or --url (a server over HTTP); --start COMMAND " +
				"starts a server over HTTP")
	case f.url == "":
		return e, errors.New("--url is missing; it says where the server over HTTP is")
	}
	if f.transport != "" && f.transport != transportAuto && transport.IsWebSocket(f.url) {
		return e, fmt.Errorf("--transport is %q, but the URL is that of a WebSocket; leave --transport out",
			f.transport)
	}
	for _, h := range f.headers {
		if err := transport.AddHeader(e.Header, h); err != nil {
			return e, fmt.Errorf("--header: %w", err)
		}
	}
	if f.bearerEnv != "" {
		token, err := transport.BearerFrom(f.bearerEnv)
		if err != nil {
			return e, fmt.Errorf("--bearer-env: %w", err)
		}
		e.Token = token
	}
	if err := f.login.check(); err != nil {
		return e, err
	}
	if f.tls.KeyFile != "" && f.tls.CertFile == "" {
		return e, errors.New("--key needs --cert")
	}
	if f.tls != (transport.TLSOptions{}) {
		config, err := f.tls.Config()
		if err != nil {
			return e, err
		}
		e.TLS = config
	}
	plain := e
	if f.start != "" {
		plain.URL = strings.ReplaceAll(e.URL, transport.PortPlaceholder, "1") // any port: it is known later
	}
	if err := plain.Validate(); err != nil {
		return e, fmt.Errorf("--url: %w", err)
	}
	e.Redactor = transport.NewRedactor(e.Header, plain.URL)
	e.Redactor.AddEnv(os.Environ()...)
	if e.Token != nil {
		e.Redactor.Add(e.Token.Token(context.Background()))
	}
	return e, nil
}

// target makes the server of the flags the run's target. The function that it
// returns stops what was started. A server that cannot be reached is not an
// error here: the run reports it.
func (f *httpFlags) target(ctx context.Context, o *serverOptions, args []string,
	command transport.Command) (stop func(), err error) {
	e, err := f.endpoint(args, o.Timeout)
	if err != nil {
		return nil, err
	}
	if command.Isolation.Any() && f.start == "" {
		return nil, errNothingLaunched
	}
	if o.Limits == (wire.Limits{}) {
		o.Limits = wire.DefaultLimits
	}
	o.Trace, o.Redactor = wire.NewTrace(o.Limits), e.Redactor
	o.Secrets(o.Redactor)
	if token := bearer(e.Authorization(ctx)); token != "" {
		// The access token of the session must not turn up in log messages either.
		o.Settings.Secrets = append(slices.Clip(o.Settings.Secrets), token)
	}
	if !strings.Contains(e.URL, transport.PortPlaceholder) {
		o.Target.URL = e.String()
	}
	name := f.dialer(e).Transport()
	stop = func() {}
	if f.start != "" {
		command.Args, command.Isolation.Network = transport.Shell(f.start), true
		e.Redactor.AddEnv(command.Env...)
		e.Redactor.AddArgs(f.start)
		o.Target.Command = []string{e.Redactor.String(f.start)}
		server, err := transport.Start{
			Command: command, Endpoint: e, Wait: o.StartTimeout, Log: o.Trace.Connect(name, "server process"),
		}.Run(ctx)
		if err != nil {
			o.Dialer = unreachable{name, err}
			return stop, nil
		}
		stop = func() { server.Stop(ctx) }
		o.Restart = func(ctx context.Context) error {
			again, err := server.Restart(ctx, o.Trace.Connect(name, "server process"))
			if err == nil {
				server = again
			}
			return err
		}
		e = server.Endpoint
		o.Target.URL = e.String()
	}
	o.Dialer = f.dialer(e)
	o.Login = f.login.login()
	return stop, nil
}

// bearer returns the access token in the value of an Authorization header, or "".
func bearer(value string) string {
	kind, token, _ := strings.Cut(strings.TrimSpace(value), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(kind, "Bearer") || len(token) < shortestToken {
		return ""
	}
	return token
}

// shortestToken is the length from which on an access token is told from other text.
const shortestToken = 16

func (f *httpFlags) dialer(e transport.Endpoint) transport.Dialer {
	if transport.IsWebSocket(e.URL) {
		return &transport.WebSocket{Endpoint: e}
	}
	if f.transport == transport.NameSSE {
		return &transport.SSE{Endpoint: e}
	}
	return &transport.HTTP{Endpoint: e, OrOlder: f.transport != transport.NameHTTP}
}

// unreachable is a target that could not be started or reached.
type unreachable struct {
	transport string
	err       error
}

func (u unreachable) Transport() string { return u.transport }

// Dial fails as it did before.
func (u unreachable) Dial(_ context.Context, log *wire.Log) (transport.Conn, error) {
	log.Note(u.err.Error())
	log.End()
	return nil, u.err
}
