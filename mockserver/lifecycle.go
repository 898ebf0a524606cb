package mockserver

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// asked reports the version that initialize asks for.
func asked(r *server.Request) string {
	version, _ := r.Params["protocolVersion"].(string)
	return version
}

func unsupported(r *server.Request) bool {
	return !strings.HasPrefix(asked(r), "202")
}

// declares fits initialize requests that declare a capability.
func declares(name string) func(r *server.Request) bool {
	return func(r *server.Request) bool { return wire.At(r.Params, "capabilities", name) != nil }
}

// uninvited sends a request for something that the client has not declared.
func uninvited(capability, method string, params object) apply {
	return Ready(func(s *server.Session) {
		if !s.ClientHas(capability) {
			_, _ = s.Call(s.Context(), method, params)
		}
	})
}

// ofOthers takes the capability sampling of clients that come later for one of the
// session's own.
func ofOthers(o *server.Options) {
	var able atomic.Int64 // clients that have declared it
	before := func(s *server.Session) int64 {
		return s.Value("able", func() any { return able.Load() }).(int64)
	}
	OnRequest("initialize", func(r *server.Request) {
		if wire.At(r.Params, "capabilities", "sampling") != nil {
			able.Add(1)
		}
		before(r.Session)
	})(o)
	WrappingTool("test_sampling", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		if able.Load() > before(r.Session) && !r.Session.ClientHas("sampling") {
			_, _ = r.Call(ctx, "sampling/createMessage", object{
				"messages":  list{object{"role": "user", "content": object{"type": "text", "text": "Hello"}}},
				"maxTokens": 10,
			})
		}
		return next(ctx, r)
	})(o)
}

// choosing answers initialize with a version of its own.
func choosing(version func(asked string) string) apply {
	return func(o *server.Options) { o.Behaviour.Lifecycle.Version = version }
}

// gaveUp says whether a request of the server has timed out.
func gaveUp(s *server.Session) *atomic.Bool {
	return Kept[atomic.Bool](s, "gave up")
}

// basic/lifecycle
var lifecycleFaults = []Fault{
	fault("lifecycle.initialize-refused", ids.LifecycleInitAnswered, "initialize is refused with -32603.",
		Refusing("initialize", server.InternalError, Always)),
	fault("lifecycle.initialize-ignored", ids.LifecycleInitAnswered, "initialize is never answered.",
		Answering("initialize", server.NoAnswer, Always)).Also(ids.BaseResponsePresent),
	fault("lifecycle.no-version", ids.LifecycleInitResultVersion, "The answer to initialize names no protocol version.",
		Results("initialize", Lacking("protocolVersion"))).
		Also(ids.LifecycleVersionEchoSupported, ids.LifecycleVersionOfferOther),
	fault("lifecycle.version-number", ids.LifecycleInitResultVersion,
		"The protocol version in the answer to initialize is a number.",
		Results("initialize", Having("protocolVersion", 20250618))).
		Also(ids.LifecycleVersionEchoSupported, ids.LifecycleVersionOfferOther),
	fault("lifecycle.no-capabilities", ids.LifecycleInitResultCapabilities,
		"The answer to initialize has no capabilities.", Results("initialize", Lacking("capabilities"))).
		Also(undeclaredAll...),
	fault("lifecycle.no-server-info", ids.LifecycleInitResultServerInfo, "The answer to initialize has no serverInfo.",
		Results("initialize", Lacking("serverInfo"))),
	fault("lifecycle.own-version", ids.LifecycleVersionEchoSupported,
		"initialize is answered with the version of the server in place of the protocol's.",
		choosing(func(string) string { return "1.0.0" })).
		Also(ids.LifecycleVersionRevisionName, ids.LifecycleVersionOfferOther),
	fault("lifecycle.version-forgotten", ids.LifecycleVersionEchoSupported,
		"From the second session on, this revision is answered with an older one.", func(o *server.Options) {
			var begun atomic.Int64
			choosing(func(asked string) string {
				if asked == server.Version && begun.Add(1) > 1 {
					return "2025-03-26"
				}
				return asked
			})(o)
		}).Seen(BySession).Only(OverHTTP).
		Also(ids.LifecycleVersionOfferOther, ids.LifecycleVersionOfferLatest, ids.LifecycleOperationVersion),
	fault("lifecycle.invented-version", ids.LifecycleVersionOfferOther,
		"A version that the server does not support is answered with one that was never published.",
		choosing(func(asked string) string {
			if asked == server.Version {
				return asked
			}
			return "2025-01-07"
		})).Also(ids.LifecycleVersionOfferLatest),
	fault("lifecycle.version-misspelled", ids.LifecycleVersionRevisionName,
		"The protocol version is spelled 2025/06/18.", choosing(func(string) string { return "2025/06/18" })).
		Also(ids.LifecycleVersionEchoSupported, ids.LifecycleVersionOfferOther),
	fault("lifecycle.any-version", ids.LifecycleVersionOfferOther, "Any requested version is echoed.",
		choosing(func(asked string) string { return asked })),
	fault("lifecycle.later-version", ids.LifecycleVersionOfferOther,
		"Any version that is later than the latest is echoed.",
		choosing(func(asked string) string { return max(asked, server.Version) })),
	fault("lifecycle.version-prefix", ids.LifecycleVersionOfferOther,
		"A version that begins like a supported one is echoed.", choosing(func(asked string) string {
			if strings.HasPrefix(asked, server.Version) {
				return asked
			}
			return server.Version
		})).Only(OverHTTP).Also(ids.LifecycleVersionEchoSupported),
	fault("lifecycle.version-not-served", ids.LifecycleVersionOfferOther,
		"The version that is offered in place of an unknown one is not supported either.",
		choosing(func(asked string) string {
			if asked == server.Version || asked == "2024-11-05" {
				return server.Version
			}
			return "2024-11-05"
		})).Also(ids.LifecycleVersionOfferLatest),
	fault("lifecycle.version-error", ids.LifecycleVersionOfferOther,
		"A version that is not supported is refused with -32602.",
		Refusing("initialize", server.InvalidParams, unsupported)).Warns(),
	fault("lifecycle.version-error-older", ids.LifecycleVersionOfferOther,
		"The server supports this revision alone, and refuses older ones as well with -32602.",
		Refusing("initialize", server.InvalidParams,
			func(r *server.Request) bool { return asked(r) != server.Version })).Warns(),
	fault("lifecycle.version-internal-error", ids.LifecycleVersionOfferOther,
		"A version that is not supported is refused with -32603.",
		Refusing("initialize", server.InternalError, unsupported)).Also(ids.BaseErrorInvalidParams),
	fault("lifecycle.oldest-version", ids.LifecycleVersionOfferLatest,
		"For a version that is not supported the oldest is offered.", choosing(func(asked string) string {
			if strings.HasPrefix(asked, "202") {
				return asked
			}
			return "2024-11-05"
		})),
	fault("lifecycle.version-kills", ids.LifecycleErrorVersionMismatch,
		"A version that is not supported ends the process.", dyingOf(`"protocolVersion":"1999-01-01"`)).
		Also(ids.LifecycleVersionOfferOther, ids.LifecycleVersionOfferLatest),
	fault("lifecycle.never-ready", ids.ToolsListAnswered,
		"The server takes every client for uninitialized, and refuses every request.",
		Refusing("*", server.InvalidRequest, func(r *server.Request) bool { return r.Method != "initialize" })).
		Also(ids.ResourcesListAnswered, ids.PromptsListAnswered, ids.PingResponsePrompt),
	fault("lifecycle.early-ping-ignored", ids.LifecycleInitClientEarlyPing,
		"A ping before notifications/initialized gets no response.",
		Answering("ping", server.NoAnswer, func(r *server.Request) bool { return !r.Session.Initialized() })).
		Also(ids.BaseResponsePresent, ids.PingResponsePrompt),
	fault("lifecycle.roots-too-early", ids.LifecycleInitServerWaits,
		"roots/list follows right after the answer to initialize.",
		Sending(server.OnResponse("initialize", func(out *server.Outgoing) []*server.Outgoing {
			return append([]*server.Outgoing{out}, earlyRoots(out, 0)...)
		}))),
	fault("lifecycle.roots-by-timer", ids.LifecycleInitServerWaits,
		"roots/list follows 150 ms after the answer to initialize, whatever the client has sent by then.",
		Sending(server.OnResponse("initialize", func(out *server.Outgoing) []*server.Outgoing {
			return append([]*server.Outgoing{out}, earlyRoots(out, 150*time.Millisecond)...)
		}))),
	fault("lifecycle.experimental-refused", ids.LifecycleCapabilityClientExperimental,
		"A client that declares experimental capabilities is refused.",
		Refusing("initialize", server.InvalidParams, declares("experimental"))),
	fault("lifecycle.unknown-capability-refused", ids.LifecycleCapabilityClientAdditional,
		"A client that declares unknown capabilities is refused.",
		Refusing("initialize", server.InvalidParams, declares("mcpconform/unlisted"))),
	fault("lifecycle.bare-client-refused", ids.BaseSupportOtherComponents,
		"A client that declares no capability is refused.",
		Refusing("initialize", server.InvalidParams, func(r *server.Request) bool {
			declared, _ := r.Params["capabilities"].(object)
			return len(declared) == 0
		})),
	fault("lifecycle.missing-capability-hangs", ids.LifecycleErrorMissingCapability,
		"After a call that needs sampling, nothing is answered to a client that lacks it.",
		unresponsiveAfter(func(s *server.Session, m *wire.Message) bool {
			return m.Method == "tools/call" && wire.At(m.Params, "name") == "test_sampling" && !s.ClientHas("sampling")
		})).Also(ids.BaseResponsePresent),
	fault("lifecycle.timeout-none", ids.LifecycleTimeoutEstablished,
		"A tool waits for the answer of the client for a day.",
		func(o *server.Options) { o.CallTimeout = 24 * time.Hour }).Also(ids.LifecycleTimeoutMaximum),
	fault("lifecycle.timeout-renewed", ids.LifecycleTimeoutMaximum,
		"A tool waits a minute for the answer of the client, and a minute more after each report of progress.",
		Renewed(time.Minute, 24*time.Hour)),
	fault("lifecycle.timeout-uncancelled", ids.LifecycleTimeoutCancel,
		"The server does not cancel the requests that it gives up.", Dropping(Cancelled)),
	fault("lifecycle.timeout-hangs", ids.LifecycleTimeoutStopWaiting,
		"A call goes on waiting after the server has cancelled the request that it waits for.",
		TimedOut(func(ctx context.Context, r *server.Request) {
			r.Detach()
			<-ctx.Done()
		})),
	fault("lifecycle.timeout-deafens", ids.LifecycleErrorRequestTimeout,
		"After a request of its own has timed out, the server answers nothing any more.", All(
			TimedOut(func(_ context.Context, r *server.Request) { gaveUp(r.Session).Store(true) }),
			unresponsiveAfter(func(s *server.Session, _ *wire.Message) bool { return gaveUp(s).Load() }),
		)).Also(ids.BaseResponsePresent),
	fault("lifecycle.sampling-undeclared", ids.LifecycleCapabilityServerUsesSampling,
		"sampling/createMessage goes to clients that have not declared sampling.",
		uninvited("sampling", "sampling/createMessage", object{
			"messages":  list{object{"role": "user", "content": object{"type": "text", "text": "Hello"}}},
			"maxTokens": 10,
		})),
	fault("lifecycle.prompt-samples", ids.LifecycleCapabilityServerUsesSampling,
		"A prompt asks for sampling, whether or not the client has declared it.", Wrapping("prompts/get",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				if Once(r.Session, "prompt-samples") {
					r.Detach()
					_, _ = r.Call(ctx, "sampling/createMessage", object{
						"messages":  list{object{"role": "user", "content": object{"type": "text", "text": "Hello"}}},
						"maxTokens": 10,
					})
				}
				return next(ctx, r)
			})),
	fault("lifecycle.sampling-of-others", ids.LifecycleCapabilityServerUsesSampling,
		"A tool asks for sampling if a client that came later has declared it, in whatever session.", ofOthers).
		Only(OverHTTP),
	fault("lifecycle.roots-undeclared", ids.LifecycleCapabilityServerUsesRoots,
		"roots/list goes to clients that have not declared roots.", uninvited("roots", "roots/list", nil)),
	fault("lifecycle.elicitation-undeclared", ids.LifecycleCapabilityServerUsesElicitation,
		"elicitation/create goes to clients that have not declared elicitation.",
		uninvited("elicitation", "elicitation/create", object{
			"message": "Who are you?", "requestedSchema": object{"type": "object", "properties": object{}},
		})).Also(ids.LifecycleOperationVersion),
	fault("lifecycle.tools-list-changed-undeclared", ids.LifecycleCapabilityServerEmitsToolsListChanged,
		"notifications/tools/list_changed is sent although tools.listChanged is not declared.",
		Capability("tools", Lacking("listChanged"))),
	fault("lifecycle.tools-list-changed-early", ids.LifecycleCapabilityServerEmitsToolsListChanged,
		"notifications/tools/list_changed, which is not declared, is sent before initialize is answered, and never "+
			"again.", All(Capability("tools", Lacking("listChanged")), Dropping("notifications/tools/list_changed"),
			beforeHandshake("notifications/tools/list_changed", nil))).Only(OverStdio),
	fault("logging.undeclared-early", ids.LoggingCapabilityDeclared,
		"A log message is sent before initialize is answered, although logging is not declared.",
		All(Without("logging"), beforeHandshake("notifications/message",
			object{"level": "info", "data": "starting"}))).Only(OverStdio),
	fault("lifecycle.prompts-list-changed-undeclared", ids.LifecycleCapabilityServerEmitsPromptsListChanged,
		"notifications/prompts/list_changed is sent although prompts.listChanged is false.",
		Capability("prompts", Having("listChanged", false))),
	fault("lifecycle.resources-list-changed-undeclared", ids.LifecycleCapabilityServerEmitsResourcesListChanged,
		"notifications/resources/list_changed is sent although resources.listChanged is not declared.",
		Capability("resources", Lacking("listChanged"))),
	fault("lifecycle.updates-undeclared", ids.LifecycleCapabilityServerEmitsResourceUpdates,
		"notifications/resources/updated is sent although resources.subscribe is not declared.",
		All(Without("resources.subscribe"), Ready(func(s *server.Session) {
			s.Notify("notifications/resources/updated", object{"uri": "test://static-text"})
		}))).Also(ids.ResourcesUpdatedOnlySubscribed),
	fault("lifecycle.tools-refusal-code", ids.LifecycleCapabilityServerRefusesTools,
		"A server without tools refuses tools/list with -32600.",
		All(Without("tools"), Refusing("*", server.InvalidRequest, ofFeature("tools/")))).
		Also(ids.BaseErrorMethodNotFound),
	fault("lifecycle.prompts-refusal-code", ids.LifecycleCapabilityServerRefusesPrompts,
		"A server without prompts refuses prompts/list with -32600.",
		All(Without("prompts"), Refusing("*", server.InvalidRequest, ofFeature("prompts/")))).
		Also(ids.BaseErrorMethodNotFound),
	fault("lifecycle.resources-refusal-code", ids.LifecycleCapabilityServerRefusesResources,
		"A server without resources refuses resources/list with -32600.",
		All(Without("resources"), Refusing("*", server.InvalidRequest, ofFeature("resources/")))).
		Also(ids.LifecycleCapabilityServerRefusesResourceSubscriptions, ids.ToolsEmbeddedResourceResourcesCapability,
			ids.ToolsResourceLinkResolvable, ids.BaseErrorMethodNotFound),
	fault("lifecycle.subscriptions-refusal-code", ids.LifecycleCapabilityServerRefusesResourceSubscriptions,
		"A server without subscriptions refuses resources/subscribe with -32600.", All(Without("resources.subscribe"),
			Refusing("*", server.InvalidRequest, ofFeature("resources/subscribe")))),
	fault("lifecycle.logging-refusal-code", ids.LifecycleCapabilityServerRefusesLogging,
		"A server without logging refuses logging/setLevel with -32600.",
		All(Without("logging"), Refusing("*", server.InvalidRequest, ofFeature("logging/")))),
	fault("lifecycle.later-revision", ids.LifecycleOperationVersion, "A notification of a later revision is sent.",
		Ready(
			func(s *server.Session) { s.Notify("notifications/elicitation/complete", object{"elicitationId": "1"}) })),
	fault("lifecycle.unagreed-extension", ids.LifecycleCapabilityExperimentalGated,
		"A request of an extension that nobody agreed on is sent.",
		Ready(func(s *server.Session) { _, _ = s.Call(s.Context(), "com.example/telemetry", nil) })),
	fault("lifecycle.farewell", ids.LifecycleShutdownByTransport, "A notification notifications/shutdown is sent.",
		Ready(func(s *server.Session) { s.Notify("notifications/shutdown", nil) })),
	fault("lifecycle.lingers", ids.LifecycleShutdownStdioServerExits, "The process runs on when its stdin is closed.",
		lingering(func(*server.Session) bool { return true })).Only(OverStdio),
	fault("lifecycle.lingers-subscribed", ids.LifecycleShutdownStdioServerExits,
		"The process runs on when its stdin is closed while there are subscriptions.",
		lingering(func(s *server.Session) bool { return len(s.Subscriptions()) > 0 })).Only(OverStdio),
}

// lingering keeps the process alive after the end of a session that fits.
func lingering(fits func(s *server.Session) bool) apply {
	return func(o *server.Options) { o.Behaviour.Stdio.Linger = fits }
}

// undeclaredAll are the requirements that a server breaks if its capabilities
// are lost on the way and it serves them all the same.
var undeclaredAll = []string{ids.ToolsCapabilityDeclared, ids.PromptsCapabilityDeclared,
	ids.ResourcesCapabilityDeclared, ids.LoggingCapabilityDeclared, ids.CompletionCapabilityDeclared,
	ids.CompletionErrorUnsupportedCode, ids.LifecycleCapabilityServerRefusesResourceSubscriptions}

// ofFeature fits requests whose method has a prefix.
func ofFeature(prefix string) func(r *server.Request) bool {
	return func(r *server.Request) bool { return strings.HasPrefix(r.Method, prefix) }
}

// unresponsiveAfter leaves everything unanswered from the first message that fits on.
func unresponsiveAfter(fits func(s *server.Session, m *wire.Message) bool) apply {
	return Receiving(func(s *server.Session, m *wire.Message, next func()) {
		unresponsive := Kept[atomic.Bool](s, "unresponsive")
		if fits(s, m) {
			unresponsive.Store(true)
		}
		if !unresponsive.Load() {
			next()
		}
	})
}

// beforeHandshake sends a notification before initialize is answered.
func beforeHandshake(method string, params object) apply {
	return Sending(server.OnResponse("initialize", func(out *server.Outgoing) []*server.Outgoing {
		message := object{"jsonrpc": "2.0", "method": method}
		if params != nil {
			message["params"] = params
		}
		return []*server.Outgoing{{Session: out.Session, Kind: wire.Notification, Message: message}, out}
	}))
}

// earlyRoots asks a client that has declared roots for them, some time after initialize was
// answered.
func earlyRoots(answer *server.Outgoing, after time.Duration) []*server.Outgoing {
	if answer.Kind != wire.Result || !answer.Session.ClientHas("roots") {
		return nil
	}
	return []*server.Outgoing{{
		Session: answer.Session, Delay: after, Message: object{"jsonrpc": "2.0", "id": "early", "method": "roots/list"},
	}}
}
