package server

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// Versions that no implementation can support: one before the protocol, and one
// that is later than any, of a day that is in no calendar.
const (
	impossibleVersion = "1999-01-01"
	futureVersion     = "2099-02-30"
)

// unsupportedVersions is the lane of the checks that ask for them: whether what the server offers is supported is
// tried once.
const unsupportedVersions = "unsupported versions"

// basic/lifecycle
var lifecycleChecks = []*check.Check{
	{
		Name:         "lifecycle/version-echoed",
		Requirements: []string{ids.LifecycleVersionEchoSupported, ids.LifecycleVersionRevisionName},
		Body: func(t *check.T) {
			// A server that supports the requested version answers with that one. The run goes on only if it does.
			t.Show(t.Target.Init.Events()...)
			if v, _ := t.Target.Init.Result()["protocolVersion"].(string); v != client.Version &&
				digits(v) == digits(client.Version) {
				t.Violation(ids.LifecycleVersionRevisionName,
					"the revision is called "+quote(v)+", not "+quote(client.Version))
			}
			t.Expect(t.Target.Init).To(HaveMember("protocolVersion", client.Version))
		},
	},
	{
		Name:         "lifecycle/version-echoed-later",
		Requirements: []string{ids.LifecycleVersionEchoSupported},
		Needs:        check.Needs{Session: check.None, Lane: check.Last},
		Body: func(t *check.T) {
			// A server supports the same versions in all sessions. The other sessions have begun by now.
			if t.Target.Init.Result()["protocolVersion"] != client.Version {
				t.Inconclusive("the server does not support revision %s in the first session, either", client.Version)
			}
			t.Show(t.Target.Init.Events()...)
			for _, l := range t.Logs() {
				for _, x := range l.Requests(wire.Client, "initialize") {
					if x.Result() != nil && at(x.Request.Msg.Params, "protocolVersion") == client.Version {
						t.Show(x.Events()...)
						t.Expect(x).To(HaveMember("protocolVersion", client.Version), "in another session")
					}
				}
			}
		},
	},
	unsupportedVersion("lifecycle/version-unsupported", impossibleVersion),
	unsupportedVersion("lifecycle/version-of-the-future", futureVersion),
	// Names of another form, of which each costs a process over stdio.
	unsupportedVersion("lifecycle/version-misspelled", client.Version+"-mcpconform", transport.NameHTTP,
		transport.NameSSE),
	unsupportedVersion("lifecycle/version-of-another-form", "1.0.0", transport.NameHTTP, transport.NameSSE),
	{
		Name:         "lifecycle/version-latest-offered",
		Requirements: []string{ids.LifecycleVersionOfferLatest},
		Needs:        check.Needs{Session: check.None, Lane: unsupportedVersions},
		Body: func(t *check.T) {
			// The server has to offer the latest version that it supports, so not one older than the version under
			// test. Another check may have asked already.
			x := asksFor(t, impossibleVersion)
			if x == nil {
				s := t.Connect(ofVersion(impossibleVersion, capable))
				x = t.CallOn(s, "initialize", s.InitializeParams(),
					client.Deliberately(ids.LifecycleVersionClientSupported))
			}
			t.Show(x.Events()...)
			offered, _ := x.Result()["protocolVersion"].(string)
			if !published(offered) || offered == impossibleVersion {
				t.Inconclusive("the server offered no other version")
			}
			if offered < client.Version {
				t.Fail("the server offers %s although it supports %s", offered, client.Version)
			}
		},
	},
	{
		Name:         "lifecycle/incomplete-initialize",
		Requirements: []string{ids.BaseErrorInvalidParams},
		Shows:        []string{ids.LifecycleVersionOfferOther},
		Needs:        check.Needs{Session: check.Raw, Lane: lastInProcess, Options: lowIDsFree(capable)},
		Body:         incompleteInitialize,
	},
	{
		Name: "lifecycle/initialize-without-id",
		Requirements: []string{ids.BaseNotificationNoResponse, ids.LifecycleCapabilityClientAdditional,
			ids.LifecycleCapabilityClientExperimental},
		Needs: check.Needs{Session: check.Raw, Options: experimental(additional(offeringAllBut("sampling")))},
		Body: func(t *check.T) {
			// Many servers treat messages before the handshake in other code than messages after it.
			params := t.Session.InitializeParams()
			sent := t.Send(string(client.Marshal(map[string]any{"jsonrpc": "2.0", "method": "initialize",
				"params": params})), client.Deliberately("*"))
			t.Settle()
			x, err := t.Session.Call(t.Context, "initialize", params)
			named := func(e *wire.Event) bool {
				return x.Request != nil && e.Msg.IsResponse() && e.Msg.ID.Key() == x.Request.Msg.ID.Key()
			}
			if x.Response != nil && !named(x.Response) {
				_ = t.Session.Fence(t.Context) // the answer that says what it answers may come as well
			}
			if slices.ContainsFunc(t.Since(0), named) { // otherwise what has no id may be the answer to this one
				t.Expect(t.Since(0)).ToNot(Carry("an answer to an initialize without an id (a notification)",
					func(e *wire.Event) bool {
						return answersNothing(t, e) && !t.Refused(sent, e)
					}))
			}
			if err == nil && x.Result() != nil {
				t.Notify("notifications/initialized", nil)
				t.Fence()
				return
			}
			// No sentence says that initialize is served on the connection on which one without an id was sent.
			for _, declares := range []struct {
				id string
				client.Options
			}{
				{ids.LifecycleCapabilityClientAdditional, additional(capable)},
				{ids.LifecycleCapabilityClientExperimental, experimental(capable)},
			} {
				t.Clear()
				s := t.Connect(declares.Options)
				t.Check(declares.id, t.CallOn(s, "initialize", s.InitializeParams())).To(HaveResult())
			}
			t.Note("after an initialize without an id, the server serves none with an id on the same connection")
		},
	},
	{
		Name:         "lifecycle/no-capabilities",
		Requirements: []string{ids.BaseSupportOtherComponents, ids.LifecycleErrorMissingCapability},
		Needs:        check.Needs{Liveness: true, Session: check.Raw},
		Body: func(t *check.T) {
			// A client that declares no capability is served too; the rule finds out whether the server uses one.
			handshake(t)
			for _, method := range t.Served() {
				t.Expect(t.Call(method, nil)).To(HaveResult())
			}
			t.About(ids.LifecycleErrorMissingCapability)
			tempt(t)
			t.Fenced()
		},
	},
	{
		Name: "lifecycle/other-client",
		Requirements: []string{
			ids.LifecycleCapabilityServerUsesSampling, ids.LifecycleCapabilityServerUsesRoots,
			ids.LifecycleCapabilityServerUsesElicitation,
		},
		Needs: waiting(check.Needs{
			Session: check.Fresh, Transports: []string{transport.NameHTTP, transport.NameSSE}, ToolRoles: offers,
			Lacking: calling(offers...).Lacking,
		}),
		Body: func(t *check.T) {
			// The capabilities of another client say nothing about this one. It connects just before each call, so
			// that it is the last to connect even while other checks open sessions. The rule judges what the calls
			// ask for.
			if conn, ok := t.Session.Conn.(*transport.HTTPConn); ok && conn.SessionID() == "" {
				t.Skip("without sessions the server cannot tell clients apart")
			}
			var open []*client.Pending
			for range t.Count(1, 2, 3) {
				other := t.Connect(capable)
				if x, err := other.Call(t.Context, "initialize", other.InitializeParams()); err != nil ||
					x.Result() == nil {
					t.Inconclusive("the server does not serve a second client")
				}
				for _, role := range offers {
					if call, ok := knownTool(t, role); ok {
						open = append(open, t.Start("tools/call", call.Params()))
					}
				}
				t.Fence()
			}
			giveUp(t, open)
			t.Fence()
		},
	},
	{
		Name:         "lifecycle/older-revision",
		Requirements: []string{ids.LifecycleOperationVersion, ids.LifecycleVersionEchoSupported},
		Needs:        check.Needs{Session: check.Raw, Options: ofVersion("2025-03-26", offeringAllBut("elicitation"))},
		Body: func(t *check.T) {
			// A server that agrees on an older revision does not use what came later: the rule finds out whether it
			// does.
			x, err := t.Session.Initialize(t.Context)
			t.Show(x.Events()...)
			if !refusedWith(x, -32602) { // how lifecycle.version.offer-other warns of
				t.Must(err)
			}
			if x.Result()["protocolVersion"] != t.Session.Options.Version {
				supportsInHeader(t)
				t.Inconclusive("the server does not speak revision %s", t.Session.Options.Version)
			}
			// Over HTTP, with the older version in the header.
			t.Expect(t.Call(t.NoOp(), nil)).To(HaveResult(),
				"in a session of the older revision on which the server agreed")
			tempt(t)
			t.Fenced()
		},
	},
}

// exitChecks end the process of the lane that comes to its end with them.
var exitChecks = []*check.Check{
	{
		Name:         "lifecycle/exit",
		Requirements: []string{ids.LifecycleShutdownStdioServerExits},
		Needs: check.Needs{Session: check.Own, Lane: lastInProcess, Options: lowIDsFree(capable),
			Transports: []string{"stdio"}},
		Body: func(t *check.T) {
			// Closing stdin is what tells a stdio server to end. The rule finds out whether it does. State that a
			// session has in the server, such as a subscription, is not a reason to stay. The answers to these
			// requests do not matter here.
			var left []check.RPC
			for _, uri := range resourceURIs(t, 1) {
				if t.Session.Capability("resources.subscribe") {
					left = append(left, check.RPC{Method: "resources/subscribe", Params: map[string]any{"uri": uri}})
				}
			}
			if t.Session.Capability("logging") {
				left = append(left, check.RPC{Method: "logging/setLevel", Params: map[string]any{"level": "debug"}})
			}
			for _, role := range []string{"log", "structured"} {
				if call, ok := t.Target.ToolFor(role); ok {
					left = append(left, check.RPC{Method: "tools/call", Params: call.Params()})
				}
			}
			for _, r := range left {
				t.Call(r.Method, r.Params)
			}
			t.Must(t.Session.Conn.Close(t.Context))
		},
	},
}

// handshake opens the session of a raw connection, in which requests are served then.
func handshake(t *check.T) {
	t.Expect(t.Call("initialize", t.Session.InitializeParams())).To(HaveResult())
	t.Notify("notifications/initialized", nil)
	t.Fence()
}

// lastInProcess is the lane of the checks that share one process, which the last of them ends. The checks between
// change the offers of the server, or use ids of the server, and would mislead other checks.
const lastInProcess = "the end of the process"

// lowIDsFree is a client that numbers its requests otherwise than a server does its own.
func lowIDsFree(o client.Options) client.Options {
	o.ID = func(n int64) wire.ID { return wire.IntID(n + 1_000_000) }
	return o
}

// experimental is a client that declares an undefined feature in the place for such features, the capability
// experimental.
func experimental(o client.Options) client.Options {
	o.Capabilities = maps.Clone(o.Capabilities)
	o.Capabilities["experimental"] = map[string]any{"com.example/feature": map[string]any{"level": 1}}
	return o
}

// additional is a client that declares what no revision defines beside and inside its capabilities: their set is
// open, and so is what each of them holds.
func additional(o client.Options) client.Options {
	all := make(map[string]any)
	for name, capability := range o.Capabilities {
		more := maps.Clone(capability.(map[string]any))
		more["mcpconform"] = map[string]any{}
		all[name] = more
	}
	all["mcpconform/unlisted"] = map[string]any{}
	o.Capabilities = all
	return o
}

// incompleteInitialize sends initialize without one of its required members at a time. Over stdio, an incomplete
// initialize that is served begins the session, and is the last. No sentence makes a server check the params of
// initialize, so a served one is only a note (docs/positions.md, leniency).
func incompleteInitialize(t *check.T) {
	full := t.Session.InitializeParams()
	without := func(name string) map[string]any {
		less := maps.Clone(full)
		delete(less, name)
		return less
	}
	unnamed := without("clientInfo")
	unnamed["clientInfo"] = map[string]any{"version": "1"}
	unversioned := without("clientInfo")
	unversioned["clientInfo"] = map[string]any{"name": "mcpconform"}
	incomplete := []struct {
		how    string
		params any
	}{
		{"without params", nil},
		{"without protocolVersion", without("protocolVersion")},
		{"without clientInfo", without("clientInfo")},
		{"without capabilities", without("capabilities")},
		{"without the name in clientInfo", unnamed},
		{"without the version in clientInfo", unversioned},
	}
	served := 0
	for i, bad := range incomplete {
		t.Clear()
		s := t.Session
		if i > 0 && t.Target.Transport != transport.NameStdio {
			s = t.Connect(capable) // a session for each, which over stdio would be a process
		}
		x, err := s.Call(t.Context, "initialize", bad.params, client.Deliberately("*"))
		t.Show(x.Events()...)
		switch {
		case x.Head != nil && x.Head.HTTP.Status/100 == 4:
			// The HTTP status refuses it as well (docs/positions.md, unparseable-post).
		case err != nil:
			// The text does not say that a server stays which could not be initialised.
			t.Note("initialize %s: %v", bad.how, err)
		case x.Result() != nil:
			t.Note("initialize %s is served", bad.how)
			served++
		case bad.params == nil && refusedWith(x, -32600):
			// The schema has no such request.
		default:
			t.Check(ids.BaseErrorInvalidParams, x).To(HaveErrorCode(-32602), "%s", bad.how)
		}
		if t.Target.Transport == transport.NameStdio && (err != nil || served > 0) {
			return
		}
	}
	if served == len(incomplete) {
		t.Inconclusive("the server serves initialize even if required members are missing, which is allowed")
	}
	if t.Target.Transport == transport.NameStdio {
		t.Clear()
		if x, err := t.Session.Call(t.Context, "initialize", full); err == nil && x.Result() != nil {
			t.Notify("notifications/initialized", nil)
		}
	}
}

// capable is a client with all capabilities: no server has a reason to refuse it.
var capable = check.Capable()

func unsupportedVersion(name, version string, transports ...string) *check.Check {
	needs := check.Needs{Session: check.Raw, Options: ofVersion(version, offeringAllBut("elicitation")),
		Transports: transports, Lane: unsupportedVersions}
	if version != impossibleVersion {
		// The first one shows whether the version is supported that the server offers to all of them, and may have
		// asked for the others as well.
		needs.Session = check.None
	}
	return &check.Check{
		Name:         name,
		Requirements: []string{ids.LifecycleVersionOfferOther, ids.LifecycleErrorVersionMismatch},
		Needs:        needs,
		Body: func(t *check.T) {
			// A version that the server cannot support is answered with one that it does.
			var err error
			x := asksFor(t, version)
			if t.Session != nil || x == nil || !offersOther(x, version) {
				s := t.Session
				if s == nil {
					s = t.Connect(ofVersion(version, capable))
				}
				x, err = s.Call(t.Context, "initialize", s.InitializeParams(),
					client.Deliberately(ids.LifecycleVersionClientSupported))
			}
			t.Show(x.Events()...)
			if err != nil && !errors.Is(err, wire.ErrFlood) && t.Context.Err() == nil {
				t.Violation(ids.LifecycleErrorVersionMismatch, "an unsupported version in initialize: "+err.Error())
			}
			t.Must(err)
			if refusedWith(x, -32602) {
				// The page's own example does so, against its own text.
				t.Warning(ids.LifecycleVersionOfferOther,
					"an unsupported version was refused with an error instead of answered with another version")
				return
			}
			t.Expect(x).To(HaveResult())
			t.Expect(x).ToNot(HaveMember("protocolVersion", version), "for a version that does not exist")
			offered, _ := x.Result()["protocolVersion"].(string)
			if !published(offered) {
				t.Fail("the server offers %q, which is not the name of a protocol version", offered)
			}
			if t.Session != nil && offered == client.Version {
				t.Notify("notifications/initialized", nil)
				t.About(ids.LifecycleErrorMissingCapability)
				tempt(t)
				t.Fenced()
			}
			if t.Session != nil && t.Target.Transport == transport.NameStdio {
				asksInProcess(t, futureVersion, offered)
			}
			if offered != client.Version && schema.IsPublished(offered) {
				supportsOffered(t, offered)
			}
		},
	}
}

// supportsOffered judges whether the server supports a version that it has offered itself.
func supportsOffered(t *check.T, offered string) {
	if x := asksFor(t, offered); x != nil && x.Result()["protocolVersion"] == offered {
		return
	}
	s := t.Connect(ofVersion(offered, capable))
	again := t.CallOn(s, "initialize", s.InitializeParams(), client.Deliberately(ids.LifecycleVersionClientSupported))
	t.Expect(again).To(HaveMember("protocolVersion", offered),
		"when the client asks for the version that the server offered")
}

// offersOther reports whether an initialize that asked for a version was answered with the name of another one.
func offersOther(x *client.Exchange, version string) bool {
	offered, _ := x.Result()["protocolVersion"].(string)
	return offered != version && published(offered)
}

// asksInProcess asks a server for further versions in the process that was asked for one, as far as it answers: a
// process for each costs more. Good answers count. If the server refuses, as it may, it is asked again in a process
// of its own.
func asksInProcess(t *check.T, versions ...string) {
	for _, version := range versions {
		params := t.Session.InitializeParams()
		params["protocolVersion"] = version
		if x, err := t.Session.Call(t.Context, "initialize", params, client.Deliberately("*")); err != nil ||
			x.Result() == nil {
			return
		}
	}
}

// asksFor returns an initialize of any session that asked for a version and got a result,
// or nil.
func asksFor(t *check.T, version string) *client.Exchange {
	for _, l := range t.Logs() {
		for _, x := range l.Requests(wire.Client, "initialize") {
			if at(x.Request.Msg.Params, "protocolVersion") == version && x.Result() != nil {
				return x
			}
		}
	}
	return nil
}

// supportsInHeader fails a server that did not agree on the version of the session, and serves
// a request whose header names it: one that is not supported has to be refused with 400
// (basic/transports#protocol-version-header), as the control is.
func supportsInHeader(t *check.T) {
	if t.Target.Transport != transport.NameHTTP {
		return
	}
	with := func(version string) *transport.Response {
		r := plainRequest(t)
		r.Header, r.Deliberate = http.Header{headerVersion: {version}}, []string{"*"}
		return t.Do(r)
	}
	if with(impossibleVersion).Status != http.StatusBadRequest {
		return // it does not look at the header, as another check finds
	}
	t.Check(ids.LifecycleVersionEchoSupported,
		with(t.Session.Options.Version)).To(HaveHTTPStatus(http.StatusBadRequest),
		"with a version in the header on which the server does not agree in initialize")
}

func ofVersion(version string, o client.Options) client.Options {
	o.Version = version
	return o
}

// digits returns the digits of a text.
func digits(s string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, s)
}

// refusals are the requests of features, to be refused where the feature is
// not declared.
var refusals = []struct {
	capability, name string
	calls            []check.RPC
}{
	{"tools", "tools", []check.RPC{{Method: "tools/list"},
		{Method: "tools/call", Params: map[string]any{"name": "mcpconform-none", "arguments": map[string]any{}}}}},
	{"prompts", "prompts", []check.RPC{{Method: "prompts/list"},
		{Method: "prompts/get", Params: map[string]any{"name": "mcpconform-none"}}}},
	{"resources", "resources", []check.RPC{
		{Method: "resources/list"}, {Method: "resources/templates/list"},
		{Method: "resources/read", Params: map[string]any{"uri": "mcpconform://none"}},
	}},
	{"resources.subscribe", "resource-subscriptions", []check.RPC{
		{Method: "resources/subscribe", Params: map[string]any{"uri": "mcpconform://none"}},
		{Method: "resources/unsubscribe", Params: map[string]any{"uri": "mcpconform://none"}},
	}},
	{"logging", "logging", []check.RPC{{Method: "logging/setLevel", Params: map[string]any{"level": "error"}}}},
}

// offered reports whether the result of a request shows that the server offers the
// feature: an empty list, or the confirmation of nothing, shows that it offers nothing.
func offered(x *client.Exchange) bool {
	result := x.Result()
	switch x.Request.Msg.Method {
	case "tools/call":
		return worked(x)
	case "resources/subscribe", "logging/setLevel":
		return result != nil
	case "completion/complete":
		return len(valuesOf(x)) > 0
	}
	for _, member := range []string{"tools", "prompts", "messages", "resources", "resourceTemplates", "contents"} {
		if items, _ := result[member].([]any); len(items) > 0 {
			return true
		}
	}
	return false
}

// declaration returns the result of initialize, in which the server declares its capabilities.
func declaration(t *check.T) *wire.Event {
	for _, x := range t.Session.Log().Requests(wire.Client, "initialize") {
		if x.Result() != nil {
			return x.Response
		}
	}
	return nil
}

// declaredBy names the requirement that a result to an undeclared feature's
// request breaks.
var declaredBy = map[string]string{
	"tools": ids.ToolsCapabilityDeclared, "prompts": ids.PromptsCapabilityDeclared,
	"resources": ids.ResourcesCapabilityDeclared, "logging": ids.LoggingCapabilityDeclared,
	"resources.subscribe": ids.ResourcesCapabilityDeclared,
}

// offers are the capabilities of a client that a server may make use of.
var offers = []string{"sampling", "roots", "elicitation"}

// offeringAllBut is a client that offers all but one of them. The check of that name, such as
// lifecycle/without-roots, continues in a session that another check leaves.
func offeringAllBut(missing string) client.Options {
	o := client.Options{Capabilities: make(map[string]any)}
	var offered []string
	for _, offer := range offers {
		if offer != missing {
			o.Capabilities[offer] = map[string]any{}
			offered = append(offered, offer)
		}
	}
	o.Answers = answersFor(offered...)
	return o
}

// answersFor returns the standard answers of some of them.
func answersFor(offers ...string) map[string]client.Answer {
	answers := check.StandardAnswers()
	maps.DeleteFunc(answers, func(method string, _ client.Answer) bool {
		feature, _, _ := strings.Cut(method, "/")
		return !slices.Contains(offers, feature)
	})
	return answers
}

// maxTempted bounds the number of tools that are called to see their requests to the client.
const maxTempted = 20

// tempt calls the tools that ask the client for something, reads resources and gets prompts, all at once. For a client
// without any capability, it calls all tools that may be called. The rules then see the requests of the server to the
// client. The answers do not matter here: tempt cancels slow calls.
func tempt(t *check.T) {
	var calls []check.Call
	for _, role := range offers {
		if call, ok := knownTool(t, role); ok {
			calls = append(calls, call)
		}
	}
	tools := callable(t)
	if len(t.Session.Options.Capabilities) > 0 && !t.Thorough() {
		tools = nil
	}
	slow, _ := knownTool(t, "slow")
	for _, tool := range tools {
		taken := func(c check.Call) bool { return c.Tool == tool["name"] }
		if taken(slow) || slices.ContainsFunc(calls, taken) || t.Target.Known(tool) {
			continue // it was called for its role, or only waits
		}
		if len(calls) >= maxTempted {
			break
		}
		if arguments, ok := check.ShortArguments(tool["inputSchema"]); ok {
			calls = append(calls, check.Call{Tool: tool["name"].(string), Arguments: arguments})
		}
	}
	var open []*client.Pending
	for _, call := range calls {
		open = append(open, t.Start("tools/call", call.Params()))
	}
	few := 1 // of each other kind
	if len(t.Session.Options.Capabilities) == 0 || t.Thorough() {
		few = 2
	}
	for _, uri := range resourceURIs(t, few) {
		open = append(open, t.Start("resources/read", map[string]any{"uri": uri}))
	}
	listed := prompts(t)
	for _, p := range listed[:min(len(listed), few)] {
		open = append(open, t.Start("prompts/get", promptParams(t, p)))
	}
	t.Fence()
	giveUp(t, open)
}

// giveUp cancels the calls that have not ended after a while.
func giveUp(t *check.T, open []*client.Pending) {
	limit, stop := context.WithTimeout(t.Context, patience)
	defer stop()
	for _, p := range open {
		if _, err := t.Session.Log().Await(limit, p.Request.Seq+1,
			func(e *wire.Event) bool { return over(e, p) }); err != nil {
			cancel(t, p.ID)
		}
	}
}

// patience is how long tools are given to ask for something.
const patience = 3 * time.Second

func init() {
	// The checks lifecycle/version-unsupported and lifecycle/older-revision have the client that lacks elicitation.
	for _, missing := range []string{"sampling", "roots"} {
		lifecycleChecks = append(lifecycleChecks, &check.Check{
			Name:         "lifecycle/without-" + missing,
			Requirements: []string{"lifecycle.capability.server-uses-" + missing},
			Needs:        check.Needs{Session: check.Own, Liveness: true, Options: offeringAllBut(missing)},
			Body: func(t *check.T) {
				// A capability of a client says nothing about its other capabilities.
				t.About(ids.LifecycleErrorMissingCapability)
				tempt(t)
				t.Fenced()
			},
		})
	}
	for _, r := range refusals {
		refuses := "lifecycle.capability.server-refuses-" + r.name
		lifecycleChecks = append(lifecycleChecks, &check.Check{
			Name:         "lifecycle/undeclared-" + r.name,
			Requirements: []string{refuses, declaredBy[r.capability]},
			Body: func(t *check.T) {
				// A server does not serve a capability that was not negotiated (basic/lifecycle#operation): the
				// method is not available.
				if t.Session.Capability(r.capability) {
					t.Exercised(declaredBy[r.capability])
					t.Skip("the server declares %s", r.capability)
				}
				t.Premise(declaration(t))
				for _, c := range r.calls {
					t.Clear()
					x := t.Call(c.Method, c.Params, client.Deliberately("*"))
					switch {
					case offered(x) && r.capability != "logging" && r.capability != "resources.subscribe":
						t.Check(declaredBy[r.capability], x).ToNot(HaveResult(),
							"although the server does not declare %s", r.capability)
						return
					case x.Result() != nil:
						// A level and a subscription that are taken emit nothing by that alone; the rules see what is
						// emitted.
						t.Note("%s is answered with a result, although %s is not declared", c.Method, r.capability)
					case x.Error() != nil:
						t.WarnUnless(refuses, x).To(HaveErrorCode(-32601), "although the server does not declare %s",
							r.capability)
					}
				}
			},
		})
	}
}
