package server

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/family"
)

const listRoots = "roots/list"

// rooted is a session whose roots a check sets.
type rooted struct {
	*client.Session
	versions *rootVersions
}

// rootVersions are the roots in the order in which they came to be, nil where
// they cannot be had. A server is not told of new ones before it has been sent a
// notification of the change.
type rootVersions struct {
	mu  sync.Mutex
	all [][]any
}

func (v *rootVersions) add(roots []any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = append(v.all, append([]any{}, roots...)) // a list, be there none
}

func (v *rootVersions) addUnavailable() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = append(v.all, nil)
}

func (v *rootVersions) after(changes int) []any {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.all[min(changes, len(v.all)-1)]
}

const rootsChanged = "notifications/roots/list_changed"

// rooting is a session in which a check sets the roots.
var rooting = check.Needs{
	Session: check.Own, ToolRoles: []string{"roots"}, Lane: check.Waiting, Liveness: true, Options: check.Capable(),
}

// rootingOfTwo is rooting for a check that opens a further session with the same server.
func rootingOfTwo() check.Needs {
	needs := rooting
	needs.Transports = []string{transport.NameHTTP}
	return needs
}

// withRoots gives the session of the check roots, and tells the server: one that has
// fetched others before has to fetch them, and some never fetch them without being told.
func withRoots(t *check.T, roots ...any) rooted { return rootsOf(t, t.Session, roots...) }

// rootsOf is withRoots for another session.
func rootsOf(t *check.T, s *client.Session, roots ...any) rooted {
	r := rooted{Session: s, versions: new(rootVersions)}
	r.versions.add(roots)
	before := r.told()
	answers := check.StandardAnswers()
	answers[listRoots] = func(context.Context, any) (any, *wire.Error) {
		roots := r.versions.after(r.told() - before)
		if roots == nil {
			return nil, &wire.Error{Code: -32603, Message: "The roots are not available."}
		}
		return map[string]any{"roots": roots}, nil
	}
	s.Answer(answers)
	n := r.asked()
	r.change(t, roots...)
	if n > 0 {
		r.awaitAsked(t.Context, n, t.Soon(check.Later))
	}
	return r
}

// restore gives the session the roots that other checks expect.
func (r rooted) restore(t *check.T) {
	r.Answer(check.StandardAnswers())
	if r.asked() > 0 {
		_ = r.Notify(t.Context, rootsChanged, nil) // a session that has ended is not used again
	}
}

// told counts the notifications that the roots have changed.
func (r rooted) told() int {
	n := 0
	for _, e := range r.Log().Events() {
		if e.Kind == wire.KindMessage && e.From == wire.Client && e.Msg.Method == rootsChanged {
			n++
		}
	}
	return n
}

// change sets the roots and tells the server.
func (r rooted) change(t *check.T, roots ...any) {
	r.versions.add(roots)
	t.Must(r.Notify(t.Context, rootsChanged, nil))
}

// asked counts the requests for the roots so far.
func (r rooted) asked() int {
	n := 0
	for _, e := range r.Log().Events() {
		if asks(e, listRoots) {
			n++
		}
	}
	return n
}

// awaitAsked waits until the server has asked more than n times, unless it ends.
func (r rooted) awaitAsked(ctx context.Context, n int, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	seen := 0
	_, _ = r.Log().Await(ctx, 0, func(e *wire.Event) bool {
		if asks(e, listRoots) {
			seen++
		}
		return seen > n || e.Kind == wire.KindExit || e.Kind == wire.KindClose && e.From == wire.Server
	})
	return seen > n
}

// taken waits until the server, told of other roots after a mark, has asked for them and was answered, and reports
// whether it has. A server that did not do so the last time is not waited for.
func (r *taking) taken(t *check.T, mark int) bool {
	if r.waits {
		return false
	}
	limit, stop := context.WithTimeout(t.Context, t.Soon(check.AtOnce))
	defer stop()
	var request *wire.Event
	_, err := r.Log().Await(limit, mark, func(e *wire.Event) bool {
		if asks(e, listRoots) && request == nil {
			request = e
		}
		return request != nil && e.From == wire.Client && e.Kind == wire.KindMessage && e.Msg.IsResponse() &&
			e.Msg.ID.Key() == request.Msg.ID.Key()
	})
	r.waits = err != nil
	return err == nil
}

// taking is a session in which a server takes one set of roots after the other.
type taking struct {
	rooted
	waits bool // until a tool needs them
}

// use makes the server use the roots: it calls the tool that does, if there is
// one, and reports whether the server has asked for them in this session.
func (r rooted) use(t *check.T) bool {
	wait := asksWithin(t) - max(r.quiet(t), ignored(t))
	if x := r.useTool(t); x != nil {
		wait = t.Soon(check.Later)
	}
	return r.asked() > 0 || r.awaitAsked(t.Context, 0, wait)
}

// useTool calls the tool that uses the roots. It returns nil if there is none.
func (r rooted) useTool(t *check.T) *client.Exchange {
	call, ok := knownTool(t, "roots")
	if !ok {
		return nil
	}
	// Whether the tool itself answers does not matter here.
	x, _ := r.Call(t.Context, "tools/call", call.Params())
	t.Show(x.Events()...)
	return x
}

// rootIn returns a root that a text names, of those that the server was told of in any session, or "".
func rootIn(t *check.T, text string) string {
	for _, l := range t.Logs() {
		for _, x := range l.Requests(wire.Server, listRoots) {
			roots, _ := at(x.Result(), "roots").([]any)
			for _, root := range roots {
				if uri, _ := at(root, "uri").(string); uri != "" && strings.Contains(text, uri) {
					t.Show(x.Events()...)
					return uri
				}
			}
		}
	}
	return ""
}

// asksWithin is how long to wait for a request that a server sends of its own accord. A server that begins a session
// slowly asks in it slowly.
func asksWithin(t *check.T) time.Duration {
	wait := t.Soon(check.Later)
	if x := t.Session.Log().Conversation().Init; x != nil && x.Response != nil {
		wait = max(wait, x.Response.At-x.Request.At)
	}
	return wait
}

// quiet is how long ago something happened that may make a server ask for the roots.
func (r rooted) quiet(t *check.T) (ago time.Duration) {
	for _, e := range r.Log().Events() {
		if e.Kind == wire.KindMessage && slices.Contains([]string{"notifications/initialized", rootsChanged},
			e.Msg.Method) {
			ago = t.Ago(e)
		}
	}
	return ago
}

// ignored returns how long ago an open session was first told of other roots, if the server never asked for any. It
// will not ask in another session, either.
func ignored(t *check.T) (longest time.Duration) {
	for _, l := range t.Logs() {
		if len(l.Requests(wire.Server, listRoots)) > 0 {
			return 0
		}
		events := l.Events()
		told := slices.IndexFunc(events, func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.From == wire.Client && e.Msg.Method == rootsChanged
		})
		if told >= 0 && !slices.ContainsFunc(events,
			func(e *wire.Event) bool { return e.Kind == wire.KindClose || e.Kind == wire.KindExit }) {
			longest = max(longest, t.Ago(events[told]))
		}
	}
	return longest
}

func root(uri string, more map[string]any) map[string]any {
	r := map[string]any{"uri": uri}
	for name, v := range more {
		r[name] = v
	}
	return r
}

// missingFolder is a path that exists nowhere.
const missingFolder = "file:///mcpconform-no-such-folder/at/all"

const noRootsAsked = "the server never asked for the roots: name a tool for the role \"roots\" in the configuration " +
	"if one does"

// client/roots
var rootChecks = []*check.Check{
	{
		Name: "roots/kinds",
		Requirements: []string{
			ids.RootsRootNameOptional, ids.RootsListMultiple, ids.RootsRootFileOrDirectory,
			ids.RootsServerUnavailable,
			ids.MetaAttachObjects,
		},
		Needs: rooting,
		Body: func(t *check.T) {
			// Roots of each kind, one after the other: with and without a name, several, a file, a folder that does
			// not exist.
			r := taking{rooted: withRoots(t, root("file:///tmp", nil))}
			defer r.restore(t)
			if !r.use(t) {
				t.Inconclusive(noRootsAsked)
			}
			all := []struct {
				id    string
				roots []any
			}{
				{ids.RootsRootNameOptional, []any{root("file:///tmp", map[string]any{"name": "Temporary files"})}},
				{ids.RootsRootNameOptional, []any{root("file:///tmp", nil)}},
				{ids.RootsListMultiple, []any{root("file:///tmp", nil),
					root("file:///", map[string]any{"name": "All"})}},
				{ids.RootsRootFileOrDirectory, []any{root("file:///etc/hosts", nil)}},
				{ids.RootsServerUnavailable, []any{root(missingFolder, map[string]any{"name": "Gone"})}},
				{ids.MetaAttachObjects, []any{root("file:///tmp",
					map[string]any{"_meta": map[string]any{"example.com/mcpconform": 1}})}},
			}
			for i, v := range all {
				t.About(v.id)
				mark := t.Mark()
				r.change(t, v.roots...)
				if r.taken(t, mark) {
					if t.RunsAgain() && i < len(all)-1 {
						continue
					}
				} else {
					r.useTool(t)
				}
				if _, err := r.Call(t.Context, t.NoOp(), nil); err != nil {
					t.Violation(v.id, "after roots/list was answered with "+quote(v.roots)+": "+err.Error())
					return
				}
			}
		},
	},
	{
		Name:         "roots/strings",
		Requirements: []string{ids.BaseResponsePresent, ids.RootsServerUnavailable},
		Needs:        rooting,
		Families:     []string{"strings"},
		Body: func(t *check.T) {
			// Roots have any name and, percent-encoded, any path: whether the server can use them or not, it goes on.
			r := taking{rooted: withRoots(t, root("file:///tmp", nil))}
			defer r.restore(t)
			if !r.use(t) {
				t.Inconclusive(noRootsAsked)
			}
			t.VaryInTurn(t.DrawFew("strings"), func(m family.Member) {
				mark := t.Mark()
				r.change(t, root("file:///mcpconform/"+url.PathEscape(m.Str()), map[string]any{"name": m.Str()}))
				if !r.taken(t, mark) {
					r.useTool(t)
					t.FenceOn(r.Session)
				}
				if !t.RunsAgain() {
					t.FenceOn(r.Session) // what came before may have been read together with the roots
				}
			})
			t.FenceOn(r.Session)
		},
	},
	{
		Name:         "roots/unavailable",
		Requirements: []string{ids.RootsServerUnavailable},
		Needs:        rooting,
		Body: func(t *check.T) {
			// The roots go while the server uses them: its next request for them ends in an error.
			r := withRoots(t, root("file:///tmp", nil))
			defer r.restore(t)
			if !r.use(t) {
				t.Inconclusive(noRootsAsked)
			}
			before := r.asked()
			r.versions.addUnavailable()
			t.Must(r.Notify(t.Context, rootsChanged, nil))
			r.awaitAsked(t.Context, before, t.Soon(check.Later))
			r.use(t)
			if r.asked() == before {
				t.Inconclusive("the server did not ask for the roots again after they had changed")
			}
			// The first ping may be read together with the error.
			for range 2 {
				t.FenceOn(r.Session)
			}
		},
	},
	{
		Name:         "roots/list-changed",
		Requirements: []string{ids.RootsListChangedRefetch},
		Needs:        rooting,
		Body: func(t *check.T) {
			// A server that has fetched the roots fetches them again, at once or when it needs them next.
			r := withRoots(t, root("file:///tmp", nil))
			defer r.restore(t)
			if !r.use(t) {
				t.Inconclusive(noRootsAsked)
			}
			before := r.asked()
			r.change(t, root("file:///tmp", nil), root("file:///", nil))
			if r.awaitAsked(t.Context, before, t.Soon(check.Later)) {
				return
			}
			r.use(t)
			again := r.awaitAsked(t.Context, before, r.Options.Timeout)
			t.FenceOn(r.Session) // a server that has gone asks for nothing
			if !again {
				t.Fail("the server had fetched the roots, but did not ask for them again after they had changed")
			}
		},
	},
	{
		Name:         "roots/two-clients",
		Requirements: []string{ids.RootsListChangedRefetch, ids.HTTPServerSessionIsolation},
		Needs:        rootingOfTwo(),
		Body: func(t *check.T) {
			// Two clients have roots of their own, and both announce others: each is asked for its own again, in
			// whichever order, and sees nothing of those of the other one.
			const first, second = "file:///mcpconform-of-the-first", "file:///mcpconform-of-the-second"
			own := withRoots(t, root(first, nil))
			defer own.restore(t)
			both := []rooted{own, rootsOf(t, t.Open(capable), root(second, nil))}
			for _, r := range both {
				if r.use(t) {
					continue
				}
				if x := r.useTool(t); x != nil && r.asked() == 0 {
					if others := rootIn(t, texts(x)); others != "" {
						t.Show(x.Events()...)
						t.Violation(ids.HTTPServerSessionIsolation,
							"the server never asked this client for its roots; the result of its tool call holds "+
								"those of another client: "+quote(others))
					}
				}
				t.Inconclusive(noRootsAsked)
			}
			var before []int
			for _, r := range both {
				before = append(before, r.asked())
			}
			for i, uri := range []string{first, second} {
				both[i].change(t, root(uri, nil), root(uri+"-too", nil))
			}
			for i, r := range both {
				again := r.awaitAsked(t.Context, before[i], t.Soon(check.Later))
				x := r.useTool(t)
				if !again && !r.Lost() {
					again = r.awaitAsked(t.Context, before[i], r.Options.Timeout)
				}
				if !again {
					t.FenceOn(r.Session) // a server that has gone asks for nothing
					t.Fail("the server had fetched the roots of two clients, but did not ask both again after " +
						"their roots had changed")
				}
				if others := []string{second, first}[i]; x != nil && strings.Contains(texts(x), others) {
					t.Show(x.Events()...)
					t.Violation(ids.HTTPServerSessionIsolation,
						"the result of one client's tool call holds the roots of another client: "+quote(others))
				}
			}
		},
	},
	{
		Name:         "roots/many-changes",
		Requirements: []string{ids.RootsListChangedGraceful, ids.MetaAttachNotification},
		Needs:        waiting(rooting),
		Body: func(t *check.T) {
			// Changes in quick succession, down to no root at all.
			r := withRoots(t, root("file:///tmp", nil))
			defer r.restore(t)
			for range t.Count(2, 3, 5) {
				r.change(t, root("file:///tmp", nil), root("file:///", nil))
				r.change(t)
			}
			t.Must(r.Notify(t.Context, rootsChanged,
				map[string]any{"_meta": map[string]any{"example.com/mcpconform": "any"}}))
			t.FenceOn(r.Session)
			r.use(t)
			t.FenceOn(r.Session)
		},
	},
}
