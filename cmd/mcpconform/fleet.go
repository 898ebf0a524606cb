package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/cmd/mcpconform/internal/config"
	"github.com/mcpconform/mcpconform/cmd/mcpconform/internal/target"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/reporters"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/result"
)

// fleetFlags are those of a run against all servers of a client's configuration.
type fleetFlags struct {
	all  bool
	jobs int
}

// serverPlaceholder stands for the name of a server in the path of a report.
const serverPlaceholder = "{server}"

// aboutOne are the flags that are about one server: what they say, such as a token,
// is nothing for the others.
var aboutOne = []string{
	"name", "url", "start", "transport", "transport-command", "header", "bearer-env", "client-id", "client-secret-env",
	"scope",
	"second-user",
	"cert", "key", "unix-socket", "protected", "env", "cwd", "expected-failures", "against",
}

// checkFleet reports flags that do not go together.
func (f *serverFlags) checkFleet(cmd *cobra.Command, args []string) error {
	switch {
	case !f.fleet.all && cmd.Flags().Changed("jobs"):
		return errors.New("--jobs needs --all")
	case !f.fleet.all:
		return nil
	case f.config.from == "":
		return errors.New("--all needs --from; it tests all servers of that file")
	case len(args) > 0:
		return errors.New("--all tests the servers of the --from file; COMMAND cannot be given with it")
	case f.fleet.jobs < 0:
		return errors.New("--jobs must be at least 0; with 0, mcpconform chooses the number")
	}
	for _, name := range aboutOne {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s is about one server; it cannot be given with --all", name)
		}
	}
	return nil
}

// member is one server of the fleet.
type member struct {
	reporters.Member
	flags serverFlags
	run   serverOptions
	args  []string
	code  int
}

// testAll tests all servers of a file, a few at a time, and writes the reports of each.
// Their specs run in order, as a process can run one Ginkgo suite only; nothing else is
// shared by the servers, so that one Ctrl-C ends all and no secret passes through
// the command lines of further processes.
func (f *serverFlags) testAll(cmd *cobra.Command) error {
	servers, err := target.Names(f.config.from)
	if err != nil {
		return err
	}
	base, err := f.config.load()
	if err != nil {
		return err
	}
	jobs := min(len(servers), f.fleet.jobs)
	if jobs == 0 {
		jobs = min(len(servers), runtime.GOMAXPROCS(0))
	}
	members := make([]*member, len(servers))
	for i, file := range fileNames(servers) {
		if members[i], err = f.member(cmd, *base, servers[i], file, len(servers)); err != nil {
			return err
		}
	}
	progress := f.reports.progress()
	progress.Start(len(members))
	var testing sync.WaitGroup
	slots := make(chan struct{}, jobs)
	for _, m := range members {
		slots <- struct{}{}
		testing.Go(func() {
			defer func() { <-slots }()
			m.test(cmd.Context())
			progress.Done(m.Name, m.verdict(), false, m.Reason())
		})
	}
	testing.Wait()
	progress.Stop()
	return f.summarise(members)
}

// member returns one server, ready to be tested or with what keeps it from that. The
// error is about all of them.
func (f *serverFlags) member(cmd *cobra.Command, base config.Config, name, file string, n int) (*member, error) {
	m := &member{Member: reporters.Member{Name: name}, flags: *f}
	m.flags.config.name = name
	m.flags.http.headers = slices.Clip(f.http.headers)
	var err error
	if m.flags.reports, err = f.reports.of(file, n); err != nil {
		return nil, err
	}
	if err = m.flags.reports.check(); err != nil {
		return nil, err
	}
	// Settings about one server are not meant for the others.
	base.ToolRoles, base.Authorization, base.CallTools, base.Expected = nil, config.Authorization{},
		"", config.Expected{}
	base.TrustedOrigins, base.Public = nil, false
	m.args, m.Err = m.flags.apply(cmd, &base, nil)
	var disabled *target.DisabledError
	switch {
	case errors.As(m.Err, &disabled):
		m.Err = fmt.Errorf("it is disabled in the file (%s)", disabled.Because)
		return m, nil
	case m.Err != nil:
		m.code = exitUsage
		return m, nil //nolint:nilerr // the member keeps it, and the others are tested all the same
	}
	if len(m.args) > 0 {
		m.flags.http = httpFlags{transport: transportAuto} // --insecure and the like are for the others
	} else {
		m.flags.stdio = stdioFlags{} // so are --sandbox and the like
	}
	if m.run, err = m.flags.options(); err != nil {
		return nil, err
	}
	return m, nil
}

// test tests the server and writes its reports.
func (m *member) test(ctx context.Context) {
	switch {
	case m.Err != nil:
		return
	case ctx.Err() != nil:
		m.Err, m.code = errors.New("the run was interrupted"), exitIncomplete
		return
	}
	stop, err := m.flags.target(ctx, &m.run, m.args)
	if err != nil {
		m.Err, m.code = err, exitUsage
		return
	}
	var trace *wire.Trace
	m.Run, trace, err = suites.Run(ctx, m.run.ServerChecks, m.run.Options)
	stop()
	if err != nil {
		m.Err, m.code = err, exitUsage
		return
	}
	m.code = exit(m.Run, m.flags.reports.writeFiles(m.Run, trace))
}

// verdict is that of the server as one step of the whole.
func (m *member) verdict() result.Verdict {
	switch m.code {
	case exitConformant:
		return result.Pass
	case exitNotConformant:
		return result.Fail
	}
	return result.Error
}

// summarise prints the table of all servers and returns the worst exit code: a server that
// is not conformant outweighs one that could not be tried.
func (f *serverFlags) summarise(members []*member) error {
	code := exitConformant
	if !slices.ContainsFunc(members, func(m *member) bool { return m.Run != nil }) {
		code = exitIncomplete // nothing is green because nothing happened
	}
	all := make([]reporters.Member, len(members))
	for i, m := range members {
		code = worst(code, m.code)
		all[i] = m.Member
		if m.Err != nil {
			redactor := newRedactor(m.flags.stdio.env, append(os.Args[1:], m.args...))
			all[i].Err = errors.New(redactor.String(m.Err.Error()))
			if f.reports.quiet {
				fmt.Fprintf(guarded(os.Stderr), "mcpconform: %s: %s\n", m.Name, all[i].Reason())
			}
		}
	}
	if f.reports.quiet {
		if _, err := fmt.Fprintln(guarded(f.reports.beside(os.Stdout)), reporters.FleetLine(all)); err != nil {
			return err
		}
	} else {
		for _, m := range members {
			if m.Run == nil {
				continue
			}
			if err := reporters.Console(guarded(os.Stdout), m.Run, f.reports.consoleOptions(os.Stdout)); err != nil {
				return err
			}
			fmt.Println()
		}
		if err := reporters.Summary(guarded(os.Stdout), all, f.reports.consoleOptions(os.Stdout)); err != nil {
			return err
		}
	}
	if err := f.reports.tellGitHub(os.Stdout, all); err != nil {
		return err
	}
	return ended(code)
}

// of returns the reports of one of n servers: their paths have the name of its files in
// place of {server}.
func (f *reportFlags) of(name string, n int) (reportFlags, error) {
	own := *f
	for i, file := range f.files() {
		path := *file.path
		if n > 1 && path != "" && !strings.Contains(path, serverPlaceholder) {
			return own,
				fmt.Errorf("--%s: %d servers are tested, and each needs a file of its own; put %s "+
					"in the name, as in %s",
					file.flag, n, serverPlaceholder, serverPlaceholder+"-"+file.flag)
		}
		*own.files()[i].path = strings.ReplaceAll(path, serverPlaceholder, name)
	}
	return own, nil
}

// longestName bounds the name of a file in bytes, with room for what a path adds to it.
const longestName = 100

// fileNames returns names of files. All of them differ, even without regard to case, and none leads to another
// folder.
func fileNames(names []string) []string {
	files := make([]string, len(names))
	taken := make(map[string]bool)
	for i, name := range names {
		file := strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.@+", r) {
				return r
			}
			return '-'
		}, name)
		if strings.HasPrefix(file, ".") || file == "" {
			file = "-" + file
		}
		for len(file) > longestName {
			r := []rune(file)
			file = string(r[:len(r)-1])
		}
		plain := file
		for n := 2; taken[strings.ToLower(file)]; n++ {
			file = fmt.Sprintf("%s-%d", plain, n)
		}
		taken[strings.ToLower(file)] = true
		files[i] = file
	}
	return files
}
