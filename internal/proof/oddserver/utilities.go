package oddserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// basic/utilities/ping
var pingOddities = []Oddity{
	odd("ping.takes-a-moment", "The answer to a ping takes 40 ms.", "Promptly is not at once.",
		"basic/utilities/ping#behavior-requirements",
		delayed(40*time.Millisecond, func(r *server.Request) bool { return r.Method == "ping" })).Replaces("time"),
	odd("ping.by-the-server", "The server pings every ten seconds.", "Implementations SHOULD periodically issue pings.",
		"basic/utilities/ping#implementation-considerations", Periodically(10*time.Second, 50, pings)),
	odd("ping.right-after-initialized", "A ping of the server follows initialized.", "Either side can ping.",
		"basic/utilities/ping#overview", Ready(pings)),
	odd("ping.before-lists", "The server pings once before the first list, read or get of a session.",
		"Either side can ping, at any time.", "basic/utilities/ping#overview", onLists(func(method, _ string) apply {
			return OnRequest(method, func(r *server.Request) {
				if Once(r.Session, "ping") {
					r.Detach()
					pings(r.Session)
				}
			})
		})),
	odd("ping.before-each",
		"Before it serves a request after the handshake, ping among them, the server pings and waits for the answer.",
		"Either side can ping, at any time.", "basic/utilities/ping#overview", OnRequest("*", func(r *server.Request) {
			if r.Session.Initialized() {
				r.Detach()
				pings(r.Session)
			}
		})).Replaces("time"),
	odd("ping.with-params", "The pings of the server have params with a progress token.",
		"The params of any request may have _meta.", "schema#pingrequest", Ready(func(s *server.Session) {
			_, _ = s.Call(s.Context(), "ping", object{"_meta": object{"progressToken": "ping"}})
		})),
}

// reporting sends progress of its own for a call of the tool test_tool_with_progress.
func reporting(reports ...object) apply {
	return WrappingTool("test_tool_with_progress",
		func(_ context.Context, r *server.Request, _ server.Handler) (any, *wire.Error) {
			if token, ok := r.Token(); ok {
				for _, report := range reports {
					report = Copied(report)
					report["progressToken"] = token
					r.Notify(Progressed, report)
				}
			}
			return object{"content": list{textBlock("done")}}, nil
		})
}

// basic/utilities/progress
var progressOddities = []Oddity{
	odd("progress.silent", "No progress is ever reported.", "Receivers MAY choose not to send any.",
		"basic/utilities/progress#behavior-requirements", Dropping(Progressed)).
		Open("progress.*", ids.SchemaProgressNotification, ids.CancellationStopProcessing, "http.server.*"),
	odd("progress.once", "Progress is reported once in a session.",
		"Notifications come at whatever frequency is deemed appropriate.",
		"basic/utilities/progress#behavior-requirements", FirstOnly(Progressed)).Open("progress.*", "http.server.*"),
	odd("progress.limited",
		"At most two progress notifications of a session are sent in a second, and the others are dropped.",
		"Both parties SHOULD limit the rate, and notifications come at whatever frequency is deemed appropriate.",
		"basic/utilities/progress#implementation-notes", limiting(Progressed, 2, time.Second)).
		Open("progress.*", "http.server.*"),
	odd("progress.no-total", "Progress has neither total nor message.", "Both are optional.",
		"basic/utilities/progress#progress-flow",
		Params(Progressed, func(p object) { delete(p, "total"); delete(p, "message") })).
		Open(ids.ProgressMessageReadable),
	odd("progress.fractions", "Progress and total are fractions: 0.1 of 1.0, 0.25 of 1.0 and so on.",
		"Both MAY be floating point.", "basic/utilities/progress#progress-flow",
		reporting(object{"progress": 0.1, "total": 1.0}, object{"progress": 0.25, "total": 1.0},
			object{"progress": 0.999, "total": 1.0})).Replaces("progress"),
	odd("progress.tiny-steps", "Progress grows by steps of 1e-12.", "The value MUST increase, by any amount.",
		"basic/utilities/progress#progress-flow",
		reporting(object{"progress": 1e-12}, object{"progress": 2e-12}, object{"progress": 3e-12})).
		Replaces("progress"),
	odd("progress.huge", "Progress takes the values 1e15, 1e200 and 1e308.", "The value is any number.",
		"schema#progressnotification", reporting(object{"progress": 1e15}, object{"progress": 1e200},
			object{"progress": 1e308, "total": math.MaxFloat64})).Replaces("progress"),
	odd("progress.total-changes", "The total changes from report to report, and is left out in one.",
		"The total is known as far as it is known.", "basic/utilities/progress#progress-flow",
		reporting(object{"progress": 1, "total": 10}, object{"progress": 2}, object{"progress": 3, "total": 5},
			object{"progress": 4, "total": 50})).Replaces("progress"),
	odd("progress.beyond-total", "Progress goes beyond the total that was estimated.",
		"Only the progress has to increase.", "basic/utilities/progress#progress-flow",
		reporting(object{"progress": 90, "total": 100}, object{"progress": 110, "total": 100})).Replaces("progress"),
	odd("progress.stops-short", "Progress never reaches its total.", "Nothing demands a last report.",
		"basic/utilities/progress#behavior-requirements", reporting(object{"progress": 1, "total": 100},
			object{"progress": 2, "total": 100, "message": "Two of a hundred, ça va? 进度"})).Replaces("progress"),
	odd("progress.many", "One call reports progress 300 times.",
		"Notifications come at whatever frequency is deemed appropriate.",
		"basic/utilities/progress#behavior-requirements", reporting(slices.Collect(func(yield func(object) bool) {
			for i := range 300 {
				if !yield(object{"progress": i, "total": 300}) {
					return
				}
			}
		})...)).Replaces("progress"),
	odd("progress.of-all-requests", "Every list, read, get and completion with a token reports its progress.",
		"A token can be part of any request.", "basic/utilities/progress#progress-flow",
		OnRequest("*", func(r *server.Request) {
			if r.Method != "tools/call" && r.Method != "initialize" && r.Method != "ping" {
				r.Progress(0.5, 1, "half")
			}
		})),
	odd("progress.members", "Progress has members that nobody defines.", "The params of notifications are open.",
		"basic/index#notifications", Params(Progressed, Having("x-eta", 3))),
}

// givingUp sends a request to the client and cancels it after a time.
func givingUp(after time.Duration, params object, change func(params object)) apply {
	return All(
		Messages(Cancelled, func(out *server.Outgoing) { change(out.Params()) }),
		Ready(func(s *server.Session) {
			ctx, stop := context.WithTimeout(s.Context(), after)
			defer stop()
			if s.ClientHas("roots") {
				_, _ = s.Call(ctx, "roots/list", params)
			}
		}),
	)
}

// basic/utilities/cancellation
var cancellationOddities = []Oddity{
	odd("cancellation.at-once", "The server cancels a request of its own right after it has sent it.",
		"Either side can cancel what it has issued and believes to be in progress.",
		"basic/utilities/cancellation#behavior-requirements", givingUp(time.Nanosecond, nil, func(object) {})),
	odd("cancellation.no-reason", "The server's cancellations have no reason.", "The reason is optional.",
		"basic/utilities/cancellation#cancellation-flow", givingUp(time.Nanosecond, nil, Lacking("reason"))),
	odd("cancellation.reason-odd", "The reason of the server's cancellations has several lines and emojis.",
		"The reason is any string.", "basic/utilities/cancellation#cancellation-flow",
		givingUp(time.Nanosecond, object{"_meta": object{"progressToken": 0}},
			Having("reason", "trop tard\n\t⏱ "+strings.Repeat("…", 1000)))),
	odd("cancellation.done-too-soon", "The slow tool is not slow: its calls end before any cancellation.",
		"A cancellation may arrive after the processing has ended.",
		"basic/utilities/cancellation#timing-considerations", OnCall("slow", func(r *server.Request) {
			arguments, _ := r.Params["arguments"].(object)
			if seconds, ok := arguments["seconds"].(json.Number); ok {
				if n, err := seconds.Float64(); err == nil && n > 0 && n <= 60 {
					arguments["seconds"] = json.Number("0")
				}
			}
		})).
		Open(ids.HTTPServerDisconnectNotCancel, ids.HTTPServerMultipleStreams, ids.HTTPServerEventIDCursor,
			ids.CancellationStopProcessing, ids.CancellationNoResponse, ids.ToolsOutputSchemaStructuredPresent,
			ids.ToolsOutputSchemaConforms).Replaces("calls"),
	odd("cancellation.calls-in-parallel", "All calls of tools take 20 ms, so that many run at once.",
		"Requests are served at the same time.", "basic/index#requests", Wrapping("tools/call",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				if err := r.Sleep(ctx, 20*time.Millisecond); err != nil {
					return object{"content": list{textBlock("cancelled")}, "isError": true}, nil
				}
				return next(ctx, r)
			})).Replaces("calls"),
}

// completing changes what completion/complete returns.
func completing(change func(r *server.Request, completion object)) apply {
	return Wrapping("completion/complete", server.Edit(func(r *server.Request, result map[string]any) {
		change(r, result["completion"].(object))
	}))
}

// someValues are n values.
func someValues(n int) list {
	var values list
	for i := range n {
		values = append(values, fmt.Sprintf("value-%03d", i))
	}
	return values
}

// server/utilities/completion
var completionOddities = []Oddity{
	odd("completion.empty", "There is never anything to suggest.", "The values are any number up to 100.",
		"server/utilities/completion#completion-results", completing(func(_ *server.Request, c object) {
			c["values"], c["total"], c["hasMore"] = list{}, 0, false
		})).Replaces("completions"),
	odd("completion.values-alone", "Completions have neither total nor hasMore.", "Both are optional.",
		"schema#completeresult",
		completing(func(_ *server.Request, c object) { delete(c, "total"); delete(c, "hasMore") })).
		Open(ids.CompletionResultTotalMeaning, ids.CompletionResultHasMoreMeaning).Replaces("completions"),
	odd("completion.total-alone", "Completions have a total, but not hasMore.", "Both are optional.",
		"schema#completeresult", completing(func(_ *server.Request, c object) { delete(c, "hasMore") })).
		Open(ids.CompletionResultHasMoreMeaning).Replaces("completions"),
	odd("completion.more-alone", "Completions have hasMore, but not a total.", "Both are optional.",
		"schema#completeresult", completing(func(_ *server.Request, c object) { delete(c, "total") })).
		Open(ids.CompletionResultTotalMeaning, ids.CompletionResultHasMoreMeaning).Replaces("completions"),
	odd("completion.first-of-many", "One value of a thousand is suggested, and there are more.",
		"The server chooses how many values it returns, up to 100.", "server/utilities/completion#completion-results",
		completing(func(_ *server.Request, c object) {
			c["values"], c["total"], c["hasMore"] = someValues(1), 1000, true
		})).Replaces("completions"),
	odd("completion.hundred", "Exactly 100 values are suggested, and there are none beside.", "The maximum is 100.",
		"server/utilities/completion#completion-results", completing(func(_ *server.Request, c object) {
			c["values"], c["total"], c["hasMore"] = someValues(100), 100, false
		})).Replaces("completions"),
	odd("completion.fuzzy", "Values are suggested for arguments of prompts that do not begin with what was typed.",
		"Fuzzy matching is recommended.", "server/utilities/completion#implementation-considerations",
		completing(func(r *server.Request, c object) {
			if wire.At(r.Params, "ref", "type") != "ref/prompt" {
				return
			}
			c["values"], c["total"], c["hasMore"] = list{"Zürich", "", "a b", "😀",
				strings.Repeat("long", 500)}, 5, false
		})).Replaces("completions"),
	odd("completion.context-ignored", "The arguments that are resolved already play no part.",
		"The context is there for the server to use.", "server/utilities/completion#requesting-completions",
		Wrapping("completion/complete",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				if _, ok := r.Params["context"].(object); ok {
					about := r.Params["context"]
					r.Params["context"] = object{}
					result, problem := next(ctx, r)
					r.Params["context"] = about
					return result, problem
				}
				return next(ctx, r)
			})),
	odd("completion.withheld",
		"The values for the variables of templates are not for everybody: completing them is refused with -32001.",
		"Implementations MUST control access to sensitive suggestions.", "server/utilities/completion#security",
		Refusing("completion/complete", -32001,
			func(r *server.Request) bool { return wire.At(r.Params, "ref", "type") == "ref/resource" })).
		Replaces("completions"),
	odd("completion.out-of-order",
		"All completions of what exists are refused with -32603, as if a service were out of order.",
		"Internal errors are a common failure case.", "server/utilities/completion#error-handling",
		Wrapping("completion/complete",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				if _, problem := next(ctx, r); problem != nil {
					return nil, problem
				}
				return nil, &wire.Error{Code: -32603, Message: "The index is not available"}
			})).Open("completion.*", "base.*", "meta.*", "progress.*", "schema.*").Replaces("completions"),
	odd("completion.members", "Completions have members that nobody defines.",
		"Results MAY follow any JSON object structure.", "basic/index#responses",
		completing(func(_ *server.Request, c object) { c["x-took"] = 0.1 })),
}

// logging replaces the data of all log messages.
func logging(data any) apply { return Params("notifications/message", Having("data", data)) }

// server/utilities/logging
var loggingOddities = []Oddity{
	odd("logging.silent", "No log message is ever sent.", "Nothing obliges a server to log.",
		"server/utilities/logging#capabilities", Dropping("notifications/message")).
		Open("logging.*", ids.SchemaLoggingMessageNotification),
	odd("logging.no-logger", "Log messages do not name a logger.", "The name is optional.",
		"schema#loggingmessagenotification", Params("notifications/message", Lacking("logger"))).
		Open(ids.LoggingServerConsistentLoggers).Replaces("log messages"),
	odd("logging.loggers-many",
		"Each log message names another logger of one family: tools, tools.1, Tools.2, and so on.",
		"The server chooses the meaning of a name, as long as it keeps to it.",
		"server/utilities/logging#implementation-considerations", Params("notifications/message", func(p object) {
			p["logger"] = "tools." + strconv.Itoa(len(fmt.Sprint(p["data"]))) + "." + fmt.Sprint(p["level"])
		})).Open(ids.LoggingServerConsistentLoggers).Replaces("log messages"),
	odd("logging.logger-odd", "The logger is an empty string, or one with spaces, dots and an emoji.",
		"The name is any string.", "schema#loggingmessagenotification",
		Messages("notifications/message", func(out *server.Outgoing) {
			out.Params()["logger"] = []string{"", "a.b.c / 日志 🪵"}[Count(out.Session, "logger")%2]
		})).Replaces("log messages"),
	odd("logging.data-number", "The data of log messages is a number.", "The data is arbitrary.",
		"schema#loggingmessagenotification", logging(-0.5)).Replaces("log messages"),
	odd("logging.data-null", "The data of log messages is null.", "The data is arbitrary.",
		"schema#loggingmessagenotification", logging(nil)).Replaces("log messages"),
	odd("logging.data-list", "The data of log messages is a list.", "The data is arbitrary.",
		"schema#loggingmessagenotification", logging(list{1, list{}, object{"a": nil}, "x"})).Replaces("log messages"),
	odd("logging.data-empty", "The data of log messages is the empty string.", "The data is arbitrary.",
		"schema#loggingmessagenotification", logging("")).Replaces("log messages"),
	odd("logging.data-lines", "The data of log messages has several lines and 20,000 characters.",
		"The data is arbitrary.", "schema#loggingmessagenotification",
		func(o *server.Options) { logging(strings.Repeat("a line\r\n\tand another\n", 1000))(o) }).
		Replaces("log messages"),
	odd("logging.now-and-then", "A log message that belongs to no request comes every second.",
		"Servers send log messages when something happens.", "server/utilities/logging#log-message-notifications",
		Periodically(time.Second, 100, func(s *server.Session) {
			s.Notify("notifications/message", object{"level": "emergency", "logger": "clock", "data": "tick"})
		})),
	odd("logging.debug-by-default", "Until a level is set, messages of all levels are sent.",
		"Without logging/setLevel the server decides what to send.", "schema#setlevelrequest",
		OnRequest("initialize", func(r *server.Request) { r.Session.SetLevel("debug") })),
	odd("logging.none-by-default", "Until a level is set, only emergencies are sent.",
		"Without logging/setLevel the server decides what to send.", "schema#setlevelrequest",
		OnRequest("initialize", func(r *server.Request) { r.Session.SetLevel("emergency") })),
	odd("logging.rate-limited",
		"At most four log messages of a session are sent in a second, and the others are dropped.",
		"Servers SHOULD rate limit log messages.", "server/utilities/logging#implementation-considerations",
		limiting("notifications/message", 4, time.Second)).Replaces("log level"),
	odd("logging.rate-limited-low",
		"At most eight log messages of a session are sent in a minute, and the others are dropped.",
		"Servers SHOULD rate limit log messages, and the text names no rate.",
		"server/utilities/logging#implementation-considerations", limiting("notifications/message", 8, time.Minute)).
		Open("logging.filter.*", ids.LoggingSetLevelReplaces).Replaces("log level"),
	odd("logging.at-random", "A third of the log messages is sent, in no order.",
		"Nothing obliges a server to log, nor to log the same at each call.",
		"server/utilities/logging#log-message-notifications", Sending(server.OnMessage("notifications/message",
			func(out *server.Outgoing) []*server.Outgoing {
				n := uint32(Count(out.Session, "logged at random")+1) * 2654435761 // Knuth's multiplicative hash
				if n>>16%3 > 0 {
					return nil
				}
				return []*server.Outgoing{out}
			}))).Open("logging.*", ids.SchemaLoggingMessageNotification).Replaces("log level"),
	odd("logging.set-level-undeclared",
		"logging/setLevel is served, but logging is not declared, and nothing is logged.",
		"Servers that emit log messages have to declare logging; no sentence has others refuse the request.",
		"server/utilities/logging#capabilities", All(Undeclared("logging"), Dropping("notifications/message"))).
		Open("logging.*", ids.SchemaSetLevelResult, ids.SchemaLoggingMessageNotification).Replaces("capabilities"),
	odd("logging.level-absent", "logging/setLevel without a level is served.",
		"JSON-RPC 2.0, section 4.2, lets the absence of a name go without an error.", "basic/index#messages",
		Answering("logging/setLevel", object{}, func(r *server.Request) bool { return r.Params["level"] == nil })),
	odd("logging.set-level-fails", "logging/setLevel is refused with -32603, as a configuration error.",
		"The text names this error.", "server/utilities/logging#error-handling",
		Refusing("logging/setLevel", server.InternalError,
			func(r *server.Request) bool { return slices.Contains(LogLevels, Member(r.Params, "level")) })).
		Open(ids.LoggingSetLevelAllLevels, ids.LoggingSetLevelReplaces, ids.LoggingFilterNoneBelow,
			ids.SchemaSetLevelResult, ids.LoggingFilterAllAbove).Replaces("log level"),
}

// cursors spells cursors in another way. spell returns the n-th cursor of a session.
func cursors(spell func(n int) string) apply {
	return onLists(func(method, _ string) apply {
		return Wrapping(method, func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			known := Kept[sync.Map](r.Session, "cursors")
			if cursor, ok := r.Params["cursor"].(string); ok {
				own, given := known.Load(method + " " + cursor)
				if !given {
					own = "unknown"
				}
				r.Params["cursor"] = own
				defer func() { r.Params["cursor"] = cursor }()
			}
			result, problem := next(ctx, r)
			if o, ok := result.(object); ok {
				if own, more := o["nextCursor"]; more {
					cursor := spell(Count(r.Session, "cursor"))
					known.Store(method+" "+cursor, own)
					o["nextCursor"] = cursor
				}
			}
			return result, problem
		})
	})
}

// emptyPages puts pages without items first, between the others, or last.
func emptyPages(where string) apply {
	const after, end = "after-empty:", "the-end"
	return onLists(func(method, member string) apply {
		return Wrapping(method, func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			value, given := r.Params["cursor"]
			cursor, _ := value.(string)
			own, resumed := strings.CutPrefix(cursor, after)
			if given {
				defer func() { r.Params["cursor"] = value }()
			}
			switch {
			case where == "first" && !given:
				return object{member: list{}, "nextCursor": after}, nil
			case where == "last" && cursor == end:
				return object{member: list{}}, nil
			case resumed && own == "":
				delete(r.Params, "cursor")
			case resumed:
				r.Params["cursor"] = own
			case where == "middle" && given:
				if _, problem := next(ctx, r); problem != nil {
					return nil, problem
				}
				return object{member: list{}, "nextCursor": after + cursor}, nil
			}
			result, problem := next(ctx, r)
			if o, ok := result.(object); ok && where == "last" && o["nextCursor"] == nil {
				o["nextCursor"] = end
			}
			return result, problem
		})
	})
}

func paged(size int) apply { return func(o *server.Options) { o.PageSize = size } }

const opaque = "A cursor is an opaque string."

// server/utilities/pagination
var paginationOddities = []Oddity{
	odd("pagination.one-item", "Each page has one item.", "The server determines the page size.",
		"server/utilities/pagination#pagination-model", paged(1)).Replaces("pages"),
	odd("pagination.one-page", "Each list is one page.", "nextCursor is optional.",
		"server/utilities/pagination#response-format", paged(1000)).
		Open(ids.PaginationServerStableCursors, ids.PaginationCursorResultsAfter).Replaces("pages"),
	odd("pagination.empty-first-page", "The first page of each list is empty, and names a next one.",
		"A missing nextCursor ends a list, not an empty page.", "server/utilities/pagination#implementation-guidelines",
		emptyPages("first")).Replaces("pages"),
	odd("pagination.empty-middle-pages", "Every other page is empty, and names a next one.",
		"A missing nextCursor ends a list, not an empty page.", "server/utilities/pagination#implementation-guidelines",
		emptyPages("middle")).Replaces("pages"),
	odd("pagination.empty-last-page", "The last page of each list is empty.",
		"nextCursor says that there may be more, not that there is.", "schema#listtoolsresult", emptyPages("last")).
		Replaces("pages"),
	odd("pagination.cursor-empty", "The cursor of the second and last page is the empty string.", opaque,
		"server/utilities/pagination#pagination-model", All(paged(12), cursors(func(int) string { return "" }))).
		Replaces("pages"),
	odd("pagination.cursor-long", "Cursors have 10,000 characters.", opaque,
		"server/utilities/pagination#pagination-model",
		cursors(func(n int) string { return strings.Repeat("c", 10_000) + fmt.Sprint(n) })).Replaces("pages"),
	odd("pagination.cursor-odd", "Cursors have spaces at both ends, quotes, newlines, U+0000 and emojis.", opaque,
		"server/utilities/pagination#pagination-model",
		cursors(func(n int) string { return fmt.Sprintf(" \"c\\%d\"\n\x00\u2028😀 ", n) })).Replaces("pages"),
	odd("pagination.cursor-numbers", "Cursors are digits: 0, 1, 2.", opaque,
		"server/utilities/pagination#pagination-model", cursors(func(n int) string { return fmt.Sprint(n - 1) })).
		Replaces("pages"),
	odd("pagination.cursor-json", "Cursors are JSON texts, null and a URL by turns.", opaque,
		"server/utilities/pagination#pagination-model", cursors(func(n int) string {
			return []string{fmt.Sprintf(`{"page":%d}`, n), strings.Repeat("null", n),
				fmt.Sprintf("https://example.com/?page=%d&x=%%20", n)}[n%3]
		})).Replaces("pages"),
	odd("pagination.cursor-fresh", "The same page names its successor by another cursor each time.", opaque,
		"server/utilities/pagination#pagination-model", cursors(func(n int) string {
			return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "position %d", n))
		})).Replaces("pages"),
	odd("pagination.by-capability",
		"Each list leaves out items for clients without sampling, roots or elicitation, and cursors are offsets.",
		"A server decides which items it offers to whom, and a cursor may be the same text in another session.",
		"server/utilities/pagination#pagination-model", byOffset(toTheCapable)).Replaces("pages"),
	odd("pagination.by-tenant",
		"Each session has a tool, a prompt and a resource with a name of its own, and cursors are offsets.",
		"A server decides which items it offers to whom.",
		"server/utilities/pagination#pagination-model", forTenants()).Replaces("pages"),
}

// byOffset serves the lists in pages of four items, with offsets as cursors. own makes from the items of a list those
// that a session is offered.
func byOffset(own func(s *server.Session, method string, items list) list) apply {
	const size = 4
	return All(paged(1000), onLists(func(method, member string) apply {
		return Wrapping(method, func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			from := 0
			if cursor, given := r.Params["cursor"]; given {
				n, err := strconv.Atoi(fmt.Sprint(cursor))
				if err != nil || n <= 0 {
					return nil, &wire.Error{Code: server.InvalidParams, Message: "Invalid cursor"}
				}
				from = n
				delete(r.Params, "cursor")
			}
			result, problem := next(ctx, r)
			o, ok := result.(object)
			if !ok {
				return result, problem
			}
			items := own(r.Session, method, o[member].(list))
			from = min(from, len(items))
			to := min(from+size, len(items))
			o[member] = items[from:to]
			if to < len(items) {
				o["nextCursor"] = strconv.Itoa(to)
			}
			return o, nil
		})
	}))
}

// toTheCapable leaves out the first item of a list for clients without sampling, the next for those without roots, and
// one more for those without elicitation.
func toTheCapable(s *server.Session, _ string, items list) list {
	var left list
	for i, item := range items {
		if needed := []string{"sampling", "roots", "elicitation"}; i >= len(needed) || s.ClientHas(needed[i]) {
			left = append(left, item)
		}
	}
	return left
}

// forTenants offers each session, as its own, the first tool, prompt and resource under a name of the session as well.
func forTenants() apply {
	var sessions atomic.Int64
	type tenantKey struct{}
	tenant := func(s *server.Session) string {
		return s.Value(tenantKey{}, func() any { return fmt.Sprintf("-of-tenant-%d", sessions.Add(1)) }).(string)
	}
	return All(
		Wrapping("*", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			asked, _ := r.Params["uri"].(string)
			ref, _ := r.Params["ref"].(object)
			for _, o := range []object{r.Params, ref} {
				for _, name := range []string{"name", "uri"} {
					if text, ok := o[name].(string); ok {
						o[name] = strings.TrimSuffix(text, tenant(r.Session))
					}
				}
			}
			result, problem := next(ctx, r)
			if o, ok := result.(object); ok && r.Method == "resources/read" &&
				strings.HasSuffix(asked, tenant(r.Session)) {
				for _, item := range o["contents"].(list) {
					item.(object)["uri"] = asked
				}
			}
			return result, problem
		}),
		byOffset(func(s *server.Session, method string, items list) list {
			if method == "resources/templates/list" || len(items) == 0 {
				return items
			}
			own := Copied(items[0].(object))
			for _, name := range []string{"name", "uri"} {
				if text, ok := own[name].(string); ok {
					own[name] = text + tenant(s)
				}
			}
			return append(list{own}, items...)
		}),
	)
}
