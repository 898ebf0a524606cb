package check

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// announcing is how long after its handshake a server may take to announce the tools that it had not listed, as one
// does that loads them in the background (server/tools#list-changed-notification). Checks that find nothing to try
// wait for that. Other lists may well be empty for good, and have only the time of the other checks.
const announcing = 5 * time.Second

// announcedLater are the checks that found nothing to try because a list was empty. The server may still announce a
// change of that list.
type announcedLater struct {
	mu      sync.Mutex
	methods []string // of those lists
	checks  []*Future
	over    bool             // nobody waits any more
	before  map[string]*List // what was listed before the announcement
}

// begin notes the lists that were empty.
func (u *announcedLater) begin(t *Target) {
	for _, l := range listMembers {
		list := t.List(l.method)
		if t.Declares(wire.Capability(l.method)+".listChanged") && list.Served() && list.Err == nil &&
			len(list.Items) == 0 {
			u.methods = append(u.methods, l.method)
		}
	}
	// That there are no templates says little where there are resources.
	if slices.Equal(u.methods, []string{"resources/templates/list"}) {
		u.methods = nil
	}
}

// keeps reports whether a check with an outcome is tried again if what lists hold is announced, and keeps it until
// then.
func (u *announcedLater) keeps(f *Future, o Outcome) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.methods) == 0 || u.over || o.Verdict != Inconclusive || o.Cut != Uncut {
		return false
	}
	f.last.outcome = o
	u.checks = append(u.checks, f)
	return true
}

// take returns the checks that were kept. None are kept from then on.
func (u *announcedLater) take() []*Future {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.over = true
	return u.checks
}

// announced waits for the server to announce a change of a list that was empty, and reads those lists again. It
// reports whether one of them holds anything now.
func (e *Engine) announced(ctx context.Context) bool {
	announces := func(event *wire.Event) bool {
		if event.Kind != wire.KindMessage || event.From != wire.Server {
			return false
		}
		feature, ok := strings.CutSuffix(event.Msg.Method, "/list_changed")
		feature = strings.TrimPrefix(feature, "notifications/")
		return ok && slices.ContainsFunc(e.announcedLater.methods,
			func(method string) bool { return strings.HasPrefix(method, feature+"/") })
	}
	wait := time.Duration(0)
	if slices.Contains(e.announcedLater.methods, "tools/list") {
		wait = e.target.Init.Response.At + min(announcing, e.Timeout) - time.Since(e.Trace.Start)
	}
	limit, stop := context.WithTimeout(ctx, max(0, wait))
	defer stop()
	known := slices.ContainsFunc(e.Trace.Logs(),
		func(l *wire.Log) bool { return slices.ContainsFunc(l.Events(), announces) })
	for from := 0; ; known = false { // a call of a tool may have announced something else before
		if !known {
			if _, err := e.first.Log().Await(limit, from, announces); err != nil {
				return false
			}
		}
		from = e.first.Log().Len()
		if e.readAgain(ctx) && e.target.complete() == nil {
			return true
		}
	}
}

// readAgain reads the lists that were empty, and reports whether one of them holds anything.
func (e *Engine) readAgain(ctx context.Context) bool {
	found := false
	if e.announcedLater.before == nil {
		e.announcedLater.before = e.target.Lists
	}
	lists := maps.Clone(e.target.Lists)
	for _, method := range e.announcedLater.methods {
		if list := ReadList(ctx, e.first, method); list.Served() && list.Err == nil {
			found = found || len(list.Items) > 0
			lists[method] = list
		}
	}
	e.target.Lists = lists
	return found
}

// tryAnnounced tries again the checks that found nothing to try, now that lists hold something. It returns the checks
// to run alone. In a further session the lists may be empty once more: then those that can share the first one are
// run there, and the others stay as they are. After the call of a tool, the lists of the first session may come and
// go with such calls.
func (e *Engine) tryAnnounced(ctx context.Context, kept []*Future) (again []*Future) {
	empty := true
	_ = e.open(ctx, "whether another session lists what was announced", Capable(), func(s *client.Session) error {
		for _, method := range e.announcedLater.methods {
			empty = empty && len(ReadList(ctx, s, method).Items) == 0
		}
		return nil
	})
	if empty { // what is run alone after this has other sessions
		defer func() { e.target.Lists = e.announcedLater.before }()
	}
	if empty && slices.ContainsFunc(e.first.Log().Requests(wire.Client, "tools/call"), func(x *wire.Exchange) bool {
		return x.Result() != nil && x.Result()["isError"] != true
	}) {
		giveUp(kept, nil)
		return nil
	}
	checks := make([]*Check, len(kept))
	for i, f := range kept {
		checks[i] = f.Check
	}
	var in *client.Session // where tools are probed; nil for a session of its own
	if empty {
		in = e.first
	}
	e.probeTools(ctx, checks, in)
	kept = e.applicable(kept)
	if !empty {
		return kept
	}
	for _, f := range kept {
		if f.Check.Needs.Session == Shared || f.Check.Needs.Session == Own && f.Check.own() == "" {
			e.first.Answer(f.Check.options().Answers)
			play := func() { f.last = e.execute(ctx, f.Check, e.first, further, false) }
			play()
			e.settle(ctx, f, play)
		}
		f.finish()
	}
	return nil
}
