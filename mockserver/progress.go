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
var ofForeignToken = []string{
	ids.ProgressValueIncreases, ids.ProgressStop, ids.ProgressInProgress, ids.ProgressTokenEcho,
}

// basic/utilities/progress
var progressFaults = []Fault{
	{ID: "progress.token-as-string", Requirement: ids.ProgressTokenEcho,
		Summary:    "The progress token comes back as a string.",
		Collateral: []string{ids.ProgressValueIncreases, ids.ProgressStop, ids.ProgressInProgress},
		Apply: Params(Progressed, func(params object) {
			if token, ok := params["progressToken"].(json.Number); ok {
				params["progressToken"] = string(token)
			}
		})},
	{ID: "progress.token-small-letters", Requirement: ids.ProgressTokenActiveRequest, Form: ByValue,
		Summary: "The progress token comes back in small letters.", Collateral: ofForeignToken,
		Apply: tokens(strings.ToLower)},
	{ID: "progress.token-trimmed", Requirement: ids.ProgressTokenActiveRequest, Form: ByValue,
		Summary: "The progress token comes back without the blanks around it.", Collateral: ofForeignToken,
		Apply: tokens(strings.TrimSpace)},
	{ID: "progress.token-decoded", Requirement: ids.ProgressTokenActiveRequest, Form: ByValue,
		Summary: "The progress token comes back with its percent-encoding decoded.", Collateral: ofForeignToken,
		Apply: tokens(func(token string) string {
			if decoded, err := url.PathUnescape(token); err == nil {
				return decoded
			}
			return token
		})},
	{ID: "progress.not-growing", Requirement: ids.ProgressValueIncreases,
		Summary: "The progress value stays the same.", Apply: Params(Progressed, Having("progress", 1))},
	{ID: "progress.counts-down", Requirement: ids.ProgressValueIncreases, Summary: "The progress value falls.",
		Apply: Params(Progressed, func(params object) {
			if v, ok := params["progress"].(float64); ok {
				params["progress"] = 100 - v
			}
		})},
	{ID: "progress.unasked", Requirement: ids.ProgressTokenActiveRequest,
		Summary: "Progress is reported with a token of the server's own.",
		Apply: Sending(server.OnResponse("tools/call", func(out *server.Outgoing) []*server.Outgoing {
			early := out.Answers.Notification(Progressed, object{"progressToken": "own", "progress": 1})
			return []*server.Outgoing{early, out}
		}))},
	{ID: "progress.after-response", Requirement: ids.ProgressStop, Form: InSequence,
		Summary:    "Progress goes on after the response.",
		Collateral: []string{ids.ProgressInProgress, ids.ProgressTokenActiveRequest},
		Apply: Sending(server.OnResponse("tools/call", func(out *server.Outgoing) []*server.Outgoing {
			token, ok := out.Answers.Token()
			if !ok {
				return []*server.Outgoing{out}
			}
			late := out.Answers.Notification(Progressed, object{"progressToken": token, "progress": 999})
			return []*server.Outgoing{out, late}
		}))},
	{ID: "progress.flood", Requirement: ids.ProgressRateLimit,
		Summary: "Before the first response, progress is reported more than a thousand times.",
		Apply: Sending(server.OnResponse("tools/call", func(out *server.Outgoing) []*server.Outgoing {
			var all []*server.Outgoing
			if token, ok := out.Answers.Token(); ok && Once(out.Session, "progress.flood") {
				for i := range Flood {
					all = append(all, out.Answers.Notification(Progressed,
						object{"progressToken": token, "progress": 1000 + i}))
				}
			}
			return append(all, out)
		}))},
	{ID: "progress.message-empty", Requirement: ids.ProgressMessageReadable,
		Summary: "The message of progress is three dots.", Apply: Params(Progressed, Having("message", "..."))},
	{ID: "progress.after-refusal", Requirement: ids.ProgressInProgress,
		Summary:    "After a call was refused, progress reports it as complete.",
		Collateral: []string{ids.ProgressStop, ids.ProgressTokenActiveRequest},
		Apply: Sending(server.OnResponse("tools/call", func(out *server.Outgoing) []*server.Outgoing {
			token, ok := out.Answers.Token()
			if !ok || out.RPCError() == nil {
				return []*server.Outgoing{out}
			}
			late := out.Answers.Notification(Progressed, object{"progressToken": token, "progress": 1, "total": 1})
			return []*server.Outgoing{out, late}
		}))},
	{ID: "progress.on-another-stream", Requirement: ids.ProgressStop, Transports: OverHTTP,
		Summary:    "Progress comes on the listening stream seconds after the response.",
		Collateral: []string{ids.ProgressInProgress, ids.ProgressTokenActiveRequest, ids.ProgressValueIncreases},
		Apply: Responses("tools/call", func(out *server.Outgoing) {
			if token, ok := out.Answers.Token(); ok {
				s, late := out.Session, object{"jsonrpc": "2.0", "method": Progressed,
					"params": object{"progressToken": token, "progress": 999}}
				time.AfterFunc(2*time.Second, func() { s.Send(&server.Outgoing{Session: s, Message: late}) })
			}
		})},
	{ID: "progress.token-refused-completing", Requirement: ids.ProgressRequest,
		Summary: "A completion/complete with a progress token is refused.",
		Apply: Refusing("completion/complete", server.InvalidParams, func(r *server.Request) bool {
			_, ok := r.Token()
			return ok
		})},
	{ID: "progress.token-refused", Requirement: ids.ProgressRequest,
		Summary: "Requests with a progress token are refused.", Collateral: []string{ids.ProgressTokenAnyMeans},
		Apply: Refusing("ping", server.InvalidParams, func(r *server.Request) bool {
			_, ok := r.Token()
			return ok
		})},
	{ID: "progress.empty-token-refused", Requirement: ids.ProgressTokenAnyMeans, Form: ByValue,
		Summary: "A progress token that is the empty string is refused.",
		Apply: Refusing("*", server.InvalidParams, func(r *server.Request) bool {
			token, ok := r.Token()
			return ok && token == ""
		})},
	{ID: "progress.value-string", Requirement: ids.SchemaProgressNotification,
		Summary: `The progress value is a text such as "50%".`,
		Apply:   Params(Progressed, Having("progress", "50%"))},
	{ID: "progress.token-missing", Requirement: ids.SchemaProgressNotification,
		Summary:    "Progress notifications have no token.",
		Collateral: []string{ids.ProgressTokenActiveRequest, ids.ProgressTokenType},
		Apply:      Params(Progressed, Lacking("progressToken"))},
	{ID: "progress.token-object", Requirement: ids.ProgressTokenType, Summary: "The progress token is an object.",
		Collateral: []string{ids.ProgressTokenActiveRequest},
		Apply: Params(Progressed, func(params object) {
			params["progressToken"] = object{"token": params["progressToken"]}
		})},
	{ID: "progress.of-client-needed", Requirement: ids.ProgressNone,
		Summary: "A sampling request that the client answers without reporting progress makes the tool fail.",
		Apply:   All(noting, judgingProgress(func(reports list) bool { return len(reports) == 0 }))},
	{ID: "progress.of-client-fails", Requirement: ids.ProgressNotify,
		Summary: "Any progress of the client makes the tool fail.",
		Collateral: []string{ids.ProgressValueFloat, ids.ProgressTotalFloat, ids.ProgressOmitTotal,
			ids.ProgressFrequency},
		Apply: All(noting, judgingProgress(func(reports list) bool { return len(reports) > 0 }))},
	{ID: "progress.of-client-fraction", Requirement: ids.ProgressValueFloat,
		Summary: "A progress value of the client that is a fraction makes the tool fail.",
		Apply:   All(noting, judgingProgress(fractional("progress")))},
	{ID: "progress.of-client-total-fraction", Requirement: ids.ProgressTotalFloat,
		Summary: "A total of the client that is a fraction makes the tool fail.",
		Apply:   All(noting, judgingProgress(fractional("total")))},
	{ID: "progress.of-client-no-total", Requirement: ids.ProgressOmitTotal,
		Summary: "Progress of the client without a total makes the tool fail.",
		Apply: All(noting, judgingProgress(func(reports list) bool {
			return slices.ContainsFunc(reports, func(r any) bool { return wire.At(r, "total") == nil })
		}))},
	{ID: "progress.of-client-often", Requirement: ids.ProgressFrequency,
		Summary: "More than ten progress notifications of the client make the tool fail.",
		Apply:   All(noting, judgingProgress(func(reports list) bool { return len(reports) > 10 }))},
	{ID: "progress.token-shared", Requirement: ids.ProgressTokenUnique, Form: AtOnce,
		Summary: "All sampling requests have the same progress token.",
		Apply:   Params("sampling/createMessage", Having("_meta", object{"progressToken": "sampling"}))},
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
