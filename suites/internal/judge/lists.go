package judge

import (
	"maps"
	"net/http"
	"slices"
	"sort"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var listRules = []Rule{{
	Name:         "list changes",
	Requirements: []string{ids.ToolsListChangedSent, ids.ResourcesListChangedSent, ids.PromptsListChangedSent},
	Judge: func(c *Conversation, rec *Recorder) {
		judgeListChanges(c, rec, "tools", "name")
		judgeListChanges(c, rec, "resources", "uri")
		judgeListChanges(c, rec, "prompts", "name")
	},
}}

// listChanged returns the notification about a change in the list of a feature.
func listChanged(feature string) string { return "notifications/" + feature + "/list_changed" }

// A listing is what one walk through the pages of a list has shown.
type listing struct {
	asked    *wire.Event            // the request of its first page
	seen     map[string]*wire.Event // the page on which each item came first
	twice    map[string]*wire.Event // the page on which an item came again
	complete *wire.Event            // its last page, or nil
}

// listings returns the listings with a method in the order in which they were answered,
// and hands each item that one page holds twice to twice. Listings may run side by side:
// a page belongs to the listing whose last cursor it was asked with.
func (c *Conversation) listings(method, member, key string, twice func(name string, page *wire.Event)) []*listing {
	byCursor := make(map[string]*listing)
	var all []*listing
	for _, x := range c.Exchanges {
		if x.Method() != method || x.Result() == nil {
			continue
		}
		var l *listing
		if cursor, ok := wire.At(x.Request.Msg.Params, "cursor").(string); ok {
			if l = byCursor[cursor]; l == nil {
				continue // a cursor of unknown origin
			}
			delete(byCursor, cursor) // asked for again, the page is not a new one
		} else {
			l = &listing{asked: x.Request, seen: make(map[string]*wire.Event), twice: make(map[string]*wire.Event)}
			all = append(all, l)
		}
		for _, item := range wire.Items(x.Result(), member) {
			name, ok := wire.At(item, key).(string)
			if !ok {
				continue
			}
			switch first := l.seen[name]; {
			case first == x.Response:
				twice(name, first)
			case first != nil:
				l.twice[name] = x.Response
			default:
				l.seen[name] = x.Response
			}
		}
		if next, ok := x.Result()["nextCursor"].(string); ok {
			byCursor[next] = l
		} else {
			l.complete = x.Response
		}
	}
	return all
}

// judgeUnique judges that a list, over all of its pages, does not name anything
// twice. A listing that begins anew is judged by itself. An item may move to a later page
// while the list changes: then another listing has it once.
func judgeUnique(c *Conversation, rec *Recorder, method, member, key, id string) {
	message := func(name string) string { return wire.Quote(name, 60) + " is listed twice" }
	all := c.listings(method, member, key, func(name string, page *wire.Event) {
		rec.Fail(id, wire.Server, message(name), page)
	})
	var changes []*wire.Event
	if slices.ContainsFunc(all, func(l *listing) bool { return len(l.twice) > 0 }) {
		changes = c.notifications(wire.Server, listChanged(member))
	}
	once := make(map[string]bool) // names that a complete listing has once
	for _, l := range all {
		if l.complete == nil {
			continue
		}
		for name := range l.seen {
			once[name] = once[name] || l.twice[name] == nil
		}
	}
	for _, l := range all {
		for _, name := range slices.Sorted(maps.Keys(l.seen)) {
			switch again := l.twice[name]; {
			case again == nil:
				rec.Pass(id, wire.Server)
			case once[name] || changed(changes, l.asked.Seq, again):
				rec.Note(id, wire.Server,
					"some items are listed twice in listings during which the list may have changed")
			default:
				rec.Fail(id, wire.Server, message(name), l.seen[name], again)
			}
		}
	}
}

// notifications returns what a party sent with a method.
func (c *Conversation) notifications(p wire.Party, method string) []*wire.Event {
	var sent []*wire.Event
	for _, e := range c.Messages {
		if e.From == p && e.Msg.Kind == wire.Notification && e.Msg.Method == method {
			sent = append(sent, e)
		}
	}
	return sent
}

// changed reports whether one of some notifications, in the order in which they came,
// tells of a change between a position and an event. It may have been overtaken.
func changed(notifications []*wire.Event, from int, until *wire.Event) bool {
	i := sort.Search(len(notifications), func(i int) bool { return notifications[i].Seq > from })
	return i < len(notifications) && (notifications[i].Seq < until.Seq || notifications[i].At-until.At < overtaking)
}

// judgeListChanges compares each complete listing with the one before it: a server that
// has declared listChanged tells of a change (server/tools#list-changed-notification, and
// so on). It may do so late, and needs a stream for it.
func judgeListChanges(c *Conversation, rec *Recorder, feature, key string) {
	if !c.Declared(wire.Server, feature+".listChanged") || c.Initialized == nil {
		return
	}
	var changes []*wire.Event
	var before *listing
	for i, l := range c.listings(feature+"/list", feature, key, func(string, *wire.Event) {}) {
		if i == 0 {
			changes = c.notifications(wire.Server, listChanged(feature))
		}
		if l.complete == nil || l.asked.Seq < c.Initialized.Seq {
			continue
		}
		if before != nil && before.complete.Seq < l.asked.Seq && !sameNames(before, l) {
			announced := len(changes) > 0 && changes[len(changes)-1].Seq > before.asked.Seq
			if announced || c.wentOn(l.complete) && c.listens(before.asked, l.complete) {
				rec.Check(announced, feature+".list-changed.sent", wire.Server,
					"the list has changed, but "+listChanged(feature)+" did not come", before.complete, l.asked,
					l.complete)
			}
		}
		before = l
	}
}

// sameNames reports whether two listings show the same items, in whatever order.
func sameNames(a, b *listing) bool {
	if len(a.seen) != len(b.seen) {
		return false
	}
	for name := range a.seen {
		if b.seen[name] == nil {
			return false
		}
	}
	return true
}

// listens reports whether the server had a stream for messages of its own from one event
// to the other: over Streamable HTTP the client has to open one.
func (c *Conversation) listens(from, to *wire.Event) bool {
	if c.Transport != transport.NameHTTP {
		return true
	}
	throughout := false
	for _, x := range c.HTTP {
		switch {
		case x.Method() != http.MethodGet || !x.OK() || x.MediaType() != typeEvents:
		case x.Head.Seq < from.Seq && (x.End == nil || x.End.Seq > to.Seq):
			throughout = true
		case x.Head.Seq < to.Seq && x.End != nil && x.End.Seq > from.Seq:
			return false // what was sent on another stream is lost with it
		}
	}
	return throughout
}
