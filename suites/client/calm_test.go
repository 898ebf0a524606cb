package client_test

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/mockserver/mockclient"
	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/transport/memory"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/internal/brief"
	"github.com/mcpconform/mcpconform/suites/internal/killmatrix"
	"github.com/mcpconform/mcpconform/suites/internal/virtual"
	"github.com/mcpconform/mcpconform/suites/result"
)

var (
	oddID = flag.String("oddity", "", "try only the oddities whose id begins with this")
	whole = flag.Bool("whole", false, "try the oddities in all scenarios, in place of a part of them")
)

// part is how many scenarios there are for each in which an oddity is tried, besides
// those that it names. Each scenario sees oddities of every topic.
const part = 24

const calmFile = "../../docs/calm-matrix-clients.md"

const calmHead = "# Calm matrix of clients\n\n" +
	"Clients that are odd and legal: how each differs on the wire, and why the specification allows it. The scenarios find\n" +
	"fault with none of them, over any transport; a finding fails the build. The last column names what a client with the oddity\n" +
	"leaves open. Written by `go test ./suites/client -run TestCalmTable -update`. `TestCalmMatrix` tries each in the scenarios\n" +
	"in which it shows and in a part of the others, and with `-whole` in all. Faults of clients are in `kill-matrix-clients.md`.\n"

// accused lists what is accused although it is legal, until that is mended. It must
// only shrink.
var accused = map[string][]string{
	"progress.token-again": {"progress.token.unique"}, // in faults/lines, where the harness does not know its own answer again
}

// attempt is one run: a client with an oddity over a transport.
type attempt struct {
	mockclient.Oddity
	over      string
	scenarios []string // nil for all
}

func (a attempt) String() string { return a.ID + "/" + a.over }

// attempts returns the runs to make.
func attempts() []attempt {
	var all []attempt
	for i, o := range mockclient.Oddities() {
		if !strings.HasPrefix(o.ID, *oddID) {
			continue
		}
		for n, over := range calmTransports {
			if len(o.Transports) > 0 && !slices.Contains(o.Transports, over) {
				continue
			}
			a := attempt{Oddity: o, over: over}
			if !*whole {
				a.scenarios = append(a.scenarios, o.Scenarios...)
				for j, s := range client.Scenarios() {
					if (i+j+n)%part == 0 {
						a.scenarios = append(a.scenarios, s.Name)
					}
				}
			}
			all = append(all, a)
		}
	}
	return all
}

var calmTransports = []string{transport.NameStdio, transport.NameHTTP, transport.NameSSE}

// TestCalmMatrix runs the scenarios with clients that are odd and legal: none of them
// may be accused.
func TestCalmMatrix(t *testing.T) {
	all := attempts()
	if len(all) == 0 {
		t.Fatalf("no oddity begins with %q", *oddID)
	}
	if n := brief.OneOf(); n > 0 {
		all = brief.Part(t, all, n)
	}
	passes := make(map[string]map[string]bool) // of the plain client, by transport
	if *whole {
		for _, over := range calmTransports {
			virtual.Test(t, func(t *testing.T) {
				run, err := attempt{over: over}.run(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				passes[over] = make(map[string]bool)
				for _, q := range run.Requirements {
					passes[over][q.ID] = q.Verdict == result.Pass
				}
			})
		}
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(all); n = int(next.Add(1)) - 1 {
				a := all[n]
				t.Run(a.String(), func(t *testing.T) {
					virtual.Test(t, func(t *testing.T) { a.try(t, passes[a.over]) })
				})
			}
		})
	}
	workers.Wait()
}

// run runs the scenarios of an attempt.
func (a attempt) run(ctx context.Context) (*result.Run, error) {
	s := suites.ClientScenarios{
		Transport: a.over, Scenarios: a.scenarios, Bridge: []string{"bridge"}, Network: new(memory.Network),
		Launch: func(p client.Endpoint) (transport.Process, error) {
			return transport.Func{Name: "odd client", Run: func(ctx context.Context, _ io.Reader, _, _ io.Writer) error {
				c := reference.Standalone{
					URL: p.URL, Dial: p.Dial, Legacy: p.Transport == transport.NameSSE, Timeout: answerTime, UserActions: p.UserActions,
					Authorizer: &reference.Authorizer{ID: p.ClientID, Secret: p.ClientSecret},
				}
				if p.Transport == transport.NameStdio {
					c.Launcher = transport.Func{Name: p.Scenario, Run: p.Serve}
				}
				return mockclient.Start(ctx, c, a.Oddity)
			}}.Launch()
		},
	}
	run, _, err := suites.Run(ctx, s, suites.Options{Timeout: 20 * time.Second})
	return run, err
}

// try makes a run, which must be without findings. passed says what the plain client
// passes; nil if that is not compared.
func (a attempt) try(t *testing.T, passed map[string]bool) {
	run, err := a.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range run.Requirements {
		switch q.Verdict {
		case result.Fail, result.Warn, result.Error:
			if !slices.Contains(accused[a.ID], q.ID) {
				t.Errorf("%s is %s: %s", q.ID, q.Verdict, killmatrix.Why(q))
			}
		case result.Inconclusive:
			if passed[q.ID] && !slices.Contains(accused[a.ID], q.ID) && !slices.ContainsFunc(a.Untried, func(pattern string) bool {
				ok, _ := path.Match(pattern, q.ID)
				return ok
			}) {
				t.Errorf("%s is %s: %s", q.ID, q.Verdict, q.Reason)
			}
		}
	}
	for _, h := range run.Harness {
		t.Errorf("mcpconform has sent a faulty message: %s: %s %v", h.Check, h.Message, h.Evidence)
	}
}

// TestCalmTable compares the table with the file or, with -update, writes the file.
func TestCalmTable(t *testing.T) {
	text := calmText()
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(calmFile, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	written, err := os.ReadFile(calmFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(written), string(text)); diff != "" {
		t.Errorf("%s is out of date; run this test with -update (-file +now):\n%s", calmFile, diff)
	}
}

// calmText renders the table by page, in the order of the catalogue's pages.
func calmText() []byte {
	first := make(map[string]int)
	if catalogue, err := schema.Catalogue(); err == nil {
		for i, r := range slices.Backward(catalogue) {
			first[r.Page] = i
		}
	}
	all := mockclient.Oddities()
	slices.SortStableFunc(all, func(a, b mockclient.Oddity) int { return cmp.Compare(first[a.Source.Page], first[b.Source.Page]) })
	var b bytes.Buffer
	b.WriteString(calmHead)
	page := ""
	for _, o := range all {
		if o.Source.Page != page {
			page = o.Source.Page
			fmt.Fprintf(&b, "\n## %s\n\n| oddity | on the wire | why it is legal | over | leaves open |\n|---|---|---|---|---|\n", page)
		}
		over, open := "all", ""
		if len(o.Transports) > 0 {
			over = strings.Join(o.Transports, ", ")
		}
		if len(o.Untried) > 0 {
			open = "`" + strings.Join(o.Untried, "` `") + "`"
		}
		anchor := cmp.Or(o.Source.Anchor, "top")
		for i, cell := range []string{"`" + o.ID + "`", o.Summary, fmt.Sprintf("%s ([#%s](%s))", o.Why, anchor, o.Source.URL(schema.Version)), over, open} {
			if i == 0 {
				b.WriteString("|")
			}
			b.WriteString(" " + strings.ReplaceAll(cell, "|", `\|`) + " |")
		}
		b.WriteString("\n")
	}
	return b.Bytes()
}

// The oddities are told apart, and their sources are places that the catalogue knows.
func TestOdditiesAreSound(t *testing.T) {
	places := make(map[schema.Source]bool)
	catalogue, err := schema.Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range catalogue {
		places[schema.Source{Page: r.Page, Anchor: r.Anchor}] = true
	}
	seen := make(map[string]bool)
	for _, o := range mockclient.Oddities() {
		if seen[o.ID] {
			t.Errorf("two oddities are named %s", o.ID)
		}
		seen[o.ID] = true
		if o.Summary == "" || o.Why == "" || o.Apply == nil && o.Run == nil {
			t.Errorf("%s is incomplete", o.ID)
		}
		if !places[o.Source] {
			t.Errorf("%s: the catalogue has no requirement at %s#%s", o.ID, o.Source.Page, o.Source.Anchor)
		}
		for _, pattern := range o.Scenarios {
			if !slices.ContainsFunc(client.Scenarios(), func(s *client.Scenario) bool { return s.Named(pattern) }) {
				t.Errorf("%s: there is no scenario %s", o.ID, pattern)
			}
		}
	}
	for id := range accused {
		if !seen[id] {
			t.Errorf("there is no oddity %s, which the exceptions name", id)
		}
	}
}
