package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// Endpoint says where a server is and how to reach it over HTTP.
type Endpoint struct {
	// URL of the server: http, https, or unix:///path/to.sock?path=/mcp for an
	// HTTP server behind a Unix socket. Its query is sent as it is. That of a
	// [WebSocket] server may begin with ws or wss instead.
	URL string
	// Header goes with every request, and never to another host: redirects are
	// recorded, not followed. See also Moved.
	Header http.Header
	// Token, unless nil, yields the access token of each request.
	Token TokenSource
	// Limits, unless nil, has requests wait where the server limits their rate.
	Limits Limits
	// Socket is the path of a Unix socket to connect to, whatever the URL's host.
	Socket string
	// Dial, unless nil, makes the connections, instead of the machine's network.
	// They do not go through a proxy.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	TLS  *tls.Config // nil for the defaults
	// Proxy chooses a proxy; nil takes it from the environment.
	Proxy func(*http.Request) (*url.URL, error)
	// Timeout bounds how long a connection, and then the head of a response,
	// may take. Zero: 10 s.
	Timeout time.Duration
	// Redactor of what is recorded; nil makes one from Header and URL.
	Redactor *Redactor

	lead *lead // that of a document; see Document
}

// Limits is what all connections to a server know of its limits of rate. It is safe for concurrent use.
type Limits interface {
	// Admit waits until one more request may be sent.
	Admit(ctx context.Context)
	// Refused gets the head of a response that refused a request because there were too many (see [wire.TooMany]).
	Refused(head *wire.Event)
}

const (
	defaultHTTPTimeout = 10 * time.Second
	maxHeadBytes       = 1 << 20
)

// EndpointOf returns where a dialer reaches its server over the network, so that it can be
// changed; nil for a dialer that does not.
func EndpointOf(d Dialer) *Endpoint {
	switch d := d.(type) {
	case *HTTP:
		return &d.Endpoint
	case *SSE:
		return &d.Endpoint
	case *WebSocket:
		return &d.Endpoint
	}
	return nil
}

// String returns the URL without secrets.
func (e Endpoint) String() string { return e.redactor().rawURL(e.URL) }

func (e Endpoint) redactor() *Redactor {
	if e.Redactor != nil {
		return e.Redactor
	}
	return NewRedactor(e.Header, e.URL)
}

// site is an Endpoint made ready for use.
type site struct {
	name      string // for messages, without secrets
	url       *url.URL
	header    http.Header
	tokens    TokenSource     // nil for none
	limits    Limits          // nil for none
	transport *http.Transport // with a connection for each exchange
	kept      *http.Transport
	// unkept says for all links to the server that no connections are kept. Nil: that they never are.
	unkept  *atomic.Bool
	timeout time.Duration
	redact  *Redactor
	// elsewhere says that the server is not on this machine, or a part of this program.
	elsewhere bool
}

// admit waits until one more request may be sent. Its header is made after that: a session may begin meanwhile.
func (s *site) admit(ctx context.Context) {
	if s.limits != nil {
		s.limits.Admit(ctx)
	}
}

// Moved returns the endpoint to which the head of a response redirects a POST, if
// that is another path of the same server: some frameworks do so if a slash at the
// end is missing. Otherwise it returns false, so that secrets do not leave the
// server.
func (e Endpoint) Moved(head *wire.Event) (Endpoint, bool) {
	if head == nil || head.HTTP.Status != http.StatusTemporaryRedirect &&
		head.HTTP.Status != http.StatusPermanentRedirect {
		return e, false
	}
	from, err := url.Parse(e.URL)
	if err != nil {
		return e, false
	}
	to, err := from.Parse(head.HTTP.Header.Get("Location"))
	if err != nil || to.Scheme != from.Scheme || to.Host != from.Host || to.String() == from.String() {
		return e, false
	}
	e.URL = to.String()
	return e, true
}

// open makes the endpoint ready. If it fails, it notes that in the log and ends the
// log; the error is a *StartError. Links keep connections until unkept says otherwise, or
// not at all if that is nil.
func (e Endpoint) open(log *wire.Log, unkept *atomic.Bool) (*site, error) {
	s, err := e.site()
	if err != nil {
		return nil, unstarted(log, &StartError{Target: "the server", Err: err})
	}
	if prompts && e.Dial == nil { // a network of the program's own has nothing to gain
		s.kept, s.unkept = keep(s.transport), unkept
	}
	return s, nil
}

func (e Endpoint) site() (*site, error) {
	u, socket, err := parseURL(e.URL)
	if err != nil {
		return nil, err
	}
	if e.Socket != "" {
		socket = e.Socket
	}
	s := &site{name: e.String(), url: u, header: e.Header.Clone(), tokens: e.Token, limits: e.Limits,
		timeout: e.Timeout, redact: e.redactor()}
	s.elsewhere = e.Dial != nil || socket == "" && !Loopback(u.Hostname())
	if s.timeout == 0 {
		s.timeout = defaultHTTPTimeout
	}
	if s.header == nil {
		s.header = make(http.Header)
	}
	if password, ok := u.User.Password(); ok && s.header.Get("Authorization") == "" {
		basic := http.Request{Header: s.header}
		basic.SetBasicAuth(u.User.Username(), password)
	}
	u.User = nil
	dialer := &net.Dialer{Timeout: s.timeout}
	s.transport = &http.Transport{
		DialContext:            quietly(dialer.DialContext),
		Proxy:                  e.Proxy,
		TLSHandshakeTimeout:    s.timeout,
		MaxResponseHeaderBytes: maxHeadBytes,
		DisableCompression:     true,
		// net/http repeats some requests that fail on a connection that was used
		// before, and the log would not show it.
		MaxIdleConnsPerHost: -1,
	}
	if e.TLS != nil {
		s.transport.TLSClientConfig = e.TLS.Clone()
	} else {
		s.transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if s.transport.TLSClientConfig.ClientSessionCache == nil {
		s.transport.TLSClientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	switch {
	case e.Dial != nil:
		s.transport.Proxy = nil
		s.transport.DialContext = quietly(e.Dial)
	case socket != "":
		s.transport.Proxy = nil
		s.transport.DialContext = quietly(dialUnix(dialer, socket))
	case e.Proxy == nil:
		s.transport.Proxy = http.ProxyFromEnvironment
	}
	if e.lead != nil && !s.proxied() {
		dialer.ControlContext = e.lead.control
	}
	return s, nil
}

// proxied reports whether requests go through a proxy. The proxy then decides their destination.
func (s *site) proxied() bool {
	if s.transport.Proxy == nil {
		return false
	}
	proxy, err := s.transport.Proxy(&http.Request{URL: s.url, Header: make(http.Header)})
	return err == nil && proxy != nil
}

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// quietly makes connections that read nothing before the first write. To a
// peer that speaks or hangs up before it was asked, net/http reacts by writing
// to the program's log.
func quietly(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &quietConn{Conn: conn, spoken: make(chan struct{})}, nil
	}
}

type quietConn struct {
	net.Conn
	once   sync.Once
	spoken chan struct{} // closed with the first write, or the end
}

func (c *quietConn) Read(p []byte) (int, error) {
	<-c.spoken
	return c.Conn.Read(p)
}

func (c *quietConn) Write(p []byte) (int, error) {
	c.once.Do(func() { close(c.spoken) })
	return c.Conn.Write(p)
}

func (c *quietConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { close(c.spoken) })
	return err
}

func dialUnix(dialer *net.Dialer, path string) dialFunc {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", path)
	}
}

// quotedPart is what errors of net/url quote of a URL.
var quotedPart = regexp.MustCompile(` ".*"`)

// parseURL reads the URL of a server. Its errors do not repeat the URL, which
// may hold secrets.
func parseURL(raw string) (u *url.URL, socket string, err error) {
	u, err = url.Parse(raw)
	if err != nil {
		var urlErr *url.Error
		if errors.As(err, &urlErr) {
			err = urlErr.Err
		}
		// The quote in the message may be a part of a password.
		return nil, "", fmt.Errorf("not a URL: %s", quotedPart.ReplaceAllString(err.Error(), ""))
	}
	u.Fragment, u.RawFragment = "", ""
	// The handshake of a WebSocket is an HTTP request.
	switch u.Scheme {
	case schemeWS:
		u.Scheme = "http"
	case schemeWSS:
		u.Scheme = "https"
	}
	switch {
	case u.Scheme == "unix" && u.Path != "":
		return unixURL(u)
	case u.Scheme == "unix":
		return nil, "", errors.New("the URL does not name a socket; write unix:///path/to.sock?path=/mcp")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, "",
			errors.New("the URL must begin with http://, https://, unix://, ws:// or wss://; --transport-command " +
				"reaches servers over other transports")
	case u.Hostname() == "":
		return nil, "", errors.New("the URL does not name a host")
	}
	return u, "", nil
}

// unixURL takes the parameter path out of the query; the rest of it is sent.
func unixURL(u *url.URL) (*url.URL, string, error) {
	target := &url.URL{Scheme: "http", Host: "localhost", Path: "/"}
	var rest []string
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		value, found := strings.CutPrefix(pair, "path=")
		if !found {
			if pair != "" {
				rest = append(rest, pair)
			}
			continue
		}
		path, err := url.QueryUnescape(value)
		if err != nil {
			return nil, "", fmt.Errorf("not a URL: %s", quotedPart.ReplaceAllString(err.Error(), ""))
		}
		target.Path = path
	}
	target.RawQuery = strings.Join(rest, "&")
	return target, u.Path, nil
}

// AddHeader adds a header given as "Name: value". Its errors do not repeat the
// value.
func AddHeader(h http.Header, line string) error {
	name, value, found := strings.Cut(line, ":")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	switch {
	case !found:
		return errors.New(`a header must be written "Name: value"`)
	case !httpguts.ValidHeaderFieldName(name):
		return errors.New("the name of a header has characters that are not allowed there")
	case !httpguts.ValidHeaderFieldValue(value):
		return fmt.Errorf("the value of header %s has characters that are not allowed there", name)
	}
	h.Add(name, value)
	return nil
}

// TLSOptions choose how a server is trusted and how we identify ourselves.
type TLSOptions struct {
	Insecure bool   // accept any certificate
	CAFile   string // PEM certificates to trust in addition to the system's
	CertFile string // PEM certificate and key of the client
	KeyFile  string // empty: the key is in CertFile
}

// Config reads the files and returns the configuration.
func (o TLSOptions) Config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: o.Insecure}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the certificates to trust: %w", err)
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read the certificates to trust: %s does not hold a PEM certificate", o.CAFile)
		}
		config.RootCAs = pool
	}
	if o.CertFile != "" {
		key := o.KeyFile
		if key == "" {
			key = o.CertFile
		}
		cert, err := tls.LoadX509KeyPair(o.CertFile, key)
		if err != nil {
			return nil, fmt.Errorf("read the client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{cert}
	}
	return config, nil
}

// Validate reports a URL that cannot be that of a server.
func (e Endpoint) Validate() error {
	_, _, err := parseURL(e.URL)
	return err
}
