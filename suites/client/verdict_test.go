package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

// standalone is the reference client at an endpoint, with a change.
func standalone(p client.Endpoint, change func(*reference.Standalone)) *reference.Standalone {
	c := &reference.Standalone{URL: p.URL, Dial: p.Dial, Timeout: answerTime, UserActions: p.UserActions,
		Authorizer: &reference.Authorizer{ID: p.ClientID, Secret: p.ClientSecret}}
	if change != nil {
		change(c)
	}
	return c
}

// A client that does nothing wrong because it does next to nothing is not conformant.
func TestIncompleteClients(t *testing.T) {
	brief.WholeRuns(t)
	for _, tt := range []struct {
		name       string
		authorizes bool
		want       string // in the reason
		run        func(ctx context.Context, p client.Endpoint) error
	}{
		{"leaves after initialize", false, "notifications/initialized was never sent", func(ctx context.Context, p client.Endpoint) error {
			return postsInitialize(ctx, p, nil)
		}},
		{"never ends", false, "had to be stopped at the time limit", func(ctx context.Context, p client.Endpoint) error {
			if err := standalone(p, nil).Run(ctx); p.Scenario != client.Baseline {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		}},
		{"fails", false, "exited with status 1 in the scenario baseline", func(ctx context.Context, p client.Endpoint) error {
			err := standalone(p, nil).Run(ctx)
			if p.Scenario == client.Baseline {
				err = errors.New("the client fails")
			}
			return err
		}},
		{"no token", true, "obtained no access token", func(ctx context.Context, p client.Endpoint) error {
			if !strings.HasPrefix(p.Scenario, "auth/") {
				return standalone(p, nil).Run(ctx)
			}
			return readsMetadata(ctx, p)
		}},
		{"another revision", false, `the client speaks another revision, "2024-11-05"`, func(ctx context.Context, p client.Endpoint) error {
			return standalone(p, func(c *reference.Standalone) {
				c.Omissions.Version = true
				c.Change = func(o *reference.Options) { o.Version = "2024-11-05" }
			}).Run(ctx)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			options := suites.Options{Timeout: 20 * time.Second}
			if tt.authorizes { // without the requirement that fails for that
				options.Selection.Skip = []string{"auth.client.handles-401"}
			}
			run := conducted(t, suites.ClientScenarios{Transport: transport.NameHTTP, Authorizes: tt.authorizes, Launch: inProcess(tt.run)}, options)
			if run.Verdict != result.Incomplete || !strings.Contains(run.Reason, tt.want) {
				t.Errorf("the verdict is %s: %s; want %s", run.Verdict, run.Reason, tt.want)
				for id, v := range verdicts(run) {
					t.Logf("%s: %s", id, v)
				}
			}
		})
	}
}

// A client that has something else to say than initialize, as one of a later revision, costs two launches.
func TestClientWithoutInitialize(t *testing.T) {
	var launches atomic.Int32
	run := conducted(t, suites.ClientScenarios{Transport: transport.NameHTTP, Launch: inProcess(func(ctx context.Context, p client.Endpoint) error {
		launches.Add(1)
		body := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"server/discover"}`)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, body)
		if err != nil {
			return err
		}
		r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		return answer.Body.Close()
	})}, suites.Options{Timeout: 20 * time.Second})
	if n := launches.Load(); n != 2 || run.Verdict != result.Incomplete || run.Reason != "the client never sent initialize" {
		t.Errorf("after %d launches the verdict is %s: %s", n, run.Verdict, run.Reason)
	}
}

// A report quotes the last words of a client that dies, without secrets. They are the reason if the client cannot be
// judged, and a note of the scenario if it does not die elsewhere.
func TestLastWordsOfClients(t *testing.T) {
	const secret = "hunter2hunter2"
	dies := func(in string) func(p client.Endpoint) (transport.Process, error) {
		return func(p client.Endpoint) (transport.Process, error) {
			return transport.Func{Name: "dies", Run: func(ctx context.Context, _ io.Reader, _, stderr io.Writer) error {
				if in == "" || p.Scenario == in {
					_, _ = io.WriteString(stderr, "Traceback (most recent call last):\nValueError: no token "+secret+"\n\n")
				}
				if in == "" {
					return errors.New("it dies at once")
				}
				if err := standalone(p, nil).Run(ctx); p.Scenario != in {
					return err
				}
				return errors.New("it dies in the end")
			}}.Launch()
		}
	}
	redactor := &transport.Redactor{}
	redactor.Add(secret)
	const words = `"ValueError: no token REDACTED"`
	for name, in := range map[string]string{"at once": "", "in the baseline": client.Baseline, "elsewhere": "lifecycle/refused"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := conducted(t, suites.ClientScenarios{Transport: transport.NameHTTP, Launch: dies(in), Scenarios: []string{"lifecycle/refused"}}, suites.Options{Timeout: 20 * time.Second, Redactor: redactor})
			want := map[string]string{
				"at once":         "the client never sent initialize; its last words: " + words,
				"in the baseline": "the client exited with status 1 in the scenario baseline; its last words: " + words,
				"elsewhere":       "the client's last words in lifecycle/refused: " + words,
			}[name]
			said := run.Reason
			if name == "elsewhere" {
				said = strings.Join(run.Notes, "\n")
			}
			if !strings.Contains(said, want) {
				t.Errorf("the run says %q (%s; %q); want %q", said, run.Reason, run.Notes, want)
			}
		})
	}
}

// The reason why a run is incomplete names the result behind which the client ended, if it sent nothing after that.
func TestReasonNamesLastResult(t *testing.T) {
	run := conducted(t, suites.ClientScenarios{Scenarios: []string{client.Baseline}, Launch: inProcess(func(ctx context.Context, p client.Endpoint) error {
		s, err := begin(ctx, p, answerTime)
		if err != nil {
			return err
		}
		defer s.Close(ctx)
		_, _ = s.Call(ctx, "tools/list", nil)
		return errors.New("it cannot read any list of tools")
	})}, suites.Options{Timeout: 20 * time.Second})
	const want = "exited with status 1 in the scenario baseline, after the result of tools/list"
	if run.Verdict != result.Incomplete || !strings.Contains(run.Reason, want) {
		t.Errorf("the run is %s: %q; want %q", run.Verdict, run.Reason, want)
	}
}

// If a client only pings, the reason says that another request is needed, not that none was sent.
func TestReasonOfPingsAlone(t *testing.T) {
	run := conducted(t, suites.ClientScenarios{Scenarios: []string{"exchange/requests"}, Launch: inProcess(func(ctx context.Context, p client.Endpoint) error {
		conn, err := (&transport.HTTP{Endpoint: transport.Endpoint{URL: p.URL, Dial: p.Dial}}).Dial(ctx, wire.NewTrace(wire.DefaultLimits).Connect(transport.NameHTTP, "pings"))
		if err != nil {
			return err
		}
		s := reference.New(conn, reference.Options{Timeout: answerTime})
		defer s.Close(ctx)
		if _, err := s.Initialize(ctx); err != nil {
			return err
		}
		_, err = s.Call(ctx, "ping", nil)
		return err
	})}, suites.Options{Timeout: 20 * time.Second})
	if q := requirement(t, run, "base.error.method-not-found"); q.Verdict != result.Inconclusive || !strings.Contains(q.Reason, "no request other than pings") {
		t.Errorf("%s is %s: %s", q.ID, q.Verdict, q.Reason)
	}
}

// readsMetadata is refused by a protected server, reads its metadata and leaves.
func readsMetadata(ctx context.Context, p client.Endpoint) error {
	header := http.Header{"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"}}
	for _, step := range []struct{ method, body string }{{http.MethodPost, initialize}, {http.MethodGet, ""}} {
		r, err := http.NewRequestWithContext(ctx, step.method, p.URL, strings.NewReader(step.body))
		if err != nil {
			return err
		}
		r.Header = header
		answer, err := reaching(p).Do(r)
		if err != nil {
			return err
		}
		_ = answer.Body.Close()
		_, metadata, _ := strings.Cut(answer.Header.Get("WWW-Authenticate"), `resource_metadata="`)
		if p.URL, _, _ = strings.Cut(metadata, `"`); p.URL == "" {
			break
		}
		header = http.Header{"Accept": {"application/json"}}
	}
	return nil
}
