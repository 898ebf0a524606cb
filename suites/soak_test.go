package suites_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/leftover"
	"github.com/mcpconform/mcpconform/internal/proof/memory"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	suiteclient "github.com/mcpconform/mcpconform/suites/client"
	clients "github.com/mcpconform/mcpconform/suites/internal/client"
)

// footprint is what this process holds.
type footprint struct {
	heap                    uint64 // bytes in use
	goroutines, descriptors int
}

// now returns the footprint, after garbage was collected.
func now() footprint {
	runtime.GC()
	runtime.GC() // what finalizers held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return footprint{m.HeapAlloc, runtime.NumGoroutine(), leftover.Descriptors()}
}

func (f footprint) String() string {
	return fmt.Sprintf("%.1f MiB, %d goroutines, %d descriptors", float64(f.heap)/(1<<20), f.goroutines, f.descriptors)
}

// roomToGrow is what caches that fill once may add to the heap after the first rounds.
const roomToGrow = 16 << 20

// flat fails if the process holds more than before.
func flat(t *testing.T, before, after footprint) {
	t.Helper()
	if after.heap > before.heap+roomToGrow || after.goroutines > before.goroutines || after.descriptors > before.descriptors {
		t.Errorf("it grew from %s to %s", before, after)
	}
}

// TestSoak makes many runs in one process: of servers over each transport, of clients, and by the door for Go tests.
// The memory of the process does not grow.
func TestSoak(t *testing.T) {
	brief.WholeRuns(t)
	rounds := 24
	switch {
	case brief.Whole():
		rounds = 1000
	case testing.Short():
		rounds = 12
	}
	all := schema.Default().Catalogue()
	scenarios := clients.Scenarios()
	once := func(n int) {
		switch n % 6 {
		case 0:
			suites.ServerSuite(t, piped(server.Options{}), suites.CallAllTools(), suites.Select("ping", "server/tools"))
		case 1:
			virtual.Test(t, func(t *testing.T) {
				run, _, err := suites.Run(t.Context(), suites.ClientScenarios{
					Network: new(memory.Network), Scenarios: []string{scenarios[n%len(scenarios)].Name},
					Launch: func(p suiteclient.Endpoint) (transport.Process, error) {
						return suites.ReferenceClient(p, time.Second).Launch()
					},
				}, suites.Options{Timeout: 20 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				noErrors(t, run)
			})
		default:
			virtual.Test(t, func(t *testing.T) {
				dialer, stop, err := serve(t.Context(), transports[n%len(transports)], serverOptions())
				if err != nil {
					t.Fatal(err)
				}
				defer stop()
				page := all[n*37%len(all)].Page
				run, _, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: dialer, Settings: check.Settings{CallTools: check.CallAll}}, suites.Options{
					Selection: suites.Selection{Select: []string{page, "ping"}},
				})
				if err != nil {
					t.Fatal(err)
				}
				noErrors(t, run)
			})
		}
	}
	warm := max(6, rounds/10)
	for n := range warm {
		once(n)
	}
	before := now()
	for n := warm; n < rounds; n++ {
		once(n)
	}
	after := now()
	t.Logf("%d runs: after %d %s, in the end %s", rounds, warm, before, after)
	flat(t, before, after)
}

// TestSoakProxy passes on a message a second, in virtual time: with -whole those of a day. The record has its bound, and the rest costs nothing.
func TestSoakProxy(t *testing.T) {
	messages := 5000
	switch {
	case brief.Whole():
		messages = 24 * 60 * 60
	case testing.Short():
		messages = 2000
	}
	var before, after footprint
	virtual.Test(t, func(t *testing.T) {
		limits := wire.Limits{Message: 1 << 20, Total: 1 << 20, Events: 500, Run: 1 << 20}
		trace := wire.NewTrace(limits)
		trace.Lossy = true
		fromClient, toServer := io.Pipe()
		fromServer, toClient := io.Pipe()
		d := &transport.Stdio{Launcher: transport.Func{Name: "server", Run: server.New(server.Options{}).RunStdio}}
		var relayed sync.WaitGroup
		relayed.Go(func() {
			if err := d.RelayStdio(context.Background(), trace.Connect(transport.NameStdio, "relayed session"), fromClient, toClient, io.Discard); err != nil {
				t.Error(err)
			}
		})
		answers := bufio.NewReader(fromServer)
		for n := range messages {
			if _, err := fmt.Fprintf(toServer, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", n); err != nil {
				t.Fatal(err)
			}
			if _, err := answers.ReadBytes('\n'); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if n == messages/10 {
				before = now()
			}
		}
		after = now()
		_ = toServer.Close()
		relayed.Wait()
	})
	t.Logf("%d messages: %s, in the end %s", 2*messages, before, after)
	flat(t, before, after)
}
