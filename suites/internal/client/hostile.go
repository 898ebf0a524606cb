package client

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

var hostileScenarios = []*client.Scenario{
	{
		Name:         "hostile/not-json",
		Requirements: []string{ids.BaseErrorParseSurvive, ids.BaseErrorParseError},
		Shows:        []string{ids.BaseErrorUndetectableID},
		Needs:        needsToTell,
		Options: client.Scripted(func(a *client.Asker) {
			a.Fence("before")
			a.Raw(`{"jsonrpc":"2.0","id":"broken","method":"ping"`)
			a.Raw(`not JSON at all`)
			a.Fence("after")
		}),
		Judge: func(t *client.T) {
			judgeSurvival(t, "texts that are not JSON", ids.BaseErrorParseSurvive)
			judgeComplaints(t, ids.BaseErrorParseError, -32700)
		},
	},
	{
		Name:         "hostile/envelopes",
		Requirements: []string{ids.BaseErrorInvalidRequest, ids.BaseBatchNotServed},
		Needs:        needsToTell,
		Options: client.Scripted(func(a *client.Asker) {
			a.Fence("before")
			a.Raw(`{"jsonrpc":"2.0","id":"batch-control","method":"ping"}`)
			a.Raw(`[{"jsonrpc":"2.0","id":"batch-1","method":"ping"},{"jsonrpc":"2.0","id":"batch-2","method":"ping"}]`)
			a.AskUser("after-batch", "ping", nil)
			a.Raw(`{"jsonrpc":"2.0","id":"no-method"}`)
			a.Raw(`{"jsonrpc":"1.0","id":"old-version","method":"ping"}`)
			a.Raw(`{"jsonrpc":"2.0","id":"no-such-request","result":{}}`)
			a.Raw(`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"nobody asked"}}`)
			a.Raw(`"text"`)
			// No client has to survive all this.
			a.AskUser("after", "ping", nil)
			a.Late(latePatience, "old-version", "batch-1")
		}),
		Judge: func(t *client.T) {
			// No client has to survive these; its answers are judged.
			const batches = ids.BaseBatchNotServed
			switch _, ok := t.Answered("after-batch"); {
			case slices.ContainsFunc(t.Conversations, (*judge.Conversation).Older):
				t.Inconclusive("the client agrees on an older revision, which knows batches", batches)
			case strayTo(t, "batch-1") || strayTo(t, "batch-2"):
				for _, id := range []string{"batch-1", "batch-2"} {
					if strayTo(t, id) {
						t.Violation(batches, "a request of a batch was served", replyTo(t, id))
					}
				}
			case ok:
				t.Exercised(batches)
			}
			control := replyTo(t, "batch-control")
			for _, id := range []string{"no-method", "old-version"} {
				if id == "old-version" && (control == nil || control.Msg.Kind != wire.Result) {
					continue // it serves no ping with any version
				}
				r := replyTo(t, id)
				if r == nil {
					continue
				}
				if id == "old-version" && r.Msg.Kind == wire.Result {
					// JSON-RPC 2.0, section 3, recommends to handle objects of version 1.0 (docs/positions.md,
					// leniency).
					t.Recorder().Note(ids.BaseErrorInvalidRequest, wire.Client, "a ping with jsonrpc 1.0 is served")
					continue
				}
				t.Check(ids.BaseErrorInvalidRequest, Named("a message that is not a valid request", r),
					message(t, func(e *wire.Event) bool { return e.From == wire.Server }, id)).
					To(HaveErrorCode(-32600))
			}
		},
	},
	{
		Name:         "hostile/noise",
		Requirements: []string{ids.ArchitectureClientRouting, ids.BaseErrorParseSurvive},
		Needs:        needsToTell,
		Options:      client.Scripted(makeNoise),
		Judge: func(t *client.T) {
			// No client has to survive all of it, but none may be ended by a signal.
			if _, ok := t.Answered("after-noise"); ok {
				t.Exercised(ids.ArchitectureClientRouting)
			}
			if died := t.Died(); died != "" {
				t.Violation(ids.BaseErrorParseSurvive, "the client "+died+" after invalid and unusual messages",
					client.LastEvents(t.Last(), 4)...)
			}
		},
	},
	{
		// A client may treat broken lists as it likes; its further requests are
		// judged like all others.
		Name: "hostile/lists",
		Requirements: []string{ids.SchemaCallToolRequest, ids.SchemaReadResourceRequest, ids.SchemaGetPromptRequest,
			ids.SchemaListToolsRequest, ids.SchemaListResourcesRequest, ids.SchemaListPromptsRequest},
		Needs:  client.NeedsList,
		Faults: []string{"meta.not-an-object"},
		Options: func(*client.ScenarioRun) server.Options {
			methods := make(map[string]server.Middleware)
			for method, member := range client.Listed {
				methods[method] = server.Edit(func(_ *server.Request, result map[string]any) {
					breakList(result, member)
				})
			}
			return server.Options{Behaviour: server.Behaviour{Breaks: []string{"*"}, Methods: methods}}
		},
	},
	{
		Name:         "hostile/large",
		Transports:   standardTransports(),
		Requirements: []string{ids.StdioMessageLarge, ids.HTTPMessageLarge},
		Needs:        client.NeedsList,
		Options: handling("*", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			result, rpcErr := next(ctx, r)
			object, ok := result.(map[string]any)
			if !ok || client.Listed[r.Method] == "" ||
				counter(r.Session, r.Method).next() > 0 {
				return result, rpcErr
			}
			n := counter(r.Session, "large").next()
			if n == 1 {
				// Over HTTP, the notification before the answer turns the answer into an event stream.
				r.Notify("notifications/message", map[string]any{"level": "emergency", "data": "the answer is long"})
			}
			if n < 2 {
				object[filling] = strings.Repeat("a line of sixty-four characters, which repeats a great many times ",
					1<<14)
			}
			return result, rpcErr
		}),
		Judge: func(t *client.T) {
			if len(t.Requests()) > 0 {
				id := ids.HTTPMessageLarge
				if t.Transport == "stdio" {
					id = ids.StdioMessageLarge
				}
				judgeLarge(t, id)
			}
		},
	},
}

// filling is the member that makes an answer large.
const filling = "com.example.filling"

// judgeLarge judges whether a client has read a large page of a list. It then neither gives up the request nor stops
// reading the list, unless it does so elsewhere, too.
func judgeLarge(t *client.T, id string) {
	for _, c := range t.Conversations {
		for _, x := range client.RequestsOf(c) {
			if x.Result()[filling] == nil {
				continue
			}
			answer := x.Response
			cursor, more := x.Result()["nextCursor"].(string)
			switch {
			case x.Cancelled != nil && x.Cancelled.At-answer.At >= prompt:
				t.Violation(id, "an answer of a mebibyte came, but the client waited on and gave the request up",
					x.Request, answer, x.Cancelled)
				return
			case more && t.RequestsAfter(c, answer) && !readsOn(c, x.Method(), cursor) &&
				readsFurther(t.Baseline, x.Method()):
				t.Violation(id, "the client did not use the nextCursor of an answer of a mebibyte, although it "+
					"uses that of others", x.Request, answer)
				return
			}
		}
	}
	t.JudgeContinued("an answer of a mebibyte came", id)
}

// readsFurther reports whether the client fetched a further page of the first list that it
// requested with a method.
func readsFurther(t *client.T, method string) bool {
	first := t.Sent(method)
	if first == nil {
		return false
	}
	cursor, more := first.Result()["nextCursor"].(string)
	return more && slices.ContainsFunc(t.Conversations,
		func(c *judge.Conversation) bool { return readsOn(c, method, cursor) })
}

// readsFurther reports whether the client requested a page of a list with a cursor.
func readsOn(c *judge.Conversation, method, cursor string) bool {
	return slices.ContainsFunc(client.RequestsOf(c), func(x *judge.Exchange) bool {
		return x.Method() == method && wire.At(x.Request.Msg.Params, "cursor") == cursor
	})
}

// noise is how many notifications come in a flood.
const noise = 1000

// makeNoise sends responses to no request, text in invalid encodings, deeply nested
// and long values, and a flood of notifications.
func makeNoise(a *client.Asker) {
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":"nobody","result":{}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"1999-01-01","capabilities":{},` +
			`"serverInfo":{"name":"again","version":"0"}}}`,
		`{"jsonrpc":"2.0","id":null,"result":{}}`,
		`{"jsonrpc":"2.0","result":{}}`,
		`{"jsonrpc":"2.0","id":{"a":1},"error":{"code":"none"}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` +
			"\xff\xfe \xed\xa0\x80" + `"}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"\ud800 \u0000"}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":` +
			strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":` +
			strings.Repeat("9", 10_000) + `}}`,
		"\ufeff" + `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"marked"}}`,
		"",
	} {
		a.Raw(text)
	}
	for i := range noise {
		a.Notify("notifications/progress", map[string]any{"progressToken": "nobody's", "progress": i}, "*")
	}
	a.AskUser("after-noise", "ping", nil)
}

// breakList puts invalid items before those of a list.
func breakList(result map[string]any, member string) {
	items, _ := result[member].([]any)
	result[member] = append([]any{
		42, nil, "text", []any{}, map[string]any{},
		map[string]any{"name": 7, "uri": 7, "uriTemplate": 7, "inputSchema": "none", "arguments": map[string]any{}},
	}, items...)
}

// judgeSurvival judges whether a client answers pings after hostile messages as it did
// before.
func judgeSurvival(t *client.T, what, id string) {
	before, ok := t.Answered("before")
	if !ok || t.SilentUntil(before.Request, before.Response) {
		return // there is nothing to compare with
	}
	x, ok := t.Answered("after")
	switch {
	case ok && before.Result() != nil && x.Result() == nil:
		t.Check(id, Named("a ping after "+what, x)).To(HaveResult())
	case ok:
		t.Tolerated(x.Response, "answered the ping behind "+what, id)
	case x != nil && t.RequestsAfter(t.Last(), x.Request):
		t.Exercised(id) // perhaps on another stream
	case x == nil && t.Interrupted():
		// There was no time left for the ping.
	case x == nil || t.SilentTo(x):
		t.Violation(id, "the client does not answer pings any more after "+what, client.LastEvents(t.Last(), 6)...)
	default:
		t.Violation(id, "the client ended the session after "+what, client.LastEvents(t.Last(), 6)...)
	}
}

// judgeComplaints judges the errors without a usable id that the client sent.
func judgeComplaints(t *client.T, id string, code int64) {
	for _, c := range t.Conversations {
		for _, e := range c.Messages {
			if e.From == wire.Client && e.Msg.Kind == wire.ErrorResponse && !e.Msg.ID.Usable() {
				t.Check(id, Named("text that is not JSON", e)).To(HaveErrorCode(code))
			}
		}
	}
	if _, ok := t.Answered("after"); ok && !t.HasFindings(id) {
		t.Exercised(id) // no answer is tolerated
	}
}

// replyTo returns the client's response with an id, whether or not a request had it.
func replyTo(t *client.T, id string) *wire.Event {
	return message(t, func(e *wire.Event) bool { return e.From == wire.Client && e.Msg.IsResponse() }, id)
}

func message(t *client.T, is func(*wire.Event) bool, id string) *wire.Event {
	for _, c := range t.Conversations {
		for _, e := range c.Messages {
			if is(e) && e.Msg.ID.Key() == wire.StringID(id).Key() {
				return e
			}
		}
	}
	return nil
}

// outcome names the content of a response for a finding: its result or its error.
func outcome(r *wire.Event) string {
	if r.Msg.Kind != wire.ErrorResponse || r.Msg.Error == nil {
		return "a result"
	}
	return "the error " + strconv.FormatInt(r.Msg.Error.Code, 10)
}
