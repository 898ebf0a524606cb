package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/internal/ending"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
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

// awaited is the run of a scenario that others wait for.
type awaited struct {
	once  sync.Once
	ended chan struct{} // closed when t is known
	t     *T
}

// await waits for the outcome of the scenario. It is nil if the scenario is not run.
func (a *awaited) await() *T {
	if a == nil {
		return nil
	}
	<-a.ended
	return a.t
}

// publish tells those that wait for a scenario its outcome, at the first call.
func (e *Engine) publish(t *T) {
	if a := e.awaited[t.Scenario.Name]; a != nil {
		a.once.Do(func() {
			a.t = t
			close(a.ended)
		})
	}
}

// DefaultTimeout is how long a client may take in one scenario.
const DefaultTimeout = 30 * time.Second

const (
	stopWait  = 2 * time.Second  // for a client that was asked to end
	leaveWait = 10 * time.Second // for server processes that a client has left behind
	quietTime = time.Second      // without any event, a client counts as waiting
	busyTime  = 3 * time.Second  // before the time limit: a client that did something then was not hanging
	maxOutput = 8 << 10          // bytes of the client's output that are kept
)

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

// judge judges a launch, when the baselines have ended.
func (e *Engine) judge(t *T) {
	if t.Scenario.Name == Baseline && t.Baseline == nil {
		t.Baseline = t // before others may read it
		if e.launches != nil && e.launches.ended() == "" {
			e.launches.open()
		}
	}
	if isBaseline(t.Scenario) {
		e.publish(t)
	}
	if t.Baseline == nil {
		t.Baseline = e.awaited[Baseline].await()
	}
	if t.Scenario.Authorization != nil && t.AuthorizationBaseline == nil {
		t.AuthorizationBaseline = e.awaited[AuthorizationBaseline].await()
	}
	t.judge()
}

// isBaseline reports whether others are compared with a scenario.
func isBaseline(s *Scenario) bool { return s.Name == Baseline || s.Name == AuthorizationBaseline }

// needed reports whether a scenario is to be run.
func (e *Engine) needed(s *Scenario) bool {
	ask, ok := e.Needed[s.Name]
	if !ok {
		return true
	}
	e.awaited[Baseline].await()
	return ask()
}

// unit waits for a launch: it is a combined launch, or a scenario alone.
type unit struct {
	alone    *Scenario    // nil for a combined launch
	index    int          // of the scenario
	combined *combinedRun // of the scenario, or itself; nil if the scenario has none
}

// units returns all units in the order in which they begin. Scenarios that wait long for the client come first, then
// units that others wait for, then the rest.
func units(scenarios []*Scenario, combinedLaunches map[int]*combinedRun) []unit {
	var all []unit
	for i, s := range scenarios {
		if j := combinedLaunches[i]; j != nil &&
			!slices.ContainsFunc(all, func(u unit) bool { return u.combined == j }) {
			all = append(all, unit{combined: j})
		}
		all = append(all, unit{alone: s, index: i, combined: combinedLaunches[i]})
	}
	rank := func(u unit) int {
		switch s := u.scenario(); {
		case s.Name == Baseline, s.Patient:
			return 0
		case s.Long:
			return 1
		case u.combined != nil, s.Name == AuthorizationBaseline, leads(s, scenarios):
			return 2
		}
		return 3
	}
	slices.SortStableFunc(all, func(a, b unit) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}

// scenario returns the scenario that the unit runs.
func (u unit) scenario() *Scenario {
	if u.alone == nil {
		return u.combined.t.Scenario
	}
	return u.alone
}

// depends reports whether a unit has to wait for the outcome of another before it waits for its launch. It also
// reports true for the baseline.
func (e *Engine) depends(u unit) bool {
	s := u.scenario()
	_, asks := e.Needed[s.Name]
	asks = asks || u.alone == nil && slices.ContainsFunc(u.combined.members,
		func(t *T) bool { return e.Needed[t.Scenario.Name] != nil })
	unlocked := s.Authorization == nil || s.Name == AuthorizationBaseline || e.awaited[AuthorizationBaseline] == nil
	return s.Name == Baseline || asks || !unlocked || e.first(s) != nil || u.alone != nil && u.combined != nil
}

// judge judges the scenario run. A panic is a fault of the harness: only the requirements of this scenario become
// errors.
func (t *T) judge() {
	if t.Scenario.Judge == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			for _, id := range t.Scenario.Requirements {
				t.Recorder().Error(id, wire.Client, fmt.Sprintf("panic: %v\n%s", p, debug.Stack()))
			}
		}
	}()
	t.Scenario.Judge(t)
}

// JudgeAgain forgets what was recorded, and judges once more.
func (t *T) JudgeAgain() {
	t.rec = nil
	t.judge()
}

// Accused reports whether the scenario has findings.
func (t *T) Accused() bool { return len(t.Recorder().Record.Findings()) > 0 }

// logs returns the connections of the scenario, without those of an earlier run.
func (t *T) logs(trace *wire.Trace) []*wire.Log {
	return slices.DeleteFunc(trace.Logs()[t.after:], func(l *wire.Log) bool { return l.Label != t.Scenario.Name })
}

// gather reads the conversations of the scenario.
func (t *T) gather(trace *wire.Trace) {
	logs := t.logs(trace)
	for _, l := range logs {
		t.spoke = t.spoke || spoke(l.Events())
		if l.Len() > 0 && l.Transport != transport.NameOAuth {
			t.Conversations = append(t.Conversations, judge.NewConversation(t.Revision, l))
		}
	}
	if t.Flow != nil {
		t.Flow.documentsFrom(logs)
	}
}

// cutShort says why a run ended early: a client could not be started, the user ended it, or the time limit of the run
// did.
func cutShort(ctx context.Context) string {
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		return "the client cannot be started: " + cause.Error()
	}
	return ending.Cause(ctx).Error()
}

// unauthorized says why a client is not launched at a protected server, or "". The authorization baseline has then
// shown that it does not seek authorization, which is optional.
func (e *Engine) unauthorized(ctx context.Context, s *Scenario) string {
	baseline := e.awaited[AuthorizationBaseline]
	if s.Authorization == nil || s.Name == AuthorizationBaseline || baseline == nil {
		return ""
	}
	select {
	case <-baseline.ended:
	case <-ctx.Done():
		return cutShort(ctx)
	}
	if !baseline.t.SoughtAuthorization() {
		return baseline.t.ReasonUnauthorized()
	}
	return ""
}

// leads reports whether others of the scenarios name this one in After.
func leads(s *Scenario, scenarios []*Scenario) bool {
	return slices.ContainsFunc(scenarios, func(other *Scenario) bool { return slices.Contains(other.After, s.Name) })
}

// first returns the scenario that another names in After, or nil if it is not run.
func (e *Engine) first(s *Scenario) *awaited {
	for _, name := range s.After {
		if a := e.awaited[name]; a != nil {
			return a
		}
	}
	return nil
}

// excused says why a client is not launched for a scenario, or "". The scenario that it follows has then shown that it
// would show nothing.
func (e *Engine) excused(ctx context.Context, s *Scenario) string {
	first := e.first(s)
	if first == nil {
		return ""
	}
	select {
	case <-first.ended:
	case <-ctx.Done():
		return cutShort(ctx)
	}
	if why := s.Excused(first.t); why != "" {
		return "in scenario " + first.t.Scenario.Name + " " + why
	}
	return ""
}

// OneByOne reports whether the client was found to run only once at a time. Each launch then waited for the end of
// the one before.
func (e *Engine) OneByOne() bool { return e.launches != nil && e.launches.oneByOne() }

// runScenario launches the client against one server and waits for its end, unless another scenario has shown that this
// one shows nothing. It takes the place of a waiter, unless that is nil.
func (e *Engine) runScenario(ctx context.Context, t *T, w *waiter) error {
	why := cmp.Or(e.unauthorized(ctx, t.Scenario), e.excused(ctx, t.Scenario))
	if why != "" {
		t.Ending.Skipped, t.Ending.NotRun = why, ctx.Err() != nil
		return nil
	}
	if first := e.first(t.Scenario); first != nil {
		t.Preceding = first.t
	}
	return e.launch(ctx, t, w)
}

// launch launches the client of a scenario as soon as it may, and waits for its end.
func (e *Engine) launch(ctx context.Context, t *T, w *waiter) error {
	slot, why := e.launches.acquire(ctx, t.Scenario, w)
	if why != "" {
		t.Ending.Skipped, t.Ending.NotRun = why, ctx.Err() != nil
		return nil
	}
	defer slot.release()
	dir, remove, err := e.prepare(t)
	defer remove()
	if err != nil {
		return err
	}
	server, endpoint, err := e.open(ctx, t, dir)
	if err != nil {
		return err
	}
	process, err := e.Launch(endpoint)
	if err != nil {
		server.shut(ctx)
		return err
	}
	t.Ending = e.await(ctx, process, t, slot, server)
	if server.failed != nil {
		err = server.failed()
	}
	t.beside = slot.beside()
	return err
}

// prepare makes a folder for a launch. The caller removes it, also after an error.
func (e *Engine) prepare(t *T) (dir string, remove func(), err error) {
	if dir, remove, err = transport.TempDir(); err != nil {
		return "", func() {}, fmt.Errorf("make a folder for the client: %w", err)
	}
	if strings.Contains(t.Scenario.UserActions, FolderPlaceholder) {
		if t.Folder, err = os.MkdirTemp(dir, "root-é%41-"); err != nil {
			return dir, remove, fmt.Errorf("make a folder for the client: %w", err)
		}
	}
	return dir, remove, nil
}

// open starts the server of a scenario.
func (e *Engine) open(ctx context.Context, t *T, dir string) (scenarioServer, Endpoint, error) {
	s := t.Scenario
	var o server.Options
	if s.Options != nil {
		o = s.Options(t.ScenarioRun)
	}
	if len(s.Faults) > 0 {
		spoil(&o, s.Faults)
	}
	o.Trace, o.Label = e.Trace, s.Name
	if o.Catalogue == nil {
		o.Catalogue = Catalogue()
	}
	o.CallTimeout = cmp.Or(o.CallTimeout, t.UserPatience)
	o.Behaviour.HTTP.Reply = anyMediaType(o.Behaviour.HTTP.Reply)
	// When the client is gone the server is stopped, even in the middle of an answer.
	o.Behaviour.Breaks = append(o.Behaviour.Breaks, ids.HTTPServerSSENoEarlyClose, ids.HTTPServerSSEResponseSent)
	o.Behaviour.Wrap("*", awaitingInitialized)
	endpoint := Endpoint{Revision: e.Revision.Version, Scenario: s.Name,
		UserActions: strings.ReplaceAll(s.UserActions, FolderPlaceholder, t.Folder),
		Transport:   e.Transport, Dir: dir, Official: s.Official}
	switch {
	case e.Transport == transport.NameStdio:
		return e.serveStdio(&endpoint, s, o), endpoint, nil
	case e.Transport == transport.NameCustom && len(e.TransportCommand.Args) > 0:
		server, err := e.serveBridged(ctx, &endpoint, o)
		return server, endpoint, err
	case e.Transport == transport.NameCustom:
		server, err := e.serveWebSocket(ctx, &endpoint, o)
		return server, endpoint, err
	}
	server, err := e.serveHTTP(ctx, &endpoint, t, o)
	return server, endpoint, err
}

// anyMediaType accepts messages with any Content-Type: the specification does not
// require one of clients (basic/transports#sending-messages-to-the-server).
func anyMediaType(more func(*server.Reply)) func(*server.Reply) {
	return func(r *server.Reply) {
		r.Pass = r.Situation == server.UnsupportedMediaType
		if more != nil {
			more(r)
		}
	}
}

// Catalogue returns the catalogue of a scenario's server. It is that of the reference server, but the slow tool takes
// no seconds unless the client asks for them.
func Catalogue() *server.Catalogue {
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

// scenarioServer is the server of a scenario.
type scenarioServer struct {
	// settle waits until the processes that the client has left behind are silent. It reports false if they still
	// speak to the server.
	settle func(context.Context) bool
	// leave tells it that the client does not cause the end of its processes from now on.
	leave func()
	// shut stops it. Until the context ends, it waits for server processes that end
	// by themselves.
	shut func(context.Context)
	// failed, unless nil, says why the client could not reach the server after its launch.
	failed func() error
}

func (e *Engine) serveStdio(endpoint *Endpoint, s *Scenario, o server.Options) scenarioServer {
	bridged := &stdioEndpoint{scenario: s, options: o}
	token := e.bridges.open(bridged)
	endpoint.Command = append(e.Bridge[:len(e.Bridge):len(e.Bridge)], e.bridges.listener.Addr().String(), token)
	endpoint.Serve = server.New(o).RunStdio
	atOnce := func(context.Context) bool { return true } // shut waits for a server process that is left behind
	return scenarioServer{settle: atOnce, leave: func() { bridged.left.Store(true) },
		shut: func(ctx context.Context) { e.bridges.shut(ctx, token) }}
}

func (e *Engine) serveHTTP(ctx context.Context, endpoint *Endpoint, t *T, o server.Options) (scenarioServer, error) {
	s := t.Scenario
	l, err := e.listen()
	if err != nil {
		return scenarioServer{}, fmt.Errorf("listen for the client: %w", err)
	}
	if e.Network != nil {
		endpoint.Dial = e.Network.Dial
	}
	path := s.Path
	if path == "" {
		path = server.PathMCP
		if e.Transport == transport.NameSSE {
			path = server.PathSSE
		}
	}
	endpoint.URL = (&url.URL{Scheme: "http", Host: l.Addr().String(), Path: path}).String()
	unprotect := func() {}
	if s.Authorization != nil {
		if t.Flow, unprotect, err = e.protect(ctx, s.Authorization(), endpoint, &o, s.Name); err != nil {
			unprotect()
			_ = l.Close()
			return scenarioServer{}, err
		}
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan struct{})
	f := &inFlight{}
	o.Behaviour.HTTP.Middleware = f.counting(o.Behaviour.HTTP.Middleware)
	h := server.New(o).HTTP()
	go func() {
		defer close(served)
		_ = h.Serve(serving, l)
	}()
	return scenarioServer{settle: f.settle, leave: func() {}, shut: func(context.Context) {
		stop()
		<-served
		unprotect()
	}}, nil
}

// await waits until the client ends, and stops one that does not.
func (e *Engine) await(ctx context.Context, p transport.Process, t *T, s *slot, server scenarioServer) Ending {
	_ = p.Stdin().Close()
	output := &tail{}
	var readers sync.WaitGroup
	readers.Go(func() { _, _ = io.Copy(output, p.Stdout()) })
	readers.Go(func() { _, _ = io.Copy(output, p.Stderr()) })
	end := e.watch(ctx, p, t, s)
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
	// Processes that the client has left behind, such as a server, may end by themselves.
	leaving, cancel := context.WithTimeout(ctx, leaveWait)
	if end.Exit != nil && !server.settle(leaving) {
		end = Ending{Late: true, Busy: true}
	}
	server.shut(leaving)
	cancel()
	p.Kill() // whatever it has left behind
	_ = p.Stdout().Close()
	_ = p.Stderr().Close()
	readers.Wait()
	end.Output = output.String()
	return end
}

// watch waits until the client ends or has to be stopped. It makes room for other
// clients as soon as this one does nothing.
func (e *Engine) watch(ctx context.Context, p transport.Process, t *T, s *slot) (end Ending) {
	limit := time.NewTimer(e.limit(t))
	defer limit.Stop()
	quiet := e.quiet()
	look := time.NewTicker(quiet / 2)
	defer look.Stop()
	began := time.Now()
	heard := &activity{logs: func() []*wire.Log { return t.logs(e.Trace) }, first: began, any: began, client: began,
		message: began}
	late := func() Ending { return Ending{Late: true, Busy: time.Since(heard.any) < e.busy()} }
	for {
		select {
		case <-p.Done():
			if t.Scenario.Name == Baseline {
				heard.look()
				heard.pause = max(heard.pause, time.Since(heard.any))
				e.launches.baselineTook(time.Since(began), heard)
			}
			return Ending{}
		case <-ctx.Done():
			return Ending{Skipped: cutShort(ctx), NotRun: true}
		case <-e.launches.over:
			return Ending{Skipped: e.launches.ended()}
		case <-limit.C:
			if t.Scenario.Name == Baseline {
				e.launches.baselineHangs(heard.events > 0)
			}
			if more := e.launches.minimum() - time.Since(began); more > 0 {
				limit.Reset(more)
				continue
			}
			return late()
		case <-look.C:
		}
		if heard.look(); heard.sent > 0 {
			e.launches.open()
		}
		// A client that has not spoken yet may be starting on a busy machine. After it has spoken, a client that is
		// kept waiting does nothing.
		if heard.events > 0 && (time.Since(heard.any) >= quiet || time.Since(began) >= e.Timeout/4 ||
			t.Scenario.Patient && heard.sent > 0) {
			s.idle()
		}
		// Only the baseline tells how long the client takes.
		if silent, idle := e.silent(t, heard); silent && heard.events > 0 && t.Scenario.Name != Baseline {
			end := late()
			end.Silent, t.idle = true, idle
			return end
		}
		if t.combined && e.launches.hopeless(time.Since(heard.first), e.Timeout/2, heard.sent) {
			return late()
		}
		if t.Scenario.Patient || !e.launches.baselineHung() {
			continue
		}
		// The client hangs with an ordinary server as well, so its hanging here is not news. It only needs enough
		// time to react to the server's messages.
		lasted := time.Since(e.launches.since(began))
		if heard.events > 0 && time.Since(heard.any) > t.Patience+quiet || lasted > 2*t.Patience {
			return late()
		}
	}
}

// expected returns how long a scenario may keep the client waiting before the client waits longer than it should.
func (e *Engine) expected(t *T) time.Duration {
	known := e.GivesUpAfter
	if known == 0 {
		known = Renewals * t.TookToGiveUp()
	}
	// A time that was only observed, and not stated by the user, does not extend the limit of the scenario.
	if !t.Scenario.Patient || known == 0 || e.GivesUpAfter == 0 && known+2*GiveUpDelay > e.Timeout {
		return 0
	}
	return known + 2*GiveUpDelay
}

// limit returns how long the client may take in a scenario.
func (e *Engine) limit(t *T) time.Duration { return e.Timeout + e.expected(t) }

// silent reports whether a client that has spoken has sent nothing for so long that no more may come. idle means: it
// had all its answers. A client that still looks for news has twice the time. In the run that confirms its silence, it
// has the whole time limit, and at least the time after which the user says that it gives up a request.
func (e *Engine) silent(t *T, heard *activity) (silent, idle bool) {
	idleTime, waiting := e.silence(t)
	looking := time.Since(heard.any) < e.busy()
	if looking {
		idleTime, waiting = 2*idleTime, 2*waiting
	}
	if t.whole {
		whole := max(e.Timeout, e.GivesUpAfter+2*GiveUpDelay)
		idleTime, waiting = max(idleTime, whole), max(waiting, whole)
	}
	// A client that asks for authorization may wait for a browser.
	if t.Scenario.Authorization == nil && !looking && !heard.waits() && time.Since(heard.message) > idleTime {
		return true, true
	}
	return time.Since(heard.client) > max(min(waiting, e.Timeout), e.expected(t)), false
}

// busy returns the time before its end in which a client must have done something to count as not hanging.
func (e *Engine) busy() time.Duration { return min(busyTime, e.Timeout/4) }

// quiet returns the time without any event after which a client counts as waiting.
func (e *Engine) quiet() time.Duration { return min(quietTime, e.Timeout/20) }

// silence returns how long a client that has spoken may send nothing: idle while nothing is on its way to it, and
// waiting while it waits for an answer. Both are a multiple of its time with an ordinary server, and at least a part
// of the time limit. idle is longer than a client counts as busy, and waiting is at least the time of two answers to
// the server.
func (e *Engine) silence(t *T) (idle, waiting time.Duration) {
	pause, took := e.launches.pace()
	return max(slowness*pause, e.Timeout/6, e.busy()+2*e.quiet()), max(slowness*took, e.Timeout/3, 2*t.Patience)
}

// activity records when the connections of a scenario last brought something.
type activity struct {
	logs    func() []*wire.Log
	events  int
	sent    int           // of them by the client
	pause   time.Duration // the longest one between two of them
	first   time.Time     // when something first came; before, when the client was launched
	any     time.Time
	client  time.Time     // when the client did something other than to look for news
	message time.Time     // when the last message came, of either side
	spoke   time.Duration // when the client first did something, in the time of the trace
	last    time.Duration // when something last came, likewise
	read    map[*wire.Log]*heard
}

// heard holds the state of a connection as far as it was read.
type heard struct {
	events int
	looked bool            // the client has opened a stream with GET
	closed bool            // the client has closed its side, and may wait for the server to end
	open   map[string]bool // requests of the client that are not answered: their ids, and the streams of those over HTTP
}

// look takes in the events since the last look.
func (a *activity) look() {
	if a.read == nil {
		a.read = make(map[*wire.Log]*heard)
	}
	for _, l := range a.logs() {
		h := a.read[l]
		if h == nil {
			h = &heard{open: make(map[string]bool)}
			a.read[l] = h
		}
		for _, e := range l.Events()[h.events:] {
			h.events++
			a.note(e, h.news(e, l.Transport))
		}
	}
}

// note takes in an event. news says that it is more than another look for something new.
func (a *activity) note(e *wire.Event, news bool) {
	now := time.Now()
	a.events++
	a.any = now
	if a.events == 1 {
		a.first = now
	} else {
		a.pause = max(a.pause, e.At-a.last)
	}
	a.last = max(a.last, e.At)
	if e.Kind == wire.KindMessage || e.Kind == wire.KindTimeout || e.From == wire.Client && news {
		a.message = now
	}
	if e.From != wire.Client {
		return
	}
	if a.sent++; a.sent == 1 {
		a.spoke = e.At
	}
	if news {
		a.client = now
	}
}

// news reports whether an event is more than another look for something new. A client may open listening streams one
// after the other for ever.
func (h *heard) news(e *wire.Event, over string) bool {
	switch {
	case e.Kind == wire.KindHTTPRequest && e.HTTP.Method == http.MethodGet && over != transport.NameOAuth:
		defer func() { h.looked = true }()
		return !h.looked
	case e.Kind == wire.KindHTTPRequest:
		h.open[e.Stream] = true
	case e.Kind == wire.KindHTTPResponse, e.Kind == wire.KindStreamEnd:
		delete(h.open, e.Stream)
	case e.Kind == wire.KindClose && e.From == wire.Client:
		h.closed = true
	case e.Kind != wire.KindMessage:
	case e.From == wire.Client && e.Msg.Kind == wire.Request:
		h.open[e.Msg.ID.Key()] = true
	case e.From == wire.Server && e.Msg.IsResponse():
		delete(h.open, e.Msg.ID.Key())
	}
	return true
}

// waits reports whether the client waits for an answer.
func (a *activity) waits() bool {
	for _, h := range a.read {
		if h.closed || len(h.open) > 0 {
			return true
		}
	}
	return false
}

// tail keeps the end of the text that is written to it.
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

// spoil gives a server faults of the catalogue.
func spoil(o *server.Options, ids []string) {
	for _, id := range ids {
		if f, ok := mockserver.Find(id); ok {
			f.Apply(o)
		}
	}
	o.Behaviour.Wrap("*", Unhurried)
	o.Behaviour.Breaks = append(o.Behaviour.Breaks, judge.Anything)
}

// awaitingInitialized holds back the answers to a client's requests until notifications/initialized is there, or has
// had the time to come. The notification may travel beside the first request. If it comes only after the answer, the
// client has waited for the answer (basic/lifecycle#initialization).
func awaitingInitialized(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
	if !IsOperation(r.Method) || r.Session.Version() == "" || r.Session.Initialized() {
		return next(ctx, r)
	}
	r.Withhold()
	until := r.Session.Value(initializedDue{}, func() any { return time.Now().Add(judge.Apart) }).(time.Time)
	due, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	_, _ = r.Session.Log().Await(due, 0, func(e *wire.Event) bool {
		return e.Kind == wire.KindMessage && e.From == wire.Client && e.Msg.Method == "notifications/initialized"
	})
	return next(ctx, r)
}

// initializedDue is the key of the time by which a session has to become operational.
type initializedDue struct{}

// swiftPages is how many pages of a list come at once.
const swiftPages = 200

// Unhurried slows down a client that has read many pages of a list. A client that reads for ever would otherwise fill
// the trace.
func Unhurried(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
	if Listed[r.Method] != "" && r.Params["cursor"] != nil {
		read := r.Session.Value("pages of "+r.Method, func() any { return new(atomic.Int64) }).(*atomic.Int64)
		if read.Add(1) > swiftPages {
			_ = r.Sleep(ctx, 100*time.Millisecond)
		}
	}
	return next(ctx, r)
}

// FolderPlaceholder stands in UserActions for the path of the scenario's empty folder.
const FolderPlaceholder = "{folder}"
