package oddserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var features = []string{"tools", "prompts", "resources", "logging", "completions"}

// onlyOffering leaves out all features but some.
func onlyOffering(kept ...string) apply {
	return Without(slices.DeleteFunc(slices.Clone(features),
		func(f string) bool { return slices.Contains(kept, f) })...)
}

// info changes serverInfo.
func info(change func(info object)) apply {
	return Results("initialize", func(result object) { change(result["serverInfo"].(object)) })
}

// announcingIdly announces every ten seconds that a list of a feature has changed.
func announcingIdly(feature string) apply {
	return Periodically(10*time.Second, 30,
		func(s *server.Session) { s.Notify("notifications/"+feature+"/list_changed", nil) })
}

// pings sends a ping and waits for the answer.
func pings(s *server.Session) { _, _ = s.Call(s.Context(), "ping", nil) }

// logs sends a log message that belongs to no request.
func logs(s *server.Session) {
	s.Notify("notifications/message", object{"level": "emergency", "logger": "server", "data": "still here"})
}

// afterInitialize runs once initialize was answered, whether or not the client has sent initialized.
func afterInitialize(do func(s *server.Session)) apply {
	return Responses("initialize", func(out *server.Outgoing) {
		if out.Kind == wire.Result {
			s := out.Session
			time.AfterFunc(time.Millisecond, func() {
				if s.Context().Err() == nil {
					do(s)
				}
			})
		}
	})
}

// featureless are the requirements that a server without any feature leaves open.
var featureless = []string{ids.PingNotExcessive, "base.*", ids.MetaObject, "meta.attach.*", "meta.key.*",
	ids.LifecycleInitServerWaits, "http.server.*", ids.CancellationSameDirection, ids.CancellationInProgress,
	ids.CancellationStopProcessing, ids.CancellationNoResponse, ids.CancellationLateResponse, ids.PingNoParams,
	"progress.*", "tools.*", "resources.*", "content.*", "prompts.*", "completion.*", "logging.*",
	ids.PaginationOperations, ids.PaginationServerStableCursors, ids.PaginationServerInvalidCursorGraceful,
	ids.PaginationErrorInvalidCursorCode, "sampling.*", "lifecycle.timeout.*", ids.LifecycleErrorRequestTimeout,
	ids.RootsRootNameOptional, ids.RootsListMultiple, ids.RootsServerUnavailable, "elicitation.*", "schema.*",
	ids.RootsListChangedRefetch, ids.RootsRootFileOrDirectory, ids.PaginationCursorResultsAfter}

// basic/lifecycle
var lifecycleOddities = []Oddity{
	odd("lifecycle.unnamed-client", "initialize is served without the name or the version of the client.",
		"The required members of initialize bind the client; no sentence has a server look at it.",
		"basic/lifecycle#initialization", OnRequest("initialize", func(r *server.Request) {
			info, _ := r.Params["clientInfo"].(object)
			named := object{"name": "unknown", "version": "unknown"}
			maps.Copy(named, info)
			r.Params["clientInfo"] = named
		})),
	// https://github.com/ramimbo/mergework/pull/848
	odd("lifecycle.initialize-unchecked", "initialize is served whatever is missing from it.",
		"The required members of initialize bind the client; no sentence has a server look at it.",
		"basic/lifecycle#initialization", OnRequest("initialize", func(r *server.Request) {
			if _, ok := r.Params["protocolVersion"].(string); !ok {
				r.Params["protocolVersion"] = schema.DefaultVersion
			}
			if _, ok := r.Params["capabilities"].(object); !ok {
				r.Params["capabilities"] = object{}
			}
			r.Params["clientInfo"] = object{"name": "any", "version": "1"}
		})),
	odd("lifecycle.incomplete-400", "An incomplete initialize is answered with 400 and no JSON.",
		"The sender learns of the refusal by the status as well.", "basic/transports#sending-messages-to-the-server",
		All(RefusingHTTP(http.StatusBadRequest, func(r *http.Request) bool {
			m := Posted(r)
			_, named := wire.At(m.Params, "clientInfo", "version").(string)
			_, versioned := wire.At(m.Params, "protocolVersion").(string)
			return m.Method == "initialize" && !(named && versioned)
		}), Peeking())).Only(OverHTTP),
	odd("lifecycle.ends-uninitialized", "The server ends after an initialize that it refused, or that has no id.",
		"The text does not say that a server stays which could not be initialised.", "basic/lifecycle#error-handling",
		func(o *server.Options) {
			o.Behaviour.Stdio.Quit = func(n int, line []byte) bool {
				m := wire.Parse(line)
				_, named := wire.At(m.Params, "clientInfo", "version").(string)
				return m.Method == "initialize" && (!named || m.Kind == wire.Notification)
			}
		}).Only(OverStdio),
	odd("lifecycle.initialize-without-id-counts",
		"An initialize without an id gets no response, and one with an id after it is refused.",
		"The text does not say what comes of an initialize that is a notification.", "basic/lifecycle#initialization",
		func(o *server.Options) {
			var begun sync.Map // by session
			Receiving(func(s *server.Session, m *wire.Message, next func()) {
				if m.Method == "initialize" && m.Kind == wire.Notification {
					begun.Store(s, true)
				}
				next()
			})(o)
			Refusing("initialize", server.InvalidRequest, func(r *server.Request) bool {
				_, already := begun.Load(r.Session)
				return already
			})(o)
		}),
	odd("lifecycle.gives-up-soon", "The server gives its own requests up after two seconds.", "The text sets no time.",
		"basic/lifecycle#timeouts", func(o *server.Options) { o.CallTimeout = 2 * time.Second }).Replaces("giving-up"),
	odd("lifecycle.gives-up-late",
		"The server gives its own requests up a second later than others, and cancels them just after the call has "+
			"ended.", "The text does not say what comes first.", "basic/lifecycle#timeouts", All(
			func(o *server.Options) { o.CallTimeout = time.Minute + time.Second },
			Messages(Cancelled, func(out *server.Outgoing) { out.Delay = 150 * time.Millisecond }),
		)).Replaces("giving-up"),
	odd("lifecycle.renews-timeout",
		"The server gives its own requests up after ten seconds without progress of them, or after a minute.",
		"The clock may be reset by progress, as long as there is a maximum.",
		"basic/lifecycle#timeouts", Renewed(10*time.Second, time.Minute)).Replaces("giving-up"),
	odd("lifecycle.goes-on-after-timeout",
		"A call gives up its own request, then goes on for five seconds and reports progress.",
		"The server stops waiting for the response; what else it does is its own business.", "basic/lifecycle#timeouts",
		TimedOut(func(ctx context.Context, r *server.Request) {
			for range 5 {
				r.Log("info", "tools", "going on without the client's answer")
				if r.Sleep(ctx, time.Second) != nil {
					return
				}
			}
		})).Open(ids.LifecycleTimeoutStopWaiting).Replaces("giving-up"),
	odd("tools.announced-later",
		"No tool is listed until two seconds after the first handshake; then all are, and the change is announced.",
		"A list can change at any time, and its change should be announced.", "server/tools#list-changed-notification",
		announcedLater(2*time.Second, "tools", "tools/list")).Open("*").Replaces("tools"),
	odd("resources.announced-later",
		"No resource is listed until a moment after the first handshake; then all are, and the change is announced.",
		"A list can change at any time, and its change should be announced.",
		"server/resources#list-changed-notification",
		announcedLater(aMoment, "resources", "resources/list", "resources/templates/list")).Open("*").
		Replaces("resources"),
	odd("prompts.announced-later",
		"No prompt is listed until a moment after the first handshake; then all are, and the change is announced.",
		"A list can change at any time, and its change should be announced.",
		"server/prompts#list-changed-notification", announcedLater(aMoment, "prompts", "prompts/list")).Open("*").
		Replaces("prompts"),
	odd("lifecycle.nothing-declared", "The server declares no capability and offers nothing but ping.",
		"Each capability is optional.", "basic/lifecycle#capability-negotiation", onlyOffering()).Open(featureless...),
	odd("lifecycle.only-tools", "The server offers tools and nothing else.", "Each capability is optional.",
		"basic/lifecycle#capability-negotiation", All(onlyOffering("tools"), Offering(func(c *server.Catalogue) {
			c.Tools = slices.DeleteFunc(slices.Clone(c.Tools), func(t *server.Tool) bool {
				return slices.Contains([]string{"resource_links", "test_embedded_resource",
					"test_multiple_content_types"}, t.Name())
			})
		}))).
		Open(ids.ToolsResourceLinkResolvable, ids.ToolsEmbeddedResourceResourcesCapability, "resources.*",
			"prompts.*", ids.ContentEmbeddedURIValid, ids.ContentEmbeddedMimeTypePresent, "completion.*", "logging.*",
			"schema.*"),
	odd("lifecycle.only-prompts", "The server offers prompts and nothing else.", "Each capability is optional.",
		"basic/lifecycle#capability-negotiation", onlyOffering("prompts")).
		Open(ids.PingNotExcessive, "base.*", ids.MetaObject, "meta.attach.*", "meta.key.*",
			ids.LifecycleInitServerWaits, ids.LifecycleCapabilityServerEmitsPromptsListChanged, "http.server.*",
			ids.CancellationSameDirection, ids.CancellationInProgress, ids.CancellationStopProcessing,
			ids.CancellationNoResponse, ids.CancellationLateResponse, ids.PingNoParams, "progress.*", "tools.*",
			"resources.*", ids.PromptsListChangedSent, ids.ContentEmbeddedURIValid, "completion.*", "logging.*",
			"sampling.*", "lifecycle.timeout.*", ids.LifecycleErrorRequestTimeout, ids.RootsRootNameOptional,
			ids.RootsListMultiple, ids.RootsServerUnavailable, "elicitation.*", "schema.*",
			ids.ContentAnnotationsLastModifiedFormat, ids.RootsListChangedRefetch, ids.RootsRootFileOrDirectory),
	odd("lifecycle.only-resources", "The server offers resources and nothing else.", "Each capability is optional.",
		"basic/lifecycle#capability-negotiation", onlyOffering("resources")).
		Open(ids.PingNotExcessive, "base.*", ids.MetaObject, "meta.attach.*", "meta.key.*",
			ids.LifecycleInitServerWaits, ids.LifecycleCapabilityServerEmitsResourcesListChanged,
			ids.LifecycleCapabilityServerEmitsResourceUpdates, "http.server.*", ids.CancellationSameDirection,
			ids.CancellationInProgress, ids.CancellationStopProcessing, ids.CancellationNoResponse,
			ids.CancellationLateResponse, ids.PingNoParams, "progress.*", "tools.*", ids.ResourcesListChangedSent,
			ids.ResourcesUpdatedSent, "content.*", "prompts.*", "completion.*", "logging.*", "sampling.*",
			"lifecycle.timeout.*", ids.LifecycleErrorRequestTimeout, ids.RootsRootNameOptional, ids.RootsListMultiple,
			ids.RootsServerUnavailable, "elicitation.*", "schema.*", ids.ResourcesUpdatedOnlySubscribed,
			ids.RootsListChangedRefetch, ids.ResourcesUpdatedEndsWithUnsubscribe, ids.RootsRootFileOrDirectory),
	odd("lifecycle.only-logging", "The server declares logging and nothing else.", "Each capability is optional.",
		"basic/lifecycle#capability-negotiation", onlyOffering("logging")).
		Open(ids.PingNotExcessive, "base.*", ids.MetaObject, "meta.attach.*", "meta.key.*",
			ids.LifecycleInitServerWaits, "http.server.*", ids.CancellationSameDirection, ids.CancellationInProgress,
			ids.CancellationStopProcessing, ids.CancellationNoResponse, ids.CancellationLateResponse,
			ids.PingNoParams, "progress.*", "tools.*", "resources.*", "content.*", "prompts.*", "completion.*",
			ids.LoggingSetLevelReplaces, ids.LoggingFilterNoneBelow, ids.LoggingSecurityNoCredentials,
			ids.LoggingSecurityNoPersonalData, ids.PaginationOperations, ids.PaginationServerStableCursors,
			ids.PaginationServerInvalidCursorGraceful, ids.PaginationErrorInvalidCursorCode, "sampling.*",
			"lifecycle.timeout.*", ids.LifecycleErrorRequestTimeout, ids.RootsRootNameOptional, ids.RootsListMultiple,
			ids.RootsServerUnavailable, "elicitation.*", "schema.*", ids.LoggingFilterAllAbove,
			ids.RootsListChangedRefetch, ids.RootsRootFileOrDirectory, ids.PaginationCursorResultsAfter, "logging.*"),
	odd("lifecycle.only-completions", "The server declares completions, although it has neither prompts nor resources.",
		"Each capability is optional.", "basic/lifecycle#capability-negotiation", onlyOffering("completions")).
		Open(featureless...),
	odd("lifecycle.no-logging-or-completions",
		"The server offers tools, prompts and resources, but neither logging nor completions.",
		"Each capability is optional.", "basic/lifecycle#capability-negotiation", Without("logging", "completions")).
		Open("completion.*", "logging.*", ids.SchemaSetLevelResult, ids.SchemaCompleteResult,
			ids.SchemaLoggingMessageNotification),
	odd("lifecycle.offers-by-client",
		"Prompts are offered to clients with sampling alone, completions, subscriptions and log messages to those "+
			"with elicitation.", "Capabilities are negotiated: which a server declares to whom is not said.",
		"basic/lifecycle#capability-negotiation", All(offeringTo("sampling", "prompts"),
			offeringTo("elicitation", "completions", "logging", "subscribe"))).Open("*").Replaces("capabilities"),
	odd("lifecycle.empty-capabilities",
		"All capabilities are empty objects: no list changes are announced, no subscriptions offered.",
		"Servers can support neither feature.", "server/resources#capabilities",
		Without("tools.listChanged", "prompts.listChanged", "resources.listChanged", "resources.subscribe")).
		Open(ids.ToolsListChangedSent, "resources.*", ids.PromptsListChangedSent, "schema.*"),
	odd("lifecycle.flags-false", "listChanged and subscribe are declared as false.", "The members are boolean.",
		"schema#servercapabilities", All(
			Without("tools.listChanged", "prompts.listChanged", "resources.listChanged", "resources.subscribe"),
			Capability("tools", Having("listChanged", false)), Capability("prompts", Having("listChanged", false)),
			Capability("resources", Having("listChanged", false)), Capability("resources", Having("subscribe", false)),
		)).Open(ids.ToolsListChangedSent, "resources.*", ids.PromptsListChangedSent, "schema.*"),
	odd("lifecycle.only-subscribe", "The resources can be subscribed to, but changes of their list are not announced.",
		"Both features are optional, each without the other.", "server/resources#capabilities",
		Without("resources.listChanged")).Open(ids.ResourcesListChangedSent),
	odd("lifecycle.only-list-changed",
		"Changes of the list of resources are announced, but there are no subscriptions.",
		"Both features are optional, each without the other.", "server/resources#capabilities",
		Without("resources.subscribe")).
		Open(ids.ResourcesSubscribeAccepted, ids.ResourcesUpdatedSent, ids.SchemaSubscribeResult,
			ids.SchemaUnsubscribeResult, ids.ResourcesUpdatedOnlySubscribed, ids.SchemaResourceUpdatedNotification,
			ids.ResourcesUnsubscribeAccepted, ids.ResourcesUpdatedEndsWithUnsubscribe),
	odd("lifecycle.experimental", "The server declares experimental capabilities, and one that nobody defines.",
		"The set of capabilities is not closed.", "schema#servercapabilities",
		Results("initialize", func(result object) {
			declared := result["capabilities"].(object)
			declared["experimental"] = object{"com.example/telemetry": object{}, "tasks": object{"max": 3}}
			declared["com.example.search"] = object{"fuzzy": true}
		})).Replaces("capabilities"),
	odd("lifecycle.capabilities-extended", "Each capability has a member that nobody defines.",
		"The definitions of capabilities are not closed.", "schema#servercapabilities",
		Results("initialize", func(result object) {
			for _, declared := range result["capabilities"].(object) {
				declared.(object)["x-since"] = "1.2"
			}
		})).Replaces("capabilities"),
	odd("lifecycle.instructions", "initialize is answered with long instructions of several lines.",
		"Instructions are optional, of any form.", "schema#initializeresult", func(o *server.Options) {
			o.Instructions = strings.Repeat("First read, then write.\r\n\t“Grüße”\n", 500)
		}),
	odd("lifecycle.instructions-empty", "The instructions are the empty string.", "Instructions are any string.",
		"schema#initializeresult", Results("initialize", Having("instructions", ""))),
	odd("lifecycle.info-minimal", "serverInfo has just name and version.", "The title is optional.",
		"schema#implementation", info(Lacking("title"))),
	odd("lifecycle.info-odd",
		"The name of the server has spaces and an emoji, its version is a word, and there are members beside.",
		"Name and version are any strings.", "schema#implementation", info(func(info object) {
			info["name"], info["version"], info["title"], info["websiteUrl"] = "my server 🚀 / β", "unreleased",
				"", "https://example.com"
		})),
	odd("lifecycle.one-version", "The server supports this revision alone, and answers others with it.",
		"A server that does not support the version MUST respond with another that it supports.",
		"basic/lifecycle#version-negotiation", func(o *server.Options) { o.Versions = []string{server.Version} }),
	odd("lifecycle.ping-before-initialized", "The server sends a ping before the client has sent initialized.",
		"Pings are allowed before initialized.", "basic/lifecycle#initialization", afterInitialize(pings)),
	odd("lifecycle.log-before-initialized", "The server sends log messages before the client has sent initialized.",
		"Logging is allowed before initialized.", "basic/lifecycle#initialization", afterInitialize(logs)),
	odd("lifecycle.early-requests-served", "Requests before initialize are served.",
		"It is the client that should not send them; nothing obliges the server to refuse.",
		"basic/lifecycle#initialization", func(o *server.Options) { o.Behaviour.Lifecycle.Early = true }),
	odd("lifecycle.initialize-again", "A second initialize in a session is served.",
		"The text does not say what a second initialize gets.", "basic/lifecycle#initialization",
		func(o *server.Options) { o.Behaviour.Lifecycle.Again = true }),
	odd("lifecycle.slow-initialize", "The answer to initialize takes three seconds.",
		"The text sets no time for the answer.", "basic/lifecycle#timeouts",
		delayed(3*time.Second, func(r *server.Request) bool { return r.Method == "initialize" })).Replaces("time"),
	odd("lifecycle.greets-late",
		"A second after the handshake come a ping, a log message and notifications that lists have changed.",
		"Both sides exchange messages as the capabilities allow.", "basic/lifecycle#operation",
		Ready(func(s *server.Session) {
			select {
			case <-time.After(time.Second):
				pings(s)
				logs(s)
				for _, list := range []string{"tools", "prompts", "resources"} {
					s.Notify("notifications/"+list+"/list_changed", nil)
				}
			case <-s.Context().Done():
			}
		})).Open(ids.ToolsOutputSchemaStructuredPresent, ids.ToolsOutputSchemaConforms),
	odd("lifecycle.exits-late", "The process exits 800 ms after its stdin was closed.",
		"The client waits a reasonable time for the server to exit.", "basic/lifecycle#stdio", func(o *server.Options) {
			o.Behaviour.Stdio.Linger = func(*server.Session) bool { <-time.After(800 * time.Millisecond); return false }
		}).Only(OverStdio).Replaces("exit"),
	odd("lifecycle.exit-status", "The process exits with status 3 when its stdin is closed.",
		"The text says nothing about the status.", "basic/lifecycle#stdio",
		func(o *server.Options) { o.Behaviour.Stdio.ExitCode = 3 }).Only(OverStdio).Replaces("exit"),
}

// basic/transports#stdio
var stdioOddities = []Oddity{
	odd("stdio.stderr-banner", "A banner of several lines, with colours, is written to stderr at the start.",
		"The server MAY write UTF-8 strings to stderr.", "basic/transports#stdio", starting(func(_, stderr io.Writer) {
			_, _ = fmt.Fprint(stderr, "\x1b[32m╔══╗\n║ok║\n╚══╝\x1b[0m\nlistening on stdio\r\n")
		})).Replaces("standard error"),
	odd("stdio.stderr-messages", "Errors, JSON and what looks like protocol messages are written to stderr.",
		"The server MAY write any UTF-8 strings to stderr.", "basic/transports#stdio",
		starting(func(_, stderr io.Writer) {
			_, _ = fmt.Fprint(stderr, "ERROR: fatal: panic: not really\n{\"level\":\"error\"}\n"+
				`{"jsonrpc":"2.0","id":1,"result":{}}`+"\n")
		})).Replaces("standard error"),
	odd("stdio.stderr-flood", "A hundred thousand characters without a newline are written to stderr.",
		"The text does not limit what is written to stderr.", "basic/transports#stdio",
		starting(func(_, stderr io.Writer) { _, _ = fmt.Fprint(stderr, strings.Repeat("é.", 50_000)) })).
		Replaces("standard error"),
	odd("stdio.stderr-closed", "Nothing is ever written to stderr.", "Writing to stderr is optional.",
		"basic/transports#stdio", starting(func(_, stderr io.Writer) {
			if c, ok := stderr.(io.Closer); ok {
				_ = c.Close()
			}
		})).Replaces("standard error"),
	odd("stdio.crlf", "Lines end with carriage return and newline.",
		"The newline delimits, and a carriage return before it is insignificant whitespace of JSON.",
		"basic/transports#stdio", Framing(func(_ *server.Outgoing, frame []byte) []byte {
			return append(bytes.TrimSuffix(frame, []byte("\n")), '\r', '\n')
		})).Replaces("standard output"),
	odd("stdio.padded", "Spaces and tabs stand before and after each message on its line.",
		"They are insignificant whitespace of JSON.", "basic/transports#stdio",
		Framing(func(_ *server.Outgoing, frame []byte) []byte {
			return slices.Concat([]byte("\t  "), bytes.TrimSuffix(frame, []byte("\n")), []byte("  \t\n"))
		})).Replaces("standard output"),
	odd("stdio.written-bytewise", "Each write to stdout has 7 bytes, in the midst of characters too.",
		"Newlines delimit messages, not writes.", "basic/transports#stdio", func(o *server.Options) {
			o.Behaviour.Stdio.Stdout = func(w io.Writer) io.Writer { return pieces{w, 7} }
		}).Replaces("standard output"),
	odd("stdio.written-together", "Messages are collected for 20 ms and written in one go.",
		"Newlines delimit messages, not writes.", "basic/transports#stdio", func(o *server.Options) {
			o.Behaviour.Stdio.Stdout = func(w io.Writer) io.Writer { return &collected{to: w} }
		}).Replaces("standard output"),
}

func starting(write func(stdout, stderr io.Writer)) apply {
	return func(o *server.Options) {
		before := o.Behaviour.Stdio.Start
		o.Behaviour.Stdio.Start = func(stdout, stderr io.Writer) {
			if before != nil {
				before(stdout, stderr)
			}
			write(stdout, stderr)
		}
	}
}

// pieces writes small pieces.
type pieces struct {
	to   io.Writer
	size int
}

func (p pieces) Write(b []byte) (n int, err error) {
	for piece := range slices.Chunk(b, p.size) {
		m, err := p.to.Write(piece)
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// collected writes what it has got a moment after the first of it.
type collected struct {
	to io.Writer

	mu   sync.Mutex
	held []byte
	err  error
}

func (c *collected) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.held) == 0 {
		time.AfterFunc(20*time.Millisecond, c.flush)
	}
	c.held = append(c.held, b...)
	return len(b), c.err
}

func (c *collected) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, c.err = c.to.Write(c.held)
	c.held = nil
}

// aMoment is longer than the lists are read at first, and shorter than a run takes.
const aMoment = 200 * time.Millisecond

// announcedLater has the lists of a feature empty until some time after the first handshake, when the change is
// announced.
func announcedLater(after time.Duration, feature string, methods ...string) apply {
	return func(o *server.Options) {
		var there, counting atomic.Bool
		for _, method := range methods {
			member := feature
			if method == "resources/templates/list" {
				member = "resourceTemplates"
			}
			Wrapping(method, func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				if !there.Load() && r.Params["cursor"] == nil {
					return object{member: list{}}, nil
				}
				return next(ctx, r)
			})(o)
		}
		Ready(func(s *server.Session) {
			if counting.Swap(true) {
				return
			}
			go func() {
				select {
				case <-time.After(after):
				case <-s.Context().Done():
				}
				there.Store(true)
				for _, each := range append(Others(s), s) {
					each.Notify("notifications/"+feature+"/list_changed", nil)
				}
			}()
		})(o)
	}
}

// offeringTo declares and serves features to clients with a capability alone.
func offeringTo(capability string, features ...string) apply {
	hidden := func(method string) bool {
		return slices.ContainsFunc(features, func(feature string) bool {
			return strings.HasPrefix(method, strings.TrimSuffix(feature, "s")) ||
				feature == "subscribe" && strings.HasSuffix(method, "subscribe") ||
				strings.HasPrefix(method, "notifications/"+feature) ||
				feature == "logging" && method == "notifications/message"
		})
	}
	return All(
		Wrapping("*", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			if r.Method != "initialize" && !r.Session.ClientHas(capability) && hidden(r.Method) {
				return nil, &wire.Error{Code: -32601, Message: "Method not found"}
			}
			return next(ctx, r)
		}),
		Wrapping("initialize", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			result, problem := next(ctx, r)
			if o, ok := result.(object); ok && wire.At(r.Params, "capabilities", capability) == nil {
				declared := o["capabilities"].(object)
				for _, feature := range features {
					delete(declared, feature)
					if resources, ok := declared["resources"].(object); ok {
						delete(resources, feature)
					}
				}
			}
			return result, problem
		}),
		WithholdingAny(func(out *server.Outgoing) bool {
			return out.Kind == wire.Notification && hidden(out.Method) && !out.Session.ClientHas(capability)
		}),
	)
}
