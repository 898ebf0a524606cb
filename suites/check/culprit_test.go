package check_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
)

// mortal is a server over HTTP that goes down when it gets a certain method.
type mortal struct {
	server *httptest.Server
	down   atomic.Bool
	// With answers it answers the deadly request before it goes down. With hangs it keeps connections open and says
	// nothing. With breaks it answers all requests with 500.
	answers, hangs, breaks bool
	gone                   chan struct{}
}

const deadly = "mcpconform/deadly"

func (m *mortal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	method := wire.Parse(raw).Method
	kills := method == deadly && m.down.CompareAndSwap(false, true)
	if kills && !m.hangs && !m.breaks {
		_ = m.server.Listener.Close()
	}
	switch {
	case m.down.Load() && m.hangs:
		select {
		case <-m.gone:
		case <-r.Context().Done():
		}
	case m.down.Load() && m.breaks:
		w.WriteHeader(http.StatusInternalServerError)
	case m.down.Load() && !(kills && m.answers):
		panic(http.ErrAbortHandler)
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	default:
		answer := reticentAnswer(raw, `{}`, func(string) bool { return true })
		if answer == "" {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Connection", "close")
		_, _ = io.WriteString(w, answer)
	}
}

// A server over HTTP that falls over after one message, and stays down, gets the
// finding of the check that sent it, and no other check blames it.
func TestBlame(t *testing.T) {
	for name, m := range map[string]*mortal{
		"at once":   {},
		"afterward": {answers: true},
		"hangs":     {hangs: true},
		"breaks":    {breaks: true},
	} {
		t.Run(name, func(t *testing.T) { virtual.Test(t, m.isBlamed) })
	}
}

// isBlamed runs many checks beside the one that sends the deadly message.
func (m *mortal) isBlamed(t *testing.T) {
	m.gone = make(chan struct{})
	var at transport.Endpoint
	m.server, at = serving(t, m)
	t.Cleanup(m.server.Close)
	t.Cleanup(func() { close(m.gone) })
	e := engine(silentTimeout)
	e.Dialer = &transport.HTTP{Endpoint: at}
	e.Parallel = 4
	if _, err := e.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	served := func(t *check.T, method string, opts ...client.Option) {
		if x := t.Call(method, nil, opts...); x.Result() == nil {
			t.Fail("%s got no result", method)
		}
	}
	// A ping that is under way as well could be what the server falls over, until one was answered.
	ponged := make(chan struct{})
	var harmless sync.Once
	checks, _ := pings(12)
	for _, c := range checks {
		c.Body = func(t *check.T) {
			served(t, "ping")
			harmless.Do(func() { close(ponged) })
		}
	}
	kills := &check.Check{Name: "x/kills", Requirements: []string{"x.kills"}, Needs: check.Needs{Session: check.Fresh}, Body: func(t *check.T) {
		<-ponged
		served(t, deadly, client.Deliberately("x.kills"))
		served(t, "ping")
	}}
	futures := e.Start(t.Context(), append(checks, kills), nil)
	for _, f := range futures {
		if o := f.Await(); o.Verdict != check.Passed && o.Verdict != check.Inconclusive {
			t.Errorf("%s is %v: %+v", o.Check.Name, o.Verdict, o.Record.Findings())
		}
	}
	record := e.Blame(futures)
	findings := record.Findings()
	if len(findings) != 1 || findings[0].WarnOnly || findings[0].Source != "x/kills" || record.At("x.kills", wire.Server).Exercised != 1 ||
		!strings.Contains(findings[0].Message, "answered nothing any more after this") {
		t.Errorf("the findings are %+v", findings)
	}
	e.Finish(context.Background())
}
