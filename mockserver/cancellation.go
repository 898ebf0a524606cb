package mockserver

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// cancelling sends notifications/cancelled after the handshake.
func cancelling(params object) apply {
	return Ready(func(s *server.Session) { s.Notify(Cancelled, Copied(params)) })
}

// basic/utilities/cancellation
var cancellationFaults = []Fault{
	fault("cancellation.answered", ids.CancellationNoResponse,
		"A cancelled request is answered all the same, and goes on.",
		func(o *server.Options) { o.Behaviour.AnswerCancelled = true }).Also(ids.CancellationStopProcessing),
	fault("cancellation.ignored", ids.CancellationNoResponse, "Cancellations are not read.",
		Receiving(func(_ *server.Session, m *wire.Message, next func()) {
			if m.Method != Cancelled {
				next()
			}
		})).Also(ids.CancellationStopProcessing),
	fault("cancellation.partial-result", ids.CancellationNoResponse,
		"A slow call that is cancelled is answered at once with what there is so far.",
		endingCancelled("slow", object{"content": TextOf("Half of it is done.")}, nil)).Seen(InSequence),
	fault("cancellation.asking-answered", ids.CancellationNoResponse,
		"A call that is cancelled while the server waits for what the user enters is answered with an error of its "+
			"own.", endingCancelled("test_elicitation", nil,
			&wire.Error{Code: server.InternalError, Message: "The dialogue was closed"})).Seen(InSequence),
	fault("cancellation.reason-required", ids.CancellationNoResponse, "Cancellations that give no reason are not read.",
		Receiving(func(_ *server.Session, m *wire.Message, next func()) {
			if m.Method != Cancelled || wire.At(m.Params, "reason") != nil {
				next()
			}
		})).Also(ids.CancellationStopProcessing),
	fault("cancellation.numbers-only", ids.CancellationNoResponse,
		"Cancellations of requests whose ids are strings are not read.",
		Receiving(func(_ *server.Session, m *wire.Message, next func()) {
			if _, text := wire.At(m.Params, "requestId").(string); m.Method != Cancelled || !text {
				next()
			}
		})).Also(ids.CancellationStopProcessing),
	fault("cancellation.keeps-lock", ids.BaseResponsePresent,
		"After the cancellation of a slow call no other call is answered in the session.",
		WrappingTool("slow", func(ctx context.Context, r *server.Request, next server.Handler) (any,
			*wire.Error) {
			locked := Kept[atomic.Bool](r.Session, "lock")
			if locked.Load() {
				return server.NoAnswer, nil
			}
			result, problem := next(ctx, r)
			if ctx.Err() != nil {
				locked.Store(true)
			}
			return result, problem
		})).Also(ids.CancellationIgnoreUnknown), // where the session of the cancellation is used again
	fault("cancellation.number-for-string", ids.CancellationIgnoreUnknown,
		"A cancellation that names a string of digits is taken to mean the number.",
		Receiving(func(_ *server.Session, m *wire.Message, next func()) {
			if params, ok := m.Params.(map[string]any); ok && m.Method == Cancelled {
				if id, ok := params["requestId"].(string); ok && id != "" && strings.Trim(id, "0123456789") == "" {
					params["requestId"] = json.Number(id)
				}
			}
			next()
		})),
	fault("cancellation.reason-outside-ascii", ids.BaseMessageUTF8Accepted,
		"A cancellation whose reason has characters outside ASCII ends the process.", dyingOf("不要 🙂")).Seen(ByValue),
	fault("cancellation.goes-on", ids.CancellationStopProcessing,
		"A cancelled request is not answered, but it goes on and reports progress.", unheeded).
		Also(ids.CancellationNoResponse, ids.CancellationIgnoreUnknown),
	fault("cancellation.late-progress", ids.CancellationStopProcessing,
		"Well after the cancellation of a request, progress of it is reported once more.",
		Receiving(func(s *server.Session, m *wire.Message, next func()) {
			next()
			tokens := Kept[sync.Map](s, "tokens")
			if token := wire.At(m.Params, "_meta", "progressToken"); m.Kind == wire.Request &&
				token == "mcpconform-cancelled" {
				tokens.Store(m.ID.Key(), true)
			}
			if m.Method != Cancelled {
				return
			}
			if _, ours := tokens.LoadAndDelete(wire.ReadID(wire.At(m.Params, "requestId")).Key()); ours {
				late := s.Notification(Progressed, object{"progressToken": "mcpconform-cancelled", "progress": 999})
				late.Delay = 500 * time.Millisecond
				s.Send(late)
			}
		})),
	fault("cancellation.kills", ids.CancellationEitherSide, "A cancellation ends the process.",
		dyingOf(`"notifications/cancelled"`)).
		Also(ids.CancellationIgnoreUnknown, ids.CancellationIgnoreCompleted, ids.CancellationIgnoreMalformed,
			ids.CancellationNoResponse, ids.CancellationLateResponse, ids.CancellationRace,
			ids.MetaAttachNotification, ids.BaseNotificationMalformedNoResponse, ids.PingResponsePrompt),
	fault("cancellation.burst-loses-request", ids.CancellationRace,
		"After several cancellations in a row the next request is lost.",
		Receiving(func(s *server.Session, m *wire.Message, next func()) {
			run := Kept[atomic.Int32](s, "burst")
			switch {
			case m.Method == Cancelled:
				run.Add(1)
			case m.Method == "ping" && run.Swap(0) > 2:
				return
			}
			next()
		})).Also(ids.BaseResponsePresent, ids.CancellationIgnoreUnknown),
	fault("cancellation.call-race-loses-request", ids.CancellationRace,
		"After the cancellation of a call of a tool that was answered before, the next request is lost.", All(
			Responses("tools/call",
				func(out *server.Outgoing) { Keys(out.Session, "ended calls").Store(out.Answers.ID.Key(), true) }),
			Receiving(func(s *server.Session, m *wire.Message, next func()) {
				_, late := Keys(s, "ended calls").LoadAndDelete(named(m))
				lost := Kept[atomic.Bool](s, "lost")
				switch {
				case m.Method == Cancelled && late:
					lost.Store(true)
				case m.Kind == wire.Request && lost.Swap(false):
					return
				}
				next()
			}),
		)).Seen(InSequence).Also(ids.BaseResponsePresent),
	fault("cancellation.late-response-deafens", ids.CancellationLateResponse,
		"After the response to a request that the server has cancelled, nothing is answered any more.", All(
			Messages(Cancelled, func(out *server.Outgoing) {
				if id, ok := out.Params()["requestId"].(json.RawMessage); ok {
					withdrawn(out.Session).Store(string(id), true)
				}
			}),
			unresponsiveAfter(func(s *server.Session, m *wire.Message) bool {
				_, known := withdrawn(s).Load(m.ID.String())
				return m.IsResponse() && known
			}),
		)).Also(ids.BaseResponsePresent),
	fault("cancellation.of-the-answered", ids.CancellationInProgress,
		"The server cancels its sampling request behind the result of the tool, which holds the sampled text.", All(
			Receiving(func(s *server.Session, m *wire.Message, next func()) {
				if _, sampled := wire.At(m.Result, "content", "text").(string); sampled {
					answered(s).Store(&m.ID)
				}
				next()
			}),
			Sending(server.OnResponse("tools/call", func(out *server.Outgoing) []*server.Outgoing {
				sent := []*server.Outgoing{out}
				if id := answered(out.Session).Swap(nil); id != nil {
					sent = append(sent, out.Answers.Notification(Cancelled,
						object{"requestId": json.RawMessage(id.String()), "reason": "no longer needed"}))
				}
				return sent
			})),
		)),
	fault("cancellation.unknown-answered", ids.CancellationIgnoreUnknown,
		"The cancellation of an unknown request is answered with an error.",
		Receiving(func(s *server.Session, m *wire.Message, next func()) {
			next()
			if m.Method == Cancelled && wire.At(m.Params, "requestId") == "mcpconform-never-used" {
				s.Send(&server.Outgoing{Session: s, Message: refusal(nil, server.InvalidParams, "No such request")})
			}
		})).Also(ids.BaseNotificationNoResponse, ids.BaseResponseIDEcho),
	fault("cancellation.unknown-kills", ids.CancellationIgnoreUnknown,
		"The cancellation of an unknown request ends the process.", dyingOf(`"requestId":987654321`)),
	fault("cancellation.completed-kills", ids.CancellationIgnoreCompleted,
		"A cancellation without a reason ends the process.",
		dying(regexp.MustCompile(`"params":\{"requestId":\d{1,4}\}\}`).Match)).Also(ids.CancellationNoResponse),
	fault("cancellation.malformed-answered", ids.CancellationIgnoreMalformed,
		"A cancellation without an id is answered with an error.",
		Receiving(func(s *server.Session, m *wire.Message, next func()) {
			next()
			if m.Method == Cancelled && wire.At(m.Params, "reason") == "no id" {
				s.Send(&server.Outgoing{Session: s,
					Message: refusal(nil, server.InvalidParams, "requestId is missing")})
			}
		})).Also(ids.BaseNotificationNoResponse, ids.BaseResponseIDEcho),
	fault("cancellation.malformed-kills", ids.CancellationIgnoreMalformed,
		"A cancellation whose id is null ends the process.", dyingOf(`"requestId":null`)),
	fault("cancellation.of-client-request", ids.CancellationSameDirection,
		"The server cancels a request of the client.",
		cancelling(object{"requestId": json.Number("1"), "reason": "overloaded"})),
	fault("cancellation.without-id", ids.SchemaCancelledNotification, "notifications/cancelled has no requestId.",
		cancelling(object{"reason": "overloaded"})),
}

// answered holds the id of a request of the server to which the client has sampled a text.
func answered(s *server.Session) *atomic.Pointer[wire.ID] {
	return Kept[atomic.Pointer[wire.ID]](s, "answered")
}

// withdrawn holds the ids of the requests that the server has cancelled.
func withdrawn(s *server.Session) *sync.Map {
	return Kept[sync.Map](s, "withdrawn")
}

// unheeded lets cancelled requests go on, and drops their responses.
func unheeded(o *server.Options) {
	ids := func(s *server.Session) *sync.Map {
		return Kept[sync.Map](s, "unheeded")
	}
	All(
		Receiving(func(s *server.Session, m *wire.Message, next func()) {
			if m.Method != Cancelled {
				next()
			} else if id := wire.ReadID(wire.At(m.Params, "requestId")); id.Usable() {
				ids(s).Store(id.Key(), true)
			}
		}),
		WithholdingAnswers("tools/call", func(out *server.Outgoing) bool {
			if _, gone := ids(out.Session).Load(out.Answers.ID.Key()); gone {
				return true
			}
			return false
		}),
	)(o)
}

// endingCancelled answers calls of a tool that are cancelled, and no others that are.
func endingCancelled(tool string, result any, problem *wire.Error) apply {
	return All(
		func(o *server.Options) { o.Behaviour.AnswerCancelled = true },
		Wrapping("tools/call", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			served, refused := next(ctx, r)
			switch {
			case ctx.Err() == nil:
				return served, refused
			case r.Params["name"] == tool:
				return result, problem
			}
			return server.NoAnswer, nil
		}),
	)
}
