package server

import (
	"net/http"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// overSSE is a session over HTTP+SSE that a check may spoil.
var overSSE = check.Needs{Session: check.Fresh, Transports: []string{transport.NameSSE}}

// basic/transports#backwards-compatibility, with the page of 2024-11-05 that it refers to
var sseChecks = []*check.Check{
	{
		Name:         "sse/session-isolation",
		Requirements: []string{ids.SSEServerSessionIsolation},
		Needs:        overSSE,
		Body:         func(t *check.T) { isolated(t, ids.SSEServerSessionIsolation) },
	},
	bystandersCheck("sse/bystanders", transport.NameSSE, ids.SSEServerSessionIsolation),
	{
		Name:         "sse/session-answers",
		Requirements: []string{ids.SSEServerSessionIsolation},
		Needs: check.Needs{Transports: []string{transport.NameSSE}, ToolRoles: answering,
			Lacking: calling(answering...).Lacking},
		Body: func(t *check.T) { isolatedAnswers(t, ids.SSEServerSessionIsolation) },
	},
	{
		Name:         "sse/origin",
		Requirements: []string{ids.SSEServerOriginForeign},
		Needs:        overSSE,
		Families:     []string{"origins"},
		Body: func(t *check.T) {
			foreign := foreignTo(t)
			for _, origin := range sites(t.Target.Settings.TrustedOrigins) {
				t.Assume(t.DialSSE(http.Header{"Origin": {origin}})).ToNot(BeTurnedDown(), withTrusted, origin)
			}
			for _, origin := range foreign {
				if !refuseLegacyOrigin(t, ids.SSEServerOriginForeign, origin) {
					break // it does not look at the others, either
				}
			}
			if header, ok := rebound(t); ok {
				t.Clear()
				if t.DialSSE(header).HTTP.Status/100 == 2 &&
					postLegacy(t, plainRaw(t, t.Session.NextID()), header,
						client.Deliberately("*")).HTTP.Status/100 == 2 {
					t.Violation(ids.SSEServerOriginForeign, reboundServed)
				}
			}
			t.Fence()
		},
	},
	{
		Name:         "sse/origin-null",
		Requirements: []string{ids.SSEServerOriginNull},
		Needs:        overSSE,
		Families:     []string{"origins"},
		Body: func(t *check.T) {
			foreignTo(t, "null")
			refuseLegacyOrigin(t, ids.SSEServerOriginNull, "null")
			t.Fence()
		},
	},
	{
		Name:         "sse/content-type-forms",
		Requirements: []string{ids.HTTPServerContentTypeForms},
		Needs:        overSSE,
		Families:     []string{"content-types"},
		Body: func(t *check.T) {
			// A body is JSON even if its media type has a charset.
			t.Fence()
			t.VaryInTurn(t.Draw("content-types"), func(m family.Member) {
				head := postLegacy(t, plainRaw(t, t.Session.NextID()), http.Header{"Content-Type": {m.Str()}},
					client.Deliberately("*"))
				t.Check(ids.HTTPServerContentTypeForms, head).ToNot(BeTurnedDown(), "with the Content-Type %s", m)
			})
			t.Fence()
		},
	},
	{
		Name:         "sse/bind-localhost",
		Requirements: []string{ids.SSEServerBindLocalhost},
		Needs:        check.Needs{Transports: []string{transport.NameSSE}},
		Body:         func(t *check.T) { boundToLoopback(t) },
	},
}

// refuseLegacyOrigin opens a stream and posts a message in the name of a
// foreign page, expects that both are refused, and reports whether they are. The session of
// the check is the control: it has no Origin.
func refuseLegacyOrigin(t *check.T, id, origin string) bool {
	t.Clear()
	header := http.Header{"Origin": {origin}}
	get := t.Check(id, t.DialSSE(header)).To(BeTurnedDown(), "for a GET with the header Origin: %s", origin)
	t.Clear()
	post := t.Check(id, postLegacy(t, plainRaw(t, t.Session.NextID()), header, client.Deliberately("*"))).
		To(BeTurnedDown(), "for a POST with the header Origin: %s", origin)
	return get && post
}

// postLegacy posts a message with further headers and returns the head of what
// answers the POST.
func postLegacy(t *check.T, raw []byte, header http.Header, opts ...client.Option) *wire.Event {
	opts = append(opts, func(m *transport.Outgoing) { m.Header = header })
	posted, err := t.Session.Send(t.Context, raw, opts...)
	t.Must(err)
	head, err := t.Session.AwaitEvent(t.Context, posted.Seq, "head of the response", func(e *wire.Event) bool {
		return e.Kind == wire.KindHTTPResponse && e.Stream == posted.Stream
	})
	t.Must(err)
	t.Show(posted, head)
	return head
}
