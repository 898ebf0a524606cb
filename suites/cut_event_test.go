package suites_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/suites/result"
)

// unended leaves out the empty lines that end SSE events.
type unended struct{ http.ResponseWriter }

func (w unended) Write(p []byte) (int, error) {
	_, err := w.ResponseWriter.Write(bytes.ReplaceAll(p, []byte("\n\n"), []byte("\n")))
	return len(p), err
}

func (w unended) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// An SSE event counts only with the empty line behind it. A server that leaves that out is told so, once; that its
// answers do not count is not held against what was asked.
func TestEventsWithoutEnd(t *testing.T) {
	run, _ := handshakes(t, func(o *server.Options) {
		applyOddity(o, "http.always-streams")
		o.Behaviour.HTTP.Middleware = func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") != "" {
					w = unended{w}
				}
				next.ServeHTTP(w, r)
			})
		}
	})
	found, referred := false, 0
	for _, q := range run.Requirements {
		switch {
		case q.ID == "http.server.sse-response-sent":
			found = len(q.Findings) > 0 && strings.Contains(q.Findings[0].Message, "inside an event")
		case len(q.Findings) > 0:
			t.Errorf("%s is %s: %s", q.ID, q.Verdict, q.Findings[0].Message)
		case q.Verdict == result.Inconclusive && strings.Contains(q.Reason, "http.server.sse-response-sent"):
			referred++
		}
	}
	if !found || referred < 20 {
		t.Errorf("it is found: %t, and %d requirements refer to it", found, referred)
	}
}
