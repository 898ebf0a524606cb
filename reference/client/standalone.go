package client

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// Standalone is the reference client as a program of its own: it uses every
// feature that a server declares, answers the server's requests, and shuts down
// in order.
type Standalone struct {
	// URL of a server over HTTP, which may speak Streamable HTTP or, as the
	// fallback, HTTP+SSE, or over WebSocket.
	URL string
	// Legacy uses HTTP+SSE without trying Streamable HTTP first.
	Legacy bool
	// Dial, unless nil, makes the connections to a server over HTTP and to its
	// authorization servers in place of the machine's network.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Launcher starts a server over stdio, if URL is "".
	Launcher transport.Launcher
	// Authorizer obtains an access token for a server that requires one; nil stands
	// for a new one.
	Authorizer *Authorizer
	// Timeout of one answer; zero is DefaultTimeout.
	Timeout time.Duration
	// UserActions says how to decide where a person would, by topic: "elicitation="
	// with accept, decline or cancel, "sampling=" with accept or reject, in turn
	// and separated by commas; "roots=" with add, modify or remove, each done
	// after the roots were listed, or with the path of a folder to offer.
	UserActions string
	// Output takes a line for each step; nil for none.
	Output io.Writer
	// Limits of the trace of the session; zero for the defaults.
	Limits wire.Limits
	// Wrap changes the connection before it is used; it may be nil.
	Wrap func(transport.Conn) transport.Conn
	// Omissions are what the client neglects on purpose, to prove that a judge
	// notices it.
	Omissions Omissions
	// Change changes the options of the session; it may be nil.
	Change func(*Options)
	// Versions are what the client speaks besides [Version].
	Versions []string
	// Use, unless nil, replaces what the client does between handshake and shutdown.
	// It makes its requests with call, which begins a new session in place of a lost
	// one and seeks authorization where the server wants it.
	Use func(ctx context.Context, s *Session, call Call) error
	// Extra runs after everything else, before the shutdown; it may be nil.
	Extra func(ctx context.Context, s *Session)
	// Leaves, unless nil, tells of a connection at which event of the server the client ends at once, in
	// order and without an error; it returns nil for never.
	Leaves func(conn transport.Conn) func(e *wire.Event) bool
}

// Call makes a request. It is not an error if the server answers with an error or not
// in time; only the end of the connection is.
type Call func(ctx context.Context, method string, params map[string]any) (*Exchange, error)

// Omissions of the stand-alone client.
type Omissions struct {
	Version bool // goes on with any version
	Lost    bool // goes on in a session that was answered with 404
	// LostAgain goes on in a second one.
	LostAgain bool
	// LostAnswer goes on in a session if it was a response that was answered with 404.
	LostAnswer bool
	Cut        bool // treats a stream that was cut as the end of the session
	Legacy     bool // does not fall back to HTTP+SSE
	LegacyRare bool // falls back to HTTP+SSE after 400, 404 and 405 alone
	Unnamed    bool // names no event when it resumes a stream
	PageFrom   int  // reads only the first page of a list from this time on, counted from 1
	Refusal    bool // goes on when initialize was answered with an error
	Event      bool // names another event than the last when it resumes a stream
	Cursor     bool // uses a cursor in another session than the one it comes from
}

// UnsupportedVersionError reports a server that answered initialize with a
// version that the client does not speak.
type UnsupportedVersionError struct{ Version string }

func (e *UnsupportedVersionError) Error() string {
	return fmt.Sprintf("the server speaks version %s, and the client only %s", wire.Quote(e.Version, 40), Version)
}

// Bounds on what the client reads from a server whose lists never end.
const (
	standalonePages = 100
	standaloneItems = 10_000
	standaloneCalls = 50 // of one kind
	relistRounds    = 5
)

// Run connects, uses the server and disconnects. It is not an error if the server
// refuses requests; the error says why the session could not be established, or
// ended early.
func (c Standalone) Run(ctx context.Context) error {
	if c.Limits == (wire.Limits{}) {
		c.Limits = wire.DefaultLimits
	}
	if c.Authorizer == nil {
		c.Authorizer = new(Authorizer)
	}
	if c.Dial != nil && c.Authorizer.Transport == nil {
		c.Authorizer.Transport = &http.Transport{DialContext: c.Dial, DisableKeepAlives: true}
	}
	s := &standaloneSession{Standalone: c, trace: wire.NewTrace(c.Limits), actions: newUserActions(c.UserActions),
		token: transport.NewBearer("")}
	err := s.connect(ctx)
	defer s.leaving.Wait()
	if s.session == nil {
		return err
	}
	if err == nil {
		watching, stop := context.WithCancel(ctx)
		var watcher sync.WaitGroup
		watcher.Go(func() { s.actions.watch(watching, func() { s.announceRoots(ctx) }) })
		err = s.use(ctx)
		stop()
		watcher.Wait()
	}
	if closing := s.session.Close(ctx); err == nil {
		err = closing
	}
	if s.left.Load() {
		return nil
	}
	return err
}

// leave closes a connection when an event of the server has come, unless that ends before.
func (c *standaloneSession) leave(ctx context.Context, conn transport.Conn, at func(e *wire.Event) bool) {
	if _, err := conn.Log().Await(ctx, 0, func(e *wire.Event) bool {
		return e.From == wire.Server && at(e)
	}); err == nil {
		c.left.Store(true)
		_ = conn.Close(ctx)
	}
}

// standaloneSession is one session of the stand-alone client.
type standaloneSession struct {
	Standalone
	trace          *wire.Trace
	session        *Session
	conn           transport.Conn // before it was wrapped
	replaced       int            // how many lost sessions were replaced already
	token          *transport.Bearer
	authorizations int // how often authorization was sought
	actions        *userActions
	looked         int             // how far answerLost has read the log
	responding     map[string]bool // the streams on which the client responded
	leaving        sync.WaitGroup  // what waits for the event at which the client leaves
	left           atomic.Bool     // it has come
	read           map[string]int  // how often each list was requested
}

func (c *standaloneSession) say(format string, args ...any) {
	if c.Output != nil {
		fmt.Fprintf(c.Output, format+"\n", args...)
	}
}

// connect opens a session over the transport that the server speaks
// (basic/transports#backwards-compatibility).
func (c *standaloneSession) connect(ctx context.Context) error {
	err := c.reach(ctx)
	logs := c.trace.Logs()
	if err == nil || c.URL == "" || len(logs) == 0 {
		return err
	}
	// If the server requires authorization, try again with a token.
	head := refusal(logs[len(logs)-1])
	if head == nil {
		return err
	}
	if authErr := c.authorize(ctx, head); authErr != nil {
		return authErr
	}
	if c.session != nil {
		_ = c.session.Close(ctx)
		c.session = nil
	}
	return c.reach(ctx)
}

func (c *standaloneSession) reach(ctx context.Context) error {
	// The head of a JSON answer comes only with the answer, so this limit is longer
	// than that of the session, which decides.
	endpoint := transport.Endpoint{URL: c.URL, Token: c.token, Dial: c.Dial,
		Timeout: 2 * max(c.Timeout, DefaultTimeout)}
	if c.URL == "" {
		return c.open(ctx, &transport.Stdio{Launcher: c.Launcher})
	}
	if transport.IsWebSocket(c.URL) {
		return c.open(ctx, &transport.WebSocket{Endpoint: endpoint})
	}
	if c.Legacy {
		return c.open(ctx, &transport.SSE{Endpoint: endpoint})
	}
	err := c.open(ctx, &transport.HTTP{Endpoint: endpoint})
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Exchange.Head == nil || refused.Exchange.Head.HTTP.Status/100 != 4 ||
		refused.Exchange.Head.HTTP.Status == http.StatusUnauthorized || c.Omissions.Legacy {
		return err
	}
	usual := []int{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed}
	if c.Omissions.LegacyRare && !slices.Contains(usual, refused.Exchange.Head.HTTP.Status) {
		return err
	}
	c.say("falling back to HTTP+SSE")
	_ = c.session.Close(ctx)
	c.session = nil
	return c.open(ctx, &transport.SSE{Endpoint: endpoint})
}

func (c *standaloneSession) open(ctx context.Context, d transport.Dialer) error {
	conn, err := d.Dial(ctx, c.trace.Connect(d.Transport(), "reference client"))
	if err != nil {
		return err
	}
	c.conn = conn
	if c.Wrap != nil {
		conn = c.Wrap(conn)
	}
	o := Options{
		Timeout: c.Timeout, Answers: c.answers(),
		Answered: func(ctx context.Context, method string) {
			if method == "roots/list" && c.actions.change() {
				c.announceRoots(ctx)
			}
		},
		Resuming: func(last string) (string, bool) {
			if c.Omissions.Cut {
				return "", false
			}
			c.say("resuming a stream that was cut")
			switch {
			case c.Omissions.Event:
				last += "-other"
			case c.Omissions.Unnamed:
				last = ""
			}
			return last, true
		},
		Capabilities: map[string]any{
			"roots": map[string]any{"listChanged": true}, "sampling": map[string]any{}, "elicitation": map[string]any{},
		},
	}
	if c.Change != nil {
		c.Change(&o)
	}
	c.session = New(conn, o)
	if c.Leaves != nil {
		if at := c.Leaves(conn); at != nil {
			c.leaving.Go(func() { c.leave(ctx, conn, at) })
		}
	}
	return c.handshake(ctx)
}

func (c *standaloneSession) handshake(ctx context.Context) error {
	s := c.session
	x, err := s.Call(ctx, "initialize", s.InitializeParams())
	s.Init = x
	if err != nil {
		return err
	}
	if x.Result() == nil && c.Omissions.Refusal {
		return s.Notify(ctx, "notifications/initialized", nil)
	}
	if x.Result() == nil {
		return &RefusedError{Exchange: x}
	}
	// A client disconnects when it cannot use the version (basic/lifecycle#version-negotiation).
	if version, _ := x.Result()["protocolVersion"].(string); version != Version &&
		!slices.Contains(c.Versions, version) && !c.Omissions.Version {
		return &UnsupportedVersionError{Version: version}
	}
	c.say("connected to %v", wire.At(x.Result(), "serverInfo", "name"))
	return s.Notify(ctx, "notifications/initialized", nil)
}

// use uses all that the server declares.
func (c *standaloneSession) use(ctx context.Context) error {
	steps := []func(context.Context) error{
		c.ping, c.logging, c.tools, c.resources, c.prompts, c.roots, c.changes, c.ping}
	if c.Use != nil {
		steps = []func(context.Context) error{func(ctx context.Context) error { return c.Use(ctx, c.session, c.call) }}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if c.Extra != nil {
		from := c.session.Log().Len()
		c.Extra(ctx, c.session)
		c.arrived(ctx, from)
	}
	return nil
}

// arrived waits until the server has answered all POSTs since a position in the log:
// the end of the session could overtake them.
func (c *standaloneSession) arrived(ctx context.Context, from int) {
	for _, sent := range c.session.Log().Events()[from:] {
		if sent.Kind != wire.KindHTTPRequest || sent.HTTP.Method != http.MethodPost {
			continue
		}
		_, _ = c.session.AwaitEvent(ctx, sent.Seq, "answer to a POST", func(e *wire.Event) bool {
			return e.Stream == sent.Stream && (e.Kind == wire.KindHTTPResponse || e.Kind == wire.KindStreamEnd)
		})
	}
}

// call is a [Call].
func (c *standaloneSession) call(ctx context.Context, method string, params map[string]any) (*Exchange, error) {
	if c.answerLost() {
		if x, err := c.renew(ctx, nil, method, params); x != nil || err != nil {
			return x, err
		}
	}
	x, err := c.session.Call(ctx, method, nilIfEmpty(params))
	var late *TimeoutError
	var closed *ClosedError
	switch {
	case errors.As(err, &late), errors.As(err, &closed) && c.session.Lost(): // the next call begins a new session
		c.say("%s: %v", method, err)
		return x, nil
	case err != nil:
		return x, err
	case x.Response == nil && x.Head != nil && x.Head.HTTP.Status == http.StatusNotFound:
		return c.renew(ctx, x, method, params)
	case x.Result() == nil && x.Head != nil && x.Head.HTTP.Status == http.StatusUnauthorized:
		return c.reauthorize(ctx, x, method, params)
	case x.Error() != nil:
		c.say("%s: error %d: %s", method, x.Error().Code, wire.Quote(x.Error().Message, 100))
	}
	return x, nil
}

// answerLost reports whether a response was answered with 404 since it was last asked, so that the
// session is lost (basic/transports#session-management).
func (c *standaloneSession) answerLost() bool {
	events := c.session.Log().Events()
	if c.responding == nil {
		c.responding = make(map[string]bool)
	}
	lost := false
	for _, e := range events[c.looked:] {
		switch {
		case e.Kind == wire.KindMessage && e.From == wire.Client && e.Msg.IsResponse():
			c.responding[e.Stream] = true
		case e.Kind == wire.KindHTTPResponse && e.HTTP.Status == http.StatusNotFound && c.responding[e.Stream]:
			lost = true
		}
	}
	c.looked = len(events)
	return lost && !c.Omissions.LostAnswer
}

func nilIfEmpty(params map[string]any) any {
	if len(params) == 0 {
		return nil
	}
	return params
}

// maxRenewals is how many lost sessions are replaced: a server that loses each would
// otherwise be asked for ever.
const maxRenewals = 3

// renew begins a new session in place of one that the server does not know any
// more, and makes the request again (basic/transports#session-management). A list
// begins again at its first page: cursors do not carry over into another session
// (server/utilities/pagination#implementation-guidelines).
func (c *standaloneSession) renew(ctx context.Context, x *Exchange, method string,
	params map[string]any) (*Exchange, error) {
	conn, ok := c.conn.(interface {
		Session() (id, version string)
		SetSession(id, version string)
		Listen(ctx context.Context) (string, error)
	})
	if !ok || c.replaced >= maxRenewals || c.Omissions.Lost || c.Omissions.LostAgain && c.replaced > 0 {
		return x, nil
	}
	if id, _ := conn.Session(); id == "" {
		return x, nil
	}
	c.replaced++
	c.say("the session is lost; beginning a new one")
	conn.SetSession("", "")
	if err := c.handshake(ctx); err != nil {
		return x, err
	}
	if _, err := conn.Listen(ctx); err != nil {
		return x, err
	}
	if !c.Omissions.Cursor {
		params = maps.Clone(params)
		delete(params, "cursor")
	}
	return c.session.Call(ctx, method, nilIfEmpty(params))
}

func (c *standaloneSession) ping(ctx context.Context) error {
	_, err := c.call(ctx, "ping", nil)
	return err
}

func (c *standaloneSession) logging(ctx context.Context) error {
	if !c.session.Capability("logging") {
		return nil
	}
	_, err := c.call(ctx, "logging/setLevel", map[string]any{"level": "debug"})
	return err
}

// list reads a list to its end, within bounds. It leaves out items whose key is not
// a string.
func (c *standaloneSession) list(ctx context.Context, method, member string) ([]map[string]any, error) {
	key := keys[member]
	var items []map[string]any
	params := map[string]any{}
	seen := make(map[string]bool)
	if c.read == nil {
		c.read = make(map[string]int)
	}
	c.read[method]++
	firstOnly := c.Omissions.PageFrom > 0 && c.read[method] >= c.Omissions.PageFrom
	for range standalonePages {
		session := c.replaced
		x, err := c.call(ctx, method, params)
		if err != nil {
			return items, err
		}
		if c.replaced != session {
			items = nil // the list was begun anew
			clear(seen)
		}
		page, _ := x.Result()[member].([]any)
		for _, item := range page {
			o, _ := item.(map[string]any)
			if _, ok := o[key].(string); ok && len(items) < standaloneItems {
				items = append(items, o)
			}
		}
		cursor, more := x.Result()["nextCursor"].(string)
		if !more || seen[cursor] || firstOnly {
			break
		}
		seen[cursor] = true
		params = map[string]any{"cursor": cursor}
	}
	c.say("%s: %d", method, len(items))
	return items, nil
}

// keys are the members that identify the items of each list.
var keys = map[string]string{"tools": "name", "prompts": "name", "resources": "uri", "resourceTemplates": "uriTemplate"}

func (c *standaloneSession) tools(ctx context.Context) error {
	if !c.session.Capability("tools") {
		return nil
	}
	tools, err := c.list(ctx, "tools/list", "tools")
	if err != nil {
		return err
	}
	for i, tool := range tools[:min(len(tools), standaloneCalls)] {
		name, _ := tool["name"].(string)
		params := map[string]any{
			"name": name, "arguments": fill(tool["inputSchema"]),
			"_meta": map[string]any{"progressToken": fmt.Sprintf("tool-%d-%s", i, name)},
		}
		if _, err := c.call(ctx, "tools/call", params); err != nil {
			return err
		}
	}
	return nil
}

func (c *standaloneSession) resources(ctx context.Context) error {
	if !c.session.Capability("resources") {
		return nil
	}
	if _, err := c.list(ctx, "resources/templates/list", "resourceTemplates"); err != nil {
		return err
	}
	resources, err := c.list(ctx, "resources/list", "resources")
	if err != nil {
		return err
	}
	for i, resource := range resources[:min(len(resources), standaloneCalls)] {
		uri := map[string]any{"uri": resource["uri"]}
		methods := []string{"resources/read"}
		if i == 0 && c.session.Capability("resources.subscribe") {
			methods = []string{"resources/subscribe", "resources/read", "resources/unsubscribe"}
		}
		for _, method := range methods {
			if _, err := c.call(ctx, method, uri); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *standaloneSession) prompts(ctx context.Context) error {
	if !c.session.Capability("prompts") {
		return nil
	}
	prompts, err := c.list(ctx, "prompts/list", "prompts")
	if err != nil {
		return err
	}
	for _, prompt := range prompts[:min(len(prompts), standaloneCalls)] {
		arguments := make(map[string]any)
		declared, _ := prompt["arguments"].([]any)
		for _, a := range declared {
			name, ok := wire.At(a, "name").(string)
			if !ok {
				continue
			}
			value, err := c.complete(ctx, prompt["name"], name, arguments)
			if err != nil {
				return err
			}
			arguments[name] = value
		}
		params := map[string]any{"name": prompt["name"]}
		if len(arguments) > 0 {
			params["arguments"] = arguments
		}
		if _, err := c.call(ctx, "prompts/get", params); err != nil {
			return err
		}
	}
	return nil
}

// complete returns a suggestion of the server for an argument of a prompt, of which
// others are settled, or, without one, a text that is also a URI.
func (c *standaloneSession) complete(ctx context.Context, prompt any, name string,
	settled map[string]any) (string, error) {
	const fallback = "test://static-text"
	if !c.session.Capability("completions") {
		return fallback, nil
	}
	params := map[string]any{
		"ref":      map[string]any{"type": "ref/prompt", "name": prompt},
		"argument": map[string]any{"name": name, "value": ""},
	}
	if len(settled) > 0 {
		params["context"] = map[string]any{"arguments": maps.Clone(settled)}
	}
	x, err := c.call(ctx, "completion/complete", params)
	if err != nil {
		return "", err
	}
	values, _ := wire.At(x.Result(), "completion", "values").([]any)
	if len(values) > 0 {
		if text, ok := values[0].(string); ok {
			return text, nil
		}
	}
	return fallback, nil
}

// roots adds a root and announces it, unless the user actions change the roots.
func (c *standaloneSession) roots(ctx context.Context) error {
	if _, declared := c.session.Options.Capabilities["roots"]; !declared || strings.Contains(c.UserActions, "roots=") {
		return nil
	}
	c.actions.add("roots", "add")
	c.actions.change()
	return c.session.Notify(ctx, "notifications/roots/list_changed", nil)
}

// announceRoots announces that the roots have changed. An error means that the
// connection has ended.
func (c *standaloneSession) announceRoots(ctx context.Context) {
	_ = c.session.Notify(ctx, "notifications/roots/list_changed", nil)
}

var relisted = map[string]struct{ method, member string }{
	"notifications/tools/list_changed":     {"tools/list", "tools"},
	"notifications/prompts/list_changed":   {"prompts/list", "prompts"},
	"notifications/resources/list_changed": {"resources/list", "resources"},
}

// changes requests again the lists that the server has announced as changed.
func (c *standaloneSession) changes(ctx context.Context) error {
	seen := 0
	for range relistRounds {
		events := c.session.Log().Events()
		var stale []string
		for _, e := range events[seen:] {
			if e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.Kind == wire.Notification &&
				relisted[e.Msg.Method].method != "" &&
				!slices.Contains(stale, e.Msg.Method) {
				stale = append(stale, e.Msg.Method)
			}
		}
		seen = len(events)
		for _, name := range stale {
			list := relisted[name]
			if !c.session.Capability(list.member) {
				continue // announced, but not declared
			}
			if _, err := c.list(ctx, list.method, list.member); err != nil {
				return err
			}
		}
		if len(stale) == 0 {
			return nil
		}
	}
	return nil
}

// usable reports whether the content of a sampling message is valid
// (client/sampling#messages).
func usable(content any) bool {
	switch wire.At(content, "type") {
	case "text":
		_, ok := wire.At(content, "text").(string)
		return ok
	case "image", "audio":
		data, ok := wire.At(content, "data").(string)
		_, err := base64.StdEncoding.DecodeString(data)
		_, typed := wire.At(content, "mimeType").(string)
		return ok && typed && err == nil
	}
	return false
}

// answers serve the requests that a server may send to a client.
func (c *standaloneSession) answers() map[string]Answer {
	return map[string]Answer{
		"roots/list": func(context.Context, any) (any, *wire.Error) {
			return map[string]any{"roots": c.actions.list()}, nil
		},
		"sampling/createMessage": func(_ context.Context, params any) (any, *wire.Error) {
			messages, ok := wire.At(params, "messages").([]any)
			if !ok {
				return nil, &wire.Error{Code: -32602, Message: "Invalid params: messages is not an array"}
			}
			for _, m := range messages {
				if !usable(wire.At(m, "content")) {
					return nil, &wire.Error{Code: -32602,
						Message: "Invalid params: the content is neither text nor an image nor audio"}
				}
			}
			if c.actions.next("sampling") == "reject" {
				return nil, rejected
			}
			return map[string]any{
				"role": "assistant", "model": "mcpconform", "stopReason": "endTurn",
				"content": map[string]any{"type": "text", "text": "A sampled answer."},
			}, nil
		},
		"elicitation/create": func(_ context.Context, params any) (any, *wire.Error) {
			schema := wire.At(params, "requestedSchema")
			if _, ok := schema.(map[string]any); !ok {
				return nil, &wire.Error{Code: -32602, Message: "Invalid params: requestedSchema is not an object"}
			}
			return c.actions.elicit(schema), nil
		},
	}
}
