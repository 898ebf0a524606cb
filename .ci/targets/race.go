package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
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
	requests                  int64 // over HTTP, in a round of their own
	wall, cpu                 []time.Duration
	memory                    []int64
}

// field returns the contestants on a server: two modes of ours, and the other tester.
func field(server, over string) []*lap {
	var laps []*lap
	for _, contestant := range []string{"mcpconform", "mcpconform --quick", rivals[over]} {
		laps = append(laps, &lap{server: server + " " + over, contestant: contestant})
	}
	return laps
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
	var b strings.Builder
	rows := io.MultiWriter(out, &b)
	b.WriteString("| server | tester | what is tried | requests | wall | processor | memory | wall beside mcpconform " +
		"|\n|---|---|---|---|---|---|---|---|\n")
	for _, over := range []string{"http", "stdio"} {
		for _, name := range raceServers {
			laps := field(name, over)
			for round := range *n + 1 {
				for _, l := range laps {
					if err := t.lap(ctx, l, in.data.target(name), over, round == 0); err != nil {
						return fmt.Errorf("%s over %s: %w", name, over, err)
					}
				}
			}
			for _, l := range laps {
				fmt.Fprint(rows, l.text(laps[0]))
			}
		}
	}
	if *doc == "" {
		return nil
	}
	return replaceBetween(*doc, "race", b.String())
}

// lap runs a contestant once, on a server of its own. A round that counts requests passes them on, and its time does
// not count.
func (t *tester) lap(ctx context.Context, l *lap, server *Target, over string, counts bool) (err error) {
	dir, err := os.MkdirTemp(t.dir, "lap")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	run, err := t.in.prepare(t.repo, server, over, Values{Tmp: dir})
	if err != nil {
		return err
	}
	at, timed := run.URL, l
	if over != "stdio" {
		stop, err := serve(ctx, dir, run)
		if err != nil {
			return err
		}
		defer stop()
		if counts {
			counting, err := countRequests(run.URL, &l.requests)
			if err != nil {
				return err
			}
			defer counting.Close()
			at = counting.URL
		}
	}
	if counts {
		timed = new(lap)
	}
	file := filepath.Join(dir, "results.json")
	command := []string{t.program, "server", "-q", "--json", file}
	switch _, mode, ours := strings.Cut(l.contestant, "mcpconform"); {
	case !ours:
		rival, err := t.in.prepare(t.repo, t.in.data.target(rivals[over]), over,
			Values{Tmp: dir, URL: at, Server: run.Command})
		if err != nil {
			return err
		}
		return timed.run(ctx, dir, rival.Command, rival.Env, run.Env)
	case over == "stdio":
		command = slices.Concat(command, strings.Fields(mode), []string{"--"}, run.Command)
	default:
		command = slices.Concat(command, strings.Fields(mode), []string{"--transport", over, "--url", at})
	}
	if err := timed.run(ctx, dir, command, run.Env); err != nil {
		return err
	}
	found, err := readRun(file)
	if err != nil {
		return err
	}
	n := found.Counts()
	l.tried = fmt.Sprintf("%d requirements", n[result.Pass]+n[result.Fail]+n[result.Warn])
	return nil
}

// countRequests serves what is at a URL, and counts the requests.
func countRequests(target string, n *int64) (*httptest.Server, error) {
	to, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	passOn := &httputil.ReverseProxy{FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
			r.Out.Host = r.In.Host
		}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		atomic.AddInt64(n, 1)
		passOn.ServeHTTP(w, r)
	}))
	s.URL += to.Path
	return s, nil
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
	requests := "–"
	if l.requests > 0 {
		requests = strconv.FormatInt(l.requests, 10)
	}
	wall := median(l.wall)
	return fmt.Sprintf("| %s | %s | %s | %s | %.2f s | %.2f s | %d MB | %.1f |\n",
		l.server, l.contestant, tried, requests, wall.Seconds(), median(l.cpu).Seconds(), median(l.memory)/1024,
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
