package server

import (
	"reflect"
	"slices"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// listOperation is a list: its method, the member of the result with the items, and what names an item.
type listOperation struct{ method, member, key string }

// lists are the operations that support pagination (server/utilities/pagination#operations-supporting-pagination).
var lists = []listOperation{
	{"tools/list", "tools", "name"},
	{"resources/list", "resources", "uri"},
	{"resources/templates/list", "resourceTemplates", "uriTemplate"},
	{"prompts/list", "prompts", "name"},
}

// server/utilities/pagination
var paginationChecks = []*check.Check{
	{
		Name:         "pagination/ends",
		Requirements: []string{ids.PaginationOperations},
		Body: func(t *check.T) {
			// Following nextCursor leads to an end. A cursor that comes again does not, nor does one that is refused.
			read, long := 0, ""
			for _, l := range lists {
				list := t.Target.List(l.method)
				if len(list.Pages) == 0 {
					continue
				}
				read++
				for _, page := range list.Pages[max(0, len(list.Pages)-2):] {
					t.Show(page.Events()...)
				}
				if list.Endless {
					t.Fail("%s does not end: after %d pages it gives a further cursor, or one that it gave before",
						l.method, len(list.Pages))
				}
				if list.Long {
					long = l.method
				}
				if x := refusedPage(list); x != nil &&
					stays(t, l.method, func(again *check.List) bool { return refusedPage(again) != nil }) {
					t.Expect(x).To(HaveResult(), "with a cursor that the server gave just before")
				}
			}
			if long != "" {
				t.Inconclusive("%s still brings something new after %d pages, and mcpconform does not read further",
					long, len(t.Target.List(long).Pages))
			}
			if read == 0 {
				t.Skip("the server does not declare a feature with a list")
			}
		},
	},
	{
		Name:         "pagination/stable-cursors",
		Requirements: []string{ids.PaginationServerStableCursors},
		Needs:        check.Needs{Session: check.Fresh, Lacking: unpaged}, // where nobody has used the cursors
		Body: func(t *check.T) {
			// A cursor leads to the same page when it is used again. Both pages are those of this session: what a
			// server lists, and where a cursor leads, may differ from client to client.
			method := pagedIn(t.Target)
			if method == "" {
				t.Inconclusive(notPaged)
			}
			first := t.Call(method, nil)
			t.Expect(first).To(HaveResult())
			own, more := nextCursor(first)
			if !more {
				t.Inconclusive("%s has one page only in this session", method)
			}
			x := t.Call(method, map[string]any{"cursor": own})
			if x.Result() == nil {
				t.Disturbed("with the cursor of the first page, %s gives %s", method, Describe(x))
			}
			// Others read the list meanwhile, from its beginning: in this session and, over HTTP, in another one.
			t.Call(method, nil)
			if t.Target.Transport != transport.NameStdio {
				other := t.Open(check.Capable())
				if theirs, more := nextCursor(t.CallOn(other, method, nil)); more {
					t.CallOn(other, method, map[string]any{"cursor": theirs})
				}
			}
			// Twice in a row: a server that keeps the place in the session goes on from there.
			twice := func() [2]*client.Exchange {
				return [2]*client.Exchange{t.Call(method, map[string]any{"cursor": own}),
					t.Call(method, map[string]any{"cursor": own})}
			}
			again := twice()
			t.Show(x.Events()...)
			t.Expect(again[0]).To(HaveResult(), "with a cursor that it served before the list was read anew")
			t.Expect(again[1]).To(HaveResult(), "with a cursor that it has just served")
			for _, l := range lists {
				other := func(uses [2]*client.Exchange) int { // the first that gives another page, or -1
					return slices.IndexFunc(uses[:],
						func(use *client.Exchange) bool { return !beginAlike(use, x, l.member, l.key) })
				}
				n := other(again)
				if l.method != method || n < 0 {
					continue
				}
				// The list may have changed in between.
				anew := t.Call(method, nil)
				t.Assume(keys(anew, l.member, l.key)).To(EqualJSON(keys(first, l.member, l.key)),
					"for the first page, read again")
				if other(twice()) < 0 {
					t.Inconclusive("a cursor led to another page for a while only: the list may have changed")
				}
				t.Expect(keys(again[n], l.member, l.key)).To(EqualJSON(keys(x, l.member, l.key)),
					"for a cursor that is used again")
			}
		},
	},
	{
		Name:         "pagination/results-after",
		Requirements: []string{ids.PaginationCursorResultsAfter},
		Body: func(t *check.T) {
			// The page behind a cursor goes on after the page that gave it.
			found := false
			for _, l := range lists {
				list := t.Target.List(l.method)
				if page, name := overlap(list, l.member, l.key); page != nil &&
					stays(t, l.method, func(again *check.List) bool {
						page, _ := overlap(again, l.member, l.key)
						return page != nil && sameItems(list, again)
					}) {
					t.Show(page.Events()...)
					t.Fail("a page of %s repeats %s, which an earlier page has as well", l.method, wire.Quote(name, 60))
				}
				pages := list.Pages
				for i := 1; i < len(pages); i++ {
					found = true
					before := keys(pages[i-1], l.member, l.key)
					after := keys(pages[i], l.member, l.key)
					t.Show(pages[i-1].Response)
					t.Show(pages[i].Events()...)
					if len(before) > 0 {
						t.Expect(after).ToNot(EqualJSON(before), "for the page after a cursor")
					}
				}
			}
			if !found {
				t.Inconclusive("no list has more than one page")
			}
		},
	},
	{
		Name:         "pagination/invalid-cursor",
		Requirements: []string{ids.PaginationErrorInvalidCursorCode},
		Families:     []string{"cursors-unknown"},
		Body: func(t *check.T) {
			// The form of cursors belongs to the server: one that reads like an offset may be as good as one that it
			// gave. But for the texts that no server gives, only the error is judged.
			served := servedLists(t)
			if len(served) == 0 {
				t.Skip("the server does not declare a feature with a list")
			}
			for i, l := range served {
				t.Vary(t.DrawAt(i, "cursors-unknown"), func(m family.Member) {
					x := t.Call(l.method, map[string]any{"cursor": m.Str()}, client.Deliberately("*"))
					if m.Plain() || m.Str() == notBase64 || x.Error() != nil {
						t.Check(ids.PaginationErrorInvalidCursorCode, x).To(HaveErrorCode(-32602),
							"with the cursor %s, which the server never gave", m)
					}
				})
			}
		},
	},
	{
		Name:         "pagination/invalid-cursor-survived",
		Requirements: []string{ids.PaginationServerInvalidCursorGraceful},
		Needs:        check.Needs{Session: check.Own},
		Families:     []string{"cursors-unknown"},
		Body: func(t *check.T) {
			served := servedLists(t)
			if len(served) == 0 {
				t.Skip("the server does not declare a feature with a list")
			}
			// Each text goes to one list, and the next text to the next: what breaks at a text does so in what all
			// lists share.
			drawn := t.DrawFew("cursors-unknown")
			t.VaryInTurn(drawn, func(m family.Member) {
				turn := slices.IndexFunc(drawn, func(other family.Member) bool { return other.Is == m.Is })
				l := served[turn%len(served)]
				t.Call(l.method, map[string]any{"cursor": m.Str()}, client.Deliberately("*"))
				if t.RunsAgain() && turn < len(drawn)-len(served) {
					return // each list is asked for after the last text
				}
				t.Check(ids.PaginationServerInvalidCursorGraceful, t.Call(l.method, nil)).
					To(HaveResult(), "without a cursor, after %s was sent as one", m)
			})
			t.Clear()
			for _, l := range served {
				t.Call(l.method, map[string]any{"cursor": -1}, client.Deliberately("*"))
				t.Expect(t.Call(l.method, nil)).To(HaveResult(), "without a cursor, after a number was sent as one")
			}
		},
	},
	{
		Name: "pagination/derived-cursors",
		Requirements: []string{
			ids.PaginationErrorInvalidCursorCode, ids.PaginationServerInvalidCursorGraceful,
			ids.PaginationServerStableCursors,
		},
		Needs:    waiting(check.Needs{Session: check.Own, Lacking: unpaged}),
		Families: []string{"cursors-derived"},
		Body: func(t *check.T) {
			// A cursor that a client has altered may be valid, and so may the cursor of another list or client. The
			// server serves each of them or refuses it as invalid. Its own cursors still lead to the same pages.
			first, theirs := make(map[string]*client.Exchange), make(map[string]string)
			var read []listOperation
			for _, l := range lists {
				if len(t.Target.List(l.method).Pages) < 2 {
					continue
				}
				page := t.Call(l.method, nil)
				if _, more := nextCursor(page); more {
					first[l.method], read = page, append(read, l)
				}
			}
			if len(read) == 0 {
				t.Inconclusive("%s any more", notPaged)
			}
			other := otherClient(t)
			for _, l := range read {
				if other == nil {
					break
				}
				theirs[l.method], _ = nextCursor(t.CallOn(other, l.method, nil))
			}
			for i, l := range read {
				own, _ := nextCursor(first[l.method])
				made := derived(own)
				made["of-list"], _ = nextCursor(first[read[(i+1)%len(read)].method])
				made["of-session"] = theirs[l.method]
				deriving(t, l, first[l.method], t.DrawAt(i, "cursors-derived"), made)
			}
			if other == nil {
				return
			}
			t.Clear()
			for _, l := range read {
				t.Check(ids.PaginationServerInvalidCursorGraceful, t.CallOn(other, l.method, nil)).
					To(HaveResult(), "without a cursor, after another client had sent one that this one was given")
			}
		},
	},
}

// servedLists returns the lists that the server serves.
func servedLists(t *check.T) []listOperation {
	return slices.DeleteFunc(slices.Clone(lists),
		func(l listOperation) bool { return !t.Target.List(l.method).Served() })
}

// otherClient opens another session where that is with the same server; nil if there is none.
func otherClient(t *check.T) *client.Session {
	if t.Target.Transport == transport.NameStdio {
		return nil
	}
	sessions, errs := t.OpenEach(check.Capable())
	if errs[0] != nil {
		return nil
	}
	return sessions[0]
}

// derived returns what a client can make of a cursor, by the names that cursors-derived has for it.
func derived(cursor string) map[string]string {
	all := []rune(cursor)
	last := max(0, len(all)-1)
	return map[string]string{
		"cursor": cursor, "cut": string(all[:last]), "half": string(all[:len(all)/2]),
		"rest": string(all[len(all)-last:]),
		"case": otherCase(cursor),
	}
}

// deriving sends what was made of the cursor of a list's first page. After each the cursor
// itself still has to lead to the next page, unless the list has changed.
func deriving(t *check.T, l listOperation, first *client.Exchange, drawn []family.Member, made map[string]string) {
	own := made["cursor"]
	var members []family.Member
	for _, m := range drawn {
		// Nothing may be left of it, there may be no other list or client, or theirs is the same.
		if m = m.With(made); m.Plain() || m.Str() != "" && m.Str() != own {
			members = append(members, m)
		}
	}
	t.VaryInTurn(members, func(m family.Member) {
		if m.Plain() {
			t.Assume(t.Call(l.method, map[string]any{"cursor": own})).To(HaveResult(),
				"with a cursor that the server has just given")
			return
		}
		if x := t.Call(l.method, map[string]any{"cursor": m.Str()}, client.Deliberately("*")); x.Error() != nil {
			t.Check(ids.PaginationErrorInvalidCursorCode, x).To(HaveErrorCode(-32602),
				"with the cursor %s, which the server did not give so", m)
		}
		if t.RunsAgain() && m.Is != members[len(members)-1].Is {
			return
		}
		again := t.Call(l.method, map[string]any{"cursor": own})
		if again.Result() != nil {
			return
		}
		anew := t.Call(l.method, nil)
		if t.Check(ids.PaginationServerInvalidCursorGraceful, anew).To(HaveResult(),
			"without a cursor, after the cursor %s was sent", m) && !servedOnce(t, anew) &&
			reflect.DeepEqual(keys(anew, l.member, l.key), keys(first, l.member, l.key)) {
			t.Check(ids.PaginationServerStableCursors, again).To(HaveResult(),
				"with a cursor that it had served before %s was sent", m)
		}
	})
	t.Clear()
	t.Check(ids.PaginationServerInvalidCursorGraceful, t.Call(l.method, nil)).To(HaveResult(),
		"without a cursor, after cursors that were made from one of its own")
}

// servedOnce reports whether a server serves a cursor of a page only once. The check pagination/stable-cursors judges
// it.
func servedOnce(t *check.T, page *client.Exchange) bool {
	cursor, more := nextCursor(page)
	params := map[string]any{"cursor": cursor}
	return more && t.Call(page.Method(), params).Result() != nil && t.Call(page.Method(), params).Result() == nil
}

// refusedPage returns the last page of a list if it was refused although a page gave a
// cursor for it, or nil. A refusal for want of authorization or of time says nothing.
func refusedPage(l *check.List) *client.Exchange {
	if len(l.Pages) < 2 || l.Err != nil {
		return nil
	}
	last := l.Pages[len(l.Pages)-1]
	if last.Error() == nil || last.Head != nil && last.Head.HTTP.Status >= 500 {
		return nil
	}
	return last
}

// overlap returns the first page that repeats an item of an earlier page, and what
// identifies the item, or nil.
func overlap(l *check.List, member, key string) (page *client.Exchange, name string) {
	seen := make(map[string]bool)
	for _, page := range l.Pages {
		var here []string
		items, _ := page.Result()[member].([]any)
		for _, item := range items {
			text := string(client.Marshal(item))
			if name, ok := at(item, key).(string); ok && seen[text] {
				return page, name
			}
			here = append(here, text)
		}
		for _, text := range here {
			seen[text] = true
		}
	}
	return nil, ""
}

// stays reads a list anew, twice, and reports whether it is still as it was found. A list that
// changes while it is read may end with a cursor that has expired, or have an item on
// two pages.
func stays(t *check.T, method string, asFound func(*check.List) bool) bool {
	for range 2 {
		if !asFound(check.ReadList(t.Context, t.Session, method)) {
			return false
		}
	}
	return true
}

// notBase64 is a cursor that no server gives. A decoder that skips unknown characters takes it for an empty one.
const notBase64 = "%%%%"

// nextCursor returns the cursor of the page after one, if that is a string: we send nothing else.
func nextCursor(page *client.Exchange) (cursor string, more bool) {
	cursor, more = page.Result()["nextCursor"].(string)
	return cursor, more
}

const notPaged = "no list has more than one page"

// unpaged says why checks cannot be tried that need a list of several pages.
func unpaged(target *check.Target) string {
	if pagedIn(target) == "" {
		return notPaged
	}
	return ""
}

// pagedIn returns the method of a list that has further pages, or "".
func pagedIn(target *check.Target) (method string) {
	for _, l := range lists {
		if pages := target.List(l.method).Pages; len(pages) > 1 && pages[1].Result() != nil {
			return l.method
		}
	}
	return ""
}

// beginAlike reports whether two pages begin with the same items, where the shorter one is not the end: a server
// determines the size of each page (server/utilities/pagination#pagination-model).
func beginAlike(a, b *client.Exchange, member, key string) bool {
	short, long := keys(a, member, key), keys(b, member, key)
	if len(short) > len(long) {
		a, short, long = b, long, short
	}
	_, more := nextCursor(a)
	return slices.EqualFunc(short, long[:len(short)], func(a, b any) bool { return reflect.DeepEqual(a, b) }) &&
		(more || len(short) == len(long))
}

// keys returns what identifies the items of a page, in order.
func keys(x *client.Exchange, member, key string) []any {
	items, _ := x.Result()[member].([]any)
	var all []any
	for _, item := range items {
		all = append(all, at(item, key))
	}
	return all
}
