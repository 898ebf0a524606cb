package client_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/interop"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/client"
	clients "github.com/mcpconform/mcpconform/suites/internal/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

var (
	updateFindings = flag.Bool("update-findings", false, "write the findings on the interop targets and their table, without reasons for new ones")
	interopReports = flag.String("interop-reports", "", "write the results of the interop targets to this `folder`")
)

const (
	findingsFile = "../../fixtures/targets/client-findings.yaml"
	tableFile    = "../../docs/clients.md"
)

// TestInterop runs the scenarios against real clients, installed by
//
//	go run ./.ci/targets install
//
// and compares their findings with the findings that were confirmed by reading. Most of a launch is the start of the
// client. Unless everything is to be tried, every second client runs all scenarios over one of its transports. A part
// of the scenarios is run with the others, and over the other transports.
func TestInterop(t *testing.T) {
	targets := interop.Open(t, "../..")
	known := interop.Load(t, findingsFile, *updateFindings)
	bridge := filepath.Join(t.TempDir(), "mcpconform")
	interop.Build(t, bridge, "../../cmd/mcpconform")
	rows := &table{rows: make(map[string]*result.Run)}
	transports := []string{transport.NameHTTP, transport.NameStdio, transport.NameSSE, webSocket}
	whole, some := inWhole(t, targets, transports), someScenarios(t)
	targets.Each(t, "client", clientsAtATime, transports, func(t *testing.T, name, over string) {
		key := name + " " + over
		scenarios, options := launching(t, targets, bridge, name, over)
		if !whole[key] {
			scenarios.Scenarios = some
		}
		run := conduct(t, scenarios, options)
		t.Log(interop.Summary(run))
		if *interopReports != "" {
			writeRun(t, filepath.Join(*interopReports, strings.ReplaceAll(key, " ", "-")+".json"), run)
		}
		known.Check(t, key, !whole[key], run)
		rows.add(key, run)
	})
	known.Save(t)
	if *updateFindings {
		rows.write(t, tableFile)
	}
}

// inWhole says which clients run all scenarios over which transports, by the keys of the findings:
// every second one over one, or all over all.
func inWhole(t *testing.T, targets *interop.Targets, transports []string) map[string]bool {
	t.Helper()
	keys := make(map[string][]string)
	for _, over := range transports {
		for _, name := range targets.List(t, "client", over) {
			keys[name] = append(keys[name], name+" "+over)
		}
	}
	whole := make(map[string]bool)
	names := slices.Sorted(maps.Keys(keys))
	part := !brief.Whole() && !*updateFindings
	if part {
		names = brief.Sample(t, names, 2)
	}
	for _, name := range names {
		all := keys[name]
		if part {
			all = brief.Sample(t, all, len(all))
		}
		for _, key := range all {
			whole[key] = true
		}
	}
	return whole
}

// someScenarios returns one in eight of those that are launched together, or alone, and the one
// with which others are compared.
func someScenarios(t *testing.T) []string {
	t.Helper()
	var launches [][]string
	combined := make(map[string]bool)
	for _, s := range clients.Scenarios() {
		if combined[s.Name] {
			continue
		}
		together := together(s.Name)
		for _, name := range together {
			combined[name] = true
		}
		launches = append(launches, together)
	}
	return append(slices.Concat(brief.Sample(t, launches, 8)...), clients.AuthorizationBaseline)
}

// webSocket names WebSocket among the transports of targets.
const webSocket = "ws"

// clientsAtATime is how many targets are tried at a time, each of which is
// launched for a few scenarios at a time.
const clientsAtATime = 4

func writeRun(t *testing.T, path string, run *result.Run) {
	t.Helper()
	raw, err := json.Marshal(run)
	if err == nil {
		err = os.WriteFile(path, raw, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func launching(t *testing.T, targets *interop.Targets, bridge, name, over string) (suites.ClientScenarios, suites.Options) {
	t.Helper()
	target := targets.Show(t, name, over, []string{"-url", "{url}"}, []string{"{command}"})
	c := client.Command{Args: target.Command, Env: target.Environ(), Given: slices.Collect(maps.Keys(target.Env))}
	if over == webSocket {
		over = transport.NameCustom
	}
	return suites.ClientScenarios{
		Transport: over, Launch: c.Launch, Bridge: []string{bridge, "bridge"}, Authorizes: target.Authorizes,
	}, suites.Options{Timeout: 30 * time.Second, Parallel: 1, Target: result.Target{Command: target.Command}}
}

// table is the one in docs/clients.md, between two marks.
type table struct {
	mu   sync.Mutex
	rows map[string]*result.Run
}

const (
	tableBegin = "<!-- Written by go test ./suites/client -run TestInterop -update-findings. -->\n"
	tableEnd   = "<!-- Until here. -->\n"
)

func (b *table) add(key string, run *result.Run) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rows[key] = run
}

func (b *table) write(t *testing.T, path string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(raw), tableBegin)
	_, tail, closed := strings.Cut(rest, tableEnd)
	if !ok || !closed {
		t.Fatalf("%s has no place for the table", path)
	}
	if err := os.WriteFile(path, []byte(head+tableBegin+b.text()+tableEnd+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (b *table) text() string {
	var text strings.Builder
	text.WriteString("\n| client | transport | verdict | passed | failed | warned | inconclusive | what fails |\n|---|---|---|---|---|---|---|---|\n")
	for _, key := range slices.Sorted(maps.Keys(b.rows)) {
		run := b.rows[key]
		name, over, _ := strings.Cut(key, " ")
		var failed []string
		for _, q := range run.Requirements {
			if q.Verdict == result.Fail {
				failed = append(failed, "`"+q.ID+"`")
			}
		}
		n := run.Counts()
		fmt.Fprintf(&text, "| %s | %s | %s | %d | %d | %d | %d | %s |\n", name, over, run.Verdict, n[result.Pass], n[result.Fail], n[result.Warn],
			n[result.Inconclusive], strings.Join(failed, ", "))
	}
	text.WriteString("\n")
	return text.String()
}
