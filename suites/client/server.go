package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/internal/inflight"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
)

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

// open starts the server of a scenario.
func (x *execution) open(ctx context.Context, t *T, dir string) (scenarioServer, Endpoint, error) {
	s := t.Scenario
	var o server.Options
	if s.Options != nil {
		o = s.Options(t.ScenarioRun)
	}
	for _, id := range s.Faults {
		if f, ok := mockserver.Find(id); ok {
			f.Apply(&o)
		}
		o.Behaviour.Breaks = append(o.Behaviour.Breaks, judge.Anything)
	}
	if len(s.Faults) > 0 {
		o.Behaviour.Wrap("*", Unhurried)
	}
	o.Trace, o.Label = x.Trace, s.Name
	if o.Catalogue == nil {
		o.Catalogue = Catalogue()
	}
	o.CallTimeout = cmp.Or(o.CallTimeout, t.UserPatience)
	// The specification does not require a Content-Type of clients
	// (basic/transports#sending-messages-to-the-server).
	more := o.Behaviour.HTTP.Reply
	o.Behaviour.HTTP.Reply = func(r *server.Reply) {
		r.Pass = r.Situation == server.UnsupportedMediaType
		if more != nil {
			more(r)
		}
	}
	// When the client is gone the server is stopped, even in the middle of an answer.
	o.Behaviour.Breaks = append(o.Behaviour.Breaks, ids.HTTPServerSSENoEarlyClose, ids.HTTPServerSSEResponseSent)
	o.Behaviour.Wrap("*", awaitingInitialized)
	endpoint := Endpoint{Revision: x.Revision.Version, Scenario: s.Name,
		UserActions: strings.ReplaceAll(s.UserActions, FolderPlaceholder, t.Folder),
		Transport:   x.Transport, Dir: dir, Official: s.Official}
	switch {
	case x.Transport == transport.NameStdio:
		return x.serveStdio(&endpoint, o), endpoint, nil
	case x.Transport == transport.NameCustom && len(x.TransportCommand.Args) > 0:
		server, err := x.serveBridged(ctx, &endpoint, o)
		return server, endpoint, err
	}
	server, err := x.serveHTTP(ctx, &endpoint, t, o)
	return server, endpoint, err
}

func (x *execution) serveStdio(endpoint *Endpoint, o server.Options) scenarioServer {
	bridged := &stdioEndpoint{options: o}
	token := x.bridges.open(bridged)
	endpoint.Command = append(x.Bridge[:len(x.Bridge):len(x.Bridge)], x.bridges.listener.Addr().String(), token)
	endpoint.Serve = server.New(o).RunStdio
	atOnce := func(context.Context) bool { return true } // shut waits for a server process that is left behind
	return scenarioServer{settle: atOnce, leave: func() { bridged.left.Store(true) },
		shut: func(ctx context.Context) { x.bridges.shut(ctx, token) }}
}

// serveHTTP serves the clients of a scenario over HTTP or WebSocket.
func (e *Engine) serveHTTP(ctx context.Context, endpoint *Endpoint, t *T, o server.Options) (scenarioServer, error) {
	s := t.Scenario
	l, err := e.listen()
	if err != nil {
		return scenarioServer{}, fmt.Errorf("listen for the client: %w", err)
	}
	if e.Network != nil {
		endpoint.Dial = e.Network.Dial
	}
	at := url.URL{Scheme: "http", Host: l.Addr().String(), Path: cmp.Or(s.Path, server.PathMCP)}
	serve := func(ctx context.Context, s *server.Server) error { return s.HTTP().Serve(ctx, l) }
	switch e.Transport {
	case transport.NameSSE:
		at.Path = cmp.Or(s.Path, server.PathSSE)
	case transport.NameCustom:
		at.Scheme, at.Path = "ws", server.PathMCP
		serve = func(ctx context.Context, s *server.Server) error { return s.ServeWebSocket(ctx, l) }
	}
	endpoint.URL = at.String()
	unprotect := func() {}
	if s.Authorization != nil && e.Transport != transport.NameCustom {
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
	go func() {
		defer close(served)
		_ = serve(serving, server.New(o))
	}()
	return scenarioServer{settle: f.settle, leave: func() {}, shut: func(context.Context) {
		stop()
		<-served
		unprotect()
	}}, nil
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

// inFlight counts the requests that a server is answering. A client may run below a shell or in the background. It is
// present until its requests end, even if the launched process has ended.
type inFlight struct{ inflight.Count }

func (f *inFlight) counting(more func(http.Handler) http.Handler) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		if more != nil {
			next = more(next)
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			f.Begin()
			defer f.End()
			next.ServeHTTP(w, r)
		})
	}
}

// settle waits until no request is in flight, or the context ends. It reports whether none is.
func (f *inFlight) settle(ctx context.Context) bool {
	none := f.None()
	select {
	case <-none:
	case <-ctx.Done():
	}
	select {
	case <-none:
		return true
	default:
		return false
	}
}
