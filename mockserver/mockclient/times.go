package mockclient

import (
	"context"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// patient waits for an answer as long as it takes.
func patient(c *client.Standalone) { c.Timeout = time.Hour }

const (
	silence      = "time/silence"
	silentTool   = "time/silent-tool"
	endlessSteps = "time/endless-progress"
)

var timeFaults = []Fault{
	{ID: "time.no-limit", Requirement: ids.LifecycleTimeoutEstablished, Scenario: silence,
		Summary: "A request is awaited for ever.", Apply: patient},
	{ID: "time.no-limit-for-tools", Requirement: ids.ToolsClientTimeouts, Scenario: silentTool,
		Summary:    "The answer of a tool is awaited for ever.",
		Collateral: []string{ids.LifecycleTimeoutEstablished}, Apply: patient},
	{ID: "time.progress-without-end", Requirement: ids.LifecycleTimeoutMaximum, Scenario: endlessSteps,
		Summary: "A request is awaited for ever if progress comes.", Apply: patient},
	{ID: "time.progress-resets", Requirement: ids.LifecycleTimeoutMaximum, Form: mockserver.InSequence,
		Scenario: endlessSteps,
		Summary:  "Each progress notification begins the time limit anew, and nothing limits the whole.",
		Apply: All(Impatient, func(c *client.Standalone) {
			c.Use = func(ctx context.Context, s *client.Session, _ client.Call) error {
				p, err := s.Start(ctx, "tools/call",
					object{"name": "echo", "arguments": object{"text": "a"}, "_meta": object{"progressToken": "steps"}})
				for from := 0; err == nil; {
					var e *wire.Event
					if e, err = s.AwaitEvent(ctx, from, "progress or answer", func(e *wire.Event) bool {
						return p.Answers(e) || e.Kind == wire.KindMessage && e.Msg.Method == "notifications/progress"
					}); err == nil && p.Answers(e) {
						return nil
					} else if err == nil {
						from = e.Seq + 1
					}
				}
				return err
			}
		})},
	{ID: "time.waits-on", Requirement: ids.LifecycleTimeoutStopWaiting, Scenario: silence,
		Summary: "A request that was cancelled is awaited for ever.",
		Apply:   All(Impatient, Wrapping(func(conn transport.Conn) transport.Conn { return waiter{conn} }))},
	{ID: "time.crash", Requirement: ids.LifecycleErrorRequestTimeout, Scenario: silence,
		Summary: "A missing answer crashes the client.",
		Apply:   All(Impatient, Wrapping(func(conn transport.Conn) transport.Conn { return &crasher{Conn: conn} }))},
	{ID: "time.hangs-up", Requirement: ids.HTTPClientCancelExplicit, Scenario: silentTool, Transports: OverHTTP,
		Summary:    "The connection of a tool call that is given up is closed, and the call is not cancelled.",
		Collateral: []string{ids.LifecycleTimeoutCancel},
		Apply: func(c *client.Standalone) {
			raw := ConnectionOf(c)
			c.Use = func(ctx context.Context, _ *client.Session, call client.Call) error {
				brief, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
				_, _ = raw().Do(brief, transport.Request{
					Defaults: true,
					Body: []byte(`{"jsonrpc":"2.0","id":"left","method":"tools/call",` +
						`"params":{"name":"echo","arguments":{"text":"a"}}}`),
				})
				cancel()
				_, err := call(ctx, "tools/list", nil)
				return err
			}
		}},
	{ID: "lifecycle.timeout-silent", Requirement: ids.LifecycleTimeoutCancel, Scenario: "time/silence",
		Summary: "A request that is given up is not cancelled.",
		Apply:   All(Impatient, Dropping(Calls("notifications/cancelled")))},
	{ID: "http.cancel-by-hanging-up", Requirement: ids.LifecycleTimeoutCancel, Scenario: "time/silent-tool",
		Summary: "A tool call that is given up is not cancelled.",
		Apply:   All(Impatient, Dropping(Calls("notifications/cancelled")))},
}

// waiter waits on when it has cancelled a request.
type waiter struct{ transport.Conn }

func (c waiter) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
	sent, err := c.Conn.Send(ctx, out)
	if Calls("notifications/cancelled")(wire.Parse(out.Raw)) {
		<-time.After(time.Minute)
	}
	return sent, err
}

// crasher crashes when it is to cancel a request.
type crasher struct {
	transport.Conn
	crashed bool
}

func (c *crasher) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
	if c.crashed = c.crashed || Calls("notifications/cancelled")(wire.Parse(out.Raw)); c.crashed {
		return &wire.Event{Kind: wire.KindNote}, crash{}
	}
	return c.Conn.Send(ctx, out)
}

// crash is the end of a process by a signal, as a shell reports it.
type crash struct{}

func (crash) Error() string { return "the client has crashed" }
func (crash) ExitCode() int { return 134 }
