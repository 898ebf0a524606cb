package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
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
	Session: check.Own, ToolRoles: []string{"roots"}, Long: true, Liveness: true, Options: check.Capable(),
}

// withRoots gives the session of the check roots, and tells the server: one that has
// fetched others before has to fetch them, and some never fetch them without being told.
func withRoots(t *check.T, roots ...any) rooted {
	r := rooted{Session: t.Session, versions: new(rootVersions)}
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
	t.Session.Answer(answers)
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

// use makes the server use the roots: it calls the tool that does, if there is
// one, and reports whether the server has asked for them in this session.
func (r rooted) use(t *check.T) bool {
	wait := asksWithin(t) - r.quiet(t)
	if call, ok := knownTool(t, "roots"); ok {
		// Whether the tool itself answers does not matter here.
		x, _ := r.Call(t.Context, "tools/call", call.Params())
		t.Show(x.Events()...)
		wait = t.Soon(check.Later)
	}
	return r.asked() > 0 || r.awaitAsked(t.Context, 0, wait)
}

// asksWithin is how long to wait for a request that a server sends of its own accord. One that
// is slow to begin a session is slow to ask in it.
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
		if e.Kind == wire.KindMessage && slices.Contains([]string{"notifications/initialized", rootsChanged}, e.Msg.Method) {
			ago = t.Ago(e)
		}
	}
	return ago
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

const noRootsAsked = "the server never asked for the roots: name a tool for the role \"roots\" in the configuration if one does"

// client/roots
var rootChecks = []*check.Check{
	{
		Name: "roots/kinds",
		Requirements: []string{
			"roots.root.name-optional", "roots.list.multiple", "roots.root.file-or-directory", "roots.server.unavailable",
			"meta.attach.objects",
		},
		Needs: rooting,
		Body: func(t *check.T) {
			// Roots of each kind, one after the other: with and without a name, several, a file, a folder that does not exist.
			r := withRoots(t, root("file:///tmp", nil))
			defer r.restore(t)
			if !r.use(t) {
				t.Inconclusive(noRootsAsked)
			}
			for _, v := range []struct {
				id    string
				roots []any
			}{
				{"roots.root.name-optional", []any{root("file:///tmp", map[string]any{"name": "Temporary files"})}},
				{"roots.root.name-optional", []any{root("file:///tmp", nil)}},
				{"roots.list.multiple", []any{root("file:///tmp", nil), root("file:///", map[string]any{"name": "All"})}},
				{"roots.root.file-or-directory", []any{root("file:///etc/hosts", nil)}},
				{"roots.server.unavailable", []any{root(missingFolder, map[string]any{"name": "Gone"})}},
				{"meta.attach.objects", []any{root("file:///tmp", map[string]any{"_meta": map[string]any{"example.com/mcpconform": 1}})}},
			} {
				t.About(v.id)
				r.change(t, v.roots...)
				r.use(t)
				if _, err := r.Call(t.Context, t.NoOp(), nil); err != nil {
					t.Violation(v.id, "after roots/list was answered with "+quote(v.roots)+": "+err.Error())
					return
				}
			}
		},
	},
	{
		Name:         "roots/unavailable",
		Requirements: []string{"roots.server.unavailable"},
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
		Requirements: []string{"roots.list-changed.refetch"},
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
		Name:         "roots/many-changes",
		Requirements: []string{"roots.list-changed.graceful", "meta.attach.notification"},
		Needs:        waiting(rooting),
		Body: func(t *check.T) {
			// Changes in quick succession, down to no root at all.
			r := withRoots(t, root("file:///tmp", nil))
			defer r.restore(t)
			for range 5 {
				r.change(t, root("file:///tmp", nil), root("file:///", nil))
				r.change(t)
			}
			t.Must(r.Notify(t.Context, rootsChanged, map[string]any{"_meta": map[string]any{"example.com/mcpconform": "any"}}))
			t.FenceOn(r.Session)
			r.use(t)
			t.FenceOn(r.Session)
		},
	},
}
