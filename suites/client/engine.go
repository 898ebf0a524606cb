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

	// OneByOne is set if the client was found to run only once at a time. Each launch then waited for the end of the
	// one before.
	OneByOne bool
}

// execution is one run of an engine.
type execution struct {
	*Engine
	bridges  *bridgeListener // over stdio
	launches *launchLimiter
	outcomes []*T
	awaited  map[string]*awaited // the baseline, and the scenarios that others follow on, by name
	deserted chan struct{}       // closed when all scenarios have ended that need not run alone
	second   func() *T           // see [others]
}

// DefaultTimeout is how long a client may take in one scenario.
const DefaultTimeout = 30 * time.Second

// Run runs the scenarios and judges them. The first one is the baseline. The error is that of Launch.
func (e *Engine) Run(ctx context.Context, scenarios []*Scenario) ([]*T, error) {
	x := e.begin(scenarios)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	x.second = x.secondBaseline(ctx)
	defer func() { e.OneByOne = x.launches.oneByOne() }()
	return x.all(ctx, scenarios, e.combinedRuns(scenarios), func(t *T, w *waiter) error {
		err := x.runScenario(ctx, t, w)
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
	x := e.begin(scenarios)
	endpoints := make([]Endpoint, len(scenarios))
	var opened sync.WaitGroup
	opened.Add(len(scenarios))
	// Messages that are under way when the person ends the run still count.
	serving := context.WithoutCancel(ctx)
	return x.all(serving, scenarios, nil, func(t *T, _ *waiter) error {
		i := slices.Index(scenarios, t.Scenario)
		t.UserPatience = e.Timeout
		dir, remove, err := prepare(t)
		defer remove()
		var server scenarioServer
		if err == nil {
			server, endpoints[i], err = x.open(serving, t, dir)
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

// begin returns a run of the scenarios before it begins.
func (e *Engine) begin(scenarios []*Scenario) *execution {
	e.Timeout = cmp.Or(e.Timeout, DefaultTimeout)
	x := &execution{Engine: e, launches: newLaunchLimiter(e.Parallel), outcomes: make([]*T, len(scenarios)),
		awaited: make(map[string]*awaited), deserted: make(chan struct{})}
	for _, s := range scenarios {
		if s.Name == Baseline || leads(s, scenarios) {
			x.awaited[s.Name] = &awaited{ended: make(chan struct{})}
		}
	}
	return x
}

// all runs every scenario in a goroutine of its own, unless a combined launch has settled it. It judges each as soon
// as the scenario and the baseline have ended.
func (x *execution) all(ctx context.Context, scenarios []*Scenario, combinedLaunches map[int]*combinedRun,
	run func(t *T, w *waiter) error) ([]*T, error) {
	if x.Transport == transport.NameStdio {
		l, err := newBridgeListener(ctx, x.listen)
		if err != nil {
			return nil, err
		}
		defer func() {
			l.cancel()
			_ = l.listener.Close()
			l.running.Wait()
		}()
		x.bridges = l
	}
	var failed error
	var once sync.Once
	var all, company sync.WaitGroup
	launch := func(t *T, w *waiter) {
		if err := run(t, w); err != nil {
			once.Do(func() { failed = err })
		}
		t.gather(x.Trace)
	}
	for _, u := range units(scenarios, combinedLaunches) {
		var w *waiter
		if !x.depends(u) {
			w = x.launches.wait(false)
		}
		company.Add(1)
		leave := sync.OnceFunc(company.Done)
		all.Go(func() {
			defer leave()
			if u.alone == nil {
				x.together(ctx, u.combined, w, launch)
			} else {
				t := x.alone(ctx, u, leave, func(t *T) { launch(t, w) })
				x.outcomes[u.index] = t
				if x.Done != nil {
					x.Done(t)
				}
			}
		})
	}
	company.Wait()
	x.launches.inTurn()
	close(x.deserted)
	all.Wait()
	return x.outcomes, failed
}

// together makes a combined launch and judges its scenarios. If the client does not come through, the scenarios that
// may not be the reason run together once more.
func (x *execution) together(ctx context.Context, j *combinedRun, w *waiter, launch func(*T, *waiter)) {
	if !slices.ContainsFunc(j.members, func(t *T) bool { return x.needed(t.Scenario) }) {
		close(j.done)
		return
	}
	launch(j.t, w)
	j.t = x.settle(ctx, j.t, func() {})
	j.judge()
	j.parts = x.parts(j)
	close(j.done) // what is in none of the parts is run at once, beside them
	var running sync.WaitGroup
	for _, part := range j.parts {
		running.Go(func() { x.together(ctx, part, nil, launch) })
	}
	running.Wait()
}

// alone runs a scenario, unless a combined launch has settled it, and returns the launch that counts. It calls leave
// before it waits to run without others.
func (x *execution) alone(ctx context.Context, u unit, leave func(), launch func(*T)) (t *T) {
	defer func() { x.publish(t) }()
	t = x.newRun(u.alone)
	t.second = x.second
	if u.alone.Name != Baseline && !x.needed(u.alone) {
		t.Ending.Skipped = "the scenario was not needed"
		return t
	}
	if u.combined != nil {
		combined, there := u.combined.last(u.alone)
		if combined.settles(there) {
			return there
		}
		t.whole = there.stuck()
	}
	launch(t)
	return x.smaller(ctx, x.settle(ctx, t, leave))
}

// newRun returns the run of a scenario before it begins.
func (e *Engine) newRun(s *Scenario) *T {
	patience := min(5*time.Second, e.Timeout/3)
	return &T{ScenarioRun: &ScenarioRun{Settings: e.Settings, Patience: patience, UserPatience: patience}, Scenario: s}
}
