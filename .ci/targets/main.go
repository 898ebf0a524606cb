// Command targets installs the real servers, clients and tools of
// fixtures/targets/targets.yaml, which mcpconform is tried against, and tells how they
// are run.
//
//	targets install [NAME…]                     targets or installs; all by default
//	targets list [-kind KIND] [-transport NAME]
//	targets show [flags] TARGET TRANSPORT [SERVER ARG…]
//	targets stability [-n N] [-load] [-doc FILE] [TARGET…]   run again and again: which verdicts differ
//	targets race [-n N] [-doc FILE]                          beside the official package: time and memory
//	targets beside [-doc FILE]                               what this and the official package try of authorization
//	targets interop [-doc FILE] DIR                          what the runs found whose results are in DIR
//	targets scale [-n N] [-doc FILE]                         on servers that grow: time and memory
//
// Installed things go to $MCPCONFORM_TARGETS, by default the user's cache folder mcpconform/targets. Targets that are
// already there at the pinned versions are left alone, and cost no request to the network.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "targets:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	const usage = "usage: targets install [NAME…] | list | show TARGET TRANSPORT [SERVER ARG…] | stability [TARGET…] " +
		"| race | beside | scale | interop DIR"
	if len(args) == 0 {
		return errors.New(usage)
	}
	if args[0] == scaleServer {
		return serveScale(ctx, args[1:])
	}
	in, repo, err := open()
	if err != nil {
		return err
	}
	switch args[0] {
	case "install":
		names, err := in.data.selected(args[1:])
		if err != nil {
			return err
		}
		start := time.Now()
		return in.all(ctx, names, func(name, what string) {
			fmt.Fprintf(out, "%-10s %s (%.1f s)\n", name, what, time.Since(start).Seconds())
		})
	case "list":
		return list(in.data, args[1:], out)
	case "show":
		return show(in, repo, args[1:], out)
	case "stability":
		return stability(ctx, in, repo, args[1:], out)
	case "race":
		return race(ctx, in, repo, args[1:], out)
	case "beside":
		return beside(ctx, in, repo, args[1:], out)
	case "interop":
		return interop(in, args[1:], out)
	case "scale":
		return scale(ctx, in, repo, args[1:], out)
	}
	return fmt.Errorf("unknown command %q\n%s", args[0], usage)
}

func open() (in *installer, repo string, err error) {
	at, err := os.Getwd()
	if err != nil {
		return nil, "", err
	}
	repo, err = repository(at)
	if err != nil {
		return nil, "", err
	}
	in = &installer{dir: filepath.Join(repo, "fixtures", "targets"), cache: os.Getenv("MCPCONFORM_TARGETS")}
	if in.cache == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, "", err
		}
		in.cache = filepath.Join(cache, "mcpconform", "targets")
	}
	if in.cache, err = filepath.Abs(in.cache); err != nil {
		return nil, "", err
	}
	in.data, err = load(in.dir)
	return in, repo, err
}

func list(data *Data, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("list", flag.ContinueOnError)
	kind := flags.String("kind", "", "only this `kind`: server, client, authorization-server or tool")
	transport := flags.String("transport", "", "only with this `transport`: stdio, http, sse or ws")
	if err := flags.Parse(args); err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, t := range data.Targets {
		if *kind != "" && t.Kind != *kind || *transport != "" && t.Transports[*transport] == nil {
			continue
		}
		names := strings.Join(slices.Sorted(maps.Keys(t.Transports)), ",")
		fmt.Fprintln(table, strings.Join([]string{t.Name, t.Kind, t.Language, t.Package, t.Version, names}, "\t"))
	}
	return table.Flush()
}

func show(in *installer, repo string, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("show", flag.ContinueOnError)
	port := flags.Int("port", 0, "the `port` a server listens on; a free one by default")
	tmp := flags.String("tmp", "", "the `folder` that a target may write to")
	url := flags.String("url", "", "the `endpoint` that a client connects to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() < 2 {
		return errors.New("usage: targets show [-port N] [-tmp DIR] [-url URL] TARGET TRANSPORT [SERVER ARG…]")
	}
	name, transport := flags.Arg(0), flags.Arg(1)
	target := in.data.target(name)
	if target == nil {
		return fmt.Errorf("no target %q", name)
	}
	values := Values{Tmp: *tmp, URL: *url, Server: flags.Args()[2:]}
	if *port != 0 {
		values.Port = strconv.Itoa(*port)
	}
	run, err := in.prepare(repo, target, transport, values)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(run)
}

// prepare fills in how a target is run over a transport: its cache and repository, and
// a free port if the values have none. The target has to be installed.
func (in *installer) prepare(repo string, target *Target, over string, values Values) (*Run, error) {
	t := target.Transports[over]
	if t == nil {
		return nil, fmt.Errorf("%s has no transport %q", target.Name, over)
	}
	needs, err := in.data.selected([]string{target.Name})
	if err != nil {
		return nil, err
	}
	for _, need := range needs {
		ready, _, err := in.ready(need)
		if err != nil {
			return nil, err
		}
		if !ready {
			return nil, fmt.Errorf("%s is not installed at the pinned version: go run ./.ci/targets install %s",
				target.Name, target.Name)
		}
	}
	values.Cache, values.Repo = in.cache, repo
	if slices.Contains(needs, "node") {
		if values.Node, err = in.node(); err != nil {
			return nil, err
		}
	}
	if t.Port != 0 {
		values.Port = strconv.Itoa(t.Port)
	} else if values.Port == "" {
		port, err := transport.FreePort()
		if err != nil {
			return nil, err
		}
		values.Port = strconv.Itoa(port)
	}
	run, err := t.fill(values)
	if err != nil {
		return nil, fmt.Errorf("%s over %s: %w", target.Name, over, err)
	}
	return run, nil
}
