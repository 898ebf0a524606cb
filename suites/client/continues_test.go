package client_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

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

// TestLeavesBehindAnswer runs a client that a cancellation of a finished request has leave in order as soon as it has
// answered the next ping: that it answered is no proof that it ignored the cancellation.
func TestLeavesBehindAnswer(t *testing.T) {
	const scenario, id = "exchange/notifications", "cancellation.ignore-completed"
	for name, leaves := range map[string]bool{"stays": false, "leaves": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := conducted(t, suites.ClientScenarios{Transport: transport.NameStdio, Scenarios: []string{scenario}, Launch: byHand(func(send func(string), _ func(func())) func(*wire.Message) bool {
				leaving := false
				return func(m *wire.Message) bool {
					switch {
					case m.Method == "notifications/cancelled":
						leaving = leaves
					case m.Method == "ping":
						send(pong(m.ID))
						return leaving
					case m.ID.Key() == "1":
						send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
						send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
					case m.ID.Key() == "2":
						send(`{"jsonrpc":"2.0","id":3,"method":"prompts/list"}`)
					}
					return m.ID.Key() == "3"
				}
			})}, suites.Options{})
			if q := requirement(t, run, id); (q.Verdict == result.Pass) == leaves {
				t.Errorf("%s is %s: %s", id, q.Verdict, q.Reason)
			}
		})
	}
}
