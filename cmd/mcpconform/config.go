package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/cmd/mcpconform/internal/config"
	"github.com/mcpconform/mcpconform/cmd/mcpconform/internal/target"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/expected"
)

// configFlags name the files in which a run is described, and hold what they said.
type configFlags struct {
	file, from, name, expectedFile string

	purposes      map[string]check.Call
	authorization check.Authorization
	secrets       []string
	origins       []string
	public        bool
	personal      []string
	limits        wire.Limits
	expected      []expected.Entry
}

func (f *configFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.file, "config", "", "read the configuration from `FILE` (default: "+config.DefaultFile+", if there is one)")
	flags.StringVar(&f.expectedFile, "expected-failures", "", "failures listed in `FILE` do not count, as long as they fail")
	f.registerSource(cmd)
}

func (f *configFlags) registerSource(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "take the target from a client's `FILE`: mcpServers, VS Code's mcp.json or opencode.json")
	flags.StringVar(&f.name, "name", "", "which `SERVER` of the --from file")
}

// configure reads the files and fills in what no flag says. It returns the
// command of the target, if it is one over stdio.
func (f *runFlags) configure(cmd *cobra.Command, h *httpFlags, args []string) ([]string, error) {
	c, err := f.config.load()
	if err != nil {
		return nil, err
	}
	changed := cmd.Flags().Changed
	if !changed("select") {
		f.selection.Select = c.Select
	}
	if !changed("skip") {
		f.selection.Skip = c.Skip
	}
	if !changed("scripts") {
		f.scripts = c.Scripts
	}
	if c.Limits.Timeout > 0 && !changed("timeout") {
		f.timeout = c.Limits.Timeout
	}
	if c.CallTools != "" && !changed("call-tools") {
		f.call = string(c.CallTools)
	}
	if !changed("strict") {
		f.strict = c.Strict
	}
	f.config.purposes = c.Calls()
	f.config.secrets, f.config.personal = c.Secrets, c.Personal
	f.config.origins, f.config.public = c.TrustedOrigins, c.Public
	f.config.authorization = c.Authorization.Settings()
	f.config.authorization.Protected = f.config.authorization.Protected || f.protected
	f.config.limits = wire.DefaultLimits
	if c.Limits.Message > 0 {
		f.config.limits.Message = c.Limits.Message
	}
	if c.Limits.Total > 0 {
		f.config.limits.Run = c.Limits.Total
		f.config.limits.Total = min(f.config.limits.Total, c.Limits.Total)
	}
	f.config.expected = c.Expected.Entries
	if f.config.expectedFile != "" {
		if f.config.expected, err = config.LoadExpected(f.config.expectedFile); err != nil {
			return nil, fmt.Errorf("--expected-failures: %w", err)
		}
	}
	return f.configureTarget(cmd, h, args, c.Target)
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
	if missing := (*fs.PathError)(nil); errors.As(err, &missing) && errors.Is(err, fs.ErrNotExist) && missing.Path == config.DefaultFile {
		return new(config.Config), nil
	}
	return c, err
}

// configureTarget takes the target from the command line or else from a
// client's file or else from the configuration, as a whole.
func (f *runFlags) configureTarget(cmd *cobra.Command, h *httpFlags, args []string, t config.Target) ([]string, error) {
	switch {
	case f.config.name != "" && f.config.from == "":
		return nil, errors.New("--name says which server of a --from file; --from is missing")
	case f.config.from != "" && (len(args) > 0 || h.url != ""):
		return nil, errors.New("--from names the target already: neither a COMMAND nor --url can be given with it")
	case len(args) > 0 || h.url != "":
		return args, nil
	case f.config.from != "":
		s, err := target.Load(f.config.from, f.config.name, os.LookupEnv)
		if err != nil {
			return nil, err
		}
		t = config.Target{Command: s.Command, URL: s.URL, Headers: s.Headers, Env: s.Env, Cwd: s.Dir}
		if s.Transport != "" && !cmd.Flags().Changed("transport") && s.URL != "" {
			h.transport = s.Transport
		}
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(t.Env)) {
		env = append(env, name+"="+t.Env[name])
	}
	f.env = append(env, f.env...) // the last one of a name counts
	if f.dir == "" {
		f.dir = t.Cwd
	}
	h.url = t.URL
	if h.start == "" {
		h.start = t.Start
	}
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
