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
	fault("ping.not-empty", ids.PingResponseEmpty, `The result of ping is {"message": "pong"}.`,
		Results("ping", Having("message", "pong"))),
	fault("ping.refused", ids.PingResponsePrompt, "Pings are refused with -32600.",
		Refusing("ping", server.InvalidRequest, Always)),
	fault("ping.unknown", ids.PingEitherSide, "Pings are refused with -32601.",
		Refusing("ping", server.MethodNotFound, Always)).Also(ids.PingResponsePrompt),
	fault("ping.silent", ids.PingResponsePrompt, "No ping is answered.", Answering("ping", server.NoAnswer, Always)).
		Also(ids.BaseResponsePresent, ids.LifecycleInitClientEarlyPing),
	fault("ping.refused-before-initialized", ids.PingResponsePrompt,
		"Pings are refused with -32602 until notifications/initialized has come.",
		Refusing("ping", server.InvalidParams, func(r *server.Request) bool { return !r.Session.Initialized() })).
		Also(ids.LifecycleInitClientEarlyPing),
	fault("ping.behind-calls-over-http", ids.PingResponsePrompt,
		"Over HTTP, too, requests of a session are served one after the other.",
		Wrapping("*", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			turn := r.Session.Value("turn", func() any { return make(chan struct{}, 1) }).(chan struct{})
			select {
			case turn <- struct{}{}:
				defer func() { <-turn }()
			case <-ctx.Done():
			}
			return next(ctx, r)
		})).Only(OverHTTP).Also(ids.HTTPServerMultipleStreams),
	fault("ping.behind-slow-call", ids.PingResponsePrompt, "Pings wait until the calls before them have ended.",
		Wrapping("ping", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			r.Detach()
			for Busy(r.Session) && ctx.Err() == nil {
				_ = r.Sleep(ctx, 5*time.Millisecond)
			}
			return next(ctx, r)
		})).Also(ids.BaseResponsePresent), // of a ping that is sent before the call gets what it asks for
	fault("ping.meta-refused", ids.MetaAttachRequest, "A ping with params is refused.",
		Refusing("ping", server.InvalidParams, func(r *server.Request) bool { return len(r.Params) > 0 })).
		Also(ids.ProgressRequest),
	fault("ping.params", ids.PingNoParams, "The server's pings have params of their own.",
		pinging(object{"id": "p", "params": object{"timestamp": 0}})),
	fault("ping.flood", ids.PingNotExcessive, "The server sends more than a thousand pings at once.",
		Ready(func(s *server.Session) {
			for i := range Flood {
				s.Send(&server.Outgoing{Session: s,
					Message: object{"jsonrpc": "2.0", "method": "ping", "id": "ping-" + strconv.Itoa(i)}})
			}
		})).Only(OverStdio),
}
