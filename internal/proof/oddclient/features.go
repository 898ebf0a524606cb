package oddclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/internal/proof/spell"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var (
	ofPing         = at("basic/utilities/ping#behavior-requirements")
	ofTokens       = at("basic/utilities/progress#progress-flow")
	ofCancellation = at("basic/utilities/cancellation#behavior-requirements")
	ofPagination   = at("server/utilities/pagination#request-format")
	ofRoots        = at("client/roots#listing-roots")
	ofRoot         = at("client/roots#root")
	ofForms        = at("client/elicitation#response-actions")
	ofSampling     = at("client/sampling#creating-messages")
	ofRefusals     = at("client/sampling#error-handling")
)

// tokens asks for the progress of every request.
func tokens(token func(n int) any) apply {
	return func(c *client.Standalone) {
		n := 0
		Editing(func(m *wire.Message) bool { return m.Kind == wire.Request }, func(m object) {
			p, ok := m["params"].(object)
			if !ok {
				p = object{}
			}
			n++
			p["_meta"] = object{"progressToken": token(n)}
			m["params"] = p
		})(c)
	}
}

// cancelling starts a request, waits and cancels it, several times.
func cancelling(times int, pause time.Duration, params func(id wire.ID) object) apply {
	return Further("tools", func(ctx context.Context, s *client.Session) {
		for range times {
			p, err := s.Start(ctx, "tools/call", SlowCall(2, nil))
			if err != nil || pause > 0 && !Passes(ctx, pause) {
				return
			}
			_ = s.Notify(ctx, "notifications/cancelled", params(p.ID))
		}
		_, _ = s.Call(ctx, "ping", nil)
	})
}

func requestID(id wire.ID) json.RawMessage { return json.RawMessage(id.String()) }

const anyToken = "A token is a string or an integer, chosen by any means, and unique across the active requests."

// leafing reads pages of each list until they are enough, and uses its first item.
func leafing(enough func(pages, items int) bool) apply {
	return using(func(ctx context.Context, s *client.Session, call client.Call) error {
		for _, list := range []struct{ name, method, key string }{
			{"tools", "tools/call", "name"}, {"resources", "resources/read", "uri"}, {"prompts", "prompts/get", "name"},
		} {
			var items []any
			var params object
			for pages, more := 1, s.Capability(list.name); more; pages++ {
				x, err := call(ctx, list.name+"/list", params)
				if err != nil {
					return err
				}
				page, _ := x.Result()[list.name].([]any)
				items = append(items, page...)
				var cursor string
				cursor, more = x.Result()["nextCursor"].(string)
				params, more = object{"cursor": cursor}, more && !enough(pages, len(items))
			}
			if len(items) == 0 {
				continue
			}
			if key, ok := wire.At(items[0], list.key).(string); ok {
				if _, err := call(ctx, list.method, object{list.key: key}); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// longLists are the scenarios that show how far a client reads a list.
var longLists = []string{
	"lists/pages", "lists/whole", "lists/endless", "hostile/large", "lists/lost-session", "lists/cut-characters",
}

var utilityOddities = []Oddity{
	{ID: "ping.often", Summary: "A ping stands before each other request.",
		Why:    "Either side may ping; only excess should be avoided, which the text does not measure.",
		Source: at("basic/utilities/ping#implementation-considerations"),
		Apply: func(c *client.Standalone) {
			n := 0
			Sending(Calls("tools/call", "resources/read", "prompts/get"),
				func(_ *wire.Message, out outgoing) []outgoing {
					n++
					return []outgoing{{Raw: []byte(ping(fmt.Sprintf("often-%d", n)))}, out}
				})(c)
		}},
	{ID: "ping.together", Summary: "Eight pings are under way at the same time.",
		Why: "Requests do not have to wait for each other.", Source: ofPing,
		Apply: Doing(func(ctx context.Context, s *client.Session) {
			Together(ctx, s, "ping", nil, nil, nil, nil, nil, nil, nil, nil)
		})},
	{ID: "requests.together", Summary: "Five tool calls are under way at the same time.",
		Why: "Requests do not have to wait for each other.", Source: at("basic/lifecycle#operation"),
		Apply: Further("tools", func(ctx context.Context, s *client.Session) {
			Together(ctx, s, "tools/call", SlowCall(0.3, nil), SlowCall(0.2, nil), SlowCall(0.1, nil), SlowCall(0, nil),
				object{"name": "echo", "arguments": object{"text": "x"}})
		})},
	{ID: "requests.mixed-together", Summary: "A list, a read, a prompt and a ping are under way while a tool works.",
		Why: "Requests do not have to wait for each other.", Source: at("basic/lifecycle#operation"),
		Apply: Further("tools", func(ctx context.Context, s *client.Session) {
			slow, err := s.Start(ctx, "tools/call", SlowCall(0.3, nil))
			if err != nil {
				return
			}
			Together(ctx, s, "ping", nil, nil)
			Together(ctx, s, "tools/list", nil, nil)
			if s.Capability("resources") {
				Together(ctx, s, "resources/list", nil, nil)
			}
			_, _ = slow.Await(ctx)
		})},
	{ID: "progress.integers", Summary: "Every request asks for progress, with a token that is an integer.",
		Why: anyToken, Source: ofTokens, Scenarios: []string{"features/progress", "time/endless-progress"},
		Apply: tokens(func(n int) any { return n })},
	{ID: "progress.strings", Summary: "Every request asks for progress, with a token that has letters beyond ASCII.",
		Why: anyToken, Source: ofTokens, Scenarios: []string{"features/progress", "time/endless-progress"},
		Apply: tokens(func(n int) any { return fmt.Sprintf("Fortschritt „%d“ \u2028 🎉", n) })},
	{ID: "progress.odd-integers", Summary: "Progress tokens are zero, negative and beyond what a double holds.",
		Why: anyToken, Source: ofTokens, Scenarios: []string{"features/progress"},
		Apply: tokens(func(n int) any { return []any{0, -n, 1<<62 + n}[min(n/2, 2)] })},
	{ID: "progress.token-of-id", Summary: "The progress token of a request is its id.", Why: anyToken,
		Source: ofTokens,
		Apply: Editing(func(m *wire.Message) bool { return m.Kind == wire.Request }, func(m object) {
			p, ok := m["params"].(object)
			if !ok {
				p = object{}
			}
			p["_meta"] = object{"progressToken": m["id"]}
			m["params"] = p
		})},
	{ID: "progress.token-again", Summary: "Requests that follow one another have the same progress token.",
		Why: "A token is unique across active requests; after the answer it is free.", Source: ofTokens,
		Apply: Further("tools", func(ctx context.Context, s *client.Session) {
			for range 3 {
				_, _ = s.Call(ctx, "tools/call", SlowCall(0.05, object{"progressToken": "again"}))
			}
		})},
	{ID: "progress.of-the-client",
		Summary: "The client reports progress of what the server asks for, in fractions, and does so without a total.",
		Why:     "Either side may send progress for a token that it was given; total is optional.",
		Source:  at("basic/utilities/progress#behavior-requirements"), Scenarios: []string{Sampling, Elicitation},
		Apply: All(Obedient, reporting(0.1, 0.5, 1))},
	{ID: "progress.of-two-answers",
		Summary: "Two lists are asked for at once, and the client reports progress of all that the server asks " +
			"for meanwhile.",
		Why:    "Requests do not have to wait for each other, and the tokens of two that are active differ.",
		Source: at("basic/utilities/progress#progress-flow"), Scenarios: []string{Sampling, Elicitation},
		Apply: All(Obedient, reporting(0.1, 0.5, 1),
			Delaying(time.Second/10, "sampling/createMessage", "elicitation/create"),
			Further("tools", func(ctx context.Context, s *client.Session) {
				Together(ctx, s, "tools/list", nil, nil)
			}))},
	{ID: "cancellation.at-once", Summary: "A tool call is cancelled as soon as it is sent, without a reason.",
		Why: "reason is optional, and a request is in progress once it is sent.", Source: ofCancellation,
		Apply: cancelling(2, 0, func(id wire.ID) object { return object{"requestId": requestID(id)} })},
	{ID: "cancellation.with-reason", Summary: "A tool call is cancelled while it works, with a long reason.",
		Why: "reason is any string.", Source: ofCancellation,
		Apply: cancelling(2, 200*time.Millisecond, func(id wire.ID) object {
			return object{"requestId": requestID(id), "reason": strings.Repeat("Changed my mind. ", 40) + "\n\t🙃",
				"com.example.by": "user"}
		})},
	{ID: "cancellation.of-lists", Summary: "Lists and pings are cancelled while they are under way.",
		Why:    "Every request but initialize may be cancelled.",
		Source: at("basic/utilities/cancellation#behavior-requirements"),
		Apply: Doing(func(ctx context.Context, s *client.Session) {
			methods := []string{"ping"}
			if s.Capability("tools") {
				methods = append(methods, "tools/list")
			}
			for _, method := range methods {
				if p, err := s.Start(ctx, method, nil); err == nil {
					_ = s.Notify(ctx, "notifications/cancelled", object{"requestId": requestID(p.ID)})
				}
			}
			_, _ = s.Call(ctx, "ping", nil)
		})},
	{ID: "cancellation.twice", Summary: "A tool call is cancelled twice, at once.",
		Why: "The second cancellation refers to a request that the client still believes to be in progress: " +
			"nothing has come for it.",
		Source: at("basic/utilities/cancellation#timing-considerations"),
		Apply: Further("tools", func(ctx context.Context, s *client.Session) {
			if p, err := s.Start(ctx, "tools/call", SlowCall(2, nil)); err == nil {
				for range 2 {
					_ = s.Notify(ctx, "notifications/cancelled", object{"requestId": requestID(p.ID)})
				}
			}
			_, _ = s.Call(ctx, "ping", nil)
		})},
	{ID: "cancellation.crosses",
		Summary: "The cancellation of a request leaves at the moment when the answer arrives.",
		Why:     "A cancellation may arrive after the answer has been sent; both sides handle that.",
		Source:  at("basic/utilities/cancellation#timing-considerations"),
		Apply:   cancelling(3, 0, func(id wire.ID) object { return object{"requestId": requestID(id)} })},
	{ID: "cancellation.obeyed", Summary: "A request that the server has cancelled gets no answer.",
		Why:       "The receiver should not send a response for the cancelled request.",
		Source:    at("basic/utilities/cancellation#behavior-requirements"),
		Scenarios: []string{Sampling, Elicitation, RootsSeen},
		Apply: All(Obedient, Delaying(20*time.Millisecond, "sampling/createMessage", "elicitation/create",
			"roots/list"))},
	{ID: "cancellation.refused", Summary: "A request that the server has cancelled is answered with an error.",
		Why:       "The receiver may ignore a cancellation if the request cannot be cancelled or has been processed.",
		Source:    at("basic/utilities/cancellation#behavior-requirements"),
		Scenarios: []string{RootsSeen, Sampling, Elicitation},
		Apply: Editing(Replies("roots-cancelled"),
			func(m object) { delete(m, "result"); m["error"] = object{"code": -32603, "message": "Interrupted"} })},
}

// reporting reports the progress of requests of the server that ask for it, before
// they are answered.
func reporting(steps ...float64) apply {
	return func(c *client.Standalone) {
		var send func(ctx context.Context, text []byte)
		Wrapping(func(conn transport.Conn) transport.Conn {
			send = func(ctx context.Context, text []byte) { _, _ = conn.Send(ctx, outgoing{Raw: text}) }
			return conn
		})(c)
		Changing(func(o *client.Options) {
			for _, method := range []string{"sampling/createMessage", "elicitation/create"} {
				serve := o.Answers[method]
				if serve == nil {
					continue
				}
				o.Answers[method] = func(ctx context.Context, params any) (any, *wire.Error) {
					if token := wire.At(params, "_meta", "progressToken"); token != nil {
						for _, step := range steps {
							send(ctx, client.Marshal(object{"jsonrpc": "2.0", "method": "notifications/progress",
								"params": object{"progressToken": token, "progress": step, "message": "thinking"}}))
						}
					}
					return serve(ctx, params)
				}
			}
		})(c)
	}
}

const anyUse = "No page says when or how often a client has to use a feature."

var useOddities = []Oddity{
	{ID: "lists.never",
		Summary:   "Tools, resources and prompts are used by names that the client knows, and never listed.",
		Why:       "Lists are for discovery; nothing ties a use to a list before.",
		Source:    at("server/tools#calling-tools"),
		Scenarios: []string{Requests, "lists/pages", "lists/virtual-files", Sampling}, Untried: nothingUsed,
		Apply: using(func(ctx context.Context, s *client.Session, call client.Call) error {
			for _, step := range []struct {
				capability, method string
				params             object
			}{
				{"tools", "tools/call", object{"name": "echo", "arguments": object{"text": "by heart"}}},
				{"tools", "tools/call", object{"name": "test_simple_text"}},
				{"resources", "resources/read", object{"uri": "test://static-text"}},
				{"prompts", "prompts/get", object{"name": "test_simple_prompt"}},
			} {
				if s.Capability(step.capability) {
					if _, err := call(ctx, step.method, step.params); err != nil {
						return err
					}
				}
			}
			return nil
		})},
	{ID: "lists.only", Summary: "The client lists tools, resources and prompts, and uses none of them.",
		Why: optionalUse, Source: at("server/tools#user-interaction-model"),
		Scenarios: []string{Requests, "lists/pages", "lists/whole", "time/silent-tool"}, Untried: nothingUsed,
		Apply: using(func(ctx context.Context, s *client.Session, call client.Call) error {
			for _, list := range []string{"tools", "resources", "prompts"} {
				if s.Capability(list) {
					if _, err := call(ctx, list+"/list", nil); err != nil {
						return err
					}
				}
			}
			return nil
		})},
	{ID: "lists.nothing-to-do",
		Summary: "The client ends with status 1 if the list of tools is empty: it has no work then.",
		Why:     "No page says what the exit status of a client means.", Source: at("basic/lifecycle#shutdown"),
		Scenarios: []string{"content/empty"}, Untried: nothingUsed,
		Apply: using(func(ctx context.Context, s *client.Session, call client.Call) error {
			if !s.Capability("tools") {
				return nil
			}
			x, err := call(ctx, "tools/list", nil)
			if err != nil {
				return err
			}
			if tools, ok := x.Result()["tools"].(list); ok && len(tools) == 0 && x.Result()["nextCursor"] == nil {
				return errors.New("the server has no tools")
			}
			_, err = call(ctx, "tools/call", object{"name": "echo", "arguments": object{"text": "work"}})
			return err
		})},
	{ID: "lists.twice", Summary: "Each list is requested twice.", Why: anyUse,
		Source: at("server/tools#listing-tools"), Scenarios: []string{"lists/changed", "lists/pages"},
		Apply: Doing(func(ctx context.Context, s *client.Session) {
			for _, list := range []string{"tools", "resources", "prompts"} {
				if s.Capability(list) {
					_, _ = s.Call(ctx, list+"/list", nil)
				}
			}
		})},
	{ID: "lists.first-page-later",
		Summary: "The client reads the list of tools to its end, and later requests its first page, as a sign of life.",
		Why:     anyUse, Source: at("server/tools#listing-tools"),
		Scenarios: []string{"lists/changed", "lists/pages"}, Untried: nothingUsed,
		Apply: using(func(ctx context.Context, s *client.Session, call client.Call) error {
			if !s.Capability("tools") {
				return nil
			}
			for params := (object{}); params != nil; {
				x, err := call(ctx, "tools/list", params)
				if err != nil {
					return err
				}
				params = nil
				if cursor, more := x.Result()["nextCursor"].(string); more {
					params = object{"cursor": cursor}
				}
			}
			for range 2 {
				if _, err := call(ctx, "tools/list", nil); err != nil {
					return err
				}
			}
			_, err := call(ctx, "tools/call", object{"name": "echo", "arguments": object{"text": "x"}})
			return err
		})},
	{ID: "lists.first-page-besides",
		Summary: "Changed lists are read again to their end; later the first page of tools is read, as a sign of life.",
		Why:     anyUse, Source: at("server/tools#listing-tools"), Scenarios: []string{"lists/changed"},
		Apply: Further("tools", func(ctx context.Context, s *client.Session) {
			_, _ = s.Call(ctx, "tools/list", nil)
			_, _ = s.Call(ctx, "ping", nil)
			_, _ = s.Call(ctx, "tools/call", object{"name": "echo", "arguments": object{"text": "x"}})
		})},
	{ID: "lists.stale", Summary: "The client does not list again what the server has announced as changed.",
		Why:    "The announcement binds the server; a client may ask again when it needs the list.",
		Source: at("server/tools#list-changed-notification"), Scenarios: []string{"lists/changed"},
		Untried: nothingUsed,
		Apply: using(func(ctx context.Context, s *client.Session, call client.Call) error {
			if !s.Capability("tools") {
				return nil
			}
			if _, err := call(ctx, "tools/list", nil); err != nil {
				return err
			}
			for _, name := range []string{"toggle_tool", "toggle_tool", "echo"} {
				if _, err := call(ctx, "tools/call",
					object{"name": name, "arguments": object{"text": "x"}}); err != nil {
					return err
				}
			}
			return nil
		})},
	{ID: "pages.first-only",
		Summary: "The client reads only the first page of each list that has an item, and uses the first item alone.",
		Why:     "After receiving a cursor, the client can continue; a user who has found what was wanted does not.",
		Source:  ofPagination, Scenarios: longLists, Untried: nothingUsed,
		Apply: leafing(func(_, items int) bool { return items > 0 })},
	{ID: "pages.back",
		Summary: "When the client has read a list to its end, it asks for a page before the last one again.",
		Why:     "A cursor is a position in the result set; nothing says how often a client goes there.",
		Source:  ofPagination, Scenarios: []string{"lists/pages"},
		Apply: Calling("resources/templates/list", object{"cursor": "page=3&of=resources/templates/list"})},
	{ID: "pages.few", Summary: "The client reads at most three pages of each list, and uses the first item alone.",
		Why:    "After receiving a cursor, the client can continue; nothing says that it has to, or how far.",
		Source: ofPagination, Scenarios: longLists, Untried: nothingUsed,
		Apply: leafing(func(pages, _ int) bool { return pages == 3 })},
	{ID: "pages.until-found",
		Summary: "The client reads each list until it has found the item that it wants, which is the fifth, " +
			"and uses the first alone.",
		Why:    "After receiving a cursor, the client can continue; a user who has found what was wanted does not.",
		Source: ofPagination, Scenarios: longLists, Untried: nothingUsed,
		Apply: leafing(func(_, items int) bool { return items >= 5 })},
	{ID: "pages.again", Summary: "A page is requested twice with the same cursor.",
		Why:       "A cursor represents a position; nothing says that it is good for one use.",
		Source:    at("server/utilities/pagination#pagination-model"),
		Scenarios: []string{"lists/pages", "lists/endless"},
		Apply: Doing(func(ctx context.Context, s *client.Session) {
			if !s.Capability("tools") {
				return
			}
			x, err := s.Call(ctx, "tools/list", nil)
			if cursor, ok := x.Result()["nextCursor"].(string); ok && err == nil {
				for range 2 {
					_, _ = s.Call(ctx, "tools/list", object{"cursor": cursor})
				}
			}
		})},
	{ID: "pages.interleaved", Summary: "The pages of two lists are read in turn.",
		Why: "Each cursor belongs to its list; no order binds the lists.", Source: ofPagination,
		Scenarios: []string{"lists/pages"},
		Apply: Doing(func(ctx context.Context, s *client.Session) {
			cursors := map[string]any{"tools/list": nil, "resources/list": nil}
			if !s.Capability("tools") || !s.Capability("resources") {
				return
			}
			for range 4 {
				for _, method := range []string{"tools/list", "resources/list"} {
					var params any
					if cursors[method] != nil {
						params = object{"cursor": cursors[method]}
					}
					x, err := s.Call(ctx, method, params)
					if err != nil {
						return
					}
					cursors[method] = x.Result()["nextCursor"]
				}
			}
		})},
	{ID: "tools.no-arguments", Summary: "Tools that need no arguments are called without the member.",
		Why: "arguments is optional.", Source: at("schema#calltoolrequest"),
		Apply: Params("tools/call", func(p object) {
			if arguments, ok := p["arguments"].(object); ok && len(arguments) == 0 {
				delete(p, "arguments")
			}
		})},
	{ID: "tools.unknown", Summary: "A tool is called that the server does not have.",
		Why: "The server refuses it; the text forbids nobody to ask.", Source: at("server/tools#error-handling"),
		Apply: Further("tools", func(ctx context.Context, s *client.Session) {
			_, _ = s.Call(ctx, "tools/call", object{"name": "no_such_tool", "arguments": object{}})
		})},
	{ID: "tools.odd-arguments", Summary: "A tool is called with arguments that do not fit its schema.",
		Why:    "The server validates the inputs of tools; what a model produces may not fit.",
		Source: at("server/tools#security-considerations"),
		Apply: Further("tools", func(ctx context.Context, s *client.Session) {
			_, _ = s.Call(ctx, "tools/call", object{"name": "sum",
				"arguments": object{"a": "one", "b": list{}, "c": nil}})
		})},
	{ID: "resources.unlisted", Summary: "A resource is read that no list has shown.",
		Why:    "Links and templates lead to resources that are not listed.",
		Source: at("server/tools#resource-links"),
		Apply: Further("resources", func(ctx context.Context, s *client.Session) {
			_, _ = s.Call(ctx, "resources/read", object{"uri": "test://template/41/data"})
			_, _ = s.Call(ctx, "resources/read", object{"uri": "test://nowhere/at-all"})
		})},
	{ID: "resources.subscribes-twice", Summary: "A resource is subscribed to twice and never left.",
		Why:    "No page forbids a second subscription or requires an end.",
		Source: at("server/resources#subscriptions"),
		Apply: Further("resources.subscribe", func(ctx context.Context, s *client.Session) {
			for range 2 {
				_, _ = s.Call(ctx, "resources/subscribe", object{"uri": "test://static-text"})
			}
		})},
	{ID: "resources.subscribes-again", Summary: "A resource is subscribed to, left, and subscribed to again.",
		Why: anyUse, Source: at("server/resources#subscriptions"),
		Apply: Further("resources.subscribe", func(ctx context.Context, s *client.Session) {
			for range 2 {
				_, _ = s.Call(ctx, "resources/subscribe", object{"uri": "test://static-text"})
				_, _ = s.Call(ctx, "resources/unsubscribe", object{"uri": "test://static-text"})
			}
		})},
	{ID: "prompts.more-arguments", Summary: "A prompt gets an argument that it does not list, and an empty one.",
		Why: "arguments maps any names to strings.", Source: at("schema#getpromptrequest"),
		Apply: Further("prompts", func(ctx context.Context, s *client.Session) {
			_, _ = s.Call(ctx, "prompts/get", object{"name": "test_simple_prompt",
				"arguments": object{"com.example.tone": "warm", "": ""}})
		})},
	{ID: "completion.letter-by-letter", Summary: "Completions are requested for each letter, several at a time.",
		Why:    "Rapid requests should be debounced, but the text gives no rate.",
		Source: at("server/utilities/completion#requesting-completions"),
		Apply: Further("completions", func(ctx context.Context, s *client.Session) {
			var all []any
			for i := range 4 {
				all = append(all, object{"ref": object{"type": "ref/prompt", "name": "travel"},
					"argument": object{"name": "country", "value": "Fran"[:i+1]}})
			}
			Together(ctx, s, "completion/complete", all...)
		})},
	{ID: "completion.with-context",
		Summary: "Completions come with the arguments so far, and for the template of a resource.",
		Why:     "context.arguments holds what was resolved before; ref/resource names a template.",
		Source:  at("server/utilities/completion#reference-types"),
		Apply: Further("completions", func(ctx context.Context, s *client.Session) {
			_, _ = s.Call(ctx, "completion/complete", object{
				"ref": object{"type": "ref/prompt", "name": "travel"}, "argument": object{"name": "city", "value": "P"},
				"context": object{"arguments": object{"country": "France"}},
			})
			_, _ = s.Call(ctx, "completion/complete", object{
				"ref":      object{"type": "ref/resource", "uri": "test://template/{id}/data"},
				"argument": object{"name": "id", "value": ""},
				"context":  object{},
			})
		})},
	{ID: "logging.all-levels", Summary: "Each of the eight levels is set in turn, and the last one twice.",
		Why: "Clients may set the level, at any time.", Source: at("server/utilities/logging#setting-log-level"),
		Apply: Further("logging", func(ctx context.Context, s *client.Session) {
			for _, level := range []string{"debug", "info", "notice", "warning", "error", "critical", "alert",
				"emergency", "emergency"} {
				_, _ = s.Call(ctx, "logging/setLevel", object{"level": level})
			}
		})},
}

// refusingSampling refuses all sampling requests with an error.
func refusingSampling(code int64, message string) apply {
	return answering(func(any) (any, *wire.Error) { return nil, &wire.Error{Code: code, Message: message} },
		"sampling/createMessage")
}

// unsampled are the requirements that a client leaves open which refuses all sampling.
var unsampled = []string{"sampling.*", ids.BaseErrorInvalidParams, "content.*", ids.SchemaCreateMessageResult}

const anyRefusal = "A user may deny every request, and only an example has a code."

// sampled changes the messages that are generated.
func sampled(change func(r object)) apply { return Amending("sampling/createMessage", change) }

var samplingOddities = []Oddity{
	{ID: "sampling.user-rejects", Summary: "All sampling requests are refused with -1.", Why: anyRefusal,
		Source: ofRefusals, Scenarios: []string{Sampling, "acts/sampling"}, Untried: unsampled,
		Apply: refusingSampling(-1, "User rejected sampling request")},
	{ID: "sampling.policy-rejects", Summary: "All sampling requests are refused with -32603.", Why: anyRefusal,
		Source: ofRefusals, Scenarios: []string{Sampling, "acts/sampling"}, Untried: unsampled,
		Apply: refusingSampling(-32603, "Internal error: no model is configured")},
	{ID: "sampling.invalid-rejects", Summary: "All sampling requests are refused with -32602.", Why: anyRefusal,
		Source: ofRefusals, Scenarios: []string{Sampling, "acts/sampling"}, Untried: unsampled,
		Apply: refusingSampling(-32602, "The model does not take these parameters")},
	{ID: "sampling.rejects-in-turn", Summary: "Every second sampling request is refused.",
		Why: "The user decides on each request anew.", Source: at("client/sampling#user-interaction-model"),
		Scenarios: []string{Sampling, "acts/sampling"}, Untried: unsampled,
		Apply: All(untold("sampling"), Changing(func(o *client.Options) {
			serve, asked := o.Answers["sampling/createMessage"], 0
			if serve == nil {
				return
			}
			o.Answers["sampling/createMessage"] = func(ctx context.Context, params any) (any, *wire.Error) {
				if asked++; asked%2 == 0 {
					return nil, &wire.Error{Code: -1, Message: "User rejected sampling request"}
				}
				return serve(ctx, params)
			}
		}))},
	{ID: "sampling.text-only", Summary: "Sampling requests with images are refused.",
		Why:    "The client selects the model, and not every model can see.",
		Source: at("client/sampling#model-hints"), Scenarios: []string{Sampling}, Untried: unsampled,
		Apply: Handling("sampling/createMessage",
			func(ctx context.Context, params any, serve client.Answer) (any, *wire.Error) {
				messages, _ := wire.At(params, "messages").(list)
				for _, m := range messages {
					if kind := wire.At(m, "content", "type"); kind == "image" || kind == "audio" {
						return nil, &wire.Error{Code: -32602, Message: "The model reads text alone"}
					}
				}
				return serve(ctx, params)
			})},
	{ID: "sampling.image", Summary: "The generated message is an image.",
		Why: "A sampled message holds text, an image or audio.", Source: at("client/sampling#messages"),
		Scenarios: []string{Sampling, "acts/sampling"}, Untried: []string{ids.SamplingMaxTokensLimit},
		Apply: sampled(Having("content", object{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png",
			"annotations": object{"priority": 0, "audience": list{"user", "assistant"}}}))},
	{ID: "sampling.audio", Summary: "The generated message is audio.",
		Why: "A sampled message holds text, an image or audio.", Source: at("client/sampling#messages"),
		Scenarios: []string{Sampling}, Untried: []string{ids.SamplingMaxTokensLimit},
		Apply: sampled(Having("content", object{"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}))},
	{ID: "sampling.no-stop-reason", Summary: "The result has no stopReason.", Why: "stopReason is optional.",
		Source: at("schema#createmessageresult"), Scenarios: []string{Sampling},
		Apply: sampled(Lacking("stopReason"))},
	{ID: "sampling.own-stop-reason", Summary: "stopReason is a word of the provider's own.",
		Why: "stopReason is one of three words or any string.", Source: at("schema#createmessageresult"),
		Scenarios: []string{Sampling}, Apply: sampled(Having("stopReason", "content_filter"))},
	{ID: "sampling.empty-text", Summary: "The generated text is empty.", Why: "text is any string.",
		Source: ofSampling, Scenarios: []string{Sampling},
		Apply: sampled(Having("content", object{"type": "text", "text": ""}))},
	{ID: "sampling.other-model",
		Summary: "The model is not one of the hints, and its name has slashes, blanks and a colon.",
		Why:     "Hints are advisory; clients make the final selection.", Source: at("client/sampling#model-hints"),
		Scenarios: []string{Sampling}, Apply: sampled(Having("model", "org/Größtes Modell:7b (local)"))},
	{ID: "sampling.person", Summary: "A person takes half a minute for each sampling request.",
		Why:    "A human in the loop reviews requests; no time is given.",
		Source: at("client/sampling#user-interaction-model"), Scenarios: []string{Sampling, "acts/sampling"},
		Untried: append([]string{ids.BaseErrorMethodNotFound, "elicitation.*", "roots.*"}, unsampled...),
		Apply:   Delaying(30*time.Second, "sampling/createMessage")},
	{ID: "sampling.limited",
		Summary: "A sampling request that comes within a second of the last is refused with -32000, before the " +
			"user sees it.",
		Why:    "Clients should limit the rate, and no code is named for that.",
		Source: at("client/sampling#security-considerations"), Scenarios: []string{Sampling, "acts/sampling"},
		Untried: append([]string{ids.BaseErrorMethodNotFound}, unsampled...),
		Apply:   limiting("sampling/createMessage")},
	{ID: "sampling.limited-in-all",
		Summary: "From the tenth on, sampling requests of a session are refused with -32602.",
		Why:     "Clients should limit the rate, and no code is named for that.",
		Source:  at("client/sampling#security-considerations"), Scenarios: []string{Sampling, Sequences},
		Untried: unsampled,
		Apply: fromTenth("sampling/createMessage", func(context.Context) (any, *wire.Error) {
			return nil, &wire.Error{Code: -32602, Message: "Too many requests"}
		})},
}

// fromTenth serves requests of a method from the tenth on in another way.
func fromTenth(method string, by func(ctx context.Context) (any, *wire.Error)) apply {
	const last = 9
	return func(c *client.Standalone) {
		var asked atomic.Int64
		Handling(method, func(ctx context.Context, params any, serve client.Answer) (any, *wire.Error) {
			if asked.Add(1) > last {
				return by(ctx)
			}
			return serve(ctx, params)
		})(c)
	}
}

// limiting refuses requests of a method that come within a second of the last that was served.
func limiting(method string) apply {
	return Changing(func(o *client.Options) {
		serve := o.Answers[method]
		if serve == nil {
			return
		}
		var mu sync.Mutex
		var last time.Time
		o.Answers[method] = func(ctx context.Context, params any) (any, *wire.Error) {
			mu.Lock()
			early := time.Since(last) < time.Second
			if !early {
				last = time.Now()
			}
			mu.Unlock()
			if early {
				return nil, &wire.Error{Code: -32000, Message: "Too many requests"}
			}
			return serve(ctx, params)
		}
	})
}

// acting gives all forms the same end.
func acting(result object) apply {
	return answering(func(any) (any, *wire.Error) {
		copied := object{}
		for name, v := range result {
			copied[name] = v
		}
		return copied, nil
	}, "elicitation/create")
}

// untold takes no notice of what a user would do about a topic, such as roots.
func untold(topic string) apply {
	return func(c *client.Standalone) {
		told := slices.DeleteFunc(strings.Fields(c.UserActions),
			func(what string) bool { return strings.HasPrefix(what, topic+"=") })
		c.UserActions = strings.Join(told, " ")
	}
}

// unfilled are the requirements that a client leaves open whose user fills no form.
var unfilled = []string{"elicitation.*", ids.SchemaElicitResult}

var elicitationOddities = []Oddity{
	{ID: "user.untold",
		Summary: "The client accepts every request of the server and never changes its roots, whatever a user " +
			"is said to do.",
		Why:       "The text leaves user interaction to the client; what a test says of users binds nobody.",
		Source:    at("client/elicitation#user-interaction-model"),
		Scenarios: []string{"acts/elicitation", "acts/sampling", "acts/roots", "acts/root-folder"},
		Untried: []string{"elicitation.action.*", ids.ElicitationContentOnlyWithAccept,
			ids.SamplingErrorUserRejected, "roots.*"},
		Apply: func(c *client.Standalone) { c.UserActions = "" }},
	{ID: "elicitation.undeclared-declines", Summary: "Forms are declined, and elicitation is not declared.",
		Why: "A form that nobody shows is declined as it would be refused.", Source: ofForms,
		Scenarios: []string{Elicitation}, Untried: unfilled,
		Apply: All(Changing(func(o *client.Options) { delete(o.Capabilities, "elicitation") }),
			acting(object{"action": "decline"}))},
	{ID: "elicitation.declines", Summary: "All forms are declined.", Why: "Users can decline at any time.",
		Source: ofForms, Scenarios: []string{Elicitation, "acts/elicitation"}, Untried: unfilled,
		Apply: acting(object{"action": "decline"})},
	{ID: "elicitation.cancels", Summary: "All forms are cancelled.",
		Why: "Users can dismiss a form without a choice.", Source: ofForms,
		Scenarios: []string{Elicitation, "acts/elicitation"}, Untried: unfilled,
		Apply: acting(object{"action": "cancel"})},
	{ID: "elicitation.declines-once", Summary: "The first form is declined, the others are filled in.",
		Why: "The user decides on each form anew.", Source: ofForms,
		Scenarios: []string{Elicitation, "acts/elicitation"}, Untried: unfilled,
		Apply: All(untold("elicitation"), Changing(func(o *client.Options) {
			serve, asked := o.Answers["elicitation/create"], false
			if serve == nil {
				return
			}
			o.Answers["elicitation/create"] = func(ctx context.Context, params any) (any, *wire.Error) {
				if !asked {
					asked = true
					return object{"action": "decline"}, nil
				}
				return serve(ctx, params)
			}
		}))},
	{ID: "elicitation.declines-some", Summary: "Forms with a number are declined, the others are filled in.",
		Why: "The user decides on each form anew.", Source: ofForms, Scenarios: []string{Elicitation},
		Untried: unfilled,
		Apply: Handling("elicitation/create",
			func(ctx context.Context, params any, serve client.Answer) (any, *wire.Error) {
				if strings.Contains(fmt.Sprint(wire.At(params, "requestedSchema")), "number") {
					return object{"action": "decline"}, nil
				}
				return serve(ctx, params)
			})},
	{ID: "elicitation.fractions", Summary: "Integers in a form are written as 3.0.",
		Why: "3.0 is an integer in JSON Schema.", Source: at("client/elicitation#supported-schema-types"),
		Scenarios: []string{Elicitation},
		Apply: spelled(func(m *wire.Message) bool {
			return m.Kind == wire.Result && wire.At(m.Result, "action") != nil
		}, spell.Speller{Number: func(n json.Number) any {
			if strings.ContainsAny(n.String(), ".eE") {
				return n.String()
			}
			return n.String() + ".0"
		}})},
	{ID: "elicitation.person", Summary: "A person takes half a minute for each form.",
		Why:       "A human fills in the form; no time is given.",
		Source:    at("client/elicitation#user-interaction-model"),
		Scenarios: []string{Elicitation, "acts/elicitation"},
		Untried:   append([]string{"sampling.*", "roots.*", ids.BaseErrorMethodNotFound}, unfilled...),
		Apply:     Delaying(30*time.Second, "elicitation/create")},
	{ID: "elicitation.limited",
		Summary:   "A form that comes within a second of the last is refused with -32000, before the user sees it.",
		Why:       "Clients should limit the rate, and no code is named for that.",
		Source:    at("client/elicitation#security-considerations"),
		Scenarios: []string{Elicitation, "acts/elicitation"},
		Untried:   append([]string{ids.BaseErrorMethodNotFound}, unfilled...),
		Apply:     limiting("elicitation/create")},
	{ID: "elicitation.user-leaves", Summary: "From the tenth on, forms of a session get no answer.",
		Why:    "A human fills in the form, and may leave.",
		Source: at("client/elicitation#user-interaction-model"), Scenarios: []string{Elicitation, Sequences},
		Untried: unfilled,
		Apply: fromTenth("elicitation/create", func(ctx context.Context) (any, *wire.Error) {
			<-ctx.Done()
			return nil, nil
		})},
}

// listingRoots lists roots anew at each request.
func listingRoots(roots func(n int) list) apply {
	return All(untold("roots"), Changing(func(o *client.Options) {
		n := 0
		o.Answers["roots/list"] = func(context.Context, any) (any, *wire.Error) {
			n++
			return object{"roots": roots(n)}, nil
		}
	}))
}

func root(uri string) object { return object{"uri": uri} }

// unchanged are the requirements that a client leaves open whose roots never change.
var unchanged = []string{ids.RootsListCurrent, "roots.list-changed.*", "roots.client.*", "roots.root.*",
	"roots.security.*"}

var rootOddities = []Oddity{
	{ID: "roots.none", Summary: "The list of roots is empty.", Why: "roots is an array of any length.",
		Source: ofRoots, Scenarios: []string{RootsSeen, "acts/roots", "acts/root-folder"}, Untried: unchanged,
		Apply: listingRoots(func(int) list { return list{} })},
	{ID: "roots.shuffled", Summary: "The same roots come in another order each time.",
		Why: "Roots are a set of boundaries; the text gives them no order.", Source: ofRoots,
		Scenarios: []string{RootsSeen, "acts/roots", "acts/root-folder"}, Untried: unchanged,
		Apply: listingRoots(func(n int) list {
			all := list{root("file:///srv/a"), root("file:///srv/b"), root("file:///srv/c")}
			return append(all[n%3:len(all):len(all)], all[:n%3]...)
		})},
	{ID: "roots.unannounced", Summary: "Each list of roots differs from the last, and listChanged is not declared.",
		Why: "Clients that support listChanged announce changes.", Source: at("client/roots#root-list-changes"),
		Scenarios: []string{RootsSeen, Sequences}, Untried: unchanged,
		Apply: All(
			listingRoots(func(n int) list { return list{root(fmt.Sprintf("file:///srv/project-%d", n))} }),
			Changing(func(o *client.Options) {
				if o.Capabilities["roots"] != nil {
					o.Capabilities["roots"] = object{}
				}
			}),
			Dropping(Calls("notifications/roots/list_changed")),
		)},
	{ID: "roots.many", Summary: "There are two hundred roots, without names.",
		Why: "name is optional, and no number is given.", Source: ofRoot,
		Scenarios: []string{RootsSeen, "acts/roots"}, Untried: unchanged,
		Apply: listingRoots(func(int) (all list) {
			for i := range 200 {
				all = append(all, root(fmt.Sprintf("file:///srv/project-%03d", i)))
			}
			return all
		})},
	{ID: "roots.odd-uris",
		Summary: "The URIs of roots have a host, escapes, a drive, a final slash, dots within names, or are " +
			"the root folder.",
		Why:    "A root is identified by a file:// URI, of any form that RFC 3986 and RFC 8089 have.",
		Source: ofRoot, Scenarios: []string{RootsSeen, "acts/roots"}, Untried: unchanged,
		Apply: listingRoots(func(int) list {
			return list{
				root("file:///"), root("file://localhost/srv/data"), root("file:///C:/Users/Some%20One/"),
				root("file:///srv/%E4%BD%A0%E5%A5%BD"),
				root("file:///srv/..data/a...b/.hidden"), root("file:///srv/a%23b%3Fc"),
				root("file:///srv/data/"), root("file:///srv/(x)!$&'*+,;=:@"),
			}
		})},
	{ID: "roots.same-names", Summary: "All roots have the same name, one is within the other.",
		Why: "uri identifies a root; name is for display.", Source: ofRoot, Scenarios: []string{RootsSeen},
		Untried: unchanged,
		Apply: listingRoots(func(int) list {
			return list{object{"uri": "file:///srv", "name": "work"}, object{"uri": "file:///srv/work", "name": "work"},
				object{"uri": "file:///tmp", "name": ""}}
		})},
	{ID: "roots.announced-often",
		Summary: "Ten announcements of changed roots come in a row, although the list is the same.",
		Why:     "A change has to be announced; an announcement more is not forbidden, and a change may be undone.",
		Source:  at("client/roots#root-list-changes"), Scenarios: []string{RootsSeen, "acts/roots"},
		Apply: Doing(func(ctx context.Context, s *client.Session) {
			if _, declared := s.Options.Capabilities["roots"]; declared {
				for range 10 {
					_ = s.Notify(ctx, "notifications/roots/list_changed", nil)
				}
			}
		})},
	{ID: "roots.announced-with-list",
		Summary: "The client looks at its folders when it is asked for roots, and announces a change before " +
			"it answers; later the list is the same.",
		Why: "The answer holds what was announced before it.", Source: at("client/roots#root-list-changes"),
		Scenarios: []string{RootsSeen, "acts/roots"}, Untried: unchanged,
		Apply: All(untold("roots"), Before(Replies("roots-0", "roots-1", "roots-2", "roots-3"),
			`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`))},
	{ID: "roots.failing", Summary: "roots/list is answered with -32603.",
		Why: "Internal errors are one of the listed failures.", Source: at("client/roots#error-handling"),
		Scenarios: []string{RootsSeen, "acts/roots", "acts/root-folder"},
		Untried:   []string{"roots.*", ids.SchemaListRootsResult},
		Apply: answering(func(any) (any, *wire.Error) {
			return nil, &wire.Error{Code: -32603, Message: "Internal error"}
		}, "roots/list")},
	{ID: "roots.person", Summary: "A person takes half a minute to consent to each list of roots.",
		Why:       "Clients should ask for consent; no time is given.",
		Source:    at("client/roots#implementation-guidelines"),
		Scenarios: []string{RootsSeen, "acts/roots", "acts/root-folder"},
		Untried:   []string{"roots.*", "sampling.*", "elicitation.*", ids.SchemaListRootsResult},
		Apply:     Delaying(30*time.Second, "roots/list")},
	{ID: "roots.polled",
		Summary: "The client looks for its folders every five seconds: until then it lists one that was removed, " +
			"and announces nothing.",
		Why: "Roots should be watched; no time is given.", Source: at("client/roots#implementation-guidelines"),
		Scenarios: []string{"acts/root-folder"}, Apply: polled(5 * time.Second)},
	{ID: "roots.polled-rarely",
		Summary: "The client looks for its folders every eight seconds, and once more before it leaves.",
		Why:     "Roots should be watched; no time is given.", Source: at("client/roots#implementation-guidelines"),
		Scenarios: []string{"acts/root-folder"}, Untried: []string{ids.RootsClientValidateAccessible},
		Apply: polled(8 * time.Second)},
}

// polled lists the roots that were found last for some time, and announces changes as late, if there is a folder that
// may be removed.
func polled(every time.Duration) apply {
	return func(c *client.Standalone) {
		if !strings.Contains(c.UserActions, "roots=/") {
			return
		}
		c.Timeout = every + time.Second
		var found any
		var looked time.Time
		Pausing(Calls("notifications/roots/list_changed"), every)(c)
		Amending("roots/list", func(r object) {
			if found == nil || time.Since(looked) > every {
				found, looked = r["roots"], time.Now()
			}
			r["roots"] = found
		})(c)
	}
}
