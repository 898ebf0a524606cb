package mockserver

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
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
	{ID: "lifecycle.initialize-refused", Requirement: "lifecycle.init.answered",
		Summary: "initialize is refused with -32603.",
		Apply:   Refusing("initialize", server.InternalError, Always)},
	{ID: "lifecycle.initialize-ignored", Requirement: "lifecycle.init.answered",
		Summary: "initialize is never answered.", Collateral: []string{"base.response.present"},
		Apply: Answering("initialize", server.NoAnswer, Always)},
	{ID: "lifecycle.no-version", Requirement: "lifecycle.init.result-version",
		Summary:    "The answer to initialize names no protocol version.",
		Collateral: []string{"lifecycle.version.echo-supported", "lifecycle.version.offer-other"},
		Apply:      Results("initialize", Lacking("protocolVersion"))},
	{ID: "lifecycle.version-number", Requirement: "lifecycle.init.result-version",
		Summary:    "The protocol version in the answer to initialize is a number.",
		Collateral: []string{"lifecycle.version.echo-supported", "lifecycle.version.offer-other"},
		Apply:      Results("initialize", Having("protocolVersion", 20250618))},
	{ID: "lifecycle.no-capabilities", Requirement: "lifecycle.init.result-capabilities",
		Summary: "The answer to initialize has no capabilities.", Collateral: undeclaredAll,
		Apply: Results("initialize", Lacking("capabilities"))},
	{ID: "lifecycle.no-server-info", Requirement: "lifecycle.init.result-server-info",
		Summary: "The answer to initialize has no serverInfo.",
		Apply:   Results("initialize", Lacking("serverInfo"))},
	{ID: "lifecycle.own-version", Requirement: "lifecycle.version.echo-supported",
		Summary:    "initialize is answered with the version of the server in place of the protocol's.",
		Collateral: []string{"lifecycle.version.revision-name", "lifecycle.version.offer-other"},
		Apply:      choosing(func(string) string { return "1.0.0" })},
	{ID: "lifecycle.version-forgotten", Requirement: "lifecycle.version.echo-supported", Form: BySession,
		Transports: OverHTTP,
		Summary:    "From the second session on, this revision is answered with an older one.",
		Collateral: []string{"lifecycle.version.offer-other", "lifecycle.version.offer-latest",
			"lifecycle.operation.version"},
		Apply: func(o *server.Options) {
			var begun atomic.Int64
			choosing(func(asked string) string {
				if asked == server.Version && begun.Add(1) > 1 {
					return "2025-03-26"
				}
				return asked
			})(o)
		}},
	{ID: "lifecycle.invented-version", Requirement: "lifecycle.version.offer-other",
		Summary:    "A version that the server does not support is answered with one that was never published.",
		Collateral: []string{"lifecycle.version.offer-latest"},
		Apply: choosing(func(asked string) string {
			if asked == server.Version {
				return asked
			}
			return "2025-01-07"
		})},
	{ID: "lifecycle.version-misspelled", Requirement: "lifecycle.version.revision-name",
		Summary:    "The protocol version is spelled 2025/06/18.",
		Collateral: []string{"lifecycle.version.echo-supported", "lifecycle.version.offer-other"},
		Apply:      choosing(func(string) string { return "2025/06/18" })},
	{ID: "lifecycle.any-version", Requirement: "lifecycle.version.offer-other",
		Summary: "Any requested version is echoed.",
		Apply:   choosing(func(asked string) string { return asked })},
	{ID: "lifecycle.later-version", Requirement: "lifecycle.version.offer-other",
		Summary: "Any version that is later than the latest is echoed.",
		Apply:   choosing(func(asked string) string { return max(asked, server.Version) })},
	{ID: "lifecycle.version-prefix", Requirement: "lifecycle.version.offer-other", Transports: OverHTTP,
		Summary:    "A version that begins like a supported one is echoed.",
		Collateral: []string{"lifecycle.version.echo-supported"},
		Apply: choosing(func(asked string) string {
			if strings.HasPrefix(asked, server.Version) {
				return asked
			}
			return server.Version
		})},
	{ID: "lifecycle.version-not-served", Requirement: "lifecycle.version.offer-other",
		Summary:    "The version that is offered in place of an unknown one is not supported either.",
		Collateral: []string{"lifecycle.version.offer-latest"},
		Apply: choosing(func(asked string) string {
			if asked == server.Version || asked == "2024-11-05" {
				return server.Version
			}
			return "2024-11-05"
		})},
	{ID: "lifecycle.version-error", Requirement: "lifecycle.version.offer-other", WarnOnly: true,
		Summary: "A version that is not supported is refused with -32602.",
		Apply:   Refusing("initialize", server.InvalidParams, unsupported)},
	{ID: "lifecycle.version-error-older", Requirement: "lifecycle.version.offer-other", WarnOnly: true,
		Summary: "The server supports this revision alone, and refuses older ones as well with -32602.",
		Apply: Refusing("initialize", server.InvalidParams, func(r *server.Request) bool {
			return asked(r) != server.Version
		})},
	{ID: "lifecycle.version-internal-error", Requirement: "lifecycle.version.offer-other",
		Summary:    "A version that is not supported is refused with -32603.",
		Collateral: []string{"base.error.invalid-params"},
		Apply:      Refusing("initialize", server.InternalError, unsupported)},
	{ID: "lifecycle.oldest-version", Requirement: "lifecycle.version.offer-latest",
		Summary: "For a version that is not supported the oldest is offered.",
		Apply: choosing(func(asked string) string {
			if strings.HasPrefix(asked, "202") {
				return asked
			}
			return "2024-11-05"
		})},
	{ID: "lifecycle.version-kills", Requirement: "lifecycle.error.version-mismatch",
		Summary:    "A version that is not supported ends the process.",
		Collateral: []string{"lifecycle.version.offer-other", "lifecycle.version.offer-latest"},
		Apply:      dyingOf(`"protocolVersion":"1999-01-01"`)},
	{ID: "lifecycle.never-ready", Requirement: "tools.list.answered",
		Summary:    "The server takes every client for uninitialized, and refuses every request.",
		Collateral: []string{"resources.list.answered", "prompts.list.answered", "ping.response-prompt"},
		Apply: Refusing("*", server.InvalidRequest,
			func(r *server.Request) bool { return r.Method != "initialize" })},
	{ID: "lifecycle.early-ping-ignored", Requirement: "lifecycle.init.client-early-ping",
		Summary:    "A ping before notifications/initialized gets no response.",
		Collateral: []string{"base.response.present", "ping.response-prompt"},
		Apply: Answering("ping", server.NoAnswer, func(r *server.Request) bool {
			return !r.Session.Initialized()
		})},
	{ID: "lifecycle.roots-too-early", Requirement: "lifecycle.init.server-waits",
		Summary: "roots/list follows right after the answer to initialize.",
		Apply: Sending(server.OnResponse("initialize", func(out *server.Outgoing) []*server.Outgoing {
			return append([]*server.Outgoing{out}, earlyRoots(out, 0)...)
		}))},
	{ID: "lifecycle.roots-by-timer", Requirement: "lifecycle.init.server-waits",
		Summary: "roots/list follows 150 ms after the answer to initialize, whatever the client has sent by then.",
		Apply: Sending(server.OnResponse("initialize", func(out *server.Outgoing) []*server.Outgoing {
			return append([]*server.Outgoing{out}, earlyRoots(out, 150*time.Millisecond)...)
		}))},
	{ID: "lifecycle.experimental-refused", Requirement: "lifecycle.capability.client-experimental",
		Summary: "A client that declares experimental capabilities is refused.",
		Apply:   Refusing("initialize", server.InvalidParams, declares("experimental"))},
	{ID: "lifecycle.unknown-capability-refused", Requirement: "lifecycle.capability.client-additional",
		Summary: "A client that declares unknown capabilities is refused.",
		Apply:   Refusing("initialize", server.InvalidParams, declares("mcpconform/unlisted"))},
	{ID: "lifecycle.bare-client-refused", Requirement: "base.support.other-components",
		Summary: "A client that declares no capability is refused.",
		Apply:   Refusing("initialize", server.InvalidParams, bare)},
	{ID: "lifecycle.missing-capability-hangs", Requirement: "lifecycle.error.missing-capability",
		Summary:    "After a call that needs sampling, nothing is answered to a client that lacks it.",
		Collateral: []string{"base.response.present"},
		Apply: unresponsiveAfter(func(s *server.Session, m *wire.Message) bool {
			return m.Method == "tools/call" && wire.At(m.Params, "name") == "test_sampling" && !s.ClientHas("sampling")
		})},
	{ID: "lifecycle.timeout-none", Requirement: "lifecycle.timeout.established",
		Summary:    "A tool waits for the answer of the client for a day.",
		Collateral: []string{"lifecycle.timeout.maximum"},
		Apply:      func(o *server.Options) { o.CallTimeout = 24 * time.Hour }},
	{ID: "lifecycle.timeout-renewed", Requirement: "lifecycle.timeout.maximum",
		Summary: "A tool waits a minute for the answer of the client, and a minute more after each report of progress.",
		Apply:   Renewed(time.Minute, 24*time.Hour)},
	{ID: "lifecycle.timeout-uncancelled", Requirement: "lifecycle.timeout.cancel",
		Summary: "The server does not cancel the requests that it gives up.", Apply: Dropping(Cancelled)},
	{ID: "lifecycle.timeout-hangs", Requirement: "lifecycle.timeout.stop-waiting",
		Summary: "A call goes on waiting after the server has cancelled the request that it waits for.",
		Apply: TimedOut(func(ctx context.Context, r *server.Request) {
			r.Detach()
			<-ctx.Done()
		})},
	{ID: "lifecycle.timeout-deafens", Requirement: "lifecycle.error.request-timeout",
		Summary:    "After a request of its own has timed out, the server answers nothing any more.",
		Collateral: []string{"base.response.present"},
		Apply: All(
			TimedOut(func(_ context.Context, r *server.Request) { gaveUp(r.Session).Store(true) }),
			unresponsiveAfter(func(s *server.Session, _ *wire.Message) bool { return gaveUp(s).Load() }),
		)},
	{ID: "lifecycle.sampling-undeclared", Requirement: "lifecycle.capability.server-uses-sampling",
		Summary: "sampling/createMessage goes to clients that have not declared sampling.",
		Apply: uninvited("sampling", "sampling/createMessage", object{
			"messages":  list{object{"role": "user", "content": object{"type": "text", "text": "Hello"}}},
			"maxTokens": 10,
		})},
	{ID: "lifecycle.prompt-samples", Requirement: "lifecycle.capability.server-uses-sampling",
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
	{ID: "lifecycle.sampling-of-others", Requirement: "lifecycle.capability.server-uses-sampling",
		Transports: OverHTTP,
		Summary:    "A tool asks for sampling if a client that came later has declared it, in whatever session.",
		Apply:      ofOthers},
	{ID: "lifecycle.roots-undeclared", Requirement: "lifecycle.capability.server-uses-roots",
		Summary: "roots/list goes to clients that have not declared roots.",
		Apply:   uninvited("roots", "roots/list", nil)},
	{ID: "lifecycle.elicitation-undeclared", Requirement: "lifecycle.capability.server-uses-elicitation",
		Summary:    "elicitation/create goes to clients that have not declared elicitation.",
		Collateral: []string{"lifecycle.operation.version"},
		Apply: uninvited("elicitation", "elicitation/create", object{
			"message": "Who are you?", "requestedSchema": object{"type": "object", "properties": object{}},
		})},
	{ID: "lifecycle.tools-list-changed-undeclared",
		Requirement: "lifecycle.capability.server-emits-tools-list-changed",
		Summary:     "notifications/tools/list_changed is sent although tools.listChanged is not declared.",
		Apply:       Capability("tools", Lacking("listChanged"))},
	{ID: "lifecycle.tools-list-changed-early", Requirement: "lifecycle.capability.server-emits-tools-list-changed",
		Transports: OverStdio,
		Summary:    "notifications/tools/list_changed, which is not declared, is sent before initialize is answered, and never again.",
		Apply: All(Capability("tools", Lacking("listChanged")), Dropping("notifications/tools/list_changed"),
			beforeHandshake("notifications/tools/list_changed", nil))},
	{ID: "logging.undeclared-early", Requirement: "logging.capability.declared", Transports: OverStdio,
		Summary: "A log message is sent before initialize is answered, although logging is not declared.",
		Apply: All(Without("logging"), beforeHandshake("notifications/message",
			object{"level": "info", "data": "starting"}))},
	{ID: "lifecycle.prompts-list-changed-undeclared",
		Requirement: "lifecycle.capability.server-emits-prompts-list-changed",
		Summary:     "notifications/prompts/list_changed is sent although prompts.listChanged is false.",
		Apply:       Capability("prompts", Having("listChanged", false))},
	{ID: "lifecycle.resources-list-changed-undeclared",
		Requirement: "lifecycle.capability.server-emits-resources-list-changed",
		Summary:     "notifications/resources/list_changed is sent although resources.listChanged is not declared.",
		Apply:       Capability("resources", Lacking("listChanged"))},
	{ID: "lifecycle.updates-undeclared", Requirement: "lifecycle.capability.server-emits-resource-updates",
		Summary:    "notifications/resources/updated is sent although resources.subscribe is not declared.",
		Collateral: []string{"resources.updated.only-subscribed"},
		Apply: All(Without("resources.subscribe"), Ready(func(s *server.Session) {
			s.Notify("notifications/resources/updated", object{"uri": "test://static-text"})
		}))},
	{ID: "lifecycle.tools-refusal-code", Requirement: "lifecycle.capability.server-refuses-tools",
		Summary:    "A server without tools refuses tools/list with -32600.",
		Collateral: []string{"base.error.method-not-found"},
		Apply:      All(Without("tools"), Refusing("*", server.InvalidRequest, ofFeature("tools/")))},
	{ID: "lifecycle.prompts-refusal-code", Requirement: "lifecycle.capability.server-refuses-prompts",
		Summary:    "A server without prompts refuses prompts/list with -32600.",
		Collateral: []string{"base.error.method-not-found"},
		Apply:      All(Without("prompts"), Refusing("*", server.InvalidRequest, ofFeature("prompts/")))},
	{ID: "lifecycle.resources-refusal-code", Requirement: "lifecycle.capability.server-refuses-resources",
		Summary: "A server without resources refuses resources/list with -32600.",
		Collateral: []string{
			"lifecycle.capability.server-refuses-resource-subscriptions",
			"tools.embedded-resource.resources-capability",
			"tools.resource-link.resolvable", "base.error.method-not-found",
		},
		Apply: All(Without("resources"), Refusing("*", server.InvalidRequest, ofFeature("resources/")))},
	{ID: "lifecycle.subscriptions-refusal-code",
		Requirement: "lifecycle.capability.server-refuses-resource-subscriptions",
		Summary:     "A server without subscriptions refuses resources/subscribe with -32600.",
		Apply: All(Without("resources.subscribe"),
			Refusing("*", server.InvalidRequest, ofFeature("resources/subscribe")))},
	{ID: "lifecycle.logging-refusal-code", Requirement: "lifecycle.capability.server-refuses-logging",
		Summary: "A server without logging refuses logging/setLevel with -32600.",
		Apply:   All(Without("logging"), Refusing("*", server.InvalidRequest, ofFeature("logging/")))},
	{ID: "lifecycle.later-revision", Requirement: "lifecycle.operation.version",
		Summary: "A notification of a later revision is sent.",
		Apply: Ready(func(s *server.Session) {
			s.Notify("notifications/elicitation/complete", object{"elicitationId": "1"})
		})},
	{ID: "lifecycle.unagreed-extension", Requirement: "lifecycle.capability.experimental-gated",
		Summary: "A request of an extension that nobody agreed on is sent.",
		Apply:   Ready(func(s *server.Session) { _, _ = s.Call(s.Context(), "com.example/telemetry", nil) })},
	{ID: "lifecycle.farewell", Requirement: "lifecycle.shutdown.by-transport",
		Summary: "A notification notifications/shutdown is sent.",
		Apply:   Ready(func(s *server.Session) { s.Notify("notifications/shutdown", nil) })},
	{ID: "lifecycle.lingers", Requirement: "lifecycle.shutdown.stdio-server-exits", Transports: OverStdio,
		Summary: "The process runs on when its stdin is closed.",
		Apply:   lingering(func(*server.Session) bool { return true })},
	{ID: "lifecycle.lingers-subscribed", Requirement: "lifecycle.shutdown.stdio-server-exits", Transports: OverStdio,
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
	"tools.capability.declared", "prompts.capability.declared", "resources.capability.declared",
	"logging.capability.declared", "completion.capability.declared", "completion.error.unsupported-code",
	"lifecycle.capability.server-refuses-resource-subscriptions",
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
