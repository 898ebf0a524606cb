package oddserver

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// These oddities are legal ways to treat the members of families beside the plain ones (docs/families.md).
var familyOddities = []Oddity{
	odd("families.errors-quote-requests", "The message of an error quotes the whole request.",
		"An error may say what it is about; it is as long as what was sent.", "basic/index#responses",
		Problems("*", func(out *server.Outgoing, problem object) {
			problem["message"] = fmt.Sprintf("%s: %s", problem["message"], out.Answers.Message.Raw)
		})),
	odd("families.text-escaped",
		"The tool echo gives back its text for HTML, without the blanks around it and in upper case.",
		"A tool may do anything with its arguments.", "server/tools#tool-result", Blocks("echo", func(block object) {
			if text, ok := block["text"].(string); ok && text != "" && text != "mcpconform echo 7f3a" {
				block["text"] = html.EscapeString(strings.ToUpper(strings.TrimSpace(text)))
			}
		})),
	odd("families.text-refused", "The tool echo fails for texts beyond ASCII, and for those with control characters.",
		"A tool reports what it cannot work with in its result.", "server/tools#error-handling",
		WrappingTool("echo", func(ctx context.Context, r *server.Request, next server.Handler) (any,
			*wire.Error) {
			if unprintable(Param(r, "arguments", "text")) {
				return object{"content": TextOf("This text is not supported"), "isError": true}, nil
			}
			return next(ctx, r)
		})),
	odd("families.answers-refused",
		"A tool fails if what was sampled or elicited for it has control characters or lies beyond ASCII.",
		"A tool reports what it cannot work with in its result.", "server/tools#error-handling", All(
			FailingOn("test_sampling",
				func(answer object) bool { return unprintable(TextAt(answer, "content", "text")) }),
			FailingOn("test_elicitation",
				func(answer object) bool { return unprintable(TextAt(answer, "content", "username")) }),
		)),
	odd("families.values-refused",
		"Completion refuses values with control characters, and values of more than 1000 characters, with -32602.",
		"A reader may limit the strings that it takes (RFC 8259, section 9), and the server validates what it "+
			"completes.", "server/utilities/completion#security",
		Refusing("completion/complete", server.InvalidParams, Fitting(func(s string) bool {
			return len(s) > 1000 || strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f })
		}, "argument", "value"))),
	odd("families.offsets-as-cursors", "A cursor that is a number gives the first page, whoever made it.",
		"The form of cursors belongs to the server: to one whose cursors are offsets, any number is valid.",
		"server/utilities/pagination#pagination-model",
		FromStart("tools/list", Fitting(Equal("-1", "99999999999999999999", "LTE=", "OTk5OTk5OTk5"), "cursor"))),
	odd("families.derived-cursors-served",
		"In tools/list, a cursor with something behind it or in another letter case leads where it leads itself, "+
			"and one that is cut to the first page.",
		"The form of cursors belongs to the server, and so does how much of one it looks at.",
		"server/utilities/pagination#pagination-model",
		All(RememberingCursors(), OnRequest("tools/list", func(r *server.Request) {
			if given := MadeFrom(r, func(cursor, given string) bool {
				return LongerThan(cursor, given) || strings.EqualFold(cursor, given)
			}); given != "" {
				r.Params["cursor"] = given
			} else if MadeFrom(r, BegunWith) != "" {
				delete(r.Params, "cursor")
			}
		}))),
	odd("families.offsets-everywhere", "Cursors are offsets in digits, which mean the same in every list and every "+
		"session; behind the end a page is empty.", "The form of cursors belongs to the server.",
		"server/utilities/pagination#pagination-model", offsets(func() int { return 4 })).Replaces("pages"),
	odd("families.page-sizes", "A page has three or four items, in turn, also when its cursor is used again.",
		"Page size is determined by the server.", "server/utilities/pagination#pagination-model",
		func(o *server.Options) {
			var pages atomic.Int32
			offsets(func() int { return 3 + int(pages.Add(1)%2) })(o)
		}).Replaces("pages"),
	odd("families.fragments-ignored", "A fragment behind the URI of a resource is ignored.",
		"A fragment names a part of what the URI before it identifies (RFC 3986, section 3.5).",
		"server/resources#reading-resources", OnRequest("resources/read", func(r *server.Request) {
			if uri := Param(r, "uri"); strings.HasPrefix(uri, "test://") {
				r.Params["uri"], _, _ = strings.Cut(uri, "#")
			}
		})),
	odd("families.names-caseless", "The case of letters does not matter in the names of tools and prompts.",
		"The text does not say how names are compared.", "server/tools#tool",
		All(lowering("tools/call", "name"), lowering("prompts/get", "name"),
			lowering("completion/complete", "ref", "name"))),
	odd("families.uris-normalized",
		"A slash or a query behind the URI of a resource is ignored, and so is percent-encoding that changes nothing.",
		"The server and RFC 3986, section 6, decide on the equality of URIs.", "server/resources#reading-resources",
		OnRequest("resources/read", func(r *server.Request) {
			if uri := Param(r, "uri"); strings.HasPrefix(uri, "test://") && uri != "test://folder/" {
				uri, _, _ = strings.Cut(uri, "?")
				if plain, err := url.PathUnescape(uri); err == nil && !strings.Contains(plain, "%") {
					uri = plain
				}
				r.Params["uri"] = strings.TrimSuffix(uri, "/")
			}
		})),
	odd("families.encoded-uris-refused", "URIs with percent-encoding are refused with -32602.",
		"A server validates URIs, and may not decode those that no resource of its own has.",
		"server/resources#security-considerations",
		Refusing("resources/read", server.InvalidParams, Fitting(Holding("%"), "uri"))),
	odd("families.strange-methods-invalid",
		"A method whose name has a blank or a control character, or is very long, is refused with -32600.",
		"Whether such a text is the name of a method at all is not said.", "basic/index#messages",
		Refusing("*", server.InvalidRequest, func(r *server.Request) bool {
			return len(r.Method) > 500 || strings.ContainsFunc(r.Method, func(c rune) bool { return c <= ' ' })
		})),
	odd("families.cursor-null", "A cursor of another type than a string is taken for none.",
		"A server that has a single page need not look at the cursor.", "server/utilities/pagination#pagination-model",
		OnRequest("resources/list", func(r *server.Request) {
			if _, ok := r.Params["cursor"].(string); !ok {
				delete(r.Params, "cursor")
			}
		})),
	odd("families.arguments-empty", "Arguments that are null or an empty array are taken for none.",
		"The member is optional, and what is empty holds no argument: the text does not say how lenient a server "+
			"may be.", "schema#calltoolrequest", All(emptyForNone("tools/call"), emptyForNone("prompts/get"))),
	odd("families.arguments-refused-in-result",
		"Arguments that are not an object are reported in the result, with isError.",
		"Invalid input data is among the tool execution errors.", "server/tools#error-handling", Wrapping("tools/call",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				if given, there := r.Params["arguments"]; there && !UnknownTool(r) {
					if _, ok := given.(object); !ok {
						return object{"content": TextOf("The arguments are not an object"), "isError": true}, nil
					}
				}
				return next(ctx, r)
			})),
	odd("families.numbers-converted", "Digits are taken for the number that the tool sum wants.",
		"The text has inputs validated, and does not say that what reads like a number is none.",
		"server/tools#security-considerations", OnCall("sum", func(r *server.Request) {
			given, _ := r.Params["arguments"].(object)
			for name, value := range given {
				var n json.Number
				if text, ok := value.(string); ok && json.Unmarshal([]byte(text), &n) == nil {
					given[name] = n
				}
			}
		})),
	odd("families.text-invalid", "The tool echo refuses texts beyond ASCII with -32602, and so does a prompt.",
		"A server may say of what it cannot work with that it is invalid.", "server/tools#error-handling", All(
			Refusing("tools/call", server.InvalidParams, Fitting(HoldsWide, "arguments", "text")),
			Refusing("prompts/get", server.InvalidParams, Fitting(HoldsWide, "arguments", "arg1")))),
	odd("families.long-text-refused",
		"Texts of more than 100000 characters are refused, by the tool echo in its result and by prompts with -32602.",
		"A server may limit what it works with.", "server/tools#security-considerations", All(
			WrappingTool("echo", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				if len(Param(r, "arguments", "text")) > 100_000 {
					return object{"content": TextOf("This text is too long"), "isError": true}, nil
				}
				return next(ctx, r)
			}),
			Refusing("prompts/get", server.InvalidParams,
				Fitting(func(s string) bool { return len(s) > 100_000 }, "arguments", "arg1")),
		)),
	odd("families.long-text-cut", "The tool echo gives back no more than 1000 characters.",
		"A tool may do anything with its arguments.", "server/tools#tool-result", Blocks("echo", func(block object) {
			if text, ok := block["text"].(string); ok && len(text) > 1000 {
				block["text"] = strings.ToValidUTF8(text[:1000], "") + "…"
			}
		})),
}

// lowering reads a known name in capitals as that name.
func lowering(method string, path ...string) apply {
	return OnRequest(method, func(r *server.Request) {
		holder := r.Params
		if len(path) > 1 {
			holder, _ = r.Params[path[0]].(object)
		}
		if name := Param(r, path...); Capitalized(name) {
			holder[path[len(path)-1]] = strings.ToLower(name)
		}
	})
}

func unprintable(text string) bool {
	return strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' })
}

// emptyForNone leaves out arguments that are null or an empty array.
func emptyForNone(method string) apply {
	return OnRequest(method, func(r *server.Request) {
		if items, ok := r.Params["arguments"].(list); r.Params["arguments"] == nil || ok && len(items) == 0 {
			delete(r.Params, "arguments")
		}
	})
}

// offsets has cursors be offsets in digits, and pages of some size, which is asked for each.
func offsets(size func() int) apply {
	return All(paged(1000), onLists(func(method, member string) apply {
		return Wrapping(method, func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			start := 0
			if value, there := r.Params["cursor"]; there {
				cursor, _ := value.(string)
				n, err := strconv.ParseUint(cursor, 10, 31)
				if err != nil {
					return nil, &wire.Error{Code: server.InvalidParams, Message: "The cursor is not an offset"}
				}
				start = int(n)
				delete(r.Params, "cursor")
				defer func() { r.Params["cursor"] = value }()
			}
			result, problem := next(ctx, r)
			if o, ok := result.(object); ok {
				items, _ := o[member].(list)
				end := min(start+size(), len(items))
				o[member] = items[min(start, end):end:end]
				if end < len(items) {
					o["nextCursor"] = strconv.Itoa(end)
				}
			}
			return result, problem
		})
	}))
}
