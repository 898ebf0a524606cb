package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/suites/result"
)

// The servers of the race, and the other testers that run on them. Over HTTP that is the official conformance
// package. The package has nothing for stdio; a client that shakes hands and lists is the floor there.
var (
	raceServers = []string{"go-sdk-conformance", "ts-everything"}
	rivals      = map[string]string{"http": "conformance", "stdio": "go-sdk-listfeatures"}
)

// lap is one contestant on one server, over all rounds.
type lap struct {
	server, contestant, tried string
	wall, cpu                 []time.Duration
	memory                    []int64
}

func race(ctx context.Context, in *installer, repo string, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("race", flag.ContinueOnError)
	n := flags.Int("n", 9, "how `often` each contestant runs, in turn")
	doc := flags.String("doc", "", "write the table into this `file`, between its marks")
	if err := flags.Parse(args); err != nil {
		return err
	}
	t, err := newTester(ctx, in, repo)
	if err != nil {
		return err
	}
	defer t.close()
	var laps []*lap
	for _, over := range []string{"http", "stdio"} {
		for _, name := range raceServers {
			ours := &lap{server: name + " " + over, contestant: "mcpconform"}
			theirs := &lap{server: ours.server, contestant: rivals[over]}
			for range *n {
				if err := t.round(ctx, in.data.target(name), over, ours, theirs); err != nil {
					return fmt.Errorf("%s over %s: %w", name, over, err)
				}
			}
			laps = append(laps, ours, theirs)
			fmt.Fprint(out, ours.text(ours)+theirs.text(ours))
		}
	}
	if *doc == "" {
		return nil
	}
	var b strings.Builder
	b.WriteString("| server | tester | what is tried | wall | processor | memory | wall beside mcpconform " +
		"|\n|---|---|---|---|---|---|---|\n")
	for i, l := range laps {
		b.WriteString(l.text(laps[i-i%2]))
	}
	return replaceBetween(*doc, "race", b.String())
}

// round runs both contestants once, each on a server of its own.
func (t *tester) round(ctx context.Context, server *Target, over string, ours, theirs *lap) (err error) {
	dir, err := os.MkdirTemp(t.dir, "round")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "results.json")
	for _, l := range []*lap{ours, theirs} {
		run, err := t.in.prepare(t.repo, server, over, Values{Tmp: dir})
		if err != nil {
			return err
		}
		var command []string
		var env map[string]string
		switch {
		case l == theirs:
			rival, err := t.in.prepare(t.repo, t.in.data.target(rivals[over]), over,
				Values{Tmp: dir, URL: run.URL, Server: run.Command})
			if err != nil {
				return err
			}
			command, env = rival.Command, rival.Env
		case over == "stdio":
			command = append([]string{t.program, "server", "-q", "--json", file, "--"}, run.Command...)
		default:
			command = []string{t.program, "server", "-q", "--json", file, "--transport", over, "--url", run.URL}
		}
		stop := func() {}
		if over != "stdio" {
			if stop, err = serve(ctx, dir, run); err != nil {
				return err
			}
		}
		err = l.run(ctx, dir, command, env, run.Env)
		stop()
		if err != nil {
			return err
		}
	}
	found, err := readRun(file)
	if err != nil {
		return err
	}
	counts := found.Counts()
	ours.tried = fmt.Sprintf("%d requirements", counts[result.Pass]+counts[result.Fail]+counts[result.Warn])
	return nil
}

func (l *lap) run(ctx context.Context, dir string, command []string, envs ...map[string]string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = environ(envs...)
	spent, out, err := timed(cmd)
	// Both testers exit with 1 when something failed, ours with 3 when it is incomplete.
	if exit := new(exec.ExitError); err != nil &&
		(!errors.As(err, &exit) || exit.ExitCode() != 1 && exit.ExitCode() != 3) {
		return fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, out)
	}
	l.wall, l.cpu, l.memory = append(l.wall, spent.wall), append(l.cpu, spent.cpu), append(l.memory, spent.memory)
	return nil
}

// text is a row of the table. The ratio is that to the wall time of ours.
func (l *lap) text(ours *lap) string {
	tried := l.tried
	switch l.contestant {
	case "conformance":
		tried = "the scenarios of the official package"
	case "go-sdk-listfeatures":
		tried = "a handshake and the lists"
	}
	wall := median(l.wall)
	return fmt.Sprintf("| %s | %s | %s | %.2f s | %.2f s | %d MB | %.1f |\n", l.server, l.contestant, tried,
		wall.Seconds(), median(l.cpu).Seconds(), median(l.memory)/1024,
		float64(wall)/float64(max(1, median(ours.wall))))
}

func environ(envs ...map[string]string) []string {
	all := os.Environ()
	for _, env := range envs {
		for name, value := range env {
			all = append(all, name+"="+value)
		}
	}
	return all
}

// serve starts a server and waits until it accepts connections.
func serve(ctx context.Context, dir string, run *Run) (stop func(), err error) {
	at, err := url.Parse(run.URL)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, run.Command[0], run.Command[1:]...)
	cmd.Dir = dir
	cmd.Env = environ(run.Env)
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	stop = func() {
		cancel()
		_ = cmd.Wait() // it was killed
	}
	limit := time.After(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := net.Dial("tcp", at.Host)
		if err == nil {
			conn.Close()
			return stop, nil
		}
		select {
		case <-ctx.Done():
			stop()
			return nil, ctx.Err()
		case <-limit:
			stop()
			return nil, fmt.Errorf("%s did not listen within a minute: %w", strings.Join(run.Command, " "), err)
		case <-tick.C:
		}
	}
}
