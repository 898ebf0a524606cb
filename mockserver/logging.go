package mockserver

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// setting fits logging/setLevel with one of the levels.
func setting(levels ...string) func(r *server.Request) bool {
	return func(r *server.Request) bool {
		level, _ := r.Params["level"].(string)
		_, given := r.Params["level"].(string)
		return given && slices.Contains(levels, level)
	}
}

// server/utilities/logging
var loggingFaults = []Fault{
	fault("logging.logger-spelled-twice", ids.LoggingServerConsistentLoggers,
		"Every other log message spells the name of its logger with a capital.",
		Messages("notifications/message", func(out *server.Outgoing) {
			if name, ok := out.Params()["logger"].(string); ok && name != "" && Count(out.Session, "logged")%2 == 0 {
				out.Params()["logger"] = strings.ToUpper(name[:1]) + name[1:]
			}
		})),
	fault("logging.flood", ids.LoggingRateLimit, "The first call of a tool logs more than a thousand messages.",
		Sending(server.OnResponse("tools/call", func(out *server.Outgoing) []*server.Outgoing {
			var all []*server.Outgoing
			if Once(out.Session, "logging.flood") {
				for range Flood {
					all = append(all, out.Answers.Notification("notifications/message",
						object{"level": "emergency", "data": "called"}))
				}
			}
			return append(all, out)
		}))),
	fault("logging.undeclared", ids.LoggingCapabilityDeclared, "Log messages are sent, but logging is not declared.",
		Undeclared("logging")),
	fault("logging.notice-refused", ids.LoggingSetLevelAllLevels, "The levels notice, alert and emergency are refused.",
		Refusing("logging/setLevel", server.InvalidParams, setting("notice", "alert", "emergency"))),
	fault("logging.first-level-stays", ids.LoggingSetLevelReplaces,
		"A level that is less severe than the one before has no effect.", Wrapping("logging/setLevel",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				name, _ := r.Params["level"].(string)
				level := slices.Index(LogLevels, name)
				most := Kept[int](r.Session, "level")
				if level < 0 || level >= *most {
					*most = max(level, *most)
					return next(ctx, r)
				}
				return object{}, nil
			})).Seen(InSequence),
	fault("logging.level-ignored", ids.LoggingFilterNoneBelow, "All messages are sent, whatever the level.",
		OnRequest("logging/setLevel", func(r *server.Request) {
			if slices.Contains(LogLevels, Member(r.Params, "level")) {
				r.Params["level"] = "debug"
			}
		})),
	fault("logging.levels-reversed", ids.LoggingFilterNoneBelow,
		"Messages that are more severe than the level are held back, not the others.",
		OnRequest("logging/setLevel", func(r *server.Request) {
			if i := slices.Index(LogLevels, Member(r.Params, "level")); i >= 0 {
				r.Params["level"] = LogLevels[len(LogLevels)-1-i]
			}
		})).Also(ids.LoggingFilterAllAbove, ids.LoggingSetLevelReplaces),
	fault("logging.level-exclusive", ids.LoggingFilterAllAbove, "Messages of the level itself are held back.",
		holdingBack(func(set, level string) bool { return set == level && set != "debug" })),
	fault("logging.level-strict", ids.LoggingFilterAllAbove,
		"Messages of the level itself are held back, unless there is none above it or below.",
		holdingBack(func(set, level string) bool { return set == level && set != "debug" && set != "emergency" })),
	fault("logging.alert-below-critical", ids.LoggingFilterAllAbove,
		"With the level at critical, messages of level alert are held back.",
		holdingBack(func(set, level string) bool { return set == "critical" && level == "alert" })),
	fault("logging.notice-as-info", ids.LoggingFilterNoneBelow, "The level notice is taken for info.",
		OnRequest("logging/setLevel", func(r *server.Request) {
			if r.Params["level"] == "notice" {
				r.Params["level"] = "info"
			}
		})),
	fault("logging.slow-level-strict", ids.LoggingFilterAllAbove,
		"A tool that logs takes a while, and messages of the level itself are held back in the middle of the order.",
		All(slowing("log_levels", 700*time.Millisecond),
			holdingBack(func(set, level string) bool { return set == level && set == "warning" }))),
	fault("logging.very-slow-level-strict", ids.LoggingFilterAllAbove,
		"A tool that logs takes long, and messages of the level itself are held back in the middle of the order.", All(
			slowing("log_levels", 1200*time.Millisecond),
			holdingBack(func(set, level string) bool {
				return set == level && slices.Contains([]string{"warning", "error"}, set)
			}),
		)),
	fault("logging.refused-level-resets", ids.LoggingFilterNoneBelow,
		"A level that is refused puts the one in force back to info.", Wrapping("logging/setLevel",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				result, problem := next(ctx, r)
				if problem != nil {
					r.Params["level"] = "info"
					_, _ = next(ctx, r)
				}
				return result, problem
			})).Seen(InSequence),
	fault("logging.debug-silences", ids.LoggingFilterAllAbove, "With the level at debug no message is sent.",
		holdingBack(func(set, _ string) bool { return set == "debug" })),
	fault("logging.invalid-level-code", ids.LoggingErrorInvalidLevelCode, "An unknown level is refused with -32603.",
		Refusing("logging/setLevel", server.InternalError, setting("mcpconform", ""))),
	fault("logging.invalid-level-accepted", ids.LoggingErrorInvalidLevelCode, "An unknown level is accepted.",
		Answering("logging/setLevel", object{}, setting("mcpconform", ""))),
	fault("logging.level-case-ignored", ids.LoggingErrorInvalidLevelCode, "A level in capitals is accepted.",
		Answering("logging/setLevel", object{}, setting("ERROR"))).Seen(ByValue),
	fault("logging.level-abbreviated", ids.LoggingErrorInvalidLevelCode, `The level "warn" is taken for warning.`,
		Answering("logging/setLevel", object{}, setting("warn"))).Seen(ByValue),
	fault("logging.warn", ids.SchemaLoggingMessageNotification, `The level of log messages is "warn".`,
		Params("notifications/message", func(params object) {
			if params["level"] == "info" {
				params["level"] = "warn"
			}
		})),
	fault("logging.message-for-data", ids.SchemaLoggingMessageNotification,
		"Log messages have message in place of data.", Params("notifications/message", Renamed("data", "message"))),
	fault("logging.password", ids.LoggingSecurityNoCredentials,
		"A log message holds a password, in the midst of its data.", Params("notifications/message",
			Having("data", object{"login": list{"admin", "password=mcpconform-reference-password;"}}))),
	fault("logging.personal-data", ids.LoggingSecurityNoPersonalData, "A log message holds the address of a person.",
		Params("notifications/message", Having("data", "mail sent to jane.roe@example.com"))),
	fault("logging.set-level-members", ids.SchemaSetLevelResult, "The result of logging/setLevel repeats the level.",
		Results("logging/setLevel", Having("level", "info"))).Warns(),
}

// slowing makes a tool take its time before it does anything.
func slowing(tool string, delay time.Duration) apply {
	return WrappingTool(tool, func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		r.Detach()
		_ = r.Sleep(ctx, delay)
		return next(ctx, r)
	})
}

// holdingBack drops log messages by the level that was set last and their own.
func holdingBack(drop func(set, level string) bool) apply {
	return All(
		keepsLevel,
		Withholding("notifications/message", func(out *server.Outgoing) bool {
			set, _ := levelOf(out.Session).Load().(string)
			return drop(set, Member(out.Params(), "level"))
		}),
	)
}

// keepsLevel makes each session remember the level that was set last; see levelOf.
var keepsLevel = OnRequest("logging/setLevel", func(r *server.Request) {
	levelOf(r.Session).Store(Member(r.Params, "level"))
})

// levelOf returns where a session keeps the level that was set last.
func levelOf(s *server.Session) *atomic.Value {
	return Kept[atomic.Value](s, "set")
}
