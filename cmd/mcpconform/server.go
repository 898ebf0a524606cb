package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/reference/script"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// runFlags are shared by all commands that run something.
type runFlags struct {
	reports   reportFlags
	config    configFlags
	selection suites.Selection
	timeout   time.Duration
	parallel  int
	strict    bool
	call      string
	protected bool
	env       []string
	cleanEnv  bool
	dir       string
	scripts   []string
}

func (f *runFlags) register(cmd *cobra.Command) {
	f.reports.register(cmd)
	f.config.register(cmd)
	flags := cmd.Flags()
	registerSelection(cmd, &f.selection)
	flags.DurationVar(&f.timeout, "timeout", 10*time.Second, "how long one answer may take")
	flags.IntVar(&f.parallel, "parallel", 0, "connections of single checks at a time (0: twice the processors, over HTTP 16)")
	flags.BoolVar(&f.strict, "strict", false, "a broken SHOULD makes the target not conformant")
	flags.StringVar(&f.call, "call-tools", "safe", "which tools may be called: none, `safe` or all")
	flags.BoolVar(&f.protected, "protected", false, "the server serves nobody without an access token: that it is open is a fault")
	flags.StringArrayVar(&f.env, "env", nil, "environment variable of the target, `NAME=value` or NAME to pass ours on, repeatable")
	flags.BoolVar(&f.cleanEnv, "clean-env", false, "give the target only PATH, HOME and what --env names")
	flags.StringArrayVar(&f.scripts, "scripts", nil, "play the scripts in the folder `DIR` as well (docs/scripts.md), repeatable")
	flags.StringVar(&f.dir, "cwd", "", "working directory of the target")
}

func serverCommand() *cobra.Command {
	var f runFlags
	var h httpFlags
	cmd := &cobra.Command{
		Use:   "server [flags] [-- COMMAND [ARG...]]",
		Short: "Test a server; without a target, the embedded reference server",
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := f.configure(cmd, &h, args)
			if err != nil {
				return err
			}
			o, err := f.options()
			if err != nil {
				return err
			}
			if err := f.reports.check(); err != nil {
				return err
			}
			stop := func() {}
			if h.given() {
				env, err := f.environment()
				if err != nil {
					return err
				}
				if stop, err = h.target(cmd.Context(), &o, args, transport.Command{Dir: f.dir, Env: env}); err != nil {
					return err
				}
			} else if err := f.target(&o, args); err != nil {
				return err
			}
			progress := f.reports.progress()
			o.Progress = progress
			o.Ginkgo = true
			run, trace, err := suites.Run(cmd.Context(), o.ServerChecks, o.Options)
			stop()
			if err != nil {
				return err
			}
			return f.reports.write(run, trace)
		},
	}
	f.register(cmd)
	h.register(cmd)
	return cmd
}

// serverRun is what a run of a server needs.
type serverRun struct {
	suites.Options
	suites.ServerChecks
}

func (f *runFlags) options() (serverRun, error) {
	mode := check.CallMode(f.call)
	if mode != check.CallNone && mode != check.CallSafe && mode != check.CallAll {
		return serverRun{}, fmt.Errorf("--call-tools is %q; it takes none, safe or all", f.call)
	}
	if f.timeout <= 0 {
		return serverRun{}, errors.New("--timeout has to be longer than nothing")
	}
	if f.parallel < 0 {
		return serverRun{}, errors.New("--parallel is less than nothing; 0 leaves it to mcpconform")
	}
	scripts, err := readScripts(f.scripts, wire.Server)
	if err != nil {
		return serverRun{}, err
	}
	if _, err := concerned(f.selection, []wire.Party{wire.Server}, suites.OwnRequirements(scripts, wire.Server)...); err != nil {
		return serverRun{}, err
	}
	redactor := newRedactor(nil, nil)
	redactor.Add(f.config.secrets...)
	return serverRun{
		Options: suites.Options{
			Selection: f.selection, Redactor: redactor, Scripts: scripts,
			Expected: f.config.expected, Limits: f.config.limits,
			Timeout: f.timeout, Parallel: f.parallel, Strict: f.strict,
			Tool: result.Tool{Name: "mcpconform", Version: version()},
		},
		ServerChecks: suites.ServerChecks{Settings: check.Settings{
			CallTools: mode, Purposes: f.config.purposes, Authorization: f.config.authorization,
			Secrets: f.config.secrets, Personal: f.config.personal,
			TrustedOrigins: f.config.origins, Public: f.config.public,
		}},
	}, nil
}

func (f *runFlags) target(o *serverRun, args []string) error {
	if len(args) == 0 {
		reference := server.New(server.Options{})
		o.Dialer = &transport.Stdio{Launcher: transport.Func{Name: "the embedded reference server", Run: reference.RunStdio}}
		o.Settings.CallTools = check.CallAll
		o.Target.Command = []string{"(embedded reference server)"}
		return nil
	}
	env, err := f.environment()
	if err != nil {
		return err
	}
	o.Dialer = &transport.Stdio{Launcher: transport.Command{Args: args, Dir: f.dir, Env: env}}
	o.Target.Command = slices.Clone(args)
	o.Redactor.AddEnv(env...)
	o.Redactor.AddArgs(args...)
	return nil
}

// environment returns the target's environment, or nil for ours.
func (f *runFlags) environment() ([]string, error) {
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
		default:
			return nil, fmt.Errorf("--env %s: no such variable is set", e)
		}
	}
	return env, nil
}

// readScripts reads the scripts for a party in folders.
func readScripts(folders []string, p wire.Party) ([]*script.Script, error) {
	var all []*script.Script
	for _, folder := range folders {
		if info, err := os.Stat(folder); err != nil {
			return nil, fmt.Errorf("--scripts: %w", err)
		} else if !info.IsDir() {
			return nil, fmt.Errorf("--scripts: %s is no folder", folder)
		}
		found, err := script.ReadDir(os.DirFS(folder), folder)
		if err != nil {
			return nil, fmt.Errorf("--scripts: %w", err)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("--scripts: there is no script in %s: no file with the ending .md", folder)
		}
		all = append(all, found...)
	}
	if err := suites.CheckScripts(all, p); err != nil {
		return nil, fmt.Errorf("--scripts: %w", err)
	}
	return all, nil
}
