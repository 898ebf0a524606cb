package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/cmd/mcpconform/internal/config"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
)

func initCommand() *cobra.Command {
	var f runFlags
	var h httpFlags
	var force bool
	cmd := &cobra.Command{
		Use:   "init [flags] [-- COMMAND [ARG...]]",
		Short: "Write a " + config.DefaultFile + " for a server, from what it offers",
		RunE: func(cmd *cobra.Command, args []string) error {
			file := f.config.file
			if file == "" {
				file = config.DefaultFile
			}
			_, err := os.Lstat(file)
			switch {
			case err == nil && !force:
				return fmt.Errorf("%s is there already; --force replaces it", file)
			case err != nil && !errors.Is(err, fs.ErrNotExist):
				return err
			}
			// What the target calls for goes into the file, ours does not.
			command, err := f.configureTarget(cmd, &h, args, config.Target{})
			if err != nil {
				return err
			}
			target := config.Target{Command: command, URL: h.url, Start: h.start, Cwd: f.dir, Env: named(f.env, "="), Headers: named(h.headers, ":")}
			var found *check.Target
			redactor := newRedactor(nil, nil)
			if len(command) > 0 || h.given() {
				if found, redactor, err = f.discover(cmd.Context(), &h, command); err != nil {
					return err
				}
			}
			if err := os.WriteFile(file, config.Initial(target, found, redactor), 0o644); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "wrote %s\n", file)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.config.file, "config", "", "write to `FILE` instead of "+config.DefaultFile)
	flags.BoolVar(&force, "force", false, "replace the file if there is one")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Second, "how long one answer may take")
	flags.StringArrayVar(&f.env, "env", nil, "environment variable of the target, `NAME=value` or NAME to pass ours on, repeatable")
	flags.BoolVar(&f.cleanEnv, "clean-env", false, "give the target only PATH, HOME and what --env names")
	flags.StringVar(&f.dir, "cwd", "", "working directory of the target")
	f.config.registerSource(cmd)
	h.register(cmd)
	return cmd
}

// named returns texts such as NAME=value by their names.
func named(texts []string, separator string) map[string]string {
	all := make(map[string]string)
	for _, t := range texts {
		name, value, _ := strings.Cut(t, separator)
		all[strings.TrimSpace(name)] = value
	}
	return all
}

// discover learns what a target offers, and returns it with what takes secrets
// out of it. A target that cannot be reached ends the command with the exit code
// for that.
func (f *runFlags) discover(ctx context.Context, h *httpFlags, command []string) (*check.Target, *transport.Redactor, error) {
	f.call = string(check.CallSafe)
	o, err := f.options()
	if err != nil {
		return nil, nil, err
	}
	stop := func() {}
	if h.given() {
		env, err := f.environment()
		if err != nil {
			return nil, nil, err
		}
		if stop, err = h.target(ctx, &o, command, transport.Command{Dir: f.dir, Env: env}); err != nil {
			return nil, nil, err
		}
	} else if err := f.target(&o, command); err != nil {
		return nil, nil, err
	}
	defer stop()
	found, err := prepare(ctx, o)
	if err != nil {
		fmt.Fprintf(os.Stderr, "mcpconform: nothing could be learned of the server: %s\n", o.Redactor.String(err.Error()))
		return nil, nil, exitError(exitIncomplete)
	}
	return found, o.Redactor, nil
}

func prepare(ctx context.Context, o serverRun) (*check.Target, error) {
	if o.Trace == nil {
		o.Trace = wire.NewTrace(wire.DefaultLimits)
	}
	e := &check.Engine{Dialer: o.Dialer, Trace: o.Trace, Timeout: o.Timeout, Settings: o.Settings}
	defer e.Finish(ctx)
	return e.Prepare(ctx)
}
