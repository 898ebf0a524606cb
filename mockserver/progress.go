package mockserver

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// tokens changes the progress tokens that are strings.
func tokens(change func(token string) string) apply {
	return Params(Progressed, func(params object) {
		if token, ok := params["progressToken"].(string); ok {
			params["progressToken"] = change(token)
		}
	})
}

// ofForeignToken are the further requirements that are broken if progress has another token than its request.
var ofForeignToken = []string{ids.ProgressValueIncreases, ids.ProgressStop, ids.ProgressInProgress,
	ids.ProgressTokenEcho}

// basic/utilities/progress
var progressFaults = []Fault{
	fault("progress.token-as-string", ids.ProgressTokenEcho, "The progress token comes back as a string.",
		Params(Progressed, func(params object) {
			if token, ok := params["progressToken"].(json.Number); ok {
				params["progressToken"] = string(token)
			}
		})).Also(ids.ProgressValueIncreases, ids.ProgressStop, ids.ProgressInProgress),
	fault("progress.token-small-letters", ids.ProgressTokenActiveRequest,
		"The progress token comes back in small letters.", tokens(strings.ToLower)).Seen(ByValue).
		Also(ofForeignToken...),
	fault("progress.token-trimmed", ids.ProgressTokenActiveRequest,
		"The progress token comes back without the blanks around it.", tokens(strings.TrimSpace)).Seen(ByValue).
		Also(ofForeignToken...),
	fault("progress.token-decoded", ids.ProgressTokenActiveRequest,
		"The progress token comes back with its percent-encoding decoded.", tokens(func(token string) string {
			if decoded, err := url.PathUnescape(token); err == nil {
				return decoded
			}
			return token
		})).Seen(ByValue).Also(ofForeignToken...),
	fault("progress.not-growing", ids.ProgressValueIncreases, "The progress value stays the same.",
		Params(Progressed, Having("progress", 1))),
	fault("progress.counts-down", ids.ProgressValueIncreases, "The progress value falls.",
		Params(Progressed, func(params object) {
			if v, ok := params["progress"].(float64); ok {
				params["progress"] = 100 - v
			}
		})),
	fault("progress.unasked", ids.ProgressTokenActiveRequest, "Progress is reported with a token of the server's own.",
		Sending(server.OnResponse("tools/call", func(out *server.Outgoing) []*server.Outgoing {
			early := out.Answers.Notification(Progressed, object{"progressToken": "own", "progress": 1})
			return []*server.Outgoing{early, out}
		}))),
	fault("progress.after-response", ids.ProgressStop, "Progress goes on after the response.",
		Sending(server.OnResponse("tools/call", func(out *server.Outgoing) []*server.Outgoing {
			token, ok := out.Answers.Token()
			if !ok {
				return []*server.Outgoing{out}
			}
			late := out.Answers.Notification(Progressed, object{"progressToken": token, "progress": 999})
			return []*server.Outgoing{out, late}
		}))).Seen(InSequence).Also(ids.ProgressInProgress, ids.ProgressTokenActiveRequest),
	fault("progress.flood", ids.ProgressRateLimit,
		"Before the first response, progress is reported more than a thousand times.",
		Sending(server.OnResponse("tools/call", func(out *server.Outgoing) []*server.Outgoing {
			var all []*server.Outgoing
			if token, ok := out.Answers.Token(); ok && Once(out.Session, "progress.flood") {
				for i := range Flood {
					all = append(all, out.Answers.Notification(Progressed,
						object{"progressToken": token, "progress": 1000 + i}))
				}
			}
			return append(all, out)
		}))),
	fault("progress.message-empty", ids.ProgressMessageReadable, "The message of progress is three dots.",
		Params(Progressed, Having("message", "..."))),
	fault("progress.after-refusal", ids.ProgressInProgress,
		"After a call was refused, progress reports it as complete.",
		Sending(server.OnResponse("tools/call", func(out *server.Outgoing) []*server.Outgoing {
			token, ok := out.Answers.Token()
			if !ok || out.RPCError() == nil {
				return []*server.Outgoing{out}
			}
			late := out.Answers.Notification(Progressed, object{"progressToken": token, "progress": 1, "total": 1})
			return []*server.Outgoing{out, late}
		}))).Also(ids.ProgressStop, ids.ProgressTokenActiveRequest),
	fault("progress.on-another-stream", ids.ProgressStop,
		"Progress comes on the listening stream seconds after the response.",
		Responses("tools/call", func(out *server.Outgoing) {
			if token, ok := out.Answers.Token(); ok {
				s, late := out.Session, object{"jsonrpc": "2.0", "method": Progressed,
					"params": object{"progressToken": token, "progress": 999}}
				time.AfterFunc(2*time.Second, func() { s.Send(&server.Outgoing{Session: s, Message: late}) })
			}
		})).Only(OverHTTP).Also(ids.ProgressInProgress, ids.ProgressTokenActiveRequest, ids.ProgressValueIncreases),
	fault("progress.token-refused-completing", ids.ProgressRequest,
		"A completion/complete with a progress token is refused.",
		Refusing("completion/complete", server.InvalidParams, func(r *server.Request) bool {
			_, ok := r.Token()
			return ok
		})),
	fault("progress.token-refused", ids.ProgressRequest, "Requests with a progress token are refused.",
		Refusing("ping", server.InvalidParams, func(r *server.Request) bool {
			_, ok := r.Token()
			return ok
		})).Also(ids.ProgressTokenAnyMeans),
	fault("progress.empty-token-refused", ids.ProgressTokenAnyMeans,
		"A progress token that is the empty string is refused.",
		Refusing("*", server.InvalidParams, func(r *server.Request) bool {
			token, ok := r.Token()
			return ok && token == ""
		})).Seen(ByValue),
	fault("progress.value-string", ids.SchemaProgressNotification, `The progress value is a text such as "50%".`,
		Params(Progressed, Having("progress", "50%"))),
	fault("progress.token-missing", ids.SchemaProgressNotification, "Progress notifications have no token.",
		Params(Progressed, Lacking("progressToken"))).Also(ids.ProgressTokenActiveRequest, ids.ProgressTokenType),
	fault("progress.token-object", ids.ProgressTokenType, "The progress token is an object.",
		Params(Progressed, func(params object) { params["progressToken"] = object{"token": params["progressToken"]} })).
		Also(ids.ProgressTokenActiveRequest),
	fault("progress.of-client-needed", ids.ProgressNone,
		"A sampling request that the client answers without reporting progress makes the tool fail.",
		All(noting, judgingProgress(func(reports list) bool { return len(reports) == 0 }))),
	fault("progress.of-client-fails", ids.ProgressNotify, "Any progress of the client makes the tool fail.",
		All(noting, judgingProgress(func(reports list) bool { return len(reports) > 0 }))).
		Also(ids.ProgressValueFloat, ids.ProgressTotalFloat, ids.ProgressOmitTotal, ids.ProgressFrequency),
	fault("progress.of-client-fraction", ids.ProgressValueFloat,
		"A progress value of the client that is a fraction makes the tool fail.",
		All(noting, judgingProgress(fractional("progress")))),
	fault("progress.of-client-total-fraction", ids.ProgressTotalFloat,
		"A total of the client that is a fraction makes the tool fail.",
		All(noting, judgingProgress(fractional("total")))),
	fault("progress.of-client-no-total", ids.ProgressOmitTotal,
		"Progress of the client without a total makes the tool fail.",
		All(noting, judgingProgress(func(reports list) bool {
			return slices.ContainsFunc(reports, func(r any) bool { return wire.At(r, "total") == nil })
		}))),
	fault("progress.of-client-often", ids.ProgressFrequency,
		"More than ten progress notifications of the client make the tool fail.",
		All(noting, judgingProgress(func(reports list) bool { return len(reports) > 10 }))),
	fault("progress.token-shared", ids.ProgressTokenUnique, "All sampling requests have the same progress token.",
		Params("sampling/createMessage", Having("_meta", object{"progressToken": "sampling"}))).Seen(AtOnce),
}

// reportsOf returns what the client has reported of progress in a session.
func reportsOf(s *server.Session) chan any {
	return s.Value("reports", func() any { return make(chan any, 1000) }).(chan any)
}

// noting keeps the progress that the client reports.
var noting = Receiving(func(s *server.Session, m *wire.Message, next func()) {
	if m.Kind == wire.Notification && m.Method == Progressed {
		select {
		case reportsOf(s) <- m.Params:
		default:
		}
	}
	next()
})

// judgingProgress makes the sampling tool fail if the progress that the client
// reported during the call fits.
func judgingProgress(fits func(reports list) bool) apply {
	return WrappingTool("test_sampling", func(ctx context.Context, r *server.Request, next server.Handler) (any,
		*wire.Error) {
		reports := reportsOf(r.Session)
		for len(reports) > 0 {
			<-reports
		}
		result, problem := next(ctx, r)
		var seen list
		for len(reports) > 0 {
			seen = append(seen, <-reports)
		}
		if o, ok := result.(object); ok && o["isError"] != true && fits(seen) {
			return object{"content": TextOf("The progress cannot be used"), "isError": true}, nil
		}
		return result, problem
	})
}

// fractional fits reports of which one has a member with a fraction.
func fractional(member string) func(reports list) bool {
	return func(reports list) bool {
		return slices.ContainsFunc(reports, func(r any) bool {
			n, ok := wire.At(r, member).(json.Number)
			return ok && strings.Contains(string(n), ".")
		})
	}
}
