package suites_test

import (
	"net/http"
	"testing"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites/result"
)

// A server that wants a session id which it has not given serves nothing. That is
// told once, and not by each check that meets the refusal.
func TestServerThatServesNothing(t *testing.T) {
	o := serverOptions()
	o.Behaviour.HTTP.Middleware = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(withoutID{w}, r) })
	}
	run := conducted(t, transport.NameHTTP, o)
	served := []string{"ping.response-prompt", "tools.list.answered", "resources.list.answered", "prompts.list.answered"}
	exonerated(t, run, served...)
	for _, id := range served {
		for _, q := range run.Requirements {
			if q.ID == id && q.Verdict != result.Fail {
				t.Errorf("%s is %s", id, q.Verdict)
			}
		}
	}
}

// withoutID loses the session id.
type withoutID struct{ http.ResponseWriter }

func (w withoutID) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w withoutID) WriteHeader(status int) {
	w.Header().Del("Mcp-Session-Id")
	w.ResponseWriter.WriteHeader(status)
}
