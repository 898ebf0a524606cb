package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcpconform/mcpconform/cmd/mcpconform/internal/target"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/mockserver/mockclient"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/client"
)

// choice is the value of a flag that takes one of a few words: it refuses others, the help
// lists the words, and the shell completes them.
type choice struct {
	to    *string
	words []cobra.Completion // each with what it means behind a tab
}

// choose declares a flag that takes one of a few words.
func choose(cmd *cobra.Command, to *string, name, standard, usage string, words ...cobra.Completion) {
	*to = standard
	cmd.Flags().Var(&choice{to, words}, name, usage)
}

// names are the words without what they mean.
func (c *choice) names() []string {
	names := make([]string, len(c.words))
	for i, w := range c.words {
		names[i], _, _ = strings.Cut(w, "\t")
	}
	return names
}

func (c *choice) String() string { return *c.to }

// listed are the words in a sentence.
func (c *choice) listed() string {
	names := c.names()
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Type names the value in the usage.
func (c *choice) Type() string { return strings.Join(c.names(), "|") }

// Set takes one of the words.
func (c *choice) Set(s string) error {
	if !slices.Contains(c.names(), s) {
		return fmt.Errorf("it takes %s", c.listed())
	}
	*c.to = s
	return nil
}

// nothing is for values that nobody can guess, such as a time: no file fits either.
var nothing cobra.CompletionFunc = cobra.NoFileCompletions

// anyFile has the shell complete the names of all files.
func anyFile(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// folders has the shell complete the names of folders.
func folders(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// filesOf has the shell complete the names of folders, and of files that end so.
func filesOf(extensions ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(extensions, cobra.ShellCompDirectiveFilterFileExt)
}

// first completes one argument and no further one.
func first(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nothing(cmd, args, prefix)
		}
		return complete(cmd, args, prefix)
	}
}

// elements completes the last element of a list with commas from what list offers.
func elements(list func(cmd *cobra.Command, prefix string) []cobra.Completion) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before := prefix[:strings.LastIndexByte(prefix, ',')+1]
		prefix = prefix[len(before):]
		var fit []cobra.Completion
		for _, c := range list(cmd, prefix) {
			if strings.HasPrefix(c, prefix) {
				fit = append(fit, before+c)
			}
		}
		return fit, cobra.ShellCompDirectiveNoFileComp
	}
}

// The completions of flags by name, and of arguments by command. A test finds what is missing.
var (
	flagValues = map[string]cobra.CompletionFunc{
		"select": elements(patterns), "skip": elements(patterns), "checklist --select": elements(checklistPatterns),
		"scenario": elements(scenarios), "mock --fault": elements(serverFaults),
		"client --fault": elements(clientFaults),
		"name":           serverNames, "env": elements(variables), "bearer-env": elements(variables),
		"client-secret-env": elements(variables),

		"json": filesOf("json"), "against": filesOf("json"), "attestation": filesOf("json"), "servers": filesOf("json"),
		"junit": filesOf("xml"), "sarif": filesOf("sarif", "json"), "markdown": filesOf("md"), "script": filesOf("md"),
		"html": filesOf("html"), "badge": filesOf("svg", "json"), "trace": filesOf("jsonl"),
		"config": filesOf("yaml", "yml"), "expected-failures": filesOf("yaml", "yml"),
		"from":   filesOf("json", "jsonc", "toml", "yaml", "yml"),
		"cacert": filesOf("pem", "crt", "cer"), "cert": filesOf("pem", "crt", "cer"), "key": filesOf("pem", "key"),
		"scripts": folders, "cwd": folders, "sandbox-write": folders, "matrix --out": folders, "out": filesOf("zip"),
		"unix-socket": anyFile,

		"label-filter": nothing, "target-memory": nothing, "shard": nothing, "url": nothing, "header": nothing,
		"input": nothing, "start": nothing,
		"transport-command": nothing, "listen": nothing, "http": nothing, "sse": nothing, "ws": nothing, "act": nothing,
		"client-id": nothing, "redirect-uri": nothing, "resource": nothing, "scope": nothing, "issuer": nothing,
		"scopes": nothing, "protected-by": nothing,
	}
	// A program that is tested is completed like any file.
	arguments = map[string]cobra.CompletionFunc{
		"server": anyFile, "client": anyFile, "init": anyFile, "proxy": anyFile, "certify server": anyFile,
		"certify client":   anyFile,
		"reference client": anyFile, "mock client": anyFile,
		"explain": explainable, "report": filesOf("json"),
		"judge": first(filesOf("jsonl")), "verify": first(filesOf("zip")), "matrix": first(folders),
		"mock": nothing, "reference": nothing, "reference server": nothing,
		"authorization": nothing, "reference authorization-server": nothing, "checklist": nothing, "version": nothing,
	}
)

// complete lets the shell complete what a command and those below it take.
func complete(cmd *cobra.Command) {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	if f, ok := arguments[path]; ok {
		cmd.ValidArgsFunction = f
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if values := valuesOf(cmd, f); values != nil {
			_ = cmd.RegisterFlagCompletionFunc(f.Name,
				values) // fails only for a flag that is not there, or done already
		}
	})
	for _, c := range cmd.Commands() {
		complete(c)
	}
}

// valuesOf returns what completes the values of a flag, or nil.
func valuesOf(cmd *cobra.Command, f *pflag.Flag) cobra.CompletionFunc {
	switch f.Value.Type() {
	case "bool":
		return nil
	case "int", "uint64", "duration":
		return nothing
	}
	if c, ok := f.Value.(*choice); ok {
		return elements(func(*cobra.Command, string) []cobra.Completion { return c.words })
	}
	if values := flagValues[cmd.Name()+" --"+f.Name]; values != nil {
		return values
	}
	return flagValues[f.Name]
}

// judged are the requirements that a command can judge: those on the party that it tests.
func judged(cmd *cobra.Command) []schema.Requirement {
	both := []wire.Party{wire.Server, wire.Client}
	parties := slices.DeleteFunc(slices.Clone(both), func(p wire.Party) bool { return cmd.Name() != string(p) })
	if len(parties) == 0 {
		parties = both
	}
	served := suites.Served(schema.Default(), parties...)
	return slices.DeleteFunc(schema.Default().Catalogue(), func(r schema.Requirement) bool {
		return len(served[r.ID]) == 0
	})
}

// patterns offers what --select and --skip take.
func patterns(cmd *cobra.Command, prefix string) []cobra.Completion {
	return patternsOf(judged(cmd), prefix)
}

func checklistPatterns(_ *cobra.Command, prefix string) []cobra.Completion {
	catalogue := schema.Default().Catalogue()
	return slices.Concat(patternsOf(catalogue, prefix), parties, transports)
}

// explainable completes the ids of requirements, and globs, that are not there yet.
func explainable(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	catalogue := schema.Default().Catalogue()
	var left []cobra.Completion
	for _, c := range append(globs(catalogue, prefix), ids(catalogue, prefix)...) {
		if name, _, _ := strings.Cut(c, "\t"); strings.HasPrefix(name, prefix) && !slices.Contains(args, name) {
			left = append(left, c)
		}
	}
	return left, cobra.ShellCompDirectiveNoFileComp
}

// patternsOf offers patterns for some requirements.
func patternsOf(catalogue []schema.Requirement, prefix string) []cobra.Completion {
	levels, pages := make(map[string]int), make(map[string]int)
	for _, r := range catalogue {
		levels[strings.TrimSuffix(string(r.Level), " NOT")]++
		pages[r.Page]++
	}
	return slices.Concat(counted(levels, "level"), counted(pages, "page"), globs(catalogue, prefix),
		ids(catalogue, prefix))
}

// ids offers the ids of requirements, of which there are hundreds, once something is typed.
func ids(catalogue []schema.Requirement, prefix string) []cobra.Completion {
	if prefix == "" {
		return nil
	}
	return described(catalogue, func(r schema.Requirement) (name, what string) { return r.ID, r.Summary })
}

// described offers the names of things with what they are.
func described[T any](things []T, of func(T) (name, what string)) []cobra.Completion {
	all := make([]cobra.Completion, len(things))
	for i, thing := range things {
		all[i] = cobra.CompletionWithDesc(of(thing))
	}
	return all
}

// globs offers the first segments of ids with a star, one segment more than the prefix has.
func globs(catalogue []schema.Requirement, prefix string) []cobra.Completion {
	groups := make(map[string]int)
	for _, r := range catalogue {
		segments := strings.Split(r.ID, ".")
		for n := 1; n < len(segments) && n <= 1+strings.Count(prefix, "."); n++ {
			groups[strings.Join(segments[:n], ".")+".*"]++
		}
	}
	maps.DeleteFunc(groups, func(_ string, n int) bool { return n == 1 })
	return counted(groups, "")
}

// requirements counts them in words.
func requirements(n int) string {
	if n == 1 {
		return "1 requirement"
	}
	return fmt.Sprintf("%d requirements", n)
}

// counted offers the keys, and says of how many requirements each is.
func counted(of map[string]int, kind string) []cobra.Completion {
	var all []cobra.Completion
	for _, name := range slices.Sorted(maps.Keys(of)) {
		what := requirements(of[name])
		if kind != "" {
			what = kind + ", " + what
		}
		all = append(all, cobra.CompletionWithDesc(name, what))
	}
	return all
}

// scenarios offers those of clients; those with a single fault, of which there are
// hundreds, once their prefix is typed.
func scenarios(_ *cobra.Command, prefix string) []cobra.Completion {
	list, _ := suites.OrdinaryScenarios(nil) // only a script can be mistaken
	var faulty []cobra.Completion
	if strings.HasPrefix(prefix, client.FaultPrefix) {
		list = append(list, suites.FaultScenarios()...)
	} else {
		faulty = append(faulty, cobra.CompletionWithDesc(client.FaultPrefix,
			"a server with one of the faults of mcpconform mock --list"))
	}
	return append(faulty, described(list, func(s *client.Scenario) (name, what string) {
		return s.Name, requirements(len(s.Requirements))
	})...)
}

// serverFaults offers those that show over the transport that is chosen.
func serverFaults(cmd *cobra.Command, _ string) []cobra.Completion {
	chosen := func(name string) string { return cmd.Flag(name).Value.String() }
	over := (&listenFlags{http: chosen("http"), sse: chosen("sse"), ws: chosen("ws")}).transport()
	return faults(slices.DeleteFunc(mockserver.Catalogue(), func(f mockserver.Fault) bool {
		return over != transport.NameStdio && !f.Shows(over) // a flag that names a transport may follow
	}))
}

func clientFaults(*cobra.Command, string) []cobra.Completion {
	return faults(mockclient.Catalogue())
}

func faults[P any](all []mockserver.FaultOf[P]) []cobra.Completion {
	return described(all, func(f mockserver.FaultOf[P]) (name, what string) { return f.ID, f.Summary })
}

// serverNames completes the servers of the --from file.
func serverNames(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	names, err := target.Names(cmd.Flag("from").Value.String())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// variables offers the names in our environment, without values, which may be secret.
func variables(*cobra.Command, string) []cobra.Completion {
	var names []cobra.Completion
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		names = append(names, name)
	}
	slices.SortFunc(names, cmp.Compare[string])
	return names
}
