package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// basic/transports#session-management, #protocol-version-header
var httpSessionChecks = []*check.Check{
	{
		Name:         "http/session-missing",
		Requirements: []string{ids.HTTPServerSessionMissing400},
		Needs:        posting,
		Body: func(t *check.T) {
			// A server that needs the session id says so with 400. Others may serve such requests.
			const id = ids.HTTPServerSessionMissing400
			sessionID(t)
			assumeServed(t)
			type trial struct {
				what    string
				request func() transport.Request
				answer  *transport.Response
			}
			trials := []*trial{
				{what: "the POST of a request", request: func() transport.Request { return plainRequest(t) }},
				{what: "the POST of a notification",
					request: func() transport.Request { return transport.Request{Body: []byte(strangeNotification)} }},
			}
			if listens(t) {
				trials = append(trials, &trial{what: "a GET",
					request: func() transport.Request { return transport.Request{Method: http.MethodGet} }})
			}
			refused := ""
			var served []*trial
			for _, v := range trials {
				t.Clear()
				r := v.request()
				r.Header, r.Deliberate = http.Header{headerSession: nil}, []string{"*"}
				v.answer = t.Do(r)
				switch status := v.answer.Status; {
				case status/100 == 2 && r.Method == http.MethodGet && opensOlder(t, r):
					// A GET may open the stream of the older transport at the same URL
					// (basic/transports#backwards-compatibility).
				case status/100 == 2:
					served = append(served, v)
				case r.Method == http.MethodGet && status == http.StatusMethodNotAllowed:
					// 405 is one of the two answers to a GET (basic/transports#listening-for-messages-from-the-server).
				case r.Method != http.MethodGet &&
					t.Do(v.request()).Status/100 != 2: // the twin of a GET is the listening stream
				case t.Check(id, v.answer).To(HaveHTTPStatus(http.StatusBadRequest),
					"for %s without the session id, with which it is accepted", v.what):
					refused = v.what
				}
			}
			for _, v := range served {
				if refused == "" {
					t.Note("%s is served without a session id", v.what)
					continue
				}
				t.Clear()
				t.Check(id, v.answer).To(HaveHTTPStatus(http.StatusBadRequest),
					"for %s without a session id, although %s needs one", v.what, refused)
			}
			if refused == "" {
				t.Skip("the server serves requests without a session id")
			}
			// A DELETE that names no session may not be served at all; but it cannot end one.
			t.Clear()
			if r := t.Do(transport.Request{Method: http.MethodDelete, Header: http.Header{headerSession: nil},
				Deliberate: []string{"*"}}); r.Status/100 == 2 {
				t.Check(id, r).To(HaveHTTPStatus(http.StatusBadRequest),
					"for a DELETE without a session id, although %s needs one", refused)
			}
			// The text does not say how a server treats an id that it never gave (docs/positions.md,
			// unknown-session-id).
			r := plainRequest(t)
			r.Header, r.Deliberate = http.Header{headerSession: {"mcpconform-never-given"}}, []string{"*"}
			if ResultIn(t.Do(r)) != nil {
				t.Note("a request with a session id that the server never gave is served, although one without " +
					"an id is refused: the id protects nothing")
			}
		},
	},
	{
		Name:         "http/session-ended",
		Requirements: []string{ids.HTTPServerSessionEnded404, ids.HTTPServerDeleteSession},
		Needs:        overHTTP,
		Body: func(t *check.T) {
			// DELETE ends the session or is turned down with 405. In an ended session nothing is served any more.
			const ended, deletes = ids.HTTPServerSessionEnded404, ids.HTTPServerDeleteSession
			sessionID(t)
			listening := listens(t)
			assumeServed(t)
			t.Clear()
			deleted := t.Do(transport.Request{Method: http.MethodDelete})
			if deleted.Status/100 != 2 {
				t.Exercised(deletes)
				undeleted(t, deleted)
				t.Inconclusive("the server does not let a client end the session: it answers DELETE "+
					"with HTTP status %d",
					deleted.Status)
			}
			const stray = `{"jsonrpc":"2.0","id":"mcpconform-none","result":{}}`
			requests := []transport.Request{plainRequest(t), {Body: []byte(strangeNotification)}, {Body: []byte(stray)}}
			if listening {
				requests = append(requests, transport.Request{Method: http.MethodGet})
			}
			if x := t.Session.Log().Carrier(deleted.Head); x != nil {
				t.Premise(x.Events()...)
			}
			for i, r := range requests {
				t.Clear()
				r.Deliberate = []string{"*"}
				got := t.Do(r)
				mayGoOn(t, deleted, got)
				if got.Status/100 == 2 && i == 0 {
					t.Violation(deletes,
						"the DELETE was answered with success, but the session continues: a ping in it was served")
				}
				if string(r.Body) == stray && got.Status == http.StatusBadRequest {
					continue // as what answers nothing may be in any session
				}
				t.Check(ended, got).To(HaveHTTPStatus(http.StatusNotFound), "in a session that a DELETE has ended")
			}
			t.Clear()
			// A second DELETE is idempotent in HTTP, so success only warns (docs/positions.md, second-delete).
			t.WarnUnless(ended, t.Do(transport.Request{Method: http.MethodDelete, Deliberate: []string{"*"}})).
				To(HaveHTTPStatus(http.StatusNotFound), "for the DELETE of an ended session")
		},
	},
	{
		Name: "http/initialize-again",
		Requirements: []string{ids.HTTPServerInitializeWithoutSession, ids.HTTPServerSessionIDUnique,
			ids.HTTPServerSessionIDSecure, ids.SecuritySessionIDNonDeterministic},
		Needs: check.Needs{Session: check.Fresh, Transports: []string{transport.NameHTTP}, Options: capable},
		Body: func(t *check.T) {
			// New sessions are begun while another lives, and each gets an id of its own.
			sessionIDs := map[string]bool{t.HTTP().SessionID(): true}
			var sessions []*client.Session
			var begun []*client.Pending
			for range 3 {
				s := t.Connect(client.Options{})
				p, err := s.Start(t.Context, "initialize", s.InitializeParams())
				t.Must(err)
				sessions, begun = append(sessions, s), append(begun, p)
			}
			for i, s := range sessions {
				x, err := begun[i].Await(t.Context)
				// The others may be the reason (docs/positions.md, requests-beside-others).
				if err != nil || x.Result() == nil {
					s = t.Connect(client.Options{})
					x, err = s.Initialize(t.Context)
				}
				t.Show(x.Events()...)
				if refused := (*client.RefusedError)(nil); errors.As(err, &refused) {
					// The control: whether the server serves another client like the first one (docs/positions.md,
					// several-clients).
					if _, closed := t.Connect(capable).Initialize(t.Context); closed != nil ||
						x.Head.HTTP.Status != http.StatusBadRequest {
						t.Inconclusive("the server does not serve a further client: %v", err)
					}
					t.Expect(x).ToNot(HaveHTTPStatus(http.StatusBadRequest), "without a session id")
				}
				t.Must(err)
				id := s.Conn.(*transport.HTTPConn).SessionID()
				if id != "" && sessionIDs[id] {
					t.Violation(ids.HTTPServerSessionIDUnique, "two sessions got the same id")
				}
				sessionIDs[id] = true
			}
			if given := slices.Sorted(maps.Keys(sessionIDs)); len(sessionIDs) == 4 && !sessionIDs[""] {
				quoted := wire.Quote(strings.Join(given, ", "), 200)
				if spread(given) < unguessable {
					t.Violation(ids.HTTPServerSessionIDSecure,
						"the session ids can be guessed, as they differ too little: "+quoted)
				}
				if spread(given) < derivable {
					t.Violation(ids.SecuritySessionIDNonDeterministic,
						"the session ids follow from each other: "+quoted)
				}
			}
			if len(sessionIDs) == 1 {
				t.Exercised(ids.HTTPServerInitializeWithoutSession)
				t.Skip("the server assigns no session ids")
			}
		},
	},
	{
		Name:         "http/session-isolation",
		Requirements: []string{ids.HTTPServerSessionIsolation},
		Shows:        []string{ids.ProgressValueIncreases},
		Needs:        calls(posting, "slow"),
		Body:         func(t *check.T) { isolated(t, ids.HTTPServerSessionIsolation) },
	},
	bystandersCheck("http/bystanders", transport.NameHTTP, ids.HTTPServerSessionIsolation),
	{
		Name:         "http/session-answers",
		Requirements: []string{ids.HTTPServerSessionIsolation},
		Needs: check.Needs{Transports: []string{transport.NameHTTP}, Lane: check.Waiting, ToolRoles: answering,
			Lacking: calling(answering...).Lacking},
		Body: func(t *check.T) { isolatedAnswers(t, ids.HTTPServerSessionIsolation) },
	},
	{
		Name:         "http/version-missing",
		Requirements: []string{ids.HTTPServerVersionHeaderMissing},
		Needs:        overHTTP, // it hangs up on a stream
		Body: func(t *check.T) {
			// Without the header the server knows the version from the initialization, or assumes 2025-03-26.
			r := plainRequest(t)
			r.Header, r.Deliberate = http.Header{headerVersion: nil}, []string{ids.HTTPClientVersionHeader}
			got := t.Do(r)
			if got.Status == http.StatusBadRequest && t.HTTP().SessionID() == "" && !speaks(t, assumedVersion) {
				t.Inconclusive("the server has no sessions, and does not speak revision %s, which it has to "+
					"assume without a version header",
					assumedVersion)
			}
			served(t, got, ids.HTTPServerVersionHeaderMissing)
			for _, method := range t.Served()[:min(len(t.Served()), t.Count(1, 1, len(lists)))] {
				r.Body = client.Marshal(map[string]any{"jsonrpc": "2.0", "id": "mcpconform-" + method,
					"method": method})
				served(t, t.Do(r), ids.HTTPServerVersionHeaderMissing)
			}
			// Nor does it take the header to accept a notification, or to open a stream.
			others := []transport.Request{{Body: []byte(strangeNotification)}}
			if listens(t) {
				others = append(others, transport.Request{Method: http.MethodGet})
			}
			for i, what := range []string{"a notification", "a GET"}[:len(others)] {
				t.Clear()
				other := others[i]
				if t.Do(other).Status == http.StatusBadRequest {
					continue
				}
				other.Header, other.Deliberate = r.Header, r.Deliberate
				t.Check(ids.HTTPServerVersionHeaderMissing, t.Do(other)).ToNot(HaveHTTPStatus(http.StatusBadRequest),
					"for %s without a version header", what)
			}
		},
	},
	{
		Name:         "http/version-invalid",
		Requirements: []string{ids.HTTPServerVersionHeaderInvalid400},
		Needs:        repeated(overHTTP),
		Families:     []string{"versions-invalid"},
		Body: func(t *check.T) {
			var versions []string
			for _, m := range t.Draw("versions-invalid") {
				versions = append(versions, m.Str())
			}
			wrongVersions(t, ids.HTTPServerVersionHeaderInvalid400, versions[:t.Most(len(versions), 1)]...)
		},
	},
	{
		Name:         "http/version-unsupported",
		Requirements: []string{ids.HTTPServerVersionHeaderUnsupported400},
		Needs:        repeated(overHTTP),
		Body: func(t *check.T) {
			wrongVersions(t, ids.HTTPServerVersionHeaderUnsupported400, futureVersion, impossibleVersion)
		},
	},
}

// sessionID ends the body if the server has assigned no session id.
func sessionID(t *check.T) string {
	id := t.HTTP().SessionID()
	if id == "" {
		t.Skip("the server assigns no session ids")
	}
	return id
}

// needsListening ends the body if the server does not offer a stream for messages that
// belong to no request, which is optional.
func needsListening(t *check.T) {
	if t.Target.Transport != transport.NameHTTP {
		return
	}
	if !listens(t) {
		t.Inconclusive("the server does not offer a listening stream on which the notification could come")
	}
	if listeningEnded(t) {
		t.Inconclusive("the listening stream ended before the notification could come on it")
	}
}

// listeningEnded reports whether the server has ended the listening stream of the session, as it may at any time
// (basic/transports#listening-for-messages-from-the-server).
func listeningEnded(t *check.T) bool {
	return slices.ContainsFunc(t.Session.Log().Events(), func(e *wire.Event) bool {
		return e.Kind == wire.KindStreamEnd && e.From == wire.Server && strings.HasPrefix(e.Stream, "get:")
	})
}

// listensIn reports whether messages of the server that belong to no request can reach a
// session: over Streamable HTTP, that it has a listening stream.
func listensIn(s *client.Session) bool {
	return s.Log().Transport != transport.NameHTTP || s.HasListeningStream()
}

// opensOlder reports whether a GET opens a stream of the older transport, whose first event is an endpoint
// (2024-11-05/basic/transports#http-with-sse).
func opensOlder(t *check.T, r transport.Request) bool {
	ctx, stop := context.WithTimeout(t.Context, t.Soon(check.Later))
	defer stop()
	r.Defaults = true
	s, err := t.HTTP().Open(ctx, r)
	if err != nil {
		return false
	}
	defer s.Close()
	for {
		e, err := s.Next(ctx)
		if err != nil || e.SSE != nil && e.SSE.Event == "endpoint" {
			return err == nil
		}
	}
}

// listens reports whether the server accepted the GET stream of the session.
func listens(t *check.T) bool {
	ctx, cancel := context.WithTimeout(t.Context, check.HeadWait)
	defer cancel()
	for n := 1; ; n++ {
		e, err := t.Session.Log().Await(ctx, 0, func(e *wire.Event) bool {
			return e.Stream == fmt.Sprint("get:", n) &&
				(e.Kind == wire.KindHTTPResponse || e.Kind == wire.KindStreamEnd)
		})
		if err == nil && wire.Unreached(e) {
			continue // the session may try again
		}
		return err == nil && e.Kind == wire.KindHTTPResponse && e.HTTP.Status == http.StatusOK &&
			check.Streams(e.HTTP.Header)
	}
}

// mayGoOn ends the body if a request was served after a DELETE with the answer 202. That status announces the end of
// the session and does not confirm it (docs/positions.md, accepted-delete).
func mayGoOn(t *check.T, deleted, got *transport.Response) {
	if deleted.Status == http.StatusAccepted && got.Status/100 == 2 {
		t.Inconclusive("the server answers DELETE with HTTP status 202, which does not say that the session " +
			"has ended already")
	}
}

// undeleted judges a DELETE that was turned down. The page permits 405 and forbids no
// other status (basic/transports#session-management); 501 says the same of a method
// that is not served at all (RFC 9110, section 15.6.2).
func undeleted(t *check.T, r *transport.Response) {
	const id = ids.HTTPServerDeleteSession
	switch r.Status {
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		t.Check(id, t.Do(plainRequest(t))).To(HaveResult(), "after a DELETE that was answered with %d", r.Status)
	default:
		t.WarnUnless(id, r).To(HaveHTTPStatus(http.StatusMethodNotAllowed), "for the DELETE of a live session")
	}
}

// wrongVersions sends version headers that the server has to refuse, in the end
// with a DELETE, which need not be served at all.
func wrongVersions(t *check.T, id string, versions ...string) {
	assumeServed(t)
	requests := []transport.Request{{}, {Body: []byte(strangeNotification)}}
	// A server may refuse a response to nothing that it has asked, with whatever version.
	if r := (transport.Request{Body: []byte(strayResponse), Deliberate: []string{"*"}}); t.Do(r).Status/100 == 2 {
		requests = append(requests, r)
	}
	if listens(t) {
		requests = append(requests, transport.Request{Method: http.MethodGet})
	}
	for i, version := range versions {
		requests[0] = plainRequest(t)
		of := requests
		if i > 0 && !t.Thorough() { // the code that reads a version does not depend on the request
			of = requests[i%len(requests):][:1]
		}
		wrongVersion(t, id, version, of)
	}
	if t.HTTP().SessionID() == "" {
		return
	}
	t.Clear()
	r := t.Do(transport.Request{Method: http.MethodDelete, Header: http.Header{headerVersion: {versions[0]}},
		Deliberate: []string{"*"}})
	t.Check(id, r).ToNot(BeAccepted(), "for a DELETE with the version header %q", versions[0])
}

// strayResponse is a response to a request that nobody has made.
const strayResponse = `{"jsonrpc":"2.0","id":"mcpconform-never-asked","result":{}}`

// wrongVersion sends requests with a version header that the server has to refuse.
func wrongVersion(t *check.T, id, version string, requests []transport.Request) {
	for _, r := range requests {
		t.Clear()
		r.Header, r.Deliberate = http.Header{headerVersion: {version}}, []string{"*"}
		got := t.Do(r)
		if r.Method == http.MethodGet && got.Status > http.StatusBadRequest {
			// The session has a listening stream already, and a server may have only one.
			if twin, err := t.OpenStream(transport.Request{Method: http.MethodGet}); err == nil {
				twin.Close()
				if twin.Head.HTTP.Status == got.Status {
					t.Note("a second GET is refused with HTTP status %d with every version header", got.Status)
					continue
				}
			}
		}
		if !t.Check(id, got).To(HaveHTTPStatus(http.StatusBadRequest), "with the version header %q", version) {
			return
		}
	}
}

// isolated runs two clients at once whose requests have the same ids. One is
// due a result each time, the other one an error.
func isolated(t *check.T, id string) {
	other := t.Connect(client.Options{})
	if _, err := other.Initialize(t.Context); err != nil {
		t.Inconclusive("the server does not serve a second client: %v", err)
	}
	for i := range t.Count(2, 2, 5) {
		same := wire.StringID(fmt.Sprintf("mcpconform-same-%d", i))
		right, err := t.Session.StartID(t.Context, same, t.NoOp(), nil)
		t.Must(err)
		wrong, err := other.StartID(t.Context, same, unknownMethod, nil,
			client.Deliberately(ids.LifecycleCapabilityExperimentalGated))
		t.Must(err)
		a := t.Await(right)
		b, err := wrong.Await(t.Context)
		t.Show(b.Response)
		t.Must(err)
		t.Expect(a).ToNot(HaveError(), "although the error was for another client's request with the same id")
		if !t.Check(id, b).ToNot(HaveResult(),
			"although the result was for another client's request with the same id") {
			return
		}
	}
	t.FenceOn(other)
	isolatedCalls(t, other, id)
	for _, s := range []*client.Session{t.Session, other} {
		for _, e := range s.Log().Events() {
			if e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.IsResponse() && e.Msg.ID.Usable() &&
				!asked(s, e) {
				t.Violation(id, "a client got a response to a request that it never made", e)
			}
		}
	}
}

// isolatedCalls makes the same slow call with the same id in two sessions, so
// that both are being served at a time.
func isolatedCalls(t *check.T, other *client.Session, id string) {
	call, ok := knownTool(t, "slow")
	if !ok {
		return
	}
	// The control: the call in a session of its own, if the server opens a third one.
	control := t.Connect(client.Options{})
	if _, err := control.Initialize(t.Context); err != nil {
		control = t.Session
	}
	alone, err := control.StartID(t.Context, wire.StringID("mcpconform-alone"), "tools/call", call.Params())
	t.Must(err)
	both := []*client.Session{t.Session, other}
	tokens := []string{"mcpconform-first", "mcpconform-second"}
	var calls []*client.Pending
	for i, s := range both {
		p, err := s.StartID(t.Context, wire.StringID("mcpconform-same-call"), "tools/call",
			withToken(call.Params(), tokens[i]))
		t.Must(err)
		underWay(t, s, p)
		calls = append(calls, p)
	}
	// The rules judge the progress of calls with the same token.
	var alike []*client.Pending
	for _, s := range both {
		p, err := s.StartID(t.Context, wire.StringID("mcpconform-same-token"), "tools/call",
			withToken(call.Params(), "mcpconform-same-token"))
		t.Must(err)
		alike = append(alike, p)
	}
	if _, err := alone.Await(t.Context); err != nil {
		t.Inconclusive("a call of the tool %q is not answered in a session of its own either: %v", call.Tool, err)
	}
	for _, p := range calls {
		x, err := p.Await(t.Context)
		t.Show(x.Events()...)
		if err != nil {
			t.Violation(id, "while two clients made a call with the same id, one of them got no answer: "+err.Error())
			return
		}
	}
	for i, s := range both {
		for _, e := range s.Log().Events() {
			if e.Kind == wire.KindMessage && e.From == wire.Server && at(e.Msg.Params, "progressToken") == tokens[1-i] {
				t.Violation(id, "a client got the progress of a call that another client made", e)
				return
			}
		}
	}
	for _, p := range alike {
		_, _ = p.Await(t.Context)
	}
}

// isolatedAnswers makes the server ask two clients at the same time, in sessions with
// the same history. An answer that got lost may have gone to a client of another
// check, which the server asks at the same time.
func isolatedAnswers(t *check.T, id string) {
	const attempts = 3
	for _, role := range answering {
		call, ok := knownTool(t, role)
		for i := 0; ok && i < attempts; i++ {
			t.Clear()
			if askInEach(t, call, role, id) {
				return
			}
		}
	}
	t.Inconclusive("no result of a tool shows what the client has answered")
}

// askInEach makes a call in two sessions, in which the client that is asked first
// answers first. It reports whether the results show who answered.
func askInEach(t *check.T, call check.Call, role, id string) (shown bool) {
	method, _ := askedFor(role)
	texted := []string{"mcpconform-of-the-first", "mcpconform-of-the-second"}
	both, answered := make(chan struct{}), make(chan struct{}) // closed once both are asked, and the first has answered
	free, next := sync.OnceFunc(func() { close(both) }), sync.OnceFunc(func() { close(answered) })
	defer free()
	sessions := []*client.Session{
		t.Open(marking(method, texted[0], both, func(context.Context, string) { next() })),
		t.Open(marking(method, texted[1], answered, nil)),
	}
	var calls []*client.Pending
	for _, s := range sessions {
		p, err := s.Start(t.Context, "tools/call", call.Params())
		t.Must(err)
		t.Show(p.Request)
		limit, stop := context.WithTimeout(t.Context, prompt)
		e, err := s.Log().Await(limit, p.Request.Seq+1,
			func(e *wire.Event) bool { return over(e, p) || asks(e, method) })
		stop()
		if err != nil || !asks(e, method) {
			t.Inconclusive("the tool %q does not ask two clients at the same time", call.Tool)
		}
		t.Show(e)
		calls = append(calls, p)
	}
	free()
	// A server that mixes them up may leave the first one without an answer.
	for _, i := range []int{1, 0} {
		x, err := calls[i].Await(t.Context)
		t.Show(x.Response)
		if err != nil {
			t.Inconclusive("the tool %q does not answer although its request was answered: %v", call.Tool, err)
		}
		if strings.Contains(texts(x), texted[1-i]) {
			t.Violation(id,
				"the server took the answer of one client for that of another client, which it asked at the same time")
			return true
		}
		shown = shown || strings.Contains(texts(x), texted[i])
	}
	return shown
}

// answering are the tool roles of calls in which the client can answer with a text of its own.
var answering = []string{"sampling", "elicitation"}

// marking returns the options of a client that answers with its own text once it may.
func marking(method, text string, may <-chan struct{}, answered func(context.Context, string)) client.Options {
	o := check.Capable()
	o.Answered = answered
	o.Answers[method] = func(ctx context.Context, params any) (any, *wire.Error) {
		select {
		case <-may:
		case <-ctx.Done():
		}
		return marked(method, params, text), nil
	}
	return o
}

// unguessable is how many bits have to differ between session ids. The page does not
// name a number; with fewer bits, an attacker can try all ids.
const unguessable = 48

// derivable is how many bits differ at most between ids that count up or tell the time.
const derivable = 24

// spread returns an upper bound of how many bits of the ids differ: the bits of the
// characters at positions where not all ids are the same.
func spread(ids []string) float64 {
	longest := slices.MaxFunc(ids, func(a, b string) int { return len(a) - len(b) })
	places, differing := 0, ""
	for i := range longest {
		var here string
		for _, id := range ids {
			if i < len(id) {
				here += id[i : i+1]
			}
		}
		if len(here) < len(ids) || strings.Trim(here, here[:1]) != "" {
			places++
			differing += here
		}
	}
	each := 6.0 // base64 and the like
	switch {
	case strings.Trim(differing, "0123456789") == "":
		each = math.Log2(10)
	case strings.Trim(differing, "0123456789abcdefABCDEF-") == "":
		each = 4
	}
	return float64(places) * each
}

// asked reports whether a session has sent a request with the id of a response.
func asked(s *client.Session, response *wire.Event) bool {
	for _, e := range s.Log().Events()[:response.Seq] {
		if e.Kind == wire.KindMessage && e.From == wire.Client && e.Msg.ID.Resembles(response.Msg.ID) {
			return true
		}
	}
	return false
}

// assumedVersion is the version that a server assumes for a request without one
// (basic/transports#protocol-version-header).
const assumedVersion = "2025-03-26"

// speaks reports whether the server agrees on a revision.
func speaks(t *check.T, version string) bool {
	x, err := t.Connect(client.Options{Version: version}).Initialize(t.Context)
	if refusedWith(x, -32602) { // how lifecycle.version.offer-other warns of
		return false
	}
	t.Must(err)
	return x.Result()["protocolVersion"] == version
}
