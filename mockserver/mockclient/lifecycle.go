package mockclient

import (
	"context"
	"slices"
	"sync/atomic"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var lifecycleFaults = []Fault{
	fault("lifecycle.list-first", ids.LifecycleInitFirst, "The first request is tools/list.",
		Before(Calls("initialize"), `{"jsonrpc":"2.0","id":"early","method":"tools/list"}`)).Only(OverStdio),
	fault("lifecycle.list-second", ids.LifecycleInitFirst, "A ping and tools/list come before initialize.",
		Sending(Calls("initialize"), func(_ *wire.Message, out outgoing) []outgoing {
			return []outgoing{{Raw: []byte(`{"jsonrpc":"2.0","id":"first","method":"ping"}`)},
				{Raw: []byte(`{"jsonrpc":"2.0","id":"early","method":"tools/list"}`)}, out}
		})).Only(OverStdio),
	fault("lifecycle.roots-change-early", ids.LifecycleCapabilityClientEmitsRootsListChanged,
		"A change of the roots, which is not declared, is announced before initialize is answered.",
		All(Changing(func(o *client.Options) { o.Capabilities["roots"] = object{} }),
			Behind(Calls("initialize"), `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`),
			Dropping(Calls("notifications/roots/list_changed")))).In("lifecycle/slow-answer").Only(OverStdio),
	fault("lifecycle.never-initializes", ids.LifecycleInitClientInitiates, "A request comes before initialize.",
		Before(Calls("initialize"), `{"jsonrpc":"2.0","id":"early","method":"tools/list"}`)),
	fault("lifecycle.no-version", ids.LifecycleInitRequestVersion, "initialize names no version.",
		Params("initialize", Lacking("protocolVersion"))),
	fault("lifecycle.version-number", ids.SchemaInitializeRequest, "The version in initialize is a number.",
		Params("initialize", Having("protocolVersion", 20250618))),
	fault("lifecycle.older-asked", ids.LifecycleVersionClientLatest,
		"The client asks for an older version than the latest that it supports.",
		func(c *client.Standalone) { c.Versions = append(slices.Clip(c.Versions), schema.Published...) }).
		In("lifecycle/later-version"),
	fault("lifecycle.no-capabilities", ids.LifecycleInitRequestCapabilities, "initialize has no capabilities.",
		Params("initialize", Lacking("capabilities"))),
	fault("lifecycle.no-client-info", ids.LifecycleInitRequestClientInfo, "initialize has no clientInfo.",
		Params("initialize", Lacking("clientInfo"))),
	fault("lifecycle.no-initialized", ids.LifecycleInitInitializedSent, "notifications/initialized is never sent.",
		Dropping(Calls("notifications/initialized"))),
	fault("lifecycle.initialized-early", ids.LifecycleInitInitializedAfterResult,
		"notifications/initialized comes before initialize.",
		Before(Calls("initialize"), `{"jsonrpc":"2.0","method":"notifications/initialized"}`)).Only(OverStdio),
	fault("lifecycle.does-not-wait", ids.LifecycleInitClientWaits,
		"A request follows initialize before that is answered.",
		Behind(Calls("initialize"), `{"jsonrpc":"2.0","id":"early","method":"tools/list"}`)).Only(OverStdio),
	fault("lifecycle.refusal-ignored", ids.LifecycleInitInitializedAfterResult,
		"The client goes on although initialize was answered with an error.",
		func(c *client.Standalone) { c.Omissions.Refusal = true }).In("lifecycle/refused"),
	fault("lifecycle.operation-before-initialized", ids.LifecycleInitInitializedBeforeOperation,
		"Over stdio, notifications/initialized is sent once a first request was answered.",
		AfterAnswer(Calls("notifications/initialized"),
			`{"jsonrpc":"2.0","id":"early","method":"tools/list"}`)).Only(OverStdio),
	fault("lifecycle.initialized-after-operation", ids.LifecycleInitInitializedBeforeOperation,
		"notifications/initialized is sent once a first request was answered.",
		AfterAnswer(Calls("notifications/initialized"),
			`{"jsonrpc":"2.0","id":"early","method":"tools/list"}`)).Only(OverHTTP),
	fault("lifecycle.initialized-after-operation-older", ids.LifecycleInitInitializedBeforeOperation,
		"Over HTTP+SSE, notifications/initialized is sent once a first request was answered.",
		AfterAnswer(Calls("notifications/initialized"),
			`{"jsonrpc":"2.0","id":"early","method":"tools/list"}`)).Only(overSSE),
	fault("lifecycle.made-up-version", ids.LifecycleVersionClientSupported,
		"initialize names a version that the client does not support itself.",
		Params("initialize", Having("protocolVersion", "1.0"))).In("lifecycle/additions"),
	fault("lifecycle.invented-version", ids.LifecycleVersionClientSupported,
		"initialize names a version that was never published.",
		Params("initialize", Having("protocolVersion", "2025-01-07"))),
	fault("lifecycle.version-misspelled", ids.LifecycleVersionRevisionName, "initialize names the version 2025-6-18.",
		Params("initialize", Having("protocolVersion", "2025-6-18"))).Also(ids.LifecycleVersionClientSupported),
	fault("lifecycle.leaves-good-version", ids.LifecycleVersionClientSupported,
		"The client leaves although the server has accepted its version.", DyingOf(`"serverInfo"`)).
		Also(ids.LifecycleInitInstructionsOptional),
	fault("lifecycle.any-version", ids.LifecycleVersionDisconnect,
		"The client goes on with a version that does not exist.",
		func(c *client.Standalone) { c.Omissions.Version = true }).In("lifecycle/no-version"),
	fault("lifecycle.any-version-initialized", ids.LifecycleVersionDisconnect,
		"The client accepts a version that does not exist, sends notifications/initialized and leaves.",
		All(func(c *client.Standalone) { c.Omissions.Version = true },
			DyingOn(func(conn transport.Conn, _ *wire.Event) bool {
				return slices.ContainsFunc(conn.Log().Events(), func(e *wire.Event) bool {
					return e.Kind == wire.KindMessage && e.From == wire.Client &&
						e.Msg.Method == "notifications/initialized"
				}) && heard(conn, `"1.0.0"`)
			}))).In("lifecycle/no-version"),
	fault("lifecycle.initialized-at-once", ids.LifecycleInitInitializedAfterResult,
		"notifications/initialized follows initialize before that is answered.", announcingAtOnce).
		In("lifecycle/slow-answer").Only(OverStdio),
	fault("lifecycle.initialized-at-once-http", ids.LifecycleInitInitializedAfterResult,
		"Over HTTP, notifications/initialized follows initialize before that is answered.", announcingAtOnce).
		In("lifecycle/slow-answer").Only(OverHTTP),
	fault("lifecycle.version-hangs", ids.LifecycleVersionDisconnect,
		"The client neither goes on nor leaves when it does not know the version.",
		hanging(func(conn transport.Conn) bool { return heard(conn, "2031-01-01") })).In("lifecycle/newer-version"),
	fault("lifecycle.mismatch-hangs", ids.LifecycleErrorVersionMismatch,
		"The client hangs when the server has an older version.",
		hanging(func(conn transport.Conn) bool { return heard(conn, `"2024-11-05"`) })).In("lifecycle/older-version"),
	fault("lifecycle.instructions-required", ids.LifecycleInitInstructionsOptional,
		"Instructions in the result of initialize end the client.", DyingOf(`"instructions":"Gr`)).
		In("lifecycle/additions").
		Also(ids.BaseMessageUTF8Accepted, ids.LifecycleCapabilityServerAdditional,
			ids.LifecycleCapabilityServerExperimental),
	fault("lifecycle.early-ping-death", ids.LifecycleInitServerEarlyPing,
		"A ping before the answer to initialize ends the client.", DyingOf(`"early-ping"`)).In("lifecycle/early-ping").
		Also(ids.LifecycleInitServerEarlyLogging),
	fault("ping.early-refused", ids.PingResponsePrompt,
		"A ping before the answer to initialize is answered with an error.", Refusing(Replies("early-ping"))).
		In("lifecycle/early-ping"),
	fault("ping.early-unanswered", ids.PingResponsePrompt, "A ping before the answer to initialize is never answered.",
		Dropping(Replies("early-ping"))).Seen(inSequence).In("lifecycle/early-ping").
		Also(ids.BaseResponsePresent),
	fault("lifecycle.earlier-version", ids.LifecycleVersionDisconnect,
		"The client goes on with any version that sorts before its own.",
		func(c *client.Standalone) { c.Omissions.Version = true }).Seen(byValue).In("lifecycle/no-version"),
	fault("lifecycle.early-log-death", ids.LifecycleInitServerEarlyLogging,
		"A log message before the answer to initialize ends the client.", DyingOf("not initialized yet")).
		In("lifecycle/early-ping").Also(ids.LifecycleInitServerEarlyPing),
	fault("lifecycle.experimental-death", ids.LifecycleCapabilityServerExperimental,
		"An experimental capability of the server ends the client.", DyingOf("com.example/unknown")).
		In("lifecycle/additions").
		Also(ids.BaseMessageUTF8Accepted, ids.LifecycleCapabilityServerAdditional,
			ids.LifecycleInitInstructionsOptional),
	fault("lifecycle.additional-death", ids.LifecycleCapabilityServerAdditional,
		"A capability that is not known ends the client.", DyingOf("com.example.capability")).In("lifecycle/additions").
		Also(ids.BaseMessageUTF8Accepted, ids.LifecycleCapabilityServerExperimental,
			ids.LifecycleInitInstructionsOptional),
	fault("lifecycle.utf8-death", ids.BaseMessageUTF8Accepted, "Letters beyond ASCII end the client.", DyingOf("你好")).
		In("lifecycle/additions").
		Also(ids.BaseResponsePresent, ids.MetaAttachRequest, ids.LifecycleCapabilityServerAdditional,
			ids.LifecycleCapabilityServerExperimental, ids.LifecycleInitInstructionsOptional),
	fault("lifecycle.shutdown-request", ids.LifecycleShutdownByTransport,
		"The client sends a request to shut the session down.", Calling("shutdown", nil)),
	fault("lifecycle.later-feature", ids.LifecycleOperationVersion,
		"The client sends a request that only a later version has.", Calling("tasks/list", nil)),
	undeclared("tools", "tools/list", nil),
	undeclared("prompts", "prompts/list", nil),
	undeclared("resources", "resources/list", nil),
	undeclared("logging", "logging/setLevel", object{"level": "info"}),
	undeclared("completions", "completion/complete", object{
		"ref": object{"type": "ref/prompt", "name": "greeting"}, "argument": object{"name": "name", "value": ""},
	}),
	fault("lifecycle.uses-subscriptions", ids.LifecycleCapabilityClientUsesResourceSubscriptions,
		"resources/subscribe is sent although the server does not declare it.",
		Calling("resources/subscribe", object{"uri": "test://static-text"})).In("capabilities/only-resources"),
	fault("lifecycle.uses-denied-subscriptions", ids.LifecycleCapabilityClientUsesResourceSubscriptions,
		"resources/subscribe is sent where the member subscribe is there, although it is false.",
		Doing(func(ctx context.Context, s *client.Session) {
			if wire.At(s.Init.Result(), "capabilities", "resources", "subscribe") != nil {
				_, _ = s.Call(ctx, "resources/subscribe", object{"uri": "test://static-text"})
			}
		})).Seen(byValue).In("capabilities/only-resources"),
	fault("lifecycle.roots-changes-undeclared", ids.LifecycleCapabilityClientEmitsRootsListChanged,
		"Changed roots are announced although roots.listChanged is not declared.",
		Changing(func(o *client.Options) { o.Capabilities["roots"] = object{} })),
	fault("lifecycle.roots-changes-undeclared-again", ids.LifecycleCapabilityClientEmitsRootsListChanged,
		"Changed roots are announced in a second session, in which nothing is declared.", DeclaringOnce).
		Seen(bySession).In(LostSession).Only(OverHTTP),
	fault("lifecycle.nothing-without-capabilities", ids.BaseSupportOtherComponents,
		"The client ends when the server has no capability.", DyingOf(`"capabilities":{}`)).In("capabilities/none").
		Also(ids.LifecycleErrorMissingCapability),
	fault("lifecycle.missing-capability-hangs", ids.LifecycleErrorMissingCapability,
		"The client hangs when the server has no capability.",
		hanging(func(conn transport.Conn) bool { return heard(conn, `"capabilities":{}`) })).
		In("capabilities/none").Also(ids.BaseSupportOtherComponents),
}

// hanging has the client hang where it would leave, if the connection shows something.
func hanging(where func(conn transport.Conn) bool) apply {
	return Closing(func(ctx context.Context, conn transport.Conn) error {
		if where(conn) {
			<-ctx.Done()
		}
		return conn.Close(ctx)
	})
}

// late reports whether an event is the answer to a request that was cancelled before.
func late(conn transport.Conn, e *wire.Event) bool {
	return e.Kind == wire.KindMessage && e.Msg.IsResponse() &&
		slices.ContainsFunc(conn.Log().Events(), func(c *wire.Event) bool {
			return c.Kind == wire.KindMessage && c.Msg.Method == "notifications/cancelled" && c.Seq < e.Seq &&
				wire.ReadID(wire.At(c.Msg.Params, "requestId")).Key() == e.Msg.ID.Key()
		})
}

func undeclared(capability, method string, params any) Fault {
	declared := map[string]string{"tools": "prompts", "prompts": "tools", "resources": "tools", "logging": "features",
		"completions": "resources"}
	return fault("lifecycle.uses-"+capability, "lifecycle.capability.client-uses-"+capability,
		method+" is sent although the server does not declare it.", Calling(method, params)).
		In("capabilities/only-" + declared[capability])
}

// heard reports whether the server has sent a message that holds a text.
func heard(conn transport.Conn, text string) bool {
	return slices.ContainsFunc(conn.Log().Events(), func(e *wire.Event) bool {
		return e.Kind == wire.KindMessage && e.From == wire.Server && ContainsText(e, text)
	})
}

var utilityFaults = []Fault{
	fault("ping.refused", ids.PingResponsePrompt, "A ping is refused with an error.", Refusing(Results)).In(Requests).
		Also(ids.PingEitherSide),
	fault("ping.refused-later", ids.PingResponsePrompt, "Pings are refused once requests of unknown methods have come.",
		Refusing(Replies("last-ping"))).In(Requests),
	fault("ping.behind-own", ids.PingResponsePrompt, "A ping is answered only when the client's own request has been.",
		HeldBack(Replies("a word", "last-ping"))).In(Requests),
	fault("cancellation.death", ids.CancellationEitherSide, "A cancellation by the server ends the client.",
		DyingOf("notifications/cancelled")).In(RootsSeen).
		Also(append([]string{ids.BaseResponsePresent, ids.CancellationRace}, fenced["after-cancelled"]...)...),
	fault("cancellation.pings-refused", ids.CancellationRace, "Pings are refused once requests were cancelled.",
		Refusing(Replies("after-cancelling"))).In(RootsSeen),
	fault("ping.one-way", ids.PingEitherSide, "A ping of the server is refused: only clients may send them.",
		Refusing(Results)).In(Requests).Also(ids.PingResponsePrompt),
	fault("ping.result-filled", ids.PingResponseEmpty, "The result of a ping holds something.",
		Editing(Replies("last-ping"), Having("result", object{"ok": true}))).In(Requests),
	fault("ping.params", ids.PingNoParams, "A ping has parameters.", Calling("ping", object{"time": 1})),
	fault("ping.flood", ids.PingNotExcessive, "The client pings more than a thousand times in a row.",
		Doing(func(ctx context.Context, s *client.Session) {
			for range Flood {
				_, _ = s.Call(ctx, "ping", nil)
			}
		})).Only(OverStdio),
	fault("completion.flood", ids.CompletionClientDebounce,
		"The client requests the same completion more than a thousand times in a row.",
		Doing(func(ctx context.Context, s *client.Session) {
			for range Flood {
				_, _ = s.Call(ctx, "completion/complete", object{
					"ref":      object{"type": "ref/prompt", "name": "greeting"},
					"argument": object{"name": "name", "value": ""},
				})
			}
		})).Only(OverStdio),
	fault("ping.one-at-a-time", ids.ArchitectureClientRouting, "Requests of the server stay unanswered.",
		Dropping(Answers)).In(Requests).
		Also(ids.BaseResponsePresent, ids.HTTPClientMessagesBeforeResponse, ids.PingEitherSide,
			ids.PingResponsePrompt),
	fault("progress.token-refused", ids.ProgressRequest, "A ping with a progress token is refused.",
		Refusing(Replies("with-token", "with-number"))).In(Requests).Also(ids.ProgressTokenAnyMeans),
	fault("progress.number-refused", ids.ProgressTokenAnyMeans, "A ping whose progress token is a number is refused.",
		Refusing(Replies("with-number"))).In(Requests).Also(ids.ProgressRequest),
	fault("progress.token-object", ids.ProgressTokenType, "A progress token is an object.",
		Calling("ping", object{"_meta": object{"progressToken": object{}}})),
	fault("progress.token-reused", ids.ProgressTokenUnique,
		"Two requests that are under way have the same progress token.",
		Doing(func(ctx context.Context, s *client.Session) {
			call := object{"name": "slow", "arguments": object{"seconds": 0.3}, "_meta": object{"progressToken": "one"}}
			first, err := s.Start(ctx, "tools/call", call)
			if err != nil {
				return
			}
			_, _ = s.Call(ctx, "tools/call", call)
			_, _ = first.Await(ctx)
		})).Only(OverStdio),
	fault("cancellation.of-nothing", ids.CancellationSameDirection, "The client cancels a request that it never sent.",
		Notifying("notifications/cancelled", object{"requestId": "never-sent"})),
	fault("cancellation.of-the-past", ids.CancellationInProgress,
		"The client cancels the request for a page when it has asked for the next one.", func(c *client.Standalone) {
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
		}).Only(OverStdio),
	fault("cancellation.reason-outside-ascii", ids.BaseMessageUTF8Accepted,
		"A cancellation whose reason has characters outside ASCII ends the client.",
		DyingOf(`"notifications/cancelled"`, "不要 🙂")).Seen(byValue).In(Notifications).Also(ids.BaseResponsePresent),
	fault("cancellation.of-initialize", ids.CancellationNotInitialize, "initialize is cancelled.",
		Behind(Calls("initialize"), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)).
		Also(ids.HTTPClientSessionHeader, ids.HTTPClientVersionHeader),
	fault("cancellation.of-slow-initialize", ids.CancellationNotInitialize,
		"An initialize that is not answered in time is cancelled.",
		All(Impatient, Closing(func(ctx context.Context, conn transport.Conn) error {
			if !heard(conn, "serverInfo") {
				_, _ = conn.Send(ctx,
					outgoing{Raw: []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled",` +
						`"params":{"requestId":1,"reason":"timed out"}}`)})
			}
			return conn.Close(ctx)
		}))).In("lifecycle/unanswered"),
	fault("cancellation.race-death", ids.CancellationRace,
		"The client answers no ping after a cancellation that crosses the answer.",
		Dropping(Replies("after-cancelling"))).In("features/roots").
		Also(ids.BaseResponsePresent, ids.CancellationEitherSide),
	fault("cancellation.late-death", ids.CancellationLateResponse,
		"An answer to a request that was cancelled ends the client.",
		All(Impatient, DyingOn(late))).In("time/silent-tool"),
	fault("cancellation.late-crash", ids.CancellationLateResponse,
		"An answer to a list request that was cancelled crashes the client.",
		All(Impatient, DyingOn(late))).In("time/silence").Crashing(),
	fault("cancellation.late-hang", ids.CancellationLateResponse,
		"The client hangs when a request that it has cancelled is answered.",
		All(Impatient, SendingOn(func(ctx context.Context, conn transport.Conn) {
			if slices.ContainsFunc(conn.Log().Events(), func(e *wire.Event) bool { return late(conn, e) }) {
				<-ctx.Done()
			}
		}))).Seen(inSequence).In("time/silent-tool"),
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
	return fault(id, requirement, summary, Dropping(Replies(fence))).In(Notifications).
		Also(append([]string{ids.BaseResponsePresent}, fenced[fence]...)...)
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
