package mockserver

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// refusedCursor changes the code with which cursors are refused.
func refusedCursor(code int64) apply {
	return Wrapping("*", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		result, problem := next(ctx, r)
		if _, paged := r.Params["cursor"]; paged && problem != nil {
			problem = &wire.Error{Code: code, Message: "Invalid cursor"}
		}
		return result, problem
	})
}

// remembering keeps the place of a listing in the session: every known cursor leads to the page after the latest one,
// whichever page gave the cursor.
func remembering(method, member string) apply {
	return Wrapping(method, func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		place := Kept[atomic.Value](r.Session, "place")
		cursor, paged := r.Params["cursor"].(string)
		if given, _ := place.Load().(string); paged && len(cursor) > 30 && given != "" {
			r.Params["cursor"] = given
		} else if paged && len(cursor) > 30 {
			return object{member: list{}}, nil
		}
		result, problem := next(ctx, r)
		if problem == nil {
			given, _ := wire.At(result, "nextCursor").(string)
			place.Store(given)
		}
		return result, problem
	})
}

// isList reports whether a method asks for a list. A name that only ends like one is unknown.
func isList(method string) bool {
	return slices.Contains([]string{"tools/list", "resources/list", "resources/templates/list", "prompts/list"}, method)
}

// spoiling refuses the next two list requests of the sessions that foreign names because of a cursor.
func spoiling(foreign func(r *server.Request, cursor string) []*server.Session) apply {
	left := func(s *server.Session) *atomic.Int64 {
		return Kept[atomic.Int64](s, "spoilt")
	}
	return Wrapping("*", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		if !isList(r.Method) {
			return next(ctx, r)
		}
		if left(r.Session).Add(-1) >= 0 {
			return nil, &wire.Error{Code: server.InternalError, Message: "The list is locked"}
		}
		left(r.Session).Store(0)
		if cursor, ok := r.Params["cursor"].(string); ok {
			for _, s := range foreign(r, cursor) {
				left(s).Store(2)
			}
		}
		return next(ctx, r)
	})
}

// server/utilities/pagination
var paginationFaults = []Fault{
	fault("pagination.cursor-loops", ids.PaginationOperations, "The last page of prompts/list leads back to the first.",
		All(
			FromStart("prompts/list", func(r *server.Request) bool { return r.Params["cursor"] == "start" }),
			Results("prompts/list", Defaulting("nextCursor", "start")),
		)).Also(ids.PaginationCursorResultsAfter, ids.PromptsNameUnique, ids.PaginationServerStableCursors),
	fault("pagination.cursor-never-ends", ids.PaginationOperations, "An empty last page gives the same cursor again.",
		All(
			Answering("prompts/list", object{"prompts": list{}, "nextCursor": "more"},
				func(r *server.Request) bool { return r.Params["cursor"] == "more" }),
			Results("prompts/list", Defaulting("nextCursor", "more")),
		)),
	fault("pagination.cursor-ignored", ids.PaginationCursorResultsAfter, "resources/templates/list ignores the cursor.",
		FromStart("resources/templates/list", Always)).
		Also(ids.PaginationOperations, ids.PaginationErrorInvalidCursorCode),
	fault("pagination.pages-overlap", ids.PaginationCursorResultsAfter,
		"Each page of resources/templates/list begins with the last item of the page before.",
		Wrapping("resources/templates/list", server.Edit(func(r *server.Request, result map[string]any) {
			items, _ := result["resourceTemplates"].(list)
			last := Kept[atomic.Value](r.Session, "last item")
			if before := last.Swap(Copied(items[len(items)-1].(object))); r.Params["cursor"] != nil && before != nil {
				result["resourceTemplates"] = append(list{before}, items...)
			}
		}))),
	fault("pagination.cursor-used-up", ids.PaginationServerStableCursors,
		"A cursor of tools/list is refused the second time.",
		Refusing("tools/list", server.InvalidParams, func(r *server.Request) bool {
			cursor, ok := r.Params["cursor"].(string)
			return ok && len(cursor) > 30 && !Once(r.Session, cursor)
		})).Seen(InSequence),
	fault("pagination.cursor-drifts", ids.PaginationServerStableCursors,
		"A cursor of tools/list leads to fewer items the second time.",
		Wrapping("tools/list", server.Edit(func(r *server.Request, result map[string]any) {
			cursor, ok := r.Params["cursor"].(string)
			if all, _ := result["tools"].(list); ok && len(all) > 1 && !Once(r.Session, cursor) {
				result["tools"] = all[1:]
			}
		}))).Seen(InSequence),
	fault("pagination.cursor-decorative", ids.PaginationServerStableCursors,
		"The session remembers where the client is in tools/list, and any cursor leads to the next page from there.",
		remembering("tools/list", "tools")).Seen(InSequence).
		Also(ids.PaginationCursorResultsAfter, ids.PaginationOperations, ids.ToolsListChangedSent),
	fault("pagination.invalid-cursor-accepted", ids.PaginationErrorInvalidCursorCode,
		"For an invalid cursor the first page is returned.",
		FromStart("tools/list", Fitting(func(cursor string) bool { return len(cursor) < 30 }, "cursor"))),
	fault("pagination.cursor-of-symbols-accepted", ids.PaginationErrorInvalidCursorCode,
		"For a cursor without a letter or digit the first page is returned.",
		FromStart("prompts/list", Fitting(func(cursor string) bool {
			return !strings.ContainsFunc(cursor, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) })
		}, "cursor"))).Seen(ByValue),
	fault("pagination.invalid-cursor-code", ids.PaginationErrorInvalidCursorCode,
		"An invalid cursor is refused with -32603.", refusedCursor(server.InternalError)).
		Also(ids.BaseErrorInvalidParams),
	fault("pagination.invalid-cursor-kills", ids.PaginationServerInvalidCursorGraceful,
		"A cursor that is a number ends the process.", dyingOf(`"cursor":-1`)),
	fault("pagination.invalid-cursor-spoils", ids.PaginationServerInvalidCursorGraceful,
		"After a cursor that is null in base64 the next two list requests of the session are refused with -32603.",
		spoiling(func(r *server.Request, cursor string) []*server.Session {
			if cursor == "bnVsbA==" {
				return []*server.Session{r.Session}
			}
			return nil
		})).Seen(ByValue).Also(ids.PaginationErrorInvalidCursorCode),
	fault("pagination.cut-cursor-code", ids.PaginationErrorInvalidCursorCode,
		"A cursor whose end is missing is refused with -32603.",
		All(RememberingCursors(), Refusing("resources/list", server.InternalError,
			func(r *server.Request) bool { return MadeFrom(r, BegunWith) != "" }))).Seen(ByValue),
	fault("pagination.other-list-cursor-code", ids.PaginationErrorInvalidCursorCode,
		"A cursor of another list is refused with -32002.",
		All(RememberingCursors(), Refusing("*", -32002, func(r *server.Request) bool {
			method, known := Issued(r.Session).Load(Param(r, "cursor"))
			return known && method != r.Method
		}))).Seen(ByValue),
	fault("pagination.other-list-cursor-spoils", ids.PaginationServerInvalidCursorGraceful,
		"After a cursor of another list the next two list requests of the session are refused with -32603.",
		All(RememberingCursors(), spoiling(func(r *server.Request, cursor string) []*server.Session {
			if method, known := Issued(r.Session).Load(cursor); known && method != r.Method {
				return []*server.Session{r.Session}
			}
			return nil
		}))).Seen(ByValue),
	fault("pagination.longer-cursor-forgets", ids.PaginationServerStableCursors,
		"A cursor is refused once it was sent with something behind it, until the list is read from its beginning.",
		All(RememberingCursors(), Refusing("prompts/list", server.InvalidParams, func(r *server.Request) bool {
			forgotten := Keys(r.Session, "forgotten")
			if r.Params["cursor"] == nil {
				forgotten.Clear()
			} else if given := MadeFrom(r, LongerThan); given != "" {
				forgotten.Store(given, true)
			}
			return Knows(forgotten, Param(r, "cursor"))
		}))).Seen(ByValue),
	fault("pagination.other-session-cursor-spoils", ids.PaginationServerInvalidCursorGraceful,
		"After a cursor of another session the next two list requests of both sessions are refused with -32603.",
		All(RememberingCursors(), spoiling(func(r *server.Request, cursor string) []*server.Session {
			for _, s := range Others(r.Session) {
				if _, theirs := Issued(s).Load(cursor); theirs && !Knows(Issued(r.Session), cursor) {
					return []*server.Session{r.Session, s}
				}
			}
			return nil
		}))).Seen(BySession).Only(OverHTTP),
	fault("pagination.next-cursor-null", ids.SchemaListPromptsResult, "The last page has a nextCursor that is null.",
		Results("prompts/list", Defaulting("nextCursor", nil))),
	fault("pagination.next-cursor-number", ids.SchemaListResourceTemplatesResult, "The nextCursor is a number.",
		Results("resources/templates/list", Having("nextCursor", 2))),
}
