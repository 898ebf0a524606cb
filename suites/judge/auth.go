package judge

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

var authRules = []Rule{
	{
		Name: "authorization challenges",
		Requirements: []string{
			"auth.server.www-authenticate", "auth.server.www-authenticate-metadata-url", "auth.server.no-data-unauthorized",
		},
		Judge: judgeChallenges,
	},
	{
		Name: "access tokens",
		Requirements: []string{
			"auth.client.every-request", "auth.client.bearer-header", "auth.client.no-token-in-query", "auth.client.one-token-method",
		},
		Judge: judgeAccess,
	},
}

const headerChallenge = "Www-Authenticate"

// judgeChallenges looks at each answer with status 401
// (basic/authorization#authorization-server-location).
func judgeChallenges(c *Conversation, rec *Recorder) {
	if c.Transport != transport.NameHTTP && c.Transport != transport.NameSSE {
		return
	}
	for _, x := range c.HTTP {
		if x.Status() != http.StatusUnauthorized {
			continue
		}
		evidence := x.Events()
		values := x.Head.HTTP.Header.Values(headerChallenge)
		challenges := transport.Challenges(values)
		rec.Check(len(challenges) > 0, "auth.server.www-authenticate", wire.Server,
			"an answer with status 401 has no WWW-Authenticate header", evidence...)
		at := challenges.Parameters()["resource_metadata"]
		u, err := url.Parse(at)
		switch {
		case at == "" && len(challenges) > 0 && !slices.ContainsFunc(challenges, ofOAuth):
			// Parties may agree on a strategy of their own (basic/index#auth).
			rec.Note("auth.server.www-authenticate-metadata-url", wire.Server,
				"the challenge of an answer with status 401 has the scheme "+wire.Quote(challenges[0].Scheme, 40)+", which is not that of OAuth")
		case at == "":
			rec.Fail("auth.server.www-authenticate-metadata-url", wire.Server,
				"an answer with status 401 does not say where the resource metadata is", evidence...)
		case err != nil || u.Host == "":
			rec.Fail("auth.server.www-authenticate-metadata-url", wire.Server,
				"the resource_metadata of a challenge is "+wire.Quote(at, 100)+", not an absolute URL", evidence...)
		}
		for _, m := range x.Messages {
			if m.Msg.Kind == wire.Result {
				rec.Fail("auth.server.no-data-unauthorized", wire.Server, "an answer with status 401 holds a result", append(evidence, m)...)
			}
		}
	}
}

// ofOAuth reports whether a challenge asks for an access token of OAuth 2.1 (RFC 6750 and
// RFC 9449).
func ofOAuth(c transport.Challenge) bool {
	return strings.EqualFold(c.Scheme, "Bearer") || strings.EqualFold(c.Scheme, "DPoP")
}

// judgeAccess looks at how a client shows its token: once a client has one for a
// connection, it sends it with every request, in the header and nowhere else
// (basic/authorization#token-requirements).
func judgeAccess(c *Conversation, rec *Recorder) {
	if c.Transport != transport.NameHTTP && c.Transport != transport.NameSSE {
		return
	}
	authorized := false
	for _, x := range c.HTTP {
		header := x.Request.HTTP.Header.Values("Authorization")
		if tokenInQuery(x.Request.HTTP.URL) {
			rec.Fail("auth.client.no-token-in-query", wire.Client, "the query of a request holds an access token", x.Request)
			if len(header) > 0 {
				rec.Fail("auth.client.one-token-method", wire.Client, "a request holds an access token in its header and in its query", x.Request)
			}
		} else if len(header) > 0 {
			rec.Pass("auth.client.no-token-in-query", wire.Client)
			rec.Check(len(header) == 1, "auth.client.one-token-method", wire.Client, "a request has more than one Authorization header", x.Request)
		}
		if len(header) > 0 && strings.HasPrefix(strings.ToLower(header[0]), "bearer ") {
			rec.Pass("auth.client.bearer-header", wire.Client)
		}
		if authorized {
			rec.Check(len(header) > 0, "auth.client.every-request", wire.Client,
				"a request has no Authorization header, although earlier requests on the same connection have one", x.Events()...)
		}
		authorized = authorized || len(header) > 0
	}
}

// tokenInQuery reports whether a query has the parameter in which access tokens
// were once sent (RFC 6750, section 2.3). Its value is not recorded.
func tokenInQuery(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.Query().Get("access_token") != ""
}
