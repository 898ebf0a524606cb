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
	ofPing         = "basic/utilities/ping#behavior-requirements"
	ofTokens       = "basic/utilities/progress#progress-flow"
	ofCancellation = "basic/utilities/cancellation#behavior-requirements"
	ofPagination   = "server/utilities/pagination#request-format"
	ofRoots        = "client/roots#listing-roots"
	ofRoot         = "client/roots#root"
	ofForms        = "client/elicitation#response-actions"
	ofSampling     = "client/sampling#creating-messages"
	ofRefusals     = "client/sampling#error-handling"
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
				items = append(items, wire.Items(x.Result(), list.name)...)
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
var longLists = []string{"lists/pages", "lists/whole", "lists/endless", "hostile/large", "lists/lost-session",
	"lists/cut-characters"}

var utilityOddities = []Oddity{
	odd("ping.often", "A ping stands before each other request.",
		"Either side may ping; only excess should be avoided, which the text does not measure.",
		"basic/utilities/ping#implementation-considerations", func(c *client.Standalone) {
			n := 0
			Sending(Calls("tools/call", "resources/read", "prompts/get"),
				func(_ *wire.Message, out outgoing) []outgoing {
					n++
					return []outgoing{{Raw: []byte(ping(fmt.Sprintf("often-%d", n)))}, out}
				})(c)
		}),
	odd("ping.together", "Eight pings are under way at the same time.", "Requests do not have to wait for each other.",
		ofPing, Doing(func(ctx context.Context, s *client.Session) {
			Together(ctx, s, "ping", nil, nil, nil, nil, nil, nil, nil, nil)
		})),
	odd("requests.together", "Five tool calls are under way at the same time.",
		"Requests do not have to wait for each other.", "basic/lifecycle#operation",
		Further("tools", func(ctx context.Context, s *client.Session) {
			Together(ctx, s, "tools/call", SlowCall(0.3, nil), SlowCall(0.2, nil), SlowCall(0.1, nil), SlowCall(0, nil),
				object{"name": "echo", "arguments": object{"text": "x"}})
		})),
	odd("requests.mixed-together", "A list, a read, a prompt and a ping are under way while a tool works.",
		"Requests do not have to wait for each other.", "basic/lifecycle#operation",
		Further("tools", func(ctx context.Context, s *client.Session) {
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
		})),
	odd("progress.integers", "Every request asks for progress, with a token that is an integer.", anyToken, ofTokens,
		tokens(func(n int) any { return n })).In("features/progress", "time/endless-progress"),
	odd("progress.strings", "Every request asks for progress, with a token that has letters beyond ASCII.", anyToken,
		ofTokens, tokens(func(n int) any { return fmt.Sprintf("Fortschritt „%d“ \u2028 🎉", n) })).
		In("features/progress", "time/endless-progress"),
	odd("progress.odd-integers", "Progress tokens are zero, negative and beyond what a double holds.", anyToken,
		ofTokens, tokens(func(n int) any { return []any{0, -n, 1<<62 + n}[min(n/2, 2)] })).In("features/progress"),
	odd("progress.token-of-id", "The progress token of a request is its id.", anyToken, ofTokens,
		Editing(func(m *wire.Message) bool { return m.Kind == wire.Request }, func(m object) {
			p, ok := m["params"].(object)
			if !ok {
				p = object{}
			}
			p["_meta"] = object{"progressToken": m["id"]}
			m["params"] = p
		})),
	odd("progress.token-again", "Requests that follow one another have the same progress token.",
		"A token is unique across active requests; after the answer it is free.", ofTokens,
		Further("tools", func(ctx context.Context, s *client.Session) {
			for range 3 {
				_, _ = s.Call(ctx, "tools/call", SlowCall(0.05, object{"progressToken": "again"}))
			}
		})),
	odd("progress.of-the-client",
		"The client reports progress of what the server asks for, in fractions, and does so without a total.",
		"Either side may send progress for a token that it was given; total is optional.",
		"basic/utilities/progress#behavior-requirements", All(Obedient, reporting(0.1, 0.5, 1))).
		In(Sampling, Elicitation),
	odd("progress.of-two-answers",
		"Two lists are asked for at once, and the client reports progress of all that the server asks for meanwhile.",
		"Requests do not have to wait for each other, and the tokens of two that are active differ.",
		"basic/utilities/progress#progress-flow", All(Obedient, reporting(0.1, 0.5, 1),
			Delaying(time.Second/10, "sampling/createMessage", "elicitation/create"),
			Further("tools", func(ctx context.Context, s *client.Session) {
				Together(ctx, s, "tools/list", nil, nil)
			}))).In(Sampling, Elicitation),
	odd("cancellation.at-once", "A tool call is cancelled as soon as it is sent, without a reason.",
		"reason is optional, and a request is in progress once it is sent.", ofCancellation,
		cancelling(2, 0, func(id wire.ID) object { return object{"requestId": requestID(id)} })),
	odd("cancellation.with-reason", "A tool call is cancelled while it works, with a long reason.",
		"reason is any string.", ofCancellation, cancelling(2, 200*time.Millisecond, func(id wire.ID) object {
			return object{"requestId": requestID(id), "reason": strings.Repeat("Changed my mind. ", 40) + "\n\t🙃",
				"com.example.by": "user"}
		})),
	odd("cancellation.of-lists", "Lists and pings are cancelled while they are under way.",
		"Every request but initialize may be cancelled.", "basic/utilities/cancellation#behavior-requirements",
		Doing(func(ctx context.Context, s *client.Session) {
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
		})),
	odd("cancellation.twice", "A tool call is cancelled twice, at once.",
		"The second cancellation refers to a request that the client still believes to be in progress: nothing has "+
			"come for it.", "basic/utilities/cancellation#timing-considerations",
		Further("tools", func(ctx context.Context, s *client.Session) {
			if p, err := s.Start(ctx, "tools/call", SlowCall(2, nil)); err == nil {
				for range 2 {
					_ = s.Notify(ctx, "notifications/cancelled", object{"requestId": requestID(p.ID)})
				}
			}
			_, _ = s.Call(ctx, "ping", nil)
		})),
	odd("cancellation.crosses", "The cancellation of a request leaves at the moment when the answer arrives.",
		"A cancellation may arrive after the answer has been sent; both sides handle that.",
		"basic/utilities/cancellation#timing-considerations",
		cancelling(3, 0, func(id wire.ID) object { return object{"requestId": requestID(id)} })),
	odd("cancellation.obeyed", "A request that the server has cancelled gets no answer.",
		"The receiver should not send a response for the cancelled request.",
		"basic/utilities/cancellation#behavior-requirements",
		All(Obedient, Delaying(20*time.Millisecond, "sampling/createMessage", "elicitation/create",
			"roots/list"))).In(Sampling, Elicitation, RootsSeen),
	odd("cancellation.refused", "A request that the server has cancelled is answered with an error.",
		"The receiver may ignore a cancellation if the request cannot be cancelled or has been processed.",
		"basic/utilities/cancellation#behavior-requirements", Editing(Replies("roots-cancelled"),
			func(m object) { delete(m, "result"); m["error"] = object{"code": -32603, "message": "Interrupted"} })).
		In(RootsSeen, Sampling, Elicitation),
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
	odd("lists.never", "Tools, resources and prompts are used by names that the client knows, and never listed.",
		"Lists are for discovery; nothing ties a use to a list before.", "server/tools#calling-tools",
		using(func(ctx context.Context, s *client.Session, call client.Call) error {
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
		})).In(Requests, "lists/pages", "lists/virtual-files", Sampling).Open(nothingUsed...),
	odd("lists.only", "The client lists tools, resources and prompts, and uses none of them.", optionalUse,
		"server/tools#user-interaction-model",
		using(func(ctx context.Context, s *client.Session, call client.Call) error {
			for _, list := range []string{"tools", "resources", "prompts"} {
				if s.Capability(list) {
					if _, err := call(ctx, list+"/list", nil); err != nil {
						return err
					}
				}
			}
			return nil
		})).In(Requests, "lists/pages", "lists/whole", "time/silent-tool").Open(nothingUsed...),
	odd("lists.nothing-to-do", "The client ends with status 1 if the list of tools is empty: it has no work then.",
		"No page says what the exit status of a client means.", "basic/lifecycle#shutdown",
		using(func(ctx context.Context, s *client.Session, call client.Call) error {
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
		})).In("content/empty").Open(nothingUsed...),
	odd("lists.twice", "Each list is requested twice.", anyUse, "server/tools#listing-tools",
		Doing(func(ctx context.Context, s *client.Session) {
			for _, list := range []string{"tools", "resources", "prompts"} {
				if s.Capability(list) {
					_, _ = s.Call(ctx, list+"/list", nil)
				}
			}
		})).In("lists/changed", "lists/pages"),
	odd("lists.first-page-later",
		"The client reads the list of tools to its end, and later requests its first page, as a sign of life.", anyUse,
		"server/tools#listing-tools", using(func(ctx context.Context, s *client.Session, call client.Call) error {
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
		})).In("lists/changed", "lists/pages").Open(nothingUsed...),
	odd("lists.first-page-besides",
		"Changed lists are read again to their end; later the first page of tools is read, as a sign of life.", anyUse,
		"server/tools#listing-tools", Further("tools", func(ctx context.Context, s *client.Session) {
			_, _ = s.Call(ctx, "tools/list", nil)
			_, _ = s.Call(ctx, "ping", nil)
			_, _ = s.Call(ctx, "tools/call", object{"name": "echo", "arguments": object{"text": "x"}})
		})).In("lists/changed"),
	odd("lists.stale", "The client does not list again what the server has announced as changed.",
		"The announcement binds the server; a client may ask again when it needs the list.",
		"server/tools#list-changed-notification",
		using(func(ctx context.Context, s *client.Session, call client.Call) error {
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
		})).In("lists/changed").Open(nothingUsed...),
	odd("pages.first-only",
		"The client reads only the first page of each list that has an item, and uses the first item alone.",
		"After receiving a cursor, the client can continue; a user who has found what was wanted does not.",
		ofPagination, leafing(func(_, items int) bool { return items > 0 })).In(longLists...).Open(nothingUsed...),
	odd("pages.back", "When the client has read a list to its end, it asks for a page before the last one again.",
		"A cursor is a position in the result set; nothing says how often a client goes there.", ofPagination,
		Calling("resources/templates/list", object{"cursor": "page=3&of=resources/templates/list"})).In("lists/pages"),
	odd("pages.few", "The client reads at most three pages of each list, and uses the first item alone.",
		"After receiving a cursor, the client can continue; nothing says that it has to, or how far.", ofPagination,
		leafing(func(pages, _ int) bool { return pages == 3 })).In(longLists...).Open(nothingUsed...),
	odd("pages.until-found", "The client reads each list until it has found the item that it wants, which is the "+
		"fifth, and uses the first alone.", "After receiving a cursor, the client can continue; a user who has "+
		"found what was wanted does not.", ofPagination,
		leafing(func(_, items int) bool { return items >= 5 })).In(longLists...).Open(nothingUsed...),
	odd("pages.again", "A page is requested twice with the same cursor.",
		"A cursor represents a position; nothing says that it is good for one use.",
		"server/utilities/pagination#pagination-model", Doing(func(ctx context.Context, s *client.Session) {
			if !s.Capability("tools") {
				return
			}
			x, err := s.Call(ctx, "tools/list", nil)
			if cursor, ok := x.Result()["nextCursor"].(string); ok && err == nil {
				for range 2 {
					_, _ = s.Call(ctx, "tools/list", object{"cursor": cursor})
				}
			}
		})).In("lists/pages", "lists/endless"),
	odd("pages.interleaved", "The pages of two lists are read in turn.",
		"Each cursor belongs to its list; no order binds the lists.", ofPagination,
		Doing(func(ctx context.Context, s *client.Session) {
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
		})).In("lists/pages"),
	odd("tools.no-arguments", "Tools that need no arguments are called without the member.", "arguments is optional.",
		"schema#calltoolrequest", Params("tools/call", func(p object) {
			if arguments, ok := p["arguments"].(object); ok && len(arguments) == 0 {
				delete(p, "arguments")
			}
		})),
	odd("tools.unknown", "A tool is called that the server does not have.",
		"The server refuses it; the text forbids nobody to ask.", "server/tools#error-handling",
		Further("tools", func(ctx context.Context, s *client.Session) {
			_, _ = s.Call(ctx, "tools/call", object{"name": "no_such_tool", "arguments": object{}})
		})),
	odd("tools.odd-arguments", "A tool is called with arguments that do not fit its schema.",
		"The server validates the inputs of tools; what a model produces may not fit.",
		"server/tools#security-considerations", Further("tools", func(ctx context.Context, s *client.Session) {
			_, _ = s.Call(ctx, "tools/call", object{"name": "sum",
				"arguments": object{"a": "one", "b": list{}, "c": nil}})
		})),
	odd("resources.unlisted", "A resource is read that no list has shown.",
		"Links and templates lead to resources that are not listed.", "server/tools#resource-links",
		Further("resources", func(ctx context.Context, s *client.Session) {
			_, _ = s.Call(ctx, "resources/read", object{"uri": "test://template/41/data"})
			_, _ = s.Call(ctx, "resources/read", object{"uri": "test://nowhere/at-all"})
		})),
	odd("resources.subscribes-twice", "A resource is subscribed to twice and never left.",
		"No page forbids a second subscription or requires an end.", "server/resources#subscriptions",
		Further("resources.subscribe", func(ctx context.Context, s *client.Session) {
			for range 2 {
				_, _ = s.Call(ctx, "resources/subscribe", object{"uri": "test://static-text"})
			}
		})),
	odd("resources.subscribes-again", "A resource is subscribed to, left, and subscribed to again.", anyUse,
		"server/resources#subscriptions", Further("resources.subscribe", func(ctx context.Context, s *client.Session) {
			for range 2 {
				_, _ = s.Call(ctx, "resources/subscribe", object{"uri": "test://static-text"})
				_, _ = s.Call(ctx, "resources/unsubscribe", object{"uri": "test://static-text"})
			}
		})),
	odd("prompts.more-arguments", "A prompt gets an argument that it does not list, and an empty one.",
		"arguments maps any names to strings.", "schema#getpromptrequest",
		Further("prompts", func(ctx context.Context, s *client.Session) {
			_, _ = s.Call(ctx, "prompts/get", object{"name": "test_simple_prompt",
				"arguments": object{"com.example.tone": "warm", "": ""}})
		})),
	odd("completion.letter-by-letter", "Completions are requested for each letter, several at a time.",
		"Rapid requests should be debounced, but the text gives no rate.",
		"server/utilities/completion#requesting-completions",
		Further("completions", func(ctx context.Context, s *client.Session) {
			var all []any
			for i := range 4 {
				all = append(all, object{"ref": object{"type": "ref/prompt", "name": "travel"},
					"argument": object{"name": "country", "value": "Fran"[:i+1]}})
			}
			Together(ctx, s, "completion/complete", all...)
		})),
	odd("completion.with-context", "Completions come with the arguments so far, and for the template of a resource.",
		"context.arguments holds what was resolved before; ref/resource names a template.",
		"server/utilities/completion#reference-types",
		Further("completions", func(ctx context.Context, s *client.Session) {
			_, _ = s.Call(ctx, "completion/complete", object{
				"ref": object{"type": "ref/prompt", "name": "travel"}, "argument": object{"name": "city", "value": "P"},
				"context": object{"arguments": object{"country": "France"}},
			})
			_, _ = s.Call(ctx, "completion/complete", object{
				"ref":      object{"type": "ref/resource", "uri": "test://template/{id}/data"},
				"argument": object{"name": "id", "value": ""},
				"context":  object{},
			})
		})),
	odd("logging.all-levels", "Each of the eight levels is set in turn, and the last one twice.",
		"Clients may set the level, at any time.", "server/utilities/logging#setting-log-level",
		Further("logging", func(ctx context.Context, s *client.Session) {
			for _, level := range []string{"debug", "info", "notice", "warning", "error", "critical", "alert",
				"emergency", "emergency"} {
				_, _ = s.Call(ctx, "logging/setLevel", object{"level": level})
			}
		})),
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
	odd("sampling.user-rejects", "All sampling requests are refused with -1.", anyRefusal, ofRefusals,
		refusingSampling(-1, "User rejected sampling request")).In(Sampling, "acts/sampling").Open(unsampled...),
	odd("sampling.policy-rejects", "All sampling requests are refused with -32603.", anyRefusal, ofRefusals,
		refusingSampling(-32603, "Internal error: no model is configured")).In(Sampling, "acts/sampling").
		Open(unsampled...),
	odd("sampling.invalid-rejects", "All sampling requests are refused with -32602.", anyRefusal, ofRefusals,
		refusingSampling(-32602, "The model does not take these parameters")).In(Sampling, "acts/sampling").
		Open(unsampled...),
	odd("sampling.rejects-in-turn", "Every second sampling request is refused.",
		"The user decides on each request anew.", "client/sampling#user-interaction-model",
		All(untold("sampling"), Changing(func(o *client.Options) {
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
		}))).In(Sampling, "acts/sampling").Open(unsampled...),
	odd("sampling.text-only", "Sampling requests with images are refused.",
		"The client selects the model, and not every model can see.", "client/sampling#model-hints",
		Handling("sampling/createMessage",
			func(ctx context.Context, params any, serve client.Answer) (any, *wire.Error) {
				for _, m := range wire.Items(params, "messages") {
					if kind := wire.At(m, "content", "type"); kind == "image" || kind == "audio" {
						return nil, &wire.Error{Code: -32602, Message: "The model reads text alone"}
					}
				}
				return serve(ctx, params)
			})).In(Sampling).Open(unsampled...),
	odd("sampling.image", "The generated message is an image.", "A sampled message holds text, an image or audio.",
		"client/sampling#messages",
		sampled(Having("content", object{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png",
			"annotations": object{"priority": 0, "audience": list{"user", "assistant"}}}))).
		In(Sampling, "acts/sampling").Open(ids.SamplingMaxTokensLimit),
	odd("sampling.audio", "The generated message is audio.", "A sampled message holds text, an image or audio.",
		"client/sampling#messages",
		sampled(Having("content", object{"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}))).In(Sampling).
		Open(ids.SamplingMaxTokensLimit),
	odd("sampling.no-stop-reason", "The result has no stopReason.", "stopReason is optional.",
		"schema#createmessageresult", sampled(Lacking("stopReason"))).In(Sampling),
	odd("sampling.own-stop-reason", "stopReason is a word of the provider's own.",
		"stopReason is one of three words or any string.", "schema#createmessageresult",
		sampled(Having("stopReason", "content_filter"))).In(Sampling),
	odd("sampling.empty-text", "The generated text is empty.", "text is any string.", ofSampling,
		sampled(Having("content", object{"type": "text", "text": ""}))).In(Sampling),
	odd("sampling.other-model", "The model is not one of the hints, and its name has slashes, blanks and a colon.",
		"Hints are advisory; clients make the final selection.", "client/sampling#model-hints",
		sampled(Having("model", "org/Größtes Modell:7b (local)"))).In(Sampling),
	odd("sampling.person", "A person takes half a minute for each sampling request.",
		"A human in the loop reviews requests; no time is given.", "client/sampling#user-interaction-model",
		Delaying(30*time.Second, "sampling/createMessage")).In(Sampling, "acts/sampling").
		Open(append([]string{ids.BaseErrorMethodNotFound, "elicitation.*", "roots.*"}, unsampled...)...),
	odd("sampling.limited",
		"A sampling request that comes within a second of the last is refused with -32000, before the user sees it.",
		"Clients should limit the rate, and no code is named for that.",
		"client/sampling#security-considerations", limiting("sampling/createMessage")).In(Sampling, "acts/sampling").
		Open(append([]string{ids.BaseErrorMethodNotFound}, unsampled...)...),
	odd("sampling.limited-in-all", "From the tenth on, sampling requests of a session are refused with -32602.",
		"Clients should limit the rate, and no code is named for that.", "client/sampling#security-considerations",
		fromTenth("sampling/createMessage", func(context.Context) (any, *wire.Error) {
			return nil, &wire.Error{Code: -32602, Message: "Too many requests"}
		})).In(Sampling, Sequences).Open(unsampled...),
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
	odd("user.untold",
		"The client accepts every request of the server and never changes its roots, whatever a user is said to do.",
		"The text leaves user interaction to the client; what a test says of users binds nobody.",
		"client/elicitation#user-interaction-model", func(c *client.Standalone) { c.UserActions = "" }).
		In("acts/elicitation", "acts/sampling", "acts/roots", "acts/root-folder").
		Open("elicitation.action.*", ids.ElicitationContentOnlyWithAccept, ids.SamplingErrorUserRejected, "roots.*"),
	odd("elicitation.undeclared-declines", "Forms are declined, and elicitation is not declared.",
		"A form that nobody shows is declined as it would be refused.", ofForms,
		All(Changing(func(o *client.Options) { delete(o.Capabilities, "elicitation") }),
			acting(object{"action": "decline"}))).In(Elicitation).Open(unfilled...),
	odd("elicitation.declines", "All forms are declined.", "Users can decline at any time.", ofForms,
		acting(object{"action": "decline"})).In(Elicitation, "acts/elicitation").Open(unfilled...),
	odd("elicitation.cancels", "All forms are cancelled.", "Users can dismiss a form without a choice.", ofForms,
		acting(object{"action": "cancel"})).In(Elicitation, "acts/elicitation").Open(unfilled...),
	odd("elicitation.declines-once", "The first form is declined, the others are filled in.",
		"The user decides on each form anew.", ofForms, All(untold("elicitation"), Changing(func(o *client.Options) {
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
		}))).In(Elicitation, "acts/elicitation").Open(unfilled...),
	odd("elicitation.declines-some", "Forms with a number are declined, the others are filled in.",
		"The user decides on each form anew.", ofForms, Handling("elicitation/create",
			func(ctx context.Context, params any, serve client.Answer) (any, *wire.Error) {
				if strings.Contains(fmt.Sprint(wire.At(params, "requestedSchema")), "number") {
					return object{"action": "decline"}, nil
				}
				return serve(ctx, params)
			})).In(Elicitation).Open(unfilled...),
	odd("elicitation.fractions", "Integers in a form are written as 3.0.", "3.0 is an integer in JSON Schema.",
		"client/elicitation#supported-schema-types", spelled(func(m *wire.Message) bool {
			return m.Kind == wire.Result && wire.At(m.Result, "action") != nil
		}, spell.Speller{Number: func(n json.Number) any {
			if strings.ContainsAny(n.String(), ".eE") {
				return n.String()
			}
			return n.String() + ".0"
		}})).In(Elicitation),
	odd("elicitation.person", "A person takes half a minute for each form.",
		"A human fills in the form; no time is given.", "client/elicitation#user-interaction-model",
		Delaying(30*time.Second, "elicitation/create")).In(Elicitation, "acts/elicitation").
		Open(append([]string{"sampling.*", "roots.*", ids.BaseErrorMethodNotFound}, unfilled...)...),
	odd("elicitation.limited",
		"A form that comes within a second of the last is refused with -32000, before the user sees it.",
		"Clients should limit the rate, and no code is named for that.", "client/elicitation#security-considerations",
		limiting("elicitation/create")).In(Elicitation, "acts/elicitation").
		Open(append([]string{ids.BaseErrorMethodNotFound}, unfilled...)...),
	odd("elicitation.user-leaves", "From the tenth on, forms of a session get no answer.",
		"A human fills in the form, and may leave.", "client/elicitation#user-interaction-model",
		fromTenth("elicitation/create", func(ctx context.Context) (any, *wire.Error) {
			<-ctx.Done()
			return nil, nil
		})).In(Elicitation, Sequences).Open(unfilled...),
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
	odd("roots.none", "The list of roots is empty.", "roots is an array of any length.", ofRoots,
		listingRoots(func(int) list { return list{} })).In(RootsSeen, "acts/roots", "acts/root-folder").
		Open(unchanged...),
	odd("roots.shuffled", "The same roots come in another order each time.",
		"Roots are a set of boundaries; the text gives them no order.", ofRoots, listingRoots(func(n int) list {
			all := list{root("file:///srv/a"), root("file:///srv/b"), root("file:///srv/c")}
			return append(all[n%3:len(all):len(all)], all[:n%3]...)
		})).In(RootsSeen, "acts/roots", "acts/root-folder").Open(unchanged...),
	odd("roots.unannounced", "Each list of roots differs from the last, and listChanged is not declared.",
		"Clients that support listChanged announce changes.", "client/roots#root-list-changes", All(
			listingRoots(func(n int) list { return list{root(fmt.Sprintf("file:///srv/project-%d", n))} }),
			Changing(func(o *client.Options) {
				if o.Capabilities["roots"] != nil {
					o.Capabilities["roots"] = object{}
				}
			}),
			Dropping(Calls("notifications/roots/list_changed")),
		)).In(RootsSeen, Sequences).Open(unchanged...),
	odd("roots.many", "There are two hundred roots, without names.", "name is optional, and no number is given.",
		ofRoot, listingRoots(func(int) (all list) {
			for i := range 200 {
				all = append(all, root(fmt.Sprintf("file:///srv/project-%03d", i)))
			}
			return all
		})).In(RootsSeen, "acts/roots").Open(unchanged...),
	odd("roots.odd-uris",
		"The URIs of roots have a host, escapes, a drive, a final slash, dots within names, or are the root folder.",
		"A root is identified by a file:// URI, of any form that RFC 3986 and RFC 8089 have.", ofRoot,
		listingRoots(func(int) list {
			return list{
				root("file:///"), root("file://localhost/srv/data"), root("file:///C:/Users/Some%20One/"),
				root("file:///srv/%E4%BD%A0%E5%A5%BD"),
				root("file:///srv/..data/a...b/.hidden"), root("file:///srv/a%23b%3Fc"),
				root("file:///srv/data/"), root("file:///srv/(x)!$&'*+,;=:@"),
			}
		})).In(RootsSeen, "acts/roots").Open(unchanged...),
	odd("roots.same-names", "All roots have the same name, one is within the other.",
		"uri identifies a root; name is for display.", ofRoot, listingRoots(func(int) list {
			return list{object{"uri": "file:///srv", "name": "work"}, object{"uri": "file:///srv/work", "name": "work"},
				object{"uri": "file:///tmp", "name": ""}}
		})).In(RootsSeen).Open(unchanged...),
	odd("roots.announced-often", "Ten announcements of changed roots come in a row, although the list is the same.",
		"A change has to be announced; an announcement more is not forbidden, and a change may be undone.",
		"client/roots#root-list-changes", Doing(func(ctx context.Context, s *client.Session) {
			if _, declared := s.Options.Capabilities["roots"]; declared {
				for range 10 {
					_ = s.Notify(ctx, "notifications/roots/list_changed", nil)
				}
			}
		})).In(RootsSeen, "acts/roots"),
	odd("roots.announced-with-list",
		"The client looks at its folders when it is asked for roots, and announces a change before it answers; "+
			"later the list is the same.", "The answer holds what was announced before it.",
		"client/roots#root-list-changes",
		All(untold("roots"), Before(Replies("roots-0", "roots-1", "roots-2", "roots-3"),
			`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`))).In(RootsSeen, "acts/roots").
		Open(unchanged...),
	odd("roots.failing", "roots/list is answered with -32603.", "Internal errors are one of the listed failures.",
		"client/roots#error-handling", answering(func(any) (any, *wire.Error) {
			return nil, &wire.Error{Code: -32603, Message: "Internal error"}
		}, "roots/list")).In(RootsSeen, "acts/roots", "acts/root-folder").Open("roots.*", ids.SchemaListRootsResult),
	odd("roots.person", "A person takes half a minute to consent to each list of roots.",
		"Clients should ask for consent; no time is given.", "client/roots#implementation-guidelines",
		Delaying(30*time.Second, "roots/list")).In(RootsSeen, "acts/roots", "acts/root-folder").
		Open("roots.*", "sampling.*", "elicitation.*", ids.SchemaListRootsResult),
	odd("roots.polled", "The client looks for its folders every five seconds: until then it lists one that was "+
		"removed, and announces nothing.", "Roots should be watched; no time is given.",
		"client/roots#implementation-guidelines", polled(5*time.Second)).In("acts/root-folder"),
	odd("roots.polled-rarely", "The client looks for its folders every eight seconds, and once more before it leaves.",
		"Roots should be watched; no time is given.", "client/roots#implementation-guidelines", polled(8*time.Second)).
		In("acts/root-folder").Open(ids.RootsClientValidateAccessible),
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
