package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/cmd/mcpconform/internal/config"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/expected"
)

// asReference makes this test's binary a reference server, over stdio or at
// the address after --listen, which logs what it was told. With arguments that
// begin with "proxy", it is the command itself.
const asReference = "MCPCONFORM_TEST_REFERENCE"

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == asEcho:
		if err := echo(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case os.Getenv(asBridge) != "":
		os.Exit(playBridge(os.Getenv(asBridge)))
	case os.Getenv(asCommand) != "", os.Getenv(asReference) != "" && len(os.Args) > 1 && os.Args[1] == "proxy":
		main()
		os.Exit(0)
	case os.Getenv(asReference) != "":
		if err := serveReference(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// The command collects garbage early, to take little memory, which costs a quarter of its processor time.
	// Commands in tests of memory have their own setting.
	if os.Getenv(gogc) == "" {
		_ = os.Setenv(gogc, "200")
	}
	os.Exit(m.Run())
}

// gogc is the variable that says when garbage is collected.
const gogc = "GOGC"

// manyRuns skips a test with many runs of the command under -short. That goes with the race detector, and each run
// takes seconds there. The detector finds nothing in them that it does not find in the runs of other tests.
func manyRuns(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("left out with -short: many runs of the command")
	}
}

func serveReference(args []string) error {
	fmt.Fprintf(os.Stderr, "key %s, token %s, arguments %q\n", os.Getenv("SERVICE_API_KEY"), os.Getenv("OUR_TOKEN"), args)
	s := server.New(server.Options{})
	if len(args) < 2 || args[0] != "--listen" {
		return s.RunStdio(context.Background(), os.Stdin, os.Stdout, os.Stderr)
	}
	l, err := server.Listen(args[1])
	if err != nil {
		return err
	}
	return s.HTTP().Serve(context.Background(), l)
}

// configured parses a command line of `mcpconform server` and returns what
// came of it and of the files.
func configured(t *testing.T, args ...string) (f serverFlags, command []string, err error) {
	t.Helper()
	cmd := &cobra.Command{
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			command, err = f.configure(cmd, args)
			return err
		},
	}
	f.register(cmd)
	cmd.SetArgs(append([]string{}, args...))
	if failed := cmd.Execute(); failed != nil && err == nil {
		t.Fatal(failed)
	}
	return f, command, err
}

// folder makes a folder with files the current one.
func folder(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const (
	stdioConfig = `
target: {command: [./server, -x], env: {A: file, B: file}, cwd: /srv}
callTools: none
strict: true
select: [tools.*]
skip: [ping.*]
secrets: [hunter2hunter2]
personalData: [jane.doe@example.com]
trustedOrigins: ["null"]
public: true
limits: {message: 99, timeout: 3s, startTimeout: 7s}
toolRoles: {slow: {tool: wait}}
expectedFailures: [{id: a, reason: b}]
`
	urlConfig  = "target: {url: 'http://localhost/mcp', headers: {A: file, B: file}, start: ./run}\n"
	clientFile = `{"mcpServers": {"one": {"command": "one"}, "two": {"url": "http://two/sse", "type": "sse"}}}`
)

func TestConfigure(t *testing.T) {
	t.Run("nothing", func(t *testing.T) {
		folder(t, nil)
		f, command, err := configured(t)
		if err != nil || len(command) > 0 || f.http.given() || f.limits.timeout != 10*time.Second || f.limits.startTime() != 30*time.Second || f.callTools != "safe" {
			t.Errorf("got %v, %v, %+v, %+v", err, command, f.http, f.limits)
		}
	})
	t.Run("the default file", func(t *testing.T) {
		folder(t, map[string]string{config.DefaultFile: stdioConfig})
		f, command, err := configured(t)
		if err != nil {
			t.Fatal(err)
		}
		for name, pair := range map[string][2]any{
			"command":   {[]string{"./server", "-x"}, command},
			"env":       {[]string{"A=file", "B=file"}, f.stdio.env},
			"cwd":       {"/srv", f.stdio.dir},
			"call":      {"none", f.callTools},
			"strict":    {true, f.verdict.strict},
			"select":    {[]string{"tools.*"}, f.selection.Select},
			"skip":      {[]string{"ping.*"}, f.selection.Skip},
			"timeout":   {3 * time.Second, f.limits.timeout},
			"start":     {7 * time.Second, f.limits.startTime()},
			"limits":    {wire.Limits{Message: 99, Total: wire.DefaultLimits.Total, Events: wire.DefaultLimits.Events, Run: wire.DefaultLimits.Run}, f.bytes},
			"toolRoles": {map[string]check.Call{"slow": {Tool: "wait"}}, f.settings.ToolRoles},
			"expected":  {[]expected.Entry{{ID: "a", Reason: "b"}}, f.expected},
		} {
			if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	})
	t.Run("flags win", func(t *testing.T) {
		folder(t, map[string]string{"c.yaml": stdioConfig, "e.yaml": "- {id: c, reason: d}\n"})
		f, command, err := configured(t, "--config=c.yaml", "--expected-failures=e.yaml", "--call-tools=all", "--strict=false",
			"--select=MUST", "--skip=MAY", "--timeout=1s", "--start-timeout=9s", "--env=A=flag", "--cwd=/tmp")
		if err != nil {
			t.Fatal(err)
		}
		o, err := f.options()
		if err != nil {
			t.Fatal(err)
		}
		for name, pair := range map[string][2]any{
			"command": {[]string{"./server", "-x"}, command},
			"env":     {[]string{"A=file", "B=file", "A=flag"}, f.stdio.env},
			"cwd":     {"/tmp", f.stdio.dir},
			"strict":  {false, o.Strict},
			"select":  {[]string{"MUST"}, o.Selection.Select},
			"skip":    {[]string{"MAY"}, o.Selection.Skip},
			"timeout": {time.Second, o.Timeout},
			"start":   {9 * time.Second, o.StartTimeout},
			"settings": {check.Settings{
				CallTools: check.CallAll, ToolRoles: map[string]check.Call{"slow": {Tool: "wait"}},
				Secrets: []string{"hunter2hunter2"}, Personal: []string{"jane.doe@example.com"},
				TrustedOrigins: []string{"null"}, Public: true,
			}, o.Settings},
			"redacted": {"with REDACTED", o.Redactor.String("with hunter2hunter2")},
			"expected": {[]expected.Entry{{ID: "c", Reason: "d"}}, o.Expected},
		} {
			if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	})
	for _, tt := range []struct {
		name    string
		args    []string
		command []string
		env     []string
		url     string
		start   string
		headers []string
		kind    string
	}{
		{name: "another command", args: []string{"--", "./mine"}, command: []string{"./mine"}, kind: "auto"},
		{name: "another url", args: []string{"--url=http://mine"}, url: "http://mine", kind: "auto"},
		{
			name: "url with further headers", args: []string{"--header=a: flag"}, url: "http://localhost/mcp", start: "./run",
			headers: []string{"a: flag", "B: file"}, kind: "auto",
		},
		{name: "a client's file", args: []string{"--from=client.json", "--name=one"}, command: []string{"one"}, kind: "auto"},
		{name: "a client's file, url", args: []string{"--from=client.json", "--name=two"}, url: "http://two/sse", kind: "sse"},
		{name: "transport by flag", args: []string{"--from=client.json", "--name=two", "--transport=http"}, url: "http://two/sse", kind: "http"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder(t, map[string]string{config.DefaultFile: urlConfig, "client.json": clientFile})
			f, command, err := configured(t, tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			for name, pair := range map[string][2]any{
				"command": {tt.command, command}, "env": {tt.env, f.stdio.env}, "url": {tt.url, f.http.url}, "start": {tt.start, f.http.start},
				"headers": {strings.Join(tt.headers, "\n"), strings.Join(f.http.headers, "\n")}, "transport": {tt.kind, f.http.transport},
			} {
				if a, ok := pair[1].([]string); ok && len(a) == 0 && len(pair[0].([]string)) == 0 {
					continue
				}
				if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
		})
	}
}

func TestConfigureFaults(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		args       []string
		want       string
	}{
		{"fault in the file", "strict: 7\n", nil, "mcpconform.yaml:1:9: "},
		{"selection of what is not there", "select: [tools.*, tolls.*]\n", nil, `mcpconform.yaml:1:19: "tolls.*" matches no requirement id`},
		{"file that is not there", "", []string{"--config=none.yaml"}, "none.yaml"},
		{"list that the default file names is not there", "expectedFailures: none.yaml\n", nil, "none.yaml"},
		{"list that is not there", "", []string{"--expected-failures=none.yaml"}, "none.yaml"},
		{"several servers", "", []string{"--from=client.json"}, "choose one with --name: one, two"},
		{"name without file", "", []string{"--name=one"}, "--name needs --from"},
		{"file and command", "", []string{"--from=client.json", "--name=one", "--", "./mine"}, "neither COMMAND nor --url"},
		{"file and url", "", []string{"--from=client.json", "--name=one", "--url=http://x"}, "neither COMMAND nor --url"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder(t, map[string]string{config.DefaultFile: tt.file, "client.json": clientFile})
			_, _, err := configured(t, tt.args...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %s", err, tt.want)
			}
		})
	}
}

func TestInit(t *testing.T) {
	folder(t, nil)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		root := newRoot()
		root.SetArgs(append([]string{"init"}, args...))
		root.SetOut(&out)
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	out, err := run("--env", asReference+"=1", "--", program)
	if err != nil || !strings.Contains(out, config.DefaultFile) {
		t.Fatalf("got %q, %v", out, err)
	}
	raw, err := os.ReadFile(config.DefaultFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n#   toggle_tool                    yes: ", "This server is known as the reference server of mcpconform", `#   slow: {tool: "slow", arguments: {"seconds":0.25}}`,
	} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%q is missing in\n%s", want, raw)
		}
	}
	t.Setenv(asReference, "from us")
	c, err := config.Load(config.DefaultFile, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Target{Command: []string{program}, Env: map[string]string{asReference: "from us"}}
	if diff := cmp.Diff(want, c.Target); diff != "" {
		t.Error(diff)
	}
	if _, err := run(); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("a file that is there: %v", err)
	}
	if _, err := run("--force"); err != nil {
		t.Error(err)
	}
	if again, err := os.ReadFile(config.DefaultFile); err != nil || !strings.Contains(string(again), "# target:") {
		t.Errorf("%v\n%s", err, again)
	}
	other := filepath.Join(t.TempDir(), "other.yaml")
	if _, err := run("--config", other, "--", filepath.Join(t.TempDir(), "none")); err != exitError(exitIncomplete) {
		t.Errorf("a target that is not there: %v", err)
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("a file is written for a target that is not there")
	}
}
