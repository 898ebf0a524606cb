package suites_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// provedAlone are the requirements that no fault of the catalogue proves, because it would
// upset everything else or is a matter of the listener. TestProvedAlone breaks each of them
// with a server of its own.
var provedAlone = map[string]struct {
	path    string
	address string // to listen at
	change  func(o *server.Options)
}{
	"http.server.bind-localhost": {server.PathMCP, "0.0.0.0:0", nil},
	"sse.server.bind-localhost":  {server.PathSSE, "0.0.0.0:0", nil},
	"http.server.session-id-unique": {server.PathMCP, "127.0.0.1:0", func(o *server.Options) {
		o.Behaviour.HTTP.SessionID = func() string { return "the-session" }
	}},
}

func TestProvedAlone(t *testing.T) {
	for id, test := range provedAlone {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			o := serverOptions()
			if test.change != nil {
				test.change(&o)
			}
			l, err := net.Listen("tcp", test.address)
			if err != nil {
				t.Fatal(err)
			}
			s := &http.Server{Handler: server.New(o).HTTP()}
			var served sync.WaitGroup
			served.Go(func() { _ = s.Serve(l) })
			t.Cleanup(served.Wait)
			t.Cleanup(func() { _ = s.Close() })
			_, port, _ := net.SplitHostPort(l.Addr().String())
			at := transport.Endpoint{URL: "http://127.0.0.1:" + port + test.path}
			var dialer transport.Dialer = &transport.HTTP{Endpoint: at}
			if test.path == server.PathSSE {
				dialer = &transport.SSE{Endpoint: at}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			run, _, err := suites.Run(ctx, suites.ServerChecks{Dialer: dialer, Settings: check.Settings{}}, suites.Options{Selection: suites.Selection{Select: []string{id}}})
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range run.Requirements {
				switch {
				case q.ID == id && q.Verdict == result.Inconclusive && test.address == "0.0.0.0:0":
					t.Skip(q.Reason) // a machine without a network
				case q.ID == id && q.Verdict != result.Warn:
					t.Errorf("%s is %s: %s", id, q.Verdict, q.Reason)
				}
			}
		})
	}
}
