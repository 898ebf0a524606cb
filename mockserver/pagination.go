package mockserver

import (
	"context"
	"strings"
	"sync/atomic"
	"unicode"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// refusedCursor changes the code with which cursors are refused.
func refusedCursor(code int64) apply {
	return wrapping("*", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		result, problem := next(ctx, r)
		if _, paged := r.Params["cursor"]; paged && problem != nil {
			problem = &wire.Error{Code: code, Message: "Invalid cursor"}
		}
		return result, problem
	})
}

// fromStart answers requests that fit as if they had no cursor.
func fromStart(method string, fits func(r *server.Request) bool) apply {
	return wrapping(method, func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		if fits(r) {
			delete(r.Params, "cursor")
		}
		return next(ctx, r)
	})
}

type placeKey struct{}

// remembering keeps the place of a listing in the session: a cursor that is known leads to
// what comes after the page that was given last, whichever page gave the cursor.
func remembering(method, member string) apply {
	return wrapping(method, func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		place := r.Session.Value(placeKey{}, func() any { return new(atomic.Value) }).(*atomic.Value)
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

// server/utilities/pagination
var paginationFaults = []Fault{
	{
		ID: "pagination.cursor-loops", Requirement: "pagination.operations",
		Summary:    "The last page of prompts/list leads back to the first.",
		Collateral: []string{"pagination.cursor.results-after", "prompts.name.unique", "pagination.server.stable-cursors"},
		Apply: all(
			fromStart("prompts/list", func(r *server.Request) bool { return r.Params["cursor"] == "start" }),
			results("prompts/list", func(result object) {
				if result["nextCursor"] == nil {
					result["nextCursor"] = "start"
				}
			}),
		),
	},
	{
		ID: "pagination.cursor-never-ends", Requirement: "pagination.operations",
		Summary: "An empty last page gives the same cursor again.",
		Apply: all(
			answering("prompts/list", object{"prompts": list{}, "nextCursor": "more"}, func(r *server.Request) bool { return r.Params["cursor"] == "more" }),
			results("prompts/list", func(result object) {
				if result["nextCursor"] == nil {
					result["nextCursor"] = "more"
				}
			}),
		),
	},
	{
		ID: "pagination.cursor-ignored", Requirement: "pagination.cursor.results-after",
		Summary: "resources/templates/list ignores the cursor.",
		Collateral: []string{
			"pagination.operations", "pagination.error.invalid-cursor-code",
		},
		Apply: fromStart("resources/templates/list", always),
	},
	{
		ID: "pagination.pages-overlap", Requirement: "pagination.cursor.results-after",
		Summary: "Each page of resources/templates/list begins with the last item of the page before.",
		Apply: wrapping("resources/templates/list", server.Edit(func(r *server.Request, result map[string]any) {
			items, _ := result["resourceTemplates"].(list)
			last := r.Session.Value(lastItemKey{}, func() any { return new(atomic.Value) }).(*atomic.Value)
			if before := last.Swap(copied(items[len(items)-1].(object))); r.Params["cursor"] != nil && before != nil {
				result["resourceTemplates"] = append(list{before}, items...)
			}
		})),
	},
	{
		ID: "pagination.cursor-used-up", Requirement: "pagination.server.stable-cursors", Form: InSequence,
		Summary: "A cursor of tools/list is refused the second time.",
		Apply: refusing("tools/list", server.InvalidParams, func(r *server.Request) bool {
			cursor, ok := r.Params["cursor"].(string)
			return ok && len(cursor) > 30 && !once(r.Session, cursor)
		}),
	},
	{
		ID: "pagination.cursor-drifts", Requirement: "pagination.server.stable-cursors", Form: InSequence,
		Summary: "A cursor of tools/list leads to fewer items the second time.",
		Apply: wrapping("tools/list", server.Edit(func(r *server.Request, result map[string]any) {
			cursor, ok := r.Params["cursor"].(string)
			if all, _ := result["tools"].(list); ok && len(all) > 1 && !once(r.Session, cursor) {
				result["tools"] = all[1:]
			}
		})),
	},
	{
		ID: "pagination.cursor-decorative", Requirement: "pagination.server.stable-cursors", Form: InSequence,
		Collateral: []string{"pagination.cursor.results-after", "pagination.operations", "tools.list-changed.sent"},
		Summary:    "The session remembers where the client is in tools/list, and any cursor leads to the next page from there.",
		Apply:      remembering("tools/list", "tools"),
	},
	{
		ID: "pagination.invalid-cursor-accepted", Requirement: "pagination.error.invalid-cursor-code",
		Summary: "For an invalid cursor the first page is returned.",
		Apply: fromStart("tools/list", func(r *server.Request) bool {
			cursor, ok := r.Params["cursor"].(string)
			return ok && len(cursor) < 30
		}),
	},
	{
		ID: "pagination.cursor-of-symbols-accepted", Requirement: "pagination.error.invalid-cursor-code", Form: ByValue,
		Summary: "For a cursor without a letter or digit the first page is returned.",
		Apply: fromStart("prompts/list", func(r *server.Request) bool {
			cursor, ok := r.Params["cursor"].(string)
			return ok && !strings.ContainsFunc(cursor, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) })
		}),
	},
	{
		ID: "pagination.invalid-cursor-code", Requirement: "pagination.error.invalid-cursor-code",
		Collateral: []string{"base.error.invalid-params"},
		Summary:    "An invalid cursor is refused with -32603.",
		Apply:      refusedCursor(server.InternalError),
	},
	{
		ID: "pagination.invalid-cursor-kills", Requirement: "pagination.server.invalid-cursor-graceful",
		Summary: "A cursor that is a number ends the process.",
		Apply:   dyingOf(`"cursor":-1`),
	},
	{
		ID: "pagination.next-cursor-null", Requirement: "schema.list-prompts-result",
		Summary: "The last page has a nextCursor that is null.",
		Apply: results("prompts/list", func(result object) {
			if result["nextCursor"] == nil {
				result["nextCursor"] = nil
			}
		}),
	},
	{
		ID: "pagination.next-cursor-number", Requirement: "schema.list-resource-templates-result",
		Summary: "The nextCursor is a number.",
		Apply:   results("resources/templates/list", having("nextCursor", 2)),
	},
}

type lastItemKey struct{}
