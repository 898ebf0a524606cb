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
	{ID: "ping.takes-a-moment", Summary: "The answer to a ping takes 40 ms.", Why: "Promptly is not at once.",
		Source: at("basic/utilities/ping#behavior-requirements"), Changes: "time",
		Apply: delayed(40*time.Millisecond, func(r *server.Request) bool { return r.Method == "ping" })},
	{ID: "ping.by-the-server", Summary: "The server pings every ten seconds.",
		Why:    "Implementations SHOULD periodically issue pings.",
		Source: at("basic/utilities/ping#implementation-considerations"),
		Apply:  Periodically(10*time.Second, 50, pings)},
	{ID: "ping.right-after-initialized", Summary: "A ping of the server follows initialized.",
		Why: "Either side can ping.", Source: at("basic/utilities/ping#overview"), Apply: Ready(pings)},
	{ID: "ping.before-lists", Summary: "The server pings once before the first list, read or get of a session.",
		Why: "Either side can ping, at any time.", Source: at("basic/utilities/ping#overview"),
		Apply: onLists(func(method, _ string) apply {
			return OnRequest(method, func(r *server.Request) {
				if Once(r.Session, "ping") {
					r.Detach()
					pings(r.Session)
				}
			})
		})},
	{ID: "ping.before-each",
		Summary: "Before it serves a request after the handshake, ping among them, the server pings and waits " +
			"for the answer.",
		Why: "Either side can ping, at any time.", Source: at("basic/utilities/ping#overview"), Changes: "time",
		Apply: OnRequest("*", func(r *server.Request) {
			if r.Session.Initialized() {
				r.Detach()
				pings(r.Session)
			}
		})},
	{ID: "ping.with-params", Summary: "The pings of the server have params with a progress token.",
		Why: "The params of any request may have _meta.", Source: at("schema#pingrequest"),
		Apply: Ready(func(s *server.Session) {
			_, _ = s.Call(s.Context(), "ping", object{"_meta": object{"progressToken": "ping"}})
		})},
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
	{ID: "progress.silent", Summary: "No progress is ever reported.", Why: "Receivers MAY choose not to send any.",
		Source: at("basic/utilities/progress#behavior-requirements"),
		Untried: []string{"progress.*", ids.SchemaProgressNotification, ids.CancellationStopProcessing,
			"http.server.*"},
		Apply: Dropping(Progressed)},
	{ID: "progress.once", Summary: "Progress is reported once in a session.",
		Why:     "Notifications come at whatever frequency is deemed appropriate.",
		Source:  at("basic/utilities/progress#behavior-requirements"),
		Untried: []string{"progress.*", "http.server.*"}, Apply: FirstOnly(Progressed)},
	{ID: "progress.limited",
		Summary: "At most two progress notifications of a session are sent in a second, and the others are dropped.",
		Why: "Both parties SHOULD limit the rate, and notifications come at whatever frequency is deemed " +
			"appropriate.",
		Source:  at("basic/utilities/progress#implementation-notes"),
		Untried: []string{"progress.*", "http.server.*"}, Apply: limiting(Progressed, 2, time.Second)},
	{ID: "progress.no-total", Summary: "Progress has neither total nor message.", Why: "Both are optional.",
		Source: at("basic/utilities/progress#progress-flow"), Untried: []string{ids.ProgressMessageReadable},
		Apply: Params(Progressed, func(p object) { delete(p, "total"); delete(p, "message") })},
	{ID: "progress.fractions", Summary: "Progress and total are fractions: 0.1 of 1.0, 0.25 of 1.0 and so on.",
		Why: "Both MAY be floating point.", Source: at("basic/utilities/progress#progress-flow"),
		Changes: "progress",
		Apply: reporting(object{"progress": 0.1, "total": 1.0}, object{"progress": 0.25, "total": 1.0},
			object{"progress": 0.999, "total": 1.0})},
	{ID: "progress.tiny-steps", Summary: "Progress grows by steps of 1e-12.",
		Why: "The value MUST increase, by any amount.", Source: at("basic/utilities/progress#progress-flow"),
		Changes: "progress",
		Apply:   reporting(object{"progress": 1e-12}, object{"progress": 2e-12}, object{"progress": 3e-12})},
	{ID: "progress.huge", Summary: "Progress takes the values 1e15, 1e200 and 1e308.",
		Why: "The value is any number.", Source: at("schema#progressnotification"), Changes: "progress",
		Apply: reporting(object{"progress": 1e15}, object{"progress": 1e200},
			object{"progress": 1e308, "total": math.MaxFloat64})},
	{ID: "progress.total-changes", Summary: "The total changes from report to report, and is left out in one.",
		Why: "The total is known as far as it is known.", Source: at("basic/utilities/progress#progress-flow"),
		Changes: "progress",
		Apply: reporting(object{"progress": 1, "total": 10}, object{"progress": 2}, object{"progress": 3, "total": 5},
			object{"progress": 4, "total": 50})},
	{ID: "progress.beyond-total", Summary: "Progress goes beyond the total that was estimated.",
		Why: "Only the progress has to increase.", Source: at("basic/utilities/progress#progress-flow"),
		Changes: "progress",
		Apply:   reporting(object{"progress": 90, "total": 100}, object{"progress": 110, "total": 100})},
	{ID: "progress.stops-short", Summary: "Progress never reaches its total.", Why: "Nothing demands a last report.",
		Source: at("basic/utilities/progress#behavior-requirements"), Changes: "progress",
		Apply: reporting(object{"progress": 1, "total": 100},
			object{"progress": 2, "total": 100, "message": "Two of a hundred, ça va? 进度"})},
	{ID: "progress.many", Summary: "One call reports progress 300 times.",
		Why:    "Notifications come at whatever frequency is deemed appropriate.",
		Source: at("basic/utilities/progress#behavior-requirements"), Changes: "progress",
		Apply: reporting(slices.Collect(func(yield func(object) bool) {
			for i := range 300 {
				if !yield(object{"progress": i, "total": 300}) {
					return
				}
			}
		})...)},
	{ID: "progress.of-all-requests",
		Summary: "Every list, read, get and completion with a token reports its progress.",
		Why:     "A token can be part of any request.", Source: at("basic/utilities/progress#progress-flow"),
		Apply: OnRequest("*", func(r *server.Request) {
			if r.Method != "tools/call" && r.Method != "initialize" && r.Method != "ping" {
				r.Progress(0.5, 1, "half")
			}
		})},
	{ID: "progress.members", Summary: "Progress has members that nobody defines.",
		Why: "The params of notifications are open.", Source: at("basic/index#notifications"),
		Apply: Params(Progressed, Having("x-eta", 3))},
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
	{ID: "cancellation.at-once", Summary: "The server cancels a request of its own right after it has sent it.",
		Why:    "Either side can cancel what it has issued and believes to be in progress.",
		Source: at("basic/utilities/cancellation#behavior-requirements"),
		Apply:  givingUp(time.Nanosecond, nil, func(object) {})},
	{ID: "cancellation.no-reason", Summary: "The server's cancellations have no reason.",
		Why: "The reason is optional.", Source: at("basic/utilities/cancellation#cancellation-flow"),
		Apply: givingUp(time.Nanosecond, nil, Lacking("reason"))},
	{ID: "cancellation.reason-odd", Summary: "The reason of the server's cancellations has several lines and emojis.",
		Why: "The reason is any string.", Source: at("basic/utilities/cancellation#cancellation-flow"),
		Apply: givingUp(time.Nanosecond, object{"_meta": object{"progressToken": 0}},
			Having("reason", "trop tard\n\t⏱ "+strings.Repeat("…", 1000)))},
	{ID: "cancellation.done-too-soon", Summary: "The slow tool is not slow: its calls end before any cancellation.",
		Why:    "A cancellation may arrive after the processing has ended.",
		Source: at("basic/utilities/cancellation#timing-considerations"),
		Untried: []string{ids.HTTPServerDisconnectNotCancel, ids.HTTPServerMultipleStreams,
			ids.HTTPServerEventIDCursor, ids.CancellationStopProcessing, ids.CancellationNoResponse,
			ids.ToolsOutputSchemaStructuredPresent, ids.ToolsOutputSchemaConforms},
		Changes: "calls",
		Apply: OnCall("slow", func(r *server.Request) {
			arguments, _ := r.Params["arguments"].(object)
			if seconds, ok := arguments["seconds"].(json.Number); ok {
				if n, err := seconds.Float64(); err == nil && n > 0 && n <= 60 {
					arguments["seconds"] = json.Number("0")
				}
			}
		})},
	{ID: "cancellation.calls-in-parallel", Summary: "All calls of tools take 20 ms, so that many run at once.",
		Why: "Requests are served at the same time.", Source: at("basic/index#requests"), Changes: "calls",
		Apply: Wrapping("tools/call",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				if err := r.Sleep(ctx, 20*time.Millisecond); err != nil {
					return object{"content": list{textBlock("cancelled")}, "isError": true}, nil
				}
				return next(ctx, r)
			})},
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
	{ID: "completion.empty", Summary: "There is never anything to suggest.",
		Why:    "The values are any number up to 100.",
		Source: at("server/utilities/completion#completion-results"), Changes: "completions",
		Apply: completing(func(_ *server.Request, c object) {
			c["values"], c["total"], c["hasMore"] = list{}, 0, false
		})},
	{ID: "completion.values-alone", Summary: "Completions have neither total nor hasMore.", Why: "Both are optional.",
		Source:  at("schema#completeresult"),
		Untried: []string{ids.CompletionResultTotalMeaning, ids.CompletionResultHasMoreMeaning},
		Changes: "completions",
		Apply:   completing(func(_ *server.Request, c object) { delete(c, "total"); delete(c, "hasMore") })},
	{ID: "completion.total-alone", Summary: "Completions have a total, but not hasMore.", Why: "Both are optional.",
		Source: at("schema#completeresult"), Untried: []string{ids.CompletionResultHasMoreMeaning},
		Changes: "completions", Apply: completing(func(_ *server.Request, c object) { delete(c, "hasMore") })},
	{ID: "completion.more-alone", Summary: "Completions have hasMore, but not a total.", Why: "Both are optional.",
		Source:  at("schema#completeresult"),
		Untried: []string{ids.CompletionResultTotalMeaning, ids.CompletionResultHasMoreMeaning},
		Changes: "completions", Apply: completing(func(_ *server.Request, c object) { delete(c, "total") })},
	{ID: "completion.first-of-many", Summary: "One value of a thousand is suggested, and there are more.",
		Why:    "The server chooses how many values it returns, up to 100.",
		Source: at("server/utilities/completion#completion-results"), Changes: "completions",
		Apply: completing(func(_ *server.Request, c object) {
			c["values"], c["total"], c["hasMore"] = someValues(1), 1000, true
		})},
	{ID: "completion.hundred", Summary: "Exactly 100 values are suggested, and there are none beside.",
		Why: "The maximum is 100.", Source: at("server/utilities/completion#completion-results"),
		Changes: "completions",
		Apply: completing(func(_ *server.Request, c object) {
			c["values"], c["total"], c["hasMore"] = someValues(100), 100, false
		})},
	{ID: "completion.fuzzy",
		Summary: "Values are suggested for arguments of prompts that do not begin with what was typed.",
		Why:     "Fuzzy matching is recommended.",
		Source:  at("server/utilities/completion#implementation-considerations"), Changes: "completions",
		Apply: completing(func(r *server.Request, c object) {
			if wire.At(r.Params, "ref", "type") != "ref/prompt" {
				return
			}
			c["values"], c["total"], c["hasMore"] = list{"Zürich", "", "a b", "😀",
				strings.Repeat("long", 500)}, 5, false
		})},
	{ID: "completion.context-ignored", Summary: "The arguments that are resolved already play no part.",
		Why:    "The context is there for the server to use.",
		Source: at("server/utilities/completion#requesting-completions"),
		Apply: Wrapping("completion/complete",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				if _, ok := r.Params["context"].(object); ok {
					about := r.Params["context"]
					r.Params["context"] = object{}
					result, problem := next(ctx, r)
					r.Params["context"] = about
					return result, problem
				}
				return next(ctx, r)
			})},
	{ID: "completion.withheld",
		Summary: "The values for the variables of templates are not for everybody: completing them is refused " +
			"with -32001.",
		Why:    "Implementations MUST control access to sensitive suggestions.",
		Source: at("server/utilities/completion#security"), Changes: "completions",
		Apply: Refusing("completion/complete", -32001,
			func(r *server.Request) bool { return wire.At(r.Params, "ref", "type") == "ref/resource" })},
	{ID: "completion.out-of-order",
		Summary: "All completions of what exists are refused with -32603, as if a service were out of order.",
		Why:     "Internal errors are a common failure case.",
		Source:  at("server/utilities/completion#error-handling"),
		Untried: []string{"completion.*", "base.*", "meta.*", "progress.*", "schema.*"}, Changes: "completions",
		Apply: Wrapping("completion/complete",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				if _, problem := next(ctx, r); problem != nil {
					return nil, problem
				}
				return nil, &wire.Error{Code: -32603, Message: "The index is not available"}
			})},
	{ID: "completion.members", Summary: "Completions have members that nobody defines.",
		Why: "Results MAY follow any JSON object structure.", Source: at("basic/index#responses"),
		Apply: completing(func(_ *server.Request, c object) { c["x-took"] = 0.1 })},
}

// logging replaces the data of all log messages.
func logging(data any) apply { return Params("notifications/message", Having("data", data)) }

// server/utilities/logging
var loggingOddities = []Oddity{
	{ID: "logging.silent", Summary: "No log message is ever sent.", Why: "Nothing obliges a server to log.",
		Source:  at("server/utilities/logging#capabilities"),
		Untried: []string{"logging.*", ids.SchemaLoggingMessageNotification},
		Apply:   Dropping("notifications/message")},
	{ID: "logging.no-logger", Summary: "Log messages do not name a logger.", Why: "The name is optional.",
		Source: at("schema#loggingmessagenotification"), Untried: []string{ids.LoggingServerConsistentLoggers},
		Changes: "log messages", Apply: Params("notifications/message", Lacking("logger"))},
	{ID: "logging.loggers-many",
		Summary: "Each log message names another logger of one family: tools, tools.1, Tools.2, and so on.",
		Why:     "The server chooses the meaning of a name, as long as it keeps to it.",
		Source:  at("server/utilities/logging#implementation-considerations"),
		Untried: []string{ids.LoggingServerConsistentLoggers}, Changes: "log messages",
		Apply: Params("notifications/message", func(p object) {
			p["logger"] = "tools." + strconv.Itoa(len(fmt.Sprint(p["data"]))) + "." + fmt.Sprint(p["level"])
		})},
	{ID: "logging.logger-odd", Summary: "The logger is an empty string, or one with spaces, dots and an emoji.",
		Why: "The name is any string.", Source: at("schema#loggingmessagenotification"), Changes: "log messages",
		Apply: Messages("notifications/message", func(out *server.Outgoing) {
			out.Params()["logger"] = []string{"", "a.b.c / 日志 🪵"}[Count(out.Session, "logger")%2]
		})},
	{ID: "logging.data-number", Summary: "The data of log messages is a number.", Why: "The data is arbitrary.",
		Source: at("schema#loggingmessagenotification"), Changes: "log messages", Apply: logging(-0.5)},
	{ID: "logging.data-null", Summary: "The data of log messages is null.", Why: "The data is arbitrary.",
		Source: at("schema#loggingmessagenotification"), Changes: "log messages", Apply: logging(nil)},
	{ID: "logging.data-list", Summary: "The data of log messages is a list.", Why: "The data is arbitrary.",
		Source: at("schema#loggingmessagenotification"), Changes: "log messages",
		Apply: logging(list{1, list{}, object{"a": nil}, "x"})},
	{ID: "logging.data-empty", Summary: "The data of log messages is the empty string.",
		Why: "The data is arbitrary.", Source: at("schema#loggingmessagenotification"), Changes: "log messages",
		Apply: logging("")},
	{ID: "logging.data-lines", Summary: "The data of log messages has several lines and 20,000 characters.",
		Why: "The data is arbitrary.", Source: at("schema#loggingmessagenotification"), Changes: "log messages",
		Apply: func(o *server.Options) { logging(strings.Repeat("a line\r\n\tand another\n", 1000))(o) }},
	{ID: "logging.now-and-then", Summary: "A log message that belongs to no request comes every second.",
		Why:    "Servers send log messages when something happens.",
		Source: at("server/utilities/logging#log-message-notifications"),
		Apply: Periodically(time.Second, 100, func(s *server.Session) {
			s.Notify("notifications/message", object{"level": "emergency", "logger": "clock", "data": "tick"})
		})},
	{ID: "logging.debug-by-default", Summary: "Until a level is set, messages of all levels are sent.",
		Why: "Without logging/setLevel the server decides what to send.", Source: at("schema#setlevelrequest"),
		Apply: OnRequest("initialize", func(r *server.Request) { r.Session.SetLevel("debug") })},
	{ID: "logging.none-by-default", Summary: "Until a level is set, only emergencies are sent.",
		Why: "Without logging/setLevel the server decides what to send.", Source: at("schema#setlevelrequest"),
		Apply: OnRequest("initialize", func(r *server.Request) { r.Session.SetLevel("emergency") })},
	{ID: "logging.rate-limited",
		Summary: "At most four log messages of a session are sent in a second, and the others are dropped.",
		Why:     "Servers SHOULD rate limit log messages.",
		Source:  at("server/utilities/logging#implementation-considerations"), Changes: "log level",
		Apply: limiting("notifications/message", 4, time.Second)},
	{ID: "logging.rate-limited-low",
		Summary: "At most eight log messages of a session are sent in a minute, and the others are dropped.",
		Why:     "Servers SHOULD rate limit log messages, and the text names no rate.",
		Source:  at("server/utilities/logging#implementation-considerations"),
		Untried: []string{"logging.filter.*", ids.LoggingSetLevelReplaces}, Changes: "log level",
		Apply: limiting("notifications/message", 8, time.Minute)},
	{ID: "logging.set-level-undeclared",
		Summary: "logging/setLevel is served, but logging is not declared, and nothing is logged.",
		Why:     "Servers that emit log messages have to declare logging; no sentence has others refuse the request.",
		Source:  at("server/utilities/logging#capabilities"),
		Untried: []string{"logging.*", ids.SchemaSetLevelResult, ids.SchemaLoggingMessageNotification},
		Changes: "capabilities", Apply: All(Undeclared("logging"), Dropping("notifications/message"))},
	{ID: "logging.level-absent", Summary: "logging/setLevel without a level is served.",
		Why:    "JSON-RPC 2.0, section 4.2, lets the absence of a name go without an error.",
		Source: at("basic/index#messages"),
		Apply: Answering("logging/setLevel", object{},
			func(r *server.Request) bool { return r.Params["level"] == nil })},
	{ID: "logging.set-level-fails", Summary: "logging/setLevel is refused with -32603, as a configuration error.",
		Why: "The text names this error.", Source: at("server/utilities/logging#error-handling"),
		Untried: []string{ids.LoggingSetLevelAllLevels, ids.LoggingSetLevelReplaces, ids.LoggingFilterNoneBelow,
			ids.SchemaSetLevelResult, ids.LoggingFilterAllAbove},
		Changes: "log level",
		Apply: Refusing("logging/setLevel", server.InternalError, func(r *server.Request) bool {
			return slices.Contains(LogLevels, Member(r.Params, "level"))
		})},
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
	{ID: "pagination.one-item", Summary: "Each page has one item.", Why: "The server determines the page size.",
		Source: at("server/utilities/pagination#pagination-model"), Changes: "pages", Apply: paged(1)},
	{ID: "pagination.one-page", Summary: "Each list is one page.", Why: "nextCursor is optional.",
		Source:  at("server/utilities/pagination#response-format"),
		Untried: []string{ids.PaginationServerStableCursors, ids.PaginationCursorResultsAfter},
		Changes: "pages", Apply: paged(1000)},
	{ID: "pagination.empty-first-page", Summary: "The first page of each list is empty, and names a next one.",
		Why:    "A missing nextCursor ends a list, not an empty page.",
		Source: at("server/utilities/pagination#implementation-guidelines"), Changes: "pages",
		Apply: emptyPages("first")},
	{ID: "pagination.empty-middle-pages", Summary: "Every other page is empty, and names a next one.",
		Why:    "A missing nextCursor ends a list, not an empty page.",
		Source: at("server/utilities/pagination#implementation-guidelines"), Changes: "pages",
		Apply: emptyPages("middle")},
	{ID: "pagination.empty-last-page", Summary: "The last page of each list is empty.",
		Why: "nextCursor says that there may be more, not that there is.", Source: at("schema#listtoolsresult"),
		Changes: "pages", Apply: emptyPages("last")},
	{ID: "pagination.cursor-empty", Summary: "The cursor of the second and last page is the empty string.",
		Why: opaque, Source: at("server/utilities/pagination#pagination-model"), Changes: "pages",
		Apply: All(halved, cursors(func(int) string { return "" }))},
	{ID: "pagination.cursor-long", Summary: "Cursors have 10,000 characters.", Why: opaque,
		Source: at("server/utilities/pagination#pagination-model"), Changes: "pages",
		Apply: cursors(func(n int) string { return strings.Repeat("c", 10_000) + fmt.Sprint(n) })},
	{ID: "pagination.cursor-odd", Summary: "Cursors have spaces at both ends, quotes, newlines, U+0000 and emojis.",
		Why: opaque, Source: at("server/utilities/pagination#pagination-model"), Changes: "pages",
		Apply: cursors(func(n int) string { return fmt.Sprintf(" \"c\\%d\"\n\x00\u2028😀 ", n) })},
	{ID: "pagination.cursor-numbers", Summary: "Cursors are digits: 0, 1, 2.", Why: opaque,
		Source: at("server/utilities/pagination#pagination-model"), Changes: "pages",
		Apply: cursors(func(n int) string { return fmt.Sprint(n - 1) })},
	{ID: "pagination.cursor-json", Summary: "Cursors are JSON texts, null and a URL by turns.", Why: opaque,
		Source: at("server/utilities/pagination#pagination-model"), Changes: "pages",
		Apply: cursors(func(n int) string {
			return []string{fmt.Sprintf(`{"page":%d}`, n), strings.Repeat("null", n),
				fmt.Sprintf("https://example.com/?page=%d&x=%%20", n)}[n%3]
		})},
	{ID: "pagination.cursor-fresh", Summary: "The same page names its successor by another cursor each time.",
		Why: opaque, Source: at("server/utilities/pagination#pagination-model"), Changes: "pages",
		Apply: cursors(func(n int) string {
			return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "position %d", n))
		})},
	{ID: "pagination.by-capability",
		Summary: "Each list leaves out items for clients without sampling, roots or elicitation, and cursors " +
			"are offsets.",
		Why: "A server decides which items it offers to whom, and a cursor may be the same text " +
			"in another session.",
		Source: at("server/utilities/pagination#pagination-model"), Changes: "pages",
		Apply: byOffset(toTheCapable)},
	{ID: "pagination.by-tenant",
		Summary: "Each session has a tool, a prompt and a resource with a name of its own, and cursors are offsets.",
		Why:     "A server decides which items it offers to whom.",
		Source:  at("server/utilities/pagination#pagination-model"), Changes: "pages", Apply: forTenants()},
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

// halved serves each list in two pages.
func halved(o *server.Options) { o.PageSize = 12 }
