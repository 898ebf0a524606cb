package mockclient

import (
	"context"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
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
	fault("time.no-limit", ids.LifecycleTimeoutEstablished, "A request is awaited for ever.", patient).In(silence),
	fault("time.no-limit-for-tools", ids.ToolsClientTimeouts, "The answer of a tool is awaited for ever.", patient).
		In(silentTool).Also(ids.LifecycleTimeoutEstablished),
	fault("time.progress-without-end", ids.LifecycleTimeoutMaximum, "A request is awaited for ever if progress comes.",
		patient).In(endlessSteps),
	fault("time.progress-resets", ids.LifecycleTimeoutMaximum,
		"Each progress notification begins the time limit anew, and nothing limits the whole.",
		All(Impatient, func(c *client.Standalone) {
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
		})).Seen(inSequence).In(endlessSteps),
	fault("time.waits-on", ids.LifecycleTimeoutStopWaiting, "A request that was cancelled is awaited for ever.",
		All(Impatient, Wrapping(func(conn transport.Conn) transport.Conn { return waiter{conn} }))).In(silence),
	fault("time.crash", ids.LifecycleErrorRequestTimeout, "A missing answer crashes the client.",
		All(Impatient, Wrapping(func(conn transport.Conn) transport.Conn { return &crasher{Conn: conn} }))).In(silence),
	fault("time.hangs-up", ids.HTTPClientCancelExplicit,
		"The connection of a tool call that is given up is closed, and the call is not cancelled.",
		func(c *client.Standalone) {
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
		}).In(silentTool).Only(OverHTTP).Also(ids.LifecycleTimeoutCancel),
	fault("lifecycle.timeout-silent", ids.LifecycleTimeoutCancel, "A request that is given up is not cancelled.",
		All(Impatient, Dropping(Calls("notifications/cancelled")))).In("time/silence"),
	fault("http.cancel-by-hanging-up", ids.LifecycleTimeoutCancel, "A tool call that is given up is not cancelled.",
		All(Impatient, Dropping(Calls("notifications/cancelled")))).In("time/silent-tool").Everywhere(),
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
