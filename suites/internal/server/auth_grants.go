package server

import (
	"net/http"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// The tokens that a login brings beside the valid one, which a server has to tell apart from it.

// elsewhere identifies a resource that no server has.
const elsewhere = "https://resource.mcpconform.invalid/mcp"

// otherAudience returns a token that the authorization server has issued for another resource. The doubt says why it
// may be good for the server all the same.
func otherAudience(t *check.T) (token, doubt string) {
	access, err := t.Grant(elsewhere, "")
	if err != nil {
		t.Inconclusive("there is no token for another resource: %v; set authorization.otherAudience "+
			"in the configuration",
			err)
	}
	t.Secret(access.Token)
	switch audience := claimOf(access.Token, "aud"); {
	case audience == nil:
		return access.Token, "the token does not tell whether the authorization server heeds the parameter resource"
	case names(audience, elsewhere):
		return access.Token, ""
	}
	return access.Token, "the authorization server has not issued it for that resource"
}

// names reports whether an audience names one resource and no other.
func names(audience any, resource string) bool {
	if list, ok := audience.([]any); ok && len(list) == 1 {
		audience = list[0]
	}
	text, _ := audience.(string)
	return strings.TrimSuffix(text, "/") == resource
}

// claimOf returns a claim of a token, with or without its scheme; nil if it is no JWT.
func claimOf(token, name string) any {
	if _, rest, ok := strings.Cut(token, " "); ok {
		token = rest
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil
	}
	return decode(parts[1])[name]
}

// outlived judges a token that lapses while the check waits: at the door and in the session that it has begun.
func outlived(t *check.T) {
	const id = ids.AuthServerExpiredToken401
	access, err := t.Grant("", "")
	if err != nil {
		t.Inconclusive("there is no token that can expire: %v; set authorization.expired in the configuration", err)
	}
	t.Secret(access.Token)
	conn := t.Bearing("Bearer " + access.Token)
	inSession := t.Target.Transport == transport.NameHTTP && authorized(t, begin(t, conn, ""))
	if !t.Lapse(access) {
		t.Inconclusive("the tokens of the login live longer than an answer may take: set authorization.expired " +
			"in the configuration, or let the authorization server issue tokens that live for a few seconds")
	}
	tries := []func() *transport.Response{
		func() *transport.Response { return tryAuthorization(t, "Bearer "+access.Token) },
	}
	if inSession {
		tries = append(tries, func() *transport.Response {
			return t.DoOn(conn, transport.Request{Deliberate: []string{"*"},
				Body: rpc(wire.IntID(3), check.RPC{Method: "ping"})})
		})
	}
	for i, try := range tries {
		t.Clear()
		r := try()
		if r.Status/100 == 2 {
			// RFC 7519, section 4.1.4, allows some leeway, usually of no more than a few minutes.
			t.Inconclusive("the server still serves a token that has just expired, as a clock that differs may " +
				"make it: set authorization.expired in the configuration")
		}
		where := []string{"with an expired token", "in a session whose token has expired"}[i]
		if t.Check(id, r).To(HaveHTTPStatus(http.StatusUnauthorized), where) {
			judgeFailureChallenge(t, r)
		}
	}
}

// narrowed judges a token of a single scope. The server has to answer 403 to what it refuses only with that token.
func narrowed(t *check.T) {
	const id = ids.AuthServerInsufficientScope403
	if t.Target.Transport != transport.NameHTTP {
		t.Inconclusive("over HTTP+SSE the answer to a single request does not have its own HTTP status")
	}
	granted, known := t.Scopes()
	scopes := slices.Compact(append(strings.Fields(granted), known...))
	if len(scopes) < 2 {
		t.Inconclusive("there is no token of little scope, as no two scopes are known: set authorization.narrow " +
			"and narrowRequest in the configuration")
	}
	control(t)
	for _, scope := range scopes[:min(len(scopes), mostScopes)] {
		access, err := t.Grant("", scope)
		if err != nil || len(strings.Fields(access.Scope)) > 1 {
			continue
		}
		t.Secret(access.Token)
		if refusedForScope(t, id, access) {
			return
		}
	}
	t.Inconclusive("the server serves the usual requests with a token of any single scope: set authorization.narrow " +
		"and narrowRequest in the configuration")
}

// mostScopes bounds for how many scopes a token is asked for.
const mostScopes = 4

// refusedForScope reports whether the server refuses a token of little scope, and judges how.
func refusedForScope(t *check.T, id string, access client.Access) bool {
	t.Clear()
	conn := t.Bearing("Bearer " + access.Token)
	r := begin(t, conn, "")
	if r.Status == http.StatusUnauthorized {
		return false // the token may be of no use here for another reason than its scope
	}
	for n, method := range append(t.Target.Methods(), "tools/call") {
		if r.Status/100 != 2 {
			break
		}
		if method == "tools/call" && len(t.Target.Tools()) == 0 {
			continue
		}
		t.Clear()
		r = t.DoOn(conn, transport.Request{Deliberate: []string{"*"},
			Body: rpc(wire.IntID(int64(n)+2), requestOf(t, method))})
	}
	if r.Status/100 == 2 {
		return false
	}
	if r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden {
		t.Check(id, r).To(HaveHTTPStatus(http.StatusForbidden), "with a valid token of the scope %s alone",
			wire.Quote(access.Scope, 60))
		if r.Status == http.StatusForbidden && !challenged(r) {
			t.Violation(ids.AuthServerRefusalChallenge,
				"the answer with HTTP status 403 to a request beyond the scope of its token has "+
					"no WWW-Authenticate header")
		}
		return true
	}
	return false
}
