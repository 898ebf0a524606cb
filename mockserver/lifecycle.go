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

// bare fits initialize requests without any capability.
func bare(r *server.Request) bool {
	declared, _ := r.Params["capabilities"].(object)
	return len(declared) == 0
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
	{ID: "lifecycle.initialize-refused", Requirement: ids.LifecycleInitAnswered,
		Summary: "initialize is refused with -32603.",
		Apply:   Refusing("initialize", server.InternalError, Always)},
	{ID: "lifecycle.initialize-ignored", Requirement: ids.LifecycleInitAnswered,
		Summary: "initialize is never answered.", Collateral: []string{ids.BaseResponsePresent},
		Apply: Answering("initialize", server.NoAnswer, Always)},
	{ID: "lifecycle.no-version", Requirement: ids.LifecycleInitResultVersion,
		Summary:    "The answer to initialize names no protocol version.",
		Collateral: []string{ids.LifecycleVersionEchoSupported, ids.LifecycleVersionOfferOther},
		Apply:      Results("initialize", Lacking("protocolVersion"))},
	{ID: "lifecycle.version-number", Requirement: ids.LifecycleInitResultVersion,
		Summary:    "The protocol version in the answer to initialize is a number.",
		Collateral: []string{ids.LifecycleVersionEchoSupported, ids.LifecycleVersionOfferOther},
		Apply:      Results("initialize", Having("protocolVersion", 20250618))},
	{ID: "lifecycle.no-capabilities", Requirement: ids.LifecycleInitResultCapabilities,
		Summary: "The answer to initialize has no capabilities.", Collateral: undeclaredAll,
		Apply: Results("initialize", Lacking("capabilities"))},
	{ID: "lifecycle.no-server-info", Requirement: ids.LifecycleInitResultServerInfo,
		Summary: "The answer to initialize has no serverInfo.",
		Apply:   Results("initialize", Lacking("serverInfo"))},
	{ID: "lifecycle.own-version", Requirement: ids.LifecycleVersionEchoSupported,
		Summary:    "initialize is answered with the version of the server in place of the protocol's.",
		Collateral: []string{ids.LifecycleVersionRevisionName, ids.LifecycleVersionOfferOther},
		Apply:      choosing(func(string) string { return "1.0.0" })},
	{ID: "lifecycle.version-forgotten", Requirement: ids.LifecycleVersionEchoSupported, Form: BySession,
		Transports: OverHTTP,
		Summary:    "From the second session on, this revision is answered with an older one.",
		Collateral: []string{ids.LifecycleVersionOfferOther, ids.LifecycleVersionOfferLatest,
			ids.LifecycleOperationVersion},
		Apply: func(o *server.Options) {
			var begun atomic.Int64
			choosing(func(asked string) string {
				if asked == server.Version && begun.Add(1) > 1 {
					return "2025-03-26"
				}
				return asked
			})(o)
		}},
	{ID: "lifecycle.invented-version", Requirement: ids.LifecycleVersionOfferOther,
		Summary:    "A version that the server does not support is answered with one that was never published.",
		Collateral: []string{ids.LifecycleVersionOfferLatest},
		Apply: choosing(func(asked string) string {
			if asked == server.Version {
				return asked
			}
			return "2025-01-07"
		})},
	{ID: "lifecycle.version-misspelled", Requirement: ids.LifecycleVersionRevisionName,
		Summary:    "The protocol version is spelled 2025/06/18.",
		Collateral: []string{ids.LifecycleVersionEchoSupported, ids.LifecycleVersionOfferOther},
		Apply:      choosing(func(string) string { return "2025/06/18" })},
	{ID: "lifecycle.any-version", Requirement: ids.LifecycleVersionOfferOther,
		Summary: "Any requested version is echoed.",
		Apply:   choosing(func(asked string) string { return asked })},
	{ID: "lifecycle.later-version", Requirement: ids.LifecycleVersionOfferOther,
		Summary: "Any version that is later than the latest is echoed.",
		Apply:   choosing(func(asked string) string { return max(asked, server.Version) })},
	{ID: "lifecycle.version-prefix", Requirement: ids.LifecycleVersionOfferOther, Transports: OverHTTP,
		Summary:    "A version that begins like a supported one is echoed.",
		Collateral: []string{ids.LifecycleVersionEchoSupported},
		Apply: choosing(func(asked string) string {
			if strings.HasPrefix(asked, server.Version) {
				return asked
			}
			return server.Version
		})},
	{ID: "lifecycle.version-not-served", Requirement: ids.LifecycleVersionOfferOther,
		Summary:    "The version that is offered in place of an unknown one is not supported either.",
		Collateral: []string{ids.LifecycleVersionOfferLatest},
		Apply: choosing(func(asked string) string {
			if asked == server.Version || asked == "2024-11-05" {
				return server.Version
			}
			return "2024-11-05"
		})},
	{ID: "lifecycle.version-error", Requirement: ids.LifecycleVersionOfferOther, WarnOnly: true,
		Summary: "A version that is not supported is refused with -32602.",
		Apply:   Refusing("initialize", server.InvalidParams, unsupported)},
	{ID: "lifecycle.version-error-older", Requirement: ids.LifecycleVersionOfferOther, WarnOnly: true,
		Summary: "The server supports this revision alone, and refuses older ones as well with -32602.",
		Apply: Refusing("initialize", server.InvalidParams, func(r *server.Request) bool {
			return asked(r) != server.Version
		})},
	{ID: "lifecycle.version-internal-error", Requirement: ids.LifecycleVersionOfferOther,
		Summary:    "A version that is not supported is refused with -32603.",
		Collateral: []string{ids.BaseErrorInvalidParams},
		Apply:      Refusing("initialize", server.InternalError, unsupported)},
	{ID: "lifecycle.oldest-version", Requirement: ids.LifecycleVersionOfferLatest,
		Summary: "For a version that is not supported the oldest is offered.",
		Apply: choosing(func(asked string) string {
			if strings.HasPrefix(asked, "202") {
				return asked
			}
			return "2024-11-05"
		})},
	{ID: "lifecycle.version-kills", Requirement: ids.LifecycleErrorVersionMismatch,
		Summary:    "A version that is not supported ends the process.",
		Collateral: []string{ids.LifecycleVersionOfferOther, ids.LifecycleVersionOfferLatest},
		Apply:      dyingOf(`"protocolVersion":"1999-01-01"`)},
	{ID: "lifecycle.never-ready", Requirement: ids.ToolsListAnswered,
		Summary:    "The server takes every client for uninitialized, and refuses every request.",
		Collateral: []string{ids.ResourcesListAnswered, ids.PromptsListAnswered, ids.PingResponsePrompt},
		Apply: Refusing("*", server.InvalidRequest,
			func(r *server.Request) bool { return r.Method != "initialize" })},
	{ID: "lifecycle.early-ping-ignored", Requirement: ids.LifecycleInitClientEarlyPing,
		Summary:    "A ping before notifications/initialized gets no response.",
		Collateral: []string{ids.BaseResponsePresent, ids.PingResponsePrompt},
		Apply: Answering("ping", server.NoAnswer, func(r *server.Request) bool {
			return !r.Session.Initialized()
		})},
	{ID: "lifecycle.roots-too-early", Requirement: ids.LifecycleInitServerWaits,
		Summary: "roots/list follows right after the answer to initialize.",
		Apply: Sending(server.OnResponse("initialize", func(out *server.Outgoing) []*server.Outgoing {
			return append([]*server.Outgoing{out}, earlyRoots(out, 0)...)
		}))},
	{ID: "lifecycle.roots-by-timer", Requirement: ids.LifecycleInitServerWaits,
		Summary: "roots/list follows 150 ms after the answer to initialize, whatever the client has sent by then.",
		Apply: Sending(server.OnResponse("initialize", func(out *server.Outgoing) []*server.Outgoing {
			return append([]*server.Outgoing{out}, earlyRoots(out, 150*time.Millisecond)...)
		}))},
	{ID: "lifecycle.experimental-refused", Requirement: ids.LifecycleCapabilityClientExperimental,
		Summary: "A client that declares experimental capabilities is refused.",
		Apply:   Refusing("initialize", server.InvalidParams, declares("experimental"))},
	{ID: "lifecycle.unknown-capability-refused", Requirement: ids.LifecycleCapabilityClientAdditional,
		Summary: "A client that declares unknown capabilities is refused.",
		Apply:   Refusing("initialize", server.InvalidParams, declares("mcpconform/unlisted"))},
	{ID: "lifecycle.bare-client-refused", Requirement: ids.BaseSupportOtherComponents,
		Summary: "A client that declares no capability is refused.",
		Apply:   Refusing("initialize", server.InvalidParams, bare)},
	{ID: "lifecycle.missing-capability-hangs", Requirement: ids.LifecycleErrorMissingCapability,
		Summary:    "After a call that needs sampling, nothing is answered to a client that lacks it.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply: unresponsiveAfter(func(s *server.Session, m *wire.Message) bool {
			return m.Method == "tools/call" && wire.At(m.Params, "name") == "test_sampling" && !s.ClientHas("sampling")
		})},
	{ID: "lifecycle.timeout-none", Requirement: ids.LifecycleTimeoutEstablished,
		Summary:    "A tool waits for the answer of the client for a day.",
		Collateral: []string{ids.LifecycleTimeoutMaximum},
		Apply:      func(o *server.Options) { o.CallTimeout = 24 * time.Hour }},
	{ID: "lifecycle.timeout-renewed", Requirement: ids.LifecycleTimeoutMaximum,
		Summary: "A tool waits a minute for the answer of the client, and a minute more after each report of progress.",
		Apply:   Renewed(time.Minute, 24*time.Hour)},
	{ID: "lifecycle.timeout-uncancelled", Requirement: ids.LifecycleTimeoutCancel,
		Summary: "The server does not cancel the requests that it gives up.", Apply: Dropping(Cancelled)},
	{ID: "lifecycle.timeout-hangs", Requirement: ids.LifecycleTimeoutStopWaiting,
		Summary: "A call goes on waiting after the server has cancelled the request that it waits for.",
		Apply: TimedOut(func(ctx context.Context, r *server.Request) {
			r.Detach()
			<-ctx.Done()
		})},
	{ID: "lifecycle.timeout-deafens", Requirement: ids.LifecycleErrorRequestTimeout,
		Summary:    "After a request of its own has timed out, the server answers nothing any more.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply: All(
			TimedOut(func(_ context.Context, r *server.Request) { gaveUp(r.Session).Store(true) }),
			unresponsiveAfter(func(s *server.Session, _ *wire.Message) bool { return gaveUp(s).Load() }),
		)},
	{ID: "lifecycle.sampling-undeclared", Requirement: ids.LifecycleCapabilityServerUsesSampling,
		Summary: "sampling/createMessage goes to clients that have not declared sampling.",
		Apply: uninvited("sampling", "sampling/createMessage", object{
			"messages":  list{object{"role": "user", "content": object{"type": "text", "text": "Hello"}}},
			"maxTokens": 10,
		})},
	{ID: "lifecycle.prompt-samples", Requirement: ids.LifecycleCapabilityServerUsesSampling,
		Summary: "A prompt asks for sampling, whether or not the client has declared it.",
		Apply: Wrapping("prompts/get",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				if Once(r.Session, "prompt-samples") {
					r.Detach()
					_, _ = r.Call(ctx, "sampling/createMessage", object{
						"messages":  list{object{"role": "user", "content": object{"type": "text", "text": "Hello"}}},
						"maxTokens": 10,
					})
				}
				return next(ctx, r)
			})},
	{ID: "lifecycle.sampling-of-others", Requirement: ids.LifecycleCapabilityServerUsesSampling,
		Transports: OverHTTP,
		Summary:    "A tool asks for sampling if a client that came later has declared it, in whatever session.",
		Apply:      ofOthers},
	{ID: "lifecycle.roots-undeclared", Requirement: ids.LifecycleCapabilityServerUsesRoots,
		Summary: "roots/list goes to clients that have not declared roots.",
		Apply:   uninvited("roots", "roots/list", nil)},
	{ID: "lifecycle.elicitation-undeclared", Requirement: ids.LifecycleCapabilityServerUsesElicitation,
		Summary:    "elicitation/create goes to clients that have not declared elicitation.",
		Collateral: []string{ids.LifecycleOperationVersion},
		Apply: uninvited("elicitation", "elicitation/create", object{
			"message": "Who are you?", "requestedSchema": object{"type": "object", "properties": object{}},
		})},
	{ID: "lifecycle.tools-list-changed-undeclared",
		Requirement: ids.LifecycleCapabilityServerEmitsToolsListChanged,
		Summary:     "notifications/tools/list_changed is sent although tools.listChanged is not declared.",
		Apply:       Capability("tools", Lacking("listChanged"))},
	{ID: "lifecycle.tools-list-changed-early", Requirement: ids.LifecycleCapabilityServerEmitsToolsListChanged,
		Transports: OverStdio,
		Summary: "notifications/tools/list_changed, which is not declared, is sent before initialize is answered, " +
			"and never again.",
		Apply: All(Capability("tools", Lacking("listChanged")), Dropping("notifications/tools/list_changed"),
			beforeHandshake("notifications/tools/list_changed", nil))},
	{ID: "logging.undeclared-early", Requirement: ids.LoggingCapabilityDeclared, Transports: OverStdio,
		Summary: "A log message is sent before initialize is answered, although logging is not declared.",
		Apply: All(Without("logging"), beforeHandshake("notifications/message",
			object{"level": "info", "data": "starting"}))},
	{ID: "lifecycle.prompts-list-changed-undeclared",
		Requirement: ids.LifecycleCapabilityServerEmitsPromptsListChanged,
		Summary:     "notifications/prompts/list_changed is sent although prompts.listChanged is false.",
		Apply:       Capability("prompts", Having("listChanged", false))},
	{ID: "lifecycle.resources-list-changed-undeclared",
		Requirement: ids.LifecycleCapabilityServerEmitsResourcesListChanged,
		Summary:     "notifications/resources/list_changed is sent although resources.listChanged is not declared.",
		Apply:       Capability("resources", Lacking("listChanged"))},
	{ID: "lifecycle.updates-undeclared", Requirement: ids.LifecycleCapabilityServerEmitsResourceUpdates,
		Summary:    "notifications/resources/updated is sent although resources.subscribe is not declared.",
		Collateral: []string{ids.ResourcesUpdatedOnlySubscribed},
		Apply: All(Without("resources.subscribe"), Ready(func(s *server.Session) {
			s.Notify("notifications/resources/updated", object{"uri": "test://static-text"})
		}))},
	{ID: "lifecycle.tools-refusal-code", Requirement: ids.LifecycleCapabilityServerRefusesTools,
		Summary:    "A server without tools refuses tools/list with -32600.",
		Collateral: []string{ids.BaseErrorMethodNotFound},
		Apply:      All(Without("tools"), Refusing("*", server.InvalidRequest, ofFeature("tools/")))},
	{ID: "lifecycle.prompts-refusal-code", Requirement: ids.LifecycleCapabilityServerRefusesPrompts,
		Summary:    "A server without prompts refuses prompts/list with -32600.",
		Collateral: []string{ids.BaseErrorMethodNotFound},
		Apply:      All(Without("prompts"), Refusing("*", server.InvalidRequest, ofFeature("prompts/")))},
	{ID: "lifecycle.resources-refusal-code", Requirement: ids.LifecycleCapabilityServerRefusesResources,
		Summary: "A server without resources refuses resources/list with -32600.",
		Collateral: []string{
			ids.LifecycleCapabilityServerRefusesResourceSubscriptions,
			ids.ToolsEmbeddedResourceResourcesCapability,
			ids.ToolsResourceLinkResolvable, ids.BaseErrorMethodNotFound,
		},
		Apply: All(Without("resources"), Refusing("*", server.InvalidRequest, ofFeature("resources/")))},
	{ID: "lifecycle.subscriptions-refusal-code",
		Requirement: ids.LifecycleCapabilityServerRefusesResourceSubscriptions,
		Summary:     "A server without subscriptions refuses resources/subscribe with -32600.",
		Apply: All(Without("resources.subscribe"),
			Refusing("*", server.InvalidRequest, ofFeature("resources/subscribe")))},
	{ID: "lifecycle.logging-refusal-code", Requirement: ids.LifecycleCapabilityServerRefusesLogging,
		Summary: "A server without logging refuses logging/setLevel with -32600.",
		Apply:   All(Without("logging"), Refusing("*", server.InvalidRequest, ofFeature("logging/")))},
	{ID: "lifecycle.later-revision", Requirement: ids.LifecycleOperationVersion,
		Summary: "A notification of a later revision is sent.",
		Apply: Ready(func(s *server.Session) {
			s.Notify("notifications/elicitation/complete", object{"elicitationId": "1"})
		})},
	{ID: "lifecycle.unagreed-extension", Requirement: ids.LifecycleCapabilityExperimentalGated,
		Summary: "A request of an extension that nobody agreed on is sent.",
		Apply:   Ready(func(s *server.Session) { _, _ = s.Call(s.Context(), "com.example/telemetry", nil) })},
	{ID: "lifecycle.farewell", Requirement: ids.LifecycleShutdownByTransport,
		Summary: "A notification notifications/shutdown is sent.",
		Apply:   Ready(func(s *server.Session) { s.Notify("notifications/shutdown", nil) })},
	{ID: "lifecycle.lingers", Requirement: ids.LifecycleShutdownStdioServerExits, Transports: OverStdio,
		Summary: "The process runs on when its stdin is closed.",
		Apply:   lingering(func(*server.Session) bool { return true })},
	{ID: "lifecycle.lingers-subscribed", Requirement: ids.LifecycleShutdownStdioServerExits, Transports: OverStdio,
		Summary: "The process runs on when its stdin is closed while there are subscriptions.",
		Apply:   lingering(func(s *server.Session) bool { return len(s.Subscriptions()) > 0 })},
}

// lingering keeps the process alive after the end of a session that fits.
func lingering(fits func(s *server.Session) bool) apply {
	return func(o *server.Options) { o.Behaviour.Stdio.Linger = fits }
}

// undeclaredAll are the requirements that a server breaks if its capabilities
// are lost on the way and it serves them all the same.
var undeclaredAll = []string{
	ids.ToolsCapabilityDeclared, ids.PromptsCapabilityDeclared, ids.ResourcesCapabilityDeclared,
	ids.LoggingCapabilityDeclared, ids.CompletionCapabilityDeclared, ids.CompletionErrorUnsupportedCode,
	ids.LifecycleCapabilityServerRefusesResourceSubscriptions,
}

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
