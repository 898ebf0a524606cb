package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Each flag that takes a value completes it, if only by saying that no file fits, and so
// does each command with its arguments.
func TestEverythingIsCompleted(t *testing.T) {
	seen := make(map[string]bool) // of the tables
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		seen[path] = true
		if cmd.Runnable() && !cmd.Hidden && cmd.ValidArgsFunction == nil {
			t.Errorf("%s completes its arguments by chance; name what they are in the table arguments", cmd.CommandPath())
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			seen[f.Name], seen[cmd.Name()+" --"+f.Name] = true, true
			if _, ok := cmd.GetFlagCompletionFunc(f.Name); !ok && f.Value.Type() != "bool" {
				t.Errorf("%s --%s completes any file; say in the table flagValues what it takes", cmd.CommandPath(), f.Name)
			}
		})
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit(newRoot())
	for name := range flagValues {
		if !seen[name] {
			t.Errorf("flagValues names %s, which no command has", name)
		}
	}
	for path := range arguments {
		if !seen[path] {
			t.Errorf("arguments names %s, which is not a command", path)
		}
	}
}

// completed returns what the shell is offered for the last argument, without
// descriptions, and then the directive.
func completed(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := newRoot()
	var out bytes.Buffer
	cmd.SetArgs(append([]string{cobra.ShellCompNoDescRequestCmd}, args...))
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	end := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, ":") })
	if end < 0 {
		t.Fatalf("%q: %s", args, out.String())
	}
	return lines[:end+1]
}

func TestCompletion(t *testing.T) {
	none := fmt.Sprintf(":%d", cobra.ShellCompDirectiveNoFileComp)
	byEnding := fmt.Sprintf(":%d", cobra.ShellCompDirectiveFilterFileExt)
	byFolder := fmt.Sprintf(":%d", cobra.ShellCompDirectiveFilterDirs)
	servers := fleetFile(t, map[string]any{"weather": map[string]any{"command": "w"}, "time": map[string]any{"command": "t"}})
	t.Setenv("MCPCONFORM_TEST_COMPLETED", "s3cret")
	for _, tt := range []struct {
		args []string
		want []string // all, if the last is a directive
	}{
		{[]string{"server", "--call-tools", ""}, []string{"none", "safe", "all", none}},
		{[]string{"server", "--call-tools=s"}, []string{"safe", none}},
		{[]string{"server", "--transport", ""}, []string{"auto", "http", "sse", none}},
		{[]string{"client", "--transport", ""}, []string{"http", "stdio", "sse", "ws", none}},
		{[]string{"reference", "client", "--transport", ""}, []string{"auto", "sse", none}},
		{[]string{"mock", "client", "--transport", ""}, []string{"auto", "sse", none}},
		{[]string{"judge", "--role", ""}, []string{"server", "client", none}},
		{[]string{"proxy", "--role", ""}, []string{"server", "client", "both", none}},
		{[]string{"certify", "client", "--class", ""}, []string{"core", "extended", none}},
		{[]string{"server", "--select", ""}, []string{"MUST", "SHOULD", "server/tools", "tools.*"}},
		{[]string{"server", "--select", "tools.name."}, []string{"tools.name.unique"}},
		{[]string{"server", "--skip", "ping,tools.name.u"}, []string{"ping,tools.name.unique", none}},
		{[]string{"client", "--select", "tools.name.u"}, []string{none}}, // which is on servers
		{[]string{"proxy", "--select", "tools.name.u"}, []string{"tools.name.unique", none}},
		{[]string{"checklist", "--select", "st"}, []string{"stdio"}},
		{[]string{"explain", ""}, []string{"tools.*"}},
		{[]string{"explain", "tools.name.unique", "tools.error."}, []string{"tools.error.*"}},
		{[]string{"explain", "tools.name.unique", "tools.name.u"}, []string{none}},
		{[]string{"client", "--scenario", "base"}, []string{"baseline", none}},
		{[]string{"client", "--scenario", "fault"}, []string{"fault/"}},
		{[]string{"client", "--scenario", "fault/ping.si"}, []string{"fault/ping.silent", none}},
		{[]string{"mock", "--fault", "ping.si"}, []string{"ping.silent", none}},
		{[]string{"mock", "--http", ":0", "--fault", "stdio."}, []string{none}}, // which HTTP does not show
		{[]string{"mock", "client", "--fault", "ping.onc"}, []string{"ping.once", none}},
		{[]string{"server", "--from", servers, "--name", ""}, []string{"time", "weather", none}},
		{[]string{"server", "--from", "none", "--name", ""}, []string{none}},
		{[]string{"server", "--env", "MCPCONFORM_TEST_C"}, []string{"MCPCONFORM_TEST_COMPLETED", none}},
		{[]string{"report", "a.json", ""}, []string{"json", byEnding}},
		{[]string{"server", "--against", ""}, []string{"json", byEnding}},
		{[]string{"verify", ""}, []string{"zip", byEnding}},
		{[]string{"verify", "a.zip", ""}, []string{none}},
		{[]string{"matrix", ""}, []string{byFolder}},
		{[]string{"matrix", "--out", ""}, []string{byFolder}},
		{[]string{"certify", "server", "--out", ""}, []string{"zip", byEnding}},
		{[]string{"checklist", ""}, []string{none}},
		{[]string{"server", "--timeout", ""}, []string{none}},
		{[]string{"server", "--", ""}, []string{fmt.Sprintf(":%d", cobra.ShellCompDirectiveDefault)}},
	} {
		got := completed(t, tt.args...)
		if strings.HasPrefix(tt.want[len(tt.want)-1], ":") {
			if !slices.Equal(got, tt.want) {
				t.Errorf("%q: %q, want %q", tt.args, got, tt.want)
			}
			continue
		}
		for _, w := range tt.want {
			if !slices.Contains(got, w) {
				t.Errorf("%q: %q, want %s among them", tt.args, got, w)
			}
		}
	}
}
