package suites

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/lastwords"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/client"
	clients "github.com/mcpconform/mcpconform/suites/internal/client"
	"github.com/mcpconform/mcpconform/suites/internal/ending"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
	"github.com/mcpconform/mcpconform/suites/internal/tree"
)

// ClientScenarios is the stimulus for clients: scenarios, each a server against
// which the client is launched, or to which a person connects it.
type ClientScenarios struct {
	// Transport is one of the names in package transport; empty is Streamable HTTP.
	Transport string
	// Launch starts the client under test for one scenario. Its error means
	// that the client cannot be started at all.
	Launch func(p client.Endpoint) (transport.Process, error)
	// Announce makes the run one of clients that a person connects: it is told
	// where the server of each scenario is, in place of Launch, and the run goes
	// on until its context ends.
	Announce func([]client.Endpoint)
	// Bridge is the command that calls [client.Bridge] with two more arguments;
	// it serves clients over stdio.
	Bridge []string
	// TransportCommand serves clients over a custom transport, as that of [client.Engine]
	// does; without arguments, that transport is WebSocket.
	TransportCommand transport.Command
	// Network of the servers, for clients that run here; nil is the machine's.
	Network client.Network
	// Scenarios leaves out all whose names match none of the given ones, which
	// may be patterns as in [path.Match]; the baseline always runs. The
	// scenarios of single faults run only when they are named.
	Scenarios []string
	// Authorizes says that the client is meant to seek authorization where a
	// server wants it; a client that does not then fails.
	Authorizes bool
	// GivesUpAfter is the time after which the client gives up a request without an answer, even if progress comes. A
	// client that waits longer fails. Zero: not known, and a client that waits shows nothing.
	GivesUpAfter time.Duration
}

func (s ClientScenarios) begin(r *run) stimulus {
	if s.Transport == "" {
		s.Transport = transport.NameHTTP
	}
	r.source = client.SourcePrefix
	return &clientRun{ClientScenarios: s, run: r, runs: make(map[string]*awaited), ended: make(chan struct{})}
}

// Secrets makes known the secrets of the transport command.
func (s ClientScenarios) Secrets(r *transport.Redactor) {
	r.AddEnv(s.TransportCommand.Env...)
	r.AddArgs(s.TransportCommand.Args...)
}

// clientRun is the stimulus while the run goes on.
type clientRun struct {
	ClientScenarios
	*run
	all    []*client.Scenario
	runs   map[string]*awaited // by scenario
	engine *client.Engine

	ended    chan struct{} // closed when all scenarios have ended; then these are known:
	finished []*client.T
	err      error // of the launch
}

func (s *clientRun) party() wire.Party { return wire.Client }
func (s *clientRun) transport() string { return s.Transport }

// limit is none for a person, who ends the run.
func (s *clientRun) limit(n int) time.Duration {
	if s.Announce != nil {
		return 0
	}
	return runTime(n, cmp.Or(s.Timeout, client.DefaultTimeout))
}

// specs returns one for each scenario of the transport.
func (s *clientRun) specs() ([]*tree.Spec, error) {
	all, err := OrdinaryScenarios(s.Scripts)
	if err != nil {
		return nil, err
	}
	if len(s.Scenarios) > 0 {
		all = append(all, FaultScenarios()...)
	}
	var specs []*tree.Spec
	for _, scenario := range all {
		named := len(s.Scenarios) == 0 || scenario.Name == client.Baseline ||
			slices.ContainsFunc(s.Scenarios, scenario.Named)
		if !scenario.Applies(s.Transport) || !named {
			continue
		}
		s.all = append(s.all, scenario)
		spec := s.spec(scenario.Name, scenario.Requirements, tree.Label(tree.KeySession, "scenario"))
		s.shows(spec, scenario.Shows)
		spec.Unit = unit(scenario)
		spec.Everywhere = scenario.Name == client.Baseline ||
			scenario.Name == clients.AuthorizationBaseline // others are judged by these
		p := &awaited{done: make(chan struct{})}
		s.runs[scenario.Name] = p
		spec.Await = func(context.Context) tree.Outcome { return s.await(p, s.ended, "scenario") }
		specs = append(specs, spec)
	}
	return specs, nil
}

// unit names the launch that a scenario needs: its own, or a combined one.
func unit(s *client.Scenario) string {
	for _, j := range clients.CombinedLaunches() {
		if slices.Contains(j.Scenarios, s.Name) {
			return j.Title()
		}
	}
	return s.Name
}

// start runs the scenarios that are left and, in any case, the baseline.
func (s *clientRun) start(ctx context.Context, left []*tree.Spec) {
	left = s.plainest(left, s.ruled, func(spec *tree.Spec) trial {
		i := slices.IndexFunc(s.all, func(c *client.Scenario) bool { return c.Name == spec.Name })
		return scenarioTrial(s.all[i])
	})
	scenarios := slices.DeleteFunc(slices.Clone(s.all), func(c *client.Scenario) bool {
		return c.Name != client.Baseline && !slices.ContainsFunc(left,
			func(spec *tree.Spec) bool { return spec.Name == c.Name })
	})
	for _, c := range scenarios {
		s.ledger.Serve(s.source+c.Name, wire.Client, c.Requirements...)
	}
	s.engine = &client.Engine{
		Settings: client.Settings{Revision: s.Revision, Transport: s.Transport, Timeout: s.Timeout,
			Authorizes: s.Authorizes, GivesUpAfter: s.GivesUpAfter,
			Choice: family.Choice{Seed: s.Seed, Budget: s.Budget}},
		Launch: s.Launch, Bridge: s.Bridge, TransportCommand: s.TransportCommand,
		Trace: s.Trace, Parallel: s.Parallel, Network: s.Network, Needed: s.support(left),
		Combined: clients.CombinedLaunches(),
		Done: func(t *client.T) {
			p := s.runs[t.Scenario.Name]
			p.record = t.Record
			close(p.done)
		},
	}
	go func() {
		defer close(s.ended)
		if s.Announce != nil {
			s.finished, s.err = s.engine.Serve(ctx, scenarios, s.Announce)
		} else {
			s.finished, s.err = s.engine.Run(ctx, scenarios)
		}
	}()
}

// ruled returns the requirements of the scenarios that judge nothing themselves: rules see them in the baseline.
func (s *clientRun) ruled() map[string]bool {
	ruled := make(map[string]bool)
	for _, c := range s.all {
		for _, id := range c.Requirements {
			ruled[id] = ruled[id] || c.Judge == nil
		}
	}
	return ruled
}

// support returns, for scenarios that serve no selected requirement, whether they are needed to show the rules more.
func (s *clientRun) support(left []*tree.Spec) map[string]func() bool {
	kept := sync.OnceValue(func() []*tree.Spec { return s.needed(left) })
	needed := make(map[string]func() bool)
	authorizes := false
	for _, c := range s.all {
		i := slices.IndexFunc(left, func(spec *tree.Spec) bool { return spec.Name == c.Name })
		switch {
		case i < 0, c.Name == client.Baseline:
		case s.serves(left[i]):
			authorizes = authorizes || c.Authorization != nil
		case s.narrow():
			needed[c.Name] = func() bool { return slices.Contains(kept(), left[i]) }
		}
	}
	if authorizes {
		delete(needed, clients.AuthorizationBaseline) // the others depend on it
	}
	return needed
}

func (s *clientRun) finish(ctx context.Context) {
	<-s.ended
	if s.Announce != nil {
		ctx = context.WithoutCancel(ctx) // its end is not an interruption
	}
	cause := clientCause(ctx, s.err, s.finished, s.Announce != nil)
	s.ledger.Cause, s.ledger.NotRun = cause, cause
	if cause != nil && s.err == nil && ctx.Err() == nil && len(s.finished) > 0 {
		s.ledger.LastWords = s.lastWords(s.finished[0].Ending)
	}
	if c := introduced(s.finished); c != nil {
		describe(&s.Target, c.Init.Request.Msg.Params, "clientInfo")
		s.ledger.Declared = c.Declared
	}
	s.notes = append(append(s.notes, endings(s.finished)...), s.deaths()...)
	if s.engine.OneByOne {
		s.notes = append(s.notes,
			"the client did nothing while another process of it ran, so mcpconform launched it once at a time, "+
				"which takes longer")
	}
	s.ledger.Evidence.Revision = settled(s.finished)
	s.ledger.Evidence.Partial = len(s.Scenarios) > 0
	s.ledger.Given = client.Acts(s.finished)
	if s.GivesUpAfter > 0 {
		s.ledger.Given = append(s.ledger.Given, "--gives-up-after")
	}
	if len(s.finished) > 0 {
		s.ledger.Evidence.Missing = s.missing()
	}
}

// settled returns the revision on which the client settled with the ordinary server
// of the baseline, or "".
func settled(finished []*client.T) string {
	if len(finished) == 0 {
		return ""
	}
	for _, c := range finished[0].Conversations {
		if c.Handshaken() && c.Initialized != nil {
			return c.Version
		}
	}
	return ""
}

// missing says in clauses what else the client has not shown: that it comes to an end
// with an ordinary server and, if it is meant to, that it obtains a token and uses it.
func (s *clientRun) missing() []string {
	var missing []string
	switch end := s.finished[0].Ending; {
	case end.Attended:
	case end.Late:
		missing = append(missing, "the client did not end in the scenario "+client.Baseline+
			" and had to be stopped at the time limit; "+ending.Raise(ending.Timeout))
	case end.Exit != nil && *end.Exit != (wire.Exit{}):
		died := fmt.Sprintf("the client %s in the scenario %s%s", end.Exit, client.Baseline, rightAfter(s.finished[0]))
		if words := s.lastWords(end); words != "" {
			died += "; its last words: " + words
		}
		missing = append(missing, died)
	}
	seeks := s.Authorizes && slices.ContainsFunc(s.catalogue, func(q schema.Requirement) bool {
		return q.Page == "basic/authorization" && ledger.Binds(q, wire.Client) && s.Selection.Includes(q, wire.Client)
	})
	if seeks && len(s.Scenarios) == 0 && !slices.ContainsFunc(s.finished, (*client.T).ObtainedToken) {
		missing = append(missing,
			"the client is meant to seek authorization, and obtained no access token that it used")
	}
	return missing
}

// rightAfter says, in a clause, after which result, other than that of a ping, the client sent no further message; ""
// if it went on after each.
func rightAfter(t *client.T) string {
	for _, c := range slices.Backward(t.Conversations) {
		for _, x := range slices.Backward(c.Exchanges) {
			if x.From() == wire.Client && x.Method() != "ping" && x.Result() != nil && !c.Survived(x.Response) {
				return ", after the result of " + x.Method()
			}
		}
	}
	return ""
}

// clientCause returns why nothing can be said of the client, or nil.
func clientCause(ctx context.Context, err error, finished []*client.T, announced bool) error {
	switch {
	case err != nil && announced:
		return fmt.Errorf("the servers cannot be started: %w", err)
	case err != nil:
		return fmt.Errorf("the client cannot be started: %w", err)
	case ctx.Err() != nil:
		return ending.Cause(ctx)
	}
	reason := "the client never sent initialize"
	for _, t := range finished {
		for _, c := range t.Conversations {
			switch {
			case c.Handshaken():
				return nil
			case c.Init != nil:
				reason = "no initialize of the client got a result"
			}
		}
	}
	return errors.New(reason)
}

// lastWords returns the lines of a client's output that say why it ended, else the last
// ones.
func (s *clientRun) lastWords(e client.Ending) string {
	said, _ := lastwords.Find(e.Output)
	return s.quote(said)
}

// mostDeaths bounds how many different last words a run shows.
const mostDeaths = 5

// deaths returns notes on the last words of a client that ended with a failure, from each scenario other than the
// baseline in which they are known.
func (s *clientRun) deaths() []string {
	var words []string
	in := make(map[string][]string) // scenarios, by words
	for _, t := range s.finished {
		exit := t.Ending.Exit
		said, known := lastwords.Find(t.Ending.Output)
		if t.Scenario.Name == client.Baseline || exit == nil || *exit == (wire.Exit{}) || !known {
			continue
		}
		quoted := s.quote(said)
		if in[quoted] == nil {
			words = append(words, quoted)
		}
		in[quoted] = append(in[quoted], t.Scenario.Name)
	}
	var notes []string
	for _, w := range words[:min(len(words), mostDeaths)] {
		notes = append(notes, "the client's last words in "+few(in[w])+": "+w)
	}
	if more := len(words) - mostDeaths; more > 0 {
		notes = append(notes, fmt.Sprintf("the client ended with %d other last words in further scenarios", more))
	}
	return notes
}

// few joins names, of which it leaves out those that are too many.
func few(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more scenarios", strings.Join(names[:most], ", "), len(names)-most)
}

// introduced returns the first conversation in which the client has said who
// it is, or nil.
func introduced(finished []*client.T) *judge.Conversation {
	for _, t := range finished {
		if c := t.Handshake(); c != nil {
			return c
		}
	}
	return nil
}

// endings returns notes on the scenarios in which the client had to be stopped.
func endings(finished []*client.T) []string {
	var late []string
	for _, t := range finished {
		if t.Ending.Late && t.Scenario.Lane != client.Waiting {
			late = append(late, t.Scenario.Name)
		}
	}
	if len(late) == 0 {
		return nil
	}
	return []string{"mcpconform stopped the client at the time limit in " + strings.Join(late, ", ") + "; " +
		ending.Raise(ending.Timeout)}
}

// ReferenceClient launches the reference client at a place, within this program.
func ReferenceClient(p client.Endpoint, timeout time.Duration) transport.Func {
	return transport.Func{Name: "the embedded reference client",
		Run: func(ctx context.Context, _ io.Reader, stdout, _ io.Writer) error {
			c := reference.Standalone{URL: p.URL, Dial: p.Dial, Legacy: p.Transport == transport.NameSSE,
				Timeout: timeout, UserActions: p.UserActions, Output: stdout,
				Authorizer: &reference.Authorizer{ID: p.ClientID, Secret: p.ClientSecret}}
			if p.Transport == transport.NameStdio {
				c.Launcher = transport.Func{Name: p.Scenario, Run: p.Serve}
			}
			return c.Run(ctx)
		}}
}
