package client

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

var lifecycleScenarios = []*client.Scenario{
	{
		Name: client.Baseline,
		Requirements: []string{ids.LifecycleVersionClientSupported, ids.LifecycleInitInstructionsOptional,
			ids.PaginationClientBothFlows, ids.PaginationClientMissingCursorEnds, ids.LifecycleVersionRevisionName},
		// The pages are small, because other scenarios compare how far the client reads a list here with ordinary
		// cursors.
		Options: func(*client.ScenarioRun) server.Options { return server.Options{PageSize: 2} },
		Judge:   judgeBaseline,
	},
	{
		Name:         "lifecycle/older-version",
		Requirements: []string{ids.LifecycleErrorVersionMismatch},
		Shows:        []string{ids.HTTPClientVersionHeaderNegotiated},
		Needs:        client.NeedsHandshake,
		Options:      answering("2024-11-05"),
		Judge: func(t *client.T) {
			// The client may continue or leave.
			const id = ids.LifecycleErrorVersionMismatch
			switch c := t.Handshake(); {
			case c == nil:
			case c.Version == askedVersion(c):
				t.Inconclusive("the client asks for the older version itself", id)
			default:
				judgeCoped(t, "initialize was answered with an older version", client.LastEvents(c, 3), id)
			}
		},
	},
	{
		Name:         "lifecycle/newer-version",
		Requirements: []string{ids.LifecycleVersionDisconnect, ids.LifecycleErrorVersionMismatch},
		Needs:        "the client did not get an answer to initialize",
		Options:      answering("2031-01-01"),
		Judge:        judgeUnusable,
	},
	{
		// A client that continues with a later revision than it asked for supports that revision, too.
		Name:         "lifecycle/later-version",
		Requirements: []string{ids.LifecycleVersionClientLatest, ids.LifecycleErrorVersionMismatch},
		Needs:        "the client did not get an answer to initialize",
		Options:      answering(laterVersion),
		Judge: func(t *client.T) {
			c := t.Handshake()
			if c == nil {
				return
			}
			switch asked := askedVersion(c); {
			case asked >= laterVersion:
				t.Inconclusive("the client asks for version "+asked+", and none that is later was published",
					ids.LifecycleVersionClientLatest, ids.LifecycleErrorVersionMismatch)
			default: // the passive rules judge whether it goes on
				judgeCoped(t, "initialize was answered with a later version", client.LastEvents(c, 3),
					ids.LifecycleErrorVersionMismatch)
			}
		},
	},
	{
		Name:         "lifecycle/no-version",
		Requirements: []string{ids.LifecycleVersionDisconnect, ids.LifecycleErrorVersionMismatch},
		Needs:        "the client did not get an answer to initialize",
		Options:      answering("1.0.0"),
		Judge:        judgeUnusable,
	},
	{
		// The client has no session with which it could continue.
		Name:         "lifecycle/refused",
		Requirements: []string{ids.LifecycleInitInitializedAfterResult},
		Needs:        "the client did not send initialize",
		Options: handling("initialize", func(context.Context, *server.Request, server.Handler) (any, *wire.Error) {
			return nil, &wire.Error{Code: server.InternalError, Message: "Internal error: the server cannot serve"}
		}),
		Judge: func(t *client.T) {
			for _, c := range t.Conversations {
				if c.Init != nil && c.Init.Response != nil && c.Initialized == nil {
					t.Exercised(ids.LifecycleInitInitializedAfterResult)
				}
			}
		},
	},
	{
		Name: "lifecycle/slow-answer",
		Requirements: []string{ids.LifecycleInitClientWaits, ids.LifecycleInitInitializedAfterResult,
			ids.LifecycleInitFirst},
		Shows: []string{ids.LifecycleCapabilityClientEmitsRootsListChanged, ids.HTTPClientSessionHeader},
		Needs: client.NeedsHandshake,
		Options: func(run *client.ScenarioRun) server.Options {
			return handling("initialize", func(ctx context.Context, r *server.Request, next server.Handler) (any,
				*wire.Error) {
				r.Detach()
				_ = r.Sleep(ctx, run.Patience/5)
				return next(ctx, r)
			})(run)
		},
		// The passive rules judge messages that come too early. A client that does not use the time has waited.
		Judge: func(t *client.T) {
			for _, c := range t.Conversations {
				if !c.Handshaken() || c.Initialized == nil {
					continue
				}
				asked, early := false, false
				for _, e := range c.Messages {
					switch {
					case e.From != wire.Client || e.Msg.Kind == wire.Invalid || e.Msg.IsResponse() ||
						e.Msg.Method == "ping":
					case e == c.Init.Request:
						asked = true
					case e.Seq < c.Init.Response.Seq:
						early = true
						if !asked && e != c.Initialized {
							t.Violation(ids.LifecycleInitFirst, e.Msg.Method+" was sent before initialize", e)
						}
					}
				}
				if !early {
					t.Exercised(ids.LifecycleInitClientWaits, ids.LifecycleInitInitializedAfterResult,
						ids.LifecycleInitFirst)
				}
			}
		},
	},
	{
		Name: "lifecycle/unanswered", Lane: client.Waiting,
		Requirements: []string{ids.CancellationNotInitialize, ids.LifecycleTimeoutEstablished,
			ids.LifecycleErrorRequestTimeout},
		Needs: "the client did not send initialize",
		Options: func(*client.ScenarioRun) server.Options {
			return server.Options{Behaviour: server.Behaviour{
				Breaks: []string{ids.BaseResponsePresent, ids.LifecycleInitAnswered, ids.HTTPServerSSENoEarlyClose},
				Methods: map[string]server.Middleware{"initialize": func(_ context.Context, r *server.Request,
					_ server.Handler) (any, *wire.Error) {
					r.Detach()
					<-r.Session.Context().Done()
					return server.NoAnswer, nil
				}},
			}}
		},
		Judge: judgeUnanswered,
	},
	{
		Name:         "lifecycle/early-ping",
		Requirements: []string{ids.LifecycleInitServerEarlyPing, ids.LifecycleInitServerEarlyLogging},
		Shows:        []string{ids.PingResponsePrompt},
		Options: func(run *client.ScenarioRun) server.Options {
			return server.Options{Behaviour: server.Behaviour{
				Breaks: []string{ids.HTTPServerSSERelatedMessages},
				Methods: map[string]server.Middleware{"initialize": func(ctx context.Context, r *server.Request,
					next server.Handler) (any, *wire.Error) {
					result, rpcErr := next(ctx, r)
					early := &client.Asker{Request: r, Patience: run.Patience / 5}
					r.Detach()
					early.Notify("notifications/message",
						map[string]any{"level": "info", "data": "not initialized yet"})
					// Over HTTP the client may wait for the id of the session.
					early.AskUser("early-ping", "ping", nil)
					return result, rpcErr
				}},
			}}
		},
		Judge: func(t *client.T) {
			t.JudgeContinued("a ping and a log message came before the answer to initialize",
				ids.LifecycleInitServerEarlyPing, ids.LifecycleInitServerEarlyLogging)
			x, ok := t.Answered("early-ping")
			switch c := t.Handshake(); {
			case ok:
				judgePing(t, x, ids.PingResponsePrompt, "")
			case x != nil && c != nil && c.Initialized != nil && answeredSince(c, x.Request) &&
				astray(t, x.Request) == nil:
				t.Violation(ids.PingResponsePrompt, "a ping before the answer to initialize got no answer, neither "+
					"then nor later, although the client went on", x.Request)
			}
		},
	},
	{
		Name: "lifecycle/additions",
		Requirements: []string{ids.LifecycleCapabilityServerExperimental, ids.LifecycleCapabilityServerAdditional,
			ids.LifecycleInitInstructionsOptional, ids.BaseMessageUTF8Accepted, ids.LifecycleVersionClientSupported},
		Options: func(*client.ScenarioRun) server.Options {
			return server.Options{
				Instructions: "Grüße — 你好 — 🙂 — \u2028 — Ωμέγα",
				Behaviour: server.Behaviour{
					Lifecycle: server.Lifecycle{Version: agreeing},
					Methods: map[string]server.Middleware{
						"initialize": server.Edit(func(_ *server.Request, result map[string]any) {
							capabilities, _ := result["capabilities"].(map[string]any)
							capabilities["experimental"] = map[string]any{
								"com.example/unknown": map[string]any{"enabled": true},
							}
							capabilities["com.example.capability"] = map[string]any{}
						}),
					},
				},
			}
		},
		Judge: func(t *client.T) {
			if judgeAgreed(t) {
				return
			}
			t.JudgeContinued("the initialize result came with instructions, and with capabilities that the "+
				"revision does not have", ids.LifecycleCapabilityServerExperimental,
				ids.LifecycleCapabilityServerAdditional, ids.LifecycleInitInstructionsOptional,
				ids.BaseMessageUTF8Accepted)
		},
	},
	{
		Name: "exchange/metadata",
		Requirements: []string{ids.MetaAttachResult, ids.MetaAttachObjects, ids.MetaReservedNoAssumptions,
			ids.MetaKeyNameCharacters, ids.MetaKeyNameEmpty},
		Needs: client.NeedsList,
		Options: editing([]string{ids.MetaKeyPrefixReserved}, func(result map[string]any) {
			result["_meta"] = oddMeta()
			for _, member := range []string{"tools", "resources", "resourceTemplates", "prompts"} {
				for _, item := range wire.Items(result, member) {
					if o, ok := item.(map[string]any); ok {
						o["_meta"] = oddMeta()
					}
				}
			}
		}),
		Judge: goesOn("lists came with metadata"),
	},
	{
		Name: "exchange/open-results", Requirements: []string{ids.BaseResponseResultOpen},
		Needs: client.NeedsList,
		Options: editing(nil, func(result map[string]any) {
			added(result)
			added(result["serverInfo"])
			for _, member := range client.Listed {
				for _, item := range wire.Items(result, member) {
					added(item)
				}
			}
		}),
		Judge: goesOn("results came with additional members, and so did what they list"),
	},
	{
		Name: "exchange/bare", Requirements: []string{optionalMembers},
		Needs: client.NeedsList,
		Options: editing(nil, func(result map[string]any) {
			for _, member := range []string{"tools", "resources", "resourceTemplates", "prompts"} {
				for _, item := range wire.Items(result, member) {
					bare(item)
				}
			}
			bare(result["serverInfo"])
		}),
		Judge: func(t *client.T) {
			for method := range client.Listed {
				if t.Sent(method) != nil {
					t.JudgeContinued("lists came with only the required members", optionalMembers)
					return
				}
			}
		},
	},
	{
		Name: "capabilities/none", Requirements: []string{ids.BaseSupportOtherComponents,
			ids.LifecycleErrorMissingCapability, ids.LifecycleCapabilityClientUsesTools,
			ids.LifecycleCapabilityClientUsesPrompts, ids.LifecycleCapabilityClientUsesResources,
			ids.LifecycleCapabilityClientUsesResourceSubscriptions, ids.LifecycleCapabilityClientUsesLogging,
			ids.LifecycleCapabilityClientUsesCompletions},
		Options: without("tools", "resources", "prompts", "logging", "completions"),
		Judge: func(t *client.T) {
			judgeAbstains(t)
			const others, missing = ids.BaseSupportOtherComponents, ids.LifecycleErrorMissingCapability
			const when = "the server declared no capability"
			c, ordinary := t.Handshake(), t.Baseline.Handshake()
			switch {
			case c == nil, ordinary == nil, ordinary.Initialized == nil:
			case c.Initialized == nil:
				t.Violation(others, "the client broke off the handshake with a server that has no capability",
					client.LastEvents(c, 3)...)
				judgeCoped(t, when, client.LastEvents(c, 3), missing)
			default:
				judgeCoped(t, when, client.LastEvents(c, 3), others, missing)
			}
		},
	},
	// Each capability is declared in one of these without each of the others.
	lacking("only-tools", "resources", "prompts"),
	lacking("only-resources", "tools", "prompts", "completions", "resources.subscribe", "resources.listChanged"),
	lacking("only-prompts", "tools", "resources", "logging"),
	lacking("only-features", "logging", "completions"),
}

// laterVersion is the last revision that was published.
var laterVersion = schema.Published[len(schema.Published)-1]

// revision reports whether a version has the form of MCP's revisions and drafts.
func revision(version string) bool {
	_, err := time.Parse(time.DateOnly, version)
	return err == nil || strings.HasPrefix(version, "DRAFT-")
}

// agreeing answers with a version that the server knows, and also agrees to a version that is not MCP's. A client
// that asks for such a version has to support it.
func agreeing(asked string) string {
	if slices.Contains(server.DefaultVersions(), asked) || asked != "" && !revision(asked) {
		return asked
	}
	return server.Version
}

// judgeAgreed judges whether a client supports its own requested version, if that is not a version of MCP. The server
// cannot do more in such a session.
func judgeAgreed(t *client.T) (judged bool) {
	c := t.Handshake()
	if c == nil || c.Version == "" || revision(c.Version) {
		return false
	}
	if askedVersion(c) == c.Version && !t.Interrupted() {
		t.Check(ids.LifecycleVersionClientSupported, c.Initialized != nil || len(t.Requests()) > 0,
			c.Init.Events()...).
			To(BeTrueBecause(gaveUpVersion))
	}
	return true
}

// gaveUpVersion is the finding on a client that does not support the version it asked for.
const gaveUpVersion = "the client gave up although the server answered with the version that the client had asked for"

// editing returns options of a server that changes initialize results and lists.
func editing(breaks []string, change func(result map[string]any)) func(*client.ScenarioRun) server.Options {
	return func(*client.ScenarioRun) server.Options {
		edit := server.Edit(func(_ *server.Request, result map[string]any) { change(result) })
		methods := map[string]server.Middleware{"initialize": edit}
		for method := range client.Listed {
			methods[method] = edit
		}
		return server.Options{Behaviour: server.Behaviour{Breaks: breaks, Methods: methods}}
	}
}

// added gives an object members that the revision does not know. One of them comes from a later revision.
func added(v any) {
	if o, ok := v.(map[string]any); ok {
		o["com.example.addition"] = []any{"unknown", 1, nil}
		o["icons"] = []any{map[string]any{"src": "https://example.com/icon.png", "sizes": []any{"48x48"}}}
	}
}

// required holds the members that items of lists and names of peers need, and the members that say how an item is
// used.
var required = map[string]bool{
	"name": true, "version": true, "uri": true, "uriTemplate": true, "inputSchema": true, "arguments": true,
	"required": true,
}

// bare removes all optional members from an item of a list.
func bare(item any) {
	o, _ := item.(map[string]any)
	for name := range o {
		if !required[name] {
			delete(o, name)
		}
	}
	for _, argument := range wire.Items(o, "arguments") {
		bare(argument)
	}
}

// answering returns options of a server that answers every initialize with the same
// version.
func answering(version string) func(*client.ScenarioRun) server.Options {
	return func(*client.ScenarioRun) server.Options {
		return server.Options{
			Versions: append(server.DefaultVersions(), version),
			Behaviour: server.Behaviour{
				Breaks:    []string{"*"},
				Lifecycle: server.Lifecycle{Version: func(string) string { return version }},
			},
		}
	}
}

func without(capabilities ...string) func(*client.ScenarioRun) server.Options {
	return func(*client.ScenarioRun) server.Options {
		return server.Options{
			Without: capabilities,
			// The tools stay the same without the other features.
			Behaviour: server.Behaviour{Breaks: []string{ids.ToolsEmbeddedResourceResourcesCapability}},
		}
	}
}

// use ties a method to the requirement that binds it to its capability.
type use struct{ method, requirement string }

func (u use) capability() string { return wire.Capability(u.method) }

var uses = []use{
	{"tools/list", ids.LifecycleCapabilityClientUsesTools},
	{"tools/call", ids.LifecycleCapabilityClientUsesTools},
	{"prompts/list", ids.LifecycleCapabilityClientUsesPrompts},
	{"prompts/get", ids.LifecycleCapabilityClientUsesPrompts},
	{"resources/list", ids.LifecycleCapabilityClientUsesResources},
	{"resources/templates/list", ids.LifecycleCapabilityClientUsesResources},
	{"resources/read", ids.LifecycleCapabilityClientUsesResources},
	{"resources/subscribe", ids.LifecycleCapabilityClientUsesResourceSubscriptions},
	{"logging/setLevel", ids.LifecycleCapabilityClientUsesLogging},
	{"completion/complete", ids.LifecycleCapabilityClientUsesCompletions},
}

// lacking is a server without some capabilities. It declares parts of a capability as false, which means the same as
// to leave them out (schema#servercapabilities).
func lacking(name string, capabilities ...string) *client.Scenario {
	s := &client.Scenario{
		Name: "capabilities/" + name, Judge: judgeAbstains,
		Options: func(run *client.ScenarioRun) server.Options {
			o := without(capabilities...)(run)
			o.Behaviour.Wrap("initialize", server.Edit(func(_ *server.Request, result map[string]any) {
				for _, name := range capabilities {
					feature, part, _ := strings.Cut(name, ".")
					if declared, ok := wire.At(result, "capabilities", feature).(map[string]any); ok && part != "" {
						declared[part] = false
					}
				}
			}))
			return o
		},
		Needs: "the client does not use the other capabilities with an ordinary server either",
	}
	seen := make(map[string]bool)
	for _, u := range uses {
		for _, other := range capabilities {
			if u.capability() == other && !seen[u.requirement] {
				seen[u.requirement] = true
				s.Requirements = append(s.Requirements, u.requirement)
			}
		}
	}
	return s
}

// judgeAbstains counts the features that the client uses only if they are declared: it has not used them here. If it
// used one here, the passive rules report that. A client that crashed or hung before has not abstained.
func judgeAbstains(t *client.T) {
	c := t.Handshake()
	if c == nil || c.Initialized == nil || t.Ending.Crash() != "" || t.Ending.Uncaught() ||
		t.Ending.Late && t.Baseline.Ending.Exit != nil {
		return
	}
	for _, u := range uses {
		if !c.Declared(wire.Server, u.capability()) && t.Baseline.Sent(u.method) != nil && t.Sent(u.method) == nil {
			t.Exercised(u.requirement)
		}
	}
}

func judgeBaseline(t *client.T) {
	c := t.Handshake()
	if c == nil {
		return
	}
	judgeName(t, c)
	// A client that continues without initialized has not given up. The passive rules report the missing initialized.
	gaveUp := c.Initialized == nil && len(t.Requests()) == 0
	if exit := t.Ending.Exit; gaveUp && (exit == nil || *exit == wire.Exit{}) {
		t.Inconclusive("the client did not go on after the handshake, but reported no failure",
			ids.LifecycleVersionClientSupported, ids.LifecycleInitInstructionsOptional)
		return
	}
	// A client that does not support the version in the answer rightly leaves.
	if asked := askedVersion(c); !gaveUp || asked == c.Version {
		t.Check(ids.LifecycleInitInstructionsOptional, gaveUp,
			client.LastEvents(c, 3)...).To(BeFalseBecause("the client gave up after the handshake"))
		if asked == c.Version {
			t.Check(ids.LifecycleVersionClientSupported, gaveUp,
				client.LastEvents(c, 3)...).To(BeFalseBecause(gaveUpVersion))
		}
	} else {
		t.Inconclusive("the client disconnected from a server that answered with another version than the one it "+
			"had asked for", ids.LifecycleInitInstructionsOptional)
	}
	judgePaging(t)
}

// judgeName judges how the client names the revision that it asks for (basic/lifecycle#version-negotiation).
func judgeName(t *client.T, c *judge.Conversation) {
	const id = ids.LifecycleVersionRevisionName
	digits := func(version string) string {
		var parts []string
		for _, part := range strings.FieldsFunc(version, func(r rune) bool { return r < '0' || r > '9' }) {
			parts = append(parts, strings.TrimLeft(part, "0"))
		}
		return strings.Join(parts, "")
	}
	switch asked := askedVersion(c); {
	case asked == server.Version:
		t.Exercised(id)
	case digits(asked) == digits(server.Version) ||
		strings.ReplaceAll(server.Version, "-", "") == strings.ReplaceAll(strings.TrimPrefix(asked, "v"), "-", ""):
		t.Violation(id, "the client asks for version "+wire.Quote(asked, 40)+"; the name of the revision is "+
			server.Version, c.Init.Request)
	default:
		t.Inconclusive("the client asks for another revision than "+server.Version, id)
	}
}

// judgeUnusable judges a client that gets an answer with a version that it cannot use
// (basic/lifecycle#version-negotiation).
func judgeUnusable(t *client.T) {
	const id, copes = ids.LifecycleVersionDisconnect, ids.LifecycleErrorVersionMismatch
	c := t.Handshake()
	if c == nil {
		return
	}
	for _, c := range t.Conversations {
		if on := goesOnAfterInit(c); on != nil {
			t.Violation(id, "the client goes on with version "+wire.Quote(c.Version, 40)+", which it did not ask "+
				"for and which does not exist", c.Init.Request, c.Init.Response, on)
			judgeCoped(t, "the server answered with a version that does not exist", client.LastEvents(c, 3), copes)
			return
		}
	}
	switch {
	case t.Died() != "":
		judgeCoped(t, "the server answered with a version that does not exist", client.LastEvents(c, 3), copes)
		t.Inconclusive("the client crashed instead of disconnecting", id)
	case t.Ending.Exit != nil:
		t.Exercised(id)
		judgeCoped(t, "the server answered with a version that does not exist", client.LastEvents(c, 3), copes)
	case t.Ending.Late && !t.Ending.Busy && t.Baseline.Ending.Exit != nil:
		t.Violation(id, client.TimedOut("the client does not disconnect from a server whose version does not exist"),
			c.Init.Response)
	}
}

// goesOnAfterInit returns the first message with which the client continued after the answer to initialize, or nil.
// Before notifications/initialized, which follows that answer (basic/lifecycle#initialization), requests may have
// been under way already.
func goesOnAfterInit(c *judge.Conversation) *wire.Event {
	if !c.Handshaken() {
		return nil
	}
	for _, e := range c.Messages {
		if (c.Initialized == nil || e.Seq < c.Initialized.Seq) && e.At-c.Init.Response.At < judge.Crossing {
			continue
		}
		if e.From == wire.Client && e.Seq > c.Init.Response.Seq &&
			(e.Msg.Kind == wire.Request && e.Msg.Method != "ping" || e.Msg.Kind == wire.Notification) {
			return e
		}
	}
	return nil
}

// askedVersion returns the version that the client asked for.
func askedVersion(c *judge.Conversation) string {
	asked, _ := wire.At(c.Init.Request.Msg.Params, "protocolVersion").(string)
	return asked
}

// judgeUnanswered judges a client that gets no answer to its initialize. The passive rules judge whether it cancels
// the request (basic/utilities/cancellation#behavior-requirements).
func judgeUnanswered(t *client.T) {
	const cancels, limits, copes = ids.CancellationNotInitialize, ids.LifecycleTimeoutEstablished,
		ids.LifecycleErrorRequestTimeout
	var asked *judge.Exchange
	for _, c := range t.Conversations {
		if c.Init == nil || c.Init.Response != nil {
			continue
		}
		asked = c.Init
		if c.Init.Cancelled != nil {
			t.Exercised(limits)
			return
		}
	}
	switch died := t.Died(); {
	case asked == nil:
	case died != "":
		t.Violation(copes, "the client "+died+" when initialize was not answered", asked.Request)
	case t.Ending.Exit != nil && len(t.Baseline.Requests()) > 0:
		t.Exercised(cancels, limits, copes)
	case t.Ending.Late:
		judgeWaiting(t, asked, limits)
		t.Inconclusive(client.TimedOut("the client still waited for the answer to initialize at the time limit "+
			"of the scenario"),
			cancels, copes)
	}
}

// oddMeta returns metadata with unusual keys, all of them allowed.
func oddMeta() map[string]any {
	return map[string]any{
		"com.example/a-b_c.d": "x", "a-b": 1, "a_b": []any{}, "a.b": nil, "com.example/": map[string]any{},
		"modelcontextprotocol.io/x": 7, "mcp.dev/y": []any{true},
	}
}

// judgeCoped judges requirements that a client satisfies by coping with something. It may continue, end in order, or
// end with a report of the fault.
func judgeCoped(t *client.T, after string, proof []*wire.Event, ids ...string) {
	ok, decided, _ := t.Continued()
	end := t.Ending
	switch died := t.Died(); {
	case died != "":
		for _, id := range ids {
			t.Violation(id, "the client "+died+" after "+after, proof...)
		}
	case end.Late && !end.Busy && t.Baseline.Ending.Exit != nil:
		for _, id := range ids {
			t.Violation(id, client.TimedOut("the client hangs after "+after), proof...)
		}
	case decided && ok, end.Exit != nil && (*end.Exit == (wire.Exit{}) || usedMethod(t, http.MethodDelete) ||
		reported(end)):
		t.Exercised(ids...)
	case end.Exit != nil:
		t.Inconclusive("the client "+end.Exit.String()+" after "+after+
			", and mcpconform cannot tell whether it reported that or failed", ids...)
	}
}

// reported reports whether the client wrote something before its end, other than the trace of an exception.
func reported(e client.Ending) bool { return strings.TrimSpace(e.Output) != "" && !e.Uncaught() }
