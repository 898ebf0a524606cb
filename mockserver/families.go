package mockserver

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// digits is the JSON text of a string that reads like a whole number of some length.
var digits = regexp.MustCompile(`^"[1-9]\d{5,}"$`)

// noName is the plain name of what does not exist.
const noName = "mcpconform-no-such-name"

// renamed changes the ids of responses, given as JSON text.
func renamed(change func(id string) any) apply {
	return Responses("*", func(out *server.Outgoing) {
		id := out.Answers.ID.String()
		if changed := change(id); changed != any(id) {
			out.Message["id"] = changed
			out.Raw = nil
		}
	})
}

// ofType fits requests one of whose params has a JSON type.
func ofType(name string, path ...string) func(r *server.Request) bool {
	return func(r *server.Request) bool {
		holder, _ := wire.At(r.Params, path[:len(path)-1]...).(object)
		v, there := holder[path[len(path)-1]]
		return there && wire.TypeName(v) == name
	}
}

// noRegexp reports whether a text is not a regular expression.
func noRegexp(s string) bool {
	_, err := regexp.Compile(s)
	return err != nil
}

// respelled refuses messages whose bytes fit.
func respelled(fits func(raw []byte) bool) apply {
	return Inbound(func(raw []byte) []byte {
		if m := wire.Parse(raw); m.Kind == wire.Request && m.ID.Usable() && fits(raw) {
			return []byte(`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"method":1}`)
		}
		return raw
	})
}

// trimmed changes the methods of requests.
func trimmed(change func(method string) string) apply {
	return Inbound(func(raw []byte) []byte {
		m := wire.Parse(raw)
		if m.Kind != wire.Request || change(m.Method) == m.Method {
			return raw
		}
		name, err := json.Marshal(m.Method)
		other, otherErr := json.Marshal(change(m.Method))
		if err != nil || otherErr != nil {
			return raw
		}
		return bytes.Replace(raw, append([]byte(`"method":`), name...), append([]byte(`"method":`), other...), 1)
	})
}

// latin reads the bytes of a text as ISO 8859-1.
func latin(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		b.WriteRune(rune(c))
	}
	return b.String()
}

// familyFaults do not show with the plain stimulus, but with another member of its family
// (docs/families.md).
var familyFaults = []Fault{
	fault("base.id-digits-as-number", ids.BaseResponseIDTypeEcho,
		"String ids of six digits and more come back as numbers.", renamed(func(id string) any {
			if digits.MatchString(id) {
				return json.Number(strings.TrimLeft(strings.Trim(id, `"`), "0"))
			}
			return id
		})).Seen(ByValue).
		Also(ids.BaseRequestStringIDServed, ids.BaseResponsePresent, ids.BaseResponseIDEcho,
			ids.BaseResponseOnlyToRequests),
	fault("base.id-trimmed", ids.BaseRequestStringIDServed, "String ids come back without the blanks around them.",
		renamed(func(id string) any {
			if s := strings.Trim(id, `"`); strings.HasPrefix(id, `"`) && strings.TrimSpace(s) != s {
				return strings.TrimSpace(s)
			}
			return id
		})).Seen(ByValue).
		Also(ids.BaseResponsePresent, ids.BaseResponseOnce, ids.BaseResponseOnlyToRequests, ids.BaseResponseIDEcho,
			ids.BaseErrorUndetectableID),
	fault("base.id-lower-case-in-errors", ids.BaseResponseIDEcho, "Errors carry string ids in lower case.",
		Problems("*", func(out *server.Outgoing, _ object) {
			if id := out.Answers.ID.String(); strings.HasPrefix(id, `"`) {
				out.Message["id"] = json.RawMessage(strings.ToLower(id))
			}
		})).Seen(ByValue).Also(ids.BaseResponseOnce, ids.BaseResponseOnlyToRequests, ids.BaseErrorUndetectableID),
	fault("base.id-empty-null-in-errors", ids.BaseResponseIDEcho, "Errors carry null in place of an empty id.",
		Problems("*", func(out *server.Outgoing, _ object) {
			if out.Answers.ID.String() == `""` {
				out.Message["id"] = nil
			}
		})).Seen(ByValue),
	fault("base.negative-id-positive-in-errors", ids.BaseResponseIDEcho,
		"Errors carry negative ids without their sign.", Problems("*", func(out *server.Outgoing, _ object) {
			if digits, negative := strings.CutPrefix(out.Answers.ID.String(), "-"); negative {
				out.Message["id"] = json.RawMessage(digits)
			}
		})).Seen(ByValue).Also(ids.BaseResponseOnce, ids.BaseResponseOnlyToRequests, ids.BaseErrorUndetectableID),
	fault("base.id-inherited-refused", ids.BaseRequestStringIDServed,
		"A request whose id is the name of a member that every JavaScript object has is refused.",
		Refusing("*", server.InternalError,
			func(r *server.Request) bool { return r.ID.String() == `"constructor"` })).Seen(ByValue),
	fault("base.negative-id-refused", ids.BaseRequestIntegerIDServed, "A request with a negative id is refused.",
		Refusing("*", server.InvalidRequest,
			func(r *server.Request) bool { return strings.HasPrefix(r.ID.String(), "-") })).Seen(ByValue),
	fault("base.id-beyond-31-bits-refused", ids.BaseRequestIntegerIDServed,
		"A request whose id does not fit into 32 bits with a sign is refused.",
		Refusing("*", server.InvalidRequest, func(r *server.Request) bool {
			n, err := strconv.ParseInt(r.ID.String(), 10, 64)
			return err == nil && int64(int32(n)) != n
		})).Seen(ByValue),
	fault("base.method-trimmed", ids.BaseErrorMethodNotFound, "Blanks around the name of a method are ignored.",
		trimmed(strings.TrimSpace)).Seen(ByValue),
	fault("base.method-slash", ids.BaseErrorMethodNotFound, "A slash behind the name of a method is ignored.",
		trimmed(func(method string) string { return strings.TrimSuffix(method, "/") })).Seen(ByValue),
	fault("base.method-inherited", ids.BaseErrorMethodNotFound,
		"A method with the name of a member that every JavaScript object has is refused with -32603.",
		Refusing("*", server.InternalError, func(r *server.Request) bool { return r.Method == "toString" })).
		Seen(ByValue),
	fault("base.method-long", ids.BaseErrorMethodNotFound,
		"A method with a name of more than 1000 characters is refused with -32603.",
		Refusing("*", server.InternalError, func(r *server.Request) bool { return len(r.Method) > 1000 })).
		Seen(ByValue),
	fault("base.order-of-members", ids.BaseJSONAnySpelling,
		"Requests that do not begin with the member jsonrpc are refused.", respelled(func(raw []byte) bool {
			return !bytes.HasPrefix(bytes.ReplaceAll(bytes.TrimSpace(raw), []byte(" "), nil), []byte(`{"jsonrpc"`)) &&
				bytes.Contains(raw, []byte("mcpconform spelling"))
		})).Seen(ByValue),
	fault("base.blanks-refused", ids.BaseJSONAnySpelling, "Requests with a blank before a colon are refused.",
		respelled(func(raw []byte) bool { return bytes.Contains(raw, []byte(`" :`)) })).Seen(ByValue),
	fault("base.trailing-blanks-refused", ids.BaseJSONAnySpelling,
		"Requests with white space behind the last brace are refused, as by a reader that wants the newline there.",
		respelled(func(raw []byte) bool { return bytes.HasSuffix(raw, []byte("\t")) })).Seen(ByValue),
	fault("base.escapes-refused", ids.BaseJSONAnySpelling,
		"Requests in which the name of a member has an escape are refused.",
		respelled(func(raw []byte) bool { return bytes.Contains(raw, []byte(`\u0069d":`)) })).Seen(ByValue),
	fault("base.surrogates-apart", ids.BaseJSONAnySpelling,
		"Each half of an escaped surrogate pair is read as a character of its own.", Inbound(func(raw []byte) []byte {
			return bytes.ReplaceAll(raw, []byte(`\ud83c\udf89`), []byte(`\ufffd\ufffd`))
		})).Seen(ByValue).Also(ids.BaseResponsePresent, ids.BaseResponseOnlyToRequests, ids.BaseResponseIDEcho),
	fault("base.escaped-slash-kept", ids.BaseJSONAnySpelling,
		"The backslash of an escaped slash is taken for a part of the text.",
		Inbound(func(raw []byte) []byte { return bytes.ReplaceAll(raw, []byte(`\/`), []byte(`\\/`)) })).Seen(ByValue).
		Also(ids.BaseResponsePresent, ids.BaseResponseOnlyToRequests, ids.BaseResponseIDEcho),
	fault("base.escaped-method-unknown", ids.BaseJSONAnySpelling,
		"A method is compared as it is spelled, with its escapes.",
		respelled(func(raw []byte) bool { return bytes.Contains(raw, []byte(`"method":"\u00`)) })).Seen(ByValue),
	fault("base.null-for-name", ids.BaseErrorInvalidParams,
		"The call of a tool whose name is null is refused with -32603.",
		Refusing("tools/call", server.InternalError, ofType("null", "name"))).Seen(ByValue),
	fault("base.array-for-uri", ids.BaseErrorInvalidParams,
		"A resources/read whose URI is an array is refused with -32603.",
		Refusing("resources/read", server.InternalError, ofType("an array", "uri"))).Seen(ByValue),
	fault("base.object-for-cursor", ids.BaseErrorInvalidParams,
		"A list request whose cursor is an object is refused with -32603.",
		Refusing("tools/list", server.InternalError, ofType("an object", "cursor"))).Seen(ByValue),
	fault("base.params-null-code", ids.BaseErrorInvalidRequest,
		"A request whose params are null is refused with -32603.", All(
			Inbound(func(raw []byte) []byte {
				return bytes.Replace(raw, []byte(`"params":null`), []byte(`"params":{"mcpconform-null":true}`), 1)
			}),
			Refusing("*", server.InternalError,
				func(r *server.Request) bool { return r.Params["mcpconform-null"] == true }),
		)).Seen(ByValue),
	fault("meta.inherited-refused", ids.MetaAttachRequest,
		"A _meta with the name of a member that every JavaScript object has is refused.",
		Refusing("*", server.InternalError,
			func(r *server.Request) bool { return wire.At(r.Params, "_meta", "constructor") != nil })).Seen(ByValue),
	fault("meta.empty-refused", ids.MetaAttachRequest, "A request with an empty _meta is refused.",
		Refusing("ping", server.InvalidParams, func(r *server.Request) bool {
			meta, ok := r.Params["_meta"].(object)
			return ok && len(meta) == 0
		})).Seen(ByValue),
	fault("tools.name-prefix-served", ids.ToolsErrorUnknownToolProtocolError,
		"The call of a tool whose name only begins like a known one gets a result.",
		Answering("tools/call", object{"content": TextOf("")},
			Fitting(func(s string) bool { return strings.HasSuffix(s, "/mcpconform") }, "name"))).Seen(ByValue),
	fault("tools.name-cut-at-null", ids.ToolsErrorUnknownToolProtocolError,
		"The name of a tool is read up to a null character.",
		Answering("tools/call", object{"content": TextOf("")}, Fitting(Holding("\x00"), "name"))).Seen(ByValue),
	fault("tools.name-regular-expression", ids.ToolsErrorUnknownToolCode,
		"The call of a tool whose name is not a regular expression is refused with -32603.",
		Refusing("tools/call", server.InternalError, Fitting(noRegexp, "name"))).Seen(ByValue),
	fault("tools.name-empty", ids.ToolsErrorUnknownToolCode,
		"The call of a tool with an empty name is refused with -32601.",
		Refusing("tools/call", server.MethodNotFound, Fitting(Equal(""), "name"))).Seen(ByValue),
	fault("tools.text-as-latin-1", ids.BaseMessageUTF8Accepted,
		"The tool echo gives back texts as if their bytes were ISO 8859-1.", Texts("echo", latin)).Seen(ByValue),
	fault("tools.text-beyond-basic-plane", ids.BaseMessageUTF8Accepted,
		"The tool echo puts U+FFFD in the place of each unit of what UTF-16 writes as a surrogate pair.",
		Texts("echo", func(text string) string {
			return regexp.MustCompile(`[^\x{0000}-\x{FFFF}]`).ReplaceAllString(text, "\ufffd\ufffd")
		})).Seen(ByValue),
	fault("tools.name-case-code", ids.ToolsErrorUnknownToolCode,
		"The call of a tool whose name is a known one in capitals is refused with -32603.",
		Refusing("tools/call", server.InternalError, Fitting(Capitalized, "name"))).Seen(ByValue),
	fault("prompts.name-case-code", ids.PromptsErrorInvalidNameCode,
		"A prompts/get whose name is a known one in capitals is refused with -32603.",
		Refusing("prompts/get", server.InternalError, Fitting(Capitalized, "name"))).Seen(ByValue),
	fault("completion.name-case-code", ids.CompletionErrorInvalidPromptCode,
		"Completion for a prompt whose name is a known one in capitals is refused with -32603.",
		Refusing("completion/complete", server.InternalError, Fitting(Capitalized, "ref", "name"))).Seen(ByValue),
	fault("resources.slash-code", ids.ResourcesErrorNotFoundCode,
		"A known URI with a slash behind it is refused with -32603.",
		Refusing("resources/read", server.InternalError, Fitting(func(s string) bool {
			return strings.HasPrefix(s, "test://") && strings.HasSuffix(s, "/") && s != "test://folder/"
		}, "uri"))).Seen(ByValue),
	fault("resources.query-code", ids.ResourcesErrorNotFoundCode,
		"A known URI with a query behind it is refused with -32603.",
		Refusing("resources/read", server.InternalError, Fitting(Holding("?mcpconform="), "uri"))).Seen(ByValue),
	fault("prompts.name-empty", ids.PromptsErrorInvalidNameCode,
		"A prompts/get with an empty name gets the first prompt.",
		Answering("prompts/get", object{"messages": list{}}, Fitting(Equal(""), "name"))).Seen(ByValue),
	fault("prompts.name-path", ids.PromptsErrorInvalidNameCode,
		"A prompts/get whose name leads out of a folder is refused with -32603.",
		Refusing("prompts/get", server.InternalError, Fitting(Holding(".."), "name"))).Seen(ByValue),
	fault("prompts.text-as-latin-1", ids.BaseMessageUTF8Accepted,
		"Prompts hold their arguments as if their bytes were ISO 8859-1.",
		OnRequest("prompts/get", func(r *server.Request) {
			if arguments, ok := r.Params["arguments"].(object); ok {
				for name, v := range arguments {
					if text, ok := v.(string); ok && !strings.Contains(text, "://") {
						arguments[name] = latin(text)
					}
				}
			}
		})).Seen(ByValue),
	fault("completion.value-regular-expression", ids.CompletionAnswered,
		"A value that is not a regular expression is refused with -32603.",
		Refusing("completion/complete", server.InternalError, Fitting(noRegexp, "argument", "value"))).Seen(ByValue),
	fault("completion.value-number", ids.CompletionAnswered,
		"A value that reads like a number beyond all limits is refused with -32603.",
		Refusing("completion/complete", server.InternalError, Fitting(Equal("1e400"), "argument", "value"))).
		Seen(ByValue),
	fault("completion.inherited-name", ids.CompletionErrorInvalidPromptCode,
		"Completion for a prompt with the name of a member that every JavaScript object has is refused with -32603.",
		Refusing("completion/complete", server.InternalError, Fitting(Equal("constructor"), "ref", "name"))).
		Seen(ByValue),
	fault("prompts.text-outside-ascii-refused", ids.BaseMessageUTF8Accepted,
		"A prompt with an argument outside ASCII is refused with -32603.",
		Refusing("prompts/get", server.InternalError, Fitting(HoldsWide, "arguments", "arg1"))).Seen(ByValue),
	fault("resources.underscore-as-wildcard", ids.ResourcesSecurityValidateURIs,
		"An underscore in the text of a template stands for any character.", Offering(func(c *server.Catalogue) {
			c.Templates = append(c.Templates, TemplateOf("test://daily_notes/{id}",
				regexp.MustCompile("^test://daily.notes/(.+)$"), "id"))
		})).Seen(ByValue),
	fault("resources.urn-code", ids.ResourcesErrorNotFoundCode, "A URI without two slashes is refused with -32603.",
		Refusing("resources/read", server.InternalError, Fitting(func(s string) bool {
			return !strings.Contains(s, "://") && strings.HasPrefix(s, "urn:")
		}, "uri"))).Seen(ByValue),
	fault("resources.encoding-code", ids.ResourcesErrorNotFoundCode,
		"A URI whose percent-encoding is not that of UTF-8 is refused with -32603.",
		Refusing("resources/read", server.InternalError, Fitting(Holding("%FF"), "uri"))).Seen(ByValue),
	fault("pagination.cursor-of-null", ids.PaginationErrorInvalidCursorCode,
		"A cursor that is null in base64 is refused with -32603.",
		Refusing("prompts/list", server.InternalError, Fitting(Equal("bnVsbA=="), "cursor"))).Seen(ByValue),
	fault("pagination.cursor-negative", ids.PaginationErrorInvalidCursorCode,
		"A cursor that is a negative number is refused with -32603.",
		Refusing("resources/list", server.InternalError, Fitting(Equal("-1"), "cursor"))).Seen(ByValue),
	fault("logging.level-trimmed", ids.LoggingErrorInvalidLevelCode, "Blanks behind a log level are ignored.",
		Answering("logging/setLevel", object{}, Fitting(Equal("info "), "level"))).Seen(ByValue),
	fault("logging.level-number", ids.LoggingErrorInvalidLevelCode,
		"The number of a log level is accepted for its name.",
		Answering("logging/setLevel", object{}, Fitting(Equal("3"), "level"))).Seen(ByValue),
	fault("progress.token-32-bits", ids.ProgressTokenActiveRequest,
		"Progress tokens that are numbers are cut to 32 bits.", Params(Progressed, func(params object) {
			if token, ok := params["progressToken"].(json.Number); ok {
				if n, err := token.Int64(); err == nil && n > 1<<31-1 {
					params["progressToken"] = int32(n)
				}
			}
		})).Seen(ByValue).Also(ofForeignToken...),
	fault("progress.inherited-token-refused", ids.ProgressTokenAnyMeans,
		"A request whose progress token is the name of a member that every JavaScript object has is refused.",
		Refusing("*", server.InternalError, func(r *server.Request) bool {
			return wire.At(r.Params, "_meta", "progressToken") == "__proto__"
		})).Seen(ByValue),
	fault("http.charset-quoted-refused", ids.HTTPServerContentTypeForms,
		"A Content-Type whose charset stands in quotes is refused with 415.",
		RefusingHTTP(http.StatusUnsupportedMediaType, func(r *http.Request) bool {
			return strings.Contains(r.Header.Get("Content-Type"), `"`)
		})).Seen(ByValue).Only(OverBothHTTP),
	fault("http.content-type-blank", ids.HTTPServerContentTypeForms,
		"A Content-Type with a blank before the semicolon is refused with 415.",
		RefusingHTTP(http.StatusUnsupportedMediaType, func(r *http.Request) bool {
			return strings.Contains(r.Header.Get("Content-Type"), " ;")
		})).Seen(ByValue).Only(OverBothHTTP),
	fault("http.content-type-case", ids.HTTPServerContentTypeForms,
		"A Content-Type in another case is refused with 415.",
		RefusingHTTP(http.StatusUnsupportedMediaType, func(r *http.Request) bool {
			return strings.Contains(r.Header.Get("Content-Type"), "JSON")
		})).Seen(ByValue).Only(OverBothHTTP),
	fault("http.accept-tabs", ids.HTTPServerAcceptForms,
		"An Accept header with a tab before a comma is refused with 406.",
		NotAccepting(func(accept string) bool { return strings.Contains(accept, "\t") })).Seen(ByValue),
	fault("http.accept-anything-refused", ids.HTTPServerAcceptForms,
		"An Accept header that names */* besides is refused with 406.",
		NotAccepting(func(accept string) bool { return strings.Contains(accept, "*/*") })).Seen(ByValue),
	fault("http.get-accept-weights-refused", ids.HTTPServerAcceptForms,
		"A GET whose Accept header has weights is refused with 406.",
		RefusingHTTP(http.StatusNotAcceptable, func(r *http.Request) bool {
			return r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "q=")
		})).Seen(ByValue).Also(ids.HTTPServerGetStreamOr405),
	fault("http.origin-suffix", ids.HTTPServerOriginForeign, "An Origin that ends like a trusted one is trusted.",
		Passing(server.ForeignOrigin,
			func(r *server.Reply) bool { return strings.HasSuffix(origin(r), "localhost") })).Seen(ByValue).
		Also(ids.HTTPServerOriginEveryRequest),
	fault("http.origin-user", ids.HTTPServerOriginForeign,
		"An Origin that begins with a trusted one and an at sign is trusted.", Passing(server.ForeignOrigin,
			func(r *server.Reply) bool { return strings.HasPrefix(origin(r), "http://localhost@") })).Seen(ByValue).
		Also(ids.HTTPServerOriginEveryRequest),
	fault("http.origin-capitals", ids.HTTPServerOriginForeign, "An Origin in capitals is not looked at.",
		Passing(server.ForeignOrigin,
			func(r *server.Reply) bool { return strings.HasPrefix(origin(r), "HTTP:") })).Seen(ByValue).
		Also(ids.HTTPServerOriginEveryRequest),
	fault("http.version-without-hyphens", ids.HTTPServerVersionHeaderInvalid400,
		"MCP-Protocol-Version may have the date of a version in another form.", Passing(server.BadVersionHeader,
			func(r *server.Reply) bool { return r.Request.Header.Get(versionHeader) == "20250618" })).Seen(ByValue),
	fault("stdio.null-in-array-kills", ids.StdioServerSurvivesNonMessage, "An array of null ends the process.",
		dying(func(line []byte) bool { return string(line) == "[null]" })).Seen(ByValue),
	fault("stdio.half-pair-kills", ids.BaseErrorParseSurvive,
		"A line with half a surrogate pair ends the process, as when it is written to a log.",
		dying(func(line []byte) bool { return bytes.Contains(line, []byte(`\ud83d"`)) })).Seen(ByValue),
	fault("stdio.cut-escape-kills", ids.BaseErrorParseSurvive, "A line that is cut off in an escape ends the process.",
		dying(func(line []byte) bool { return bytes.HasSuffix(line, []byte(`\u00`)) })).Seen(ByValue),
	fault("stdio.byte-order-mark-kills", ids.StdioServerSurvivesInvalidJSON,
		"A line that begins with a byte order mark ends the process.",
		dying(func(line []byte) bool { return bytes.HasPrefix(line, []byte("\xef\xbb\xbf")) })).Seen(ByValue),
	fault("stdio.surrogate-bytes-kill", ids.StdioServerSurvivesInvalidUTF8,
		"A line with the bytes of a surrogate ends the process.",
		dying(func(line []byte) bool { return bytes.Contains(line, []byte("\xed\xa0\x80")) })).Seen(ByValue),
	fault("http.cut-body-accepted", ids.HTTPServerSurvivesBadBody,
		"A body that is cut off in a string is answered with 202.",
		All(Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if bytes.HasSuffix(Posted(r).Raw, []byte("notifications/mcpconf")) {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			next.ServeHTTP(w, r)
		}), Peeking())).Seen(ByValue),
}
