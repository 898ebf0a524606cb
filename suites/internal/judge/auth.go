package judge

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var authRules = []Rule{
	{
		Name: "authorization challenges",
		Requirements: []string{ids.AuthServerWWWAuthenticate, ids.AuthServerWWWAuthenticateMetadataURL,
			ids.AuthServerNoDataUnauthorized},
		Judge: over(judgeChallenges, transport.NameHTTP, transport.NameSSE),
	},
	{
		Name: "forms of challenges",
		Requirements: []string{ids.AuthServerChallengeParameters, ids.AuthServerChallengeParametersOnce,
			ids.AuthServerChallengeCharacters, ids.AuthServerErrorCodeStatus, ids.AuthServerNoErrorWithoutToken},
		Judge: over(judgeChallengeForms, transport.NameHTTP, transport.NameSSE),
	},
	{
		Name: "access tokens",
		Requirements: []string{ids.AuthClientEveryRequest, ids.AuthClientBearerHeader, ids.AuthClientNoTokenInQuery,
			ids.AuthClientOneTokenMethod},
		Judge: over(judgeAccess, transport.NameHTTP, transport.NameSSE),
	},
}

const headerChallenge = "Www-Authenticate"

// judgeChallenges looks at each answer with status 401
// (basic/authorization#authorization-server-location).
func judgeChallenges(c *Conversation, rec *Recorder) {
	for _, x := range c.HTTP {
		if x.Status() != http.StatusUnauthorized {
			continue
		}
		evidence := x.Events()
		values := x.Head.HTTP.Header.Values(headerChallenge)
		challenges := transport.Challenges(values)
		rec.Check(len(challenges) > 0, ids.AuthServerWWWAuthenticate, wire.Server,
			"an answer with status 401 has no WWW-Authenticate header", evidence...)
		at := challenges.Parameters()["resource_metadata"]
		u, err := url.Parse(at)
		switch {
		case at == "" && len(challenges) > 0 && !slices.ContainsFunc(challenges, ofOAuth):
			// Parties may agree on a strategy of their own (basic/index#auth).
			rec.Note(ids.AuthServerWWWAuthenticateMetadataURL, wire.Server,
				"the challenge of an answer with status 401 has the scheme "+wire.Quote(challenges[0].Scheme, 40)+
					", which is not that of OAuth")
		case at == "":
			rec.Fail(ids.AuthServerWWWAuthenticateMetadataURL, wire.Server,
				"an answer with status 401 does not say where the resource metadata is", evidence...)
		case err != nil || u.Host == "":
			rec.Fail(ids.AuthServerWWWAuthenticateMetadataURL, wire.Server,
				"the resource_metadata of a challenge is "+wire.Quote(at, 100)+", not an absolute URL", evidence...)
		}
		for _, m := range x.Messages {
			if m.Msg.Kind == wire.Result {
				rec.Fail(ids.AuthServerNoDataUnauthorized, wire.Server, "an answer with status 401 holds a result",
					append(evidence, m)...)
			}
		}
	}
}

// ofOAuth reports whether a challenge asks for an access token of OAuth 2.1 (RFC 6750 and
// RFC 9449).
func ofOAuth(c transport.Challenge) bool {
	return strings.EqualFold(c.Scheme, "Bearer") || strings.EqualFold(c.Scheme, "DPoP")
}

// errorStatus is the status that belongs to each error code of a challenge.
var errorStatus = map[string]int{
	"invalid_request": http.StatusBadRequest, "invalid_token": http.StatusUnauthorized,
	"insufficient_scope": http.StatusForbidden,
}

// describing are the parameters of a challenge that say what went wrong, error first.
var describing = []string{"error", "error_description", "error_uri"}

// judgeChallengeForms looks at each challenge of the scheme Bearer, whatever the status of its
// answer is (OAuth 2.1, sections 5.3.1 and 5.3.2).
func judgeChallengeForms(c *Conversation, rec *Recorder) {
	for _, x := range c.HTTP {
		if x.Head == nil {
			continue
		}
		for _, challenge := range transport.Challenges(x.Head.HTTP.Header.Values(headerChallenge)) {
			if strings.EqualFold(challenge.Scheme, "Bearer") {
				judgeChallengeForm(x, challenge, rec)
			}
		}
	}
}

func judgeChallengeForm(x *wire.HTTPExchange, challenge transport.Challenge, rec *Recorder) {
	rec.Check(len(challenge.Parameters) > 0, ids.AuthServerChallengeParameters, wire.Server,
		"a challenge of the scheme Bearer has no parameter", x.Events()...)
	for _, name := range append([]string{"realm", "scope"}, describing...) {
		value, ok := challenge.Parameters[name]
		if !ok {
			continue
		}
		rec.Check(!slices.Contains(challenge.Repeated, name), ids.AuthServerChallengeParametersOnce, wire.Server,
			"a challenge of the scheme Bearer has the parameter "+name+" more than once", x.Events()...)
		if name != "realm" {
			odd := strings.IndexFunc(value, func(r rune) bool {
				return r < ' ' || r > '~' || r == '"' || r == '\\' || r == ' ' && name == "error_uri"
			})
			rec.Check(odd < 0, ids.AuthServerChallengeCharacters, wire.Server,
				"the parameter "+name+" of a challenge is "+wire.Quote(value, 100)+
					", which has a character that it may not have", x.Events()...)
		}
	}
	if status, ok := errorStatus[challenge.Parameters["error"]]; ok {
		rec.Check(x.Status() == status, ids.AuthServerErrorCodeStatus, wire.Server, fmt.Sprintf(
			"the error code %s came with HTTP status %d, not with %d", challenge.Parameters["error"], x.Status(),
			status), x.Events()...)
	}
	header := x.Request.HTTP.Header
	if header.Get("Authorization") == "" && header.Get("Cookie") == "" && !tokenInQuery(x.Request.HTTP.URL) {
		told := slices.IndexFunc(describing, func(name string) bool { return challenge.Parameters[name] != "" })
		message := ""
		if told >= 0 {
			message = "the challenge for a request without any authentication has the parameter " + describing[told]
		}
		rec.Check(told < 0, ids.AuthServerNoErrorWithoutToken, wire.Server, message, x.Events()...)
	}
}

// judgeAccess looks at how a client shows its token: once a client has one for a
// connection, it sends it with every request, in the header and nowhere else
// (basic/authorization#token-requirements).
func judgeAccess(c *Conversation, rec *Recorder) {
	var admitted *wire.Event // the first answer to a request with a token: from then on the client has one
	for _, x := range c.HTTP {
		header := x.Request.HTTP.Header.Values("Authorization")
		if tokenInQuery(x.Request.HTTP.URL) {
			rec.Fail(ids.AuthClientNoTokenInQuery, wire.Client, "the query of a request holds an access token",
				x.Request)
			if len(header) > 0 {
				rec.Fail(ids.AuthClientOneTokenMethod, wire.Client,
					"a request holds an access token in its header and in its query", x.Request)
			}
		} else if len(header) > 0 {
			rec.Pass(ids.AuthClientNoTokenInQuery, wire.Client)
			rec.Check(len(header) == 1, ids.AuthClientOneTokenMethod, wire.Client,
				"a request has more than one Authorization header", x.Request)
		}
		if len(header) > 0 && strings.HasPrefix(strings.ToLower(header[0]), "bearer ") {
			rec.Pass(ids.AuthClientBearerHeader, wire.Client)
		}
		if admitted != nil && x.Request.Seq > admitted.Seq {
			rec.Check(len(header) > 0, ids.AuthClientEveryRequest, wire.Client,
				"a request has no Authorization header, although earlier requests on the same connection have one",
				x.Events()...)
		}
		if len(header) > 0 && x.Head != nil && (admitted == nil || x.Head.Seq < admitted.Seq) {
			admitted = x.Head
		}
	}
}

// tokenInQuery reports whether a query has the parameter in which access tokens
// were once sent (RFC 6750, section 2.3). Its value is not recorded.
func tokenInQuery(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.Query().Get("access_token") != ""
}
