package server

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// overHTTP is a session over Streamable HTTP that a check may spoil.
var overHTTP = check.Needs{Session: check.Fresh, Transports: []string{transport.NameHTTP}}

// posting is for checks whose messages are complete in themselves. They leave the session as it is.
var posting = check.Needs{Session: check.Own, Transports: []string{transport.NameHTTP}}

// hangingUp is for checks that open further streams and hang up on some. They share a session.
var hangingUp = check.Needs{Session: check.Own, Transports: []string{transport.NameHTTP}, Lane: "streams to hang up on"}

// overHTTPCalling is a session that may be spoilt, for calls that serve any of the tool roles.
func overHTTPCalling(anyOf ...string) check.Needs { return calls(overHTTP, anyOf...) }

// calls returns the needs of a check that calls tools of any of the roles.
func calls(needs check.Needs, anyOf ...string) check.Needs {
	needs.ToolRoles = anyOf
	return needs
}

// besideOthers returns the needs of a check about several requests at a time.
func besideOthers(needs check.Needs) check.Needs {
	needs.Concurrent = true
	return needs
}

const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
)

// bareNotification needs no params.
const bareNotification = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

// strangeNotification is one that any server can ignore.
const strangeNotification = `{"jsonrpc":"2.0","method":"notifications/mcpconform/no-such"}`

// basic/transports#streamable-http, #security-warning, #sending-messages-to-the-server
var httpChecks = []*check.Check{
	{
		Name:         "http/notification-without-params",
		Requirements: []string{ids.BaseParamsOmitted},
		Needs:        hangingUp,
		Body: func(t *check.T) {
			// The twin with empty params is the control: a server may refuse what the session has had before.
			const with = `{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}`
			if status := t.Do(transport.Request{Body: []byte(with)}).Status; status/100 != 2 {
				t.Inconclusive("a second notifications/initialized is answered with HTTP status %d", status)
			}
			if r := t.Do(transport.Request{Body: []byte(bareNotification)}); r.Status/100 != 2 {
				t.Fail("notifications/initialized without params is answered with HTTP status %d, although it "+
					"is taken with empty ones",
					r.Status)
			}
		},
	},
	{
		Name:         "http/origin",
		Requirements: []string{ids.HTTPServerOriginForeign},
		Needs:        check.Needs{Session: check.None, Transports: []string{transport.NameHTTP}},
		Families:     []string{"origins"},
		Body: func(t *check.T) {
			// A new session for a web page of another site, among them sites whose names only look like the own one.
			const id = ids.HTTPServerOriginForeign
			foreign := foreignTo(t)
			headers := []http.Header{originHeader(foreign[0])}
			if header, ok := rebound(t); ok {
				headers = append(headers, header)
			}
			trustsAny := false
			tryOrigins(t, headers, func(i int, r *transport.Response) {
				if i == 0 {
					trustsAny = !refuseOrigin(t, id, foreign[0], r)
				} else if ResultIn(r) != nil {
					t.Violation(id, reboundServed)
				}
			})
			if foreign = foreign[1:]; trustsAny || len(foreign) == 0 {
				return // a server that trusts any has none to mistake another for
			}
			headers = nil
			for _, origin := range foreign {
				headers = append(headers, originHeader(origin))
			}
			initializeEach(t, headers, func(i int, r *transport.Response) { refuseOrigin(t, id, foreign[i], r) })
			stillBegins(t)
		},
	},
	{
		Name:         "http/origin-null",
		Requirements: []string{ids.HTTPServerOriginNull},
		Needs:        posting,
		Families:     []string{"origins"},
		Body: func(t *check.T) {
			// Sandboxed pages and local files have the origin null, no matter who wrote them (docs/positions.md,
			// null-origin).
			const id = ids.HTTPServerOriginNull
			foreignTo(t, "null")
			refuseOrigin(t, id, "null", initialize(t, originHeader("null")))
			stillBegins(t)
			t.Clear()
			r := plainRequest(t)
			r.Header, r.Deliberate = originHeader("null"), []string{"*"}
			refuseOrigin(t, id, "null", t.Do(r))
			t.Assume(t.Do(plainRequest(t))).To(HaveResult(), "even without an Origin header")
		},
	},
	{
		Name:         "http/origin-every-request",
		Requirements: []string{ids.HTTPServerOriginEveryRequest},
		Needs:        overHTTP,
		Families:     []string{"origins"},
		Body: func(t *check.T) {
			// A session that began without a foreign origin refuses one later as well: POST, GET and in the end DELETE.
			const id = ids.HTTPServerOriginEveryRequest
			foreign := foreignTo(t)
			assumeServed(t)
			for _, origin := range foreign[:min(len(foreign), 2)] {
				t.Clear()
				r := plainRequest(t)
				r.Header, r.Deliberate = originHeader(origin), []string{"*"}
				if !refuseOrigin(t, id, origin, t.Do(r)) {
					break // it does not look at the others, either
				}
			}
			t.Clear()
			served(t, t.Do(plainRequest(t)), id)
			// A server may refuse messages that need no response, and such messages have effects as well.
			for _, m := range []string{
				`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"mcpconform-none"}}`,
				`{"jsonrpc":"2.0","id":"mcpconform-none","result":{}}`,
			} {
				r := transport.Request{Body: []byte(m), Deliberate: []string{"*"}}
				if t.Do(r).Status/100 != 2 {
					continue
				}
				t.Clear()
				r.Header = originHeader(foreign[0])
				refuseOrigin(t, id, foreign[0], t.Do(r))
			}
			// A GET may be refused because a stream is open or because there is none, and a DELETE as such, whatever
			// the origin. Neither takes the session from what is tried after it: the DELETE comes last.
			for _, method := range []string{http.MethodGet, http.MethodDelete} {
				if method == http.MethodDelete && t.HTTP().SessionID() == "" {
					continue
				}
				t.Clear()
				r := t.Do(transport.Request{Method: method, Header: originHeader(foreign[0]),
					Deliberate: []string{"*"}})
				accepted := r.Status/100 == 2
				if !accepted {
					if twin, err := t.OpenStream(transport.Request{Method: method}); err == nil {
						accepted = twin.Head.HTTP.Status/100 == 2
						twin.Close()
					}
				}
				if accepted {
					refuseOrigin(t, id, foreign[0], r)
				}
			}
		},
	},
	{
		Name:         "http/bind-localhost",
		Requirements: []string{ids.HTTPServerBindLocalhost},
		Needs:        check.Needs{Transports: []string{transport.NameHTTP}},
		Body:         func(t *check.T) { boundToLoopback(t) },
	},
	{
		Name:         "http/accept-forms",
		Requirements: []string{ids.HTTPServerAcceptForms},
		Needs:        posting,
		Families:     []string{"accepts"},
		Body: func(t *check.T) {
			// The two media types, in every form in which a header, of one line or two, can name them.
			t.Vary(t.Draw("accepts"), func(m family.Member) {
				servedWith(t, "Accept", strings.Split(m.Str(), "\n"), ids.HTTPServerAcceptForms)
			})
		},
	},
	{
		Name:         "http/content-type-forms",
		Requirements: []string{ids.HTTPServerContentTypeForms},
		Needs:        posting,
		Families:     []string{"content-types"},
		Body: func(t *check.T) {
			// A body is JSON even if its media type has a charset.
			t.Vary(t.Draw("content-types"), func(m family.Member) {
				servedWith(t, "Content-Type", []string{m.Str()}, ids.HTTPServerContentTypeForms)
			})
		},
	},
	{
		Name:         "http/header-names",
		Requirements: []string{ids.HTTPServerHeaderNames},
		Needs:        posting,
		Body:         headerNames,
	},
	{
		Name:         "http/bad-body",
		Requirements: []string{ids.HTTPServerSurvivesBadBody, ids.BaseErrorParseSurvive},
		Needs:        waiting(posting),
		Families:     []string{"bodies-broken", "bodies-lenient", "bodies-not-messages"},
		Body: func(t *check.T) {
			// Bodies that are not a message are turned down with 4xx or with a JSON-RPC error, and the server goes on.
			const id = ids.HTTPServerSurvivesBadBody
			for _, raw := range []string{"", " \t\r\n "} {
				t.Clear()
				turnedDown(t, raw, false)
				served(t, t.Do(plainRequest(t)), id)
			}
			for _, name := range []string{"bodies-broken", "bodies-lenient", "bodies-not-messages"} {
				t.VaryInTurn(t.Draw(name), func(m family.Member) {
					// A message with an id may pass for a response or a notification, and those are simply accepted.
					turnedDown(t, m.Raw(), name == "bodies-lenient" ||
						name == "bodies-not-messages" && strings.Contains(m.Raw(), `"id"`))
					if !t.RunsAgain() {
						servedWhen(t, "after "+m.String(), t.Do(plainRequest(t)), id)
					}
				})
				if t.RunsAgain() {
					t.Clear()
					served(t, t.Do(plainRequest(t)), id)
				}
			}
		},
	},
	{
		Name:         "http/large-message",
		Requirements: []string{ids.HTTPMessageLarge},
		Needs:        posting,
		Body: func(t *check.T) {
			// There is no limit on a message. A clean refusal is tolerated, as servers have to protect themselves.
			r := t.Do(transport.Request{Body: largeRequest(t.Session.NextID(), t.NoOp())})
			switch {
			case ResultIn(r) != nil:
			case r.Status != http.StatusRequestEntityTooLarge && ErrorIn(r) != nil && unread(ErrorIn(r).Msg.Error):
				t.Fail("a message of 1 MiB was not read to its end: %s says that it is not JSON", Describe(r))
			case r.Status == http.StatusRequestEntityTooLarge || ErrorIn(r) != nil:
				t.Note("a message of 1 MiB was refused with HTTP status %d", r.Status)
			default:
				t.Fail("a message of 1 MiB was answered with HTTP status %d and no JSON-RPC message", r.Status)
			}
			served(t, t.Do(plainRequest(t)), ids.HTTPMessageLarge)
		},
	},
}

// largeRequest returns a request of more than 1 MiB, made in one piece: copies of
// it would count in what a run takes.
func largeRequest(id wire.ID, method string) []byte {
	before := `{"jsonrpc":"2.0","id":` + id.String() + `,"method":"` + method +
		`","params":{"_meta":{"example.com/filler":"`
	const size, after = 1 << 20, `"}}}`
	raw := append(make([]byte, 0, len(before)+size+len(after)), before...)
	for range size {
		raw = append(raw, 'x')
	}
	return append(raw, after...)
}

// unread reports whether the server says that a message is broken without giving its
// length as the reason.
func unread(e *wire.Error) bool {
	return e != nil && e.Code == -32700 && !tooLong.MatchString(e.Message)
}

var tooLong = regexp.MustCompile(`(?i)large|long|big|size|limit|exceed|length`)

// plainRequest returns the POST of a request that is served.
func plainRequest(t *check.T) transport.Request {
	return transport.Request{Body: plainRaw(t, t.Session.NextID())}
}

// originHeader returns the header of a request from a web page of an origin.
func originHeader(origin string) http.Header { return http.Header{"Origin": {origin}} }

// tryOrigins begins a session with each of some headers, and hands the answers to judge
// in their order. The controls are that the server begins sessions without an Origin
// header, and with each that it trusts.
func tryOrigins(t *check.T, headers []http.Header, judge func(i int, r *transport.Response)) {
	trusted := sites(t.Target.Settings.TrustedOrigins)
	all := []http.Header{nil, originHeader("http://localhost")}
	for _, origin := range trusted {
		all = append(all, originHeader(origin))
	}
	controls, refused := len(all), false
	initializeEach(t, append(all, headers...), func(i int, r *transport.Response) {
		switch {
		case i == 0:
			t.Assume(r).To(HaveResult(), "for a second initialize, even without an Origin header")
		case i == 1 && r.Status/100 != 2:
			// A loopback origin need not be among those that are trusted.
			t.Note("the origin http://localhost is refused with HTTP status %d", r.Status)
		case i == 1:
		case i < controls:
			t.Assume(r).To(BeAccepted(), withTrusted, trusted[i-2])
		default:
			refused = refused || r.Status/100 != 2
			judge(i-controls, r)
		}
	})
	if refused {
		stillBegins(t)
	}
}

// stillBegins is the control behind refused sessions: the server may by now refuse any further one.
func stillBegins(t *check.T) {
	t.Clear()
	t.Assume(initialize(t, nil)).To(HaveResult(), "for a last initialize, even without an Origin header")
}

// initializeEach posts an initialize with each of some headers, a few at a time, and hands the answers to judge in
// their order. A refusal with another status than that for a bad origin may be due to the other requests
// (docs/positions.md, requests-beside-others). Such a request is tried again alone.
func initializeEach(t *check.T, headers []http.Header, judge func(i int, r *transport.Response)) {
	conns := make([]*transport.HTTPConn, len(headers))
	requests := make([]transport.Request, len(headers))
	for i, header := range headers {
		conns[i], requests[i] = initializing(t, header)
	}
	t.DoEach(conns, requests, func(i int, r *transport.Response) {
		if ResultIn(r) == nil && r.Status != http.StatusForbidden {
			t.Clear()
			r = initialize(t, headers[i])
		}
		judge(i, r)
	})
}

// initialize posts an initialize on a connection of its own, with further headers.
func initialize(t *check.T, header http.Header) *transport.Response {
	return t.DoOn(initializing(t, header))
}

// initializing returns an initialize, with further headers, and the connection for it.
func initializing(t *check.T, header http.Header) (*transport.HTTPConn, transport.Request) {
	s := t.Connect(client.Options{})
	return s.Conn.(*transport.HTTPConn), transport.Request{Header: header, Body: client.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": s.InitializeParams(),
	})}
}

const reboundServed = "a request of a foreign site whose name leads to the server (DNS rebinding) was served: " +
	"its Origin is trusted because it equals the Host header"

// rebound returns the headers of a request by DNS rebinding: to the browser, the server is the page's own site. ok is
// false if the server is not local: the names of a public server are not known, and a proxy may check them.
func rebound(t *check.T) (header http.Header, ok bool) {
	u := local(t)
	if u == nil || t.Target.Settings.Public {
		return nil, false
	}
	host := "rebound.evil.example"
	if u.Port() != "" {
		host += ":" + u.Port()
	}
	return http.Header{"Host": {host}, "Origin": {u.Scheme + "://" + host}}, true
}

// local returns the URL of a server that is reached at the loopback interface, or nil.
func local(t *check.T) *url.URL {
	e, _ := t.Endpoint()
	u, err := url.Parse(e.URL)
	if err != nil || u.Scheme == "unix" || e.Socket != "" || !transport.Loopback(u.Hostname()) {
		return nil
	}
	return u
}

// foreignTo returns origins that the server has no reason to trust. It ends the
// body if the user says that the server trusts all, or one of those given.
func foreignTo(t *check.T, given ...string) []string {
	trusted := t.Target.Settings.TrustedOrigins
	for _, origin := range append([]string{"*"}, given...) {
		if slices.Contains(trusted, origin) {
			t.Skip("the configuration says that the server trusts the origin %s on purpose", origin)
		}
	}
	var foreign []string
	for _, m := range t.Draw("origins") {
		e, _ := t.Endpoint()
		if u, err := url.Parse(e.URL); err == nil && u.Port() != "" || !strings.Contains(m.Str(), "{port}") {
			foreign = append(foreign, m.With(map[string]string{"port": u.Port()}).Str())
		}
	}
	foreign = slices.DeleteFunc(foreign, func(origin string) bool { return slices.Contains(trusted, origin) })
	for _, origin := range sites(trusted) {
		foreign = append(foreign, origin+".evil.example")
	}
	return foreign[:t.Most(len(foreign), 1)]
}

// sites returns the trusted origins that are those of a site.
func sites(trusted []string) []string {
	return slices.DeleteFunc(slices.Clone(trusted),
		func(origin string) bool { return !strings.Contains(origin, "://") })
}

const withTrusted = "with the origin %s, which the server trusts according to the configuration"

// refuseOrigin expects an error status, whichever it is (docs/positions.md, unnamed-status), and reports whether
// there is one.
func refuseOrigin(t *check.T, id, origin string, r *transport.Response) bool {
	if !t.Check(id, r).To(BeTurnedDown(), "with the header Origin: %s", origin) {
		return false
	}
	if r.Status != http.StatusForbidden {
		t.Note("the origin %s is refused with HTTP status %d", origin, r.Status)
	}
	return true
}

// served breaks a requirement unless the request was answered with a result.
func served(t *check.T, r *transport.Response, id string) bool {
	return servedWhen(t, "sent as it should be", r, id)
}

// assumeServed is the control of what must be refused: a plain request is served.
func assumeServed(t *check.T) {
	t.Assume(t.Do(plainRequest(t))).To(HaveResult(), "sent as it should be")
}

// servedWith is served for a plain request with other values of a header.
func servedWith(t *check.T, header string, values []string, id string) {
	t.Clear()
	r := plainRequest(t)
	r.Header = http.Header{header: values}
	var quoted []string // as many lines of the header
	for _, v := range values {
		quoted = append(quoted, quote(v))
	}
	servedWhen(t, "with the "+header+" header "+strings.Join(quoted, " and "), t.Do(r), id)
}

// headerNames sends each header of a POST under its name in small letters and in capitals (RFC 9110, section 5.1).
func headerNames(t *check.T) {
	const id = ids.HTTPServerHeaderNames
	t.Assume(t.Do(plainRequest(t))).To(HaveResult(), "with the names of headers in their ordinary spelling")
	session, version := t.HTTP().Session()
	ordinary := map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", headerVersion: version,
		headerSession: session,
	}
	spelled := func(spell func(string) string) transport.Request {
		r := plainRequest(t)
		r.Header = make(http.Header)
		for name, value := range ordinary {
			if value != "" { // the server may assign no session ids
				r.Header[spell(name)] = []string{value}
			}
		}
		return r
	}
	send := func(name, value string) *transport.Response {
		r := plainRequest(t)
		r.Header = http.Header{name: {value}}
		if value == notAVersion {
			r.Deliberate = []string{"*"}
		}
		return t.Do(r)
	}
	refused := send(headerVersion, notAVersion).Status == http.StatusBadRequest
	for _, spell := range []func(string) string{strings.ToLower, strings.ToUpper} {
		t.Clear()
		if ResultIn(t.Do(spelled(spell))) == nil { // which of them is it?
			for _, header := range slices.Sorted(maps.Keys(ordinary)) {
				t.Clear()
				if ordinary[header] != "" {
					name := spell(header)
					servedWhen(t, "with the header "+header+" written "+name, send(name, ordinary[header]), id)
				}
			}
		}
		if t.Clear(); refused {
			name := spell(headerVersion)
			t.Check(id, send(name, notAVersion)).To(HaveHTTPStatus(http.StatusBadRequest),
				"with the version %q in the header %s, as with it in the header %s", notAVersion, name, headerVersion)
		}
	}
}

// notAVersion is not a version of the protocol.
const notAVersion = "not-a-version"

func servedWhen(t *check.T, circumstances string, r *transport.Response, id string) bool {
	t.Admitted(r.Head, "a request")
	return t.Check(id, r).To(HaveResult(), "%s", circumstances)
}

// turnedDown posts a body that is not a message. A lenient reader may accept a body that it takes for a message.
func turnedDown(t *check.T, raw string, lenient bool) {
	const id = ids.HTTPServerSurvivesBadBody
	r := t.Do(transport.Request{Body: []byte(raw), Deliberate: []string{"*"}})
	e := ErrorIn(r)
	switch {
	case r.Status/100 == 4, e != nil && r.Status/100 == 2:
	case r.Status/100 == 2 && lenient:
		t.Note("the body %s is accepted", wire.Quote(raw, 60))
	case r.Status < 400:
		t.Violation(id,
			fmt.Sprintf("a body that is not a message was answered with HTTP status %d and no JSON-RPC error",
				r.Status))
	default:
		t.Note("a body that is not a message is answered with HTTP status %d", r.Status)
	}
	if e == nil || lenient || !e.Msg.Error.HasCode || !wire.Parse([]byte(raw)).Has(wire.NotJSON) ||
		strings.TrimSpace(raw) == "" {
		return
	}
	t.Exercised(ids.BaseErrorParseError)
	t.Check(ids.BaseErrorParseError, e).To(HaveErrorCode(-32700), "with a body that is not JSON")
}

// boundToLoopback tries to reach a local server from outside: through the other
// addresses of this machine.
func boundToLoopback(t *check.T) {
	const patience = time.Second
	if t.Target.Settings.Public {
		t.Skip("the configuration says that the server is meant to be reachable from outside")
	}
	e, _ := t.Endpoint()
	u, err := url.Parse(e.URL)
	if err != nil || u.Scheme == "unix" || e.Socket != "" {
		t.Skip("the server is not reached at an IP address")
	}
	ip := net.ParseIP(u.Hostname())
	if u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		t.Skip("the server is not a local one, by its URL")
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Inconclusive("the addresses of this machine cannot be listed: %v", err)
	}
	dial := e.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: patience}).DialContext
	}
	tried, silent := 0, ""
	for _, a := range addresses {
		n, ok := a.(*net.IPNet)
		if !ok || n.IP.IsLoopback() || n.IP.IsLinkLocalUnicast() {
			continue
		}
		tried++
		outside := net.JoinHostPort(n.IP.String(), port)
		conn, err := dial(t.Context, "tcp", outside)
		if err != nil {
			continue
		}
		_ = conn.Close()
		there := *u
		there.Host = outside
		// The note shows the answer: another server may have accepted the connection.
		if head := t.HeadAt(there.String()); head != nil {
			t.Fail("the local server can be reached at %s, where it answers with HTTP status %d; it should listen "+
				"at the loopback interface only",
				outside, head.HTTP.Status)
		}
		silent = outside
	}
	if silent != "" {
		t.Inconclusive("a connection to %s is accepted, and an HTTP request there is not answered: whether it "+
			"is the server that listens there is not known",
			silent)
	}
	if tried == 0 {
		t.Inconclusive("the only address of this machine is the loopback one")
	}
}
