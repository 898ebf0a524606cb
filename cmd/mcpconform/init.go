package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/cmd/mcpconform/internal/config"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

func initCommand() *cobra.Command {
	var f serverFlags
	var force bool
	cmd := &cobra.Command{
		Use:   "init [flags] [-- COMMAND [ARG...]]",
		Short: "Write " + config.DefaultFile + " for a server, from what it offers",
		Long: `Connects to a server and writes ` + config.DefaultFile + `, with comments that say what can be
filled in. Secrets are not written: the file refers to environment variables.`,
		Example: `  mcpconform init -- ./my-server --stdio
  mcpconform init --url http://localhost:8080/mcp --config my-server.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			file := f.config.file
			if file == "" {
				file = config.DefaultFile
			}
			_, err := os.Lstat(file)
			switch {
			case err == nil && !force:
				return fmt.Errorf("%s exists; --force replaces it", file)
			case err != nil && !errors.Is(err, fs.ErrNotExist):
				return err
			}
			// The file describes the given target only, not the defaults of this program.
			command, err := f.configureTarget(cmd, args, config.Target{})
			if err != nil {
				return err
			}
			target := config.Target{
				Command: command, URL: f.http.url, Start: f.http.start, TransportCommand: f.http.bridge,
				Cwd: f.stdio.dir,
				Env: named(f.stdio.env, "="), Headers: named(f.http.headers, ":"),
			}
			var found *check.Target
			var sdk *result.SDK
			redactor := newRedactor(nil, nil)
			if len(command) > 0 || f.http.given() {
				if found, sdk, redactor, err = f.discover(cmd, command); err != nil {
					return err
				}
			}
			write := func(w io.Writer) error {
				_, err := w.Write(config.Initial(target, found, sdk, redactor))
				return err
			}
			if err := writeFile(file, write); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "wrote %s\n", file)
			return nil
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace the file if it exists")
	f.config.register(cmd, "write `FILE` instead of "+config.DefaultFile)
	f.registerTarget(cmd)
	f.stdio.register(cmd, wire.Server)
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

// discover learns what a target offers. It returns the target, its SDK if it recognised one, and a redactor of its
// secrets. An unreachable target ends the command with the exit code for that.
func (f *serverFlags) discover(
	cmd *cobra.Command, command []string,
) (*check.Target, *result.SDK, *transport.Redactor, error) {
	f.callTools = string(check.CallSafe)
	o, err := f.options()
	if err != nil {
		return nil, nil, nil, err
	}
	stop, err := f.target(cmd.Context(), &o, command)
	if err != nil {
		return nil, nil, nil, err
	}
	defer stop()
	o.Trace = wire.NewTrace(wire.DefaultLimits)
	found, err := prepare(cmd.Context(), o)
	if err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "mcpconform: cannot find out what the server offers: %s\n",
			o.Redactor.String(err.Error()))
		return nil, nil, nil, exitError(exitIncomplete)
	}
	return found, suites.RecogniseSDK(schema.Default(), o.Trace, wire.Server, o.Target.Command), o.Redactor, nil
}

func prepare(ctx context.Context, o serverOptions) (*check.Target, error) {
	if o.Trace == nil {
		o.Trace = wire.NewTrace(wire.DefaultLimits)
	}
	e := &check.Engine{Options: check.Options{Dialer: o.Dialer, Trace: o.Trace, Timeout: o.Timeout,
		StartTimeout: o.StartTimeout,
		Settings:     o.Settings}}
	defer e.Finish(ctx)
	return e.Prepare(ctx)
}
