package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/result"
)

// size says how large a server is.
type size struct {
	tools  int
	result int // bytes of the result of its tool
	rate   int // log messages a second, in each session
}

func (s size) String() string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{s.tools, "tools"}, {s.result, "bytes in each result"}, {s.rate, "log messages a second"}} {
		if p.n > 1 {
			parts = append(parts, thousands(p.n)+" "+p.what)
		}
	}
	return strings.Join(parts, ", ")
}

// thousands writes a number with a comma at each thousand.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// sizes of the servers in the table: one thing grows at a time.
var sizes = []size{
	{tools: 10}, {tools: 100}, {tools: 1_000}, {tools: 10_000},
	{tools: 1, result: 100_000}, {tools: 1, result: 1_000_000}, {tools: 1, result: 10_000_000},
	{tools: 1, rate: 10}, {tools: 1, rate: 100}, {tools: 1, rate: 1_000},
}

// scaleServer is the command of such a server.
const scaleServer = "scale-server"

// scale measures runs against servers that grow.
func scale(ctx context.Context, in *installer, repo string, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	n := flags.Int("n", 3, "how `often` each server is tested")
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
	b.WriteString("| the server has | verdict | wall | processor | memory |\n|---|---|---|---|---|\n")
	for _, s := range sizes {
		row, err := t.scaled(ctx, s, *n)
		if err != nil {
			return fmt.Errorf("%v: %w", s, err)
		}
		fmt.Fprint(out, row)
		b.WriteString(row)
	}
	if *doc == "" {
		return nil
	}
	return replaceBetween(*doc, "scale", b.String())
}

// scaled returns the row of a server that was tested n times.
func (t *tester) scaled(ctx context.Context, s size, n int) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	l := new(lap)
	var verdict result.Overall
	for range n {
		port, err := transport.FreePort()
		if err != nil {
			return "", err
		}
		at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		run := &Run{URL: "http://" + at + server.PathMCP, Command: []string{self, scaleServer,
			"-at", at, "-tools", strconv.Itoa(s.tools), "-result", strconv.Itoa(s.result), "-rate",
			strconv.Itoa(s.rate)}}
		stop, err := serve(ctx, t.repo, run)
		if err != nil {
			return "", err
		}
		file := filepath.Join(t.dir, "results.json")
		err = l.run(ctx, t.dir, []string{t.program, "server", "-q", "--call-tools", "all", "--json", file, "--url",
			run.URL})
		stop()
		if err != nil {
			return "", err
		}
		found, err := readRun(file)
		if err != nil {
			return "", err
		}
		verdict = found.Verdict
	}
	return fmt.Sprintf("| %s | %s | %.2f s | %.2f s | %d MB |\n", s, verdict, median(l.wall).Seconds(),
		median(l.cpu).Seconds(), median(l.memory)/1024), nil
}

// serveScale is a server of some size, until the context ends.
func serveScale(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet(scaleServer, flag.ContinueOnError)
	at := flags.String("at", "", "listen at this `address`")
	var s size
	flags.IntVar(&s.tools, "tools", 1, "how `many` tools it has")
	flags.IntVar(&s.result, "result", 0, "how many `bytes` each result of them has")
	flags.IntVar(&s.rate, "rate", 0, "how many log `messages` a second it sends in each session")
	if err := flags.Parse(args); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *at)
	if err != nil {
		return err
	}
	o := server.Options{Catalogue: new(server.Catalogue), PageSize: 100}
	text := strings.Repeat("mcpconform ", s.result/11+1)[:max(s.result, 2)]
	for i := range s.tools {
		o.Catalogue.Tools = append(o.Catalogue.Tools, &server.Tool{
			Definition: map[string]any{
				"name": fmt.Sprintf("tool_%05d", i), "description": "One of many.",
				"annotations": map[string]any{"readOnlyHint": true},
				"inputSchema": map[string]any{"type": "object",
					"properties": map[string]any{"n": map[string]any{"type": "integer"}}},
			},
			Call: func(context.Context, *server.Request, map[string]any) (any, *wire.Error) {
				return map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}, nil
			},
		})
	}
	if s.rate > 0 {
		o.Behaviour.Initialized = func(ctx context.Context, session *server.Session) {
			tick := time.NewTicker(time.Second / time.Duration(s.rate))
			defer tick.Stop()
			for n := 0; ; n++ {
				select {
				case <-tick.C:
					session.Notify("notifications/message",
						map[string]any{"level": "info", "data": fmt.Sprintf("message %d", n)})
				case <-ctx.Done():
					return
				}
			}
		}
	}
	if err := server.New(o).HTTP().Serve(ctx, listener); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
