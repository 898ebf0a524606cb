package authserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// answer is what the authorization server answered.
type answer struct {
	asked  string // what was asked, in words
	status int
	header http.Header
	body   []byte
	// object is the body if it is a JSON object, else nil.
	object map[string]any
	// back is where the user agent is sent if that is the redirect URI of the request, else nil.
	back   *url.URL
	events []*wire.Event
}

// text returns a member of the object, or "".
func (a *answer) text(name string) string {
	text, _ := a.object[name].(string)
	return text
}

// param returns a parameter with which the user agent comes back, or "".
func (a *answer) param(name string) string {
	if a.back == nil {
		return ""
	}
	return a.back.Query().Get(name)
}

// code returns the error code with which a request was refused, in a redirect or in the body, or "".
func (a *answer) code() string { return cmp.Or(a.param("error"), a.text("error")) }

// issued reports whether the answer holds an access token.
func (a *answer) issued() bool { return a.status/100 == 2 && a.text("access_token") != "" }

// json reports whether the content type is that of JSON.
func (a *answer) json() bool {
	kind, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	return kind == "application/json"
}

// page reports whether the answer shows a page to a user.
func (a *answer) page() bool {
	kind, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	return a.back == nil && a.status/100 == 2 && kind == "text/html"
}

// String says in a clause what was answered, without secrets.
func (a *answer) String() string {
	code := a.text("error")
	switch {
	case a.back != nil && a.param("code") != "":
		return "a redirect with a code"
	case a.back != nil && a.param("error") != "":
		return "a redirect with the error " + wire.Quote(a.param("error"), 40)
	case a.back != nil:
		return "a redirect with neither a code nor an error"
	case a.issued():
		return "an access token"
	case code != "":
		return fmt.Sprintf("HTTP status %d and the error %s", a.status, wire.Quote(code, 40))
	case a.page():
		return "a page"
	}
	return fmt.Sprintf("HTTP status %d", a.status)
}

// answered matches an answer.
type answered struct {
	fits        func(*answer) bool
	want, other string // what was to come, and what was to come where the matcher must not fit
}

// Match implements types.GomegaMatcher.
func (m *answered) Match(actual any) (bool, error) {
	a, ok := actual.(*answer)
	if !ok {
		return false, fmt.Errorf("a %T is not an answer of an authorization server", actual)
	}
	return m.fits(a), nil
}

// FailureMessage implements types.GomegaMatcher.
func (m *answered) FailureMessage(actual any) string {
	return fmt.Sprintf("%s was answered with %s; %s was expected", actual.(*answer).asked, actual, m.want)
}

// NegatedFailureMessage implements types.GomegaMatcher.
func (m *answered) NegatedFailureMessage(actual any) string {
	return fmt.Sprintf("%s was answered with %s; %s was expected", actual.(*answer).asked, actual, m.other)
}

func beIssued() types.GomegaMatcher {
	return &answered{(*answer).issued, "an access token", "a refusal"}
}

func beRefused() types.GomegaMatcher {
	return &answered{func(a *answer) bool { return a.status >= 400 }, "a refusal", "success"}
}

func leadToCode() types.GomegaMatcher {
	return &answered{func(a *answer) bool { return a.param("code") != "" }, "a redirect with a code", "a refusal"}
}

func comeBack() types.GomegaMatcher {
	return &answered{func(a *answer) bool { return a.back != nil }, "a redirect to the client",
		"no redirect to that URI"}
}

func haveStatus(statuses ...int) types.GomegaMatcher {
	want := strings.Trim(strings.ReplaceAll(fmt.Sprint(statuses), " ", " or "), "[]")
	return &answered{func(a *answer) bool { return slices.Contains(statuses, a.status) }, "HTTP status " + want,
		"another status"}
}

// haveMember matches a JSON object with a member that is a string.
func haveMember(name string) types.GomegaMatcher {
	return &answered{func(a *answer) bool { return a.json() && a.text(name) != "" },
		"a JSON object of type application/json with the string " + name, "none"}
}

// haveError matches an error of a JSON object, of a code that fits.
func haveError(codes ...string) types.GomegaMatcher {
	return &answered{func(a *answer) bool { return slices.Contains(codes, a.text("error")) },
		"the error " + strings.Join(codes, " or "), "another error"}
}

// haveHeader matches an answer with a header that contains a text.
func haveHeader(name, part string) types.GomegaMatcher {
	return &answered{func(a *answer) bool {
		return strings.Contains(strings.ToLower(strings.Join(a.header.Values(name), ", ")), part)
	}, "the header " + name + " with " + part, "none"}
}

// haveParam matches a redirect with a parameter of exactly one value.
func haveParam(name, value string) types.GomegaMatcher {
	return &answered{func(a *answer) bool {
		return a.back != nil && slices.Equal(a.back.Query()[name], []string{value})
	}, fmt.Sprintf("a redirect with %s %s", name, wire.Quote(value, 80)), "none"}
}

// beErrorResponse matches a redirect with an error code of the allowed characters (OAuth 2.1, section 4.1.2.1).
func beErrorResponse() types.GomegaMatcher {
	return &answered{func(a *answer) bool { return errorCode(a.param("error")) }, "a redirect with an error code",
		"none"}
}

// errorCode reports whether a text can be an error code: it has none but the allowed characters.
func errorCode(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r < 0x20 || r > 0x7e || r == '"' || r == '\\'
	})
}

// read completes an answer with what its body holds.
func (a *answer) read() {
	var object map[string]any
	if json.Unmarshal(a.body, &object) == nil {
		a.object = object
	}
}
