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

// answeringCancelled answers cancellations that fit with an error.
func answeringCancelled(fits func(id any) bool) apply {
	return Receiving(func(s *server.Session, m *wire.Message, next func()) {
		next()
		if m.Method == Cancelled && fits(wire.At(m.Params, "requestId")) {
			s.Send(&server.Outgoing{Session: s, Message: refusal(nil, server.InvalidParams, "No such request")})
		}
	})
}

// basic/utilities/cancellation
var cancellationFaults = []Fault{
	{ID: "cancellation.answered", Requirement: ids.CancellationNoResponse,
		Summary:    "A cancelled request is answered all the same, and goes on.",
		Collateral: []string{ids.CancellationStopProcessing},
		Apply:      func(o *server.Options) { o.Behaviour.AnswerCancelled = true }},
	{ID: "cancellation.ignored", Requirement: ids.CancellationNoResponse, Summary: "Cancellations are not read.",
		Collateral: []string{ids.CancellationStopProcessing},
		Apply: Receiving(func(_ *server.Session, m *wire.Message, next func()) {
			if m.Method != Cancelled {
				next()
			}
		})},
	{ID: "cancellation.partial-result", Requirement: ids.CancellationNoResponse, Form: InSequence,
		Summary: "A slow call that is cancelled is answered at once with what there is so far.",
		Apply:   endingCancelled("slow", object{"content": TextOf("Half of it is done.")}, nil)},
	{ID: "cancellation.asking-answered", Requirement: ids.CancellationNoResponse, Form: InSequence,
		Summary: "A call that is cancelled while the server waits for what the user enters is answered with " +
			"an error of its own.",
		Apply: endingCancelled("test_elicitation", nil,
			&wire.Error{Code: server.InternalError, Message: "The dialogue was closed"})},
	{ID: "cancellation.reason-required", Requirement: ids.CancellationNoResponse,
		Summary:    "Cancellations that give no reason are not read.",
		Collateral: []string{ids.CancellationStopProcessing},
		Apply: Receiving(func(_ *server.Session, m *wire.Message, next func()) {
			if m.Method != Cancelled || wire.At(m.Params, "reason") != nil {
				next()
			}
		})},
	{ID: "cancellation.numbers-only", Requirement: ids.CancellationNoResponse,
		Summary:    "Cancellations of requests whose ids are strings are not read.",
		Collateral: []string{ids.CancellationStopProcessing},
		Apply: Receiving(func(_ *server.Session, m *wire.Message, next func()) {
			if _, text := wire.At(m.Params, "requestId").(string); m.Method != Cancelled || !text {
				next()
			}
		})},
	{
		ID: "cancellation.keeps-lock", Requirement: ids.BaseResponsePresent,
		Summary:    "After the cancellation of a slow call no other call is answered in the session.",
		Collateral: []string{ids.CancellationIgnoreUnknown}, // where the session of the cancellation is used again
		Apply: WrappingTool("slow", func(ctx context.Context, r *server.Request, next server.Handler) (any,
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
		}),
	},
	{ID: "cancellation.number-for-string", Requirement: ids.CancellationIgnoreUnknown,
		Summary: "A cancellation that names a string of digits is taken to mean the number.",
		Apply: Receiving(func(_ *server.Session, m *wire.Message, next func()) {
			if params, ok := m.Params.(map[string]any); ok && m.Method == Cancelled {
				if id, ok := params["requestId"].(string); ok && id != "" && strings.Trim(id, "0123456789") == "" {
					params["requestId"] = json.Number(id)
				}
			}
			next()
		})},
	{ID: "cancellation.reason-outside-ascii", Requirement: ids.BaseMessageUTF8Accepted, Form: ByValue,
		Summary: "A cancellation whose reason has characters outside ASCII ends the process.",
		Apply:   dyingOf("不要 🙂")},
	{ID: "cancellation.goes-on", Requirement: ids.CancellationStopProcessing,
		Summary:    "A cancelled request is not answered, but it goes on and reports progress.",
		Collateral: []string{ids.CancellationNoResponse, ids.CancellationIgnoreUnknown}, Apply: unheeded},
	{ID: "cancellation.late-progress", Requirement: ids.CancellationStopProcessing,
		Summary: "Well after the cancellation of a request, progress of it is reported once more.",
		Apply: Receiving(func(s *server.Session, m *wire.Message, next func()) {
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
		})},
	{ID: "cancellation.kills", Requirement: ids.CancellationEitherSide, Summary: "A cancellation ends the process.",
		Collateral: []string{
			ids.CancellationIgnoreUnknown, ids.CancellationIgnoreCompleted, ids.CancellationIgnoreMalformed,
			ids.CancellationNoResponse,
			ids.CancellationLateResponse, ids.CancellationRace, ids.MetaAttachNotification,
			ids.BaseNotificationMalformedNoResponse,
			ids.PingResponsePrompt,
		},
		Apply: dyingOf(`"notifications/cancelled"`)},
	{ID: "cancellation.burst-loses-request", Requirement: ids.CancellationRace,
		Summary:    "After several cancellations in a row the next request is lost.",
		Collateral: []string{ids.BaseResponsePresent, ids.CancellationIgnoreUnknown},
		Apply: Receiving(func(s *server.Session, m *wire.Message, next func()) {
			run := Kept[atomic.Int32](s, "burst")
			switch {
			case m.Method == Cancelled:
				run.Add(1)
			case m.Method == "ping" && run.Swap(0) > 2:
				return
			}
			next()
		})},
	{ID: "cancellation.call-race-loses-request", Requirement: ids.CancellationRace, Form: InSequence,
		Summary:    "After the cancellation of a call of a tool that was answered before, the next request is lost.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply: All(
			Responses("tools/call", func(out *server.Outgoing) {
				Keys(out.Session, "ended calls").Store(out.Answers.ID.Key(), true)
			}),
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
		)},
	{ID: "cancellation.late-response-deafens", Requirement: ids.CancellationLateResponse,
		Summary:    "After the response to a request that the server has cancelled, nothing is answered any more.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply: All(
			Messages(Cancelled, func(out *server.Outgoing) {
				if id, ok := out.Params()["requestId"].(json.RawMessage); ok {
					withdrawn(out.Session).Store(string(id), true)
				}
			}),
			unresponsiveAfter(func(s *server.Session, m *wire.Message) bool {
				_, known := withdrawn(s).Load(m.ID.String())
				return m.IsResponse() && known
			}),
		)},
	{ID: "cancellation.of-the-answered", Requirement: ids.CancellationInProgress,
		Summary: "The server cancels its sampling request behind the result of the tool, which holds the sampled text.",
		Apply: All(
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
		)},
	{ID: "cancellation.unknown-answered", Requirement: ids.CancellationIgnoreUnknown,
		Summary:    "The cancellation of an unknown request is answered with an error.",
		Collateral: []string{ids.BaseNotificationNoResponse, ids.BaseResponseIDEcho},
		Apply:      answeringCancelled(func(id any) bool { return id == "mcpconform-never-used" })},
	{ID: "cancellation.unknown-kills", Requirement: ids.CancellationIgnoreUnknown,
		Summary: "The cancellation of an unknown request ends the process.",
		Apply:   dyingOf(`"requestId":987654321`)},
	{ID: "cancellation.completed-kills", Requirement: ids.CancellationIgnoreCompleted,
		Summary:    "A cancellation without a reason ends the process.",
		Collateral: []string{ids.CancellationNoResponse},
		Apply:      dying(regexp.MustCompile(`"params":\{"requestId":\d{1,4}\}\}`).Match)},
	{ID: "cancellation.malformed-answered", Requirement: ids.CancellationIgnoreMalformed,
		Summary:    "A cancellation without an id is answered with an error.",
		Collateral: []string{ids.BaseNotificationNoResponse, ids.BaseResponseIDEcho},
		Apply: Receiving(func(s *server.Session, m *wire.Message, next func()) {
			next()
			if m.Method == Cancelled && wire.At(m.Params, "reason") == "no id" {
				s.Send(&server.Outgoing{Session: s,
					Message: refusal(nil, server.InvalidParams, "requestId is missing")})
			}
		})},
	{ID: "cancellation.malformed-kills", Requirement: ids.CancellationIgnoreMalformed,
		Summary: "A cancellation whose id is null ends the process.", Apply: dyingOf(`"requestId":null`)},
	{ID: "cancellation.of-client-request", Requirement: ids.CancellationSameDirection,
		Summary: "The server cancels a request of the client.",
		Apply:   cancelling(object{"requestId": json.Number("1"), "reason": "overloaded"})},
	{ID: "cancellation.without-id", Requirement: ids.SchemaCancelledNotification,
		Summary: "notifications/cancelled has no requestId.", Apply: cancelling(object{"reason": "overloaded"})},
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
