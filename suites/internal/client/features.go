package client

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

var featureScenarios = []*client.Scenario{
	{
		Name: "features/sampling",
		Requirements: []string{ids.SamplingRequestOptionalMembers, ids.SamplingIncludeContextOptional,
			ids.SamplingMetadataFreeForm, ids.SamplingErrorReturned, ids.LifecycleCapabilityClientRefusesSampling,
			ids.BaseErrorInvalidParams, ids.SamplingSecurityValidateContent, ids.SamplingMaxTokensLimit,
			ids.BaseResponsePresent},
		Shows: []string{ids.BaseResponseOnce, ids.PingResponsePrompt, "sampling.*", "content.*", "progress.*",
			"cancellation.*", ids.SchemaCreateMessageResult, ids.SchemaProgressNotification},
		Needs:   needsToAsk,
		Options: client.Scripted(askSampling),
		Judge: func(t *client.T) {
			if !declares(t, "sampling") {
				judgeRefusal(t, "undeclared-sampling", ids.LifecycleCapabilityClientRefusesSampling)
				return
			}
			t.Inconclusive("the client declares sampling, so it has nothing to refuse",
				ids.LifecycleCapabilityClientRefusesSampling)
			judgeSampling(t)
		},
	},
	{
		Name: "features/elicitation",
		Requirements: []string{ids.ElicitationSchemaClientSupports, ids.ElicitationSchemaNumberBounds,
			ids.LifecycleCapabilityClientRefusesElicitation, ids.BaseErrorInvalidParams, ids.BaseResponsePresent},
		Shows:   []string{"elicitation.*", ids.SchemaElicitResult, ids.PingResponsePrompt},
		Needs:   needsToAsk,
		Options: client.Scripted(askElicitation),
		Judge: func(t *client.T) {
			if !declares(t, "elicitation") {
				judgeRefusal(t, "undeclared-elicitation", ids.LifecycleCapabilityClientRefusesElicitation)
				return
			}
			t.Inconclusive("the client declares elicitation, so it has nothing to refuse",
				ids.LifecycleCapabilityClientRefusesElicitation)
			if c := t.Handshake(); c != nil && c.Version < server.Version {
				t.Inconclusive("the negotiated version has no elicitation", ids.ElicitationSchemaClientSupports,
					ids.ElicitationSchemaNumberBounds, ids.LifecycleCapabilityClientRefusesElicitation)
				return
			}
			plain, ok := t.Answered(plainForm)
			judgeInstead(t, plain)
			judgeLater(t, plain)
			if ok && plain.Result() == nil && controlled(t, plainForm) {
				judgeForm(t, plainForm, ids.ElicitationSchemaClientSupports)
			} else if !ok || plain.Result() == nil {
				t.Inconclusive("the client answers no elicitation request with a result",
					ids.ElicitationSchemaClientSupports,
					ids.ElicitationSchemaNumberBounds, ids.BaseErrorInvalidParams)
				return
			}
			judgeBoth(t, "elicitation")
			judgeOpen(t, "elicitation-open", "a form")
			for _, f := range forms {
				judgeForm(t, "elicitation-"+f.name, ids.ElicitationSchemaClientSupports)
			}
			for _, id := range unrequired {
				judgeForm(t, id, ids.ElicitationSchemaClientSupports)
			}
			judgeForm(t, "elicitation-number", ids.ElicitationSchemaNumberBounds)
			judgeInvalidParams(t, "elicitation-broken", "an elicitation request whose schema is not an object")
		},
	},
	{
		Name: "features/roots",
		Requirements: []string{ids.RootsListCurrent, ids.CancellationEitherSide, ids.CancellationRace,
			ids.BaseResponsePresent},
		Shows: []string{"roots.*", ids.SchemaListRootsResult, "base.params.*", ids.MetaAttachRequest,
			ids.ProgressRequest, ids.PingResponsePrompt},
		Needs:   needsToAsk,
		Options: client.Scripted(askRoots),
		Judge: func(t *client.T) {
			for _, after := range cancelled {
				if x, ok := t.Answered(after); ok && x.Response.Msg.Kind == wire.Result {
					t.Tolerated(x.Response, "answered the ping behind the cancellation of requests to it",
						ids.CancellationEitherSide, ids.CancellationRace)
				} else if before, served := t.Answered("before-cancelling"); served &&
					lostAfter(t, x, "requests to it were cancelled", ids.CancellationEitherSide, ids.CancellationRace) {
					continue
				} else if ok && before.Result() != nil {
					t.Violation(ids.CancellationRace, "pings are refused after requests were cancelled", x.Events()...)
				}
			}
			judgeKept(t)
			judgeRootsForms(t)
			judgeBoth(t, "roots")
			judgeOpen(t, rootsUnhurried, "a request for roots")
			const id = ids.RootsListCurrent
			if !declares(t, "roots") {
				t.Inconclusive("the client does not declare roots", id)
				return
			}
			t.Inconclusive("the client's roots did not change", id)
		},
	},
	{
		Name: progressed, Families: []string{"progress-values"}, Smaller: narrowed("progress-values"),
		Requirements: []string{ids.ProgressNotify, ids.ProgressValueFloat, ids.ProgressTotalFloat,
			ids.ProgressFrequency, ids.ProgressOmitTotal, ids.ProgressNone},
		Needs: "the client did not ask for the progress of a request",
		Options: func(run *client.ScenarioRun) server.Options {
			return handling("*", progressing(run.Choice.Draw("progress-values", progressed)))(run)
		},
		Judge: func(t *client.T) {
			t.JudgeTolerated("progress of every request that asks for it", ids.ProgressNone)
			for _, x := range t.Requests() {
				if x.Token != nil && len(x.Progress) > 0 {
					t.JudgeContinued(offered(t, "progress was reported up to ", "progress was reported"),
						ids.ProgressNotify, ids.ProgressValueFloat, ids.ProgressTotalFloat,
						ids.ProgressFrequency, ids.ProgressOmitTotal)
					return
				}
			}
		},
	},
	{
		Name: "features/completions",
		Requirements: []string{ids.CompletionResultTotalExceedsValues, ids.CompletionClientPartialResults,
			ids.CompletionContextClientSends},
		Shows:   []string{"completion.*"},
		Needs:   "the client requested no completions",
		Options: handling("completion/complete", partial),
		Judge: func(t *client.T) {
			if t.Sent("completion/complete") != nil {
				t.JudgeContinued("completions came with a total larger than the number of values, or without total "+
					"and hasMore", ids.CompletionResultTotalExceedsValues, ids.CompletionClientPartialResults)
			}
			for _, c := range t.Conversations {
				judgeContext(t, c)
			}
		},
	},
	{
		Name:         "features/errors",
		Requirements: []string{ids.BaseErrorDataFree},
		Needs:        "the client sent nothing after an error",
		Options: func(*client.ScenarioRun) server.Options {
			return server.Options{Behaviour: server.Behaviour{
				Breaks:  []string{ids.BaseErrorInvalidParams, ids.BaseErrorReservedCodes},
				Methods: map[string]server.Middleware{"*": failing},
			}}
		},
		Judge: func(t *client.T) {
			copes := false
			for _, c := range t.Conversations {
				for _, x := range client.RequestsOf(c) {
					r := x.Response
					if r == nil || r.Msg.Kind != wire.ErrorResponse {
						continue
					}
					_, data := wire.At(r.Msg.Value(), "error").(map[string]any)["data"]
					switch on := t.RequestsAfter(c, r); {
					case !data:
						copes = copes || on // with errors as such
					case on:
						t.Exercised(ids.BaseErrorDataFree)
					case copes && t.BrokeOff():
						t.Violation(ids.BaseErrorDataFree, "the client goes on after an error without data, and "+
							"ended after one with data", x.Events()...)
					}
				}
			}
		},
	},
}

func declares(t *client.T, capability string) bool {
	c := t.Handshake()
	return c != nil && c.Declared(wire.Client, capability)
}

// lacks reports whether the client has not declared a capability after all, which leaves requirements inconclusive.
func lacks(t *client.T, capability string, ids ...string) bool {
	lacking := t.Handshake() != nil && !declares(t, capability)
	if lacking {
		t.Inconclusive("the client does not declare "+capability, ids...)
	}
	return lacking
}

// lostAfter judges whether the client is lost after a request, and reports it.
func lostAfter(t *client.T, x *judge.Exchange, after string, ids ...string) bool {
	lost := t.Lost(x)
	if lost != "" {
		for _, id := range ids {
			t.Violation(id, lost+" after "+after, x.Request)
		}
	}
	return lost != ""
}

// judgeRefusal judges whether the client survives a request for a feature that it does not
// declare. The passive rules judge the answer, and say so if there is none.
func judgeRefusal(t *client.T, id, requirement string) {
	if x := t.Asked(id); x != nil && !t.SilentTo(x) {
		lostAfter(t, x, x.Method()+", which it does not declare", requirement)
	}
}

// judgeSampling judges the answers of a client that declares sampling. A client whose
// user refuses everything shows nothing: each refusal needs an accepted twin.
func judgeSampling(t *client.T) {
	malformed := []string{"sampling-no-text", "sampling-not-base64", "sampling-unknown-type"}
	plain, _ := t.Answered("sampling-plain")
	judgeInstead(t, plain)
	judgeLater(t, plain)
	if plain == nil || plain.Result() == nil {
		t.Inconclusive("the client answers no sampling request with a generated message",
			ids.SamplingRequestOptionalMembers, ids.SamplingIncludeContextOptional, ids.SamplingMetadataFreeForm,
			ids.SamplingErrorReturned,
			ids.BaseErrorInvalidParams, ids.SamplingSecurityValidateContent, ids.SamplingMaxTokensLimit)
		return
	}
	judgeBoth(t, "sampling")
	judgeOpen(t, "sampling-open", "a sampling request")
	for _, m := range sampledMedia {
		lostAfter(t, t.Asked(m.id), "a sampling request with content that is not text; plain ones got answers",
			ids.BaseResponsePresent)
	}
	judgeLikePlain(t, "sampling-full", ids.SamplingRequestOptionalMembers)
	for i := range samplingOptions {
		judgeLikePlain(t, "sampling-option-"+strconv.Itoa(i), ids.SamplingRequestOptionalMembers)
	}
	for _, context := range []string{"none", "thisServer", "allServers"} {
		judgeLikePlain(t, "sampling-"+context, ids.SamplingIncludeContextOptional)
	}
	judgeLikePlain(t, "sampling-metadata", ids.SamplingMetadataFreeForm)
	if x, ok := t.Answered("sampling-foreign-metadata"); ok && x.Result() == nil {
		// The model provider decides the form of metadata and may refuse these.
		t.Inconclusive("the client or its model provider refuses metadata of an invented form",
			ids.SamplingMetadataFreeForm)
	}
	const returned = ids.SamplingErrorReturned
	if x, ok := t.Answered("sampling-broken"); ok {
		t.Check(returned, Named("a sampling request without a usable message", x)).To(HaveError())
	} else {
		lostAfter(t, x, "a sampling request without a usable message", returned)
	}
	judgeInvalidParams(t, "sampling-broken", "a sampling request whose messages are not an array")
	refused := 0
	for _, id := range malformed {
		switch x, ok := t.Answered(id); {
		case ok && x.Response.Msg.Kind == wire.ErrorResponse && controlled(t, id):
			refused++
		case !ok:
			lostAfter(t, x, "a sampling request with malformed content", ids.SamplingSecurityValidateContent)
		}
	}
	if refused == len(malformed) { // the passive rules see those that are served
		t.Exercised(ids.SamplingSecurityValidateContent)
	}
}

// judgeInstead judges a request for a declared feature that may wait for a user. The client must not send the content
// of the result in a notification that names the request: that is no response.
func judgeInstead(t *client.T, x *judge.Exchange) {
	const id = ids.BaseResponsePresent
	switch {
	case x == nil:
		return
	case x.Response != nil:
		t.Exercised(id)
		return
	}
	for _, e := range t.ConversationOf(x).Messages {
		if e.From != wire.Client || e.Seq < x.Request.Seq || e.Msg.Kind != wire.Notification {
			continue
		}
		if holds(e.Msg.Params, isResult) && holds(e.Msg.Params,
			func(v any) bool { return v == x.Request.Msg.ID.Loose() || v == x.Request.Msg.ID.String() }) {
			t.Violation(id, "in place of a response came a notification "+wire.Quote(e.Msg.Method, 60)+
				", which names the request and holds what its result would", x.Request, e)
			return
		}
	}
}

// judgeLater is judgeInstead for the later requests of a method, if the plain request of that method was answered.
func judgeLater(t *client.T, plain *judge.Exchange) {
	if plain == nil || plain.Response == nil {
		return
	}
	for _, x := range t.ConversationOf(plain).Exchanges {
		if x.From() == wire.Server && x.Method() == plain.Method() && x.Response == nil && x.Cancelled == nil {
			judgeInstead(t, x)
		}
	}
}

// isResult reports whether a value is the result of an elicitation or of a sampling request.
func isResult(v any) bool {
	o, _ := v.(map[string]any)
	action, _ := o["action"].(string)
	return slices.Contains(actions, action) || o["role"] == "assistant" && o["content"] != nil
}

// holds reports whether is accepts a JSON value or one within it.
func holds(v any, is func(v any) bool) bool {
	if is(v) {
		return true
	}
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return holds(item, is) })
	case map[string]any:
		for _, member := range v {
			if holds(member, is) {
				return true
			}
		}
	}
	return false
}

// asInvalid reports whether an error calls a request invalid, or reports a failure of the receiver. Other codes may
// stand for a decision of the user or of a model provider.
func asInvalid(code int64) bool {
	return code == -32600 || code == -32601 || code == -32602 || code == internalError
}

const internalError = -32603

// controlled reports whether the plain request after the refusal of a form was served. The client had then not just
// begun to refuse everything.
func controlled(t *client.T, id string) bool {
	x, ok := t.Answered(id + client.ControlSuffix)
	return ok && x.Result() != nil
}

// judgeLikePlain judges a form of a request whose plain form got a result, and
// reports whether it got one, too.
func judgeLikePlain(t *client.T, id, requirement string) (served bool) {
	x, ok := t.Answered(id)
	switch {
	case ok && x.Result() == nil && (x.Error() == nil || !asInvalid(x.Error().Code) || !controlled(t, id)):
		t.Inconclusive("the client refused a form of the request; its user may do so, or it may limit how often a "+
			"server asks", requirement)
	case ok:
		check := t.Check
		if x.Method() == "sampling/createMessage" && x.Error() != nil && x.Error().Code == internalError {
			check = t.WarnUnless // its model provider may have failed
		}
		return check(requirement, Named("this form of the request", x)).To(HaveResult(),
			"although plain ones got results")
	default:
		lostAfter(t, x, "this form of the request, although a plain one got a result", requirement)
	}
	return false
}

// judgeBoth judges whether two requests that were open at once are both answered, if the plain one was answered
// before and after them. The passive rules judge that each has its own answer.
func judgeBoth(t *client.T, feature string) {
	for _, asked := range []struct{ id, which, others string }{
		{"-both", "-first", ""}, {"-both", "-second", ""},
		{"-beside", "-second", ", of which the other was cancelled,"},
	} {
		if x, ok := t.Answered(feature + asked.id + asked.which); x != nil && !ok && controlled(t, feature+asked.id) {
			t.Violation(ids.BaseResponsePresent,
				"one of two requests that were open at once"+asked.others+
					" was not answered; the same request was before and after them", x.Request)
		}
	}
}

// judgeOpen judges whether the client answers a ping without delay while a request is open that may wait for a user.
// It does so if the answer comes soon, or before the answer to the request.
func judgeOpen(t *client.T, id, what string) {
	const requirement = ids.PingResponsePrompt
	open, answered := t.Answered(id)
	ping, alive := t.Answered(id + pinging)
	switch {
	case ping == nil || alive && ping.Result() == nil:
	case alive && answered && open.Response.Seq < ping.Response.Seq && ping.Response.At-ping.Request.At >= prompt:
		t.Violation(requirement, "a ping that came while "+what+" was open was answered only after that", open.Request,
			ping.Request, open.Response, ping.Response)
	case alive:
		t.Exercised(requirement)
	case answered && t.RequestsAfter(t.ConversationOf(open), open.Response):
		t.Violation(requirement, "a ping that came while "+what+" was open was not answered, although that was",
			open.Request, ping.Request, open.Response)
	}
}

// judgeForm judges whether the client supports the kinds of property in a form. An accepted form shows it; a user may
// decline any form.
func judgeForm(t *client.T, id, requirement string) {
	x, ok := t.Answered(id)
	if ok && x.Result() != nil && x.Result()["action"] != "accept" {
		t.Inconclusive("the client did not accept every form, which its user may decide, so its support for all "+
			"kinds of property is unknown", requirement)
		return
	}
	judgeLikePlain(t, id, requirement)
}

// judgeInvalidParams judges the error for a request with invalid params
// (JSON-RPC 2.0, section 5.1). The user may have refused it instead.
func judgeInvalidParams(t *client.T, id, what string) {
	const requirement = ids.BaseErrorInvalidParams
	x, ok := t.Answered(id)
	if !ok || x.Response.Msg.Error == nil {
		return
	}
	if code := x.Response.Msg.Error.Code; code != -32602 && (!asInvalid(code) || !controlled(t, id)) {
		t.Inconclusive("the client refused invalid params with another code; its user may have refused the request",
			requirement)
		return
	}
	t.Check(requirement, Named(what, x)).To(HaveErrorCode(-32602))
}

// firstSamplingToken is the first of the progress tokens of sampling requests, which count down; those of
// forms count up from 0. A client that asks for several things at once is asked by several scripts at once, and
// tokens are unique across all active requests (basic/utilities/progress#progress-flow).
const firstSamplingToken = -1

// tracked asks for the progress of a request; tokens may be integers
// (basic/utilities/progress#progress-flow).
func tracked(params map[string]any, token any) map[string]any {
	params["_meta"] = map[string]any{"progressToken": token}
	return params
}

func sampleText(text string) map[string]any {
	return map[string]any{"role": "user", "content": map[string]any{"type": "text", "text": text}}
}

// samplingOptions are optional members of sampling requests, alone and empty.
var samplingOptions = []map[string]any{
	{"systemPrompt": "Be brief."}, {"systemPrompt": ""}, {"temperature": 0}, {"stopSequences": []any{"END", "\n\n"}},
	{"stopSequences": []any{}},
	{"modelPreferences": map[string]any{}}, {"modelPreferences": map[string]any{"hints": []any{}}},
	{"modelPreferences": map[string]any{"costPriority": 0, "speedPriority": 1}}, {"maxTokens": 100_000},
}

// sampledMedia holds messages of other kinds than text (client/sampling#messages), before or behind one that is text.
var sampledMedia = []struct {
	id      string
	content map[string]any
	last    bool
}{
	{"sampling-image", map[string]any{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}, false},
	{"sampling-audio", map[string]any{"type": "audio", "data": "UklGRgAAAABXQVZF", "mimeType": "audio/wav"}, true},
}

func askSampling(a *client.Asker) {
	const method = "sampling/createMessage"
	plain := sampling(nil)
	if !a.Has("sampling") {
		a.Ask("undeclared-sampling", method, plain, ids.SamplingCapabilityDeclared,
			ids.LifecycleCapabilityServerUsesSampling)
		a.Fence("after-sampling")
		return
	}
	a.Greet("before-sampling")
	a.AskUser("sampling-plain", method, plain)
	a.BesidePings = a.Responsive
	sampleMembers(a)
	sampleMalformed(a)
	for i, option := range samplingOptions {
		if !a.Overdue() {
			a.AskLike("sampling-option-"+strconv.Itoa(i), method, sampling(option), plain)
		}
	}
	for _, m := range sampledMedia {
		if a.Overdue() {
			break
		}
		// A model may refuse such content. The scenario judges only that the client gives some answer.
		messages := []any{map[string]any{"role": "user", "content": m.content}, sampleText("What is this?")}
		if m.last {
			slices.Reverse(messages)
		}
		a.AskUser(m.id, method, sampling(map[string]any{"messages": messages}))
	}
	a.BesidePings = false
	askBoth(a, "sampling-both", method, tracked(sampling(nil), "sampling-first"),
		tracked(sampling(nil), "sampling-second"), plain, false)
	askBoth(a, "sampling-beside", method, sampling(nil), sampling(nil), plain, true)
	askPinging(a, "sampling-open", method, sampling(map[string]any{"messages": []any{sampleText("Take your time.")}}))
	withdraw(a, "sampling-withdrawn", method, tracked(sampling(nil), "sampling-withdrawn"))
	a.Fence("after-sampling")
}

// sampling returns the params of a plain sampling request with other members, or with more.
func sampling(members map[string]any) map[string]any {
	params := map[string]any{"messages": []any{sampleText("Say hello.")}, "maxTokens": 50}
	maps.Copy(params, members)
	return params
}

// sampleMembers asks with each optional member of a sampling request (client/sampling#data-types).
func sampleMembers(a *client.Asker) {
	const method = "sampling/createMessage"
	plain := sampling(nil)
	a.AskLike("sampling-full", method, sampling(map[string]any{
		"messages": []any{
			sampleText("What is the answer?"),
			map[string]any{"role": "assistant", "content": map[string]any{"type": "text",
				"text": "To which question?"}},
			sampleText("To any."),
		},
		"systemPrompt": "Be brief.", "temperature": 0.5, "stopSequences": []any{"END"}, "includeContext": "none",
		"metadata": map[string]any{},
		"modelPreferences": map[string]any{
			"hints":        []any{map[string]any{"name": "no-such-model"}, map[string]any{}},
			"costPriority": 0.1, "speedPriority": 1, "intelligencePriority": 0,
		},
	}), plain)
	for i, context := range []string{"none", "thisServer", "allServers"} {
		a.AskLike("sampling-"+context, method, tracked(sampling(map[string]any{"includeContext": context}),
			firstSamplingToken-i), plain)
	}
	a.AskLike("sampling-metadata", method, sampling(map[string]any{"metadata": map[string]any{}}), plain)
	a.AskUser("sampling-foreign-metadata", method, sampling(map[string]any{
		"metadata": map[string]any{"com.example/nested": map[string]any{"list": []any{1, nil, "x"}}, "plain": true},
	}))
	a.AskUser("sampling-short", method,
		map[string]any{"messages": []any{sampleText("Tell a long story about the sea.")}, "maxTokens": 2})
}

// sampleMalformed sends sampling requests that the client has to refuse (client/sampling#error-handling).
func sampleMalformed(a *client.Asker) {
	const method = "sampling/createMessage"
	plain := sampling(nil)
	a.AskLike("sampling-broken", method, map[string]any{"messages": "none at all", "maxTokens": 10}, plain, "*")
	for _, malformed := range []struct {
		id      string
		content map[string]any
	}{
		{"sampling-no-text", map[string]any{"type": "text"}},
		{"sampling-not-base64", map[string]any{"type": "image", "data": "this is not Base64!",
			"mimeType": "image/png"}},
		{"sampling-unknown-type", map[string]any{"type": "com.example/smell", "data": "AAAA"}},
	} {
		a.AskLike(malformed.id, method, sampling(map[string]any{
			"messages": []any{map[string]any{"role": "user", "content": malformed.content}},
		}), plain, "*")
	}
}

var forms = []struct {
	name     string
	property map[string]any
}{
	{"string", map[string]any{"type": "string", "title": "Name", "description": "Any name", "minLength": 2,
		"maxLength": 40}},
	{"email", map[string]any{"type": "string", "format": "email"}},
	{"uri", map[string]any{"type": "string", "format": "uri"}},
	{"date", map[string]any{"type": "string", "format": "date"}},
	{"date-time", map[string]any{"type": "string", "format": "date-time"}},
	{"number", map[string]any{"type": "number", "minimum": 0.25, "maximum": 0.75}},
	{"integer", map[string]any{"type": "integer", "minimum": 3, "maximum": 9}},
	{"negative", map[string]any{"type": "integer", "minimum": -9, "maximum": -3}},
	{"boolean", map[string]any{"type": "boolean", "default": true}},
	{"unset", map[string]any{"type": "boolean", "default": false}},
	{"zero", map[string]any{"type": "integer", "minimum": 0, "maximum": 0}},
	{"enum", map[string]any{"type": "string", "enum": []any{"red", "green"}, "enumNames": []any{"Red", "Green"}}},
	{"bare-string", map[string]any{"type": "string"}},
	{"bare-number", map[string]any{"type": "number"}},
	{"bare-integer", map[string]any{"type": "integer"}},
	{"bare-boolean", map[string]any{"type": "boolean"}},
	{"bare-enum", map[string]any{"type": "string", "enum": []any{"red"}}},
}

// plainForm is the id of the form that the others are compared with. If it is refused, a form with bare types shows
// whether its members are the reason.
const plainForm = "elicitation-string"

// unrequired holds the ids of forms in which nothing is required. There are two ways to say so.
var unrequired = []string{"elicitation-optional", "elicitation-none-required"}

func form(names ...string) map[string]any {
	properties := make(map[string]any)
	required := []any{}
	for _, f := range forms {
		for _, name := range names {
			if f.name == name {
				properties[strings.ReplaceAll(name, "-", "_")] = f.property
				required = append(required, strings.ReplaceAll(name, "-", "_"))
			}
		}
	}
	return map[string]any{
		"message":         "Please fill in: " + strings.Join(names, ", "),
		"requestedSchema": map[string]any{"type": "object", "properties": properties, "required": required},
	}
}

func askElicitation(a *client.Asker) {
	const method = "elicitation/create"
	if a.Request.Session.Version() < server.Version {
		return // older revisions have no elicitation
	}
	if !a.Has("elicitation") {
		a.Ask("undeclared-elicitation", method, form("string"),
			ids.ElicitationCapabilityDeclared, ids.LifecycleCapabilityServerUsesElicitation)
		a.Fence("after-elicitation")
		return
	}
	a.Greet("before-elicitation")
	plain := askForms(a)
	a.BesidePings = false
	askBoth(a, "elicitation-both", method, tracked(form("string"), "elicitation-first"),
		tracked(form("integer"), "elicitation-second"), plain, false)
	askBoth(a, "elicitation-beside", method, form("string"), form("string"), plain, true)
	unhasty := form("string")
	unhasty["message"] = "Please take your time, and fill in: string"
	askPinging(a, "elicitation-open", method, unhasty)
	withdraw(a, "elicitation-withdrawn", method, tracked(form("string"), "elicitation-withdrawn"))
	a.Fence("after-elicitation")
}

// askForms shows a form of each kind, and returns the plain one that the client accepts.
func askForms(a *client.Asker) (plain map[string]any) {
	const method = "elicitation/create"
	plain = form("string")
	var all []string
	var bareForms []string
	for i, f := range forms {
		params := form(f.name)
		if i > 0 { // the others are compared with the plain one
			params = tracked(params, i-1)
		}
		all = append(all, f.name)
		switch {
		case i == 0:
			if a.AskLike(plainForm, method, params, form("bare-string")) {
				plain = form("bare-string")
			}
			a.BesidePings = a.Responsive
		case strings.HasPrefix(f.name, "bare-"):
			bareForms = append(bareForms, f.name)
		default:
			a.AskLike("elicitation-"+f.name, method, params, plain)
		}
	}
	a.AskUser("elicitation-all", method, form(all...))
	a.AskLike("elicitation-broken", method, map[string]any{"message": "Please fill in.", "requestedSchema": "none"},
		plain, "*")
	for _, name := range bareForms {
		if !a.Overdue() {
			a.AskLike("elicitation-"+name, method, form(name), plain)
		}
	}
	for i, id := range unrequired {
		params := form("string", "boolean")
		schema, _ := params["requestedSchema"].(map[string]any)
		if delete(schema, "required"); i > 0 {
			schema["required"] = []any{}
		}
		if !a.Overdue() {
			a.AskLike(id, method, params, plain)
		}
	}
	return plain
}

// crossings is the number of pings that are cancelled. The effect of a cancellation often depends on whether it comes
// before or after the answer has left.
const crossings = 20

// keptID begins the ids of pings that are open while another one is cancelled.
const keptID = "ping-kept-"

func askRoots(a *client.Asker) {
	const method = "roots/list"
	a.Responsive = a.Fence("before-cancelling")
	for i := range crossings {
		id := "ping-cancelled-" + strconv.Itoa(i)
		a.Send(map[string]any{"id": id, "method": "ping"})
		a.Send(map[string]any{"id": keptID + strconv.Itoa(i), "method": "ping"})
		a.Notify("notifications/cancelled", map[string]any{"requestId": id})
	}
	a.Fence(cancelled[0])
	// A person may take long to consent to the roots.
	if a.Has("roots") {
		var plain map[string]any
		if a.AskLike(rootsPlain, method, nil, map[string]any{}) {
			plain = map[string]any{}
		}
		for _, f := range rootsForms {
			if !a.Overdue() {
				a.AskLike(f.id, method, f.params, plain)
			}
		}
		a.Send(map[string]any{"id": "roots-cancelled", "method": method})
		a.Notify("notifications/cancelled", map[string]any{"requestId": "roots-cancelled",
			"reason": "no longer needed"})
		a.Fence(cancelled[1])
		askBoth(a, "roots-both", method, map[string]any{}, map[string]any{}, map[string]any{}, false)
		askPinging(a, rootsUnhurried, method, tracked(map[string]any{}, rootsUnhurried))
	} else {
		a.Ask("undeclared-roots", method, nil, ids.RootsCapabilityDeclared, ids.LifecycleCapabilityServerUsesRoots)
	}
}

// rootsUnhurried is the id of a request for roots, which a person may have to consent to, that comes together with a
// ping.
const rootsUnhurried = "roots-unhurried"

// rootsPlain is the id of a request for roots without params. It needs none (client/roots#listing-roots).
const rootsPlain = "roots-plain"

// rootsForms are its other forms. A client may read requests in another way than pings, so an answered ping does not
// show everything.
var rootsForms = []struct {
	id          string
	params      map[string]any
	requirement string
}{
	{"roots-empty", map[string]any{}, ids.BaseParamsOmitted},
	{"roots-meta", map[string]any{"_meta": someMeta}, ids.MetaAttachRequest},
	{"roots-open", someParams, ids.BaseParamsOpen},
	{"roots-token", tracked(map[string]any{}, "roots-token"), ids.ProgressRequest},
}

// judgeRootsForms judges whether a client that lists roots does so for every form of the request.
func judgeRootsForms(t *client.T) {
	plain, ok := t.Answered(rootsPlain)
	if !ok {
		return
	}
	if plain.Result() == nil {
		judgeRootsForm(t, rootsPlain, ids.BaseParamsOmitted)
		if !controlled(t, rootsPlain) {
			return
		}
	}
	for _, f := range rootsForms {
		judgeRootsForm(t, f.id, f.requirement)
	}
}

func judgeRootsForm(t *client.T, id, requirement string) {
	if x, ok := t.Answered(id); ok && x.Error() != nil && x.Error().Code == internalError {
		t.Inconclusive("the client could not list its roots when it was asked in this form, but that may happen in "+
			"any form (client/roots#error-handling)", requirement)
		return
	}
	judgeLikePlain(t, id, requirement)
}

// cancelled holds the ids of the pings behind the requests that the script cancelled, which are pings and roots/list.
var cancelled = []string{"after-cancelling", "after-cancelling-roots"}

// judgeKept judges whether the client answers the requests that were open when others were cancelled.
func judgeKept(t *client.T) {
	const id = ids.BaseResponsePresent
	fence, ok := t.Answered(cancelled[0])
	if !ok || !t.RequestsAfter(t.ConversationOf(fence), fence.Response) {
		return // an answer may still have been on its way
	}
	for i := range crossings {
		x := t.Asked(keptID + strconv.Itoa(i))
		if x == nil {
			return
		}
		t.Check(id, Named("a request that was open when another one was cancelled", x)).To(BeAnswered())
	}
}

const progressed = "features/progress"

// progressing reports progress of every request that asks for it, in quick
// succession, with fractions, and sometimes with a total, and then the values of a family.
func progressing(values []family.Member) server.Middleware {
	return func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		token, ok := r.Token()
		if !ok {
			return next(ctx, r)
		}
		for i := range 100 {
			params := map[string]any{"progressToken": token, "progress": 0.25 * float64(i)}
			if i%2 == 0 {
				params["total"], params["message"] = 25.5, "still at it"
			}
			r.Notify("notifications/progress", params)
		}
		for _, value := range values {
			r.Notify("notifications/progress", map[string]any{"progressToken": token,
				"progress": json.Number(value.Raw()), "message": "far on"})
		}
		delete(r.Params, "_meta") // so that nothing else reports progress
		return next(ctx, r)
	}
}

// partial gives completions a total that exceeds the values, and leaves total and
// hasMore out of every other one.
func partial(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
	n := counter(r.Session, "partial").next()
	return server.Edit(func(_ *server.Request, result map[string]any) {
		completion, _ := result["completion"].(map[string]any)
		completion["total"], completion["hasMore"] = len(wire.Items(completion, "values"))+7, true
		if n%2 == 1 {
			delete(completion, "total")
			delete(completion, "hasMore")
		}
	})(ctx, r, next)
}

// judgeContext judges whether a client that completes several arguments of a prompt sends the final ones as context.
// An argument is final if the client got suggestions for it and has then used one of them
// (server/utilities/completion#requesting-completions).
func judgeContext(t *client.T, c *judge.Conversation) {
	const id = ids.CompletionContextClientSends
	all := client.RequestsOf(c)
	for i, x := range all {
		if x.Method() != "completion/complete" {
			continue
		}
		prompt, argument := wire.At(x.Request.Msg.Params, "ref", "name"), wire.At(x.Request.Msg.Params, "argument",
			"name")
		for _, earlier := range all[:i] {
			name, _ := wire.At(earlier.Request.Msg.Params, "argument", "name").(string)
			if earlier.Method() != x.Method() || prompt == nil ||
				wire.At(earlier.Request.Msg.Params, "ref", "name") != prompt || name == argument ||
				earlier.Response == nil || earlier.Response.Seq > x.Request.Seq {
				continue
			}
			if wire.At(x.Request.Msg.Params, "context", "arguments", name) != nil {
				t.Exercised(id)
				continue
			}
			suggested, _ := wire.At(earlier.Result(), "completion", "values").([]any)
			for _, use := range all[i:] {
				value := wire.At(use.Request.Msg.Params, "arguments", name)
				if use.Method() == "prompts/get" && wire.At(use.Request.Msg.Params, "name") == prompt && value != nil &&
					slices.Contains(suggested, value) {
					t.Warning(id, "the completion of "+wire.Show(argument)+" was requested without the argument "+
						wire.Quote(name, 40)+
						", for which the client had got suggestions and used one", earlier.Request, earlier.Response,
						x.Request, use.Request)
					return
				}
			}
		}
	}
}

// failures are errors with data. The first has none and is the control for the others.
var failures = []*wire.Error{
	{Code: 1, Message: "An error of the application's own"},
	{Code: -32603, Message: "Internal error", Data: map[string]any{"cause": "a test"}},
	{Code: -32602, Message: "Invalid params", Data: "text"},
	{Code: -32603, Message: "Internal error", Data: json.RawMessage("null")},
	{Code: -32002, Message: "Resource not found", Data: []any{1, 2}},
	{Code: -32000, Message: "Server error", Data: 7},
	{Code: -32601, Message: "Method not found"},
	{Code: -32600, Message: ""},
	{Code: -32700, Message: "Parse error"},
}

// failing answers all requests with errors, except those for lists.
func failing(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
	if !client.IsOperation(r.Method) || client.Listed[r.Method] != "" {
		return next(ctx, r)
	}
	n := counter(r.Session, "failures").next()
	return nil, failures[n%len(failures)]
}

// askBoth sends two requests that may wait for a user, waits for the answers, and then sends the plain request. The
// plain one tells a client that accepts no more requests from one that mixes them up. If the first is to be
// withdrawn, it is cancelled as soon as both were sent.
func askBoth(a *client.Asker, id, method string, first, second, plain map[string]any, withdrawn bool) {
	if a.Silent || a.Overdue() {
		return
	}
	from := a.Request.Session.Log().Len()
	both := [2]string{id + "-first", id + "-second"}
	a.Send(map[string]any{"id": both[0], "method": method, "params": first})
	a.Send(map[string]any{"id": both[1], "method": method, "params": second})
	waiting := both[:]
	if withdrawn {
		a.Notify("notifications/cancelled", map[string]any{"requestId": both[0], "reason": "no longer needed"})
		waiting = both[1:]
	}
	for _, one := range waiting {
		if e, _ := a.Await(a.Request.Session.Context(), max(a.Patience, a.UserPatience), from, one); e == nil {
			break
		}
	}
	a.AskUser(id+client.ControlSuffix, method, plain)
}

// askPinging sends a request that may wait for a user, and at once a ping, to which the client has
// answered before.
func askPinging(a *client.Asker, id, method string, params map[string]any) {
	if a.Silent || !a.Responsive || a.Overdue() {
		return
	}
	from := a.Request.Session.Log().Len()
	a.Send(map[string]any{"id": id, "method": method, "params": params})
	a.Send(map[string]any{"id": id + pinging, "method": "ping"})
	for _, one := range []string{id + pinging, id} {
		a.Await(a.Request.Session.Context(), max(a.Patience, a.UserPatience), from, one)
	}
}

// pinging ends the id of a ping that is sent while another request is open.
const pinging = "-pinged"

// withdraw sends a request that may wait for a user, and cancels it. Two pings serve the passive rules: the answer to
// the first shows that the client has read the cancellation, and a message after the second was not already on its
// way.
func withdraw(a *client.Asker, id, method string, params map[string]any) {
	if a.Silent {
		return
	}
	a.Send(map[string]any{"id": id, "method": method, "params": params})
	a.Notify("notifications/cancelled", map[string]any{"requestId": id, "reason": "no longer needed"})
	a.Fence(id + "-read")
	a.Fence(id + "-past")
}
