package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// These scenarios draw from families.
const (
	jsonAnswers = "http/json-answers"
	sseAnswers  = "http/sse-answers"
)

const brokenEnd = "http/broken-end"

// renamed is a server that spells the name of the field Mcp-Session-Id in another way (RFC 9110, section 5.1).
func renamed(name, field, how string) *client.Scenario {
	return &client.Scenario{
		Name: name, Transports: overHTTP(), Requirements: []string{ids.HTTPClientSessionHeader},
		Needs: "the client did not begin a session",
		Options: func(*client.ScenarioRun) server.Options {
			return server.Options{Behaviour: server.Behaviour{HTTP: server.HTTP{Reply: func(r *server.Reply) {
				if given := r.Header.Values("Mcp-Session-Id"); len(given) > 0 {
					r.Header.Del("Mcp-Session-Id")
					r.Header[field] = given
				}
			}}}}
		},
		Judge: goesOn("the server gave the id of the session in a field whose name is in " + how),
	}
}

var httpScenarios = []*client.Scenario{
	{
		Name: jsonAnswers, Transports: overHTTP(), Requirements: []string{ids.HTTPClientJSONAnswer},
		Families: []string{"json-types"},
		Needs:    "the client did not begin a session",
		Options: func(run *client.ScenarioRun) server.Options {
			// A tool that asks the client reaches only a client that listens with GET.
			return server.Options{CallTimeout: run.Patience / 20, Behaviour: server.Behaviour{HTTP: server.HTTP{
				Answer: func(*server.Request) server.AnswerForm { return server.AnswerJSON },
				Reply:  typedHeads(server.AnsweredJSON, run.Choice.Draw("json-types", jsonAnswers)),
			}}}
		},
		Judge: func(t *client.T) {
			judgeHeads(t, "all answers came as JSON", t.Choice.Draw("json-types", jsonAnswers),
				ids.HTTPClientJSONAnswer)
		},
	},
	{
		Name: sseAnswers, Transports: overHTTP(),
		Requirements: []string{ids.HTTPClientSSEAnswer, ids.HTTPServerEventIDs},
		Families:     []string{"stream-types"},
		Needs:        "the client did not begin a session",
		Options: func(run *client.ScenarioRun) server.Options {
			o := server.Options{HTTP: server.HTTPOptions{AlwaysSSE: true, NoEventID: true}}
			o.Behaviour.HTTP.Reply = typedHeads(server.AnsweredSSE, run.Choice.Draw("stream-types", sseAnswers))
			return o
		},
		Judge: func(t *client.T) {
			judgeHeads(t, "all answers came as SSE streams, without event ids",
				t.Choice.Draw("stream-types", sseAnswers), ids.HTTPClientSSEAnswer, ids.HTTPServerEventIDs)
		},
	},
	spelling("fields", "with comments and unknown fields, also between lines of data", func(_, several string) []byte {
		return lines("\n", ": a comment", "unknown: field",
			"data: "+strings.ReplaceAll(several, "\n", "\n: a comment\nunknown: field\n:\ndata: "), "nonsense", ":")
	}),
	spelling("crlf", "with CRLF at the ends of lines, and data in several lines", linesWithCRLF),
	inPieces(spelling("torn", "with CRLF at the ends of lines, data in several lines, and in pieces, of which some "+
		"end between a CR and its LF", linesWithCRLF)),
	hasty(spelling("cr", "with CR at the ends of lines", func(data, _ string) []byte {
		return lines("\r", "data: "+data, "event:message")
	})),
	spelling("idle", "after blocks without data, which are not events", func(data, _ string) []byte {
		idle := slices.Concat(lines("\n", ": keep-alive"), lines("\n", "retry: 100"), lines("\n", "event: message"))
		return append(idle, lines("\n", "event: message", "data: "+data)...)
	}),
	{
		Name: "http/plain", Transports: overHTTP(),
		Requirements: []string{ids.HTTPClientGet405Tolerated, ids.HTTPClientDelete405Tolerated},
		Needs:        "the client sent neither a GET nor a DELETE",
		Options: func(*client.ScenarioRun) server.Options {
			return server.Options{HTTP: server.HTTPOptions{NoGet: true, NoDelete: true}}
		},
		Judge: func(t *client.T) {
			if usedMethod(t, http.MethodGet) {
				t.JudgeContinued("GET was answered with 405", ids.HTTPClientGet405Tolerated)
			}
			if usedMethod(t, http.MethodDelete) {
				t.JudgeContinued("DELETE was answered with 405", ids.HTTPClientDelete405Tolerated)
			}
		},
	},
	{
		Name: "http/no-session", Transports: overHTTP(), Requirements: []string{ids.HTTPServerSessionID},
		Needs: "the client did not begin a session",
		Options: func(*client.ScenarioRun) server.Options {
			return server.Options{HTTP: server.HTTPOptions{NoSessionID: true}}
		},
		Judge: goesOn("the server assigned no session id"),
	},
	renamed("http/lower-field", "mcp-session-id", "small letters"),
	renamed("http/upper-field", "MCP-SESSION-ID", "capitals"),
	{
		Name: "http/delete", Transports: overHTTP(),
		Requirements: []string{ids.HTTPClientDeleteSession, ids.LifecycleShutdownHTTPClose},
		Shows:        []string{ids.HTTPClientSessionHeader},
		Needs:        client.NeedsEnd,
		Options: func(*client.ScenarioRun) server.Options {
			return server.Options{Behaviour: server.Behaviour{
				Breaks: []string{ids.HTTPServerDeleteSession},
				HTTP: server.HTTP{
					// An id may have all visible ASCII characters.
					SessionID: func() string { return sessionID + rand.Text() },
					// The streams are left to the client to close.
					KeepSession: true,
				},
			}}
		},
		Judge: func(t *client.T) {
			c := t.Handshake()
			if c == nil || t.Ending.Exit == nil || c.Initialized == nil {
				return
			}
			t.Check(ids.HTTPClientDeleteSession, usedMethod(t, http.MethodDelete), client.LastEvents(c, 2)...).
				To(BeTrueBecause("the client ended without a DELETE for its session"))
			judgeClosed(t, c)
		},
	},
	{
		Name: "http/listening", Transports: overHTTP(),
		Requirements: []string{ids.HTTPClientGetStreamMessages, ids.HTTPClientGetCloseTolerated,
			ids.HTTPClientLastEventID},
		Needs:   "the client opened no listening stream with GET",
		Options: listening,
		Judge: func(t *client.T) {
			if x := t.Asked("on-the-stream"); x != nil {
				if x.Response != nil {
					t.Exercised(ids.HTTPClientGetStreamMessages)
				} else {
					lostAfter(t, x, "a ping on the listening stream", ids.HTTPClientGetStreamMessages)
				}
				_, next := brokenAt(t, resumedID)
				emptied, again := brokenAt(t, emptiedID)
				if emptied != nil && again == nil ||
					next != nil && next.HTTP.Header.Get("Last-Event-Id") == unlistenedID {
					// The client continued to listen. It then left after an event without text, or named an event
					// that never existed, which may explain its end.
					t.Exercised(ids.HTTPClientGetCloseTolerated)
				} else {
					t.JudgeContinued("the server ended the listening stream", ids.HTTPClientGetCloseTolerated)
				}
			}
			if x, ok := t.Answered(resumedPing); x != nil && !ok && t.SilentTo(x) {
				t.Violation(ids.HTTPClientGetStreamMessages,
					"the client does not answer a ping on a listening stream that it has opened again; it answered "+
						"one on the first", x.Request)
			}
			judgeListenedOn(t)
		},
	},
	marked, // it spells the events that the scenario before has given ids
	{
		Name: brokenEnd, Transports: overHTTP(), Requirements: []string{ids.HTTPDisconnectSurvived},
		Needs:   "the client did not begin a session",
		Options: breakingOff,
		Judge: func(t *client.T) {
			judgeSurvivedCut(t, "the connection broke off after each answer, before the end of its stream")
		},
	},
	{
		Name: "http/lost-session", Transports: overHTTP(),
		Requirements: []string{ids.HTTPClientReinitializeOn404, ids.HTTPClientReinitializeWithoutSessionID},
		Shows: []string{ids.LifecycleInitInitializedSent, ids.LifecycleInitRequestClientInfo,
			ids.HTTPClientVersionHeader, ids.HTTPClientSessionHeader,
			ids.LifecycleCapabilityClientEmitsRootsListChanged, "lifecycle.capability.client-uses-*",
			ids.HTTPClientDeleteSession, ids.BaseResponsePresent},
		Needs:   "the client sent no request with a session id after the handshake",
		Options: losing,
		Judge:   judgeLost(0),
	},
	{
		Name: "http/lost-answer", Transports: overHTTP(), After: []string{"http/lost-session"}, Excused: staying,
		Requirements: []string{ids.HTTPClientReinitializeOn404},
		Needs:        "the client answered no ping with a session id",
		Options:      losingAnswer,
		Judge:        judgeLostAnswer,
	},
	{
		Name: "http/lost-again", Transports: overHTTP(), After: []string{"http/lost-session"}, Excused: staying,
		Requirements: []string{ids.HTTPClientReinitializeOn404},
		Shows:        []string{ids.HTTPClientVersionHeaderNegotiated},
		Needs: "the client did not begin a new session when it lost the first one, or sent too few requests " +
			"in the new one",
		Options: losingTwice,
		Judge:   judgeLost(1),
	},
	{
		Name: "http/refused-message", Transports: overHTTP(),
		Requirements: []string{ids.HTTPClientErrorBodyTolerated},
		Needs:        needsToAsk,
		Options:      refusing,
		Judge: func(t *client.T) {
			const id = ids.HTTPClientErrorBodyTolerated
			if _, ok := t.Answered("after-bare"); !ok {
				if t.Asked("refused-bare") != nil {
					t.Inconclusive("the client does not go on after a refusal of a message, whether or not it has "+
						"a body", id)
				}
				return
			}
			switch x, ok := t.Answered("after-body"); {
			case ok:
				t.Tolerated(x.Response, "answered the ping behind a refusal with an error in its body", id)
			case t.Lost(x) != "":
				t.Violation(id,
					t.Lost(x)+" after a refusal with an error in its body; after one without a body it answered",
					client.LastEvents(t.Last(), 4)...)
			case x == nil && t.Asked("refused-body") != nil && t.SilentTo(t.Asked("refused-body")):
				t.Inconclusive("the client did not answer all pings", id)
			}
		},
	},
	{
		// Some clients wait for long when a stream is cut twice.
		Name: "http/cut-stream", Transports: overHTTP(),
		Requirements: []string{ids.HTTPClientResumeGet, ids.HTTPClientLastEventID, ids.HTTPDisconnectSurvived,
			ids.HTTPClientSSESyntax},
		Needs:   "the client did not ask for the rest of a stream that was cut; resuming is optional",
		Options: cutting,
		Judge:   judgeCut,
	},
	{
		Name: "sse/session", Transports: []string{transport.NameSSE},
		Requirements: []string{ids.SSEClientPostToEndpoint, ids.SSEClientMessageEvents},
		Needs:        "the client did not get through the handshake",
		Options:      straying,
		Judge: func(t *client.T) {
			judgeStrays(t)
			c := t.Handshake()
			if c == nil || c.Initialized == nil {
				return
			}
			t.Exercised(ids.SSEClientMessageEvents, ids.SSEClientPostToEndpoint)
		},
	},
	{
		// A client that only appends the announced path to the address of the server copes with a path, and not with
		// an absolute URI.
		Name: "sse/absolute-endpoint", Transports: []string{transport.NameSSE},
		Requirements: []string{ids.SSEClientPostToEndpoint},
		Needs:        "the client did not connect",
		Options:      announcing,
		Judge:        goesOn("the endpoint event names an absolute URI"),
	},
	{
		Name: "sse/spelling", Transports: []string{transport.NameSSE},
		Requirements: []string{ids.SSEClientMessageEvents},
		Needs:        "the client did not get through the handshake",
		Options: func(*client.ScenarioRun) server.Options {
			return server.Options{Behaviour: server.Behaviour{HTTP: server.HTTP{Event: func(
				e *server.Event) []*server.Event {
				if e.Out == nil {
					return []*server.Event{e}
				}
				fields := []string{": a comment", "unknown: field"}
				for line := range strings.SplitSeq(inLines(e.Data), "\n") {
					fields = append(fields, "data:"+line)
				}
				e.Raw = lines("\r\n", append(fields, "event:message")...)
				return []*server.Event{e}
			}}}}
		},
		Judge: goesOn("events came with comments, CRLF, and data in several lines"),
	},
	{
		Name: "http/legacy-only", Transports: overHTTP(), Path: server.PathSSE,
		Requirements: []string{ids.SSEClientPostFirst, ids.SSEClientFallbackGet, ids.SSEClientFallbackStaysLegacy,
			ids.SSEClientPostToEndpoint, ids.SSEClientMessageEvents},
		Needs: "the client did not fall back to the legacy transport; only clients that want to reach older " +
			"servers need to",
		Options: func(*client.ScenarioRun) server.Options {
			return server.Options{
				HTTP: server.HTTPOptions{NoStreamable: true},
				// A client may look for the older transport at a server without it.
				Behaviour: server.Behaviour{Breaks: []string{ids.SSEServerSSEEndpoint}},
			}
		},
		Judge: judgeFallback,
	},
	{
		Name: "http/legacy-refused", Transports: overHTTP(), Path: server.PathSSE, After: []string{"http/legacy-only"},
		Requirements: []string{ids.SSEClientFallbackGet},
		Needs: "the client did not fall back to the legacy transport; only clients that want to reach " +
			"older servers need to",
		Excused: func(first *client.T) string {
			if _, legacy := fallback(first); !legacy {
				return "the client does not fall back to the legacy transport"
			}
			return ""
		},
		Options: refusingPosts,
		Judge: func(t *client.T) {
			refused, legacy := fallback(t)
			switch {
			case refused == nil:
			case legacy:
				t.Exercised(ids.SSEClientFallbackGet)
			case t.Preceding == nil:
				t.Inconclusive("run the scenario http/legacy-only as well; it shows whether the client falls back "+
					"at all", ids.SSEClientFallbackGet)
			case !t.Interrupted():
				t.Violation(ids.SSEClientFallbackGet,
					fmt.Sprintf("after its POST was refused with %d, the client does not look for the older "+
						"transport with a GET, as it does after 405", refused.HTTP.Status), refused)
			}
		},
	},
}

// refusals lists statuses for the refusal of a POST. None is an example of the text, and none has a meaning of its
// own for clients, as 401 has.
var refusals = []int{http.StatusNotAcceptable, http.StatusGone, http.StatusUnsupportedMediaType,
	http.StatusUnprocessableEntity}

// refusingPosts speaks the older transport alone, and refuses a POST to its event stream with another status than
// 405: the client falls back after any 4xx (basic/transports#backwards-compatibility).
func refusingPosts(run *client.ScenarioRun) server.Options {
	status := refusals[run.Choice.Source("http/legacy-refused").Uint64()%uint64(len(refusals))]
	return server.Options{
		HTTP: server.HTTPOptions{NoStreamable: true},
		Behaviour: server.Behaviour{
			Breaks: []string{ids.SSEServerSSEEndpoint},
			HTTP: server.HTTP{Reply: func(r *server.Reply) {
				if r.Request.Method == http.MethodPost && r.Request.URL.Path == server.PathSSE &&
					r.Status == http.StatusMethodNotAllowed {
					r.Status = status
				}
			}},
		},
	}
}

// fallback returns the first refusal of a POST of initialize with 4xx, or nil, and reports whether the client then
// shook hands over the older transport.
func fallback(t *client.T) (refused *wire.Event, legacy bool) {
	for _, c := range t.Conversations {
		for _, x := range c.HTTP {
			if m := x.Message(); x.Method() == http.MethodPost && m != nil && m.Msg.Method == "initialize" &&
				x.Head != nil && x.Head.HTTP.Status/100 == 4 &&
				(refused == nil || x.Head.At < refused.At) {
				refused = x.Head
			}
		}
	}
	return refused, refused != nil && slices.ContainsFunc(t.Conversations, func(c *judge.Conversation) bool {
		return c.Transport == transport.NameSSE && c.Handshaken() && c.Init.Request.At > refused.At
	})
}

// lingering is how long streams may stay open after the end of their session.
const lingering = 5 * time.Second

// judgeClosed judges whether a client that has ended its session by a DELETE closes the
// streams of the session (basic/lifecycle#http).
func judgeClosed(t *client.T, c *judge.Conversation) {
	const id = ids.LifecycleShutdownHTTPClose
	var deleted *wire.HTTPExchange
	for _, x := range c.HTTP {
		if x.Method() == http.MethodDelete && x.OK() {
			deleted = x
		}
	}
	if deleted == nil {
		return
	}
	last, before, open := c.Events[len(c.Events)-1], 0, false // before is the request before the DELETE
	for _, x := range c.HTTP {
		if x != deleted && x.Request.Seq < deleted.Request.Seq {
			before = max(before, x.Request.Seq)
		}
	}
	for _, x := range c.HTTP {
		switch {
		case x == deleted, x.Head == nil, x.Head.Seq > deleted.Head.Seq:
			continue
		case x.End != nil && x.End.Seq < deleted.Head.Seq:
			if x.End.From == wire.Client && x.End.Seq > before {
				t.Exercised(id) // the client closes its streams first
				open = true
			}
			continue
		}
		until := last
		if x.End != nil {
			until = x.End
		}
		open = true
		t.Check(id, until.At-deleted.Head.At < lingering, x.Request, deleted.Request, deleted.Head, until).
			To(BeTrueBecause("the client has ended its session by a DELETE and keeps a stream of it open"))
	}
	if !open {
		t.Inconclusive("the client had no stream open when it ended its session", id)
	}
}

const sessionID = `!"#$%&'()*+,-./:;<=>?@[\]^_{|}~-session`

// spelling is a server that writes its events in one of the ways that the SSE
// standard allows. text gets the data in one line, and the same JSON in several.
func spelling(name, how string, text func(data, several string) []byte) *client.Scenario {
	return &client.Scenario{
		Name: "http/sse-" + name, Transports: overHTTP(), Requirements: []string{ids.HTTPClientSSESyntax},
		Needs: "the client did not begin a session",
		Options: func(*client.ScenarioRun) server.Options {
			return server.Options{
				HTTP: server.HTTPOptions{AlwaysSSE: true},
				Behaviour: server.Behaviour{HTTP: server.HTTP{Event: func(e *server.Event) []*server.Event {
					if e.Raw == nil { // another scenario of the combined launch may be about this event
						e.Raw = text(string(e.Data), inLines(e.Data))
					}
					return []*server.Event{e}
				}}},
			}
		},
		Judge: goesOn("events came " + how),
	}
}

// marked is a server whose event streams begin with a byte order mark. Readers strip it (HTML Standard, section
// 9.2.5). A field that a reader needs stands right behind it.
var marked = &client.Scenario{
	Name: "http/sse-marked", Transports: []string{transport.NameHTTP, transport.NameSSE},
	Requirements: []string{ids.HTTPClientSSESyntax, ids.SSEClientMessageEvents},
	Needs:        "the client did not begin a session",
	Options: func(*client.ScenarioRun) server.Options {
		type first struct{ stream string }
		return server.Options{
			HTTP: server.HTTPOptions{AlwaysSSE: true},
			Behaviour: server.Behaviour{HTTP: server.HTTP{Event: func(e *server.Event) []*server.Event {
				if e.Raw != nil || len(e.Data) == 0 {
					return []*server.Event{e}
				}
				mine := new(count)
				fields := []string{"data: " + string(e.Data), "event: " + e.Name}
				if e.Name == "endpoint" {
					slices.Reverse(fields) // without its type, nobody takes the URI for another one
				}
				if e.ID != "" {
					fields = append(fields, "id: "+e.ID)
				}
				if e.Retry != "" {
					fields = append(fields, "retry: "+e.Retry)
				}
				if e.Session.Value(first{e.Stream}, func() any { return mine }) == any(mine) {
					fields[0] = "\uFEFF" + fields[0]
				}
				e.Raw = lines("\n", fields...)
				return []*server.Event{e}
			}}},
		}
	},
	Judge: func(t *client.T) {
		id := ids.HTTPClientSSESyntax
		if t.Transport == transport.NameSSE {
			id = ids.SSEClientMessageEvents
		}
		// Without the first event of a stream there is no session, and each stream begins alike.
		if c := t.Handshake(); c != nil && c.Initialized != nil {
			t.Tolerated(c.Initialized, "read an event stream that begins with a byte order mark", id)
			return
		}
		t.JudgeContinued("event streams began with a byte order mark", id)
	},
}

// hasty makes tools that ask the client give up soon. A reader may hold back a CR until it sees whether LF follows,
// and then receives the question only together with the answer.
func hasty(s *client.Scenario) *client.Scenario {
	options := s.Options
	s.Options = func(run *client.ScenarioRun) server.Options {
		o := options(run)
		o.CallTimeout = run.Patience / 5
		return o
	}
	return s
}

// inPieces cuts each event of a scenario into pieces behind every CR and within the first line.
func inPieces(s *client.Scenario) *client.Scenario {
	options := s.Options
	s.Options = func(run *client.ScenarioRun) server.Options {
		o := options(run)
		spell := o.Behaviour.HTTP.Event
		o.Behaviour.HTTP.Event = func(e *server.Event) []*server.Event {
			events := spell(e)
			for _, e := range events {
				e.Pieces = []int{2}
				for i, c := range e.Raw {
					if c == '\r' {
						e.Pieces = append(e.Pieces, i+1)
					}
				}
			}
			return events
		}
		return o
	}
	return s
}

// linesWithCRLF spells an event with data in several lines, which end with CRLF.
func linesWithCRLF(_, several string) []byte {
	fields := []string{"event: message"}
	for line := range strings.SplitSeq(several, "\n") {
		fields = append(fields, "data:"+line)
	}
	return lines("\r\n", fields...)
}

// inLines returns the same JSON in several lines.
func inLines(data []byte) string { return strings.Replace(string(data), `,"`, ",\n\"", 1) }

func lines(newline string, fields ...string) []byte {
	return []byte(strings.Join(fields, newline) + newline + newline)
}

// These are ids of events on the listening stream: the last event before the stream ends, the event after it is
// resumed, the event that is not finished there, and the event with empty data after it is resumed again.
const (
	listenedID   = "listened+/=%20"
	resumedID    = "resumed,once"
	unlistenedID = "not-finished"
	emptiedID    = "resumed,twice"
	resumedPing  = "on-the-stream-again" // the ping on the stream that the client has opened last
)

// listening pings on the listening stream and then ends the stream, while a request of the client waits. If the
// client resumes the stream, it gets one more event, and the connection breaks within another. If it resumes again,
// it gets an event with empty data, and the stream ends. A second ping comes on the stream that it has opened last.
func listening(run *client.ScenarioRun) server.Options {
	script := func(a *client.Asker) {
		ctx := a.Request.Session.Context()
		log := a.Request.Session.Log()
		// The client may still be opening the stream.
		opened, cancel := context.WithTimeout(ctx, run.Patience/4)
		defer cancel()
		if _, err := log.Await(opened, 0, client.Listens); err != nil {
			return
		}
		from := log.Len()
		a.Request.Session.Notify("notifications/tools/list_changed", nil)
		if a.PingListening("on-the-stream") == nil {
			return
		}
		// A client that ends soon would not come to it.
		await := func(which func(*wire.Event) bool) bool {
			soon, cancel := context.WithTimeout(ctx, run.Patience/client.ListeningTime)
			defer cancel()
			e, err := log.Await(soon, from, which)
			if err == nil {
				from = e.Seq + 1
			}
			return err == nil
		}
		for opened := 0; opened < 3 && await(opens); opened++ {
		}
		if !await(client.Listens) && !client.StillListens(log.Events()) {
			return
		}
		a.PingListening(resumedPing)
	}
	return server.Options{Behaviour: server.Behaviour{
		Methods: map[string]server.Middleware{"*": run.During(script)},
		HTTP: server.HTTP{
			Event: func(e *server.Event) []*server.Event {
				// A client that takes no event streams as answers gets all other pings here as well.
				if strings.HasPrefix(e.Stream, "get:") && e.Out != nil &&
					wire.Parse(e.Data).ID.Key() == wire.StringID("on-the-stream").Key() {
					e.ID, e.Retry, e.Cut = listenedID, "20", true
				}
				return []*server.Event{e}
			},
			Replay: replayListening,
		},
	}}
}

// replayListening resumes a listening stream with an event. It breaks the stream off in the next event once, and sends
// the rest later. A client that resumes behind the second event gets an event without data.
func replayListening(s *server.Session, last string, proposal, _ []*server.Event) []*server.Event {
	switch last {
	case listenedID:
	case resumedID:
		return []*server.Event{{Session: s, Name: "message", ID: emptiedID, Retry: "20", Data: []byte{}, Cut: true}}
	default:
		return proposal
	}
	next := nextEvent(s)
	if counter(s, "listened on").next() > 0 {
		return append([]*server.Event{next}, proposal...)
	}
	return []*server.Event{next, {
		Session: s, Raw: []byte("event: message\nid: " + unlistenedID + "\ndata: {\"jsonrpc\":\"2.0\",\"me"), Cut: true,
	}}
}

// opens matches a GET.
func opens(e *wire.Event) bool {
	return e.Kind == wire.KindHTTPRequest && e.HTTP.Method == http.MethodGet
}

// nextEvent returns the next event for a resumed listening stream.
func nextEvent(s *server.Session) *server.Event {
	message := map[string]any{
		"jsonrpc": "2.0", "method": "notifications/message",
		"params": map[string]any{"level": "emergency", "data": "the connection breaks now"},
	}
	text, _ := json.Marshal(message) // never fails
	return &server.Event{
		Session: s, Name: "message", ID: resumedID, Retry: "20", Data: text,
		Out: &server.Outgoing{Session: s, Kind: wire.Notification, Method: "notifications/message", Message: message},
	}
}

// judgeListenedOn judges how the client resumes a listening stream. It need not: it may also open another one. A
// client that named the last event after the end of the stream wishes to resume it.
func judgeListenedOn(t *client.T) {
	const id = ids.HTTPClientLastEventID
	ended, first := brokenAt(t, listenedID)
	if ended == nil || first == nil {
		t.Inconclusive("the client opened no further listening stream when the server had ended the first", id)
		return
	}
	switch named := first.HTTP.Header.Get("Last-Event-Id"); named {
	case "":
		t.Inconclusive("the client opens a new listening stream after the server has ended the first, and does not "+
			"resume it", id)
		return
	case listenedID:
		t.Exercised(id)
	default:
		t.Violation(id, "the client resumed its listening stream after another event than the last one that it "+
			"received", ended, first)
		return
	}
	broken, second := brokenAt(t, resumedID)
	if broken == nil || second == nil {
		return
	}
	switch named := second.HTTP.Header.Get("Last-Event-Id"); named {
	case resumedID:
		t.Exercised(id)
		judgeEmptied(t)
	case "":
		t.Violation(id, "the connection of a resumed listening stream broke, and the client sent a GET without "+
			"Last-Event-ID; the server cannot repeat what the client missed", broken, second)
	case unlistenedID:
		t.Violation(id, "the client resumed its listening stream with the id of an event that was cut, so it never "+
			"gets the content of that event", broken, second)
	default:
		t.Violation(id, "the client resumed its listening stream after another event than the last one that it "+
			"received", broken, second)
	}
}

// judgeEmptied judges whether the client resumes from an event with empty data. The text refers to the SSE standard
// for ids, and the standard dispatches such an event like any other.
func judgeEmptied(t *client.T) {
	ended, next := brokenAt(t, emptiedID)
	if next == nil {
		return
	}
	named := next.HTTP.Header.Get("Last-Event-Id")
	t.Check(ids.HTTPClientLastEventID, named == emptiedID, ended, next).
		To(BeTrueBecause("the last event on the listening stream had an id and empty data; the client did not " +
			"send that id when it resumed the stream"))
}

// brokenAt returns the event with an id, after which a GET stream ended, and the first GET after that end. Both are
// nil if there is no such event.
func brokenAt(t *client.T, id string) (last, next *wire.Event) {
	for _, c := range t.Conversations {
		for _, x := range c.HTTP {
			if x.Method() != http.MethodGet || x.Last == nil || x.Last.SSE.ID != id || x.End == nil {
				continue
			}
			i := slices.IndexFunc(c.Events, func(e *wire.Event) bool { return e.Seq > x.Last.Seq && opens(e) })
			if i < 0 {
				return x.Last, nil
			}
			return x.Last, c.Events[i]
		}
	}
	return nil, nil
}

// breakingOff breaks the connection off behind each answer.
func breakingOff(*client.ScenarioRun) server.Options {
	return server.Options{
		HTTP: server.HTTPOptions{AlwaysSSE: true},
		Behaviour: server.Behaviour{HTTP: server.HTTP{Event: func(e *server.Event) []*server.Event {
			if e.Out != nil && e.Out.Answers != nil && e.Session.Initialized() {
				e.Cut, e.Abrupt = true, true
			}
			return []*server.Event{e}
		}}},
	}
}

// sessions are the sessions of a scenario by their ids.
type sessions struct {
	mu   sync.Mutex
	byID map[string]*server.Session
}

func (k *sessions) add(_ context.Context, s *server.Session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byID == nil {
		k.byID = make(map[string]*server.Session)
	}
	k.byID[s.ID] = s
}

// only returns the session if there has been one so far, and nil otherwise.
func (k *sessions) only() *server.Session {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.byID) == 1 {
		for _, s := range k.byID {
			return s
		}
	}
	return nil
}

// of returns the session of a request, which is nil if it has none, and its body.
func (k *sessions) of(w http.ResponseWriter, r *http.Request) (s *server.Session, body []byte, err error) {
	k.mu.Lock()
	s = k.byID[r.Header.Get("Mcp-Session-Id")]
	k.mu.Unlock()
	if s != nil && r.Method == http.MethodPost {
		body, err = client.PeekBody(w, r)
	}
	return s, body, err
}

// refuse answers a request with an error status in place of the server, and
// records the exchange.
func refuse(w http.ResponseWriter, r *http.Request, s *server.Session, name string, body []byte, status int,
	answer string) {
	log, stream := s.Log(), strings.ToLower(r.Method)+":"+name
	if body != nil {
		_, _ = log.Append(wire.Event{Kind: wire.KindMessage, From: wire.Client, Stream: stream, Raw: body})
	}
	_, _ = log.Append(wire.Event{Kind: wire.KindHTTPRequest, From: wire.Client, Stream: stream,
		HTTP: transport.ReceivedHead(r)})
	header := http.Header{}
	if answer != "" {
		header.Set("Content-Type", "application/json")
	}
	_, _ = log.Append(wire.Event{Kind: wire.KindHTTPResponse, From: wire.Server, Stream: stream,
		Deliberate: []string{"*"},
		HTTP:       &wire.Head{Status: status, Header: header}})
	if answer != "" {
		_, _ = log.Append(wire.Event{Kind: wire.KindMessage, From: wire.Server, Stream: stream, Raw: []byte(answer),
			Deliberate: []string{"*"}})
	}
	_, _ = log.Append(wire.Event{Kind: wire.KindStreamEnd, From: wire.Server, Stream: stream})
	maps.Copy(w.Header(), header)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

// refusing answers two responses of the client with 400, the second time with
// an error in the body (basic/transports#sending-messages-to-the-server).
func refusing(run *client.ScenarioRun) server.Options {
	o := client.Scripted(func(a *client.Asker) {
		a.AskUser("refused-bare", "ping", nil)
		// A client may answer what comes next before it has read the refusal.
		_ = a.Request.Sleep(a.Request.Session.Context(), 2*judge.Crossing)
		a.MayLeave = a.AskUser("after-bare", "ping", nil) == nil
		a.AskUser("refused-body", "ping", nil)
		a.Fence("after-body")
	})(run)
	known := &sessions{}
	o.Behaviour.Connected = known.add
	o.Behaviour.HTTP.Middleware = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s, body, err := known.of(w, r)
			if err != nil {
				return
			}
			if m := wire.Parse(body); s != nil && m.IsResponse() {
				switch m.ID.Key() {
				case wire.StringID("refused-bare").Key():
					refuse(w, r, s, "refused-bare", body, http.StatusBadRequest, "")
					return
				case wire.StringID("refused-body").Key():
					refuse(w, r, s, "refused-body", body, http.StatusBadRequest,
						`{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"}}`)
					return
				}
			}
			next.ServeHTTP(w, r)
		})
	}
	return o
}

// announcing names the endpoint for messages by an absolute URI, at the address that the client uses.
func announcing(*client.ScenarioRun) server.Options {
	var address atomic.Value
	return server.Options{Behaviour: server.Behaviour{HTTP: server.HTTP{
		Middleware: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				address.Store("http://" + r.Host)
				next.ServeHTTP(w, r)
			})
		},
		Endpoint: func(uri string) string { return address.Load().(string) + uri },
	}}}
}

const stray = "stray-"

// judgeStrays judges messages that were posted to the announced path without its query. The passive rules look at the
// path.
func judgeStrays(t *client.T) {
	for _, c := range t.Conversations {
		for _, e := range c.Events {
			if e.Kind != wire.KindHTTPRequest || !strings.HasPrefix(e.Stream, "post:"+stray) {
				continue
			}
			if u, err := url.Parse(e.HTTP.URL); err == nil && u.Path == server.PathMessages {
				t.Violation(ids.SSEClientPostToEndpoint,
					"a message was posted without the query of the URI that the endpoint event names", c.Events[0], e)
				return
			}
		}
	}
}

// straying refuses messages that are not posted to the URI of the endpoint event. It records them in the only
// session, because they would belong to none without its id in the query.
func straying(*client.ScenarioRun) server.Options {
	known := &sessions{}
	strays := 0
	o := server.Options{}
	o.Behaviour.Connected = known.add
	o.Behaviour.HTTP.Middleware = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s := known.only()
			if r.Method != http.MethodPost || s == nil ||
				r.URL.Path == server.PathMessages && strings.Contains(r.URL.RawQuery, s.ID) {
				next.ServeHTTP(w, r)
				return
			}
			body, err := client.PeekBody(w, r)
			if err != nil {
				return
			}
			if m := wire.Parse(body); m.Kind == wire.Invalid {
				next.ServeHTTP(w, r)
				return
			}
			known.mu.Lock()
			strays++
			name := stray + strconv.Itoa(strays)
			known.mu.Unlock()
			refuse(w, r, s, name, body, http.StatusNotFound, "")
		})
	}
	return o
}

// losing answers the first request after the handshake in the first session, and
// everything that follows in that session, with 404. The session that replaces it has tools
// alone, and pings the client.
func losing(run *client.ScenarioRun) server.Options {
	o := losingAt(func(m *wire.Message) bool { return m.Method != "initialize" })
	o.Behaviour.Methods = map[string]server.Middleware{
		"*": run.During(func(a *client.Asker) { a.Try(renewedID, "ping", nil) }),
		"initialize": renewing(func(n int, result map[string]any) {
			if n > 0 {
				result["capabilities"] = map[string]any{"tools": map[string]any{}}
			}
		}),
	}
	return o
}

// renewedID is the id of the ping in the session that replaces a lost one.
const renewedID = "renewed"

// renewing changes the results of initialize. n counts the sessions from 0.
func renewing(change func(n int, result map[string]any)) server.Middleware {
	var begun count
	return server.Edit(func(_ *server.Request, result map[string]any) { change(begun.next(), result) })
}

// lostAnswerID is the id of the ping whose answer finds the session lost.
const lostAnswerID = "lost-with-its-answer"

// losingAnswer pings while the first request of the first session waits, and answers the response with 404. The
// answer to the request comes once the client has had the time to read that.
func losingAnswer(run *client.ScenarioRun) server.Options {
	first := ""
	o, l := losingFor(func(session string, m *wire.Message) bool {
		if first == "" && m.IsResponse() && m.ID.Key() == wire.StringID(lostAnswerID).Key() {
			first = session
		}
		return first == session
	})
	l.answers = true
	o.Behaviour.Methods = map[string]server.Middleware{"*": func(ctx context.Context, r *server.Request,
		next server.Handler) (any, *wire.Error) {
		if !client.IsOperation(r.Method) || !r.Session.Initialized() || l.sessions.only() != r.Session ||
			counter(r.Session, "answer lost").next() > 0 {
			return next(ctx, r)
		}
		r.Withhold()
		a := &client.Asker{Request: r, Patience: run.Patience / 3}
		if a.AskUser(lostAnswerID, "ping", nil) != nil {
			_ = r.Sleep(ctx, 2*judge.Crossing)
		}
		return next(ctx, r)
	}}
	return o
}

// losingAt loses the first session at the first request of a kind.
func losingAt(begins func(*wire.Message) bool) server.Options {
	first := ""
	return losingBy(func(session string, m *wire.Message) bool {
		if first == "" && begins(m) {
			first = session
		}
		return first == session
	})
}

// losingTwice loses the first session at the first request after the handshake, and the next
// one at the second. The third session has an older version.
func losingTwice(*client.ScenarioRun) server.Options {
	var known []string // sessions
	served := 0
	o := losingBy(func(session string, m *wire.Message) bool {
		if m.Method == "initialize" {
			return false
		}
		if !slices.Contains(known, session) {
			known = append(known, session)
		}
		if session == known[0] {
			return true
		}
		served++
		return session == known[1] && served > 1
	})
	o.Behaviour.Methods = map[string]server.Middleware{"initialize": renewing(func(n int, result map[string]any) {
		if n > 1 {
			result["protocolVersion"] = "2025-03-26"
		}
	})}
	return o
}

// losingBy loses each session at the request for which begins reports true.
func losingBy(begins func(session string, m *wire.Message) bool) server.Options {
	o, _ := losingFor(begins)
	return o
}

func losingFor(begins func(session string, m *wire.Message) bool) (server.Options, *loser) {
	l := &loser{begins: begins, lost: make(map[string]bool)}
	o := server.Options{}
	o.Behaviour.Breaks = []string{"*"}
	o.Behaviour.Connected = l.sessions.add
	o.Behaviour.HTTP.Middleware = l.wrap
	return o, l
}

type loser struct {
	sessions sessions
	begins   func(session string, m *wire.Message) bool
	answers  bool // a session is lost at a response of the client, not at a request

	mu    sync.Mutex
	lost  map[string]bool
	count int
}

func (l *loser) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, body, err := l.sessions.of(w, r)
		if err != nil {
			return
		}
		if s != nil {
			if name, again := l.takes(s.ID, body); name != "" {
				if again && r.Method == http.MethodPost {
					held(r.Context())
				}
				refuse(w, r, s, "lost-"+name, body, http.StatusNotFound, "")
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// held waits until the requests have arrived that were under way when the session was lost. The client can know of
// the loss when it sends a later one.
func held(ctx context.Context) {
	select {
	case <-time.After(judge.Crossing + judge.Crossing/4):
	case <-ctx.Done():
	}
}

// takes returns a name for a request that has to be answered with 404, or "". again says that an earlier request of
// the session was answered so.
func (l *loser) takes(id string, body []byte) (name string, again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	again = l.lost[id]
	if !again && body != nil {
		if m := wire.Parse(body); (m.Kind == wire.Request && !l.answers || m.IsResponse() && l.answers) &&
			l.begins(id, m) {
			l.lost[id] = true
		}
	}
	if !l.lost[id] {
		return "", false
	}
	l.count++
	return strconv.Itoa(l.count), again
}

// losses returns the first answer with 404 of each lost session, in the order of sending.
func losses(t *client.T) (all []loss) {
	for _, c := range t.Conversations {
		i := slices.IndexFunc(c.HTTP, func(x *wire.HTTPExchange) bool {
			return x.Status() == http.StatusNotFound && strings.Contains(x.Stream, ":lost-")
		})
		if i >= 0 {
			all = append(all, loss{c, c.HTTP[i].Head})
		}
	}
	slices.SortFunc(all, func(a, b loss) int { return cmp.Compare(a.head.At, b.head.At) })
	return all
}

// staying returns a finding on a client that begins no new session in place of a lost one, or "". Such a client
// continues in the lost session. Over stdio it comes to its end without the server process, which has ended.
func staying(t *client.T) string {
	if all := losses(t); len(all) > 0 {
		if first := all[0]; len(begunSince(t, first.session, first.head)) == 0 &&
			t.RequestsAfter(first.session, first.head) {
			return "the client still sends requests in a lost session"
		}
		return ""
	}
	if ok, decided, _ := t.Continued(); t.Transport == transport.NameStdio && ok && decided &&
		len(t.Conversations) == 1 && len(t.Requests()) > 0 {
		return "the client does not start the server again when its process has ended"
	}
	return ""
}

// loss is the answer by which a session was lost.
type loss struct {
	session *judge.Conversation
	head    *wire.Event
}

// judgeLost judges the reaction of the client to the loss of its nth session, from 0
// (basic/transports#session-management).
func judgeLost(n int) func(t *client.T) {
	return func(t *client.T) {
		if all := losses(t); len(all) > n {
			judgeReplaced(t, all[n].session, all[n].head)
		}
	}
}

// judgeLostAnswer judges the reaction of the client to a 404 for one of its responses. It has the time to begin a new
// session before the answer to its request lets it send something else.
func judgeLostAnswer(t *client.T) {
	const id = ids.HTTPClientReinitializeOn404
	all := losses(t)
	if len(all) == 0 {
		return
	}
	first, lost := all[0].session, all[0].head
	begun := begunSince(t, first, lost)
	for _, x := range client.RequestsOf(first) {
		carrier := first.Carrier(x.Request)
		if carrier == nil || x.Request.Seq < lost.Seq || x.Request.At-lost.At < judge.Crossing ||
			len(begun) > 0 && begun[0].Request.At < x.Request.At {
			continue
		}
		t.Violation(id, "a response of the client was answered with 404, but the client still sends requests in "+
			"that session", first.Carrier(lost).Request, lost, carrier.Request, x.Request)
		return
	}
	if len(begun) > 0 {
		t.Exercised(id)
		return
	}
	t.Inconclusive("the client ended when a response of its own was answered with 404", id)
}

// judgeReplaced judges whether the client begins a new session in place of the lost one.
func judgeReplaced(t *client.T, first *judge.Conversation, lost *wire.Event) {
	const again, bare = ids.HTTPClientReinitializeOn404, ids.HTTPClientReinitializeWithoutSessionID
	if begun := begunSince(t, first, lost); len(begun) > 0 {
		c, e := t.ConversationOf(begun[0]), begun[0].Request
		t.Exercised(again)
		if carrier := c.Carrier(e); carrier != nil {
			h := carrier.Request
			t.Check(bare, len(h.HTTP.Header.Values("Mcp-Session-Id")) == 0, h,
				e).To(BeTrueBecause("the initialize after 404 carries a session id"))
		}
		judgeMoved(t, first, c)
		return
	}
	asked := first.Carrier(lost).Request
	var further []*wire.Event
	for _, x := range client.RequestsOf(first) {
		if carrier := first.Carrier(x.Request); x.Request.Seq > lost.Seq && x.Request.At-lost.At >= judge.Crossing &&
			carrier != nil {
			further = append(further, carrier.Request, x.Request)
		}
	}
	if len(further) > 0 {
		t.Violation(again,
			fmt.Sprintf("after the 404 the client sent %d more requests in the lost session and no initialize to "+
				"begin a new one", len(further)/2),
			append([]*wire.Event{asked, lost}, further[:2]...)...)
		return
	}
	ended := "ended"
	if t.Ending.Exit != nil {
		ended = t.Ending.Exit.String()
	}
	t.Warning(again, "after the 404 the client "+ended+"; with an initialize it could have begun a new session",
		append(first.Carrier(lost).Sent, asked, lost)...)
}

// begunSince returns the requests with which the client began sessions after one was lost, in the
// order of the connections.
func begunSince(t *client.T, first *judge.Conversation, lost *wire.Event) (all []*judge.Exchange) {
	for _, c := range t.Conversations {
		for _, x := range c.Exchanges {
			e := x.Request
			if (c != first || e.Seq > lost.Seq) && e.At >= lost.At && x.From() == wire.Client &&
				x.Method() == "initialize" {
				all = append(all, x)
			}
		}
	}
	return all
}

// judgeMoved judges whether the client has left the lost session once it has a new
// one. It looks for a second initialized in the lost session: that cannot have been
// under way before, as it follows the answer to the new initialize.
func judgeMoved(t *client.T, lost, renewed *judge.Conversation) {
	const id = ids.HTTPClientSessionHeader
	if lost == renewed || !renewed.Handshaken() || renewed.Log.ID == lost.Log.ID {
		return
	}
	began, count := renewed.Init.Response, 0
	for _, e := range lost.Messages {
		if e.From != wire.Client || e.Msg.Method != "notifications/initialized" {
			continue
		}
		if count++; count > 1 && e.At > began.At {
			t.Violation(id, "the client has begun a new session but still sends the id of the lost one", began, e)
			return
		}
	}
	for _, e := range lost.Messages {
		if e.From == wire.Client && e.Msg.IsResponse() && e.Msg.ID.Key() == wire.StringID(renewedID).Key() {
			t.Violation(id, "a response to a request of the new session names the lost one", began, e)
			return
		}
	}
	if x, ok := t.Answered(renewedID); !ok && t.SilentTo(x) {
		t.Violation(ids.BaseResponsePresent,
			"the client does not answer a ping in the session that it began after a lost one", began, x.Request)
	}
	listens := slices.ContainsFunc(renewed.HTTP,
		func(x *wire.HTTPExchange) bool { return x.Method() == http.MethodGet })
	for _, x := range lost.HTTP {
		if x.Method() != http.MethodGet || renewed.Initialized == nil || stoppedListening(lost, x.Request) {
			continue
		}
		// A request that was under way when the session was lost is no sign against a client that listens in the new
		// one.
		if since := x.Request.At - renewed.Initialized.At; since >= judge.Crossing || since > 0 && !listens {
			t.Violation(id, "the client has begun a new session but listens with the id of the lost one", began,
				x.Request)
			return
		}
	}
	if renewed.Initialized != nil {
		t.Exercised(id)
	}
	judgeSecondEnd(t, lost, renewed)
}

// judgeSecondEnd judges whether a client also ends the session that it began in place of a lost one, if it ends other
// sessions (basic/transports#session-management).
func judgeSecondEnd(t *client.T, lost, renewed *judge.Conversation) {
	const id = ids.HTTPClientDeleteSession
	if t.Baseline == nil || renewed.Initialized == nil || t.Ending.Exit == nil ||
		*t.Ending.Exit != (wire.Exit{}) || !usedMethod(t.Baseline, http.MethodDelete) {
		return
	}
	ends := func(x *wire.HTTPExchange) bool { return x.Method() == http.MethodDelete }
	proof := []*wire.Event{renewed.Init.Response}
	if i := slices.IndexFunc(lost.HTTP, ends); i >= 0 {
		proof = append(proof, lost.HTTP[i].Request)
	}
	t.Check(id, slices.ContainsFunc(renewed.HTTP, ends), proof...).
		To(BeTrueBecause("the client ends other sessions with a DELETE, but not the session that it began after " +
			"a lost one"))
}

// stoppedListening reports whether the server has ended a listening stream of a session before an event. The client
// may then open the stream again without knowledge of the lost session. A client that has closed the stream itself
// knows of the loss.
func stoppedListening(c *judge.Conversation, before *wire.Event) bool {
	return slices.ContainsFunc(c.HTTP, func(x *wire.HTTPExchange) bool {
		return x.Method() == http.MethodGet && x.OK() && x.End != nil && x.End.From == wire.Server &&
			x.End.Seq < before.Seq
	})
}

// cutHere is the id of the last event before a stream is cut; it goes into a header as it is. cutAgain is that of the
// last event before the resumed stream is cut.
const (
	cutHere  = `cut%20here+/=?&;"here"`
	cutAgain = "cut,again"
)

// The ids of the pings on the stream that is about to be cut and on the listening stream.
const (
	beforeID = "before-the-cut"
	besideID = "beside-the-cut"
)

// unfinished is the event that the cut interrupts: it lacks the blank line. No reader dispatches it, so neither its
// id nor its data count (HTML Standard, section 9.2.6).
const (
	unfinishedID = "cut-within"
	unfinished   = "id: " + unfinishedID + "\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"" + unfinishedID +
		"\",\"method\":\"ping\"}\n"
)

// cutting cuts the stream of the first request after the handshake within an event before the answer. It cuts the
// first resumption before any event, and the second one after one event. A client that resumes once more gets the
// answer. If the client listens, its last event before the cut comes on the listening stream, which continues.
func cutting(run *client.ScenarioRun) server.Options {
	// cut is the request of a session whose stream is cut, with the number of events written on that stream.
	type cut struct {
		request atomic.Pointer[server.Request]
		written count
	}
	of := func(s *server.Session) *cut { return s.Value("cut", func() any { return new(cut) }).(*cut) }
	script := func(a *client.Asker) {
		s, log := a.Request.Session, a.Request.Session.Log()
		of(s).request.Store(a.Request)
		a.Notify("notifications/message", map[string]any{"level": "info", "data": "the connection breaks now"})
		soon, cancel := context.WithTimeout(s.Context(), run.Patience/20)
		defer cancel()
		// The answers show the order in which the client has read the two pings.
		from := log.Len()
		a.Send(map[string]any{"id": beforeID, "method": "ping"})
		if e, _ := a.Await(soon, run.Patience, from, beforeID); e == nil {
			return
		}
		if _, err := log.Await(soon, 0, client.Listens); err != nil || !client.StillListens(log.Events()) {
			return
		}
		from = log.Len()
		s.Send(&server.Outgoing{Kind: wire.Request, Method: "ping",
			Message: map[string]any{"jsonrpc": "2.0", "id": besideID, "method": "ping"}})
		a.Await(soon, run.Patience, from, besideID)
	}
	told := func(a *client.Asker) {
		script(a)
		a.Notify("notifications/message", map[string]any{"level": "info", "data": "the connection breaks again"})
	}
	return server.Options{
		HTTP: server.HTTPOptions{AlwaysSSE: true},
		Behaviour: server.Behaviour{
			Breaks:  []string{ids.HTTPServerSSENoEarlyClose, ids.HTTPServerSSERelatedMessages},
			Methods: map[string]server.Middleware{"*": run.During(told)},
			HTTP: server.HTTP{Event: func(e *server.Event) []*server.Event {
				if e.Out == nil || !strings.HasPrefix(e.Stream, "post:") {
					return []*server.Event{e}
				}
				cut := of(e.Session)
				if request := cut.request.Load(); request == nil || e.Out.To != request && e.Out.Answers != request {
					return []*server.Event{e}
				}
				switch cut.written.next() {
				case 0:
					e.ID = "cut-soon"
				case 1:
					e.ID, e.Retry = cutHere, "100"
				case 2:
					e.ID = cutAgain
					return []*server.Event{{Session: e.Session, Stream: e.Stream, Raw: []byte(unfinished), Cut: true},
						e}
				}
				return []*server.Event{e}
			}, Replay: replayCut},
		},
	}
}

// replayCut cuts a resumed stream twice before its rest comes: once before the first event, and once behind it.
func replayCut(s *server.Session, last string, proposal, _ []*server.Event) []*server.Event {
	rest := slices.DeleteFunc(proposal, func(e *server.Event) bool { return e.Cut })
	if last != cutHere || len(rest) == 0 {
		return rest
	}
	switch counter(s, "resumed").next() {
	case 0:
		return []*server.Event{{Session: s, Raw: []byte{}, Cut: true}}
	case 1:
		cut := *rest[0]
		cut.Cut = true
		return []*server.Event{&cut}
	}
	return rest
}

// resumptions is how often a client has to resume the stream to get the answer.
const resumptions = 3

func judgeCut(t *client.T) {
	var broken *wire.Event
	const resuming, last = ids.HTTPClientResumeGet, ids.HTTPClientLastEventID
	for _, c := range t.Conversations {
		for _, e := range c.Events {
			if e.SSE != nil && e.SSE.ID == cutHere {
				broken = e
				break
			}
		}
		if broken == nil {
			continue
		}
		resumed := 0
		for _, e := range c.Events[broken.Seq:] {
			if e.Kind != wire.KindHTTPRequest || e.HTTP.Method != http.MethodGet {
				continue
			}
			named := e.HTTP.Header.Values("Last-Event-Id")
			if len(named) == 0 && listensTwice(t, c) {
				t.Exercised(resuming)
				t.Violation(last, "after its stream was cut, the client sent another GET without Last-Event-ID, so "+
					"the server cannot repeat what the client missed", broken, e)
				break
			}
			if len(named) == 0 && resumed == 0 {
				// It may be the listening stream.
				t.Inconclusive("after its stream was cut, the client sent a GET without Last-Event-ID, so the "+
					"server cannot repeat what the client missed", resuming, last)
			}
			if len(named) == 0 || resumesListening(c, named[0], e) {
				continue
			}
			t.Exercised(resuming)
			message := "the client resumed the stream after another event than the last one that it received"
			if named[0] == unfinishedID {
				message = "the client resumed the stream with the id of an event that was cut, so it never gets " +
					"the content of that event"
			}
			newest := broken
			again := func(e *wire.Event) bool { return e.SSE != nil && e.SSE.ID == cutAgain }
			if i := slices.IndexFunc(c.Events[:e.Seq], again); i >= 0 {
				newest = c.Events[i]
			}
			if newest == broken && judge.Unread(c.Conversation, broken, e.Seq) {
				t.Inconclusive("the client may have closed the stream before it read the last event on it", last)
				continue
			}
			t.Check(last, named[0] == newest.SSE.ID, newest, e).To(BeTrueBecause("%s", message))
			if resumed++; resumed == resumptions || named[0] != newest.SSE.ID {
				break
			}
		}
		judgeUnfinished(t, c, broken)
		judgeSurvivedCut(t, "the stream of an answer was cut")
		return
	}
}

// judgeUnfinished judges whether the client takes an unfinished event for a message: the stream has ended before its
// blank line.
func judgeUnfinished(t *client.T, c *judge.Conversation, broken *wire.Event) {
	const id = ids.HTTPClientSSESyntax
	i := slices.IndexFunc(c.Messages, func(e *wire.Event) bool {
		return e.From == wire.Client && e.Msg.IsResponse() && e.Msg.ID.Key() == wire.StringID(unfinishedID).Key()
	})
	if i >= 0 {
		t.Violation(id, "the client answered a ping in an event that ended with its stream, before the blank line; "+
			"such an event is to be discarded", broken, c.Messages[i])
		return
	}
	t.Exercised(id)
}

// resumesListening reports whether a GET may resume a listening stream and not the one that was cut. It then names an
// event of a stream that the client has closed, or the client also resumes the cut one.
func resumesListening(c *judge.Conversation, last string, get *wire.Event) bool {
	if last == cutHere || last == cutAgain || last == "" {
		return false
	}
	i := slices.IndexFunc(c.HTTP, func(x *wire.HTTPExchange) bool {
		return x.Method() == http.MethodGet && slices.ContainsFunc(slices.Concat(x.Messages, x.Others),
			func(e *wire.Event) bool {
				return e.SSE != nil && e.SSE.ID == last && e.From == wire.Server
			})
	})
	if i < 0 {
		return false
	}
	return closedBefore(c.HTTP[i], get) || slices.ContainsFunc(c.HTTP,
		func(x *wire.HTTPExchange) bool { return x.Request.HTTP.Header.Get("Last-Event-Id") == cutHere })
}

// closedBefore reports whether a stream had ended when the client made a request. The server may see only after the
// request that the client has closed the stream.
func closedBefore(stream *wire.HTTPExchange, request *wire.Event) bool {
	end := stream.End
	return end != nil && (end.Seq < request.Seq || end.From == wire.Client && end.At-request.At < judge.Crossing)
}

// judgeSurvivedCut judges whether the client survives the cut of an answer's stream. It may wait for the answer, give
// up and say so, or continue.
func judgeSurvivedCut(t *client.T, when string) {
	const id = ids.HTTPDisconnectSurvived
	switch ok, decided, how := t.Continued(); {
	case t.Died() != "":
		t.Violation(id, "the client "+t.Died()+" after "+when, client.LastEvents(t.Last(), 4)...)
	case decided && ok:
		t.Exercised(id)
	case decided:
		t.Inconclusive("the client may stop where it does: after "+when+", "+how, id)
	}
}

// listensTwice reports whether a client, after the cut of its stream, has opened more streams with GET than with an
// ordinary server. The latest GET of the conversation is then an attempt to resume.
func listensTwice(t *client.T, c *judge.Conversation) bool {
	listening := func(c *judge.Conversation) (n int) {
		if c == nil {
			return 0
		}
		var open []*wire.HTTPExchange
		for _, x := range c.HTTP {
			if x.Method() != http.MethodGet || x.Resumes() {
				continue
			}
			open = slices.DeleteFunc(open, func(y *wire.HTTPExchange) bool { return closedBefore(y, x.Request) })
			open = append(open, x)
			n = max(n, len(open))
		}
		return n
	}
	return listening(c) > 1 && listening(t.Baseline.Handshake()) == 1
}

// judgeFallback judges whether the client falls back to the older transport
// (basic/transports#backwards-compatibility).
func judgeFallback(t *client.T) {
	var first, get *wire.Event
	for _, c := range t.Conversations {
		for _, x := range c.HTTP {
			if first == nil || x.Request.At < first.At {
				first = x.Request
			}
			if x.Method() == http.MethodGet && strings.HasSuffix(x.Request.HTTP.URL, server.PathSSE) && get == nil {
				get = x.Request
			}
		}
	}
	legacy := slices.ContainsFunc(t.Conversations, func(c *judge.Conversation) bool {
		return c.Transport == transport.NameSSE && c.Handshaken() && c.Initialized != nil
	})
	// A client that only listens with a GET has not tried the other transport.
	if first == nil || first == get && !legacy {
		return
	}
	if !strings.HasSuffix(first.HTTP.URL, server.PathSSE) {
		return // it was never at the URL of the server
	}
	if get == nil {
		judgeLookedElsewhere(t, first)
		return
	}
	t.Exercised(ids.SSEClientFallbackGet)
	t.Check(ids.SSEClientPostFirst, first.HTTP.Method == http.MethodPost,
		first).To(BeTrueBecause("the first request to the URL is a %s, not a POST", first.HTTP.Method))
	if legacy {
		judgeStays(t, get)
		t.Exercised(ids.SSEClientPostToEndpoint, ids.SSEClientMessageEvents)
	}
}

// judgeLookedElsewhere judges a client that looks for the older transport at another URL
// than the one at which its POST was refused.
func judgeLookedElsewhere(t *client.T, first *wire.Event) {
	for _, c := range t.Conversations {
		for _, x := range c.HTTP {
			if x.Method() == http.MethodGet && x.Request.At > first.At &&
				strings.Contains(x.Request.HTTP.Header.Get("Accept"), "text/event-stream") {
				t.Violation(ids.SSEClientFallbackGet,
					"after its POST was refused, the client looks for an event stream at another URL", first, x.Request)
				return
			}
		}
	}
}

// judgeStays judges whether a client that has fallen back posts to the URL of the server
// once more.
func judgeStays(t *client.T, get *wire.Event) {
	const id = ids.SSEClientFallbackStaysLegacy
	for _, c := range t.Conversations {
		moved := false // a message was posted elsewhere
		for _, x := range c.HTTP {
			if x.Method() != http.MethodPost || x.Request.At <= get.At {
				continue
			}
			if x.Request.HTTP.URL != get.HTTP.URL {
				moved = true
				continue
			}
			if m := x.Message(); m != nil && (m.Msg.Method == "initialize" || m.Msg.Method == "ping" && !moved) {
				continue // a further session begins like the first one, and a ping may be sent beside initialize
			}
			t.Violation(id, "the client has fallen back to the older transport, and posts a message to the URL of "+
				"the server", get, x.Request)
			return
		}
	}
	t.Exercised(id)
}

// usedMethod reports whether the client made a request with an HTTP method.
func usedMethod(t *client.T, method string) bool {
	return slices.ContainsFunc(t.Conversations, func(c *judge.Conversation) bool {
		return slices.ContainsFunc(c.Events, func(e *wire.Event) bool {
			return e.Kind == wire.KindHTTPRequest && e.From == wire.Client && e.HTTP.Method == method
		})
	})
}
