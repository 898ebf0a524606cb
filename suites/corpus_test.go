package suites_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/hostile"
	"github.com/mcpconform/mcpconform/internal/proof/memory"
	"github.com/mcpconform/mcpconform/internal/proof/oddclient"
	"github.com/mcpconform/mcpconform/internal/proof/oddserver"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

// hostileRunLimit is the time limit of a run on a hostile peer.
const hostileRunLimit = 5 * time.Minute

// corpus is a row of the corpus over one transport.
type corpus[E any] struct {
	row  E
	over string
}

// corpusOf returns each row over each of its transports, of which none stands for all, or a part of that.
func corpusOf[E any](t *testing.T, rows []E, transports func(E) []string) []corpus[E] {
	t.Helper()
	var all []corpus[E]
	for _, row := range rows {
		over := transports(row)
		if len(over) == 0 {
			over = []string{transport.NameStdio, transport.NameHTTP, transport.NameSSE, transport.NameCustom}
		}
		for _, name := range over {
			all = append(all, corpus[E]{row, name})
		}
	}
	return brief.Sample(t, all, 17) // no multiple of the transports
}

// TestHostileServers meets the hostile servers of the corpus over each transport.
func TestHostileServers(t *testing.T) {
	for _, c := range corpusOf(t, oddserver.Hostile(), func(p oddserver.HostilePeer) []string { return p.Transports }) {
		t.Run(c.row.Name+" over "+c.over, func(t *testing.T) {
			hostile.Test(t, func(t *testing.T) (p hostile.Played) {
				virtual.Test(t, func(t *testing.T) {
					o := serverOptions()
					c.row.Apply(&o)
					dialer, stop, err := serve(t.Context(), c.over, o)
					if err != nil {
						t.Fatal(err)
					}
					p = play(t, c.row.Legal, suites.ServerChecks{Dialer: dialer, Settings: check.Settings{CallTools: check.CallAll, ToolRoles: rolesOn(o)}})
					stop()
				})
				return p
			})
		})
	}
}

// play runs a stimulus with the limits of the corpus or, if what comes is legal, with those that suit any honest
// target.
func play(t *testing.T, legal bool, s suites.Stimulus) hostile.Played {
	t.Helper()
	began, limits := time.Now(), hostile.Limits
	if legal {
		limits = wire.DefaultLimits
	}
	run, trace, err := suites.Run(t.Context(), s, suites.Options{Timeout: 2 * time.Second, RunTimeout: hostileRunLimit, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	return hostile.Played{Run: run, Trace: trace, Took: time.Since(began), Limit: hostileRunLimit, Legal: legal}
}

// TestHostileClients meets the hostile clients of the corpus over each transport.
func TestHostileClients(t *testing.T) {
	for _, c := range corpusOf(t, oddclient.Hostile(), func(p oddclient.HostilePeer) []string { return p.Transports }) {
		t.Run(c.row.Name+" over "+c.over, func(t *testing.T) {
			hostile.Test(t, func(t *testing.T) (p hostile.Played) {
				virtual.Test(t, func(t *testing.T) {
					p = play(t, false, suites.ClientScenarios{
						Transport: c.over, Network: new(memory.Network), Bridge: []string{"bridge"},
						Scenarios: []string{"exchange/requests", "hostile/noise", "http/listening", "stdio/framing"},
						Launch: func(p client.Endpoint) (transport.Process, error) {
							return transport.Func{Name: c.row.Name, Run: func(ctx context.Context, _ io.Reader, _, _ io.Writer) error {
								return c.row.Run(ctx, clientAt(p))
							}}.Launch()
						},
					})
				})
				return p
			})
		})
	}
}

// clientAt returns the reference client for an endpoint.
func clientAt(p client.Endpoint) reference.Standalone {
	c := reference.Standalone{URL: p.URL, Dial: p.Dial, Legacy: p.Transport == transport.NameSSE, Timeout: time.Second, UserActions: p.UserActions, Limits: hostile.Limits}
	if p.Transport == transport.NameStdio {
		c.Launcher = transport.Func{Name: p.Scenario, Run: p.Serve}
	}
	return c
}

// meeting is a hostile client that meets a hostile server.
type meeting struct {
	client oddclient.HostilePeer
	server oddserver.HostilePeer
}

// meetings returns pairs in which each client and each server that speaks a transport occurs.
func meetings() []meeting {
	clients, servers := oddclient.Hostile(), oddserver.Hostile()
	var all []meeting
	for i := range max(len(clients), len(servers)) {
		all = append(all, meeting{clients[i%len(clients)], servers[(i*7+3)%len(servers)]})
	}
	return all
}

// TestHostileBothSides puts the proxy between hostile clients and hostile servers: it ends when it is told to, and
// reports on both.
func TestHostileBothSides(t *testing.T) {
	over := func(meeting) []string { return []string{transport.NameStdio, transport.NameHTTP, transport.NameSSE} }
	for _, c := range corpusOf(t, meetings(), over) {
		t.Run(c.row.client.Name+" and "+c.row.server.Name+" over "+c.over, func(t *testing.T) {
			hostile.Test(t, func(t *testing.T) (p hostile.Played) {
				virtual.Test(t, func(t *testing.T) {
					trace := wire.NewTrace(hostile.Limits)
					trace.Lossy = true
					o := serverOptions()
					c.row.server.Apply(&o)
					began := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), hostileRunLimit)
					defer cancel()
					relayed(ctx, t, c.over, trace, o, c.row.client)
					judged := func(party wire.Party) hostile.Played {
						run, _, err := suites.Run(t.Context(), suites.Recording{Party: party}, suites.Options{Trace: trace})
						if err != nil {
							t.Fatal(err)
						}
						return hostile.Played{Run: run, Trace: trace, Took: time.Since(began), Limit: hostileRunLimit}
					}
					for _, fault := range judged(wire.Client).Faults() {
						t.Error(fault)
					}
					p = judged(wire.Server) // which Test holds to the same
				})
				return p
			})
		})
	}
}

// relayed plays a client against a server with the proxy between them, until the client or
// the context ends.
func relayed(ctx context.Context, t *testing.T, over string, trace *wire.Trace, o server.Options, peer oddclient.HostilePeer) {
	t.Helper()
	if over == transport.NameStdio {
		d := &transport.Stdio{Launcher: transport.Func{Name: "server", Run: server.New(o).RunStdio}, ExitWait: time.Second}
		_ = peer.Run(ctx, reference.Standalone{Limits: hostile.Limits, Timeout: time.Second, Launcher: transport.Func{Name: "relay", Run: func(ctx context.Context, in io.Reader, out, errOut io.Writer) error {
			return d.RelayStdio(ctx, trace.Connect(transport.NameStdio, "relayed session"), in, out, errOut)
		}}})
		return
	}
	dialer, stop, err := serve(ctx, over, o)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	var at transport.Endpoint
	switch d := dialer.(type) {
	case *transport.HTTP:
		at = d.Endpoint
	case *transport.SSE:
		at = d.Endpoint
	}
	relay, err := transport.NewHTTPRelay(at, over, trace)
	if err != nil {
		t.Fatal(err)
	}
	network := new(memory.Network)
	l, err := network.Listen()
	if err != nil {
		t.Fatal(err)
	}
	front := &http.Server{Handler: relay, ReadHeaderTimeout: 30 * time.Second}
	var served sync.WaitGroup
	served.Go(func() {
		if err := front.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	_ = peer.Run(ctx, reference.Standalone{URL: relay.URL(l.Addr().String()), Dial: network.Dial, Legacy: over == transport.NameSSE, Timeout: time.Second, Limits: hostile.Limits})
	_ = front.Close()
	relay.Close()
	served.Wait()
}

// dying writes so many bytes, of all that is written to it, and then ends the process.
type dying struct {
	to   io.Writer
	left int
	die  context.CancelFunc
}

func (d *dying) Write(p []byte) (int, error) {
	n, err := d.to.Write(p[:min(len(p), d.left)])
	if d.left -= n; d.left == 0 {
		d.die()
		return n, io.ErrClosedPipe
	}
	return n, err
}

// TestDeathBetweenBytes: a server may die after any byte of what it says first, each time that it is started.
func TestDeathBetweenBytes(t *testing.T) {
	var moments []int
	for bytes := 1; bytes < 600; bytes++ {
		moments = append(moments, bytes)
	}
	for _, bytes := range brief.Sample(t, moments, 61) {
		t.Run(strconv.Itoa(bytes), func(t *testing.T) {
			hostile.Test(t, func(t *testing.T) (p hostile.Played) {
				virtual.Test(t, func(t *testing.T) {
					p = play(t, false, suites.ServerChecks{Dialer: &transport.Stdio{Launcher: transport.Func{Name: "mortal", Run: func(ctx context.Context, in io.Reader, out, errOut io.Writer) error {
						ctx, die := context.WithCancel(ctx)
						defer die()
						o := serverOptions()
						o.Behaviour.Stdio.Stdout = func(w io.Writer) io.Writer { return &dying{w, bytes, die} }
						return server.New(o).RunStdio(ctx, in, out, errOut)
					}}}})
					if p.Run.Verdict == result.Conformant {
						t.Error("the run is conformant")
					}
				})
				return p
			})
		})
	}
}
