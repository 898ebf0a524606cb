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
var featureless = []string{
	ids.PingNotExcessive, "base.*", ids.MetaObject, "meta.attach.*", "meta.key.*", ids.LifecycleInitServerWaits,
	"http.server.*", ids.CancellationSameDirection, ids.CancellationInProgress, ids.CancellationStopProcessing,
	ids.CancellationNoResponse, ids.CancellationLateResponse, ids.PingNoParams, "progress.*", "tools.*",
	"resources.*", "content.*", "prompts.*", "completion.*", "logging.*", ids.PaginationOperations,
	ids.PaginationServerStableCursors, ids.PaginationServerInvalidCursorGraceful,
	ids.PaginationErrorInvalidCursorCode, "sampling.*", "lifecycle.timeout.*", ids.LifecycleErrorRequestTimeout,
	ids.RootsRootNameOptional, ids.RootsListMultiple, ids.RootsServerUnavailable, "elicitation.*", "schema.*",
	ids.RootsListChangedRefetch, ids.RootsRootFileOrDirectory, ids.PaginationCursorResultsAfter,
}

// basic/lifecycle
var lifecycleOddities = []Oddity{
	{ID: "lifecycle.unnamed-client", Summary: "initialize is served without the name or the version of the client.",
		Why:    "The required members of initialize bind the client; no sentence has a server look at it.",
		Source: at("basic/lifecycle#initialization"),
		Apply: OnRequest("initialize", func(r *server.Request) {
			info, _ := r.Params["clientInfo"].(object)
			named := object{"name": "unknown", "version": "unknown"}
			maps.Copy(named, info)
			r.Params["clientInfo"] = named
		})},
	// https://github.com/ramimbo/mergework/pull/848
	{ID: "lifecycle.initialize-unchecked", Summary: "initialize is served whatever is missing from it.",
		Why:    "The required members of initialize bind the client; no sentence has a server look at it.",
		Source: at("basic/lifecycle#initialization"),
		Apply: OnRequest("initialize", func(r *server.Request) {
			if _, ok := r.Params["protocolVersion"].(string); !ok {
				r.Params["protocolVersion"] = schema.DefaultVersion
			}
			if _, ok := r.Params["capabilities"].(object); !ok {
				r.Params["capabilities"] = object{}
			}
			r.Params["clientInfo"] = object{"name": "any", "version": "1"}
		})},
	{ID: "lifecycle.incomplete-400", Transports: OverHTTP,
		Summary: "An incomplete initialize is answered with 400 and no JSON.",
		Why:     "The sender learns of the refusal by the status as well.",
		Source:  at("basic/transports#sending-messages-to-the-server"),
		Apply: All(RefusingHTTP(http.StatusBadRequest, func(r *http.Request) bool {
			m := Posted(r)
			_, named := wire.At(m.Params, "clientInfo", "version").(string)
			_, versioned := wire.At(m.Params, "protocolVersion").(string)
			return m.Method == "initialize" && !(named && versioned)
		}), Peeking())},
	{ID: "lifecycle.ends-uninitialized", Transports: OverStdio,
		Summary: "The server ends after an initialize that it refused, or that has no id.",
		Why:     "The text does not say that a server stays which could not be initialised.",
		Source:  at("basic/lifecycle#error-handling"),
		Apply: func(o *server.Options) {
			o.Behaviour.Stdio.Quit = func(n int, line []byte) bool {
				m := wire.Parse(line)
				_, named := wire.At(m.Params, "clientInfo", "version").(string)
				return m.Method == "initialize" && (!named || m.Kind == wire.Notification)
			}
		}},
	{ID: "lifecycle.initialize-without-id-counts",
		Summary: "An initialize without an id gets no response, and one with an id after it is refused.",
		Why:     "The text does not say what comes of an initialize that is a notification.",
		Source:  at("basic/lifecycle#initialization"),
		Apply: func(o *server.Options) {
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
		}},
	{ID: "lifecycle.gives-up-soon", Summary: "The server gives its own requests up after two seconds.",
		Why: "The text sets no time.", Source: at("basic/lifecycle#timeouts"), Changes: "giving-up",
		Apply: func(o *server.Options) { o.CallTimeout = 2 * time.Second }},
	{ID: "lifecycle.gives-up-late",
		Summary: "The server gives its own requests up a second later than others, and cancels them just after " +
			"the call has ended.",
		Why: "The text does not say what comes first.", Source: at("basic/lifecycle#timeouts"),
		Changes: "giving-up",
		Apply: All(
			func(o *server.Options) { o.CallTimeout = time.Minute + time.Second },
			Messages(Cancelled, func(out *server.Outgoing) { out.Delay = 150 * time.Millisecond }),
		)},
	{ID: "lifecycle.renews-timeout",
		Summary: "The server gives its own requests up after ten seconds without progress of them, or after a minute.",
		Why:     "The clock may be reset by progress, as long as there is a maximum.",
		Source:  at("basic/lifecycle#timeouts"), Changes: "giving-up",
		Apply: Renewed(10*time.Second, time.Minute)},
	{ID: "lifecycle.goes-on-after-timeout",
		Summary: "A call gives up its own request, then goes on for five seconds and reports progress.",
		Why:     "The server stops waiting for the response; what else it does is its own business.",
		Source:  at("basic/lifecycle#timeouts"), Untried: []string{ids.LifecycleTimeoutStopWaiting},
		Changes: "giving-up",
		Apply: TimedOut(func(ctx context.Context, r *server.Request) {
			for range 5 {
				r.Log("info", "tools", "going on without the client's answer")
				if r.Sleep(ctx, time.Second) != nil {
					return
				}
			}
		})},
	{ID: "tools.announced-later",
		Summary: "No tool is listed until two seconds after the first handshake; then all are, and the change " +
			"is announced.",
		Why:    "A list can change at any time, and its change should be announced.",
		Source: at("server/tools#list-changed-notification"), Untried: []string{"*"}, Changes: "tools",
		Apply: announcedLater(2*time.Second, "tools", "tools/list")},
	{ID: "resources.announced-later",
		Summary: "No resource is listed until a moment after the first handshake; then all are, and the change " +
			"is announced.",
		Why:    "A list can change at any time, and its change should be announced.",
		Source: at("server/resources#list-changed-notification"), Untried: []string{"*"}, Changes: "resources",
		Apply: announcedLater(aMoment, "resources", "resources/list", "resources/templates/list")},
	{ID: "prompts.announced-later",
		Summary: "No prompt is listed until a moment after the first handshake; then all are, and the change " +
			"is announced.",
		Why:    "A list can change at any time, and its change should be announced.",
		Source: at("server/prompts#list-changed-notification"), Untried: []string{"*"}, Changes: "prompts",
		Apply: announcedLater(aMoment, "prompts", "prompts/list")},
	{ID: "lifecycle.nothing-declared", Summary: "The server declares no capability and offers nothing but ping.",
		Why: "Each capability is optional.", Source: at("basic/lifecycle#capability-negotiation"),
		Untried: featureless, Apply: onlyOffering()},
	{ID: "lifecycle.only-tools", Summary: "The server offers tools and nothing else.",
		Why: "Each capability is optional.", Source: at("basic/lifecycle#capability-negotiation"),
		Untried: []string{ids.ToolsResourceLinkResolvable, ids.ToolsEmbeddedResourceResourcesCapability,
			"resources.*", "prompts.*", ids.ContentEmbeddedURIValid, ids.ContentEmbeddedMimeTypePresent,
			"completion.*", "logging.*", "schema.*"},
		Apply: All(onlyOffering("tools"), Offering(func(c *server.Catalogue) {
			c.Tools = slices.DeleteFunc(slices.Clone(c.Tools), func(t *server.Tool) bool {
				return slices.Contains([]string{"resource_links", "test_embedded_resource",
					"test_multiple_content_types"}, t.Name())
			})
		}))},
	{ID: "lifecycle.only-prompts", Summary: "The server offers prompts and nothing else.",
		Why: "Each capability is optional.", Source: at("basic/lifecycle#capability-negotiation"),
		Untried: []string{ids.PingNotExcessive, "base.*", ids.MetaObject, "meta.attach.*", "meta.key.*",
			ids.LifecycleInitServerWaits, ids.LifecycleCapabilityServerEmitsPromptsListChanged, "http.server.*",
			ids.CancellationSameDirection, ids.CancellationInProgress, ids.CancellationStopProcessing,
			ids.CancellationNoResponse, ids.CancellationLateResponse, ids.PingNoParams, "progress.*", "tools.*",
			"resources.*", ids.PromptsListChangedSent, ids.ContentEmbeddedURIValid, "completion.*", "logging.*",
			"sampling.*", "lifecycle.timeout.*", ids.LifecycleErrorRequestTimeout, ids.RootsRootNameOptional,
			ids.RootsListMultiple, ids.RootsServerUnavailable, "elicitation.*", "schema.*",
			ids.ContentAnnotationsLastModifiedFormat, ids.RootsListChangedRefetch, ids.RootsRootFileOrDirectory},
		Apply: onlyOffering("prompts")},
	{ID: "lifecycle.only-resources", Summary: "The server offers resources and nothing else.",
		Why: "Each capability is optional.", Source: at("basic/lifecycle#capability-negotiation"),
		Untried: []string{ids.PingNotExcessive, "base.*", ids.MetaObject, "meta.attach.*", "meta.key.*",
			ids.LifecycleInitServerWaits, ids.LifecycleCapabilityServerEmitsResourcesListChanged,
			ids.LifecycleCapabilityServerEmitsResourceUpdates, "http.server.*", ids.CancellationSameDirection,
			ids.CancellationInProgress, ids.CancellationStopProcessing, ids.CancellationNoResponse,
			ids.CancellationLateResponse, ids.PingNoParams, "progress.*", "tools.*", ids.ResourcesListChangedSent,
			ids.ResourcesUpdatedSent, "content.*", "prompts.*", "completion.*", "logging.*", "sampling.*",
			"lifecycle.timeout.*", ids.LifecycleErrorRequestTimeout, ids.RootsRootNameOptional, ids.RootsListMultiple,
			ids.RootsServerUnavailable, "elicitation.*", "schema.*", ids.ResourcesUpdatedOnlySubscribed,
			ids.RootsListChangedRefetch, ids.ResourcesUpdatedEndsWithUnsubscribe, ids.RootsRootFileOrDirectory},
		Apply: onlyOffering("resources")},
	{ID: "lifecycle.only-logging", Summary: "The server declares logging and nothing else.",
		Why: "Each capability is optional.", Source: at("basic/lifecycle#capability-negotiation"),
		Untried: []string{ids.PingNotExcessive, "base.*", ids.MetaObject, "meta.attach.*", "meta.key.*",
			ids.LifecycleInitServerWaits, "http.server.*", ids.CancellationSameDirection, ids.CancellationInProgress,
			ids.CancellationStopProcessing, ids.CancellationNoResponse, ids.CancellationLateResponse, ids.PingNoParams,
			"progress.*", "tools.*", "resources.*", "content.*", "prompts.*", "completion.*",
			ids.LoggingSetLevelReplaces, ids.LoggingFilterNoneBelow, ids.LoggingSecurityNoCredentials,
			ids.LoggingSecurityNoPersonalData, ids.PaginationOperations, ids.PaginationServerStableCursors,
			ids.PaginationServerInvalidCursorGraceful, ids.PaginationErrorInvalidCursorCode, "sampling.*",
			"lifecycle.timeout.*", ids.LifecycleErrorRequestTimeout, ids.RootsRootNameOptional, ids.RootsListMultiple,
			ids.RootsServerUnavailable, "elicitation.*", "schema.*", ids.LoggingFilterAllAbove,
			ids.RootsListChangedRefetch, ids.RootsRootFileOrDirectory, ids.PaginationCursorResultsAfter,
			"logging.*"},
		Apply: onlyOffering("logging")},
	{ID: "lifecycle.only-completions",
		Summary: "The server declares completions, although it has neither prompts nor resources.",
		Why:     "Each capability is optional.", Source: at("basic/lifecycle#capability-negotiation"),
		Untried: featureless, Apply: onlyOffering("completions")},
	{ID: "lifecycle.no-logging-or-completions",
		Summary: "The server offers tools, prompts and resources, but neither logging nor completions.",
		Why:     "Each capability is optional.", Source: at("basic/lifecycle#capability-negotiation"),
		Untried: []string{"completion.*", "logging.*", ids.SchemaSetLevelResult, ids.SchemaCompleteResult,
			ids.SchemaLoggingMessageNotification},
		Apply: Without("logging", "completions")},
	{ID: "lifecycle.offers-by-client",
		Summary: "Prompts are offered to clients with sampling alone, completions, subscriptions and log messages " +
			"to those with elicitation.",
		Why:    "Capabilities are negotiated: which a server declares to whom is not said.",
		Source: at("basic/lifecycle#capability-negotiation"), Untried: []string{"*"}, Changes: "capabilities",
		Apply: All(offeringTo("sampling", "prompts"),
			offeringTo("elicitation", "completions", "logging", "subscribe"))},
	{ID: "lifecycle.empty-capabilities",
		Summary: "All capabilities are empty objects: no list changes are announced, no subscriptions offered.",
		Why:     "Servers can support neither feature.", Source: at("server/resources#capabilities"),
		Untried: []string{ids.ToolsListChangedSent, "resources.*", ids.PromptsListChangedSent, "schema.*"},
		Apply:   Without("tools.listChanged", "prompts.listChanged", "resources.listChanged", "resources.subscribe")},
	{ID: "lifecycle.flags-false", Summary: "listChanged and subscribe are declared as false.",
		Why: "The members are boolean.", Source: at("schema#servercapabilities"),
		Untried: []string{ids.ToolsListChangedSent, "resources.*", ids.PromptsListChangedSent, "schema.*"},
		Apply: All(
			Without("tools.listChanged", "prompts.listChanged", "resources.listChanged", "resources.subscribe"),
			Capability("tools", Having("listChanged", false)), Capability("prompts", Having("listChanged", false)),
			Capability("resources", Having("listChanged", false)), Capability("resources", Having("subscribe", false)),
		)},
	{ID: "lifecycle.only-subscribe",
		Summary: "The resources can be subscribed to, but changes of their list are not announced.",
		Why:     "Both features are optional, each without the other.", Source: at("server/resources#capabilities"),
		Untried: []string{ids.ResourcesListChangedSent}, Apply: Without("resources.listChanged")},
	{ID: "lifecycle.only-list-changed",
		Summary: "Changes of the list of resources are announced, but there are no subscriptions.",
		Why:     "Both features are optional, each without the other.", Source: at("server/resources#capabilities"),
		Untried: []string{ids.ResourcesSubscribeAccepted, ids.ResourcesUpdatedSent, ids.SchemaSubscribeResult,
			ids.SchemaUnsubscribeResult, ids.ResourcesUpdatedOnlySubscribed, ids.SchemaResourceUpdatedNotification,
			ids.ResourcesUnsubscribeAccepted, ids.ResourcesUpdatedEndsWithUnsubscribe},
		Apply: Without("resources.subscribe")},
	{ID: "lifecycle.experimental",
		Summary: "The server declares experimental capabilities, and one that nobody defines.",
		Why:     "The set of capabilities is not closed.", Source: at("schema#servercapabilities"),
		Changes: "capabilities",
		Apply: Results("initialize", func(result object) {
			declared := result["capabilities"].(object)
			declared["experimental"] = object{"com.example/telemetry": object{}, "tasks": object{"max": 3}}
			declared["com.example.search"] = object{"fuzzy": true}
		})},
	{ID: "lifecycle.capabilities-extended", Summary: "Each capability has a member that nobody defines.",
		Why: "The definitions of capabilities are not closed.", Source: at("schema#servercapabilities"),
		Changes: "capabilities",
		Apply: Results("initialize", func(result object) {
			for _, declared := range result["capabilities"].(object) {
				declared.(object)["x-since"] = "1.2"
			}
		})},
	{ID: "lifecycle.instructions", Summary: "initialize is answered with long instructions of several lines.",
		Why: "Instructions are optional, of any form.", Source: at("schema#initializeresult"),
		Apply: func(o *server.Options) {
			o.Instructions = strings.Repeat("First read, then write.\r\n\t“Grüße”\n", 500)
		}},
	{ID: "lifecycle.instructions-empty", Summary: "The instructions are the empty string.",
		Why: "Instructions are any string.", Source: at("schema#initializeresult"),
		Apply: Results("initialize", Having("instructions", ""))},
	{ID: "lifecycle.info-minimal", Summary: "serverInfo has just name and version.", Why: "The title is optional.",
		Source: at("schema#implementation"), Apply: info(Lacking("title"))},
	{ID: "lifecycle.info-odd",
		Summary: "The name of the server has spaces and an emoji, its version is a word, and there are members beside.",
		Why:     "Name and version are any strings.", Source: at("schema#implementation"),
		Apply: info(func(info object) {
			info["name"], info["version"], info["title"], info["websiteUrl"] = "my server 🚀 / β", "unreleased",
				"", "https://example.com"
		})},
	{ID: "lifecycle.one-version", Summary: "The server supports this revision alone, and answers others with it.",
		Why:    "A server that does not support the version MUST respond with another that it supports.",
		Source: at("basic/lifecycle#version-negotiation"),
		Apply:  func(o *server.Options) { o.Versions = []string{server.Version} }},
	{ID: "lifecycle.ping-before-initialized",
		Summary: "The server sends a ping before the client has sent initialized.",
		Why:     "Pings are allowed before initialized.", Source: at("basic/lifecycle#initialization"),
		Apply: afterInitialize(pings)},
	{ID: "lifecycle.log-before-initialized",
		Summary: "The server sends log messages before the client has sent initialized.",
		Why:     "Logging is allowed before initialized.", Source: at("basic/lifecycle#initialization"),
		Apply: afterInitialize(logs)},
	{ID: "lifecycle.early-requests-served", Summary: "Requests before initialize are served.",
		Why:    "It is the client that should not send them; nothing obliges the server to refuse.",
		Source: at("basic/lifecycle#initialization"),
		Apply:  func(o *server.Options) { o.Behaviour.Lifecycle.Early = true }},
	{ID: "lifecycle.initialize-again", Summary: "A second initialize in a session is served.",
		Why:    "The text does not say what a second initialize gets.",
		Source: at("basic/lifecycle#initialization"),
		Apply:  func(o *server.Options) { o.Behaviour.Lifecycle.Again = true }},
	{ID: "lifecycle.slow-initialize", Summary: "The answer to initialize takes three seconds.",
		Why: "The text sets no time for the answer.", Source: at("basic/lifecycle#timeouts"), Changes: "time",
		Apply: delayed(3*time.Second, func(r *server.Request) bool { return r.Method == "initialize" })},
	{ID: "lifecycle.greets-late",
		Summary: "A second after the handshake come a ping, a log message and notifications that lists have changed.",
		Why:     "Both sides exchange messages as the capabilities allow.", Source: at("basic/lifecycle#operation"),
		Untried: []string{ids.ToolsOutputSchemaStructuredPresent, ids.ToolsOutputSchemaConforms},
		Apply: Ready(func(s *server.Session) {
			select {
			case <-time.After(time.Second):
				pings(s)
				logs(s)
				for _, list := range []string{"tools", "prompts", "resources"} {
					s.Notify("notifications/"+list+"/list_changed", nil)
				}
			case <-s.Context().Done():
			}
		})},
	{ID: "lifecycle.exits-late", Transports: OverStdio,
		Summary: "The process exits 800 ms after its stdin was closed.",
		Why:     "The client waits a reasonable time for the server to exit.", Source: at("basic/lifecycle#stdio"),
		Changes: "exit",
		Apply: func(o *server.Options) {
			o.Behaviour.Stdio.Linger = func(*server.Session) bool { <-time.After(800 * time.Millisecond); return false }
		}},
	{ID: "lifecycle.exit-status", Transports: OverStdio,
		Summary: "The process exits with status 3 when its stdin is closed.",
		Why:     "The text says nothing about the status.", Source: at("basic/lifecycle#stdio"), Changes: "exit",
		Apply: func(o *server.Options) { o.Behaviour.Stdio.ExitCode = 3 }},
}

// basic/transports#stdio
var stdioOddities = []Oddity{
	{ID: "stdio.stderr-banner", Transports: OverStdio,
		Summary: "A banner of several lines, with colours, is written to stderr at the start.",
		Why:     "The server MAY write UTF-8 strings to stderr.", Source: at("basic/transports#stdio"),
		Changes: "standard error",
		Apply: starting(func(_, stderr io.Writer) {
			_, _ = fmt.Fprint(stderr, "\x1b[32m╔══╗\n║ok║\n╚══╝\x1b[0m\nlistening on stdio\r\n")
		})},
	{ID: "stdio.stderr-messages", Transports: OverStdio,
		Summary: "Errors, JSON and what looks like protocol messages are written to stderr.",
		Why:     "The server MAY write any UTF-8 strings to stderr.", Source: at("basic/transports#stdio"),
		Changes: "standard error",
		Apply: starting(func(_, stderr io.Writer) {
			_, _ = fmt.Fprint(stderr, "ERROR: fatal: panic: not really\n{\"level\":\"error\"}\n"+
				`{"jsonrpc":"2.0","id":1,"result":{}}`+"\n")
		})},
	{ID: "stdio.stderr-flood", Transports: OverStdio,
		Summary: "A hundred thousand characters without a newline are written to stderr.",
		Why:     "The text does not limit what is written to stderr.", Source: at("basic/transports#stdio"),
		Changes: "standard error",
		Apply:   starting(func(_, stderr io.Writer) { _, _ = fmt.Fprint(stderr, strings.Repeat("é.", 50_000)) })},
	{ID: "stdio.stderr-closed", Transports: OverStdio, Summary: "Nothing is ever written to stderr.",
		Why: "Writing to stderr is optional.", Source: at("basic/transports#stdio"), Changes: "standard error",
		Apply: starting(func(_, stderr io.Writer) {
			if c, ok := stderr.(io.Closer); ok {
				_ = c.Close()
			}
		})},
	{ID: "stdio.crlf", Transports: OverStdio, Summary: "Lines end with carriage return and newline.",
		Why:    "The newline delimits, and a carriage return before it is insignificant whitespace of JSON.",
		Source: at("basic/transports#stdio"), Changes: "standard output",
		Apply: Framing(func(_ *server.Outgoing, frame []byte) []byte {
			return append(bytes.TrimSuffix(frame, []byte("\n")), '\r', '\n')
		})},
	{ID: "stdio.padded", Transports: OverStdio,
		Summary: "Spaces and tabs stand before and after each message on its line.",
		Why:     "They are insignificant whitespace of JSON.", Source: at("basic/transports#stdio"),
		Changes: "standard output",
		Apply: Framing(func(_ *server.Outgoing, frame []byte) []byte {
			return slices.Concat([]byte("\t  "), bytes.TrimSuffix(frame, []byte("\n")), []byte("  \t\n"))
		})},
	{ID: "stdio.written-bytewise", Transports: OverStdio,
		Summary: "Each write to stdout has 7 bytes, in the midst of characters too.",
		Why:     "Newlines delimit messages, not writes.", Source: at("basic/transports#stdio"),
		Changes: "standard output",
		Apply: func(o *server.Options) {
			o.Behaviour.Stdio.Stdout = func(w io.Writer) io.Writer { return pieces{w, 7} }
		}},
	{ID: "stdio.written-together", Transports: OverStdio,
		Summary: "Messages are collected for 20 ms and written in one go.",
		Why:     "Newlines delimit messages, not writes.", Source: at("basic/transports#stdio"),
		Changes: "standard output",
		Apply: func(o *server.Options) {
			o.Behaviour.Stdio.Stdout = func(w io.Writer) io.Writer { return &collected{to: w} }
		}},
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
