package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

// TestContinues runs clients that end in order in a scenario in which they are to go on. Each requests lists at its
// launches: the last ones of those that are given count for all that follow.
func TestContinues(t *testing.T) {
	const scenario, id = "http/no-session", "http.server.session-id"
	both, backwards, one := []string{"tools/list", "prompts/list"}, []string{"prompts/list", "tools/list"}, []string{"tools/list"}
	for name, test := range map[string]struct {
		ordinary, here [][]string // by the number of the launch
		says           string     // at the end of its output, if it does less
		want           result.Verdict
	}{
		"the same work":               {[][]string{both}, [][]string{both}, "", result.Pass},
		"in another order":            {[][]string{both}, [][]string{backwards}, "", result.Pass},
		"more than once":              {[][]string{{"tools/list", "prompts/list", "tools/list"}}, [][]string{both}, "", result.Pass},
		"less":                        {[][]string{both}, [][]string{one}, "", result.Warn},
		"less, once":                  {[][]string{both}, [][]string{one, both}, "", result.Pass},
		"less now and then":           {[][]string{both, one}, [][]string{one}, "", result.Inconclusive},
		"less of other things":        {[][]string{both}, [][]string{one, {"prompts/list"}}, "", result.Inconclusive},
		"less in as many requests":    {[][]string{both}, [][]string{{"tools/list", "tools/list"}}, "", result.Inconclusive},
		"less, and a note":            {[][]string{both}, [][]string{one}, "enough for today\n", result.Inconclusive},
		"less, and a line as always":  {[][]string{both}, [][]string{one}, "1 answers\n", result.Warn},
		"less, and less elsewhere":    {[][]string{one}, [][]string{one}, "", result.Pass},
		"only a handshake everywhere": {[][]string{{}}, [][]string{{}}, "", result.Pass},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			launches := make(map[string]int)
			run := conducted(t, suites.ClientScenarios{Scenarios: []string{scenario}, Launch: func(p client.Endpoint) (transport.Process, error) {
				mu.Lock()
				defer mu.Unlock()
				n := launches[p.Scenario]
				launches[p.Scenario]++
				plan := test.ordinary
				if p.Scenario == scenario {
					plan = test.here
				}
				methods := plan[min(n, len(plan)-1)]
				return transport.Func{Name: p.Scenario, Run: func(ctx context.Context, _ io.Reader, stdout, _ io.Writer) error {
					s, err := begin(ctx, p, answerTime)
					if err != nil {
						return err
					}
					for _, method := range methods {
						_, _ = s.Call(ctx, method, nil)
					}
					_, _ = fmt.Fprintf(stdout, "%d answers\n", len(methods))
					if slices.Equal(methods, one) {
						_, _ = io.WriteString(stdout, test.says)
					}
					return s.Close(context.WithoutCancel(ctx))
				}}.Launch()
			}}, suites.Options{Timeout: 20 * time.Second})
			if q := requirement(t, run, id); q.Verdict != test.want {
				t.Errorf("%s is %s, want %s: %s", id, q.Verdict, test.want, q.Reason)
			}
		})
	}
}

// TestLeavesBehindAnswer runs clients that leave in order as soon as they have sent a message behind something legal,
// short of their work. That message is no proof that they cope with it, so no requirement passes that asks for that.
func TestLeavesBehindAnswer(t *testing.T) {
	answer := func(id string) func(m *wire.Message) bool {
		return func(m *wire.Message) bool { return m.IsResponse() && m.ID.Key() == wire.StringID(id).Key() }
	}
	method := func(name string) func(m *wire.Message) bool {
		return func(m *wire.Message) bool { return m.Method == name }
	}
	for _, test := range []struct {
		scenario, requirement string
		last                  func(m *wire.Message) bool
	}{
		{"exchange/notifications", "cancellation.ignore-completed", answer("after-cancelled")},
		{"hostile/not-json", "base.error.parse-survive", answer("after")},
		{"features/roots", "cancellation.race", answer("after-cancelling-roots")},
		{"http/refused-message", "http.client.error-body-tolerated", answer("after-body")},
		{"exchange/frames", "http.client.sse-syntax", answer("behind an event whose data is empty")},
		{"exchange/frames", "http.client.accepted", answer("accepted: plain, and then 2")},
		{"http/sse-marked", "http.client.sse-syntax", method("notifications/initialized")},
		{"lists/virtual-files", "resources.uri-scheme.file-virtual", method("resources/read")},
	} {
		for _, leaves := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s of %s, leaves %v", test.requirement, test.scenario, leaves), func(t *testing.T) {
				t.Parallel()
				run := conducted(t, suites.ClientScenarios{Scenarios: []string{test.scenario}, Launch: inProcess(func(ctx context.Context, p client.Endpoint) error {
					c := reference.Standalone{URL: p.URL, Dial: p.Dial, Timeout: answerTime}
					if !leaves || p.Scenario == client.Baseline {
						return c.Run(ctx)
					}
					var left atomic.Bool
					c.Wrap = func(conn transport.Conn) transport.Conn { return &leavingBehind{conn, test.last, &left} }
					if err := c.Run(ctx); !left.Load() {
						return err
					}
					return nil
				})}, suites.Options{Timeout: 40 * time.Second})
				if q := requirement(t, run, test.requirement); (q.Verdict == result.Pass) == leaves {
					t.Errorf("%s is %s: %s", q.ID, q.Verdict, q.Reason)
				}
			})
		}
	}
}

// leavingBehind is a connection that ends the session as soon as a message has been sent.
type leavingBehind struct {
	transport.Conn
	last func(m *wire.Message) bool
	left *atomic.Bool
}

func (c *leavingBehind) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
	e, err := c.Conn.Send(ctx, out)
	if err == nil && c.last(wire.Parse(out.Raw)) && !c.left.Swap(true) {
		return e, errors.Join(errLeft, c.Conn.Close(ctx))
	}
	return e, err
}
