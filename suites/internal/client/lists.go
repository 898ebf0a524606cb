package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
)

var listScenarios = []*client.Scenario{
	{
		Name: "lists/pages",
		Requirements: []string{ids.PaginationClientNoFixedPageSize, ids.PaginationCursorSameOperation,
			ids.PaginationClientMissingCursorEnds, ids.PaginationClientBothFlows,
			ids.PaginationClientNoFormatAssumptions, ids.PaginationClientCursorUnmodified},
		Needs: "the client did not fetch a second page of any list",
		Options: func(*client.ScenarioRun) server.Options {
			return server.Options{PageSize: 10_000, Behaviour: server.Behaviour{Methods: onLists(paged)}}
		},
		Judge: judgePages,
	},
	{
		Name: "lists/lost-session", Transports: []string{transport.NameHTTP, transport.NameStdio},
		After: []string{"http/lost-session", "stdio/exits-early"}, Excused: staying,
		Requirements: []string{ids.PaginationClientCursorNotPersisted},
		Needs: "the client did not begin a new session after one that ended between two pages of a list, " +
			"or requested no list there",
		Options: losingPages,
		Judge:   judgeCarried,
	},
	{
		// A page may have any size, also the first. A client that needs an item has to fetch the second.
		Name: "lists/empty-first-page", Requirements: []string{ids.PaginationClientBothFlows},
		Needs:   "the client used no item of a list with an ordinary server, or requested no list here",
		Options: emptyFirst,
		Judge:   judgeEmptyFirst,
	},
	{
		Name: "lists/sub-resource", Requirements: []string{ids.ResourcesUpdatedSubResource},
		Needs: "the client subscribed to no resource",
		Options: func(*client.ScenarioRun) server.Options {
			return server.Options{Behaviour: server.Behaviour{
				Breaks: []string{ids.HTTPServerSSERelatedMessages},
				Methods: map[string]server.Middleware{
					"resources/subscribe": updating(2), "resources/unsubscribe": updating(1),
				},
			}}
		},
		Judge: func(t *client.T) {
			for _, c := range t.Conversations {
				for _, e := range c.Messages {
					if uri, _ := wire.At(e.Msg.Params, "uri").(string); e.From == wire.Server &&
						strings.HasSuffix(uri, subResource) {
						t.JudgeContinued("updates named a resource below the one that the client had subscribed to",
							ids.ResourcesUpdatedSubResource)
						return
					}
				}
			}
		},
	},
	{
		Name: "lists/directory", Requirements: []string{ids.ResourcesURISchemeFileXdgMime},
		Needs: "the client did not request the list of resources",
		Options: func(*client.ScenarioRun) server.Options {
			c := client.Catalogue()
			c.Resources = append([]*server.Resource{{
				Definition: map[string]any{"uri": nowhere, "name": "folder-of-files", "mimeType": "inode/directory"},
				Read: func(context.Context, *server.Request) ([]any, *wire.Error) {
					return []any{map[string]any{"uri": nowhere, "mimeType": "inode/directory", "text": ""}}, nil
				},
			}}, c.Resources...)
			return server.Options{Catalogue: c}
		},
		Judge: func(t *client.T) {
			if x := t.Sent("resources/list"); x != nil && x.Result() != nil {
				t.JudgeContinued("a resource of the scheme file was of the type inode/directory",
					ids.ResourcesURISchemeFileXdgMime)
			}
		},
	},
	{
		Name: "lists/cut-characters", Requirements: []string{ids.BaseMessageUTF8Accepted},
		Needs:   "the client did not fetch a second page of any list",
		Options: cutCharacters,
		Judge: func(t *client.T) {
			const id = ids.BaseMessageUTF8Accepted
			for _, x := range t.Requests() {
				given, ok := wire.At(x.Request.Msg.Params, "cursor").(string)
				switch {
				case !ok || client.Listed[x.Method()] == "":
				case strings.HasPrefix(given, torn):
					t.Exercised(id)
				case strings.ContainsRune(given, '\uFFFD'):
					t.Violation(id, "a character that was written in two pieces was read as other characters: "+
						wire.Show(given), x.Request)
					return
				}
			}
		},
	},
	{
		Name: schemas, Families: []string{"tool-schemas"}, Smaller: narrowed("tool-schemas"),
		Requirements: []string{ids.ToolsInputSchemaAnyKeyword},
		Needs:        "the client did not request the list of tools",
		Options:      schematic,
		Judge: func(t *client.T) {
			if t.Sent("tools/list") != nil {
				t.JudgeContinued(offered(t, "a tool came whose input schema is ",
					"tools came whose input schemas are valid"), ids.ToolsInputSchemaAnyKeyword)
			}
		},
	},
	{
		Name:         "lists/whole",
		Requirements: []string{ids.PaginationClientBothFlows},
		Needs:        "the client requested no list whose items it uses",
		Options:      func(*client.ScenarioRun) server.Options { return server.Options{PageSize: 10_000} },
		Judge:        judgeWhole,
	},
	{
		Name: "lists/changed",
		Requirements: []string{ids.ToolsListChangedUnsolicited, ids.PromptsListChangedUnsolicited,
			ids.ResourcesListChangedUnsolicited, ids.PaginationClientBothFlows},
		Shows: []string{ids.BaseNotificationNoResponse},
		Needs: client.NeedsList,
		Options: func(*client.ScenarioRun) server.Options {
			methods := onLists(changing)
			delete(methods, "resources/templates/list")
			return server.Options{PageSize: changedPage,
				Behaviour: server.Behaviour{Methods: methods, Breaks: []string{ids.HTTPServerSSERelatedMessages}}}
		},
		Judge: func(t *client.T) {
			for method, member := range client.Listed {
				if judgeReadAgain(t, method) && member != "resourceTemplates" && t.Sent(method) != nil {
					t.JudgeContinued("a change of the "+member+" was announced", member+".list-changed.unsolicited")
				}
			}
		},
	},
	{
		// The client decides when to give up. Every page has a cursor of its own.
		Name:         "lists/endless",
		Requirements: []string{ids.PaginationClientCursorUnmodified},
		Needs:        "the client did not fetch a second page of any list",
		Options: func(*client.ScenarioRun) server.Options {
			methods := onLists(endless)
			methods["*"] = client.Unhurried
			return server.Options{PageSize: 10_000,
				Behaviour: server.Behaviour{Methods: methods, Breaks: []string{"*"}}}
		},
		Judge: func(t *client.T) {
			for _, x := range t.Requests() {
				cursor := wire.At(x.Request.Msg.Params, "cursor")
				if client.Listed[x.Method()] == "" || cursor == nil {
					continue
				}
				if text, ok := cursor.(string); ok && turned(text) > 0 {
					t.Exercised(ids.PaginationClientCursorUnmodified)
				} else {
					t.Violation(ids.PaginationClientCursorUnmodified,
						"the cursor "+wire.Show(cursor)+" did not come from the server", x.Request)
					return
				}
			}
		},
	},
	{
		Name: "lists/virtual-files", Requirements: []string{ids.ResourcesURISchemeFileVirtual,
			ids.ResourcesURISchemeCustomAllowed},
		Needs:   "the client did not read a resource",
		Options: virtual,
		Judge: func(t *client.T) {
			const id, custom = ids.ResourcesURISchemeFileVirtual, ids.ResourcesURISchemeCustomAllowed
			if list := t.Baseline.Sent("resources/list"); t.Sent("resources/read") != nil && list != nil &&
				list.Result() != nil &&
				t.Baseline.Sent("resources/read") == nil && t.Baseline.Ending.Exit != nil {
				t.Violation(custom, "the client reads no resource whose URI has a scheme of the server's own, "+
					"although it reads those whose scheme is file", list.Events()...)
			}
			switch x := t.Sent("resources/read"); {
			case !readFromList(t.Baseline, "resources/list") || t.Sent("resources/list") == nil ||
				t.Ending.Attended && x == nil:
			case x == nil:
				t.Violation(id, "the client reads no resource if the URIs name files that do not exist, although "+
					"it does read resources in the baseline", client.LastEvents(t.Last(), 4)...)
			default:
				t.Tolerated(x.Request, "asked for a resource whose URI names a file that does not exist", id)
			}
		},
	},
}

// updating sends updates of a resource below the one that a request names, before its answer. On another stream they
// might come after the subscription has ended.
func updating(times int) server.Middleware {
	return func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		result, rpcErr := next(ctx, r)
		if uri, ok := r.Params["uri"].(string); ok && rpcErr == nil {
			for range times {
				r.Notify("notifications/resources/updated",
					map[string]any{"uri": strings.TrimSuffix(uri, "/") + subResource})
			}
		}
		return result, rpcErr
	}
}

// changedPage is the size of the pages of a list that changes.
const changedPage = 5

// announcements is how often a list changes.
const announcements = 2

// changing announces that a list has changed each time that it was read to its end, until it has changed often enough.
// From the first time on its first page is empty.
func changing(method, member string) server.Middleware {
	return func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		announced := counter(r.Session, "changed "+member)
		serve := func() (any, *wire.Error) { return next(ctx, r) }
		if announced.n.Load() > 0 {
			serve = func() (any, *wire.Error) { return emptyBefore(method, member)(ctx, r, next) }
		}
		result, rpcErr := serve()
		if wire.At(result, "nextCursor") == nil && announced.next() < announcements {
			r.Notify("notifications/"+member+"/list_changed", nil)
		}
		return result, rpcErr
	}
}

// judgeReadAgain judges a client that has read all pages of a list: it reads them all whenever it reads the list again
// in the same session. It says false if the client has not: what it does then may come from that. A client may look at
// the first page alone as often as it does without a change.
func judgeReadAgain(t *client.T, method string) (whole bool) {
	const id = ids.PaginationClientBothFlows
	for _, c := range t.Conversations {
		var end, again *judge.Exchange // the last page of the first time, and the first page of the last time
		begun, readOn := 0, 0
		for _, x := range client.RequestsOf(c) {
			cursor := wire.At(x.Request.Msg.Params, "cursor")
			switch {
			case x.Method() != method || x.Result() == nil:
			case end == nil && cursor != nil && x.Result()["nextCursor"] == nil:
				end = x
			case end != nil && cursor == nil:
				again = x
				begun++
			case end != nil && cursor == secondPage+method:
				readOn++
			}
		}
		switch {
		case again == nil:
		case readOn >= begun:
			t.Exercised(id)
		case begun-readOn < unprompted(t.Baseline, method):
		default:
			if t.RequestsAfter(c, again.Response) {
				t.Warning(id, "the client has read the list to its end; when it reads it again in the same "+
					"session, it takes the first page, which is empty and has a nextCursor, for the whole",
					again.Request, again.Response)
			}
			return false
		}
	}
	return true
}

// unprompted returns how often the client has requested the first page of a list that nothing had announced as changed
// since the last time.
func unprompted(t *client.T, method string) (times int) {
	change := "notifications/" + client.Listed[method] + "/list_changed"
	for _, c := range t.Conversations {
		announced := false
		for _, e := range c.Messages {
			switch {
			case e.From == wire.Server:
				announced = announced || e.Msg.Method == change
			case e.Msg.Kind == wire.Request && e.Msg.Method == method && wire.At(e.Msg.Params, "cursor") == nil:
				if !announced {
					times++
				}
				announced = false
			}
		}
	}
	return times
}

// nowhere is a folder that does not exist, with the files that do not exist.
const nowhere = "file:///mcpconform.example/no-such-folder/"

// virtual gives each resource a URI of a file that does not exist.
func virtual(*client.ScenarioRun) server.Options {
	given := func(uri any) any { // in place of one of the server's
		text, _ := uri.(string)
		return nowhere + url.PathEscape(text)
	}
	own := func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		if uri, ok := r.Params["uri"].(string); ok && strings.HasPrefix(uri, nowhere) {
			if text, err := url.PathUnescape(uri[len(nowhere):]); err == nil {
				r.Params["uri"] = text
			}
		}
		return next(ctx, r)
	}
	rename := func(item map[string]any) { item["uri"] = given(item["uri"]) }
	reading := server.EditItems("contents", rename)
	return server.Options{
		Without: []string{"resources.subscribe"},
		Behaviour: server.Behaviour{Methods: map[string]server.Middleware{
			"resources/list": server.EditItems("resources", rename),
			"resources/read": func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				return reading(ctx, r, func(ctx context.Context, r *server.Request) (any, *wire.Error) {
					return own(ctx, r, next)
				})
			},
		}},
	}
}

// endless gives each page of a list a cursor of a further page, which is empty.
func endless(_, member string) server.Middleware {
	return func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		page := 0
		if text, ok := r.Params["cursor"].(string); ok {
			page = turned(text)
		}
		result := map[string]any{member: []any{}}
		if page == 0 {
			delete(r.Params, "cursor")
			first, rpcErr := next(ctx, r)
			object, ok := first.(map[string]any)
			if rpcErr != nil || !ok {
				return first, rpcErr
			}
			result = object
		}
		result["nextCursor"] = turn + strconv.Itoa(page+1)
		return result, nil
	}
}

const turn = "page "

// turned returns the number of the page to which a cursor of an endless list leads,
// or 0.
func turned(cursor string) int {
	page, err := strconv.Atoi(strings.TrimPrefix(cursor, turn))
	if err != nil || page < 1 || turn+strconv.Itoa(page) != cursor {
		return 0
	}
	return page
}

// pages of a list, with the cursors of the next ones. The last page holds the rest; one
// page before it is empty.
var pages = []struct {
	size   int
	cursor func(method string) string
	looks  string
}{
	{2, func(method string) string { return "\t " + method + " → 次 🎉 \u2028 \"{}\" %20&+= " },
		"with unusual characters"},
	{1, func(method string) string { return strings.Repeat(method+"/", 400) }, "with several thousand characters"},
	{1, func(method string) string { return "00" + strconv.Itoa(len(method)) }, "that has only digits"},
	{1, func(method string) string { return "re\u0301sume\u0301 " + method }, "with combining characters"},
	{1, func(method string) string { return `{"of" : "` + method + `", "after": 1.0, "after": 2e0}` },
		"that is JSON, with blanks, a fraction and a member twice"},
	{1, func(method string) string { return method + "/4A==" }, "that looks like Base64"},
	{0, func(method string) string { return "page=3&of=" + method }, "on an empty page"},
	{7, func(string) string { return "" }, "that is the empty string"},
	// This cursor has the name of its list, so its use with another list shows.
	{1, func(method string) string { return "last of " + method }, "that is ordinary"},
	{-1, nil, ""},
}

// cutPause separates the pieces of a character, so that a fast reader reads the first piece alone.
const cutPause = 20 * time.Millisecond

// torn begins the cursors with a character that is written in two pieces.
const torn = "次 "

// cutCharacters writes one character of each cursor in two pieces: a read may end within
// a character.
func cutCharacters(*client.ScenarioRun) server.Options {
	o := server.Options{HTTP: server.HTTPOptions{AlwaysSSE: true}, Behaviour: server.Behaviour{
		Methods: marking("no such cursor", func(*server.Session) string { return torn })}}
	o.Behaviour.Stdio.Stdout = func(w io.Writer) io.Writer { return cutter{to: w} }
	o.Behaviour.HTTP.Middleware = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(cutResponse{w}, r) })
	}
	return o
}

// marking puts a mark before all cursors, and refuses those without it.
func marking(refusal string, of func(s *server.Session) string) map[string]server.Middleware {
	return onLists(func(string, string) server.Middleware {
		return func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			mark := of(r.Session)
			if given, ok := r.Params["cursor"].(string); ok {
				own, marked := strings.CutPrefix(given, mark)
				if !marked {
					return nil, &wire.Error{Code: server.InvalidParams, Message: "Invalid params: " + refusal}
				}
				r.Params["cursor"] = own
			}
			result, rpcErr := next(ctx, r)
			if page, ok := result.(map[string]any); ok {
				if cursor, ok := page["nextCursor"].(string); ok {
					page["nextCursor"] = mark + cursor
				}
			}
			return result, rpcErr
		}
	})
}

// cutter writes a text in two pieces if it holds the character to cut.
type cutter struct {
	to    io.Writer
	flush func() error
}

func (c cutter) Write(p []byte) (int, error) {
	at := bytes.Index(p, []byte(torn)) + 1
	if at == 0 {
		return c.to.Write(p)
	}
	n, err := c.to.Write(p[:at])
	if err == nil && c.flush != nil {
		err = c.flush()
	}
	if err != nil {
		return n, err
	}
	<-time.After(cutPause) // no event on the wire shows that the client has read
	m, err := c.to.Write(p[at:])
	return n + m, err
}

type cutResponse struct{ http.ResponseWriter }

func (r cutResponse) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r cutResponse) Write(p []byte) (int, error) {
	return cutter{to: r.ResponseWriter, flush: http.NewResponseController(r.ResponseWriter).Flush}.Write(p)
}

// paged cuts a list into pages.
func paged(method, member string) server.Middleware {
	return func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		page := 0
		if given, ok := r.Params["cursor"]; ok {
			page = pageOf(method, given)
			if page < 0 {
				return nil, &wire.Error{Code: server.InvalidParams, Message: "Invalid params: no such cursor"}
			}
			delete(r.Params, "cursor")
		}
		result, rpcErr := next(ctx, r)
		object, ok := result.(map[string]any)
		if rpcErr != nil || !ok {
			return result, rpcErr
		}
		items, _ := object[member].([]any)
		from := 0
		for _, p := range pages[:page] {
			from = min(len(items), from+p.size)
		}
		to := len(items)
		delete(object, "nextCursor")
		if size := pages[page].size; size >= 0 {
			to = min(to, from+size)
			object["nextCursor"] = pages[page].cursor(method)
		}
		object[member] = append([]any{}, items[from:to]...)
		return object, nil
	}
}

// subResource is the path of a resource below another.
const subResource = "/mcpconform-part"

const schemas = "lists/schemas"

// offered says in words which members of the scenario's family the server sent besides the plain one. It puts one
// before a single member, and several before more.
func offered(t *client.T, one, several string) string {
	all := t.Choice.Draw(t.Scenario.Families[0], t.Scenario.Name)
	members := all[1:]
	switch len(members) {
	case 0:
		return one + all[0].String()
	case 1:
		return one + members[0].String() + ", without which the client goes on"
	}
	var names []string
	for _, m := range members {
		names = append(names, m.Is)
	}
	return several + " (" + strings.Join(names, ", ") + ")"
}

// schematic adds tools to the first page of their list that have the schemas of a family.
func schematic(run *client.ScenarioRun) server.Options {
	const prefix = "schema_"
	members := run.Choice.Draw("tool-schemas", schemas)
	return server.Options{Behaviour: server.Behaviour{Methods: map[string]server.Middleware{
		"tools/list": server.Edit(func(r *server.Request, result map[string]any) {
			items, _ := result["tools"].([]any)
			if r.Params["cursor"] != nil {
				return
			}
			for i, m := range members {
				items = append(items, map[string]any{
					"name": prefix + strconv.Itoa(i), "description": "Its schema: " + m.Is + ".",
					"inputSchema": json.RawMessage(m.Raw()),
				})
			}
			result["tools"] = items
		}),
		"tools/call": func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			if name, _ := r.Params["name"].(string); !strings.HasPrefix(name, prefix) {
				return next(ctx, r)
			}
			return map[string]any{"content": []any{map[string]any{"type": "text", "text": "Called."}}}, nil
		},
	}}}
}

// emptyFirst puts an empty page before each list, and all items on the second.
func emptyFirst(*client.ScenarioRun) server.Options {
	return server.Options{PageSize: 10_000, Behaviour: server.Behaviour{Methods: onLists(emptyBefore)}}
}

// emptyBefore puts an empty page before a list.
func emptyBefore(method, member string) server.Middleware {
	return func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		switch given, ok := r.Params["cursor"]; {
		case !ok:
			return map[string]any{member: []any{}, "nextCursor": secondPage + method}, nil
		case given == secondPage+method:
			delete(r.Params, "cursor")
		}
		return next(ctx, r)
	}
}

const secondPage = "second page of "

func judgeEmptyFirst(t *client.T) {
	const id = ids.PaginationClientBothFlows
	for method, use := range used {
		first := t.Sent(method)
		switch {
		case first == nil || first.Result() == nil:
		case slices.ContainsFunc(t.Conversations,
			func(c *judge.Conversation) bool { return readsOn(c, method, secondPage+method) }):
			t.Exercised(id)
		case t.Sent(use.method) == nil && readFromList(t.Baseline, method) && !t.Interrupted():
			t.Violation(id, "the client takes the first page of "+method+
				", which is empty and has a nextCursor, for the whole list: it then does without "+
				use.method+", which it uses with an ordinary server", first.Events()...)
		}
	}
}

// readFromList reports whether the client used an item of a list after it had got it
// from there.
func readFromList(t *client.T, method string) bool {
	use := used[method]
	for _, c := range t.Conversations {
		shown := make(map[string]*wire.Event)
		for _, x := range client.RequestsOf(c) {
			for _, item := range wire.Items(x.Result(), client.Listed[method]) {
				if name, ok := wire.At(item, use.key).(string); ok && x.Method() == method && shown[name] == nil {
					shown[name] = x.Response
				}
			}
		}
		for _, x := range client.RequestsOf(c) {
			name, _ := wire.At(x.Request.Msg.Params, use.key).(string)
			if page := shown[name]; x.Method() == use.method && page != nil && page.Seq < x.Request.Seq {
				return true
			}
		}
	}
	return false
}

// losingPages ends the first session when the client requests the second page of a
// list: over stdio, the process ends. Cursors are valid only in their own session.
func losingPages(*client.ScenarioRun) server.Options {
	further := func(m *wire.Message) bool { return client.Listed[m.Method] != "" && wire.At(m.Params, "cursor") != nil }
	o := losingAt(further)
	var ended atomic.Bool
	o.Behaviour.Stdio.Quit = func(_ int, line []byte) bool { return further(wire.Parse(line)) && !ended.Swap(true) }
	o.PageSize = 2
	o.Behaviour.Methods = marking("the cursor does not belong to this session", func(s *server.Session) string {
		return s.Value("mark", func() any { return rand.Text() + "@" }).(string)
	})
	return o
}

// judgeCarried judges whether the client uses cursors only in their own session.
func judgeCarried(t *client.T) {
	const id = ids.PaginationClientCursorNotPersisted
	given := make(map[any]*judge.Conversation)
	page := make(map[any]*wire.Event)
	for _, c := range t.Conversations {
		for _, x := range client.RequestsOf(c) {
			if cursor, ok := x.Result()["nextCursor"].(string); ok && client.Listed[x.Method()] != "" {
				given[cursor], page[cursor] = c, x.Response
			}
		}
	}
	first := t.Handshake()
	for _, c := range t.Conversations {
		for _, x := range client.RequestsOf(c) {
			if c == first || client.Listed[x.Method()] == "" {
				continue
			}
			cursor := wire.At(x.Request.Msg.Params, "cursor")
			if from := given[cursor]; from != nil && from != c {
				t.Violation(id, x.Method()+" has a cursor of the session that has ended", page[cursor], x.Request)
				return
			}
			t.Exercised(id)
		}
	}
}

// pageOf returns the page to which a cursor leads, or -1.
func pageOf(method string, cursor any) int {
	for i, p := range pages {
		if p.cursor != nil && p.cursor(method) == cursor {
			return i + 1
		}
	}
	return -1
}

func judgePages(t *client.T) {
	for _, c := range t.Conversations {
		for method := range client.Listed {
			var last *judge.Exchange
			reached, asked := -1, -1
			for _, x := range client.RequestsOf(c) {
				if x.Method() != method {
					continue
				}
				given := wire.At(x.Request.Msg.Params, "cursor")
				page := 0
				if given != nil {
					page = judgeCursor(t, c, x, given)
				}
				asked = max(asked, page)
				if page >= reached && x.Response != nil {
					reached, last = page, x
				}
			}
			judgeEnd(t, c, method)
			judgeNumbered(t, c, method)
			if last != nil && asked <= reached { // otherwise it asked for a page that was not answered
				judgeReached(t, c, method, reached, last)
			}
		}
	}
}

// used names, for each list, the method that uses an item and the member that
// names it, in the list and in the params.
var used = map[string]struct{ method, key string }{
	"tools/list": {"tools/call", "name"}, "resources/list": {"resources/read", "uri"},
	"prompts/list": {"prompts/get", "name"},
}

// judgeWhole compares two uses of the same lists: here they come in one piece, and in the baseline in pages. A client
// that never asks for a second page may need only the first one. But it misses the rest if it uses an item of a later
// page only here, and an item of the first page both here and in the baseline.
func judgeWhole(t *client.T) {
	const id = ids.PaginationClientBothFlows
	base := t.Baseline
	if t.Ending.Exit == nil || base.Ending.Exit == nil {
		return
	}
	for method, use := range used {
		paging := slices.ContainsFunc(base.Requests(), func(x *judge.Exchange) bool {
			return x.Method() == method && wire.At(x.Request.Msg.Params, "cursor") != nil
		})
		paged, whole := base.Sent(method), t.Sent(method)
		if paged == nil || whole == nil || whole.Result() == nil || paged.Result() == nil ||
			paged.Result()["nextCursor"] == nil {
			continue
		}
		if paging {
			t.Exercised(id)
			continue
		}
		shown := make(map[string]bool)
		for _, item := range wire.Items(paged.Result(), client.Listed[method]) {
			if name, ok := wire.At(item, use.key).(string); ok {
				shown[name] = true
			}
		}
		found, missed := false, ""
		then := took(base, use.method, use.key)
		for name := range took(t, use.method, use.key) {
			found = found || shown[name] && then[name]
			if !shown[name] && !then[name] {
				missed = max(missed, name)
			}
		}
		if found && missed != "" {
			t.Violation(id, "the client reads only the first page of "+method+": it uses "+wire.Quote(missed, 60)+
				" if the list comes in one piece, but not if that item is on a further page",
				append(paged.Events(), whole.Events()...)...)
		}
	}
}

// took returns the names of the items that the client has used.
func took(t *client.T, method, key string) map[string]bool {
	names := make(map[string]bool)
	for _, x := range t.Requests() {
		if name, ok := wire.At(x.Request.Msg.Params, key).(string); ok && x.Method() == method {
			names[name] = true
		}
	}
	return names
}

// judgeCursor judges a cursor that the client sent, and returns the page that
// it leads to, or -1.
func judgeCursor(t *client.T, c *judge.Conversation, x *judge.Exchange, given any) int {
	page := pageOf(x.Method(), given)
	if page >= 0 {
		t.Exercised(ids.PaginationCursorSameOperation, ids.PaginationClientCursorUnmodified)
		return page
	}
	for method := range client.Listed {
		if pageOf(method, given) >= 0 {
			t.Violation(ids.PaginationCursorSameOperation, "a cursor of "+method+" was sent with "+x.Method(),
				x.Request)
			return -1
		}
	}
	t.Violation(ids.PaginationClientCursorUnmodified, "the cursor "+wire.Show(given)+" did not come from the server",
		issued(c, x)...)
	return -1
}

// issued returns the newest page of the same list before a request, and the request.
func issued(c *judge.Conversation, x *judge.Exchange) []*wire.Event {
	events := []*wire.Event{x.Request}
	for _, y := range c.Exchanges {
		if y.Method() == x.Method() && y.Response != nil && y.Response.Seq < x.Request.Seq {
			events = []*wire.Event{y.Response, x.Request}
		}
	}
	return events
}

// judgeReached judges where the client stopped reading a list.
func judgeReached(t *client.T, c *judge.Conversation, method string, reached int, last *judge.Exchange) {
	if reached > 0 {
		t.Exercised(ids.PaginationClientBothFlows)
	}
	if reached == len(pages)-1 {
		t.Exercised(ids.PaginationClientNoFixedPageSize, ids.PaginationClientMissingCursorEnds,
			ids.PaginationClientNoFormatAssumptions)
		return
	}
	if reached < 1 {
		return // it may need only the first page
	}
	if t.Interrupted() && !t.RequestsAfter(c, last.Response) {
		return // it had no time to read on
	}
	// It does read further pages, and has stopped before the last.
	const opaque, size = ids.PaginationClientNoFormatAssumptions, ids.PaginationClientNoFixedPageSize
	if here, there := extentOf(c, method), mostRead(t.Baseline, method); there.pages <= here.pages ||
		there.items <= here.items {
		t.Inconclusive("the client stopped reading "+method+
			" after as much as it reads of a list with ordinary cursors", opaque, size)
		return
	}
	message := "the client stopped reading " + method + ": it did not use the cursor " + pages[reached].looks +
		", although it used those before"
	items, _ := last.Result()[client.Listed[method]].([]any)
	switch {
	case pages[reached].cursor(method) == "":
		// The text does not say that an empty string is a cursor like any other; it
		// only makes no exception.
		t.Warning(opaque, message, last.Events()...)
	case len(items) == 0:
		t.Violation(size, "the client stopped reading "+method+" after an empty page, although that has a nextCursor",
			last.Events()...)
	default:
		t.Violation(opaque, message, last.Events()...)
	}
}

// extent is the part of a list that a client has read.
type extent struct{ pages, items int }

// mostRead returns the most that the client has read of a list in one session.
func mostRead(t *client.T, method string) extent {
	var most extent
	for _, c := range t.Conversations {
		if e := extentOf(c, method); e.pages > most.pages {
			most = e
		}
	}
	return most
}

// extentOf returns the most that the client has read of a list in one go. It may want no more than some pages, or
// than the items found there.
func extentOf(c *judge.Conversation, method string) extent {
	var most, now extent
	for _, x := range client.RequestsOf(c) {
		if x.Method() != method || x.Result() == nil {
			continue
		}
		if wire.At(x.Request.Msg.Params, "cursor") == nil {
			now = extent{}
		}
		items, _ := x.Result()[client.Listed[method]].([]any)
		now = extent{now.pages + 1, now.items + len(items)}
		if now.pages > most.pages {
			most = now
		}
	}
	return most
}

// judgeNumbered judges whether the client asks for a further page of a list by
// something else than the cursor, such as a number or a member of another name
// (server/utilities/pagination#pagination-model).
func judgeNumbered(t *client.T, c *judge.Conversation, method string) {
	var first *judge.Exchange
	for _, x := range client.RequestsOf(c) {
		switch cursor, paged := wire.At(x.Request.Msg.Params, "cursor"), first != nil && first.Response != nil &&
			first.Response.Seq < x.Request.Seq; {
		case x.Method() != method || cursor != nil:
		case first == nil:
			first = x
		case paged:
			next := first.Result()["nextCursor"]
			before, _ := first.Request.Msg.Params.(map[string]any)
			params, _ := x.Request.Msg.Params.(map[string]any)
			for name, v := range params {
				_, number := v.(json.Number)
				if old, had := before[name]; next != nil && (number || v == next) &&
					(!had || !reflect.DeepEqual(old, v)) {
					t.Violation(ids.PaginationClientBothFlows,
						"the client asks for a further page of "+method+" by the member "+wire.Quote(name, 40)+
							" in place of the cursor", first.Response, x.Request)
					return
				}
			}
		}
	}
}

// judgeEnd judges whether the client reads a list on after its last page. If it reads
// a list several times at once, its requests cannot be told apart. A page before the last one may be read again.
func judgeEnd(t *client.T, c *judge.Conversation, method string) {
	readings := 0
	var last *judge.Exchange
	before := make(map[string]bool) // the cursors of pages before the last one
	for _, x := range client.RequestsOf(c) {
		if x.Method() != method {
			continue
		}
		cursor := wire.At(x.Request.Msg.Params, "cursor")
		if cursor == nil {
			readings++
		}
		if last != nil && cursor != nil && readings == 1 && last.Response != nil && last.Response.Seq < x.Request.Seq &&
			last.Result() != nil {
			again, _ := cursor.(string)
			if _, more := last.Result()["nextCursor"]; !more && !before[again] {
				t.Violation(ids.PaginationClientMissingCursorEnds,
					"the client requests a further page of "+method+" after a page without nextCursor", last.Response,
					x.Request)
				return
			}
		}
		if last != nil {
			if c, ok := wire.At(last.Request.Msg.Params, "cursor").(string); ok {
				before[c] = true
			}
		}
		last = x
	}
}

// judgePaging judges how the client reads lists with ordinary cursors.
func judgePaging(t *client.T) {
	for _, x := range t.Requests() {
		if client.Listed[x.Method()] == "" || x.Response == nil || x.Result() == nil {
			continue
		}
		if _, more := x.Result()["nextCursor"]; !more && wire.At(x.Request.Msg.Params, "cursor") != nil {
			t.Exercised(ids.PaginationClientBothFlows, ids.PaginationClientMissingCursorEnds)
		}
	}
}
