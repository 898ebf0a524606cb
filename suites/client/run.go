package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/judge"
)

// Place says where a client under test finds its server.
type Place struct {
	Scenario  string
	Transport string
	// URL of the server, unless the transport is stdio.
	URL string
	// Command starts the server over stdio.
	Command []string
	// Serve is that server within this program, for a client that runs here.
	Serve func(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error
	// Dir is an empty folder of the scenario's own; "" when there is none.
	Dir string
}

// Engine launches a client against the server of each scenario.
type Engine struct {
	Transport string
	// Launch starts the client under test. An error means that it cannot be
	// started at all.
	Launch func(p Place) (transport.Process, error)
	// Bridge is the command that calls [Bridge]; address and token are appended.
	Bridge []string
	Trace  *wire.Trace
	// Timeout of one scenario. Zero: DefaultTimeout.
	Timeout time.Duration
	// Parallel is how many clients run at a time. Zero: twice the processors.
	Parallel int
	// Done is told of each scenario that has ended; it may be nil. It may be
	// called by several goroutines.
	Done func(t *T)

	hub     *hub
	slots   chan struct{}
	hang    sync.Once
	hung    chan struct{} // closed when a client was found to hang
	expired chan struct{} // closed some time after that
}

// DefaultTimeout is how long a client may take in one scenario.
const DefaultTimeout = 30 * time.Second

const (
	stopWait   = 2 * time.Second  // for a client that was asked to end
	bridgeWait = 10 * time.Second // for server processes that a client has left behind
	maxOutput  = 8 << 10          // bytes kept of what a client prints
)

// Run plays the scenarios, the first of them being the baseline, and judges
// them. The error is that of Launch.
func (e *Engine) Run(ctx context.Context, scenarios []*Scenario) ([]*T, error) {
	if e.Timeout <= 0 {
		e.Timeout = DefaultTimeout
	}
	if e.Parallel <= 0 {
		e.Parallel = 2 * runtime.GOMAXPROCS(0)
	}
	e.slots = make(chan struct{}, e.Parallel)
	e.hung, e.expired = make(chan struct{}), make(chan struct{})
	if e.Transport == transport.NameStdio {
		h, err := newHub(ctx)
		if err != nil {
			return nil, err
		}
		defer h.close()
		e.hub = h
	}
	played := make([]*T, len(scenarios))
	var failed error
	var once sync.Once
	var all sync.WaitGroup
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for i, s := range scenarios {
		all.Go(func() {
			t, err := e.play(ctx, s)
			played[i] = t
			if err != nil {
				once.Do(func() { failed = err })
				stop()
			}
		})
	}
	all.Wait()
	for _, t := range played {
		t.Baseline = played[0]
	}
	for _, t := range played {
		t.gather(e.Trace)
	}
	for _, t := range played {
		if t.Scenario.Judge != nil {
			t.Scenario.Judge(t)
		}
		if e.Done != nil {
			e.Done(t)
		}
	}
	return played, failed
}

// gather reads the conversations of the scenario.
func (t *T) gather(trace *wire.Trace) {
	for _, l := range trace.Logs() {
		if l.Label == t.Scenario.Name && l.Len() > 0 {
			t.Conversations = append(t.Conversations, judge.NewConversation(l))
		}
	}
}

// play launches the client against one server and waits for its end.
func (e *Engine) play(ctx context.Context, s *Scenario) (*T, error) {
	t := &T{Scenario: s, Transport: e.Transport}
	if !s.Patient {
		release, ok := e.slot(ctx)
		if !ok {
			t.Ending.Skipped = "the client was not launched any more: it hangs in other scenarios, or the run was interrupted"
			return t, nil
		}
		defer release()
	}
	p := &Play{Scenario: s, Patience: min(5*time.Second, e.Timeout/3)}
	var o server.Options
	if s.Options != nil {
		o = s.Options(p)
	}
	o.Trace, o.Label = e.Trace, s.Name
	if o.Catalogue == nil {
		o.Catalogue = catalogue()
	}
	o.CallTimeout = p.Patience
	// When the client is gone the server is stopped, whatever it was about to say.
	o.Behaviour.Breaks = append(o.Behaviour.Breaks, "http.server.sse-no-early-close", "http.server.sse-response-sent")
	dir, err := os.MkdirTemp("", "mcpconform-")
	if err != nil {
		return t, fmt.Errorf("make a folder for the client: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	place := Place{Scenario: s.Name, Transport: e.Transport, Dir: dir}
	var server stage
	if e.Transport == transport.NameStdio {
		server = e.placeStdio(&place, s, o)
	} else if server, err = e.placeHTTP(ctx, &place, s, o); err != nil {
		return t, err
	}
	process, err := e.Launch(place)
	if err != nil {
		server.shut(ctx)
		return t, err
	}
	t.Ending = e.await(ctx, process, s.Patient, server)
	return t, nil
}

// catalogue returns what the server of a scenario offers: what the reference
// server does, but nothing that takes seconds unless it is told to.
func catalogue() *server.Catalogue {
	c := server.DefaultCatalogue()
	for _, tool := range c.Tools {
		if tool.Name() != "slow" {
			continue
		}
		serve := tool.Call
		tool.Call = func(ctx context.Context, r *server.Request, arguments map[string]any) (any, *wire.Error) {
			if _, ok := arguments["seconds"]; !ok {
				arguments["seconds"] = json.Number("0.05")
			}
			return serve(ctx, r, arguments)
		}
	}
	return c
}

// stage is the server of a scenario.
type stage struct {
	// leave tells it that what happens to its processes from now on is not the
	// client's doing.
	leave func()
	// shut ends it, with some time for what ends by itself.
	shut func(context.Context)
}

// slot waits until a client may be launched. It reports false when none is to
// be any more.
func (e *Engine) slot(ctx context.Context) (release func(), ok bool) {
	select {
	case e.slots <- struct{}{}:
		return func() { <-e.slots }, ctx.Err() == nil
	case <-e.hung:
		// The others of those who wait hang as well, most likely: together
		// they cost the time once.
		return func() {}, ctx.Err() == nil
	case <-ctx.Done():
		return nil, false
	}
}

func (e *Engine) placeStdio(place *Place, s *Scenario, o server.Options) stage {
	b := &booth{scenario: s, options: o}
	token := e.hub.open(b)
	place.Command = append(e.Bridge[:len(e.Bridge):len(e.Bridge)], e.hub.listener.Addr().String(), token)
	place.Serve = server.New(o).RunStdio
	return stage{leave: func() { b.left.Store(true) }, shut: func(ctx context.Context) { e.hub.shut(ctx, token) }}
}

func (e *Engine) placeHTTP(ctx context.Context, place *Place, s *Scenario, o server.Options) (stage, error) {
	l, err := server.Listen("127.0.0.1:0")
	if err != nil {
		return stage{}, fmt.Errorf("listen for the client: %w", err)
	}
	path := s.Path
	if path == "" {
		path = server.PathMCP
		if e.Transport == transport.NameSSE {
			path = server.PathSSE
		}
	}
	place.URL = (&url.URL{Scheme: "http", Host: l.Addr().String(), Path: path}).String()
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan struct{})
	h := server.New(o).HTTP()
	go func() {
		defer close(served)
		_ = h.Serve(serving, l)
	}()
	return stage{leave: func() {}, shut: func(context.Context) {
		stop()
		<-served
	}}, nil
}

// await waits until the client ends, and stops one that does not.
func (e *Engine) await(ctx context.Context, p transport.Process, patient bool, server stage) Ending {
	_ = p.Stdin().Close()
	output := &tail{}
	var readers sync.WaitGroup
	readers.Go(func() { _, _ = io.Copy(output, p.Stdout()) })
	readers.Go(func() { _, _ = io.Copy(output, p.Stderr()) })
	timer := time.NewTimer(e.Timeout)
	defer timer.Stop()
	var end Ending
	select {
	case <-p.Done():
	case <-timer.C:
		end.Late = true
		if !patient {
			e.hang.Do(e.hangs)
		}
	case <-e.expired:
		end.Late = true
	case <-ctx.Done():
		end.Skipped = "the run was interrupted"
	}
	if end.Late || end.Skipped != "" {
		server.leave()
		_ = p.Terminate()
		wait := time.NewTimer(stopWait)
		select {
		case <-p.Done():
		case <-wait.C:
			p.Kill()
			<-p.Done()
		}
		wait.Stop()
	} else {
		exit := p.Exit()
		end.Exit = &exit
	}
	// A server process that was left behind may end by itself.
	leaving, cancel := context.WithTimeout(ctx, bridgeWait)
	server.shut(leaving)
	cancel()
	p.Kill() // whatever it has left behind
	_ = p.Stdout().Close()
	_ = p.Stderr().Close()
	readers.Wait()
	end.Output = output.String()
	return end
}

// hangs ends the scenarios that are left after one more time limit.
func (e *Engine) hangs() {
	close(e.hung)
	time.AfterFunc(e.Timeout, func() { close(e.expired) })
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - maxOutput; over > maxOutput {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text[max(0, len(t.text)-maxOutput):])
}
