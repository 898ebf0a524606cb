package client

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

var exchangeScenarios = []*client.Scenario{
	{
		Name: "exchange/requests",
		Requirements: []string{ids.PingEitherSide, ids.PingResponsePrompt, ids.BaseRequestStringIDServed,
			ids.BaseRequestIntegerIDServed, ids.BaseErrorMethodNotFound, ids.MetaAttachRequest, ids.BaseParamsOpen,
			ids.BaseParamsOmitted, ids.BaseRequestIDSpacePerSide, ids.ArchitectureClientRouting,
			ids.BaseJSONRPCMemberCase, ids.HTTPClientMessagesBeforeResponse, ids.BaseJSONAnySpelling,
			ids.BaseResponseIDTypeEcho, ids.ProgressRequest, ids.ProgressTokenAnyMeans},
		Shows: []string{"base.response.*", "base.error.*", ids.BaseNotificationNoResponse, ids.PingResponseEmpty,
			ids.ProgressTokenUnique},
		Families: []string{"ids", "tokens", "meta-values", "spellings", "strings"},
		Needs:    needsToAsk,
		Options:  client.Scripted(askEverything),
		Judge:    judgeEverything,
	},
	{
		Name: "exchange/beside",
		Requirements: []string{ids.PingEitherSide, ids.PingResponsePrompt, ids.BaseRequestStringIDServed,
			ids.BaseRequestIntegerIDServed, ids.BaseErrorMethodNotFound, ids.MetaAttachRequest, ids.BaseParamsOpen,
			ids.BaseParamsOmitted, ids.BaseRequestIDSpacePerSide, ids.ProgressRequest, ids.ProgressTokenAnyMeans,
			ids.BaseNotificationUnknownNoResponse, ids.MetaAttachNotification, ids.CancellationIgnoreUnknown,
			ids.CancellationIgnoreCompleted, ids.CancellationIgnoreMalformed, ids.BaseMessageUTF8Accepted},
		Shows: []string{"base.response.*", "base.error.*", ids.BaseJSONRPCMemberCase, ids.PingResponseEmpty},
		Needs: needsToAsk,
		Options: client.Scripted(func(a *client.Asker) {
			a.Greet("before-company")
			a.BesidePings = a.Responsive
			_ = a.BesidePings && a.Fence("before") && notifyUnknown(a) && notifyCancelled(a)
			askPings(a)
		}),
		Judge: func(t *client.T) {
			judgeTold(t)
			judgePings(t)
		},
	},
	{
		Name: framed, Transports: standardTransports(),
		Requirements: []string{ids.HTTPClientSSESyntax, ids.SSEClientMessageEvents,
			ids.StdioMessageOnlyNewlineDelimits, ids.HTTPMessageLarge, ids.StdioMessageLarge, ids.HTTPClientAccepted},
		Families: []string{"frames", "events", "types-of-nothing"},
		Needs:    needsToAsk,
		Options: func(run *client.ScenarioRun) server.Options {
			o := client.Scripted(askFramed)(run)
			o.Behaviour.HTTP.Event = writeEvent
			o.Behaviour.HTTP.Middleware, o.Behaviour.HTTP.Reply = typeAcceptances, typeAcceptance
			return o
		},
		Judge: judgeFramed,
	},
	{
		Name: told, Families: []string{"log-data"},
		Requirements: []string{ids.BaseNotificationUnknownNoResponse, ids.BaseNotificationMalformedNoResponse,
			ids.MetaAttachNotification, ids.CancellationIgnoreUnknown, ids.CancellationIgnoreCompleted,
			ids.CancellationIgnoreMalformed, ids.ToolsListChangedUnsolicited, ids.PromptsListChangedUnsolicited,
			ids.ResourcesListChangedUnsolicited, ids.LoggingMessageAnyData, ids.BaseMessageUTF8Accepted},
		Shows:   []string{ids.PingResponsePrompt},
		Needs:   needsToTell,
		Options: client.Scripted(notifyEverything),
		Judge: func(t *client.T) {
			judgeTold(t)
			judgeVaried(t, loggedID, t.Choice.Draw("log-data", told), "behind a log message whose data is",
				ids.LoggingMessageAnyData)
		},
	},
}

// judgeTold judges how the client treats notifications, by its answers to the pings after them.
func judgeTold(t *client.T) {
	if _, ok := t.Answered("before"); !ok {
		return // it does not even answer the first ping
	}
	fenced := map[string][]string{
		"after-unknown":   {ids.BaseNotificationUnknownNoResponse},
		"after-meta":      {ids.MetaAttachNotification},
		"after-malformed": {ids.BaseNotificationMalformedNoResponse},
		"after-cancelled": {ids.CancellationIgnoreUnknown, ids.CancellationIgnoreCompleted,
			ids.CancellationIgnoreMalformed},
		afterReason: {ids.BaseMessageUTF8Accepted},
		"after-changed": {ids.ToolsListChangedUnsolicited, ids.PromptsListChangedUnsolicited,
			ids.ResourcesListChangedUnsolicited},
	}
	for _, fence := range []string{"after-unknown", "after-meta", "after-malformed", "after-cancelled", afterReason,
		"after-changed"} {
		x := t.Asked(fence)
		if x == nil {
			continue
		}
		// The text wants only that there is no response to unknown and malformed notifications
		// (basic/index#notifications). The client may end the session. Another requirement has it answer pings until
		// then.
		mute := freeToEnd(fenced[fence][0])
		if before, _ := t.Answered("before"); x.Result() == nil && x.Response != nil && before.Result() != nil {
			broken := fenced[fence]
			if mute {
				broken = []string{ids.PingResponsePrompt}
			}
			for _, id := range broken {
				t.Violation(id, "the client refuses pings after "+noticed[fence], x.Events()...)
			}
			continue
		}
		if e := answerWithoutID(t, x); e != nil && mute {
			t.Violation(fenced[fence][0], "such a notification was answered; a notification gets no response", e)
			continue
		}
		for _, id := range fenced[fence] {
			switch {
			case x.Response != nil && mute:
				t.Exercised(id)
			case x.Response != nil:
				t.Tolerated(x.Response, "answered the ping behind "+noticed[fence], id)
			case t.SilentTo(x) && mute:
				t.Inconclusive("the client answers nothing any more after "+noticed[fence], id)
			case t.SilentTo(x):
				t.Violation(id, "the client does not answer pings any more after "+noticed[fence], x.Request)
			case t.Lost(x) != "" && mute:
				t.Inconclusive(t.Lost(x)+" after "+noticed[fence], id)
			case t.Lost(x) != "":
				t.Violation(id, t.Lost(x)+" after "+noticed[fence], client.LastEvents(t.Last(), 6)...)
			}
		}
	}
}

// noticed describes the notifications that the server sends before each of these pings.
var noticed = map[string]string{
	"after-unknown":   "notifications with unknown methods",
	"after-meta":      "a notification with _meta, which it ignored without",
	"after-malformed": "malformed notifications",
	"after-cancelled": "cancellations that name no request in progress",
	afterReason:       "the cancellation of a ping with a reason outside ASCII",
	"after-changed":   "notifications that lists have changed",
}

// freeToEnd reports whether a client may end the session and still satisfy a requirement, because that only forbids a
// response.
func freeToEnd(id string) bool {
	return id == ids.BaseNotificationUnknownNoResponse || id == ids.BaseNotificationMalformedNoResponse
}

// answerWithoutID returns a response without a usable id that the client sent before its answer to a request, or nil.
// The response has to come after the last other message of the client before the request.
func answerWithoutID(t *client.T, x *judge.Exchange) *wire.Event {
	for _, e := range slices.Backward(t.ConversationOf(x).Messages) {
		switch {
		case e.From != wire.Client || x.Response != nil && e.Seq > x.Response.Seq:
		case e.Msg.IsResponse() && !e.Msg.ID.Usable():
			return e
		case e.Seq < x.Request.Seq:
			return nil
		}
	}
	return nil
}

// replied reports whether the client has sent any response since a request.
func replied(t *client.T, x *judge.Exchange) bool {
	return slices.ContainsFunc(t.Conversations, func(c *judge.Conversation) bool {
		return slices.ContainsFunc(c.Messages, func(e *wire.Event) bool {
			return e.Conn == x.Request.Conn && e.Seq > x.Request.Seq && e.From == wire.Client && e.Msg.IsResponse()
		})
	})
}

// pinged is a ping that the script sends.
type pinged struct {
	id           any
	params       map[string]any
	requirements []string
	// with is the text for the distinguishing part of the ping, and member is that part.
	with   string
	member family.Member
}

// These texts name the distinguishing part of pings. Findings on several pings that differ in the same part become
// one finding.
const (
	byID     = "with the id %s"
	byToken  = "with the progress token %s"
	byMeta   = "with the _meta %s"
	byText   = "with the text %s in its _meta"
	byParams = "with the params %s"
)

var allWith = []string{byID, byToken, byMeta, byText, byParams}

func (p pinged) sent() string { return fmt.Sprintf(p.with, p.member) }

var (
	someMeta   = map[string]any{"com.example/trace-id": "x", "plain": 1}
	someParams = map[string]any{"com.example.unknown": true}
)

var pings = []pinged{
	{"a word", nil, []string{ids.BaseRequestStringIDServed, ids.PingEitherSide, ids.PingResponsePrompt,
		ids.BaseParamsOmitted}, byID, family.Of("a word")},
	{"1234", map[string]any{}, []string{ids.BaseRequestStringIDServed, ids.BaseParamsOmitted}, byID,
		family.Of("1234")},
	{"", nil, []string{ids.BaseRequestStringIDServed}, byID, family.Of("")},
	{"ключ-鍵-🔑", nil, []string{ids.BaseRequestStringIDServed}, byID, family.Of("ключ-鍵-🔑")},
	{" pad ", nil, []string{ids.BaseRequestStringIDServed}, byID, family.Of(" pad ")},
	{0, nil, []string{ids.BaseRequestIntegerIDServed}, byID, family.Of(0)},
	{-7, nil, []string{ids.BaseRequestIntegerIDServed}, byID, family.Of(-7)},
	{1<<53 - 1, nil, []string{ids.BaseRequestIntegerIDServed}, byID, family.Of(1<<53 - 1)},
	{"with-meta", map[string]any{"_meta": someMeta}, []string{ids.MetaAttachRequest}, byMeta, family.Of(someMeta)},
	{"with-member", someParams, []string{ids.BaseParamsOpen}, byParams, family.Of(someParams)},
	{"with-token", map[string]any{"_meta": map[string]any{"progressToken": "Ω-token"}},
		[]string{ids.ProgressRequest, ids.ProgressTokenAnyMeans}, byToken, family.Of("Ω-token")},
	{"with-number", map[string]any{"_meta": map[string]any{"progressToken": -5}},
		[]string{ids.ProgressRequest, ids.ProgressTokenAnyMeans}, byToken, family.Of(-5)},
}

// familyPings returns further pings with ids, progress tokens and metadata from families (docs/families.md). They are
// sent after everything else, since a client may be silent after one of them.
func familyPings(c family.Choice) []pinged {
	var all []pinged
	used := make(map[string]bool)
	for _, p := range pings {
		used[client.Identifier(p.id).Key()] = true
	}
	const scenario = "exchange/requests"
	for _, m := range c.Draw("ids", scenario) {
		requirement := ids.BaseRequestIntegerIDServed
		if isString(m.ID()) {
			requirement = ids.BaseRequestStringIDServed
		}
		if !used[m.ID().Key()] {
			all = append(all, pinged{m.ID(), nil, []string{requirement}, byID, m})
		}
	}
	for _, m := range c.Draw("tokens", scenario) {
		all = append(all, pinged{"token: " + m.Is, map[string]any{"_meta": map[string]any{"progressToken": m.Value()}},
			[]string{ids.ProgressRequest, ids.ProgressTokenAnyMeans}, byToken, m})
	}
	for _, m := range c.Draw("meta-values", scenario) {
		all = append(all, pinged{"meta: " + m.Is, map[string]any{"_meta": m.Value()}, []string{ids.MetaAttachRequest},
			byMeta, m})
	}
	for _, m := range c.Draw("strings", scenario) {
		all = append(all, pinged{"text: " + m.Is,
			map[string]any{"_meta": map[string]any{"com.example/text": m.Value()}}, []string{ids.MetaAttachRequest},
			byText, m})
	}
	return all
}

// spelled returns the texts of one ping, each with its member as the id.
func spelled(c family.Choice) []family.Member {
	members := c.Draw("spellings", "exchange/requests")
	for i, m := range members {
		id := spelledID + m.Is
		members[i] = m.With(map[string]string{"id": id, "escaped": family.Escaped(id), "method": "ping",
			"escaped-method": family.Escaped("ping")})
	}
	return members
}

const spelledID = "spelling: "

func isString(id wire.ID) bool { return strings.HasPrefix(id.Key(), `"`) }

// askPings sends the requests that every client answers at once.
func askPings(a *client.Asker) {
	for _, p := range pings {
		a.Ask(p.id, "ping", p.params, ids.PingNoParams)
	}
	// Methods that are not declared, and that no capability could declare.
	a.Ask("unknown-method", "com.example/no-such-method", nil, ids.LifecycleCapabilityExperimentalGated)
	a.Ask("unknown-case", "Ping", nil, ids.LifecycleCapabilityExperimentalGated)
	a.Ask("unknown-kin", "sampling/com.example.unknown", nil, ids.LifecycleCapabilityExperimentalGated)
	for _, id := range unknownAgain {
		a.Ask(id, "com.example/no-such-method", nil, ids.LifecycleCapabilityExperimentalGated)
	}
	a.Fence("last-ping")
	a.Raw(`{"jsonrpc":"2.0","ID":"wrong-case","METHOD":"ping"}`)
	a.Fence("after-wrong-case")
	a.Late(latePatience, "wrong-case")
	for _, id := range clashes(a) {
		a.Request.Session.Take(id)
		a.Ask(id, "ping", nil)
	}
}

// unknownAgain holds the ids of further requests of a method that was refused before.
var unknownAgain = []string{"unknown-again"}

func askEverything(a *client.Asker) {
	askPings(a)
	var sent []string
	for _, m := range spelled(a.Choice) {
		if !a.Silent {
			a.Raw(m.Raw())
			sent = append(sent, spelledID+m.Is)
		}
	}
	a.Fence("after-spellings")
	a.Late(a.Patience, sent...)
	for _, ids := range alike() {
		if !a.Overdue() {
			askAtOnce(a, "ping", nil, ids...)
		}
	}
	for _, p := range familyPings(a.Choice) {
		if !a.Overdue() {
			a.Ask(p.id, "ping", p.params)
		}
	}
}

// alike returns pairs of ids that differ in their type alone. There are several pairs, because the answer to one of
// two requests may depend on the moment at which the other comes.
func alike() [][]wire.ID {
	const first, pairs = 7100, 8
	var all [][]wire.ID
	for n := int64(first); n < first+pairs; n++ {
		pair := []wire.ID{wire.IntID(n), wire.StringID(strconv.FormatInt(n, 10))}
		if n%2 == 1 {
			slices.Reverse(pair)
		}
		all = append(all, pair)
	}
	return all
}

// judgeAlike judges whether the client answers each of two open requests under its own id. The two ids differ only in
// their type.
func judgeAlike(t *client.T) {
	const id = ids.BaseResponseIDTypeEcho
	answers := func(under wire.ID) (events []*wire.Event) {
		for _, c := range t.Conversations {
			for _, e := range c.Messages {
				if e.From == wire.Client && e.Msg.IsResponse() && e.Msg.ID.Key() == under.Key() {
					events = append(events, e)
				}
			}
		}
		return events
	}
	for _, pair := range alike() {
		one, other := answers(pair[0]), answers(pair[1])
		switch {
		case len(one) > 0 && len(other) > 0:
			t.Exercised(id)
		case len(one)+len(other) > 1:
			t.Violation(id, "two pings at once whose ids are "+pair[0].String()+" and "+pair[1].String()+
				" were both answered under one of the ids", append(one, other...)...)
			return
		}
	}
}

// clashes returns the id of the client's waiting request, and the same id as a value of the other type. It leaves out
// ids that the server has used already.
func clashes(a *client.Asker) []wire.ID {
	own := a.Request.ID
	ids := []wire.ID{own}
	n, err := strconv.ParseInt(own.Loose(), 10, 64)
	switch integer := err == nil && strconv.FormatInt(n, 10) == own.Loose(); {
	case integer && isString(own):
		ids = append(ids, wire.IntID(n))
	case integer:
		ids = append(ids, wire.StringID(own.Loose()))
	case !isString(own):
		return nil // a request may not have this id
	}
	c := a.Request.Session.Log().Conversation()
	return slices.DeleteFunc(ids, func(id wire.ID) bool { return c.Newest(wire.Server, id) != nil })
}

// clashing returns the request of the client that waited when the server sent a request with the same id, perhaps as
// a value of the other type. It returns nil if there is none.
func clashing(c *judge.Conversation, x *judge.Exchange) *judge.Exchange {
	i := slices.IndexFunc(c.Exchanges, func(y *judge.Exchange) bool {
		return y.From() == wire.Client && y.Request.Msg.ID.Resembles(x.Request.Msg.ID) &&
			y.Request.Seq < x.Request.Seq &&
			(y.Response == nil || y.Response.Seq > x.Request.Seq)
	})
	if i < 0 {
		return nil
	}
	return c.Exchanges[i]
}

// WentOn returns the next request of a client that took a request of the server for the answer to its own. Such a
// client waited for its answer and got none, did not give the request up, and leaves the server's request unanswered.
// The result is nil if the record does not show that.
func wentOn(c *judge.Conversation, own, x *judge.Exchange) *wire.Event {
	if x.Response != nil || own.Cancelled != nil {
		return nil
	}
	for _, y := range c.Exchanges {
		switch e := y.Request; {
		case y.From() != wire.Client || !client.IsOperation(y.Method()) || e.Seq <= own.Request.Seq:
		case e.Seq < x.Request.Seq, own.Response != nil && own.Response.Seq < e.Seq:
			return nil // the client does not wait for one answer before it asks again, or it had the answer
		default:
			return e
		}
	}
	return nil
}

// judgeClash judges a ping of the server with the id of an open request of the client. served says whether another
// ping with an id of that type got a result.
func judgeClash(t *client.T, c *judge.Conversation, x *judge.Exchange, served bool) {
	own := clashing(c, x)
	if own == nil {
		return
	}
	switch next := wentOn(c, own, x); {
	case next != nil:
		t.Violation(ids.BaseRequestIDSpacePerSide, "the client took a ping with the id of its own request for the "+
			"answer to that request, and never answered the ping", own.Request, x.Request, next)
	case served:
		judgePing(t, x, ids.BaseRequestIDSpacePerSide, "")
	default:
		t.Inconclusive("the client answers no ping with such an id by a result", ids.BaseRequestIDSpacePerSide)
	}
}

func judgeEverything(t *client.T) {
	judgePings(t)
	first := t.Asked("a word")
	for _, id := range []string{ids.ArchitectureClientRouting, ids.HTTPClientMessagesBeforeResponse} {
		switch _, last := t.Answered("last-ping"); {
		case id == ids.HTTPClientMessagesBeforeResponse && t.Transport != "http":
		case last, first != nil && replied(t, first):
			t.Exercised(id)
		case t.SilentTo(first):
			t.Violation(id, "the client answers no request of the server while it waits for an answer itself",
				first.Request)
		case t.Lost(first) != "":
			t.Violation(id, t.Lost(first)+" when a request of the server came while it waited for an answer itself",
				first.Request)
		}
	}
	judgeVaried(t, spelledID, spelled(t.Choice), "as", ids.BaseJSONAnySpelling)
	judgeAlike(t)
}

// judgePings judges the answers to the requests of askPings, and to the pings of families.
func judgePings(t *client.T) {
	const ofString, ofInteger = ids.BaseRequestStringIDServed, ids.BaseRequestIntegerIDServed
	asked := slices.Concat(pings, familyPings(t.Choice))
	served := make(map[bool]bool) // whether a ping was served, by whether its id is a string
	for _, c := range t.Conversations {
		for _, x := range c.Exchanges {
			if x.From() == wire.Server && x.Method() == "ping" && x.Result() != nil && !x.Resembling {
				served[isString(x.Request.Msg.ID)] = true
			}
		}
	}
	found := make(map[string]*family.Findings)
	for _, with := range allWith {
		found[with] = new(family.Findings)
	}
	for _, c := range t.Conversations {
		for _, x := range c.Exchanges {
			if x.From() != wire.Server || x.Method() != "ping" {
				continue
			}
			kind := isString(x.Request.Msg.ID)
			judgeClash(t, c, x, served[kind])
			for _, p := range asked {
				if client.Identifier(p.id).Key() != x.Request.Msg.ID.Key() {
					continue
				}
				for _, id := range p.requirements {
					switch of := id == ofString || id == ofInteger; {
					case served[kind], served[!kind] && of,
						len(served) == 0 && (id == ids.PingEitherSide || id == ids.PingResponsePrompt):
						if message, proof := flaw(t, x, id, p.sent()); message != "" {
							found[p.with].Add(p.member, id, message, false, proof)
						} else if x.Response != nil {
							t.Exercised(id)
						}
					case served[!kind]:
						t.Inconclusive("the client answers no ping with such an id by a result", id)
					default:
						t.Inconclusive("the client answers no ping with a result", id)
					}
				}
				if x.Result() != nil {
					found[p.with].Tried = append(found[p.with].Tried, p.member)
				}
			}
		}
	}
	for _, with := range allWith {
		recordVaried(t, found[with])
	}
	judgeUnknownMethods(t)
	if x, ok := t.Answered("last-ping"); ok && served[true] {
		judgePing(t, x, ids.PingResponsePrompt, "after requests of unknown methods")
	}
	if x, ok := t.Answered("after-wrong-case"); ok {
		t.Check(ids.BaseJSONRPCMemberCase, strayTo(t, "wrong-case"), x.Events()...).
			To(BeFalseBecause("a message whose members are spelled ID and METHOD was answered as if it were a ping"))
	}
}

// judgeUnknownMethods judges whether the client refuses requests of unknown methods.
func judgeUnknownMethods(t *client.T) {
	for _, id := range append([]string{"unknown-method", "unknown-case", "unknown-kin"}, unknownAgain...) {
		if x, ok := t.Answered(id); ok {
			t.Check(ids.BaseErrorMethodNotFound,
				Named("a request of the unknown method "+x.Method(), x)).To(HaveErrorCode(-32601))
		} else if x != nil {
			lostAfter(t, x, "a request of the unknown method "+x.Method(), ids.BaseErrorMethodNotFound)
		}
	}
}

// judgePing judges the answer to a ping. sent says how it was sent, as in flaw.
func judgePing(t *client.T, x *judge.Exchange, id, sent string) {
	if message, proof := flaw(t, x, id, sent); message != "" {
		t.Violation(id, message, proof...)
	} else if x.Response != nil {
		t.Exercised(id)
	}
}

// flaw returns the fault of the answer to a ping, or "" if there is none or none can be shown. sent says how the ping
// was sent, if it was sent in several ways.
func flaw(t *client.T, x *judge.Exchange, id, sent string) (message string, proof []*wire.Event) {
	ping := strings.TrimSpace("a ping " + sent)
	switch request, response := x.Request, x.Response; {
	case response == nil && t.SilentTo(x):
		return ping + " was not answered", []*wire.Event{request}
	case response == nil && (id == ids.BaseRequestStringIDServed || id == ids.BaseRequestIntegerIDServed) &&
		astray(t, request) != nil:
		return ping + " was answered under another id", []*wire.Event{request, astray(t, request)}
	case response == nil && t.Lost(x) != "":
		return t.Lost(x) + " instead of answering " + ping, []*wire.Event{request}
	case response == nil:
	case id == ids.PingResponsePrompt && afterGivingUp(t, request, response) != nil:
		return ping + " was answered only after the client had given up its own request",
			[]*wire.Event{request, afterGivingUp(t, request, response), response}
	case id == ids.PingResponsePrompt && t.SilentUntil(request, response) && behindOwn(t, request, response) != nil:
		return ping + " was not answered in time, but only when the client had the answer to its own request",
			[]*wire.Event{request, behindOwn(t, request, response), response}
	case response.Msg.Kind != wire.Result:
		return ping + " was answered with an error", []*wire.Event{request, response}
	}
	return "", nil
}

// astray returns the first response that came after a request and answers no open one, or nil.
func astray(t *client.T, request *wire.Event) *wire.Event {
	for _, c := range t.Conversations {
		for _, e := range c.Messages {
			if e.Conn == request.Conn && e.Seq > request.Seq && e.From == wire.Client && e.Msg.IsResponse() &&
				!c.Answers(e) {
				return e
			}
		}
	}
	return nil
}

// prompt is the time within which an answer to a ping always counts as prompt.
const prompt = 2 * time.Second

// afterGivingUp returns the cancellation of its own request that the client sent between a ping and its response, or
// nil. Such a client does not answer while it waits itself.
func afterGivingUp(t *client.T, request, response *wire.Event) *wire.Event {
	if response.At-request.At < prompt {
		return nil
	}
	for _, x := range t.Requests() {
		if c := x.Cancelled; c != nil && x.Request.Conn == request.Conn && x.Request.Seq < request.Seq &&
			request.Seq < c.Seq && c.Seq < response.Seq {
			return c
		}
	}
	return nil
}

// behindOwn returns the answer to an own request of the client that came between a ping and its response, or nil.
func behindOwn(t *client.T, request, response *wire.Event) *wire.Event {
	for _, x := range t.Requests() {
		if r := x.Response; r != nil && x.Request.Conn == request.Conn && x.Request.Seq < request.Seq &&
			request.Seq < r.Seq && r.Seq < response.Seq {
			return r
		}
	}
	return nil
}

// strayTo reports whether the client sent a result with an id that no valid request of the server has. A request in a
// batch may have that id.
func strayTo(t *client.T, id string) bool {
	for _, c := range t.Conversations {
		for _, e := range c.Messages {
			if e.From == wire.Client && e.Msg.Kind == wire.Result && e.Msg.ID.Key() == wire.StringID(id).Key() {
				return true
			}
		}
	}
	return false
}

func notifyEverything(a *client.Asker) {
	if !a.Fence("before") || !notifyUnknown(a) {
		return
	}
	for _, params := range []map[string]any{nil, {}, {"progressToken": map[string]any{}, "progress": "much"},
		{"progressToken": "no-such-token", "progress": 1}} {
		a.Notify("notifications/progress", params, "*")
	}
	a.Notify("notifications/message", map[string]any{"level": "loud"}, "*")
	if !a.Fence("after-malformed") || !notifyCancelled(a) {
		return
	}
	for _, list := range []string{"tools", "prompts", "resources"} {
		a.Notify("notifications/"+list+"/list_changed", nil)
	}
	if !a.Fence("after-changed") {
		return
	}
	a.Vary(loggedID, a.Choice.Draw("log-data", told), func(id string, m family.Member) {
		a.Notify("notifications/message", map[string]any{"level": "emergency", "logger": "a logger",
			"data": json.RawMessage(jsonText(m))})
		a.Fence(id)
	})
}

// notifyUnknown sends notifications of unknown methods. If the script sends its requests beside pings, a ping is open
// meanwhile.
func notifyUnknown(a *client.Asker) bool {
	a.Accompany("unknown")
	a.Notify("notifications/com.example/unknown", nil)
	a.Notify("com.example/unknown", nil)
	if !a.Fence("after-unknown") {
		return false
	}
	a.Notify("notifications/com.example/unknown", map[string]any{"_meta": map[string]any{"com.example/x": 1}})
	return a.Fence("after-meta")
}

// notifyCancelled cancels requests that are not in progress. If the script sends its requests beside pings, a ping is
// open meanwhile.
func notifyCancelled(a *client.Asker) bool {
	a.Accompany("cancelled")
	a.Notify("notifications/cancelled", map[string]any{"requestId": "never-used", "reason": "a test"}, "*")
	a.Notify("notifications/cancelled", map[string]any{"requestId": "after-unknown"}, "*")
	for _, params := range []map[string]any{nil, {}, {"requestId": []any{1}}} {
		a.Notify("notifications/cancelled", params, "*")
	}
	if !a.Fence("after-cancelled") {
		return false
	}
	a.Send(map[string]any{"id": "cancelled for a reason", "method": "ping"})
	a.Notify("notifications/cancelled", map[string]any{"requestId": "cancelled for a reason",
		"reason": "nicht mehr nötig – 不要 🙂"})
	return a.Fence(afterReason)
}

// afterReason is the id of the ping behind a cancellation with a reason outside ASCII.
const afterReason = "after-reason"

const (
	told     = "exchange/notifications"
	loggedID = "logged: "
)

// jsonText returns the text of a member's value as JSON.
func jsonText(m family.Member) []byte {
	if text, ok := m.Value().(string); ok {
		quoted, _ := json.Marshal(text) // never fails
		return quoted
	}
	return []byte(m.Raw())
}

// askAtOnce sends requests of one method, all of them before it waits for the answers.
func askAtOnce(a *client.Asker, method string, params map[string]any, ids ...wire.ID) {
	if a.Silent {
		return
	}
	log := a.Request.Session.Log()
	from, began := log.Len(), time.Now()
	for _, id := range ids {
		message := map[string]any{"id": json.RawMessage(id.String()), "method": method}
		if params != nil {
			message["params"] = params
		}
		a.Send(message)
	}
	ctx, cancel := context.WithTimeout(a.Request.Session.Context(), a.Patience)
	defer cancel()
	for _, id := range ids {
		if e, err := log.Await(ctx, from, func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.From == wire.Client && e.Msg.IsResponse() &&
				e.Msg.ID.Key() == id.Key() || client.HangsUp(e)
		}); err != nil || client.HangsUp(e) {
			a.Silent = true
			a.Missed(id, from, began, client.AnswerTo(method))
			return
		}
	}
}

// latePatience is how long to wait for a response that need not come.
const latePatience = time.Second / 2
