package judge

import (
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var lifecycleRules = []Rule{
	{
		Name: "handshake",
		Requirements: []string{ids.LifecycleInitFirst, ids.LifecycleInitClientInitiates, ids.LifecycleInitAnswered,
			ids.LifecycleInitResultCapabilities, ids.LifecycleInitResultServerInfo, ids.LifecycleInitRequestVersion,
			ids.LifecycleInitRequestCapabilities, ids.LifecycleInitRequestClientInfo,
			ids.LifecycleInitInitializedSent, ids.LifecycleInitInitializedAfterResult,
			ids.LifecycleInitInitializedBeforeOperation, ids.LifecycleInitClientWaits, ids.LifecycleInitServerWaits,
			ids.LifecycleInitResultVersion},
		Judge: judgeHandshake,
	},
	{
		Name: "versions",
		Requirements: []string{ids.LifecycleVersionClientSupported, ids.LifecycleVersionClientLatest,
			ids.LifecycleVersionOfferOther},
		Judge: judgeVersions,
	},
	{Name: "capabilities", Requirements: gateRequirements(), Judge: judgeGates},
	{
		Name: "negotiated features",
		Requirements: []string{ids.LifecycleOperationVersion, ids.LifecycleCapabilityExperimentalGated,
			ids.LifecycleShutdownByTransport},
		Judge: judgeNegotiated,
	},
}

// basic/lifecycle#initialization
func judgeHandshake(c *Conversation, rec *Recorder) {
	first := c.firstMeaningful()
	if first == nil {
		return
	}
	if c.Init == nil || c.Init.From() != wire.Client {
		// Pings may come early; over HTTP they then belong to no session.
		if early := c.firstOtherThan("ping"); early != nil && early.From == wire.Client {
			rec.Fail(ids.LifecycleInitClientInitiates, wire.Client, "the session does not begin with initialize",
				early)
		}
		return
	}
	// Also if it was refused.
	began := c.Exchanges[slices.IndexFunc(c.Exchanges,
		func(x *Exchange) bool { return x.Method() == "initialize" })].Request
	for _, p := range []wire.Party{wire.Client, wire.Server} {
		c.judgeFirst(p, first, began, rec)
	}
	rec.Pass(ids.LifecycleInitClientInitiates, wire.Client)
	for _, id := range []string{"version", "capabilities", "client-info"} {
		rec.Pass("lifecycle.init.request-"+id, wire.Client)
	}
	answer := c.Init.Response
	for _, x := range c.Exchanges {
		if x.Request.Seq > began.Seq { // what came before is judged above
			c.judgeEarly(x, answer, rec)
		}
	}
	if !c.Handshaken() {
		if c.Initialized != nil {
			why := "initialize was not answered"
			if answer != nil {
				why = "initialize was answered with an error"
			}
			rec.Fail(ids.LifecycleInitInitializedAfterResult, wire.Client,
				"notifications/initialized was sent although "+why, c.Init.Request, answer, c.Initialized)
		}
		return
	}
	rec.Pass(ids.LifecycleInitAnswered, wire.Server)
	rec.Pass(ids.LifecycleInitResultCapabilities, wire.Server)
	if c.Version != "" {
		rec.Pass(ids.LifecycleInitResultVersion, wire.Server)
	}
	rec.Pass(ids.LifecycleInitResultServerInfo, wire.Server)
	c.judgeInitialized(answer, rec)
}

// judgeFirst judges that a party says nothing but pings before the first initialize; first is the first
// message of all. That notifications/initialized comes too early is judged elsewhere.
func (c *Conversation) judgeFirst(p wire.Party, first, began *wire.Event, rec *Recorder) {
	spoke := false
	for _, e := range c.Messages {
		if e.From != p || e.Seq < first.Seq || e.Msg.Kind == wire.Invalid || wire.TooMany(c.Head(e)) {
			continue
		}
		spoke = true
		if e.Seq >= began.Seq {
			break
		}
		switch {
		case e.Msg.Method == "ping", e.Msg.IsResponse(), e == c.Initialized:
		case p == wire.Server && e.Msg.Method == "notifications/message":
			// Logging is excepted from what a server leaves until notifications/initialized, on the same page.
			rec.Warn(ids.LifecycleInitFirst, p, "a log message came before initialize", e)
			return
		default:
			rec.Fail(ids.LifecycleInitFirst, p, e.Msg.Method+" was sent before initialize", e)
			return
		}
	}
	if spoke {
		rec.Pass(ids.LifecycleInitFirst, p)
	}
}

// firstMeaningful returns the first message that can be recognised. It passes over
// the error in the body of a refused HTTP request, and over requests that were
// refused because there were too many.
func (c *Conversation) firstMeaningful() *wire.Event {
	for _, e := range c.Messages {
		head := c.Head(e)
		refusal := e.From == wire.Server && head != nil && head.HTTP.Status >= http.StatusBadRequest &&
			!e.Msg.ID.Usable()
		if e.Msg.Kind != wire.Invalid && !refusal && !wire.TooMany(head) {
			return e
		}
	}
	return nil
}

// firstOtherThan returns the first valid request or notification that does not have
// a method, or nil.
func (c *Conversation) firstOtherThan(method string) *wire.Event {
	for _, e := range c.Messages {
		if e.Msg.Kind != wire.Invalid && !e.Msg.IsResponse() && e.Msg.Method != method {
			return e
		}
	}
	return nil
}

// judgeEarly judges a request that was made before its sender was free to.
func (c *Conversation) judgeEarly(x *Exchange, answer *wire.Event, rec *Recorder) {
	switch {
	case x == c.Init || x.Method() == "ping", x.Method() == "initialize" && x.Error() != nil, x.Deferred():
	case x.From() == wire.Client && (answer == nil || x.Request.Seq < answer.Seq):
		rec.Fail(ids.LifecycleInitClientWaits, wire.Client, x.Method()+" was sent before initialize was answered",
			x.Request)
	case x.From() == wire.Client:
		rec.Pass(ids.LifecycleInitClientWaits, wire.Client)
	case !c.Ready(x.Request):
		rec.Fail(ids.LifecycleInitServerWaits, wire.Server, x.Method()+" was sent before notifications/initialized",
			x.Request)
	default:
		rec.Pass(ids.LifecycleInitServerWaits, wire.Server)
	}
}

// judgeInitialized judges whether and when the client announces that it is ready (basic/lifecycle#initialization). If
// it does so too early, nothing else is judged.
func (c *Conversation) judgeInitialized(answer *wire.Event, rec *Recorder) {
	const sent, inTime = ids.LifecycleInitInitializedSent, ids.LifecycleInitInitializedAfterResult
	const before = ids.LifecycleInitInitializedBeforeOperation
	early := c.operations(answer, c.Initialized)
	served := slices.IndexFunc(early, func(x *Exchange) bool { return c.end(x) != math.MaxInt })
	switch {
	case c.Initialized != nil && c.Initialized.Seq < answer.Seq:
		rec.Fail(inTime, wire.Client, "notifications/initialized came before the answer to initialize", c.Initialized,
			answer)
	case c.Initialized != nil:
		rec.Pass(sent, wire.Client)
		rec.Pass(inTime, wire.Client)
		c.judgeOrder(early, answer, rec)
	case served >= 0:
		rec.Fail(sent, wire.Client, "notifications/initialized was never sent", answer, early[served].Request)
	case len(early) > 0 && c.wentOn(early[0].Request):
		x := early[0]
		rec.Warn(before, wire.Client, x.Method()+" was sent before notifications/initialized, and has no answer yet",
			x.Request)
	}
}

// judgeOrder judges the requests that precede the notification. They may have been sent before the client read the
// answer to initialize, which is another fault, unless the client announces itself only when one was answered. On
// other transports than stdio each message travels by itself.
func (c *Conversation) judgeOrder(early []*Exchange, answer *wire.Event, rec *Recorder) {
	const before = ids.LifecycleInitInitializedBeforeOperation
	inOrder := c.Transport == transport.NameStdio
	for _, x := range early {
		message := x.Method() + " was sent before notifications/initialized"
		answered := x.Response != nil && x.Response.Seq < c.Initialized.Seq
		switch {
		case answered && c.Initialized.At-x.Request.At >= overtaking:
			rec.Fail(before, wire.Client, message+", which came only after the answer", x.Request, x.Response,
				c.Initialized)
			return
		case inOrder && c.knew(x.Request, answer):
			rec.Fail(before, wire.Client, message, x.Request, c.Initialized)
			return
		}
	}
	switch {
	case len(early) == 0:
		rec.Pass(before, wire.Client)
	case inOrder:
		rec.Warn(before, wire.Client, early[0].Method()+" was sent before notifications/initialized", early[0].Request,
			c.Initialized)
		return
	}
	if !inOrder {
		return
	}
	if c.Initialized.At-answer.At >= Crossing {
		rec.Pass(ids.LifecycleInitServerWaits, wire.Server) // it had time to ask, and did not
	}
	rec.Pass(ids.LifecycleInitClientWaits, wire.Client)
}

// operations returns the client's requests after an event and, unless that is nil, before another, apart from pings.
func (c *Conversation) operations(after, before *wire.Event) []*Exchange {
	var all []*Exchange
	for _, x := range c.Exchanges {
		between := x.Request.Seq > after.Seq && (before == nil || x.Request.Seq < before.Seq)
		if x.From() == wire.Client && x.Method() != "initialize" && x.Method() != "ping" && between {
			all = append(all, x)
		}
	}
	return all
}

// judgeVersions judges the versions that both sides name (basic/lifecycle#version-negotiation).
// Nobody supports a revision that was never published.
func judgeVersions(c *Conversation, rec *Recorder) {
	if c.Init == nil || c.Init.From() != wire.Client {
		return
	}
	asked, ok := wire.At(c.Init.Request.Msg.Params, "protocolVersion").(string)
	if ok { // else the schema judges it
		judgeInvented(ids.LifecycleVersionClientSupported, asked, "initialize asks for", c.Init.Request, rec)
	}
	switch {
	case !c.Handshaken() || c.Version == "":
		return
	case c.Version == asked:
		if c.Initialized != nil && schema.IsPublished(asked) {
			rec.Pass(ids.LifecycleVersionClientSupported, wire.Client)
		}
		return
	}
	judgeInvented(ids.LifecycleVersionOfferOther, c.Version, "initialize is answered with", c.Init.Response, rec)
	if ok && schema.IsPublished(c.Version) {
		rec.Pass(ids.LifecycleVersionOfferOther, wire.Server)
	}
	if !slices.Contains(schema.Published, asked) || !slices.Contains(schema.Published, c.Version) || asked > c.Version {
		return
	}
	switch {
	case c.Initialized != nil:
		rec.Fail(ids.LifecycleVersionClientLatest, wire.Client,
			"the client asked for version "+asked+" and goes on with "+c.Version+
				", which is later: a client that supports the later version must ask for it, and any other must "+
				"disconnect",
			c.Init.Request, c.Init.Response, c.Initialized)
	case c.finished(wire.Client):
		rec.Pass(ids.LifecycleVersionClientLatest, wire.Client) // it left
	}
}

// judgeInvented judges a version that is not the name of a revision. A version without the form of a revision may be
// the name of a draft, so it is only a warning.
func judgeInvented(id, version, what string, e *wire.Event, rec *Recorder) {
	message := what + " version " + wire.Quote(version, 40) + ", which is not a published revision of the protocol"
	switch {
	case schema.IsPublished(version):
	case revisionName.MatchString(version):
		rec.Fail(id, e.From, message, e)
	default:
		rec.Warn(id, e.From, message, e)
	}
}

// gate ties a message to the party that must have declared its capability.
type gate struct {
	sender      wire.Party // of the message
	method      string
	declarer    wire.Party
	requirement string
}

// basic/lifecycle#operation: only capabilities that were negotiated are used.
var gates = []gate{
	{wire.Server, "sampling/createMessage", wire.Client, ids.LifecycleCapabilityServerUsesSampling},
	{wire.Server, "roots/list", wire.Client, ids.LifecycleCapabilityServerUsesRoots},
	{wire.Server, "elicitation/create", wire.Client, ids.LifecycleCapabilityServerUsesElicitation},
	{wire.Server, "notifications/tools/list_changed", wire.Server,
		ids.LifecycleCapabilityServerEmitsToolsListChanged},
	{wire.Server, "notifications/prompts/list_changed", wire.Server,
		ids.LifecycleCapabilityServerEmitsPromptsListChanged},
	{wire.Server, "notifications/resources/list_changed", wire.Server,
		ids.LifecycleCapabilityServerEmitsResourcesListChanged},
	{wire.Server, "notifications/resources/updated", wire.Server, ids.LifecycleCapabilityServerEmitsResourceUpdates},
	{wire.Server, "notifications/message", wire.Server, ids.LoggingCapabilityDeclared},
	{wire.Client, "tools/list", wire.Server, ids.LifecycleCapabilityClientUsesTools},
	{wire.Client, "tools/call", wire.Server, ids.LifecycleCapabilityClientUsesTools},
	{wire.Client, "prompts/list", wire.Server, ids.LifecycleCapabilityClientUsesPrompts},
	{wire.Client, "prompts/get", wire.Server, ids.LifecycleCapabilityClientUsesPrompts},
	{wire.Client, "resources/list", wire.Server, ids.LifecycleCapabilityClientUsesResources},
	{wire.Client, "resources/templates/list", wire.Server, ids.LifecycleCapabilityClientUsesResources},
	{wire.Client, "resources/read", wire.Server, ids.LifecycleCapabilityClientUsesResources},
	{wire.Client, "resources/subscribe", wire.Server, ids.LifecycleCapabilityClientUsesResourceSubscriptions},
	{wire.Client, "resources/unsubscribe", wire.Server, ids.LifecycleCapabilityClientUsesResourceSubscriptions},
	{wire.Client, "logging/setLevel", wire.Server, ids.LifecycleCapabilityClientUsesLogging},
	{wire.Client, "completion/complete", wire.Server, ids.LifecycleCapabilityClientUsesCompletions},
	{wire.Client, "notifications/roots/list_changed", wire.Client,
		ids.LifecycleCapabilityClientEmitsRootsListChanged},
}

func gateRequirements() []string {
	var ids []string
	for _, g := range gates {
		if !slices.Contains(ids, g.requirement) {
			ids = append(ids, g.requirement)
		}
	}
	return ids
}

func judgeGates(c *Conversation, rec *Recorder) {
	if !c.Handshaken() {
		return
	}
	for _, e := range c.Messages {
		if e.Msg.Kind != wire.Request && e.Msg.Kind != wire.Notification {
			continue
		}
		informed := c.informed(e)
		for _, g := range gates {
			if g.sender == e.From && g.method == e.Msg.Method && (g.declarer == e.From || informed) {
				capability := wire.Capability(g.method)
				rec.Check(c.Declared(g.declarer, capability), g.requirement, e.From,
					e.Msg.Method+" was sent although the "+string(g.declarer)+" has not declared the capability "+
						capability, declaring(c, g.declarer, e)...)
			}
		}
	}
	// A server that could have sent it and did not has kept to what was declared.
	for _, g := range gates {
		if g.sender == wire.Server && !c.Declared(g.declarer, wire.Capability(g.method)) && c.Initialized != nil {
			rec.Pass(g.requirement, wire.Server)
		}
	}
}

// informed reports whether the sender of a message knew what its peer declares: a server from
// initialize on, a client once it has shown that it has read the answer, or long after that.
func (c *Conversation) informed(e *wire.Event) bool {
	if e.From == wire.Server {
		return e.Seq > c.Init.Request.Seq
	}
	return e.Seq > c.Init.Response.Seq && (c.Initialized != nil && c.Initialized.Seq < e.Seq ||
		c.knew(e, c.Init.Response))
}

// introduced holds the revision that introduced a method, for methods that came
// after 2024-11-05.
var introduced = map[string]string{
	"elicitation/create": "2025-06-18", "notifications/elicitation/complete": "2025-11-25",
	"tasks/get": "2025-11-25", "tasks/result": "2025-11-25", "tasks/list": "2025-11-25", "tasks/cancel": "2025-11-25",
	"notifications/tasks/status": "2025-11-25",
}

// revisionName is the form of the names of revisions.
var revisionName = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)

// endMethods are methods with which other protocols end a session.
var endMethods = map[string]bool{
	"shutdown": true, "exit": true, "close": true, "disconnect": true, "terminate": true, "quit": true, "goodbye": true,
	"notifications/shutdown": true, "notifications/exit": true, "notifications/close": true,
	"notifications/disconnect": true, "notifications/terminate": true,
}

// basic/lifecycle#operation and #shutdown: what goes beyond this revision.
func judgeNegotiated(c *Conversation, rec *Recorder) {
	if !c.Handshaken() {
		return
	}
	acted := make(map[wire.Party]bool)
	for _, e := range c.Messages {
		if e.Seq < c.Init.Response.Seq || e == c.Init.Response || e == c.Initialized || e.Msg.Kind == wire.Invalid {
			continue
		}
		acted[e.From] = true
		if e.Msg.Kind != wire.Request && e.Msg.Kind != wire.Notification {
			continue
		}
		switch since := introduced[e.Msg.Method]; {
		case endMethods[e.Msg.Method] && !c.extended():
			rec.Fail(ids.LifecycleShutdownByTransport, e.From,
				e.Msg.Method+" is not a message of MCP: a session ends with its transport", e)
		case since > c.Version && revisionName.MatchString(c.Version):
			message := e.Msg.Method + " was introduced by revision " + since + ", but " + c.Version + " was negotiated"
			if feature, _, _ := strings.Cut(e.Msg.Method, "/"); c.Declared(e.From.Peer(), feature) {
				// The other side has declared that it supports it.
				rec.Warn(ids.LifecycleOperationVersion, e.From, message, e)
			} else {
				rec.Fail(ids.LifecycleOperationVersion, e.From, message, e)
			}
		case since <= c.Version && since > c.Revision.Version:
		case e.Msg.Kind == wire.Request && !e.Msg.Has(wire.NotificationID) && !c.standard(e) && !c.extended():
			rec.Fail(ids.LifecycleCapabilityExperimentalGated, e.From,
				wire.Quote(e.Msg.Method, 80)+" is not a method of the revision, and no extension was negotiated", e)
		}
	}
	c.judgeLaterMembers(rec)
	for p := range acted {
		rec.Pass(ids.LifecycleOperationVersion, p)
		rec.Pass(ids.LifecycleCapabilityExperimentalGated, p)
		if c.finished(p) {
			rec.Pass(ids.LifecycleShutdownByTransport, p)
		}
	}
}

// standard reports whether the revision knows the method of a request, sent by
// whichever side.
func (c *Conversation) standard(e *wire.Event) bool {
	for _, p := range []schema.Party{schema.Client, schema.Server} {
		if _, ok := c.Revision.Request(p, e.Msg.Method); ok {
			return true
		}
	}
	return e.Msg.Method == ""
}

// revisionCapabilities are the capabilities that the revision names.
var revisionCapabilities = map[string]bool{
	"roots": true, "sampling": true, "elicitation": true,
	"tools": true, "resources": true, "prompts": true, "logging": true, "completions": true,
}

// extended reports whether both sides have declared something that the
// revision does not define.
func (c *Conversation) extended() bool {
	for _, p := range []wire.Party{wire.Client, wire.Server} {
		found := false
		for name, v := range c.Capabilities[p] {
			features, _ := v.(map[string]any)
			found = found || !revisionCapabilities[name] && (name != "experimental" || len(features) > 0)
		}
		if !found {
			return false
		}
	}
	return true
}

// finished reports whether a party was seen to end the session: a client by
// closing what it sends on, a server by ending after that. Over HTTP+SSE only the
// end of the client's stream can be seen.
func (c *Conversation) finished(p wire.Party) bool {
	for i := len(c.Events) - 1; i >= 0; i-- {
		switch e := c.Events[i]; {
		case e.Kind == wire.KindExit && p == wire.Server,
			e.Kind == wire.KindClose && e.From == p,
			e.Kind == wire.KindStreamEnd && e.From == wire.Client && c.Transport == "sse" &&
				strings.HasPrefix(e.Stream, "get:"),
			e.Kind == wire.KindHTTPRequest && e.HTTP != nil && e.HTTP.Method == "DELETE":
			return true
		}
	}
	return false
}
