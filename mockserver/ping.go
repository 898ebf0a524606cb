package mockserver

import (
	"context"
	"strconv"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// pinging sends a ping after the handshake.
func pinging(message object) apply {
	return Ready(func(s *server.Session) {
		ping := Copied(message)
		ping["jsonrpc"], ping["method"] = "2.0", "ping"
		s.Send(&server.Outgoing{Session: s, Message: ping})
	})
}

// basic/utilities/ping
var pingFaults = []Fault{
	{ID: "ping.not-empty", Requirement: ids.PingResponseEmpty, Summary: `The result of ping is {"message": "pong"}.`,
		Apply: Results("ping", Having("message", "pong"))},
	{ID: "ping.refused", Requirement: ids.PingResponsePrompt, Summary: "Pings are refused with -32600.",
		Apply: Refusing("ping", server.InvalidRequest, Always)},
	{ID: "ping.unknown", Requirement: ids.PingEitherSide, Summary: "Pings are refused with -32601.",
		Collateral: []string{ids.PingResponsePrompt}, Apply: Refusing("ping", server.MethodNotFound, Always)},
	{ID: "ping.silent", Requirement: ids.PingResponsePrompt, Summary: "No ping is answered.",
		Collateral: []string{ids.BaseResponsePresent, ids.LifecycleInitClientEarlyPing},
		Apply:      Answering("ping", server.NoAnswer, Always)},
	{ID: "ping.refused-before-initialized", Requirement: ids.PingResponsePrompt,
		Summary:    "Pings are refused with -32602 until notifications/initialized has come.",
		Collateral: []string{ids.LifecycleInitClientEarlyPing},
		Apply: Refusing("ping", server.InvalidParams, func(r *server.Request) bool {
			return !r.Session.Initialized()
		})},
	{ID: "ping.behind-calls-over-http", Requirement: ids.PingResponsePrompt, Transports: OverHTTP,
		Summary:    "Over HTTP, too, requests of a session are served one after the other.",
		Collateral: []string{ids.HTTPServerMultipleStreams},
		Apply: Wrapping("*", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			turn := r.Session.Value("turn", func() any { return make(chan struct{}, 1) }).(chan struct{})
			select {
			case turn <- struct{}{}:
				defer func() { <-turn }()
			case <-ctx.Done():
			}
			return next(ctx, r)
		})},
	{
		ID: "ping.behind-slow-call", Requirement: ids.PingResponsePrompt,
		Summary:    "Pings wait until the calls before them have ended.",
		Collateral: []string{ids.BaseResponsePresent}, // of a ping that is sent before the call gets what it asks for
		Apply: Wrapping("ping", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			r.Detach()
			for Busy(r.Session) && ctx.Err() == nil {
				_ = r.Sleep(ctx, 5*time.Millisecond)
			}
			return next(ctx, r)
		}),
	},
	{ID: "ping.meta-refused", Requirement: ids.MetaAttachRequest, Summary: "A ping with params is refused.",
		Collateral: []string{ids.ProgressRequest},
		Apply:      Refusing("ping", server.InvalidParams, func(r *server.Request) bool { return len(r.Params) > 0 })},
	{ID: "ping.params", Requirement: ids.PingNoParams, Summary: "The server's pings have params of their own.",
		Apply: pinging(object{"id": "p", "params": object{"timestamp": 0}})},
	{ID: "ping.flood", Requirement: ids.PingNotExcessive, Transports: OverStdio,
		Summary: "The server sends more than a thousand pings at once.",
		Apply: Ready(func(s *server.Session) {
			for i := range Flood {
				s.Send(&server.Outgoing{Session: s,
					Message: object{"jsonrpc": "2.0", "method": "ping", "id": "ping-" + strconv.Itoa(i)}})
			}
		})},
}
