package client

import (
	"cmp"
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// Endpoint tells a client under test where it finds the server of a scenario.
type Endpoint struct {
	Revision  string // of the protocol
	Scenario  string
	Transport string
	// UserActions tells the client how to act in place of a user, as in [Scenario].
	UserActions string
	// URL of the server, unless the transport is stdio.
	URL string
	// Dial connects to the server at URL if it is not on the machine's network;
	// otherwise it is nil.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Port is the port of a custom transport, if TransportCommand asks for one; otherwise 0.
	Port int
	// Command starts the server over stdio.
	Command []string
	// Serve is that server within this program, for a client that runs here.
	Serve func(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error
	// Dir is a folder of the scenario's own.
	Dir string
	// Official is the scenario of the official conformance tool that comes
	// closest; "" is the ordinary one.
	Official string
	// ClientID and ClientSecret belong to a client that the scenario's
	// authorization server knows; "" if the client has to register itself.
	ClientID, ClientSecret string
}

// Engine launches a client against the server of each scenario.
type Engine struct {
	Settings
	// Launch starts the client under test. An error means that it cannot be
	// started at all.
	Launch func(e Endpoint) (transport.Process, error)
	// Bridge is the command that calls [Bridge]; address and token are appended.
	Bridge []string
	// TransportCommand serves clients over a custom transport, and passes their messages to
	// and from the server as lines; {port} in it is a free port. Without arguments, a
	// custom transport is WebSocket.
	TransportCommand transport.Command
	Trace            *wire.Trace
	// Network of the servers, for clients that run here; nil is the machine's.
	Network Network
	// Combined are the launches that serve several scenarios at once.
	Combined []Combined
	// Parallel is how many clients run at a time. Zero: twice the processors.
	Parallel int
	// Done is called with each scenario that has ended, also by several goroutines
	// at a time. It may be nil.
	Done func(t *T)
	// Needed says of scenarios, by name, whether they are needed after all. It is asked when the baseline has ended.
	// A scenario without an entry is needed.
	Needed map[string]func() bool

	bridges  *bridgeListener
	launches *launchLimiter
	outcomes []*T
	awaited  map[string]*awaited // the baselines, and the scenarios that others follow on, by name
	deserted chan struct{}       // closed when all scenarios have ended that need not run alone
	second   func() *T           // see [T]
}

// DefaultTimeout is how long a client may take in one scenario.
const DefaultTimeout = 30 * time.Second

// Run runs the scenarios and judges them. The first one is the baseline. The error is that of Launch.
func (e *Engine) Run(ctx context.Context, scenarios []*Scenario) ([]*T, error) {
	e.Timeout = cmp.Or(e.Timeout, DefaultTimeout)
	e.launches = newLaunchLimiter(e.Parallel)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	return e.all(ctx, scenarios, e.combinedRuns(scenarios), func(t *T, w *waiter) error {
		err := e.runScenario(ctx, t, w)
		if err != nil {
			stop(err)
		}
		return err
	})
}

// Serve opens the servers of the scenarios, passes their endpoints to announce, and
// serves the clients that a person connects until the context ends. Then it judges
// what has happened.
func (e *Engine) Serve(ctx context.Context, scenarios []*Scenario, announce func([]Endpoint)) ([]*T, error) {
	e.Timeout = cmp.Or(e.Timeout, DefaultTimeout)
	endpoints := make([]Endpoint, len(scenarios))
	var opened sync.WaitGroup
	opened.Add(len(scenarios))
	// Messages that are under way when the person ends the run still count.
	serving := context.WithoutCancel(ctx)
	return e.all(serving, scenarios, nil, func(t *T, _ *waiter) error {
		i := slices.Index(scenarios, t.Scenario)
		t.UserPatience = e.Timeout
		dir, remove, err := e.prepare(t)
		defer remove()
		var server scenarioServer
		if err == nil {
			server, endpoints[i], err = e.open(serving, t, dir)
		}
		opened.Done()
		if i == 0 {
			opened.Wait()
			announce(endpoints)
		}
		if err != nil {
			return err
		}
		<-ctx.Done()
		t.Ending.Attended = true
		server.leave()
		leaving, cancel := context.WithTimeout(serving, leaveWait)
		defer cancel()
		server.shut(leaving)
		return nil
	})
}

// all runs every scenario in a goroutine of its own, unless a combined launch has settled it. It judges each as soon
// as the scenario and the baseline have ended.
func (e *Engine) all(ctx context.Context, scenarios []*Scenario, combinedLaunches map[int]*combinedRun,
	run func(t *T, w *waiter) error) ([]*T, error) {
	if e.Transport == transport.NameStdio {
		l, err := newBridgeListener(ctx, e.listen)
		if err != nil {
			return nil, err
		}
		defer l.close()
		e.bridges = l
	}
	e.outcomes, e.awaited, e.deserted = make([]*T, len(scenarios)), make(map[string]*awaited), make(chan struct{})
	if e.launches != nil {
		e.second = e.secondBaseline(ctx)
	}
	for _, s := range scenarios {
		if isBaseline(s) || leads(s, scenarios) {
			e.awaited[s.Name] = &awaited{ended: make(chan struct{})}
		}
	}
	var failed error
	var once sync.Once
	var all, company sync.WaitGroup
	launch := func(t *T, w *waiter) {
		if err := run(t, w); err != nil {
			once.Do(func() { failed = err })
		}
		t.gather(e.Trace)
	}
	for _, u := range units(scenarios, combinedLaunches) {
		var w *waiter
		if e.launches != nil && !e.depends(u) {
			w = e.launches.wait(false)
		}
		company.Add(1)
		leave := sync.OnceFunc(company.Done)
		all.Go(func() {
			defer leave()
			if u.combined != nil && u.alone == nil {
				e.together(ctx, u.combined, w, launch)
			} else {
				e.finish(u.index, e.alone(ctx, u, leave, func(t *T) { launch(t, w) }))
			}
		})
	}
	company.Wait()
	if e.launches != nil {
		e.launches.inTurn()
	}
	close(e.deserted)
	all.Wait()
	return e.outcomes, failed
}

// together makes a combined launch and judges its scenarios. If the client does not come through, the scenarios that
// may not be the reason run together once more.
func (e *Engine) together(ctx context.Context, j *combinedRun, w *waiter, launch func(*T, *waiter)) {
	if !slices.ContainsFunc(j.members, func(t *T) bool { return e.needed(t.Scenario) }) {
		close(j.done)
		return
	}
	launch(j.t, w)
	j.t = e.settle(ctx, j.t, func() {})
	j.judge()
	j.parts = e.parts(j)
	close(j.done) // what is in none of the parts is run at once, beside them
	var running sync.WaitGroup
	for _, part := range j.parts {
		running.Go(func() { e.together(ctx, part, nil, launch) })
	}
	running.Wait()
}

// alone runs a scenario, unless a combined launch has settled it, and returns the launch that counts. It calls leave
// before it waits to run without others.
func (e *Engine) alone(ctx context.Context, u unit, leave func(), launch func(*T)) (t *T) {
	defer func() { e.publish(t) }()
	t = e.newRun(u.alone)
	if u.alone.Name != Baseline && !e.needed(u.alone) {
		t.Ending.Skipped = "the scenario was not needed"
		return t
	}
	if u.combined != nil {
		if t := u.combined.of(u.alone); t != nil {
			return t
		}
		t.whole = u.combined.stuck(u.alone)
	}
	launch(t)
	return e.smaller(ctx, e.settle(ctx, t, leave))
}

// newRun returns the run of a scenario before it begins.
func (e *Engine) newRun(s *Scenario) *T {
	patience := min(5*time.Second, e.Timeout/3)
	return &T{ScenarioRun: &ScenarioRun{Settings: e.Settings, Patience: patience, UserPatience: patience}, Scenario: s,
		others: others{second: e.second}}
}

// finish records the outcome of a scenario and reports it. Nothing else does so.
func (e *Engine) finish(i int, t *T) {
	e.outcomes[i] = t
	if e.Done != nil {
		e.Done(t)
	}
}

// OneByOne reports whether the client was found to run only once at a time. Each launch then waited for the end of
// the one before.
func (e *Engine) OneByOne() bool { return e.launches != nil && e.launches.oneByOne() }
