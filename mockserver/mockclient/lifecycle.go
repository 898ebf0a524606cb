package mockclient

import (
	"context"
	"slices"
	"sync/atomic"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var lifecycleFaults = []Fault{
	{ID: "lifecycle.list-first", Requirement: ids.LifecycleInitFirst, Transports: OverStdio,
		Summary: "The first request is tools/list.",
		Apply:   Before(Calls("initialize"), `{"jsonrpc":"2.0","id":"early","method":"tools/list"}`)},
	{ID: "lifecycle.list-second", Requirement: ids.LifecycleInitFirst, Transports: OverStdio,
		Summary: "A ping and tools/list come before initialize.",
		Apply: Sending(Calls("initialize"), func(_ *wire.Message, out outgoing) []outgoing {
			return []outgoing{{Raw: []byte(`{"jsonrpc":"2.0","id":"first","method":"ping"}`)},
				{Raw: []byte(`{"jsonrpc":"2.0","id":"early","method":"tools/list"}`)}, out}
		})},
	{ID: "lifecycle.roots-change-early", Requirement: ids.LifecycleCapabilityClientEmitsRootsListChanged,
		Scenario: "lifecycle/slow-answer", Transports: OverStdio,
		Summary: "A change of the roots, which is not declared, is announced before initialize is answered.",
		Apply: All(Changing(func(o *client.Options) { o.Capabilities["roots"] = object{} }),
			Behind(Calls("initialize"), `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`),
			Dropping(Calls("notifications/roots/list_changed")))},
	{ID: "lifecycle.never-initializes", Requirement: ids.LifecycleInitClientInitiates,
		Summary: "A request comes before initialize.",
		Apply:   Before(Calls("initialize"), `{"jsonrpc":"2.0","id":"early","method":"tools/list"}`)},
	{ID: "lifecycle.no-version", Requirement: ids.LifecycleInitRequestVersion,
		Summary: "initialize names no version.", Apply: Params("initialize", Lacking("protocolVersion"))},
	{ID: "lifecycle.version-number", Requirement: ids.SchemaInitializeRequest,
		Summary: "The version in initialize is a number.",
		Apply:   Params("initialize", Having("protocolVersion", 20250618))},
	{ID: "lifecycle.older-asked", Requirement: ids.LifecycleVersionClientLatest, Scenario: "lifecycle/later-version",
		Summary: "The client asks for an older version than the latest that it supports.",
		Apply:   func(c *client.Standalone) { c.Versions = append(slices.Clip(c.Versions), schema.Published...) }},
	{ID: "lifecycle.no-capabilities", Requirement: ids.LifecycleInitRequestCapabilities,
		Summary: "initialize has no capabilities.", Apply: Params("initialize", Lacking("capabilities"))},
	{ID: "lifecycle.no-client-info", Requirement: ids.LifecycleInitRequestClientInfo,
		Summary: "initialize has no clientInfo.", Apply: Params("initialize", Lacking("clientInfo"))},
	{ID: "lifecycle.no-initialized", Requirement: ids.LifecycleInitInitializedSent,
		Summary: "notifications/initialized is never sent.",
		Apply:   Dropping(Calls("notifications/initialized"))},
	{ID: "lifecycle.initialized-early", Requirement: ids.LifecycleInitInitializedAfterResult, Transports: OverStdio,
		Summary: "notifications/initialized comes before initialize.",
		Apply:   Before(Calls("initialize"), `{"jsonrpc":"2.0","method":"notifications/initialized"}`)},
	{ID: "lifecycle.does-not-wait", Requirement: ids.LifecycleInitClientWaits, Transports: OverStdio,
		Summary: "A request follows initialize before that is answered.",
		Apply:   Behind(Calls("initialize"), `{"jsonrpc":"2.0","id":"early","method":"tools/list"}`)},
	{ID: "lifecycle.refusal-ignored", Requirement: ids.LifecycleInitInitializedAfterResult,
		Scenario: "lifecycle/refused",
		Summary:  "The client goes on although initialize was answered with an error.",
		Apply:    func(c *client.Standalone) { c.Omissions.Refusal = true }},
	{ID: "lifecycle.operation-before-initialized", Requirement: ids.LifecycleInitInitializedBeforeOperation,
		Transports: OverStdio,
		Summary:    "Over stdio, notifications/initialized is sent once a first request was answered.",
		Apply: AfterAnswer(Calls("notifications/initialized"),
			`{"jsonrpc":"2.0","id":"early","method":"tools/list"}`)},
	{ID: "lifecycle.initialized-after-operation", Requirement: ids.LifecycleInitInitializedBeforeOperation,
		Transports: OverHTTP, Summary: "notifications/initialized is sent once a first request was answered.",
		Apply: AfterAnswer(Calls("notifications/initialized"),
			`{"jsonrpc":"2.0","id":"early","method":"tools/list"}`)},
	{ID: "lifecycle.initialized-after-operation-older", Requirement: ids.LifecycleInitInitializedBeforeOperation,
		Transports: overSSE,
		Summary:    "Over HTTP+SSE, notifications/initialized is sent once a first request was answered.",
		Apply: AfterAnswer(Calls("notifications/initialized"),
			`{"jsonrpc":"2.0","id":"early","method":"tools/list"}`)},
	{ID: "lifecycle.made-up-version", Requirement: ids.LifecycleVersionClientSupported,
		Scenario: "lifecycle/additions",
		Summary:  "initialize names a version that the client does not support itself.",
		Apply:    Params("initialize", Having("protocolVersion", "1.0"))},
	{ID: "lifecycle.invented-version", Requirement: ids.LifecycleVersionClientSupported,
		Summary: "initialize names a version that was never published.",
		Apply:   Params("initialize", Having("protocolVersion", "2025-01-07"))},
	{ID: "lifecycle.version-misspelled", Requirement: ids.LifecycleVersionRevisionName,
		Summary:    "initialize names the version 2025-6-18.",
		Collateral: []string{ids.LifecycleVersionClientSupported},
		Apply:      Params("initialize", Having("protocolVersion", "2025-6-18"))},
	{ID: "lifecycle.leaves-good-version", Requirement: ids.LifecycleVersionClientSupported,
		Summary:    "The client leaves although the server has accepted its version.",
		Collateral: []string{ids.LifecycleInitInstructionsOptional}, Apply: DyingOf(`"serverInfo"`)},
	{ID: "lifecycle.any-version", Requirement: ids.LifecycleVersionDisconnect, Scenario: "lifecycle/no-version",
		Summary: "The client goes on with a version that does not exist.",
		Apply:   func(c *client.Standalone) { c.Omissions.Version = true }},
	{ID: "lifecycle.any-version-initialized", Requirement: ids.LifecycleVersionDisconnect,
		Scenario: "lifecycle/no-version",
		Summary:  "The client accepts a version that does not exist, sends notifications/initialized and leaves.",
		Apply: All(func(c *client.Standalone) { c.Omissions.Version = true },
			Wrapping(func(conn transport.Conn) transport.Conn {
				return &DyingConn{Conn: conn, At: func(*wire.Event) bool {
					return slices.ContainsFunc(conn.Log().Events(), func(e *wire.Event) bool {
						return e.Kind == wire.KindMessage && e.From == wire.Client &&
							e.Msg.Method == "notifications/initialized"
					}) && heard(conn, `"1.0.0"`)
				}}
			}))},
	{ID: "lifecycle.initialized-at-once", Requirement: ids.LifecycleInitInitializedAfterResult,
		Scenario: "lifecycle/slow-answer", Transports: OverStdio,
		Summary: "notifications/initialized follows initialize before that is answered.",
		Apply:   announcingAtOnce},
	{ID: "lifecycle.initialized-at-once-http", Requirement: ids.LifecycleInitInitializedAfterResult,
		Scenario: "lifecycle/slow-answer", Transports: OverHTTP,
		Summary: "Over HTTP, notifications/initialized follows initialize before that is answered.",
		Apply:   announcingAtOnce},
	{ID: "lifecycle.version-hangs", Requirement: ids.LifecycleVersionDisconnect, Scenario: "lifecycle/newer-version",
		Summary: "The client neither goes on nor leaves when it does not know the version.",
		Apply: Closing(func(ctx context.Context, conn transport.Conn) error {
			if heard(conn, "2031-01-01") {
				<-ctx.Done()
			}
			return conn.Close(ctx)
		})},
	{ID: "lifecycle.mismatch-hangs", Requirement: ids.LifecycleErrorVersionMismatch,
		Scenario: "lifecycle/older-version", Summary: "The client hangs when the server has an older version.",
		Apply: Closing(func(ctx context.Context, conn transport.Conn) error {
			if heard(conn, `"2024-11-05"`) {
				<-ctx.Done()
			}
			return conn.Close(ctx)
		})},
	{ID: "lifecycle.instructions-required", Requirement: ids.LifecycleInitInstructionsOptional,
		Scenario: "lifecycle/additions", Summary: "Instructions in the result of initialize end the client.",
		Collateral: []string{ids.BaseMessageUTF8Accepted, ids.LifecycleCapabilityServerAdditional,
			ids.LifecycleCapabilityServerExperimental},
		Apply: DyingOf(`"instructions":"Gr`)},
	{ID: "lifecycle.early-ping-death", Requirement: ids.LifecycleInitServerEarlyPing,
		Scenario: "lifecycle/early-ping", Summary: "A ping before the answer to initialize ends the client.",
		Collateral: []string{ids.LifecycleInitServerEarlyLogging}, Apply: DyingOf(`"early-ping"`)},
	{ID: "ping.early-refused", Requirement: ids.PingResponsePrompt, Scenario: "lifecycle/early-ping",
		Summary: "A ping before the answer to initialize is answered with an error.",
		Apply:   Refusing(Replies("early-ping"))},
	{ID: "ping.early-unanswered", Requirement: ids.PingResponsePrompt, Form: mockserver.InSequence,
		Scenario: "lifecycle/early-ping", Summary: "A ping before the answer to initialize is never answered.",
		Collateral: []string{ids.BaseResponsePresent}, Apply: Dropping(Replies("early-ping"))},
	{ID: "lifecycle.earlier-version", Requirement: ids.LifecycleVersionDisconnect, Form: mockserver.ByValue,
		Scenario: "lifecycle/no-version",
		Summary:  "The client goes on with any version that sorts before its own.",
		Apply:    func(c *client.Standalone) { c.Omissions.Version = true }},
	{ID: "lifecycle.early-log-death", Requirement: ids.LifecycleInitServerEarlyLogging,
		Scenario:   "lifecycle/early-ping",
		Summary:    "A log message before the answer to initialize ends the client.",
		Collateral: []string{ids.LifecycleInitServerEarlyPing}, Apply: DyingOf("not initialized yet")},
	{ID: "lifecycle.experimental-death", Requirement: ids.LifecycleCapabilityServerExperimental,
		Scenario: "lifecycle/additions", Summary: "An experimental capability of the server ends the client.",
		Collateral: []string{ids.BaseMessageUTF8Accepted, ids.LifecycleCapabilityServerAdditional,
			ids.LifecycleInitInstructionsOptional},
		Apply: DyingOf("com.example/unknown")},
	{ID: "lifecycle.additional-death", Requirement: ids.LifecycleCapabilityServerAdditional,
		Scenario: "lifecycle/additions", Summary: "A capability that is not known ends the client.",
		Collateral: []string{ids.BaseMessageUTF8Accepted, ids.LifecycleCapabilityServerExperimental,
			ids.LifecycleInitInstructionsOptional},
		Apply: DyingOf("com.example.capability")},
	{ID: "lifecycle.utf8-death", Requirement: ids.BaseMessageUTF8Accepted, Scenario: "lifecycle/additions",
		Summary: "Letters beyond ASCII end the client.",
		Collateral: []string{ids.BaseResponsePresent, ids.MetaAttachRequest, ids.LifecycleCapabilityServerAdditional,
			ids.LifecycleCapabilityServerExperimental, ids.LifecycleInitInstructionsOptional},
		Apply: DyingOf("你好")},
	{ID: "lifecycle.shutdown-request", Requirement: ids.LifecycleShutdownByTransport,
		Summary: "The client sends a request to shut the session down.", Apply: Calling("shutdown", nil)},
	{ID: "lifecycle.later-feature", Requirement: ids.LifecycleOperationVersion,
		Summary: "The client sends a request that only a later version has.", Apply: Calling("tasks/list", nil)},
	undeclared("tools", "tools/list", nil),
	undeclared("prompts", "prompts/list", nil),
	undeclared("resources", "resources/list", nil),
	undeclared("logging", "logging/setLevel", object{"level": "info"}),
	undeclared("completions", "completion/complete", object{
		"ref": object{"type": "ref/prompt", "name": "greeting"}, "argument": object{"name": "name", "value": ""},
	}),
	{ID: "lifecycle.uses-subscriptions", Requirement: ids.LifecycleCapabilityClientUsesResourceSubscriptions,
		Scenario: "capabilities/only-resources",
		Summary:  "resources/subscribe is sent although the server does not declare it.",
		Apply:    Calling("resources/subscribe", object{"uri": "test://static-text"})},
	{ID: "lifecycle.uses-denied-subscriptions",
		Requirement: ids.LifecycleCapabilityClientUsesResourceSubscriptions, Form: mockserver.ByValue,
		Scenario: "capabilities/only-resources",
		Summary:  "resources/subscribe is sent where the member subscribe is there, although it is false.",
		Apply: Doing(func(ctx context.Context, s *client.Session) {
			if wire.At(s.Init.Result(), "capabilities", "resources", "subscribe") != nil {
				_, _ = s.Call(ctx, "resources/subscribe", object{"uri": "test://static-text"})
			}
		})},
	{ID: "lifecycle.roots-changes-undeclared", Requirement: ids.LifecycleCapabilityClientEmitsRootsListChanged,
		Summary: "Changed roots are announced although roots.listChanged is not declared.",
		Apply:   Changing(func(o *client.Options) { o.Capabilities["roots"] = object{} })},
	{ID: "lifecycle.roots-changes-undeclared-again",
		Requirement: ids.LifecycleCapabilityClientEmitsRootsListChanged, Form: mockserver.BySession,
		Scenario: LostSession, Transports: OverHTTP,
		Summary: "Changed roots are announced in a second session, in which nothing is declared.",
		Apply:   DeclaringOnce},
	{ID: "lifecycle.nothing-without-capabilities", Requirement: ids.BaseSupportOtherComponents,
		Scenario: "capabilities/none", Summary: "The client ends when the server has no capability.",
		Collateral: []string{ids.LifecycleErrorMissingCapability}, Apply: DyingOf(`"capabilities":{}`)},
	{ID: "lifecycle.missing-capability-hangs", Requirement: ids.LifecycleErrorMissingCapability,
		Scenario: "capabilities/none", Summary: "The client hangs when the server has no capability.",
		Collateral: []string{ids.BaseSupportOtherComponents},
		Apply: Closing(func(ctx context.Context, conn transport.Conn) error {
			if heard(conn, `"capabilities":{}`) {
				<-ctx.Done()
			}
			return conn.Close(ctx)
		})},
}

// late reports whether an event is the answer to a request that was cancelled before.
func late(log *wire.Log, e *wire.Event) bool {
	return e.Kind == wire.KindMessage && e.Msg.IsResponse() &&
		slices.ContainsFunc(log.Events(), func(c *wire.Event) bool {
			return c.Kind == wire.KindMessage && c.Msg.Method == "notifications/cancelled" && c.Seq < e.Seq &&
				wire.ReadID(wire.At(c.Msg.Params, "requestId")).Key() == e.Msg.ID.Key()
		})
}

func undeclared(capability, method string, params any) Fault {
	declared := map[string]string{"tools": "prompts", "prompts": "tools", "resources": "tools", "logging": "features",
		"completions": "resources"}
	return Fault{
		ID: "lifecycle.uses-" + capability, Requirement: "lifecycle.capability.client-uses-" + capability,
		Scenario: "capabilities/only-" + declared[capability],
		Summary:  method + " is sent although the server does not declare it.",
		Apply:    Calling(method, params),
	}
}

// heard reports whether the server has sent a message that holds a text.
func heard(conn transport.Conn, text string) bool {
	for _, e := range conn.Log().Events() {
		if e.Kind == wire.KindMessage && e.From == wire.Server && ContainsText(e, text) {
			return true
		}
	}
	return false
}

var utilityFaults = []Fault{
	{ID: "ping.refused", Requirement: ids.PingResponsePrompt, Scenario: Requests,
		Summary: "A ping is refused with an error.", Collateral: []string{ids.PingEitherSide},
		Apply: Refusing(Results)},
	{ID: "ping.refused-later", Requirement: ids.PingResponsePrompt, Scenario: Requests,
		Summary: "Pings are refused once requests of unknown methods have come.",
		Apply:   Refusing(Replies("last-ping"))},
	{ID: "ping.behind-own", Requirement: ids.PingResponsePrompt, Scenario: Requests,
		Summary: "A ping is answered only when the client's own request has been.",
		Apply:   HeldBack(Replies("a word", "last-ping"))},
	{ID: "cancellation.death", Requirement: ids.CancellationEitherSide, Scenario: RootsSeen,
		Summary:    "A cancellation by the server ends the client.",
		Collateral: append([]string{ids.BaseResponsePresent, ids.CancellationRace}, fenced["after-cancelled"]...),
		Apply:      DyingOf("notifications/cancelled")},
	{ID: "cancellation.pings-refused", Requirement: ids.CancellationRace, Scenario: RootsSeen,
		Summary: "Pings are refused once requests were cancelled.",
		Apply:   Refusing(Replies("after-cancelling"))},
	{ID: "ping.one-way", Requirement: ids.PingEitherSide, Scenario: Requests,
		Summary:    "A ping of the server is refused: only clients may send them.",
		Collateral: []string{ids.PingResponsePrompt}, Apply: Refusing(Results)},
	{ID: "ping.result-filled", Requirement: ids.PingResponseEmpty, Scenario: Requests,
		Summary: "The result of a ping holds something.",
		Apply:   Editing(Replies("last-ping"), Having("result", object{"ok": true}))},
	{ID: "ping.params", Requirement: ids.PingNoParams, Summary: "A ping has parameters.",
		Apply: Calling("ping", object{"time": 1})},
	{ID: "ping.flood", Requirement: ids.PingNotExcessive, Transports: OverStdio,
		Summary: "The client pings more than a thousand times in a row.",
		Apply: Doing(func(ctx context.Context, s *client.Session) {
			for range Flood {
				_, _ = s.Call(ctx, "ping", nil)
			}
		})},
	{ID: "completion.flood", Requirement: ids.CompletionClientDebounce, Transports: OverStdio,
		Summary: "The client requests the same completion more than a thousand times in a row.",
		Apply: Doing(func(ctx context.Context, s *client.Session) {
			for range Flood {
				_, _ = s.Call(ctx, "completion/complete", object{
					"ref":      object{"type": "ref/prompt", "name": "greeting"},
					"argument": object{"name": "name", "value": ""},
				})
			}
		})},
	{ID: "ping.one-at-a-time", Requirement: ids.ArchitectureClientRouting, Scenario: Requests,
		Summary: "Requests of the server stay unanswered.",
		Collateral: []string{ids.BaseResponsePresent, ids.HTTPClientMessagesBeforeResponse, ids.PingEitherSide,
			ids.PingResponsePrompt},
		Apply: Dropping(Answers)},
	{ID: "progress.token-refused", Requirement: ids.ProgressRequest, Scenario: Requests,
		Summary: "A ping with a progress token is refused.", Collateral: []string{ids.ProgressTokenAnyMeans},
		Apply: Refusing(Replies("with-token", "with-number"))},
	{ID: "progress.number-refused", Requirement: ids.ProgressTokenAnyMeans, Scenario: Requests,
		Summary: "A ping whose progress token is a number is refused.", Collateral: []string{ids.ProgressRequest},
		Apply: Refusing(Replies("with-number"))},
	{ID: "progress.token-object", Requirement: ids.ProgressTokenType, Summary: "A progress token is an object.",
		Apply: Calling("ping", object{"_meta": object{"progressToken": object{}}})},
	{ID: "progress.token-reused", Requirement: ids.ProgressTokenUnique, Transports: OverStdio,
		Summary: "Two requests that are under way have the same progress token.",
		Apply: Doing(func(ctx context.Context, s *client.Session) {
			call := object{"name": "slow", "arguments": object{"seconds": 0.3}, "_meta": object{"progressToken": "one"}}
			first, err := s.Start(ctx, "tools/call", call)
			if err != nil {
				return
			}
			_, _ = s.Call(ctx, "tools/call", call)
			_, _ = first.Await(ctx)
		})},
	{ID: "cancellation.of-nothing", Requirement: ids.CancellationSameDirection,
		Summary: "The client cancels a request that it never sent.",
		Apply:   Notifying("notifications/cancelled", object{"requestId": "never-sent"})},
	{ID: "cancellation.of-the-past", Requirement: ids.CancellationInProgress, Transports: OverStdio,
		Summary: "The client cancels the request for a page when it has asked for the next one.",
		Apply: func(c *client.Standalone) {
			var page atomic.Pointer[wire.ID]
			Sending(Calls("tools/list"), func(m *wire.Message, out outgoing) []outgoing {
				before := page.Swap(&m.ID)
				if before == nil || wire.At(m.Params, "cursor") == nil {
					return []outgoing{out}
				}
				text := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + before.String() +
					`}}`
				return []outgoing{out, {Raw: []byte(text)}}
			})(c)
		}},
	{ID: "cancellation.reason-outside-ascii", Requirement: ids.BaseMessageUTF8Accepted, Form: mockserver.ByValue,
		Scenario:   Notifications,
		Summary:    "A cancellation whose reason has characters outside ASCII ends the client.",
		Collateral: []string{ids.BaseResponsePresent}, Apply: DyingOf(`"notifications/cancelled"`, "不要 🙂")},
	{ID: "cancellation.of-initialize", Requirement: ids.CancellationNotInitialize,
		Summary:    "initialize is cancelled.",
		Collateral: []string{ids.HTTPClientSessionHeader, ids.HTTPClientVersionHeader},
		Apply: Behind(Calls("initialize"),
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)},
	{ID: "cancellation.of-slow-initialize", Requirement: ids.CancellationNotInitialize,
		Scenario: "lifecycle/unanswered", Summary: "An initialize that is not answered in time is cancelled.",
		Apply: All(Impatient, Closing(func(ctx context.Context, conn transport.Conn) error {
			if !heard(conn, "serverInfo") {
				_, _ = conn.Send(ctx,
					outgoing{Raw: []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled",` +
						`"params":{"requestId":1,"reason":"timed out"}}`)})
			}
			return conn.Close(ctx)
		}))},
	{ID: "cancellation.race-death", Requirement: ids.CancellationRace, Scenario: "features/roots",
		Summary:    "The client answers no ping after a cancellation that crosses the answer.",
		Collateral: []string{ids.BaseResponsePresent, ids.CancellationEitherSide},
		Apply:      Dropping(Replies("after-cancelling"))},
	{ID: "cancellation.late-death", Requirement: ids.CancellationLateResponse, Scenario: "time/silent-tool",
		Summary: "An answer to a request that was cancelled ends the client.",
		Apply: All(Impatient, Wrapping(func(conn transport.Conn) transport.Conn {
			return &DyingConn{Conn: conn, At: func(e *wire.Event) bool { return late(conn.Log(), e) }}
		}))},
	{ID: "cancellation.late-crash", Requirement: ids.CancellationLateResponse, Scenario: "time/silence",
		Crashes: true, Summary: "An answer to a list request that was cancelled crashes the client.",
		Apply: All(Impatient, Wrapping(func(conn transport.Conn) transport.Conn {
			return &DyingConn{Conn: conn, At: func(e *wire.Event) bool { return late(conn.Log(), e) }}
		}))},
	{ID: "cancellation.late-hang", Requirement: ids.CancellationLateResponse, Form: mockserver.InSequence,
		Scenario: "time/silent-tool",
		Summary:  "The client hangs when a request that it has cancelled is answered.",
		Apply: All(Impatient, SendingOn(func(ctx context.Context, conn transport.Conn) {
			if slices.ContainsFunc(conn.Log().Events(), func(e *wire.Event) bool { return late(conn.Log(), e) }) {
				<-ctx.Done()
			}
		}))},
	ignoring("cancellation.unknown-silence", ids.CancellationIgnoreUnknown,
		"The client answers no ping after cancellations of unknown requests.", "after-cancelled"),
	ignoring("cancellation.completed-silence", ids.CancellationIgnoreCompleted,
		"The client answers no ping after cancellations of completed requests.", "after-cancelled"),
	ignoring("cancellation.malformed-silence", ids.CancellationIgnoreMalformed,
		"The client answers no ping after malformed cancellations.", "after-cancelled"),
	ignoring("tools.change-silence", ids.ToolsListChangedUnsolicited,
		"The client answers no ping after a change of the tools.", "after-changed"),
	ignoring("prompts.change-silence", ids.PromptsListChangedUnsolicited,
		"The client answers no ping after a change of the prompts.", "after-changed"),
	ignoring("resources.change-silence", ids.ResourcesListChangedUnsolicited,
		"The client answers no ping after a change of the resources.", "after-changed"),
	ignoring("logging.data-silence", ids.LoggingMessageAnyData,
		"The client answers no ping after a log message whose data is an object.", "logged: an object"),
	ignoring("meta.notification-silence", ids.MetaAttachNotification,
		"The client answers no ping after a notification with _meta.", "after-meta"),
}

// fenced are the requirements that each ping of the notifications scenario proves.
var fenced = map[string][]string{
	"after-cancelled": {ids.CancellationIgnoreUnknown, ids.CancellationIgnoreCompleted,
		ids.CancellationIgnoreMalformed},
	"after-changed": {ids.ToolsListChangedUnsolicited, ids.PromptsListChangedUnsolicited,
		ids.ResourcesListChangedUnsolicited},
}

func ignoring(id, requirement, summary, fence string) Fault {
	return Fault{
		ID: id, Requirement: requirement, Scenario: Notifications, Summary: summary, Apply: Dropping(Replies(fence)),
		Collateral: append([]string{ids.BaseResponsePresent}, fenced[fence]...),
	}
}

// announcingAtOnce sends notifications/initialized behind initialize, while that is under way, and not again.
func announcingAtOnce(c *client.Standalone) {
	Wrapping(func(conn transport.Conn) transport.Conn { return &hasty{conn} })(c)
	Dropping(Calls("notifications/initialized"))(c)
}

// hasty is a connection that sends notifications/initialized with initialize, whatever the answer to it is.
type hasty struct{ transport.Conn }

func (c *hasty) Send(ctx context.Context, out outgoing) (*wire.Event, error) {
	sent, err := c.Conn.Send(ctx, out)
	if err != nil || wire.Parse(out.Raw).Method != "initialize" {
		return sent, err
	}
	text := []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if raw, ok := c.Conn.(*transport.HTTPConn); ok {
		_, err = raw.Open(ctx, transport.Request{Defaults: true, Body: text})
	} else {
		_, err = c.Conn.Send(ctx, outgoing{Raw: text})
	}
	return sent, err
}
