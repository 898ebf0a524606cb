package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/cmd/mcpconform/internal/config"
	"github.com/mcpconform/mcpconform/cmd/mcpconform/internal/target"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// configFlags name the files that describe the run or its target.
type configFlags struct {
	file, from, name string
	inputs           []string // ID=VALUE
}

// register declares the flags; usage says what is done with the configuration of the project.
func (f *configFlags) register(cmd *cobra.Command, usage string) {
	flags := cmd.Flags()
	flags.StringVar(&f.file, "config", "", usage)
	flags.StringVar(&f.from, "from", "",
		"take the server from the configuration `FILE` of a client: Claude, Cursor, VS Code, opencode, Codex, "+
			"Zed and others")
	flags.StringVar(&f.name, "name", "", "take the server `NAME` of the --from file")
	flags.StringArrayVar(&f.inputs, "input", nil,
		"with --from, the value that the client would ask its user for as ${input:ID}, `ID=VALUE`, repeatable; "+
			"or set MCPCONFORM_INPUT_ID")
}

// configure reads the files and fills in what no flag says. It returns the
// command of the target, if that is a server over stdio.
func (f *serverFlags) configure(cmd *cobra.Command, args []string) ([]string, error) {
	c, err := f.config.load()
	if err != nil {
		return nil, err
	}
	return f.apply(cmd, c, args)
}

// apply is configure with the configuration of the project.
func (f *serverFlags) apply(cmd *cobra.Command, c *config.Config, args []string) ([]string, error) {
	changed := cmd.Flags().Changed
	if !changed("select") {
		f.selection.Select = c.Select
	}
	if !changed("skip") {
		f.selection.Skip = c.Skip
	}
	if !changed("scripts") {
		f.scripts.folders = c.Scripts
	}
	f.limit(changed, c.Limits)
	if !changed("sandbox") {
		f.stdio.sandbox = c.Sandbox
	}
	if c.Sandbox && !changed("sandbox-write") {
		f.stdio.writable = c.SandboxWrite
	}
	if c.CallTools != "" && !changed("call-tools") {
		f.callTools = string(c.CallTools)
	}
	if !changed("quick") && !changed("thorough") {
		f.families.quick, f.families.thorough = c.Budget == result.Quick.String(), c.Budget == result.Thorough.String()
	}
	if !changed("strict") {
		f.verdict.strict = c.Strict
	}
	if !changed("expect-sdk") {
		f.verdict.expectSDK = c.ExpectSDK
	}
	f.settings = check.Settings{
		ToolRoles: c.Calls(), Authorization: c.Authorization.Settings(), Secrets: c.Secrets, Personal: c.Personal,
		TrustedOrigins: c.TrustedOrigins, Public: c.Public,
	}
	f.settings.Authorization.Protected = f.settings.Authorization.Protected || f.protected
	f.http.login.configure(cmd, c.Login)
	var err error
	if f.expected, err = f.verdict.expected(); err != nil {
		return nil, err
	}
	if f.verdict.file == "" {
		f.expected = c.Expected.Entries
	}
	return f.configureTarget(cmd, args, c.Target)
}

// limit takes the limits of a configuration for which no flag was given.
func (f *serverFlags) limit(changed func(flag string) bool, l config.Limits) {
	for flag, limit := range map[string]struct{ of, given *time.Duration }{
		"timeout":       {&f.limits.timeout, &l.Timeout},
		"start-timeout": {&f.limits.start, &l.Start},
		"run-timeout":   {&f.limits.run, &l.Run},
	} {
		if *limit.given > 0 && !changed(flag) {
			*limit.of = *limit.given
		}
	}
	if l.TargetMemory > 0 && !changed("target-memory") {
		f.stdio.memory = l.TargetMemory
	}
	if l.TargetProcesses > 0 && !changed("target-processes") {
		f.stdio.processes = l.TargetProcesses
	}
	f.bytes = wire.DefaultLimits
	if l.Message > 0 {
		f.bytes.Message = l.Message
	}
	if l.Total > 0 {
		f.bytes.Run = l.Total
		f.bytes.Total = min(f.bytes.Total, l.Total)
		boundMemory(l.Total)
	}
}

// load returns the configuration, which is empty if there is no file.
func (f *configFlags) load() (*config.Config, error) {
	if f.file != "" {
		c, err := config.Load(f.file, os.LookupEnv)
		if err != nil {
			return nil, fmt.Errorf("--config: %w", err)
		}
		return c, nil
	}
	c, err := config.Load(config.DefaultFile, os.LookupEnv)
	if missing := (*fs.PathError)(nil); errors.As(err, &missing) && errors.Is(err, fs.ErrNotExist) &&
		missing.Path == config.DefaultFile {
		return new(config.Config), nil
	}
	return c, err
}

// configureTarget takes the target from the command line or else from a
// client's file or else from the configuration, as a whole.
func (f *serverFlags) configureTarget(cmd *cobra.Command, args []string, t config.Target) ([]string, error) {
	h := &f.http
	switch {
	case f.config.name != "" && f.config.from == "":
		return nil, errors.New("--name needs --from; it names a server of that file")
	case len(f.config.inputs) > 0 && f.config.from == "":
		return nil, errors.New("--input needs --from; it fills in ${input:ID} of that file")
	case f.config.from != "" && (len(args) > 0 || h.url != "" || h.bridge != ""):
		return nil,
			errors.New("--from names the server; neither COMMAND nor --url nor --transport-command " +
				"can be given with it")
	case len(args) > 0 || h.url != "" || h.bridge != "":
		return args, nil
	case f.config.from != "":
		s, err := target.Load(f.config.from, f.config.name,
			target.Options{Lookup: os.LookupEnv, Inputs: named(f.config.inputs, "=")})
		if err != nil {
			return nil, err
		}
		f.take(cmd, s)
		t = config.Target{Command: s.Command, URL: s.URL, Headers: s.Headers, Env: s.Env, Cwd: s.Dir}
		if s.Transport != "" && !cmd.Flags().Changed("transport") && s.URL != "" {
			h.transport = s.Transport
		}
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(t.Env)) {
		env = append(env, name+"="+t.Env[name])
	}
	f.stdio.env = append(env, f.stdio.env...) // the last one of a name counts
	if f.stdio.dir == "" {
		f.stdio.dir = t.Cwd
	}
	h.url = t.URL
	if h.start == "" {
		h.start = t.Start
	}
	h.bridge = t.TransportCommand
	for _, name := range slices.Sorted(maps.Keys(t.Headers)) {
		same := func(header string) bool {
			given, _, _ := strings.Cut(header, ":")
			return strings.EqualFold(strings.TrimSpace(given), name)
		}
		if !slices.ContainsFunc(h.headers, same) {
			h.headers = append(h.headers, fmt.Sprintf("%s: %s", name, t.Headers[name]))
		}
	}
	return t.Command, nil
}

// longestFromFile bounds how long one answer may take because a client's file says so:
// clients allow for tools that work for minutes, and a server that answers nothing
// must not cost as much for each check.
const longestFromFile = time.Minute

// take takes what a client's file says beside the target, and tells what is not used.
func (f *serverFlags) take(cmd *cobra.Command, s target.Server) {
	for _, text := range s.Secrets {
		if len(text) >= config.ShortestMarker {
			f.settings.Secrets = append(slices.Clip(f.settings.Secrets), text)
		}
	}
	if limit := min(s.Timeout, longestFromFile); limit > f.limits.timeout && f.limits.timeout == answerTimeout &&
		!cmd.Flags().Changed("timeout") {
		f.limits.timeout = limit
		s.Notes = append(s.Notes,
			fmt.Sprintf("%s: the client waits %v for the server %q; one answer may therefore take %v, unless "+
				"--timeout says otherwise",
				f.config.from, s.Timeout, s.Name, limit))
	}
	if limit := min(s.StartTimeout, longestFromFile); limit > f.limits.startTime() && f.limits.start == 0 {
		f.limits.start = limit
		s.Notes = append(s.Notes,
			fmt.Sprintf("%s: the client waits %v for the start of the server %q; it may therefore take %v, unless "+
				"--start-timeout says otherwise",
				f.config.from, s.StartTimeout, s.Name, limit))
	}
	if f.reports.quiet {
		return
	}
	redactor := newRedactor(nil, os.Args[1:])
	redactor.Add(f.settings.Secrets...)
	for _, note := range s.Notes {
		printable := strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return unicode.ReplacementChar
		}, note)
		fmt.Fprintln(cmd.ErrOrStderr(), "mcpconform: "+redactor.String(printable))
	}
}
