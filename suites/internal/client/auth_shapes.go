package client

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/authserver"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/client"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// authShapes are scenarios about the shapes of the flow, and about the ways in which it can break. They only note what
// a client has done if the specification leaves it open.
var authShapes = []*client.Scenario{
	strayScenario("auth/well-known-401", authserver.Page{Status: http.StatusUnauthorized, Header: html, Body: signIn}),
	strayScenario("auth/well-known-page", authserver.Page{Status: http.StatusOK, Header: html, Body: signIn}),
	strayScenario("auth/well-known-redirect",
		authserver.Page{Status: http.StatusFound, Header: http.Header{"Location": {signInPath}}}),
	unnamedScenario(),
	authScenario("auth/spare-server", []string{ids.AuthClientSelectsAs}, spareServer, func(t *client.T) {
		judgeLeftOpen(t, "if only the last of five authorization servers can be used", ids.AuthClientSelectsAs)
	}),
	redirectingScenario(),
	authScenario("auth/token-redirect", []string{ids.AuthClientTokenRequestIssuer},
		func() *client.AuthorizationSetup {
			return &client.AuthorizationSetup{Redirects: client.RedirectedToken}
		}, judgeTokenRedirect),
	authScenario("auth/refused-tokens", []string{ids.AuthClientHandles401}, refusingTokens, judgeRefusedTokens),
	authScenario("auth/sibling-resource", []string{ids.AuthClientResourceMetadataCheck},
		func() *client.AuthorizationSetup {
			return &client.AuthorizationSetup{Protection: server.Protection{Metadata: func(document map[string]any) {
				resource, _ := document["resource"].(string)
				document["resource"] = resource[:len(resource)-1]
			}}}
		}, func(t *client.T) {
			judgeRefused(t, ids.AuthClientResourceMetadataCheck,
				"the resource metadata are about another path, with which the path of the server only begins", "")
		}),
	authScenario("auth/iss-mismatch", []string{ids.AuthClientISSCompared}, func() *client.AuthorizationSetup {
		return redirecting(func(result url.Values) { result.Set("iss", otherIssuer) })
	}, judgeIssuer),
}

// A site that is not made for the flow answers requests for unknown addresses with a page.
const (
	signInPath = "/sign-in"
	signIn     = "<!doctype html><title>Sign in</title><p>Please sign in."
)

var html = http.Header{"Content-Type": {"text/html; charset=utf-8"}}

// strayScenario is a server that names the place of its metadata, and an authorization server whose issuer has a path.
// Both answer requests for any other place with a page. A client may look there first.
func strayScenario(name string, page authserver.Page) *client.Scenario {
	answer := func(path string) authserver.Page {
		if path == signInPath {
			return authserver.Page{Status: http.StatusOK, Header: html, Body: signIn}
		}
		return page
	}
	s := authScenario(name, []string{ids.AuthClientParseWWWAuthenticate, ids.AuthClientAsMetadataLocation},
		func() *client.AuthorizationSetup {
			return &client.AuthorizationSetup{
				Protection: server.Protection{MetadataPath: metadataElsewhere},
				Servers:    []authserver.Options{{Issuer: "/tenant/one", NotFound: answer}},
			}
		}, func(t *client.T) {
			judgeMetadataFound(t, metadataElsewhere)
			judgeIssuerPath(t)
		})
	return behaving(s, func(b *server.Behaviour) {
		b.HTTP.Reply = func(r *server.Reply) {
			if r.Situation == server.NotFound {
				p := answer(r.Request.URL.Path)
				r.Status, r.Header, r.Body = p.Status, p.Header.Clone(), []byte(p.Body)
			}
		}
	})
}

// behaving changes the behaviour of a scenario's server.
func behaving(s *client.Scenario, change func(*server.Behaviour)) *client.Scenario {
	before := s.Options
	s.Options = func(run *client.ScenarioRun) server.Options {
		o := before(run)
		change(&o.Behaviour)
		return o
	}
	return s
}

// unnamedScenario is a server whose challenge does not name its resource metadata. They are at the well-known address.
func unnamedScenario() *client.Scenario {
	const id = ids.AuthClientResourceMetadata
	s := authScenario("auth/unnamed", []string{id}, func() *client.AuthorizationSetup {
		return &client.AuthorizationSetup{Protection: server.Protection{Challenge: func(_, code string) []string {
			return []string{coded(`Bearer realm="mcpconform"`, code)}
		}}}
	}, func(t *client.T) {
		judgeLeftOpen(t, "if the server does not say where its resource metadata are, although it has to", id)
	})
	return behaving(s, func(b *server.Behaviour) {
		b.Breaks = append(b.Breaks, ids.AuthServerWWWAuthenticate, ids.AuthServerWWWAuthenticateMetadataURL)
	})
}

// spareServer lists five authorization servers, of which the last can be used. The metadata of the others answer
// with 401, with 404, with a page and with a redirect to a page.
func spareServer() *client.AuthorizationSetup {
	answers := map[string]authserver.Page{
		"/guarded": {Status: http.StatusUnauthorized, Header: html, Body: signIn},
		"/gone":    {Status: http.StatusNotFound, Header: html, Body: signIn},
		"/page":    {Status: http.StatusOK, Header: html, Body: signIn},
		"/moved":   {Status: http.StatusFound, Header: http.Header{"Location": {"/page"}}},
	}
	return &client.AuthorizationSetup{
		Servers: []authserver.Options{{NotFound: func(path string) authserver.Page {
			for name, p := range answers {
				if strings.Contains(path, name) {
					return p
				}
			}
			return answers["/gone"]
		}}},
		Protection: server.Protection{Metadata: func(document map[string]any) {
			issuer := fmt.Sprint(wire.Items(document, "authorization_servers")[0])
			document["authorization_servers"] = []any{issuer + "/guarded", issuer + "/gone", issuer + "/page",
				issuer + "/moved", issuer}
		}},
	}
}

// hop marks the address to which a request was redirected.
const hop = "hop"

// redirectingScenario redirects each GET of the flow once, to the same address with a query.
func redirectingScenario() *client.Scenario {
	requirements := []string{ids.AuthClientResourceMetadata, ids.AuthClientAsMetadata}
	s := authScenario("auth/redirects", requirements, func() *client.AuthorizationSetup {
		return &client.AuthorizationSetup{Servers: []authserver.Options{{Faults: authserver.Faults{
			Answer: func(c authserver.Call, status int, header http.Header, body map[string]any) int {
				if c.Step != authserver.Metadata && c.Step != authserver.Authorization || c.Values.Has(hop) {
					return status
				}
				clear(body)
				query := url.Values{hop: {"1"}}
				for name, values := range c.Values {
					query[name] = values
				}
				header.Set("Location", c.Path+"?"+query.Encode())
				return http.StatusFound
			},
		}}}}
	}, func(t *client.T) {
		judgeLeftOpen(t, "if the metadata documents and the authorization endpoint redirect to another address of "+
			"their host", requirements...)
	})
	return behaving(s, func(b *server.Behaviour) {
		b.HTTP.Reply = func(r *server.Reply) {
			if r.Situation == server.ResourceMetadata && !r.Request.URL.Query().Has(hop) {
				r.Status, r.Body = http.StatusFound, nil
				r.Header = http.Header{"Location": {r.Request.URL.Path + "?" + hop + "=1"}}
			}
		}
	})
}

// judgeLeftOpen judges a shape of the flow that the specification leaves open. A client that completes the flow has met
// the requirements. How far another one came is noted.
func judgeLeftOpen(t *client.T, when string, ids ...string) {
	switch {
	case t.ObtainedToken():
		t.Exercised(ids...)
	case !t.Ending.Attended && controlPasses(t, ids[0]):
		for _, id := range ids {
			t.Recorder().Note(id, wire.Client, "the client obtains no token "+when+
				". The specification does not say that it has to. "+endedAt(t))
		}
	}
}

// judgeTokenRedirect judges whether a client repeats its token request at another origin. It was sent there by the
// authorization server that has to get the request (OAuth 2.1, section 7.14).
func judgeTokenRedirect(t *client.T) {
	const id = ids.AuthClientTokenRequestIssuer
	switch {
	case t.Flow.Followed() != nil:
		t.Warning(id, "the client follows a redirect of its token request to another origin, and sends the code there",
			t.Flow.Followed())
	case len(t.Flow.Steps(authserver.Token)) > 0 && t.Ending.Exit != nil:
		t.Exercised(id)
	}
}

// refusingTokens issues tokens whose life is over at once, although the answer says an hour.
func refusingTokens() *client.AuthorizationSetup {
	return &client.AuthorizationSetup{Servers: []authserver.Options{{Life: time.Nanosecond, Faults: authserver.Faults{
		Answer: func(c authserver.Call, status int, _ http.Header, body map[string]any) int {
			if c.Step == authserver.Token && body["expires_in"] != nil {
				body["expires_in"] = int(time.Hour / time.Second)
			}
			return status
		},
	}}}}
}

// judgeRefusedTokens judges whether a client gives up in the end if the server accepts no token.
func judgeRefusedTokens(t *client.T) {
	const id = ids.AuthClientHandles401
	refused := 0
	for _, s := range t.Flow.Presented() {
		if s.Ours && !s.Good {
			refused++
		}
	}
	switch {
	case refused > maxRefusals:
		t.Violation(id, fmt.Sprintf("the server accepts no token, and the client has sent %d requests "+
			"with one", refused),
			append(client.LastEvents(t.Last(), 2), lastStep(t)...)...)
	case refused > 0 && t.Ending.Exit != nil:
		t.Exercised(id)
	}
}

// judgeIssuer judges whether the client redeems a code that came back with the iss of another authorization server. A
// client may have a redirect URI for each of them in place of the comparison (OAuth 2.1, section 7.14.2).
func judgeIssuer(t *client.T) {
	const id = ids.AuthClientISSCompared
	asked, redeemed := t.Flow.Steps(authserver.Authorization), t.Flow.Steps(authserver.Token)
	switch {
	case len(asked) == 0:
	case len(redeemed) == 0 && controlPasses(t, id):
		t.Exercised(id)
	case len(redeemed) > 0 && controlPasses(t, id):
		uri := asked[0].Values.Get("redirect_uri")
		if uri == "" || !slices.ContainsFunc(t.Preceding.Flow.Steps(authserver.Authorization),
			func(s client.Step) bool { return s.Values.Get("redirect_uri") == uri }) {
			t.Inconclusive("the client uses another redirect URI for each authorization server, which OAuth 2.1 "+
				"allows in place of comparing iss", id)
			return
		}
		t.Violation(id, "the client redeems a code although the redirect came back with the iss of another "+
			"authorization server, and it uses one redirect URI for all of them", asked[0].Event, redeemed[0].Event)
	}
}

// judgeTokenIssuer judges whether a code or a refresh token comes to the authorization server that has issued it.
func judgeTokenIssuer(t *client.T, s client.Step) {
	const id = ids.AuthClientTokenRequestIssuer
	for _, kind := range []struct {
		step      authserver.Step
		parameter string
	}{{authserver.Authorization, "code"}, {authserver.Token, "refresh_token"}} {
		sent := s.Values.Get(kind.parameter)
		for _, from := range t.Flow.Steps(kind.step) {
			if sent != "" && from.Answer[kind.parameter] == sent {
				t.Check(id, from.Server == s.Server, from.Event, s.Event).To(BeTrueBecause(
					"the client sends the %s of one authorization server to another one", kind.parameter))
			}
		}
	}
}

// judgeRefreshed judges which refresh token the client uses after a lapse. Since the lapse before, it has used the
// access token of the answer that replaced the refresh token, so it has got that answer.
func judgeRefreshed(t *client.T) {
	const id = ids.AuthClientRefreshReplaced
	requests := t.Flow.Steps(authserver.Token)
	for _, s := range requests {
		sent := s.Values.Get("refresh_token")
		for _, before := range requests {
			next, _ := before.Answer["refresh_token"].(string)
			if old := before.Values.Get("refresh_token"); sent == "" || old == "" || next == "" ||
				before.Lapses >= s.Lapses {
				continue
			} else if sent == old && old != next {
				t.Violation(id, "the client refreshes its token with a refresh token that was replaced before",
					before.Event, s.Event)
			} else if sent == next {
				t.Exercised(id)
			}
		}
	}
	if t.ObtainedToken() && t.Recorder().Record.At(id, wire.Client).Exercised == 0 {
		t.Inconclusive("the client did not refresh its token after two lapses, which is optional", id)
	}
}
