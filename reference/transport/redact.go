package transport

import (
	"bytes"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// Redacted stands where a secret was.
const Redacted = "REDACTED"

// shortestSecret is the least length of a secret that is looked for in free text:
// a shorter one would also replace text that is not secret.
const shortestSecret = 6

// Redactor takes secrets out of what is recorded and reported. Heads and URLs
// are redacted as they are recorded; bodies stay exact for the judge, and are
// redacted with Bytes or Event when a report or a trace is written. A secret is
// found however a text escapes it. A Redactor is safe for concurrent use; a nil
// Redactor only knows the secrets in headers whose names tell that they hold one.
type Redactor struct {
	mu      sync.Mutex
	headers map[string]bool // canonical names that the user gave
	secrets map[string]bool
	search  *search // for secrets; nil after a change
}

// search looks for secrets in texts, in those that may break off, and in names of headers, which have
// lost their case.
type search struct{ texts, torn, names *needles }

// NewRedactor returns a Redactor for what a user gave: header and URL, which
// may be empty. It knows the values of the header, of the URL's query and of
// its user information.
func NewRedactor(header http.Header, rawURL string) *Redactor {
	r := &Redactor{}
	r.AddTarget(header, rawURL)
	return r
}

// AddTarget makes known what [NewRedactor] does.
func (r *Redactor) AddTarget(header http.Header, rawURL string) {
	for name, values := range header {
		if harmless(name) {
			continue
		}
		r.mu.Lock()
		if r.headers == nil {
			r.headers = make(map[string]bool)
		}
		r.headers[http.CanonicalHeaderKey(name)] = true
		r.mu.Unlock()
		r.addHeader(name, values)
	}
	if u, err := url.Parse(rawURL); err == nil {
		r.addURL(u)
	}
}

// ReceivedHead returns the head of a request that this side has got, as it is recorded: without
// the secrets in headers and queries whose names tell that they hold one.
func ReceivedHead(r *http.Request) *wire.Head {
	var byName *Redactor
	header := byName.Header(r.Header)
	header.Set("Host", r.Host)
	target := *r.URL
	target.Scheme, target.Host = "http", r.Host
	if r.TLS != nil {
		target.Scheme = "https"
	}
	return &wire.Head{Method: r.Method, URL: byName.URL(&target), Header: header}
}

// SentHead returns the head of a response that this side sends, as it is recorded.
func SentHead(status int, header http.Header) *wire.Head {
	var byName *Redactor
	return &wire.Head{Status: status, Header: byName.Header(header)}
}

// known returns the search for the secrets known so far, or nil if there are none.
func (r *Redactor) known() *search {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.search == nil && len(r.secrets) > 0 {
		texts := slices.Collect(maps.Keys(r.secrets))
		names := make([]string, len(texts))
		for i, s := range texts {
			names[i] = strings.ToLower(s)
		}
		whole := newNeedles(texts)
		r.search = &search{whole, whole.ofTorn(), newNeedles(names)}
	}
	return r.search
}

// String returns s without the known secrets.
func (r *Redactor) String(s string) string {
	if known := r.known(); known != nil {
		return without(known.texts, s)
	}
	return s
}

// Bytes returns b without the known secrets: b itself when it holds none.
func (r *Redactor) Bytes(b []byte) []byte {
	if known := r.known(); known != nil {
		return without(known.texts, b)
	}
	return b
}

// without returns a text without needles: itself when it holds none.
func without[T string | []byte](n *needles, text T) T {
	if len(text) >= shortestCut {
		if clean, found := replaceAll(n, text, Redacted); found {
			return T(clean)
		}
	}
	return text
}

// Event returns e without secrets, for a report or a trace file: e itself when
// it holds none, else a copy.
func (r *Redactor) Event(e *wire.Event) *wire.Event {
	clean := *e
	text, raw := r.String, r.Bytes
	if known := r.known(); known != nil && mayBreakOff(e) {
		text = func(s string) string { return without(known.torn, s) }
		raw = func(b []byte) []byte { return without(known.torn, b) }
	}
	clean.Raw, clean.Note = raw(e.Raw), r.String(e.Note)
	changed := clean.Note != e.Note
	if !bytes.Equal(clean.Raw, e.Raw) {
		changed = true
		if e.Msg != nil {
			clean.Msg = wire.Parse(clean.Raw)
		}
	}
	if e.SSE != nil {
		fields := *e.SSE
		for _, f := range []*string{&fields.Event, &fields.ID, &fields.Retry, &fields.Comment} {
			*f = text(*f)
		}
		changed = changed || fields != *e.SSE
		clean.SSE = &fields
	}
	if e.HTTP != nil {
		head := *e.HTTP
		head.Method, head.URL, head.Header = r.String(head.Method), r.String(head.URL), r.Header(head.Header)
		changed = changed || head.Method != e.HTTP.Method || head.URL != e.HTTP.URL ||
			!sameHeader(head.Header, e.HTTP.Header)
		clean.HTTP = &head
	}
	if !changed {
		return e
	}
	return &clean
}

// mayBreakOff reports whether the text of an event may be cut by the end of a connection or by a limit.
func mayBreakOff(e *wire.Event) bool {
	switch e.Kind {
	case wire.KindBody, wire.KindSSE:
		return true
	case wire.KindMessage:
		return e.Dropped > 0 || e.Msg == nil || e.Msg.Kind == wire.Invalid
	default:
		return e.Dropped > 0
	}
}

func sameHeader(a, b http.Header) bool {
	if len(a) != len(b) {
		return false
	}
	for name, values := range a {
		if !slices.Equal(values, b[name]) {
			return false
		}
	}
	return true
}

// Header returns a copy of h without secrets. It replaces the values of headers that the user gave, the values of
// headers with a telling name, and known secrets everywhere.
func (r *Redactor) Header(h http.Header) http.Header {
	clean := make(http.Header, len(h))
	for name, values := range h {
		key := r.headerName(http.CanonicalHeaderKey(name))
		for _, v := range values {
			switch {
			case r.secretHeader(http.CanonicalHeaderKey(name)):
				if kind, _ := scheme(v); kind != "" {
					v = kind + " " + Redacted
				} else {
					v = Redacted
				}
			case key == "Location" || key == "Content-Location":
				v = r.rawURL(v)
			default:
				v = r.String(v)
			}
			clean[key] = append(clean[key], v)
		}
	}
	return clean
}

// headerName returns a header's name unless it holds a secret, whose case has
// changed on the way.
func (r *Redactor) headerName(name string) string {
	if known := r.known(); known != nil && len(name) >= shortestSecret {
		if _, found := replaceAll(known.names, strings.ToLower(name), Redacted); found {
			return Redacted
		}
	}
	return name
}

func (r *Redactor) secretHeader(name string) bool {
	if harmless(name) {
		return false
	}
	return r.given(name) || secretName(name)
}

// given reports whether the user gave the header of a canonical name.
func (r *Redactor) given(name string) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.headers[name]
}

// URL returns u as text without user information and fragment, and with every
// value of its query replaced; the names stay.
func (r *Redactor) URL(u *url.URL) string {
	clean := *u
	clean.User, clean.Fragment, clean.RawFragment = nil, "", ""
	if u.User != nil {
		clean.User = url.User(Redacted)
	}
	if clean.RawQuery != "" {
		pairs := strings.Split(clean.RawQuery, "&")
		for i, pair := range pairs {
			name, value, found := strings.Cut(pair, "=")
			switch {
			case u.Scheme == "unix" && name == "path":
			case found && value != "":
				pairs[i] = name + "=" + Redacted
			case !found && name != "":
				pairs[i] = Redacted
			}
		}
		clean.RawQuery = strings.Join(pairs, "&")
	}
	return r.String(clean.String())
}

// rawURL is URL for a text that may not be a URL.
func (r *Redactor) rawURL(s string) string {
	if !strings.ContainsAny(s, "?@#") {
		return r.String(s)
	}
	u, err := url.Parse(s)
	if err != nil {
		return Redacted
	}
	return r.URL(u)
}
