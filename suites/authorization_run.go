package suites

import (
	"cmp"
	"context"
	"fmt"
	"time"

	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/internal/authserver"
	"github.com/mcpconform/mcpconform/suites/internal/ending"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
	"github.com/mcpconform/mcpconform/suites/internal/tree"
	"github.com/mcpconform/mcpconform/suites/result"
)

// AuthorizationChecks is the stimulus for an authorization server alone: what a client asks of it.
type AuthorizationChecks struct {
	// Endpoint is that of its issuer, or of a server that it protects.
	Endpoint transport.Endpoint
	// ClientID and ClientSecret are of a client that is registered already, with the RedirectURI. Without an id, the
	// run registers clients of its own.
	ClientID, ClientSecret, RedirectURI string
	// Resource is the URI of the server for which tokens are asked, and Scope what they are to allow. Each may be "".
	Resource, Scope string
}

func (s AuthorizationChecks) begin(r *run) stimulus {
	return &authorizationRun{AuthorizationChecks: s, run: r}
}

// Secrets makes known the secrets of the endpoint and of the client.
func (s AuthorizationChecks) Secrets(r *transport.Redactor) {
	r.AddTarget(s.Endpoint.Header, s.Endpoint.URL)
	r.Add(s.ClientSecret)
}

// authorizationRun is the stimulus while the run goes on.
type authorizationRun struct {
	AuthorizationChecks
	*run
	target *authserver.Target
	cause  error
	trials map[string]*awaited // by check
	ended  chan struct{}       // closed when all checks have ended
}

func (s *authorizationRun) party() wire.Party { return wire.AuthorizationServer }
func (s *authorizationRun) transport() string { return transport.NameHTTP }

func (s *authorizationRun) limit(n int) time.Duration {
	return runTime(n, cmp.Or(s.Timeout, reference.DefaultTimeout))
}

func (s *authorizationRun) specs() ([]*tree.Spec, error) {
	s.trials = make(map[string]*awaited)
	var specs []*tree.Spec
	for _, c := range authserver.Checks() {
		trial := &awaited{done: make(chan struct{})}
		s.trials[c.Name] = trial
		spec := s.spec(c.Name, c.Requirements, tree.Label(tree.KeySession, "none"))
		spec.Await = func(context.Context) tree.Outcome { return s.await(trial, s.ended, "check") }
		specs = append(specs, spec)
	}
	return specs, nil
}

// start tries the checks that are left, one after the other: they share the clients that they register.
func (s *authorizationRun) start(ctx context.Context, left []*tree.Spec) {
	endpoint := s.Endpoint
	endpoint.Redactor = s.Redactor
	s.ended = make(chan struct{})
	s.target = &authserver.Target{
		Revision: s.Revision,
		Endpoint: endpoint, Client: authserver.Client{ClientID: s.ClientID, ClientSecret: s.ClientSecret,
			RedirectURI: s.RedirectURI},
		Resource: s.Resource, Scope: s.Scope, Thorough: s.Budget == result.Thorough,
		Timeout: cmp.Or(s.Timeout, reference.DefaultTimeout), Trace: s.Trace,
	}
	chosen := make(map[string]bool, len(left))
	for _, spec := range left {
		chosen[spec.Name] = true
	}
	var checks []*authserver.Check
	for _, c := range authserver.Checks() {
		if chosen[c.Name] {
			s.ledger.Serve(c.Name, s.party(), c.Requirements...)
			checks = append(checks, c)
		}
	}
	go func() {
		defer close(s.ended)
		if err := s.target.Prepare(ctx); err != nil {
			s.cause = cmp.Or(ending.Cause(ctx), fmt.Errorf("the authorization server cannot be reached: %w", err))
			return
		}
		for _, c := range checks {
			trial, record := s.trials[c.Name], s.target.Try(ctx, c)
			trial.record = func() ledger.Record { return record }
			close(trial.done)
		}
		s.target.Leave(context.WithoutCancel(ctx))
	}()
}

func (s *authorizationRun) finish(ctx context.Context) {
	<-s.ended
	if ctx.Err() != nil && s.cause == nil {
		s.cause = ending.Cause(ctx)
	}
	s.ledger.Cause, s.ledger.NotRun = s.cause, s.cause
	if issuer := s.target.Issuer(); issuer != "" && issuer != s.Endpoint.URL {
		s.notes = append(s.notes, "the authorization server is "+s.Redactor.String(issuer)+
			", which the resource metadata of the given server name")
	}
	if supposed := s.target.Supposed(); supposed != "" {
		s.notes = append(s.notes, "the authorization server wants to know for which resource an access token is: "+
			"as none is known, the run names "+s.Redactor.String(supposed)+", its issuer")
	}
	for flag, value := range map[string]string{"--client-id": s.ClientID, "--resource": s.target.Resource} {
		if value != "" {
			s.ledger.Given = append(s.ledger.Given, flag)
		}
	}
}
