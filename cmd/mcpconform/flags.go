package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/cmd/mcpconform/internal/config"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/script"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/expected"
	"github.com/mcpconform/mcpconform/suites/result"
)

// The groups of flags that several commands share. Each is declared once: those of judging
// and of runs here, with the groups that they consist of, reportFlags in reports.go,
// stdioFlags and httpFlags in target.go, configFlags in config.go, faultFlags in mock.go.

// judgingFlags are those of every command that judges somebody.
type judgingFlags struct {
	reports   reportFlags
	selection selectionFlags
	verdict   verdictFlags
}

func (f *judgingFlags) register(cmd *cobra.Command) {
	f.reports.register(cmd)
	registerPatterns(cmd, &f.selection.Select, "select",
		"judge only these requirements: `ID`, glob, page or level, repeatable")
	registerPatterns(cmd, &f.selection.Skip, "skip",
		"leave out these requirements: `ID`, glob, page or level, repeatable")
	flags := cmd.Flags()
	flags.StringVar(&f.selection.LabelFilter, "label-filter", "",
		"judge only what matches a Ginkgo label filter, an `EXPRESSION` such as 'level: containsAny {MUST}'")
	flags.BoolVar(&f.verdict.strict, "strict", false, "count a broken SHOULD as a failure")
	flags.BoolVar(&f.verdict.expectSDK, "expect-sdk", false,
		"do not count the failures that the SDK of the target is known to cause; if there are none left, the run fails")
	flags.StringVar(&f.verdict.file, "expected-failures", "",
		"do not count the failures that `FILE` lists; an entry that passes makes the run fail")
}

// judging returns what the flags say of a run.
func (f *judgingFlags) judging() suites.Options {
	return suites.Options{
		Selection: f.selection.Selection, Strict: f.verdict.strict, ExpectSDK: f.verdict.expectSDK,
		Tool: result.Tool{Name: "mcpconform", Version: version()},
	}
}

// registerRole declares the flag for who is judged, where messages of both parties are there.
func (f *judgingFlags) registerRole(cmd *cobra.Command, role *string, standard string, more ...string) {
	choose(cmd, role, "role", standard, "judge this party",
		append([]string{string(wire.Server), string(wire.Client)}, more...)...)
}

// runFlags are those of a run that sends something to a party.
type runFlags struct {
	judgingFlags
	families familyFlags
	limits   limitFlags
	scripts  scriptFlags
	stdio    stdioFlags
	shard    shardFlags
}

func (f *runFlags) register(cmd *cobra.Command, p wire.Party) {
	f.judgingFlags.register(cmd)
	f.reports.registerAgainst(cmd)
	f.families.register(cmd)
	f.limits.registerRun(cmd, p)
	f.stdio.register(cmd, p)
	cmd.Flags().StringArrayVar(&f.scripts.folders, "scripts", nil,
		"run the scripts in the folder `DIR` as well (docs/scripts.md), repeatable")
	cmd.Flags().Var(&f.shard, "shard",
		"run only the i-th of n parts, `I/N` from 1/N to N/N; mcpconform report merges their results.json")
}

// running returns what the flags say of a run with scripts.
func (f *runFlags) running(scripts []*script.Script) suites.Options {
	o := f.judging()
	o.Scripts, o.Seed, o.Budget = scripts, f.families.seed, f.families.budget()
	o.Timeout, o.RunTimeout, o.Parallel = f.limits.timeout, f.limits.run, f.limits.parallel
	o.Shard, o.Shards = f.shard.index, f.shard.of
	return o
}

// selectionFlags choose the requirements that are judged.
type selectionFlags struct{ suites.Selection }

// registerPatterns declares a flag that takes patterns of requirements.
func registerPatterns(cmd *cobra.Command, patterns *[]string, name, usage string) {
	cmd.Flags().StringSliceVar(patterns, name, nil, usage)
	validate(cmd, func() error {
		// A script whose variable is empty passes that: it would choose everything.
		if cmd.Flags().Changed(name) && len(*patterns) == 0 {
			return fmt.Errorf("--%s is empty; it takes an ID, glob, page or level", name)
		}
		return nil
	})
}

// validate has a command call valid before it runs, and before what it was told to call so far.
func validate(cmd *cobra.Command, valid func() error) {
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if err := valid(); err != nil || before == nil {
			return err
		}
		return before(cmd, args)
	}
}

// registerQuiet declares the flag for less output.
func registerQuiet(cmd *cobra.Command, quiet *bool, usage string) {
	cmd.Flags().BoolVarP(quiet, "quiet", "q", false, usage)
}

// parties returns those of the parties for which the selection leaves a requirement
// to judge. It fails if there is none.
func (f *selectionFlags) parties(all []wire.Party, own ...schema.Requirement) ([]wire.Party, error) {
	var left []wire.Party
	var faults []error
	for _, p := range all {
		if err := f.Validate(schema.Default(), p, own...); err != nil {
			faults = append(faults, err)
			continue
		}
		left = append(left, p)
	}
	if len(left) > 0 {
		return left, nil
	}
	// A mistake in a pattern is the same for either party.
	if len(faults) > 1 && faults[0].Error() == faults[1].Error() {
		faults = faults[:1]
	}
	return nil, fmt.Errorf("--select, --skip, --label-filter: %w", errors.Join(faults...))
}

// verdictFlags say which findings count.
type verdictFlags struct {
	strict, expectSDK bool
	file              string // of expected failures
}

// expected returns what the file lists, or nil without one.
func (f *verdictFlags) expected() ([]expected.Entry, error) {
	if f.file == "" {
		return nil, nil
	}
	entries, err := config.LoadExpected(f.file)
	if err != nil {
		return nil, fmt.Errorf("--expected-failures: %w", err)
	}
	return entries, nil
}

// limitFlags bound how long a target may take, and how much of it runs at once.
type limitFlags struct {
	timeout, start, run, givesUp time.Duration
	parallel                     int
}

// answerUsage describes --timeout where it is the time for one answer.
const answerUsage = "how long one answer may take"

// answerTimeout is how long one answer may take unless --timeout says otherwise.
const answerTimeout = 10 * time.Second

func (f *limitFlags) registerTimeout(cmd *cobra.Command, standard time.Duration, usage string) {
	cmd.Flags().DurationVar(&f.timeout, "timeout", standard, usage)
}

// startTime is how long the server may take to start.
func (f *limitFlags) startTime() time.Duration {
	return cmp.Or(f.start, client.StartTimes*f.timeout)
}

// registerRun declares the flags of a run that sends something to a party.
func (f *limitFlags) registerRun(cmd *cobra.Command, p wire.Party) {
	flags := cmd.Flags()
	of, parallel := " of its own", "how many connections of single checks are open at a time (default: twice "+
		"the processors; 16 over HTTP)"
	if p == wire.Client {
		of, parallel = "", "how many clients run at a time (default: twice the processors)"
	}
	flags.DurationVar(&f.givesUp, "gives-up-after", 0,
		"the "+string(p)+" gives up a request"+of+
			" after `TIME` at most, if nothing or only progress comes; longer waits are then reported")
	flags.IntVar(&f.parallel, "parallel", 0, parallel)
	f.registerRunTimeout(cmd)
}

func (f *limitFlags) registerRunTimeout(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&f.run, "run-timeout", 0,
		"how long the whole run may take; the rest is then inconclusive (default: by the number of checks and "+
			"--timeout, generously)")
}

func (f *limitFlags) check() error {
	switch {
	case f.timeout <= 0:
		return errors.New("--timeout must be greater than 0")
	case f.start < 0:
		return errors.New("--start-timeout must be greater than 0; with 0, it is three times --timeout")
	case f.run < 0:
		return errors.New("--run-timeout must be greater than 0; with 0, mcpconform chooses it")
	case f.parallel < 0:
		return errors.New("--parallel must be at least 0; with 0, mcpconform chooses the number")
	}
	return nil
}

// familyFlags say which members of families of stimuli are tried.
type familyFlags struct {
	seed     uint64
	quick    bool
	thorough bool
}

// budget returns how much is tried.
func (f *familyFlags) budget() result.Budget {
	switch {
	case f.quick:
		return result.Quick
	case f.thorough:
		return result.Thorough
	}
	return result.Default
}

func (f *familyFlags) register(cmd *cobra.Command) {
	cmd.Flags().Uint64Var(&f.seed, "seed", 0,
		"choose other members of the large families of stimuli (docs/families.md), and another order of requests; "+
			"the same seed chooses the same")
	cmd.Flags().BoolVar(&f.quick, "quick", false, "try each requirement once, in the plainest way: for every push")
	cmd.Flags().BoolVar(&f.thorough, "thorough", false,
		"try all members of all families of stimuli, and longer sequences: for every night")
	validate(cmd, func() error {
		if f.quick && f.thorough {
			return errors.New("--quick and --thorough cannot be given together: one tries less than usual, the " +
				"other more")
		}
		return nil
	})
}

// shardFlags choose a part of the run: --shard i/n.
type shardFlags struct{ index, of int }

func (f *shardFlags) String() string {
	if f.of == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", f.index, f.of)
}

// Type names the value in the usage.
func (f *shardFlags) Type() string { return "I/N" }

// Set reads the value.
func (f *shardFlags) Set(s string) error {
	first, second, _ := strings.Cut(s, "/")
	i, err := strconv.Atoi(first)
	n, errN := strconv.Atoi(second)
	switch {
	case err != nil || errN != nil:
		return errors.New("it takes a number, a slash and a number, such as 1/4")
	case n < 1 || i < 1 || i > n:
		return fmt.Errorf("there is no shard %d of %d; I goes from 1 to N", i, n)
	}
	f.index, f.of = i, n
	return nil
}

// scriptFlags name the user's scripts.
type scriptFlags struct{ folders []string }

// read returns the scripts for a party.
func (f *scriptFlags) read(p wire.Party) ([]*script.Script, error) {
	var all []*script.Script
	for _, folder := range f.folders {
		if info, err := os.Stat(folder); err != nil {
			return nil, fmt.Errorf("--scripts: %w", err)
		} else if !info.IsDir() {
			return nil, fmt.Errorf("--scripts: %s is not a folder", folder)
		}
		found, err := script.ReadDir(os.DirFS(folder), folder)
		if err != nil {
			return nil, fmt.Errorf("--scripts: %w", err)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("--scripts: the folder %s has no file that ends in .md", folder)
		}
		all = append(all, found...)
	}
	if err := suites.CheckScripts(schema.Default(), all, p); err != nil {
		return nil, fmt.Errorf("--scripts: %w", err)
	}
	return all, nil
}
