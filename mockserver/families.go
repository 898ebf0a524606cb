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
	{ID: "base.id-digits-as-number", Requirement: ids.BaseResponseIDTypeEcho, Form: ByValue,
		Summary: "String ids of six digits and more come back as numbers.",
		Collateral: []string{ids.BaseRequestStringIDServed, ids.BaseResponsePresent, ids.BaseResponseIDEcho,
			ids.BaseResponseOnlyToRequests},
		Apply: renamed(func(id string) any {
			if digits.MatchString(id) {
				return json.Number(strings.TrimLeft(strings.Trim(id, `"`), "0"))
			}
			return id
		})},
	{ID: "base.id-trimmed", Requirement: ids.BaseRequestStringIDServed, Form: ByValue,
		Summary: "String ids come back without the blanks around them.",
		Collateral: []string{ids.BaseResponsePresent, ids.BaseResponseOnce, ids.BaseResponseOnlyToRequests,
			ids.BaseResponseIDEcho, ids.BaseErrorUndetectableID},
		Apply: renamed(func(id string) any {
			if s := strings.Trim(id, `"`); strings.HasPrefix(id, `"`) && strings.TrimSpace(s) != s {
				return strings.TrimSpace(s)
			}
			return id
		})},
	{ID: "base.id-lower-case-in-errors", Requirement: ids.BaseResponseIDEcho, Form: ByValue,
		Summary:    "Errors carry string ids in lower case.",
		Collateral: []string{ids.BaseResponseOnce, ids.BaseResponseOnlyToRequests, ids.BaseErrorUndetectableID},
		Apply: Problems("*", func(out *server.Outgoing, _ object) {
			if id := out.Answers.ID.String(); strings.HasPrefix(id, `"`) {
				out.Message["id"] = json.RawMessage(strings.ToLower(id))
			}
		})},
	{ID: "base.id-empty-null-in-errors", Requirement: ids.BaseResponseIDEcho, Form: ByValue,
		Summary: "Errors carry null in place of an empty id.",
		Apply: Problems("*", func(out *server.Outgoing, _ object) {
			if out.Answers.ID.String() == `""` {
				out.Message["id"] = nil
			}
		})},
	{ID: "base.negative-id-positive-in-errors", Requirement: ids.BaseResponseIDEcho, Form: ByValue,
		Summary:    "Errors carry negative ids without their sign.",
		Collateral: []string{ids.BaseResponseOnce, ids.BaseResponseOnlyToRequests, ids.BaseErrorUndetectableID},
		Apply: Problems("*", func(out *server.Outgoing, _ object) {
			if digits, negative := strings.CutPrefix(out.Answers.ID.String(), "-"); negative {
				out.Message["id"] = json.RawMessage(digits)
			}
		})},
	{ID: "base.id-inherited-refused", Requirement: ids.BaseRequestStringIDServed, Form: ByValue,
		Summary: "A request whose id is the name of a member that every JavaScript object has is refused.",
		Apply: Refusing("*", server.InternalError,
			func(r *server.Request) bool { return r.ID.String() == `"constructor"` })},
	{ID: "base.negative-id-refused", Requirement: ids.BaseRequestIntegerIDServed, Form: ByValue,
		Summary: "A request with a negative id is refused.",
		Apply: Refusing("*", server.InvalidRequest,
			func(r *server.Request) bool { return strings.HasPrefix(r.ID.String(), "-") })},
	{ID: "base.id-beyond-31-bits-refused", Requirement: ids.BaseRequestIntegerIDServed, Form: ByValue,
		Summary: "A request whose id does not fit into 32 bits with a sign is refused.",
		Apply: Refusing("*", server.InvalidRequest, func(r *server.Request) bool {
			n, err := strconv.ParseInt(r.ID.String(), 10, 64)
			return err == nil && int64(int32(n)) != n
		})},
	{ID: "base.method-trimmed", Requirement: ids.BaseErrorMethodNotFound, Form: ByValue,
		Summary: "Blanks around the name of a method are ignored.", Apply: trimmed(strings.TrimSpace)},
	{ID: "base.method-slash", Requirement: ids.BaseErrorMethodNotFound, Form: ByValue,
		Summary: "A slash behind the name of a method is ignored.",
		Apply:   trimmed(func(method string) string { return strings.TrimSuffix(method, "/") })},
	{ID: "base.method-inherited", Requirement: ids.BaseErrorMethodNotFound, Form: ByValue,
		Summary: "A method with the name of a member that every JavaScript object has is refused with -32603.",
		Apply:   Refusing("*", server.InternalError, func(r *server.Request) bool { return r.Method == "toString" })},
	{ID: "base.method-long", Requirement: ids.BaseErrorMethodNotFound, Form: ByValue,
		Summary: "A method with a name of more than 1000 characters is refused with -32603.",
		Apply:   Refusing("*", server.InternalError, func(r *server.Request) bool { return len(r.Method) > 1000 })},
	{ID: "base.order-of-members", Requirement: ids.BaseJSONAnySpelling, Form: ByValue,
		Summary: "Requests that do not begin with the member jsonrpc are refused.",
		Apply: respelled(func(raw []byte) bool {
			return !bytes.HasPrefix(bytes.ReplaceAll(bytes.TrimSpace(raw), []byte(" "), nil), []byte(`{"jsonrpc"`)) &&
				bytes.Contains(raw, []byte("mcpconform spelling"))
		})},
	{ID: "base.blanks-refused", Requirement: ids.BaseJSONAnySpelling, Form: ByValue,
		Summary: "Requests with a blank before a colon are refused.",
		Apply:   respelled(func(raw []byte) bool { return bytes.Contains(raw, []byte(`" :`)) })},
	{ID: "base.trailing-blanks-refused", Requirement: ids.BaseJSONAnySpelling, Form: ByValue,
		Summary: "Requests with white space behind the last brace are refused, as by a reader that wants the " +
			"newline there.",
		Apply: respelled(func(raw []byte) bool { return bytes.HasSuffix(raw, []byte("\t")) })},
	{ID: "base.escapes-refused", Requirement: ids.BaseJSONAnySpelling, Form: ByValue,
		Summary: "Requests in which the name of a member has an escape are refused.",
		Apply:   respelled(func(raw []byte) bool { return bytes.Contains(raw, []byte(`\u0069d":`)) })},
	{ID: "base.surrogates-apart", Requirement: ids.BaseJSONAnySpelling, Form: ByValue,
		Summary:    "Each half of an escaped surrogate pair is read as a character of its own.",
		Collateral: []string{ids.BaseResponsePresent, ids.BaseResponseOnlyToRequests, ids.BaseResponseIDEcho},
		Apply: Inbound(func(raw []byte) []byte {
			return bytes.ReplaceAll(raw, []byte(`\ud83c\udf89`), []byte(`\ufffd\ufffd`))
		})},
	{ID: "base.escaped-slash-kept", Requirement: ids.BaseJSONAnySpelling, Form: ByValue,
		Summary:    "The backslash of an escaped slash is taken for a part of the text.",
		Collateral: []string{ids.BaseResponsePresent, ids.BaseResponseOnlyToRequests, ids.BaseResponseIDEcho},
		Apply:      Inbound(func(raw []byte) []byte { return bytes.ReplaceAll(raw, []byte(`\/`), []byte(`\\/`)) })},
	{ID: "base.escaped-method-unknown", Requirement: ids.BaseJSONAnySpelling, Form: ByValue,
		Summary: "A method is compared as it is spelled, with its escapes.",
		Apply:   respelled(func(raw []byte) bool { return bytes.Contains(raw, []byte(`"method":"\u00`)) })},
	{ID: "base.null-for-name", Requirement: ids.BaseErrorInvalidParams, Form: ByValue,
		Summary: "The call of a tool whose name is null is refused with -32603.",
		Apply:   Refusing("tools/call", server.InternalError, ofType("null", "name"))},
	{ID: "base.array-for-uri", Requirement: ids.BaseErrorInvalidParams, Form: ByValue,
		Summary: "A resources/read whose URI is an array is refused with -32603.",
		Apply:   Refusing("resources/read", server.InternalError, ofType("an array", "uri"))},
	{ID: "base.object-for-cursor", Requirement: ids.BaseErrorInvalidParams, Form: ByValue,
		Summary: "A list request whose cursor is an object is refused with -32603.",
		Apply:   Refusing("tools/list", server.InternalError, ofType("an object", "cursor"))},
	{ID: "base.params-null-code", Requirement: ids.BaseErrorInvalidRequest, Form: ByValue,
		Summary: "A request whose params are null is refused with -32603.",
		Apply: All(
			Inbound(func(raw []byte) []byte {
				return bytes.Replace(raw, []byte(`"params":null`), []byte(`"params":{"mcpconform-null":true}`), 1)
			}),
			Refusing("*", server.InternalError, func(r *server.Request) bool {
				return r.Params["mcpconform-null"] == true
			}),
		)},
	{ID: "meta.inherited-refused", Requirement: ids.MetaAttachRequest, Form: ByValue,
		Summary: "A _meta with the name of a member that every JavaScript object has is refused.",
		Apply: Refusing("*", server.InternalError,
			func(r *server.Request) bool { return wire.At(r.Params, "_meta", "constructor") != nil })},
	{ID: "meta.empty-refused", Requirement: ids.MetaAttachRequest, Form: ByValue,
		Summary: "A request with an empty _meta is refused.",
		Apply: Refusing("ping", server.InvalidParams, func(r *server.Request) bool {
			meta, ok := r.Params["_meta"].(object)
			return ok && len(meta) == 0
		})},
	{ID: "tools.name-prefix-served", Requirement: ids.ToolsErrorUnknownToolProtocolError, Form: ByValue,
		Summary: "The call of a tool whose name only begins like a known one gets a result.",
		Apply: Answering("tools/call", object{"content": TextOf("")},
			Fitting(func(s string) bool { return strings.HasSuffix(s, "/mcpconform") }, "name"))},
	{ID: "tools.name-cut-at-null", Requirement: ids.ToolsErrorUnknownToolProtocolError, Form: ByValue,
		Summary: "The name of a tool is read up to a null character.",
		Apply:   Answering("tools/call", object{"content": TextOf("")}, Fitting(Holding("\x00"), "name"))},
	{ID: "tools.name-regular-expression", Requirement: ids.ToolsErrorUnknownToolCode, Form: ByValue,
		Summary: "The call of a tool whose name is not a regular expression is refused with -32603.",
		Apply:   Refusing("tools/call", server.InternalError, Fitting(noRegexp, "name"))},
	{ID: "tools.name-empty", Requirement: ids.ToolsErrorUnknownToolCode, Form: ByValue,
		Summary: "The call of a tool with an empty name is refused with -32601.",
		Apply:   Refusing("tools/call", server.MethodNotFound, Fitting(Equal(""), "name"))},
	{ID: "tools.text-as-latin-1", Requirement: ids.BaseMessageUTF8Accepted, Form: ByValue,
		Summary: "The tool echo gives back texts as if their bytes were ISO 8859-1.",
		Apply:   Texts("echo", latin)},
	{ID: "tools.text-beyond-basic-plane", Requirement: ids.BaseMessageUTF8Accepted, Form: ByValue,
		Summary: "The tool echo puts U+FFFD in the place of each unit of what UTF-16 writes as a surrogate pair.",
		Apply: Texts("echo", func(text string) string {
			return regexp.MustCompile(`[^\x{0000}-\x{FFFF}]`).ReplaceAllString(text, "\ufffd\ufffd")
		})},
	{ID: "tools.name-case-code", Requirement: ids.ToolsErrorUnknownToolCode, Form: ByValue,
		Summary: "The call of a tool whose name is a known one in capitals is refused with -32603.",
		Apply:   Refusing("tools/call", server.InternalError, Fitting(Capitalized, "name"))},
	{ID: "prompts.name-case-code", Requirement: ids.PromptsErrorInvalidNameCode, Form: ByValue,
		Summary: "A prompts/get whose name is a known one in capitals is refused with -32603.",
		Apply:   Refusing("prompts/get", server.InternalError, Fitting(Capitalized, "name"))},
	{ID: "completion.name-case-code", Requirement: ids.CompletionErrorInvalidPromptCode, Form: ByValue,
		Summary: "Completion for a prompt whose name is a known one in capitals is refused with -32603.",
		Apply:   Refusing("completion/complete", server.InternalError, Fitting(Capitalized, "ref", "name"))},
	{ID: "resources.slash-code", Requirement: ids.ResourcesErrorNotFoundCode, Form: ByValue,
		Summary: "A known URI with a slash behind it is refused with -32603.",
		Apply: Refusing("resources/read", server.InternalError, Fitting(func(s string) bool {
			return strings.HasPrefix(s, "test://") && strings.HasSuffix(s, "/") && s != "test://folder/"
		}, "uri"))},
	{ID: "resources.query-code", Requirement: ids.ResourcesErrorNotFoundCode, Form: ByValue,
		Summary: "A known URI with a query behind it is refused with -32603.",
		Apply:   Refusing("resources/read", server.InternalError, Fitting(Holding("?mcpconform="), "uri"))},
	{ID: "prompts.name-empty", Requirement: ids.PromptsErrorInvalidNameCode, Form: ByValue,
		Summary: "A prompts/get with an empty name gets the first prompt.",
		Apply:   Answering("prompts/get", object{"messages": list{}}, Fitting(Equal(""), "name"))},
	{ID: "prompts.name-path", Requirement: ids.PromptsErrorInvalidNameCode, Form: ByValue,
		Summary: "A prompts/get whose name leads out of a folder is refused with -32603.",
		Apply:   Refusing("prompts/get", server.InternalError, Fitting(Holding(".."), "name"))},
	{ID: "prompts.text-as-latin-1", Requirement: ids.BaseMessageUTF8Accepted, Form: ByValue,
		Summary: "Prompts hold their arguments as if their bytes were ISO 8859-1.",
		Apply: OnRequest("prompts/get", func(r *server.Request) {
			if arguments, ok := r.Params["arguments"].(object); ok {
				for name, v := range arguments {
					if text, ok := v.(string); ok && !strings.Contains(text, "://") {
						arguments[name] = latin(text)
					}
				}
			}
		})},
	{ID: "completion.value-regular-expression", Requirement: ids.CompletionAnswered, Form: ByValue,
		Summary: "A value that is not a regular expression is refused with -32603.",
		Apply:   Refusing("completion/complete", server.InternalError, Fitting(noRegexp, "argument", "value"))},
	{ID: "completion.value-number", Requirement: ids.CompletionAnswered, Form: ByValue,
		Summary: "A value that reads like a number beyond all limits is refused with -32603.",
		Apply:   Refusing("completion/complete", server.InternalError, Fitting(Equal("1e400"), "argument", "value"))},
	{ID: "completion.inherited-name", Requirement: ids.CompletionErrorInvalidPromptCode, Form: ByValue,
		Summary: "Completion for a prompt with the name of a member that every JavaScript object has is refused " +
			"with -32603.",
		Apply: Refusing("completion/complete", server.InternalError, Fitting(Equal("constructor"), "ref", "name"))},
	{ID: "prompts.text-outside-ascii-refused", Requirement: ids.BaseMessageUTF8Accepted, Form: ByValue,
		Summary: "A prompt with an argument outside ASCII is refused with -32603.",
		Apply:   Refusing("prompts/get", server.InternalError, Fitting(HoldsWide, "arguments", "arg1"))},
	{ID: "resources.underscore-as-wildcard", Requirement: ids.ResourcesSecurityValidateURIs, Form: ByValue,
		Summary: "An underscore in the text of a template stands for any character.",
		Apply: Offering(func(c *server.Catalogue) {
			c.Templates = append(c.Templates, TemplateOf("test://daily_notes/{id}",
				regexp.MustCompile("^test://daily.notes/(.+)$"), "id"))
		})},
	{ID: "resources.urn-code", Requirement: ids.ResourcesErrorNotFoundCode, Form: ByValue,
		Summary: "A URI without two slashes is refused with -32603.",
		Apply: Refusing("resources/read", server.InternalError, Fitting(func(s string) bool {
			return !strings.Contains(s, "://") && strings.HasPrefix(s, "urn:")
		}, "uri"))},
	{ID: "resources.encoding-code", Requirement: ids.ResourcesErrorNotFoundCode, Form: ByValue,
		Summary: "A URI whose percent-encoding is not that of UTF-8 is refused with -32603.",
		Apply:   Refusing("resources/read", server.InternalError, Fitting(Holding("%FF"), "uri"))},
	{ID: "pagination.cursor-of-null", Requirement: ids.PaginationErrorInvalidCursorCode, Form: ByValue,
		Summary: "A cursor that is null in base64 is refused with -32603.",
		Apply:   Refusing("prompts/list", server.InternalError, Fitting(Equal("bnVsbA=="), "cursor"))},
	{ID: "pagination.cursor-negative", Requirement: ids.PaginationErrorInvalidCursorCode, Form: ByValue,
		Summary: "A cursor that is a negative number is refused with -32603.",
		Apply:   Refusing("resources/list", server.InternalError, Fitting(Equal("-1"), "cursor"))},
	{ID: "logging.level-trimmed", Requirement: ids.LoggingErrorInvalidLevelCode, Form: ByValue,
		Summary: "Blanks behind a log level are ignored.",
		Apply:   Answering("logging/setLevel", object{}, Fitting(Equal("info "), "level"))},
	{ID: "logging.level-number", Requirement: ids.LoggingErrorInvalidLevelCode, Form: ByValue,
		Summary: "The number of a log level is accepted for its name.",
		Apply:   Answering("logging/setLevel", object{}, Fitting(Equal("3"), "level"))},
	{ID: "progress.token-32-bits", Requirement: ids.ProgressTokenActiveRequest, Form: ByValue,
		Summary: "Progress tokens that are numbers are cut to 32 bits.", Collateral: ofForeignToken,
		Apply: Params(Progressed, func(params object) {
			if token, ok := params["progressToken"].(json.Number); ok {
				if n, err := token.Int64(); err == nil && n > 1<<31-1 {
					params["progressToken"] = int32(n)
				}
			}
		})},
	{ID: "progress.inherited-token-refused", Requirement: ids.ProgressTokenAnyMeans, Form: ByValue,
		Summary: "A request whose progress token is the name of a member that every JavaScript object has is refused.",
		Apply: Refusing("*", server.InternalError, func(r *server.Request) bool {
			return wire.At(r.Params, "_meta", "progressToken") == "__proto__"
		})},
	{ID: "http.charset-quoted-refused", Requirement: ids.HTTPServerContentTypeForms, Form: ByValue,
		Transports: OverBothHTTP, Summary: "A Content-Type whose charset stands in quotes is refused with 415.",
		Apply: RefusingHTTP(http.StatusUnsupportedMediaType, func(r *http.Request) bool {
			return strings.Contains(r.Header.Get("Content-Type"), `"`)
		})},
	{ID: "http.content-type-blank", Requirement: ids.HTTPServerContentTypeForms, Form: ByValue,
		Transports: OverBothHTTP,
		Summary:    "A Content-Type with a blank before the semicolon is refused with 415.",
		Apply: RefusingHTTP(http.StatusUnsupportedMediaType, func(r *http.Request) bool {
			return strings.Contains(r.Header.Get("Content-Type"), " ;")
		})},
	{ID: "http.content-type-case", Requirement: ids.HTTPServerContentTypeForms, Form: ByValue,
		Transports: OverBothHTTP, Summary: "A Content-Type in another case is refused with 415.",
		Apply: RefusingHTTP(http.StatusUnsupportedMediaType, func(r *http.Request) bool {
			return strings.Contains(r.Header.Get("Content-Type"), "JSON")
		})},
	{ID: "http.accept-tabs", Requirement: ids.HTTPServerAcceptForms, Form: ByValue, Transports: OverHTTP,
		Summary: "An Accept header with a tab before a comma is refused with 406.",
		Apply:   NotAccepting(func(accept string) bool { return strings.Contains(accept, "\t") })},
	{ID: "http.accept-anything-refused", Requirement: ids.HTTPServerAcceptForms, Form: ByValue, Transports: OverHTTP,
		Summary: "An Accept header that names */* besides is refused with 406.",
		Apply:   NotAccepting(func(accept string) bool { return strings.Contains(accept, "*/*") })},
	{ID: "http.get-accept-weights-refused", Requirement: ids.HTTPServerAcceptForms, Form: ByValue,
		Transports: OverHTTP, Summary: "A GET whose Accept header has weights is refused with 406.",
		Collateral: []string{ids.HTTPServerGetStreamOr405},
		Apply: RefusingHTTP(http.StatusNotAcceptable, func(r *http.Request) bool {
			return r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "q=")
		})},
	{ID: "http.origin-suffix", Requirement: ids.HTTPServerOriginForeign, Form: ByValue, Transports: OverHTTP,
		Summary:    "An Origin that ends like a trusted one is trusted.",
		Collateral: []string{ids.HTTPServerOriginEveryRequest},
		Apply: Passing(server.ForeignOrigin,
			func(r *server.Reply) bool { return strings.HasSuffix(origin(r), "localhost") })},
	{ID: "http.origin-user", Requirement: ids.HTTPServerOriginForeign, Form: ByValue, Transports: OverHTTP,
		Summary:    "An Origin that begins with a trusted one and an at sign is trusted.",
		Collateral: []string{ids.HTTPServerOriginEveryRequest},
		Apply: Passing(server.ForeignOrigin,
			func(r *server.Reply) bool { return strings.HasPrefix(origin(r), "http://localhost@") })},
	{ID: "http.origin-capitals", Requirement: ids.HTTPServerOriginForeign, Form: ByValue, Transports: OverHTTP,
		Summary:    "An Origin in capitals is not looked at.",
		Collateral: []string{ids.HTTPServerOriginEveryRequest},
		Apply: Passing(server.ForeignOrigin,
			func(r *server.Reply) bool { return strings.HasPrefix(origin(r), "HTTP:") })},
	{ID: "http.version-without-hyphens", Requirement: ids.HTTPServerVersionHeaderInvalid400, Form: ByValue,
		Transports: OverHTTP, Summary: "MCP-Protocol-Version may have the date of a version in another form.",
		Apply: Passing(server.BadVersionHeader, func(r *server.Reply) bool {
			return r.Request.Header.Get(versionHeader) == "20250618"
		})},
	{ID: "stdio.null-in-array-kills", Requirement: ids.StdioServerSurvivesNonMessage, Form: ByValue,
		Transports: OverStdio, Summary: "An array of null ends the process.",
		Apply: dying(func(line []byte) bool { return string(line) == "[null]" })},
	{ID: "stdio.half-pair-kills", Requirement: ids.BaseErrorParseSurvive, Form: ByValue, Transports: OverStdio,
		Summary: "A line with half a surrogate pair ends the process, as when it is written to a log.",
		Apply:   dying(func(line []byte) bool { return bytes.Contains(line, []byte(`\ud83d"`)) })},
	{ID: "stdio.cut-escape-kills", Requirement: ids.BaseErrorParseSurvive, Form: ByValue, Transports: OverStdio,
		Summary: "A line that is cut off in an escape ends the process.",
		Apply:   dying(func(line []byte) bool { return bytes.HasSuffix(line, []byte(`\u00`)) })},
	{ID: "stdio.byte-order-mark-kills", Requirement: ids.StdioServerSurvivesInvalidJSON, Form: ByValue,
		Transports: OverStdio, Summary: "A line that begins with a byte order mark ends the process.",
		Apply: dying(func(line []byte) bool { return bytes.HasPrefix(line, []byte("\xef\xbb\xbf")) })},
	{ID: "stdio.surrogate-bytes-kill", Requirement: ids.StdioServerSurvivesInvalidUTF8, Form: ByValue,
		Transports: OverStdio, Summary: "A line with the bytes of a surrogate ends the process.",
		Apply: dying(func(line []byte) bool { return bytes.Contains(line, []byte("\xed\xa0\x80")) })},
	{ID: "http.cut-body-accepted", Requirement: ids.HTTPServerSurvivesBadBody, Form: ByValue, Transports: OverHTTP,
		Summary: "A body that is cut off in a string is answered with 202.",
		Apply: All(Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if bytes.HasSuffix(Posted(r).Raw, []byte("notifications/mcpconf")) {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			next.ServeHTTP(w, r)
		}), Peeking())},
}
