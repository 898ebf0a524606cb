package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// basic#messages
var baseChecks = []*check.Check{
	{
		Name:         "base/string-id",
		Requirements: []string{ids.BaseRequestStringIDServed, ids.BaseResponseIDEcho},
		Families:     []string{"ids"},
		Body: func(t *check.T) {
			// An id may be any string: the answer carries it unchanged.
			members := slices.DeleteFunc(t.Draw("ids"), isNumber)
			withoutIDs(t, members)
			t.Vary(members, func(m family.Member) {
				t.Check(ids.BaseRequestStringIDServed, t.Await(t.StartID(m.ID(), t.NoOp(), nil))).To(HaveResult(),
					"with the id %s", m)
			})
		},
	},
	{
		Name:         "base/integer-ids",
		Requirements: []string{ids.BaseRequestIntegerIDServed},
		Needs:        check.Needs{Session: check.Own},
		Families:     []string{"ids"},
		Body: func(t *check.T) {
			// Zero, negative and large numbers are ids like others.
			members := slices.DeleteFunc(t.Draw("ids"), func(m family.Member) bool { return !isNumber(m) })
			withoutIDs(t, members)
			t.Vary(members, func(m family.Member) {
				t.Check(ids.BaseRequestIntegerIDServed, t.Await(t.StartID(m.ID(), t.NoOp(), nil))).To(HaveResult(),
					"with the id %s", m)
			})
		},
	},
	{
		Name:         "base/refused-ids",
		Requirements: []string{ids.BaseResponseIDEcho},
		Needs: check.Needs{Session: check.Own,
			Lane: check.Last}, // ids that are served are sent before, in the shared one
		Families: []string{"ids"},
		Body: func(t *check.T) {
			// The code that refuses a request may treat its id otherwise than the code that serves it.
			refusedUnderIDs(t, t.DrawFew("ids"))
		},
	},
	{
		Name:         "base/spellings",
		Requirements: []string{ids.BaseJSONAnySpelling},
		Families:     []string{"spellings"},
		Body: func(t *check.T) {
			// A request stays the same in any order of its members, and with any white space and escapes.
			metadata := t.Call(t.NoOp(), meta("example.com/text", "text")).Result() != nil
			members := slices.DeleteFunc(t.Draw("spellings"), func(m family.Member) bool {
				return !metadata && strings.Contains(m.Raw(), "_meta")
			})
			for i, m := range members {
				id := spellingID + m.Is
				members[i] = m.With(map[string]string{"id": id, "escaped": family.Escaped(id), "method": t.NoOp(),
					"escaped-method": family.Escaped(t.NoOp())})
			}
			servesStringIDs(t)
			t.Vary(members, func(m family.Member) {
				id := wire.StringID(spellingID + m.Is)
				p, err := t.Session.StartRaw(t.Context, id, t.NoOp(), []byte(m.Raw()))
				t.Must(err)
				t.Show(p.Request)
				t.Check(ids.BaseJSONAnySpelling, t.Await(p)).To(HaveResult(), "for %s", m)
			})
		},
	},
	{
		Name:         "base/unknown-method",
		Requirements: []string{ids.BaseErrorMethodNotFound},
		Families:     []string{"methods-unknown"},
		Body: func(t *check.T) {
			// An unknown method is refused, with params and without. So is one that is nearly a known one.
			refused := func(method string, params any) *Expectation {
				return t.Check(ids.BaseErrorMethodNotFound,
					t.Call(method, params, client.Deliberately(ids.LifecycleCapabilityExperimentalGated)))
			}
			members := t.Draw("methods-unknown")
			for i, m := range members {
				members[i] = m.With(map[string]string{"known": t.NoOp()})
			}
			refused(members[0].Str(), map[string]any{"any": "thing"}).To(HaveErrorCode(-32601))
			t.Vary(members, func(m family.Member) {
				codes := []int64{-32601}
				if !methodName.MatchString(m.Str()) {
					codes = append(codes, -32600) // whether it is the name of a method at all is not said
				}
				refused(m.Str(), nil).To(HaveErrorCode(codes...), "for the method %s", m)
			})
		},
	},
	{
		Name:         "base/large-id",
		Requirements: []string{ids.BaseResponseIDEcho, ids.BaseMessageUTF8Accepted},
		Needs:        check.Needs{Session: check.Own, Lane: check.Waiting},
		Body: func(t *check.T) {
			// A long id makes the server send a long message, whatever it offers. The rules judge its form; an error
			// is tolerated, as servers have to protect themselves. The characters have three bytes each, so that one
			// lies across the end of each block that the server reads.
			id := wire.StringID("mcpconform" + strings.Repeat("你好", 25_000))
			x, err := t.Session.StartRaw(t.Context, id, t.NoOp(),
				[]byte(`{"jsonrpc":"2.0","id":`+id.String()+`,"method":"`+t.NoOp()+`"}`))
			if err != nil {
				t.Inconclusive("a request with an id of 150000 bytes cannot be sent: %v", err)
			}
			limit, stop := context.WithTimeout(t.Context, t.Session.Options.Timeout)
			defer stop()
			e, err := t.Session.Log().Await(limit, x.Request.Seq+1, func(e *wire.Event) bool {
				return x.Answers(e) || e.Kind == wire.KindMessage && e.From == wire.Server &&
					e.Msg.Kind != wire.Notification &&
					(!e.Msg.ID.Usable() || resembles(e, id))
			})
			if err != nil {
				t.Inconclusive("a request with an id of 150000 bytes is not answered")
			}
			t.Show(x.Request, e)
			if e.Msg.ID.Usable() && e.Msg.ID.Key() != id.Key() {
				t.About(ids.BaseMessageUTF8Accepted)
				t.Fail("the server changed some bytes of an id of 150000 bytes in its response")
			}
		},
	},
	{
		Name:         "base/invalid-params",
		Requirements: []string{ids.BaseErrorInvalidParams},
		Families:     []string{"not-strings"},
		Body: func(t *check.T) {
			// Known methods, as the declared capabilities tell, with params that lack a member or have one of the
			// wrong type.
			tried := false
			for _, bad := range invalidCalls {
				if !t.Session.Capability(bad.capability) {
					continue
				}
				tried = true
				t.Clear()
				x := t.Call(bad.method, bad.params, client.Deliberately("*"))
				switch {
				case bad.dispensable && x.Result() != nil:
					t.Note("%s with the params %s is served", bad.method, quote(jsonValue(bad.params)))
				case nothingToServe(t, x):
					t.Note("%s is not served, and the lists of %s are empty", bad.method, bad.capability)
				case bad.method == "tools/call" && refusesAllCalls(t, x):
					t.Note("the server refuses all calls in the same way: %s", Describe(x))
				case bad.capability == "resources.subscribe" && refusesAllResources(t, x):
					t.Note("%s is refused in the same way for a listed resource: %s", bad.method, Describe(x))
				case strings.HasPrefix(bad.method, "resources/") && (len(bad.params) > 0 || bad.dispensable) &&
					refusedWith(x, -32002):
					t.Note("%s with the params %s is refused like a resource that does not exist", bad.method,
						quote(jsonValue(bad.params)))
				default:
					t.Check(ids.BaseErrorInvalidParams, x).To(HaveErrorCode(-32602), "with the params %s",
						quote(jsonValue(bad.params)))
				}
			}
			place := 0
			for _, of := range stringPlaces {
				if !t.Session.Capability(of.capability) || of.optional && !t.Target.List(of.method).Served() {
					continue
				}
				members := t.DrawAt(place, "not-strings")
				place++
				t.Vary(members, func(m family.Member) {
					x := t.Call(of.method, of.params(m.Value()), client.Deliberately("*"))
					switch {
					case m.Value() == nil && of.dispensable && x.Result() != nil,
						of.optional && x.Result() != nil:
						return // like a member that is not there
					case of.method == "resources/read" && refusedWith(x, -32002):
						return // like a resource that does not exist
					case nothingToServe(t, x), of.method == "tools/call" && refusesAllCalls(t, x):
						return
					}
					t.Check(ids.BaseErrorInvalidParams, x).To(HaveErrorCode(-32602), "with %s as the %s", m,
						of.member)
				})
			}
			if !tried {
				t.Skip("the server declares no feature whose requests have required params")
			}
		},
	},
	{
		Name:         "base/invalid-request",
		Requirements: []string{ids.BaseErrorInvalidRequest},
		Shows:        []string{ids.BaseResponseIDEcho},
		Needs:        check.Needs{Session: check.Own},
		Body:         invalidRequests,
	},
	{
		Name:         "base/stray-response",
		Requirements: []string{ids.BaseResponseOnlyToRequests},
		Shows:        []string{ids.StdioServerSurvivesNonMessage},
		Needs:        repeated(check.Needs{Session: check.Own}),
		Body: func(t *check.T) {
			// Responses to no request, of either kind, with ids of either type.
			all := []string{
				`{"jsonrpc":"2.0","id":"mcpconform-stray","result":{}}`,
				`{"jsonrpc":"2.0","id":987654321,"result":{"tools":[]}}`,
				`{"jsonrpc":"2.0","id":"mcpconform-stray-too","error":{"code":-32603,"message":"stray"}}`,
			}
			for _, raw := range all[:t.Items(len(all))] {
				t.Fenced() // what answers something before is not mistaken for an answer to this
				mark := t.Mark()
				sent := t.Send(raw, client.Deliberately("*"))
				t.About(survivesNonMessage(t))
				t.Fence()
				t.About("")
				answers := func(e *wire.Event) bool { return answersNothing(t, e) && !t.Refused(sent, e) }
				t.Expect(t.Since(mark)).ToNot(Carry("an answer to a response", answers))
			}
		},
	},
	{
		Name:         "base/unknown-notification",
		Requirements: []string{ids.BaseNotificationUnknownNoResponse, ids.BaseNotificationNoResponse},
		Body: func(t *check.T) {
			silent(t, `{"jsonrpc":"2.0","method":"notifications/mcpconform/no-such"}`)
			// Without an id, the method of a request is that of an unknown notification.
			t.About(ids.BaseNotificationNoResponse)
			requests, raws := []check.RPC{{Method: t.NoOp()}}, []string(nil)
			for _, feature := range refusals {
				if t.Session.Capability(feature.capability) && feature.capability != "logging" {
					requests = append(requests, feature.calls...)
				}
			}
			for _, r := range requests[:t.Most(len(requests), 1)] {
				message := map[string]any{"jsonrpc": "2.0", "method": r.Method}
				if r.Params != nil {
					message["params"] = r.Params
				}
				raws = append(raws, string(client.Marshal(message)))
			}
			t.Clear()
			silent(t, raws...)
		},
		Needs: repeated(check.Needs{Session: check.Own}),
	},
	{
		Name:         "base/known-notification",
		Requirements: []string{ids.BaseNotificationNoResponse},
		Needs:        repeated(check.Needs{Session: check.Own, Options: capable}),
		Body: func(t *check.T) {
			// Servers know few of the notifications that a client may send, and answer the others as they would a
			// request.
			silent(t, `{"jsonrpc":"2.0","method":"`+rootsChanged+`"}`)
		},
	},
	{
		Name:         "base/malformed-notification",
		Requirements: []string{ids.BaseNotificationMalformedNoResponse},
		Needs:        repeated(check.Needs{Session: check.Own}),
		Body: func(t *check.T) {
			// A server that ends because of it has not responded (basic/index#notifications).
			silentUntil(t, t.FenceMildly,
				`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{"not":"an id"}}}`,
				`{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`)
		},
	},
	{
		Name:         "base/member-case",
		Requirements: []string{ids.BaseJSONRPCMemberCase},
		Needs:        check.Needs{Session: check.Own},
		Body: func(t *check.T) {
			// ID and METHOD are not the members of a request. The same message with the right spelling is the control.
			t.Assume(t.Call(t.NoOp(), nil)).To(HaveResult(), "even with the right spelling")
			mark := t.Mark()
			t.Send(`{"jsonrpc":"2.0","ID":"wrong-case","METHOD":"`+t.NoOp()+`"}`, client.Deliberately("*"))
			t.Send(`{"jsonrpc":"2.0","id":"wrong-case-too","Method":"`+t.NoOp()+`"}`, client.Deliberately("*"))
			t.Settle()
			// The server's answer without an id may be mistaken for the answer to the first one.
			_, err := t.Session.Call(t.Context, t.NoOp(), nil)
			if err == nil {
				_, err = t.Session.Call(t.Context, t.NoOp(), nil)
			}
			t.Expect(t.Since(mark)).ToNot(resultFor("wrong-case", "wrong-case-too"),
				"for a message with members spelled ID, METHOD or Method")
			if err != nil {
				// Another requirement says that the server survives them.
				t.Inconclusive("after messages with members spelled ID, METHOD or Method: %s", err)
			}
		},
	},
	{
		Name:         "base/batch",
		Requirements: []string{ids.BaseBatchNotServed},
		Needs:        check.Needs{Session: check.Own},
		Body: func(t *check.T) {
			// The revision removed batches: whatever comes back, it does not answer the members.
			mark := t.Mark()
			t.Send("["+string(plainRaw(t, wire.StringID("batch-1")))+","+string(plainRaw(t, wire.StringID("batch-2")))+
				"]", client.Deliberately("*"))
			t.Send("["+string(plainRaw(t, wire.StringID("batch-3")))+"]", client.Deliberately("*"))
			t.Fence()
			t.Expect(t.Since(mark)).ToNot(resultFor("batch-1", "batch-2", "batch-3"), "for a member of a batch")
		},
	},
	{
		Name: "base/extra-members",
		Requirements: []string{ids.BaseParamsOpen, ids.BaseParamsOmitted, ids.MetaAttachRequest,
			ids.ProgressRequest},
		Needs: check.Needs{Session: check.Own, Beside: true},
		Body:  extraMembers,
	},
	{
		Name: "base/meta-keys",
		Requirements: []string{ids.MetaKeyNameCharacters, ids.MetaKeyNameEmpty, ids.MetaReservedNoAssumptions,
			ids.MetaAttachRequest},
		Families: []string{"meta-values"},
		Body: func(t *check.T) {
			servesMeta(t)
			methods := slices.Concat([]string{t.NoOp()}, t.Served()[:min(1, len(t.Served()))])
			for i, method := range methods {
				t.Vary(t.DrawAt(i, "meta-values"), func(m family.Member) {
					t.Check(ids.MetaAttachRequest, t.Call(method, map[string]any{"_meta": m.Value()})).To(HaveResult(),
						"with the _meta %s", m)
				})
			}
			t.Clear()
			all := []struct {
				id   string
				meta map[string]any
			}{
				{ids.MetaKeyNameCharacters, map[string]any{"plain": 1, "with-hyphen_and.dot": true,
					"com.example/name": nil}},
				{ids.MetaKeyNameEmpty, map[string]any{"com.example/": "empty name"}},
				{ids.MetaReservedNoAssumptions,
					map[string]any{"modelcontextprotocol.io/unknown": map[string]any{"any": []any{}}}},
			}
			if t.RunsAgain() { // alone, the check tells them apart
				for _, v := range all[1:] {
					maps.Copy(all[0].meta, v.meta)
				}
				all = all[:1]
			}
			for _, v := range all[:t.Items(len(all))] {
				t.About(v.id)
				t.Expect(t.Call(t.NoOp(), map[string]any{"_meta": v.meta},
					client.Deliberately(ids.MetaKeyPrefixReserved))).To(HaveResult())
			}
		},
	},
	{
		Name:         "base/utf8",
		Requirements: []string{ids.BaseMessageUTF8Accepted},
		Body: func(t *check.T) {
			// Text outside ASCII, as raw UTF-8, is read everywhere, and comes back unchanged in the id. An é is not
			// the same as an e with a combining accent, even if they look alike. A server that refuses such an id is
			// not judged here.
			for _, text := range []string{"Grüße 你好 🙂 \u0000", "e\u0301 \u1112\u1161\u11ab \u212b"} {
				t.Clear()
				of := t.Call(t.NoOp(), meta("example.com/text", text))
				if of.Result() == nil {
					servesMeta(t)
				}
				t.Expect(of).To(HaveResult())
				mark := t.Mark()
				p := t.StartID(wire.StringID(text), t.NoOp(), nil)
				x, err := p.Await(t.Context)
				if x.Error() != nil || slices.ContainsFunc(t.Since(mark), refusesUnnamed) {
					t.Inconclusive("the server accepts UTF-8 except in ids, and a response repeats only the " +
						"id of its request")
				}
				if err != nil || x.Result() == nil {
					servesStringIDs(t)
				}
				t.Show(x.Response)
				t.Must(err)
				t.Expect(x).To(HaveResult())
				if x.Response.Msg.ID.Key() != p.ID.Key() {
					t.Fail("the id %s came back as %s", p.ID, x.Response.Msg.ID)
				}
			}
		},
	},
	{
		Name:         "base/ids-of-both-types",
		Requirements: []string{ids.BaseResponseIDTypeEcho, ids.BaseRequestStringIDServed},
		Needs:        calling("slow"),
		Body: func(t *check.T) {
			// The ids 7 and "7" are different: while the request with one is being served, so is that with the other.
			call := toolFor(t, "slow")
			slow := begun(t, call, "mcpconform-number", nil)
			servesStringIDs(t)
			t.Clear()
			t.Show(slow.Request)
			digits := t.StartID(wire.StringID(slow.ID.String()), t.NoOp(), nil)
			t.About(ids.BaseRequestStringIDServed)
			// The id alone decides, even if it has the type of the other request's.
			e, err := t.Session.AwaitEvent(t.Context, digits.Request.Seq+1, "answer to ping", func(e *wire.Event) bool {
				return e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.IsResponse() &&
					e.Msg.ID.Resembles(digits.ID) || e.Kind == wire.KindStreamEnd && e.Stream == digits.Request.Stream
			})
			t.Must(err)
			if e.Kind == wire.KindStreamEnd { // without a response, as where there were too many requests
				t.Expect(t.Await(digits)).To(HaveResult())
				return
			}
			t.Show(e)
			isPing := at(e.Msg.Result, "content") == nil
			switch own := e.Msg.ID.Key() == digits.ID.Key(); {
			case e.Msg.Kind == wire.ErrorResponse && own:
				t.Fail("a ping with a string as its id was refused while another request had the number with " +
					"the same digits as its id")
			case e.Msg.Kind == wire.Result && own != isPing:
				t.About(ids.BaseResponseIDTypeEcho)
				t.Fail("the id of one request is a number and that of another a string of the same digits; one " +
					"was answered under the id of the other")
			case !own:
				t.Inconclusive("the tool %q ended before the ping was answered", call.Tool)
			}
			if !finished(t, slow) {
				cancel(t, slow.ID)
				_ = t.Session.Fence(t.Context) // other checks judge what it makes of the cancellation
			}
		},
	},
	{
		Name:         "base/arguments-not-objects",
		Requirements: []string{ids.BaseErrorInvalidParams},
		Families:     []string{"not-objects"},
		Needs:        check.Needs{Session: check.Own},
		Body:         notObjects,
	},
	{
		Name:         "base/requests-at-once",
		Requirements: []string{ids.BaseResponseIDEcho},
		Needs:        check.Needs{Session: check.Own},
		Body:         requestsAtOnce,
	},
	{
		Name:         "base/calls-at-once",
		Requirements: []string{ids.BaseResponsePresent},
		Shows:        []string{ids.ProgressValueIncreases},
		Needs:        waiting(calling("slow", "progress")),
		Body:         callsAtOnce,
	},
	{
		Name:         "base/everything-beside-call",
		Requirements: []string{ids.BaseResponsePresent},
		Needs:        waiting(calling("slow", "progress")),
		Body:         everythingBeside,
	},
	{
		Name:         "base/checks-beside-call",
		Requirements: []string{ids.BaseResponsePresent},
		Shows:        []string{"tools.error.*", "tools.security.*"},
		Needs:        sharing(waiting(calling("slow", "progress"))),
		Body:         checksBeside,
	},
	{
		Name:         "base/answers-in-any-order",
		Requirements: []string{ids.BaseResponseCorrelated},
		Needs:        waiting(byHand(answering...)),
		Body:         answersInAnyOrder,
	},
	{
		Name:         "base/same-id-both-ways",
		Requirements: []string{ids.BaseRequestIDSpacePerSide},
		Shows:        []string{ids.HTTPServerSSEOwnResponse},
		Needs:        check.Needs{Session: check.Own, Lane: lastInProcess, ToolRoles: asking, Options: leavesOpen},
		Body:         sameID,
	},
}

// withoutIDs gives a check another session if its session had requests with some of the ids. A response with "0"
// cannot be told from one with an id of the wrong type, where there was also a request with 0.
func withoutIDs(t *check.T, members []family.Member) {
	if slices.ContainsFunc(members, func(m family.Member) bool { return sentLike(t, m.ID()) }) {
		t.Session = t.Open(client.Options{})
	}
}

// sentLike reports whether the session had a request whose id differs from this at most in its type.
func sentLike(t *check.T, id wire.ID) bool { return t.Session.Log().Asked(wire.Client, id) }

// refusedUnderIDs asks for a method that does not exist under different ids. The error has the id of its request, in
// type and value (basic#responses). An error with another id, or without one, can be told by its code for unknown
// methods, by the time at which it comes, and because it belongs to no other open request. The checks of unknown
// methods judge a missing answer.
func refusedUnderIDs(t *check.T, members []family.Member) {
	const id, method = ids.BaseResponseIDEcho, "mcpconform/no-such-method"
	known := client.Deliberately(ids.LifecycleCapabilityExperimentalGated)
	plain, err := t.Session.Call(t.Context, method, nil, known)
	if err != nil {
		t.Inconclusive("an unknown method is not refused with an error: %v", err)
	}
	t.Assume(plain).To(HaveErrorCode(-32601), "for an unknown method")
	tried, silent := make(map[string]bool), false // by key
	t.VaryInTurn(members, func(m family.Member) {
		of := m.ID()
		if sentLike(t, of) {
			of = near(of)
		}
		if silent || sentLike(t, of) {
			return
		}
		tried[of.Key()] = true
		p := t.StartID(of, method, nil, known)
		e, err := t.Session.AwaitEvent(t.Context, p.Request.Seq+1, "error for an unknown method",
			func(e *wire.Event) bool {
				return over(e, p) || e.Kind == wire.KindMessage && e.From == wire.Server && refusesUnknown(e) &&
					!awaited(t, e)
			})
		switch {
		case timedOut(err):
			silent = true
		case err != nil:
			t.Must(err)
		case e.Kind != wire.KindMessage || e.Msg.Kind != wire.ErrorResponse ||
			t.Refused(p.Request, e) && !e.Msg.ID.Usable():
		case tried[e.Msg.ID.Key()], e.Msg.ID.Resembles(of):
			// It is right, a second one to an earlier request, or has the wrong type, which the rules judge.
		default:
			t.Violation(id, "the error for an unknown method has "+theID(e)+", and the request had the id "+of.String()+
				" ("+m.Is+")", p.Request, e)
		}
	})
	switch {
	case silent:
		t.Inconclusive("an unknown method is refused under one id, but gets no answer under another")
	case len(tried) == 0:
		t.Inconclusive("the server allows one session only, and all ids were used in it before")
	}
}

// near returns an integer beside another one that takes as much to carry unchanged; others, and zero, are alone of
// their kind.
func near(id wire.ID) wire.ID {
	const most = 1<<53 - 1 // that is exact everywhere
	n, err := strconv.ParseInt(id.String(), 10, 64)
	switch {
	case err != nil || n == 0:
		return id
	case n == -most, n > 0 && n != most:
		return wire.IntID(n + 1)
	case n == most:
		return wire.IntID(n - 1)
	}
	return wire.IntID(n - 7_654_320) // without its sign it is no id of a session that counts
}

// refusesUnknown reports whether a message is an error for an unknown method.
func refusesUnknown(e *wire.Event) bool {
	return e.Msg.Kind == wire.ErrorResponse && e.Msg.Error != nil && e.Msg.Error.Code == -32601
}

// awaited reports whether a response is the first to a request.
func awaited(t *check.T, e *wire.Event) bool {
	x := t.Session.Log().Exchange(e)
	return x != nil && x.Response == e
}

// theID names the id of a response, if it has one.
func theID(e *wire.Event) string {
	if !e.Msg.ID.Usable() {
		return "no id"
	}
	return "the id " + e.Msg.ID.String()
}

// lenience is the judgement on a server that serves a text that is not a request.
type lenience uint8

const (
	wrong      lenience = iota // it has made something of it that nobody asked for
	understood                 // a lenient reader can make sense of it (docs/positions.md, leniency)
	inParams                   // so it can, and the params are wrong, which has a code of its own
	asWell                     // JSON-RPC 2.0 lets it pass (docs/positions.md, null-id; JSON-RPC 2.0, section 4)
)

// noRequests are JSON texts that look like requests and are not. %[1]s stands for an id that an answer can carry,
// %[2]s for a served method.
var noRequests = []struct {
	raw, what string
	lenience
}{
	{`{"jsonrpc":"2.0","id":%[1]s,"method":1}`, "whose method is a number", wrong},
	{`{"jsonrpc":"2.0","id":%[1]s,"method":null}`, "whose method is null", wrong},
	{`{"jsonrpc":"2.0","id":%[1]s,"method":["%[2]s"]}`, "whose method is an array", wrong},
	{`{"jsonrpc":"1.0","id":%[1]s,"method":"%[2]s"}`, "whose jsonrpc is 1.0", understood},
	{`{"jsonrpc":2.0,"id":%[1]s,"method":"%[2]s"}`, "whose jsonrpc is a number", understood},
	{`{"id":%[1]s,"method":"%[2]s"}`, "without jsonrpc", understood},
	{`{"jsonrpc":"2.0","id":%[1]s,"method":"%[2]s","params":[1]}`, "whose params are an array", inParams},
	{`{"jsonrpc":"2.0","id":%[1]s,"method":"%[2]s","params":"text"}`, "whose params are a string", inParams},
	{`{"jsonrpc":"2.0","id":%[1]s,"method":"%[2]s","params":7}`, "whose params are a number", inParams},
	{`{"jsonrpc":"2.0","id":%[1]s,"method":"%[2]s","params":false}`, "whose params are false", inParams},
	{`{"jsonrpc":"2.0","id":%[1]s,"method":"%[2]s","params":null}`, "whose params are null", asWell},
	{`{"jsonrpc":null,"id":%[1]s,"method":"%[2]s"}`, "whose jsonrpc is null", understood},
	{`{"jsonrpc":"2","id":%[1]s,"method":"%[2]s"}`, "whose jsonrpc is 2", understood},
	{`{"jsonrpc":"2.0","id":%[1]s,"method":{"name":"%[2]s"}}`, "whose method is an object", wrong},
	{`{"jsonrpc":"2.0","id":%[1]s,"method":true}`, "whose method is true", wrong},
	{`{"jsonrpc":"2.0","id":{"not":"an id"},"method":"%[2]s"}`, "whose id is an object", understood},
	{`{"jsonrpc":"2.0","id":["not an id"],"method":"%[2]s"}`, "whose id is an array", understood},
	{`{"jsonrpc":"2.0","id":true,"method":"%[2]s"}`, "whose id is true", understood},
	{`{"jsonrpc":"2.0","id":null,"method":"%[2]s"}`, "whose id is null", asWell},
}

// invalidRequests sends texts that are not requests, one after the other. An error may have the id that was sent, or
// none, since that id does not stand in a request (JSON-RPC 2.0, section 5). JSON-RPC demands an answer to requests
// only, so silence neither fails nor counts.
func invalidRequests(t *check.T) {
	const id = ids.BaseErrorInvalidRequest
	told, silent := 0, ""
	fenced := t.Target.Transport != transport.NameHTTP || !t.RunsAgain() // over HTTP an answer comes on its own stream
	for i, v := range noRequests {
		if told >= t.Most(len(noRequests), 2) {
			break
		}
		t.Clear()
		if fenced {
			t.Fenced()
		}
		own := wire.StringID(fmt.Sprintf("mcpconform-invalid-%d", i))
		mark := t.Mark()
		sent := t.Send(fmt.Sprintf(v.raw, own, t.NoOp()), client.Deliberately("*"))
		t.About(survivesNonMessage(t))
		endOf(t, sent)
		if fenced {
			t.Fence()
		}
		t.About(id)
		answers := slices.DeleteFunc(t.Since(mark), func(e *wire.Event) bool {
			return !e.Msg.IsResponse() || e.Msg.ID.Usable() && e.Msg.ID.Key() != own.Key()
		})
		if len(answers) == 0 {
			if x := t.Session.Log().Carrier(sent); x != nil && x.Status()/100 == 4 {
				told++ // which is as good (docs/positions.md, unparseable-post)
			}
			silent = v.what
			continue
		}
		codes := []int64{-32600}
		if v.lenience == inParams || strings.Contains(v.raw, `"params":null`) {
			codes = append(codes, -32602)
		}
		e := answers[0]
		if e.Msg.Kind == wire.Result && v.lenience != wrong {
			if v.lenience != asWell {
				t.Note("a message %s is served", v.what)
			}
			continue
		}
		if t.Check(id, e).To(HaveErrorCode(codes...), "for a message %s", v.what) {
			told++
		}
	}
	t.About(survivesNonMessage(t))
	t.Fenced()
	t.Exercised(survivesNonMessage(t))
	if told == 0 {
		t.Inconclusive("the server does not answer messages that are not requests, such as one %s", silent)
	}
}

// survivesNonMessage returns the requirement that a server breaks if it fails after JSON that is not a message.
func survivesNonMessage(t *check.T) string {
	switch t.Target.Transport {
	case transport.NameStdio:
		return ids.StdioServerSurvivesNonMessage
	case transport.NameHTTP:
		return ids.HTTPServerSurvivesBadBody
	}
	return ids.BaseErrorParseSurvive
}

// endOf waits, over HTTP, for what answers a message: a message on its stream, or the end
// of that.
func endOf(t *check.T, sent *wire.Event) {
	if t.Target.Transport != transport.NameHTTP {
		return
	}
	limit, stop := context.WithTimeout(t.Context, t.Session.Options.Timeout)
	defer stop()
	_, _ = t.Session.Log().Await(limit, sent.Seq, func(e *wire.Event) bool {
		return e.Stream == sent.Stream && (e.Kind == wire.KindStreamEnd ||
			e.Kind == wire.KindMessage && e.From == wire.Server)
	})
}

// nothingToServe reports whether a method that takes an item of a list does not exist, as the
// lists of its feature have none.
func nothingToServe(t *check.T, x *client.Exchange) bool {
	feature, _, _ := strings.Cut(x.Method(), "/")
	return refusedWith(x, -32601) && !slices.ContainsFunc(t.Target.Methods(), func(method string) bool {
		return strings.HasPrefix(method, feature+"/") && len(t.Target.List(method).Items) > 0
	})
}

// invalidCalls are requests whose params are wrong.
var invalidCalls = []struct {
	capability, method string
	params             map[string]any
	// The absence of a name may go without an error (JSON-RPC 2.0, section 4.2) where no page
	// has the input validated.
	dispensable bool
}{
	{"tools", "tools/call", map[string]any{}, false},
	{"prompts", "prompts/get", map[string]any{}, false},
	{"prompts", "prompts/get", map[string]any{"name": []any{}}, false},
	{"resources", "resources/read", map[string]any{}, false},
	{"resources.subscribe", "resources/subscribe", map[string]any{}, true},
	{"resources.subscribe", "resources/unsubscribe", map[string]any{}, true},
	{"completions", "completion/complete", map[string]any{}, false},
	{"logging", "logging/setLevel", map[string]any{}, true},
}

const spellingID = "mcpconform spelling: "

// methodName is the form of the names that methods of MCP have.
var methodName = regexp.MustCompile(`^[\w./-]{1,100}$`)

func isNumber(m family.Member) bool {
	_, ok := m.Value().(string)
	return !ok
}

// stringPlaces are members of params that have to be strings.
var stringPlaces = []struct {
	capability, method, member string
	params                     func(v any) map[string]any
	// dispensable is as in invalidCalls; an optional member need not be looked at.
	dispensable, optional bool
}{
	{"tools", "tools/call", "name", func(v any) map[string]any {
		return map[string]any{"name": v, "arguments": map[string]any{}}
	}, false, false},
	{"prompts", "prompts/get", "name", func(v any) map[string]any { return map[string]any{"name": v} }, false, false},
	{"resources", "resources/read", "uri", func(v any) map[string]any { return map[string]any{"uri": v} }, false,
		false},
	{"logging", "logging/setLevel", "level", func(v any) map[string]any { return map[string]any{"level": v} }, true,
		false},
	{"tools", "tools/list", "cursor", func(v any) map[string]any { return map[string]any{"cursor": v} }, false, true},
	{"prompts", "prompts/list", "cursor", func(v any) map[string]any { return map[string]any{"cursor": v} }, false,
		true},
	{"resources", "resources/list", "cursor", func(v any) map[string]any { return map[string]any{"cursor": v} }, false,
		true},
	{"resources", "resources/templates/list", "cursor",
		func(v any) map[string]any { return map[string]any{"cursor": v} }, false, true},
	{"completions", "completion/complete", "name of a prompt", func(v any) map[string]any {
		return map[string]any{"ref": map[string]any{"type": "ref/prompt", "name": v},
			"argument": map[string]any{"name": "x", "value": ""}}
	}, false, false},
}

// notObjects sends arguments that are not an object to a tool and a prompt without required arguments. A server may
// take null for no arguments, and also the empty array, since some languages write an empty object so.
func notObjects(t *check.T) {
	place := 0
	try := func(method string, name any) {
		members := t.DrawAt(place, "not-objects")
		place++
		t.Vary(members, func(m family.Member) {
			x := t.Call(method, map[string]any{"name": name, "arguments": m.Value()}, client.Deliberately("*"))
			if x.Result() != nil && (!worked(x) || m.Value() == nil || m.Raw() == "[]") {
				return
			}
			if x.Result() == nil && !refusedWith(x, -32602) &&
				!works(t, method, map[string]any{"name": name, "arguments": map[string]any{}}) {
				return // what is wrong is not the arguments
			}
			t.Check(ids.BaseErrorInvalidParams, x).To(HaveErrorCode(-32602), "with %s as the arguments", m)
		})
	}
	// A tool that does nothing but answer may be called often. Other requirements judge the other tools.
	served := func(method string, name any) bool {
		mark := t.Mark()
		if !t.Offers(method) {
			return false
		}
		x, err := t.Session.Call(t.Context, method, map[string]any{"name": name, "arguments": map[string]any{}})
		return err == nil && worked(x) && x.Response.At-x.Request.At < prompt &&
			!slices.ContainsFunc(t.Since(mark), func(e *wire.Event) bool { return !e.Msg.IsResponse() })
	}
	const most = 5 // of which one should work
	tried := false
	tools := slices.DeleteFunc(slowLast(t, callable(t)),
		func(tool map[string]any) bool { return requires(tool) > 0 || t.Target.Known(tool) })
	for _, tool := range tools[:min(len(tools), most)] {
		if served("tools/call", tool["name"]) {
			try("tools/call", tool["name"])
			tried = true
			break
		}
	}
	listed := slices.DeleteFunc(prompts(t), func(p map[string]any) bool { return len(requiredArguments(p)) > 0 })
	for _, p := range listed[:min(len(listed), most)] {
		if served("prompts/get", p["name"]) {
			try("prompts/get", p["name"])
			tried = true
			break
		}
	}
	if !tried {
		t.Inconclusive("the server has no callable tool and no prompt that takes empty arguments and only answers")
	}
}

// asking are the tool roles of tools that make the server send a request.
var asking = []string{"sampling", "elicitation", "roots", "ping"}

// sameID sends a ping with the id of a request of the server that is open, before
// that is answered.
func sameID(t *check.T) {
	begun := t.Mark()
	// The ids of the server's requests do not limit ours: it would use low numbers itself.
	for range 3 {
		p := t.Start(t.NoOp(), nil)
		stop := meanwhile(t, p, nil)
		x := t.Await(p)
		stop()
		t.Expect(x).To(HaveResult())
	}
	from := t.Mark()
	for _, role := range asking {
		call, known := knownTool(t, role)
		for i := 0; known && i < 2; i++ { // the first id of the server may be one that we have had
			var tried bool
			if tried, from = sameIDWithin(t, call, fmt.Sprintf("mcpconform-%s-%d", role, i), from); tried {
				return
			}
		}
	}
	// A server may also ask outside of calls, as for the roots when they have changed. A server that was busy with
	// the last change may pass over the next.
	for range 2 {
		t.Must(t.Session.Notify(t.Context, rootsChanged, nil))
		if sameIDOutside(t, &from) {
			return
		}
	}
	if asked := t.Session.Log().Events()[:begun]; slices.ContainsFunc(asked, asksAnything) {
		// It asks when a session begins, which was that of another check.
		t.Session, from = t.Open(leavesOpen), 0
		if sameIDOutside(t, &from) {
			return
		}
	}
	t.Inconclusive("the server sent no request whose id mcpconform could use for one of its own: " +
		"name a tool for the role sampling, elicitation or roots in the configuration")
}

// leavesOpen is a client with all capabilities. It leaves requests of the server open, and the check answers them.
var leavesOpen = lowIDsFree(client.Options{
	Capabilities: check.AllCapabilities(),
	Answers: map[string]client.Answer{
		createMessage: nothing, elicit: nothing, listRoots: nothing, "ping": nothing,
	},
})

// sameIDOutside answers a request of the server outside of calls, after a ping with the same id. It reports whether
// that could be tried, and sets from to its position in the log.
func sameIDOutside(t *check.T, from *int) (tried bool) {
	limit, stop := context.WithTimeout(t.Context, asksWithin(t))
	defer stop()
	for !tried {
		e, err := t.Session.Log().Await(limit, *from, asksAnything)
		if err != nil {
			return false
		}
		*from = e.Seq + 1
		if tried = !usedByUs(t, e.Msg.ID); tried {
			pingWithSameID(t, e, wire.StringID("mcpconform-beside"))
		}
		answerOpen(t, e)
	}
	return true
}

// pingWithSameID sends, beside a request of the server, one that has its id, after one that has
// the other id. It reports whether a server can still be waiting for the answer to its own.
func pingWithSameID(t *check.T, e *wire.Event, other wire.ID) (inTime bool) {
	t.Show(e)
	if !servedBeside(t, other, e) {
		t.Inconclusive("the server does not answer %s while it waits for an answer itself", t.NoOp())
	}
	p := t.StartID(e.Msg.ID, t.NoOp(), nil)
	stop := meanwhile(t, p, e)
	same, err := p.Await(t.Context)
	stop()
	t.Show(same.Response)
	if !timedOut(err) {
		t.Must(err)
	}
	t.Expect(same).To(HaveResult(), "with the id of an open request of the server, and not with another id")
	return same.Response.At-e.At < 2*prompt
}

// sameIDWithin makes a call and answers whatever the server asks before its end,
// the first time after a ping with the same id. It reports whether that could be
// tried, and how far it has read the log. Our own ids are strings, which leaves
// the numbers free.
func sameIDWithin(t *check.T, call check.Call, id string, from int) (tried bool, next int) {
	p := t.StartID(wire.StringID(id), "tools/call", call.Params())
	inTime := true // for a server that does not wait long for an answer
	for {
		e, err := t.Session.AwaitEvent(t.Context, from, "answer to tools/call",
			func(e *wire.Event) bool { return over(e, p) || asksAnything(e) })
		if err != nil || over(e, p) {
			x, err := p.Await(t.Context)
			t.Show(x.Response)
			if tried && inTime && t.Context.Err() == nil && !worked(x) && worksAlone(t, call) {
				t.Fail("the server sent a request during the call of %q; after a ping with the same id, the "+
					"call gives %s; without the ping it works",
					call.Tool, Describe(x))
			}
			if timedOut(err) {
				t.Inconclusive("the tool %q takes longer than mcpconform waits for an answer", call.Tool)
			}
			t.Must(err)
			return tried, t.Mark()
		}
		from = e.Seq + 1
		if t.Show(e); !tried && !usedByUs(t, e.Msg.ID) {
			tried, inTime = true, pingWithSameID(t, e, wire.StringID(id+"-beside"))
		}
		answerOpen(t, e)
	}
}

// answerOpen answers a request of the server, unless it has been answered.
func answerOpen(t *check.T, request *wire.Event) {
	if !alreadyAnswered(t.Session, request) {
		respond(t, request, ordinary(t, request))
	}
}

func alreadyAnswered(s *client.Session, request *wire.Event) bool {
	x := s.Log().Exchange(request)
	return x != nil && x.Response != nil
}

// meanwhile answers what the server asks after a request of ours, until the function that it returns is called. A
// server may ask something before it answers itself (basic/utilities/ping#overview). Only the given request, if any,
// stays open.
func meanwhile(t *check.T, p *client.Pending, but *wire.Event) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context)
	done := make(chan struct{})
	s := t.Session
	go func() {
		defer close(done)
		for from := p.Request.Seq + 1; ; {
			e, err := s.Log().Await(ctx, from, func(e *wire.Event) bool { return asksAnything(e) && e != but })
			if err != nil {
				return
			}
			if from = e.Seq + 1; !alreadyAnswered(s, e) {
				_, _ = s.Send(t.Context, response(e, ordinary(t, e)))
			}
		}
	}()
	return func() {
		cancel() // what came until now is still answered
		<-done
	}
}

// ordinary returns how a client answers a request of the server.
func ordinary(t *check.T, request *wire.Event) map[string]any {
	answer, ok := check.StandardAnswers()[request.Msg.Method]
	if !ok {
		return map[string]any{} // ping
	}
	result, problem := answer(t.Context, request.Msg.Params)
	if problem != nil {
		return map[string]any{"error": map[string]any{"code": problem.Code, "message": problem.Message}}
	}
	return result.(map[string]any)
}

// asksAnything reports whether an event is a request that a server may send.
func asksAnything(e *wire.Event) bool {
	return asks(e, createMessage) || asks(e, elicit) || asks(e, listRoots) || asks(e, "ping")
}

// servedBeside reports whether a plain request gets a result at once. If not, the
// server may do one thing after the other (docs/positions.md,
// requests-beside-others): then the answer to its own request lets the server go on.
func servedBeside(t *check.T, id wire.ID, open *wire.Event) bool {
	p := t.StartID(id, t.NoOp(), nil)
	defer meanwhile(t, p, open)()
	limit, stop := context.WithTimeout(t.Context, prompt)
	defer stop()
	if _, err := t.Session.Log().Await(limit, p.Request.Seq+1,
		func(e *wire.Event) bool { return over(e, p) }); err != nil {
		answerOpen(t, open)
		t.Await(p)
		return false
	}
	return t.Await(p).Result() != nil
}

// usedByUs reports whether a request of ours has had an id.
func usedByUs(t *check.T, id wire.ID) bool {
	return t.Session.Log().Asked(wire.Client, id)
}

// worksAlone reports whether a call works in a session of its own.
func worksAlone(t *check.T, call check.Call) bool {
	x, err := t.Open(check.Capable()).Call(t.Context, "tools/call", call.Params())
	return err == nil && worked(x)
}

// anyMember is a member that the params of any request, or their _meta, may have beside those of its method.
type anyMember struct {
	id, name string
	inMeta   bool
	value    func(of string) any
}

var anyMembers = []anyMember{
	{ids.BaseParamsOpen, "mcpconform", false, func(string) any { return true }},
	{ids.MetaAttachRequest, "example.com/mcpconform", true, func(string) any { return "any" }},
	{ids.ProgressRequest, "progressToken", true, func(of string) any { return "mcpconform-beside-" + of }},
}

// extraMembers adds members that any request may have to the params of requests with a known answer: each method has
// a reader of its own for its params, which are open. The members are added one by one if not all together are taken.
func extraMembers(t *check.T) {
	methods := append([]string{t.NoOp()}, t.Served()...)
	if !t.Further() {
		methods = methods[:min(len(methods), 2)]
	}
	for _, method := range methods {
		if t.Plainly() {
			takesMembers(t, check.RPC{Method: method}, nil)
			continue
		}
		t.About(ids.BaseParamsOmitted)
		control := t.Call(method, map[string]any{})
		t.Expect(control).To(HaveResult())
		if !t.RunsAgain() { // others send it without params
			control = t.Call(method, nil)
			t.Expect(control).To(HaveResult())
		}
		takesMembers(t, check.RPC{Method: method}, control)
		if cursor, more := nextCursor(control); more {
			further := check.RPC{Method: method, Params: map[string]any{"cursor": cursor}}
			takesMembers(t, further, t.Call(method, further.Params))
		}
	}
	if !t.Further() {
		return
	}
	for _, known := range append(settings(t), workingCalls(t)...) { // which may end a session
		takesMembers(t, known, nil)
	}
}

// takesMembers fails a server that refuses a request for members that any request may have. The request without them
// is the control; with nil it is made only if the one with them fails.
func takesMembers(t *check.T, known check.RPC, control *client.Exchange) {
	t.Clear()
	t.About(ids.BaseResponsePresent)
	members := anyMembers
	if known.Method == "ping" {
		members = members[1:]
	}
	if takesAll(t, known, control, members...) {
		return
	}
	if control == nil {
		control = t.Call(known.Method, known.Params)
	}
	if !worked(control) {
		return
	}
	for _, more := range members {
		t.Clear()
		t.About(more.id)
		if takesAll(t, known, control, more) {
			continue
		}
		with := t.Call(known.Method, more.add(known.Params, known.Method))
		if again := t.Call(known.Method, known.Params); worked(again) && alike(again, control) {
			t.Expect(with).To(Succeed(), "with the member %s in its params, while it works without", more.name)
			t.Fail("with the member %s beside the cursor, %s gives another page than without", more.name,
				known.Method)
		}
	}
}

// takesAll reports whether a request with further members is served like the one without. A tool may take its time.
func takesAll(t *check.T, known check.RPC, control *client.Exchange, members ...anyMember) bool {
	params := known.Params
	for _, more := range members {
		params = more.add(params, known.Method)
	}
	with, err := t.Session.Call(t.Context, known.Method, params)
	t.Show(with.Events()...)
	if timedOut(err) && known.Method == "tools/call" {
		return true
	}
	t.Must(err)
	return alike(with, control)
}

// add returns the params with the member.
func (m anyMember) add(params map[string]any, method string) map[string]any {
	with := maps.Collect(maps.All(params))
	if !m.inMeta {
		with[m.name] = m.value(method)
		return with
	}
	before, _ := with["_meta"].(map[string]any)
	meta := maps.Collect(maps.All(before))
	meta[m.name] = m.value(method)
	with["_meta"] = meta
	return with
}

// alike reports whether a request was served like another one, or at all if there is none. It compares only the first
// items of lists, as the sizes of pages may differ (server/utilities/pagination#pagination-model).
func alike(x, control *client.Exchange) bool {
	if !worked(x) || control == nil {
		return worked(x)
	}
	for name, v := range control.Result() {
		items, list := v.([]any)
		others, _ := x.Result()[name].([]any)
		if list && len(items) > 0 && strings.HasSuffix(x.Method(), "/list") &&
			(len(others) == 0 || string(client.Marshal(items[0])) != string(client.Marshal(others[0]))) {
			return false
		}
	}
	return true
}

// settings returns requests that set something in a session, and may be sent again.
func settings(t *check.T) (all []check.RPC) {
	if t.Session.Capability("logging") {
		all = append(all, check.RPC{Method: "logging/setLevel", Params: map[string]any{"level": "debug"}})
	}
	if uris := resourceURIs(t, 1); len(uris) > 0 && t.Session.Capability("resources.subscribe") {
		for _, method := range []string{"resources/subscribe", "resources/unsubscribe"} {
			all = append(all, check.RPC{Method: method, Params: map[string]any{"uri": uris[0]}})
		}
	}
	return all
}

// workingCalls returns requests whose params have members and which work, one of a
// method.
func workingCalls(t *check.T) []check.RPC {
	var all []check.RPC
	add := func(method string, params map[string]any) bool {
		if !works(t, method, params) {
			return false
		}
		all = append(all, check.RPC{Method: method, Params: params})
		return true
	}
	const most = 5 // of which one should work
	if call, ok := quickCall(t); ok {
		all = append(all, check.RPC{Method: "tools/call", Params: call.Params()})
	}
	for _, uri := range resourceURIs(t, most) {
		if add("resources/read", map[string]any{"uri": uri}) {
			break
		}
	}
	listed := prompts(t)
	for _, p := range listed[:min(len(listed), most)] {
		if add("prompts/get", promptParams(t, p)) {
			break
		}
	}
	if t.Session.Capability("completions") {
		completable := listCompletables(t)
		for _, c := range completable[:min(len(completable), most)] {
			if add("completion/complete", c.params("")) {
				break
			}
		}
	}
	return all
}

// works reports whether a request is answered soon, and not with an error. If not, other
// requirements judge that.
func works(t *check.T, method string, params map[string]any) bool {
	if !t.Offers(method) {
		return false
	}
	x, err := t.Session.Call(t.Context, method, params)
	return err == nil && worked(x) && x.Response.At-x.Request.At <= prompt
}

// quickCall returns a call of a tool that works and is over soon.
func quickCall(t *check.T) (check.Call, bool) {
	const most = 5 // of which one should work
	tools := slowLast(t, callable(t))
	for _, tool := range tools[:min(len(tools), most)] {
		if arguments, ok := t.Target.Arguments(tool); ok {
			call := check.Call{Tool: tool["name"].(string), Arguments: arguments}
			if works(t, "tools/call", call.Params()) {
				return call, true
			}
		}
	}
	return check.Call{}, false
}

// resembles reports whether a response has an id that begins like another one
// and is about as long.
func resembles(e *wire.Event, id wire.ID) bool {
	const start = 20
	got, want := e.Msg.ID.String(), id.String()
	return e.Msg.IsResponse() && len(got) > len(want)/2 && len(got) < 2*len(want) && got[:start] == want[:start]
}

// refusesUnnamed reports whether a message is an error that names no request.
func refusesUnnamed(e *wire.Event) bool {
	return e.Msg.Kind == wire.ErrorResponse && !e.Msg.ID.Usable()
}

// silent sends notifications and fails if anything answers them before a ping that follows them is answered. They are
// sent in pairs, since more in a row are a burst, and one by one if something answers a pair.
func silent(t *check.T, raws ...string) {
	for pair := range slices.Chunk(raws, 2) {
		t.Clear()
		silentUntil(t, t.Fence, pair...)
	}
}

// silentUntil is silent with a fence of the caller's.
func silentUntil(t *check.T, fence func(), raws ...string) {
	t.Fenced() // what answers something before is not mistaken for an answer to this
	mark := t.Mark()
	var sent []*wire.Event
	for _, raw := range raws {
		sent = append(sent, t.Send(raw, client.Deliberately("*")))
	}
	fence()
	answers := func(e *wire.Event) bool {
		return answersNothing(t, e) &&
			!slices.ContainsFunc(sent, func(sent *wire.Event) bool { return t.Refused(sent, e) })
	}
	if len(raws) > 1 && slices.ContainsFunc(t.Since(mark), answers) {
		for _, raw := range raws {
			t.Clear()
			silentUntil(t, fence, raw)
		}
	}
	t.Expect(t.Since(mark)).ToNot(Carry("an answer to a notification", answers))
}

// answersNothing reports whether a message is a response to no request of the session.
func answersNothing(t *check.T, e *wire.Event) bool {
	return e.Msg.IsResponse() && (!e.Msg.ID.Usable() || t.Stray(e))
}

// callsAtOnce makes two calls at the same time, each of which gets an answer: be it an error, be it
// after the other one. The rules judge what becomes of their progress.
func callsAtOnce(t *check.T) {
	call := toolFor(t, "slow", "progress")
	both := []*client.Pending{
		t.Start("tools/call", withToken(call.Params(), "mcpconform-one")),
		t.Start("tools/call", withToken(call.Params(), "mcpconform-another")),
	}
	open := stillOpen(t, both, t.Session.Options.Timeout)
	if len(open) == 0 {
		t.Fence() // no progress may follow the answers
		return
	}
	control, err := t.Open(client.Options{}).Call(t.Context, "tools/call", call.Params())
	if err != nil {
		t.Inconclusive("the server does not answer the tool %q when it is called alone in another session: %v",
			call.Tool, err)
	}
	t.Assume(control).To(BeAnswered(), "when the tool is called alone")
	// A server may do one thing after the other (docs/positions.md, requests-beside-others).
	if open = stillOpen(t, open, 2*took(control)); len(open) == 0 {
		return
	}
	for _, p := range open {
		cancel(t, p.ID)
	}
	what := "one of them got no answer"
	if len(open) == len(both) {
		what = "neither of them got an answer"
	}
	t.Fail("mcpconform called the tool %q twice at the same time, and %s; a single call is answered", call.Tool, what)
}

// stillOpen waits for the answers to requests and returns those that got none in time.
func stillOpen(t *check.T, all []*client.Pending, wait time.Duration) (open []*client.Pending) {
	limit, stop := context.WithTimeout(t.Context, wait)
	defer stop()
	for _, p := range all {
		var x *client.Exchange
		_, err := t.Session.Log().Await(limit, p.Request.Seq+1, func(e *wire.Event) bool { return over(e, p) })
		if err == nil {
			x, err = p.Await(t.Context)
		}
		if err != nil {
			open = append(open, p)
			continue
		}
		t.Show(x.Response)
	}
	t.Must(context.Cause(t.Context))
	return open
}

// answersInAnyOrder makes the server ask in two calls at once, one of which begins when the
// other has asked, and answers the later request first. Each call uses its own answer.
func answersInAnyOrder(t *check.T) {
	role := "sampling"
	if _, ok := knownTool(t, role); !ok {
		role = "elicitation"
	}
	call := toolFor(t, role)
	method, reply := askedFor(role)
	markers := []string{"mcpconform-of-the-first", "mcpconform-of-the-second"}
	mark := t.Mark()
	var calls []*client.Pending
	var asked []*wire.Event
	for range markers {
		p := t.Start("tools/call", call.Params())
		calls = append(calls, p)
		limit, stop := context.WithTimeout(t.Context, prompt)
		e, err := t.Session.Log().Await(limit, p.Request.Seq+1,
			func(e *wire.Event) bool { return over(e, p) || asks(e, method) })
		stop()
		if err != nil || !asks(e, method) {
			break
		}
		t.Show(e)
		asked = append(asked, e)
	}
	both := len(asked) == len(markers)
	for i, e := range slices.Backward(asked) {
		switch {
		case method == createMessage && !check.Sampleable(e.Msg.Params):
			both = false
			respond(t, e, map[string]any{"error": map[string]any{"code": -1, "message": "User rejected the request"}})
		default:
			respond(t, e, marked(method, e.Msg.Params, markers[i]))
		}
		if both {
			t.Fence()
		}
	}
	seeThrough(t, calls, mark, method, reply, asked)
	if !both {
		t.Inconclusive("in two calls at the same time, the tool %q sends no request that mcpconform can answer",
			call.Tool)
	}
	shown := false
	for i, p := range calls {
		x, err := p.Await(t.Context)
		t.Show(x.Response)
		if err != nil {
			t.Inconclusive("the tool %q does not answer although its request was answered: %v", call.Tool, err)
		}
		if strings.Contains(texts(x), markers[1-i]) {
			t.Fail("two calls asked the client at the same time, and one of them used the answer to the request " +
				"of the other")
		}
		shown = shown || strings.Contains(texts(x), markers[i])
	}
	if !shown {
		t.Inconclusive("the result of the tool %q does not show the answer of the client", call.Tool)
	}
}

// marked returns the answer to a request for sampling or elicitation that holds a text.
func marked(method string, params any, text string) map[string]any {
	if method == createMessage {
		return generation(map[string]any{"content": map[string]any{"type": "text", "text": text}})
	}
	content := check.Form(at(params, "requestedSchema"))
	for name := range content {
		property, _ := at(params, "requestedSchema", "properties", name).(map[string]any)
		most, bounded := property["maxLength"].(json.Number)
		room, _ := most.Float64()
		if property["type"] == "string" && property["format"] == nil && property["enum"] == nil &&
			(!bounded || room >= float64(len(text))) {
			content[name] = text
		}
	}
	return map[string]any{"action": "accept", "content": content}
}

// telling is a request that can be told by its result from others of its method.
type telling struct {
	method string
	params map[string]any
	own    func(x *client.Exchange) bool
}

// requestsAtOnce sends requests of one method at the same time. Each response is the one to
// the request whose id it has, or an error.
func requestsAtOnce(t *check.T) {
	kinds := tellingRequests(t)
	if len(kinds) == 0 {
		t.Inconclusive("the server has neither two resources that differ, nor a tool or prompt that gives back a text")
	}
	for _, requests := range kinds {
		if strange, _ := crossed(t, requests); strange == nil {
			continue
		}
		// Once more, in case what a request gives has just changed.
		for _, r := range requests {
			if !r.own(t.Call(r.method, r.params)) {
				t.Inconclusive("%s gives another result each time", r.method)
			}
		}
		t.Clear()
		const alone = "; sent one after the other, each gets its own"
		switch strange, swapped := crossed(t, requests); {
		case strange == nil:
		case swapped:
			t.Violation(ids.BaseResponseIDEcho,
				"some of the "+requests[0].method+" requests that were open at the same time got each other's results"+
					alone, strange...)
		default:
			// The server decides what a request does with its params.
			t.Warning(ids.BaseResponseIDEcho, "one of the "+requests[0].method+
				" requests that were open at the same time got the result of another"+alone, strange...)
		}
	}
}

// crossed sends requests at the same time, in a thorough run twice. It returns the exchanges of the requests that got
// the result of another one. swapped says that this other request got a wrong result as well.
func crossed(t *check.T, requests []telling) (strange []*wire.Event, swapped bool) {
	for range t.Count(1, 1, 2) {
		var started []*client.Pending
		for _, r := range requests {
			started = append(started, t.Start(r.method, r.params))
		}
		got := make(map[int]int) // by request: whose result it got
		for i, p := range started {
			x, err := p.Await(t.Context)
			if timedOut(err) {
				continue // other checks judge whether it is answered
			}
			t.Must(err)
			if x.Result() == nil || requests[i].own(x) {
				continue
			}
			if whose := slices.IndexFunc(requests, func(r telling) bool { return r.own(x) }); whose >= 0 {
				strange = append(strange, x.Events()...)
				got[i] = whose
			}
		}
		for _, whose := range got {
			_, other := got[whose]
			swapped = swapped || other
		}
		if strange != nil {
			return strange, swapped
		}
	}
	return nil, false
}

// tellingRequests returns requests at once, by method: texts that a tool or a prompt gives back, and
// resources of different contents.
func tellingRequests(t *check.T) (kinds [][]telling) {
	const several = 3
	echoes := func(method string, params func(text string) map[string]any) {
		if params == nil {
			return
		}
		var requests []telling
		for i := range several {
			text := fmt.Sprintf("%s at once %d", marker, i)
			requests = append(requests, telling{method, params(text),
				func(x *client.Exchange) bool { return gives(x, text) }})
		}
		kinds = append(kinds, requests)
	}
	if t.Session.Capability("tools") {
		echoes("tools/call", echoing(t))
	}
	if t.Session.Capability("prompts") {
		echoes("prompts/get", echoingPrompt(t))
	}
	var reads []telling
	var contents []any
	for _, uri := range resourceURIs(t, several) {
		params := map[string]any{"uri": uri}
		alone := t.Call("resources/read", params).Result()["contents"]
		if alone == nil || slices.ContainsFunc(contents,
			func(other any) bool { return reflect.DeepEqual(alone, other) }) {
			continue
		}
		contents = append(contents, alone)
		reads = append(reads, telling{"resources/read", params,
			func(x *client.Exchange) bool { return reflect.DeepEqual(x.Result()["contents"], alone) }})
	}
	if len(reads) > 1 {
		kinds = append(kinds, reads)
	}
	return kinds
}
