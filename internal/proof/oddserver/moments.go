package oddserver

import (
	"context"
	"strings"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// momentOddities are legal, and show in one order or at one moment.
var momentOddities = []Oddity{
	odd("moments.in-turn", "Requests other than pings wait until the one before them has been answered.",
		"A server may serve one request after the other.", "basic/index#requests", Wrapping("*", inOrder)).
		Open(ids.BaseResponseCorrelated).Replaces("calls"),
	odd("moments.in-turn-slowly",
		"Each list takes two seconds, and requests other than pings wait until the one before them has been answered.",
		"A server may serve one request after the other, and the text sets no time for an answer but that of ping.",
		"basic/lifecycle#timeouts",
		Wrapping("*", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			return inOrder(ctx, r, func(ctx context.Context, r *server.Request) (any, *wire.Error) {
				if strings.HasSuffix(r.Method, "/list") {
					<-time.After(2 * time.Second)
				}
				return next(ctx, r)
			})
		})).Open("*").Replaces("calls"),
	odd("moments.last-first", "The last of several list requests that are open is answered first.",
		"Responses are told apart by their ids, not by their order.", "basic/index#responses",
		delayedBy(func(r *server.Request) time.Duration {
			n := Count(r.Session, "last-first")
			return time.Duration(5-n%5) * 5 * time.Millisecond
		})),
	odd("moments.calls-limited",
		"After the fifth call of a quick tool in a session further ones are refused for the moment.",
		"Servers MUST rate limit tool invocations.", "server/tools#security-considerations",
		WrappingTool("test_simple_text", func(ctx context.Context, r *server.Request, next server.Handler) (any,
			*wire.Error) {
			if Count(r.Session, "calls-limited") > 5 && len(r.Params) == 2 {
				return nil, &wire.Error{Code: -32000, Message: "Too many calls, try again later"}
			}
			return next(ctx, r)
		})),
	odd("moments.cursor-ends-with-call", "Once a tool was called, the cursors that were given before lead nowhere.",
		"A tool may change what is listed, and cursors should be stable, not lasting.",
		"server/utilities/pagination#implementation-guidelines",
		Wrapping("*", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			given := Keys(r.Session, "given")
			cursor, paged := r.Params["cursor"].(string)
			switch {
			case r.Method == "tools/call":
				given.Clear()
			case paged && len(cursor) > 30 && !Knows(given, cursor):
				return nil, &wire.Error{Code: server.InvalidParams, Message: "The list has changed: begin again"}
			}
			result, problem := next(ctx, r)
			if cursor, more := wire.At(result, "nextCursor").(string); more {
				given.Store(cursor, true)
			}
			return result, problem
		})),
	odd("moments.unsubscribe-refused", "To end a subscription that does not exist is refused.",
		"The text does not say what the answer is then.", "server/resources#subscriptions",
		Refusing("resources/unsubscribe", server.InvalidParams,
			func(r *server.Request) bool { return len(r.Session.Subscriptions()) == 0 })),
	odd("moments.busy-with-call", "While a call is running, completions are refused.",
		"Whether a server takes a request while it serves another is not said.", "basic/index#requests",
		Refusing("completion/complete", -32000, func(r *server.Request) bool { return Busy(r.Session) })),
}

// delayedBy holds back the responses to lists, each for a time of its own.
func delayedBy(time func(r *server.Request) time.Duration) apply {
	return Altering(func(out *server.Outgoing) {
		if out.Answers != nil && strings.HasSuffix(out.Answers.Method, "/list") {
			out.Delay = time(out.Answers)
		}
	})
}

// inOrder serves the requests of a session one after the other.
func inOrder(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
	if r.Method == "ping" || r.Method == "initialize" {
		return next(ctx, r)
	}
	r.Detach()
	turn := r.Session.Value("queue", func() any { return make(chan struct{}, 1) }).(chan struct{})
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return server.NoAnswer, nil
	}
	return next(ctx, r)
}
