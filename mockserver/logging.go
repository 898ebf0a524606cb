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
	{ID: "logging.logger-spelled-twice", Requirement: ids.LoggingServerConsistentLoggers,
		Summary: "Every other log message spells the name of its logger with a capital.",
		Apply: Messages("notifications/message", func(out *server.Outgoing) {
			if name, ok := out.Params()["logger"].(string); ok && name != "" && Count(out.Session, "logged")%2 == 0 {
				out.Params()["logger"] = strings.ToUpper(name[:1]) + name[1:]
			}
		})},
	{ID: "logging.flood", Requirement: ids.LoggingRateLimit,
		Summary: "The first call of a tool logs more than a thousand messages.",
		Apply: Sending(server.OnResponse("tools/call", func(out *server.Outgoing) []*server.Outgoing {
			var all []*server.Outgoing
			if Once(out.Session, "logging.flood") {
				for range Flood {
					all = append(all, out.Answers.Notification("notifications/message",
						object{"level": "emergency", "data": "called"}))
				}
			}
			return append(all, out)
		}))},
	{ID: "logging.undeclared", Requirement: ids.LoggingCapabilityDeclared,
		Summary: "Log messages are sent, but logging is not declared.", Apply: Undeclared("logging")},
	{ID: "logging.notice-refused", Requirement: ids.LoggingSetLevelAllLevels,
		Summary: "The levels notice, alert and emergency are refused.",
		Apply:   Refusing("logging/setLevel", server.InvalidParams, setting("notice", "alert", "emergency"))},
	{ID: "logging.first-level-stays", Requirement: ids.LoggingSetLevelReplaces, Form: InSequence,
		Summary: "A level that is less severe than the one before has no effect.",
		Apply: Wrapping("logging/setLevel",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				name, _ := r.Params["level"].(string)
				level := slices.Index(LogLevels, name)
				most := Kept[int](r.Session, "level")
				if level < 0 || level >= *most {
					*most = max(level, *most)
					return next(ctx, r)
				}
				return object{}, nil
			})},
	{ID: "logging.level-ignored", Requirement: ids.LoggingFilterNoneBelow,
		Summary: "All messages are sent, whatever the level.",
		Apply: OnRequest("logging/setLevel", func(r *server.Request) {
			if slices.Contains(LogLevels, Member(r.Params, "level")) {
				r.Params["level"] = "debug"
			}
		})},
	{ID: "logging.levels-reversed", Requirement: ids.LoggingFilterNoneBelow,
		Summary:    "Messages that are more severe than the level are held back, not the others.",
		Collateral: []string{ids.LoggingFilterAllAbove, ids.LoggingSetLevelReplaces},
		Apply: OnRequest("logging/setLevel", func(r *server.Request) {
			if i := slices.Index(LogLevels, Member(r.Params, "level")); i >= 0 {
				r.Params["level"] = LogLevels[len(LogLevels)-1-i]
			}
		})},
	{ID: "logging.level-exclusive", Requirement: ids.LoggingFilterAllAbove,
		Summary: "Messages of the level itself are held back.",
		Apply:   holdingBack(func(set, level string) bool { return set == level && set != "debug" })},
	{ID: "logging.level-strict", Requirement: ids.LoggingFilterAllAbove,
		Summary: "Messages of the level itself are held back, unless there is none above it or below.",
		Apply: holdingBack(func(set, level string) bool {
			return set == level && set != "debug" && set != "emergency"
		})},
	{ID: "logging.alert-below-critical", Requirement: ids.LoggingFilterAllAbove,
		Summary: "With the level at critical, messages of level alert are held back.",
		Apply:   holdingBack(func(set, level string) bool { return set == "critical" && level == "alert" })},
	{ID: "logging.notice-as-info", Requirement: ids.LoggingFilterNoneBelow,
		Summary: "The level notice is taken for info.",
		Apply: OnRequest("logging/setLevel", func(r *server.Request) {
			if r.Params["level"] == "notice" {
				r.Params["level"] = "info"
			}
		})},
	{ID: "logging.slow-level-strict", Requirement: ids.LoggingFilterAllAbove,
		Summary: "A tool that logs takes a while, and messages of the level itself are held back in the middle " +
			"of the order.",
		Apply: All(
			slowing("log_levels", 700*time.Millisecond),
			holdingBack(func(set, level string) bool { return set == level && set == "warning" }),
		)},
	{ID: "logging.very-slow-level-strict", Requirement: ids.LoggingFilterAllAbove,
		Summary: "A tool that logs takes long, and messages of the level itself are held back in the middle " +
			"of the order.",
		Apply: All(
			slowing("log_levels", 1200*time.Millisecond),
			holdingBack(func(set, level string) bool {
				return set == level && slices.Contains([]string{"warning", "error"}, set)
			}),
		)},
	{ID: "logging.refused-level-resets", Requirement: ids.LoggingFilterNoneBelow, Form: InSequence,
		Summary: "A level that is refused puts the one in force back to info.",
		Apply: Wrapping("logging/setLevel",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				result, problem := next(ctx, r)
				if problem != nil {
					r.Params["level"] = "info"
					_, _ = next(ctx, r)
				}
				return result, problem
			})},
	{ID: "logging.debug-silences", Requirement: ids.LoggingFilterAllAbove,
		Summary: "With the level at debug no message is sent.",
		Apply:   holdingBack(func(set, _ string) bool { return set == "debug" })},
	{ID: "logging.invalid-level-code", Requirement: ids.LoggingErrorInvalidLevelCode,
		Summary: "An unknown level is refused with -32603.",
		Apply:   Refusing("logging/setLevel", server.InternalError, setting("mcpconform", ""))},
	{ID: "logging.invalid-level-accepted", Requirement: ids.LoggingErrorInvalidLevelCode,
		Summary: "An unknown level is accepted.",
		Apply:   Answering("logging/setLevel", object{}, setting("mcpconform", ""))},
	{ID: "logging.level-case-ignored", Requirement: ids.LoggingErrorInvalidLevelCode, Form: ByValue,
		Summary: "A level in capitals is accepted.",
		Apply:   Answering("logging/setLevel", object{}, setting("ERROR"))},
	{ID: "logging.level-abbreviated", Requirement: ids.LoggingErrorInvalidLevelCode, Form: ByValue,
		Summary: `The level "warn" is taken for warning.`,
		Apply:   Answering("logging/setLevel", object{}, setting("warn"))},
	{ID: "logging.warn", Requirement: ids.SchemaLoggingMessageNotification,
		Summary: `The level of log messages is "warn".`,
		Apply: Params("notifications/message", func(params object) {
			if params["level"] == "info" {
				params["level"] = "warn"
			}
		})},
	{ID: "logging.message-for-data", Requirement: ids.SchemaLoggingMessageNotification,
		Summary: "Log messages have message in place of data.",
		Apply: Params("notifications/message", func(params object) {
			params["message"] = params["data"]
			delete(params, "data")
		})},
	{ID: "logging.password", Requirement: ids.LoggingSecurityNoCredentials,
		Summary: "A log message holds a password, in the midst of its data.",
		Apply: Params("notifications/message", Having("data", object{
			"login": list{"admin", "password=mcpconform-reference-password;"},
		}))},
	{ID: "logging.personal-data", Requirement: ids.LoggingSecurityNoPersonalData,
		Summary: "A log message holds the address of a person.",
		Apply:   Params("notifications/message", Having("data", "mail sent to jane.roe@example.com"))},
	{ID: "logging.set-level-members", Requirement: ids.SchemaSetLevelResult, WarnOnly: true,
		Summary: "The result of logging/setLevel repeats the level.",
		Apply:   Results("logging/setLevel", Having("level", "info"))},
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
