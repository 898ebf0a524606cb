package transport

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// Redacted stands where a secret was.
const Redacted = "REDACTED"

// shortestSecret is the length from which on a secret is looked for in free
// text: anything shorter would blot out what is no secret.
const shortestSecret = 6

// Redactor takes secrets out of what is recorded and reported. Heads and URLs
// are redacted as they are recorded; bodies stay exact for the judge, and are
// redacted with Bytes or Event when a report or a trace is written. It is safe
// for concurrent use; a nil Redactor knows no secret but those that a header's
// name gives away.
type Redactor struct {
	headers map[string]bool // canonical names that the user gave

	mu       sync.Mutex
	secrets  []string
	replacer *strings.Replacer // of secrets; nil after a change
}

// NewRedactor returns a Redactor for what a user gave: header and URL, which
// may be empty. It knows the values of the header, of the URL's query and of
// its user information.
func NewRedactor(header http.Header, rawURL string) *Redactor {
	r := &Redactor{headers: make(map[string]bool)}
	for name, values := range header {
		if harmless(name) {
			continue
		}
		r.headers[http.CanonicalHeaderKey(name)] = true
		for _, v := range values {
			r.Add(v)
			r.Add(credentials(name, v)...)
		}
	}
	if u, err := url.Parse(rawURL); err == nil {
		r.addURL(u)
	}
	return r
}

// harmless reports whether a header says nothing that is secret, whoever set
// it: the judge needs these.
func harmless(name string) bool {
	switch strings.ToLower(name) {
	case "accept", "accept-language", "accept-encoding", "content-type", "content-length", "host", "origin", "user-agent",
		"last-event-id", "mcp-session-id", "mcp-protocol-version", "www-authenticate", "proxy-authenticate":
		return true
	}
	return false
}

var schemes = []string{"bearer", "basic", "digest", "token", "apikey", "negotiate"}

// scheme splits an authentication scheme from the value of a header.
func scheme(value string) (name, rest string) {
	first, rest, found := strings.Cut(strings.TrimSpace(value), " ")
	if found && slices.Contains(schemes, strings.ToLower(first)) {
		return first, strings.TrimSpace(rest)
	}
	return "", value
}

// credentials returns the parts of a header's value that are secret on their own.
func credentials(name, value string) []string {
	kind, rest := scheme(value)
	if strings.EqualFold(kind, "basic") {
		if plain, err := base64.StdEncoding.DecodeString(rest); err == nil {
			_, password, _ := strings.Cut(string(plain), ":")
			return []string{rest, password}
		}
	}
	if strings.EqualFold(name, "Cookie") {
		var parts []string
		for pair := range strings.SplitSeq(value, ";") {
			_, v, _ := strings.Cut(pair, "=")
			parts = append(parts, strings.TrimSpace(v))
		}
		return parts
	}
	return []string{rest}
}

// revisions look like 2025-06-18: a protocol version in a query is no secret,
// and stands in every initialize.
var revisions = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)

func (r *Redactor) addURL(u *url.URL) {
	if u.User != nil {
		if password, ok := u.User.Password(); ok {
			r.Add(password, base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
		} else {
			r.Add(u.User.Username())
		}
	}
	if u.Scheme != "unix" {
		for segment := range strings.SplitSeq(u.Path, "/") {
			if random(segment) {
				r.Add(segment)
			}
		}
	}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, found := strings.Cut(pair, "=")
		if !found {
			value = name
		}
		if u.Scheme == "unix" && name == "path" || revisions.MatchString(value) {
			continue
		}
		r.Add(value)
		if plain, err := url.QueryUnescape(value); err == nil {
			r.Add(plain)
		}
	}
}

// random reports whether a word looks as if a generator of keys had made it,
// such as a part of a path that only those who may use it know.
func random(word string) bool {
	const least, mixed = 20, 3
	letters, digits := 0, 0
	for _, c := range word {
		switch {
		case '0' <= c && c <= '9':
			digits++
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
			letters++
		case !strings.ContainsRune("-_+=~", c):
			return false
		}
	}
	return letters+digits >= least && letters >= mixed && digits >= mixed
}

// secretName reports whether a name says that what it names is secret.
func secretName(name string) bool {
	lower := strings.ToLower(name)
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(lower, word) })
}

// AddEnv makes known what is secret in environment variables, each of the form
// NAME=value, by name or by looks. A target may repeat it, in its logs above all.
func (r *Redactor) AddEnv(env ...string) {
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		r.addNamed(name, value)
	}
}

// AddArgs makes known what is secret in the arguments of a command: the values
// of options such as --api-key, of headers and in URLs.
func (r *Redactor) AddArgs(args ...string) {
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		option := strings.HasPrefix(arg, "-")
		switch {
		case joined && option:
			r.addNamed(name, value)
		case option && secretName(name) && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			r.addNamed(name, args[i+1])
		case !option:
			if header, value, ok := strings.Cut(arg, ":"); ok && secretName(header) && !strings.HasPrefix(value, "//") {
				value = strings.TrimSpace(value)
				r.Add(value)
				r.Add(credentials(header, value)...)
			}
			r.addNamed("", arg)
		}
	}
}

// addNamed adds a value if its name or its looks say that it is secret, and
// what is secret in it if it is a URL. A file that holds a secret is none.
func (r *Redactor) addNamed(name, value string) {
	u, err := url.Parse(value)
	switch {
	case err == nil && u.Host != "":
		r.addURL(u)
	case !secretName(name) && !random(value):
	case strings.Trim(value, "0123456789") == "" && len(value) < 10:
		// The maximum of tokens, say.
	default:
		if _, err := os.Stat(value); err != nil {
			r.Add(value)
		}
	}
}

// Add makes further secrets known. Those shorter than six characters cannot be
// told from other text and are left out.
func (r *Redactor) Add(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range secrets {
		if len(s) < shortestSecret {
			continue
		}
		quoted, _ := json.Marshal(s)
		for _, form := range []string{s, string(quoted[1 : len(quoted)-1]), url.QueryEscape(s), url.PathEscape(s)} {
			if !slices.Contains(r.secrets, form) {
				r.secrets = append(r.secrets, form)
			}
		}
	}
	r.replacer = nil
}

func (r *Redactor) known() *strings.Replacer {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.replacer == nil && len(r.secrets) > 0 {
		// The longest first: one secret may be part of another.
		slices.SortFunc(r.secrets, func(a, b string) int { return len(b) - len(a) })
		var pairs []string
		for _, s := range r.secrets {
			pairs = append(pairs, s, Redacted)
		}
		r.replacer = strings.NewReplacer(pairs...)
	}
	return r.replacer
}

// String returns s without the known secrets.
func (r *Redactor) String(s string) string {
	if known := r.known(); known != nil {
		return known.Replace(s)
	}
	return s
}

// Bytes returns b without the known secrets: b itself when it holds none.
func (r *Redactor) Bytes(b []byte) []byte {
	known := r.known()
	if known == nil || len(b) < shortestSecret {
		return b
	}
	s := string(b)
	if clean := known.Replace(s); clean != s {
		return []byte(clean)
	}
	return b
}

// Event returns e without the known secrets, for a report or a trace file: e
// itself when it holds none, else a copy.
func (r *Redactor) Event(e *wire.Event) *wire.Event {
	if r.known() == nil {
		return e
	}
	clean := *e
	clean.Raw = r.Bytes(e.Raw)
	clean.Note = r.String(e.Note)
	if e.Msg != nil && string(clean.Raw) != string(e.Raw) {
		clean.Msg = wire.Parse(clean.Raw)
	}
	if e.SSE != nil {
		fields := *e.SSE
		fields.Event, fields.ID, fields.Comment = r.String(fields.Event), r.String(fields.ID), r.String(fields.Comment)
		clean.SSE = &fields
	}
	if e.HTTP != nil {
		head := *e.HTTP
		head.URL = r.String(head.URL)
		head.Header = r.Header(head.Header)
		clean.HTTP = &head
	}
	return &clean
}

// Header returns a copy of h without secrets: the values of headers that the
// user gave or whose name says that they hold one are replaced, known secrets
// are replaced wherever they occur.
func (r *Redactor) Header(h http.Header) http.Header {
	clean := make(http.Header, len(h))
	for name, values := range h {
		key := http.CanonicalHeaderKey(name)
		for _, v := range values {
			switch {
			case r.secretHeader(key):
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

var secretWords = []string{"auth", "cookie", "token", "secret", "key", "passw", "credential", "signature"}

func (r *Redactor) secretHeader(name string) bool {
	if harmless(name) {
		return false
	}
	if r != nil && r.headers[name] {
		return true
	}
	return secretName(name)
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

func (r *Redactor) rawURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return Redacted
	}
	return r.URL(u)
}
