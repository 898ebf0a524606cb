package transport

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
)

// harmless reports whether a header cannot hold a secret, whoever set it: the rules
// need these.
func harmless(name string) bool {
	switch strings.ToLower(name) {
	case "accept", "accept-language", "accept-encoding", "content-type", "content-length", "host", "origin",
		"user-agent",
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
			user, password, _ := strings.Cut(string(plain), ":")
			return append(basic(user, password), rest, password)
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

// basic returns the ways in which HTTP and others write a user with a password.
func basic(user, password string) []string {
	plain := []byte(user + ":" + password)
	return []string{
		base64.StdEncoding.EncodeToString(plain), base64.RawStdEncoding.EncodeToString(plain),
		base64.URLEncoding.EncodeToString(plain), base64.RawURLEncoding.EncodeToString(plain),
	}
}

// revisions look like 2025-06-18: a protocol version in a query is not a secret,
// and every initialize holds one.
var revisions = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)

// placeholders stand for what a shell or mcpconform fills in.
var placeholders = regexp.MustCompile(`^(?:\$[A-Z][A-Z0-9_]*|\$\{[^{}]*\}|\$\(.*\)|\{[A-Za-z_]+\})$`)

// words are values of settings, and words that occur in most messages: they are not
// secrets, whatever the setting is called.
var words = []string{
	"bearer", "default", "development", "disable", "disabled", "enable", "enabled", "oauth2", "optional", "production",
	"required", "streamable-http",
	"boolean", "client", "initialize", "integer", "jsonrpc", "method", "number", "object", "params", "prompts",
	"resources", "result",
	"server", "string",
}

// ordinary reports whether a value is not a secret although its name may say so: a
// setting, a number such as the maximum of tokens, a revision, a file, a
// reference to a variable, or a placeholder for a secret.
func ordinary(value string) bool {
	switch {
	case len(value) < shortestSecret, value == Redacted, revisions.MatchString(value),
		slices.Contains(words, strings.ToLower(value)):
		return true
	case strings.Trim(value, "0123456789.") == "" && len(value) < 10:
		return true
	case placeholders.MatchString(value):
		return true
	}
	for _, name := range []string{"HOME", "USER", "LOGNAME", "USERNAME", "HOSTNAME", "SHELL", "PWD", "LANG", "TERM"} {
		if os.Getenv(name) == value {
			return true
		}
	}
	if slices.Contains(strings.Split(os.Getenv("PATH"), string(os.PathListSeparator)), value) {
		return true
	}
	_, err := os.Stat(value)
	return err == nil
}

// secretWords are parts of names of what is secret.
var secretWords = []string{"auth", "cookie", "token", "secret", "key", "passw", "passphrase", "credential", "signature",
	"jwt", "bearer"}

// otherWords hold a part of a secret's name by chance.
var otherWords = strings.NewReplacer("authoriz", "auth", "authoris", "auth", "author", "", "keyboard", "", "keymap", "",
	"monkey", "", "tokenizer", "", "allow-credentials", "")

// secretName reports whether a name is typical of secrets.
func secretName(name string) bool {
	lower := otherWords.Replace(strings.ToLower(name))
	if slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(lower, word) }) {
		return true
	}
	parts := nameParts(name)
	if len(parts) < 2 {
		return false
	}
	last := parts[len(parts)-1]
	return last == "pass" || last == "pwd" || last == "pw"
}

// describing holds the last words of names that describe a secret, such as its place, without containing it.
var describing = []string{
	"alg", "algorithm", "audience", "count", "dir", "domain", "enabled", "endpoint", "env", "expiry", "file", "format",
	"header", "host", "issuer",
	"length", "limit", "method", "methods", "mode", "name", "path", "port", "prefix", "provider", "realm", "scope",
	"scopes", "size", "sock",
	"socket", "timeout", "ttl", "type", "user", "username", "var", "version",
}

// IsVariable reports whether a text looks like the name of an environment variable. In place of a name, a user may
// have given a value, and messages must not repeat that.
func IsVariable(text string) bool { return variable.MatchString(text) && !random(text) }

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func nameParts(name string) []string {
	return strings.FieldsFunc("_"+strings.ToLower(name), func(c rune) bool { return strings.ContainsRune("_-. ", c) })
}

// secretValue reports whether something of this name has a value that is secret.
func secretValue(name string) bool {
	parts := nameParts(name)
	return len(parts) > 0 && secretName(name) && !slices.Contains(describing, parts[len(parts)-1])
}

// random reports whether a word looks like a generated key, such as a secret part of a path: it is long, and mixes
// digits with letters. Names that people choose, such as a model of 20241022, keep them apart.
func random(word string) bool {
	const least, mixed = 20, 3
	letters, digits, changes := 0, 0, 0
	var before rune
	for _, c := range word {
		kind := '-'
		switch {
		case '0' <= c && c <= '9':
			digits++
			kind = '0'
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
			letters++
			kind = 'a'
		case !strings.ContainsRune("-_+=~", c):
			return false
		}
		if kind != before && kind != '-' && before != '-' && before != 0 {
			changes++
		}
		before = kind
	}
	return letters+digits >= least && letters >= mixed && digits >= mixed && changes >= mixed
}

// Add makes further secrets known. Those shorter than six characters cannot be
// told from other text and are left out.
func (r *Redactor) Add(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.secrets == nil {
		r.secrets = make(map[string]bool)
	}
	for _, s := range secrets {
		if s == Redacted {
			continue
		}
		// A query writes blanks in a way that is not an escape. A secret of several lines is found in records of
		// single lines as well.
		forms := []string{s, strings.ReplaceAll(s, " ", "+")}
		for line := range strings.Lines(s) {
			if line = strings.TrimSpace(line); len(line) >= 2*shortestSecret && !strings.HasPrefix(line, "-----") {
				forms = append(forms, line)
			}
		}
		for _, form := range forms {
			if len(form) >= shortestSecret && !r.secrets[form] {
				r.secrets[form] = true
				r.search = nil
			}
		}
	}
}

// AddEnv makes known what is secret in environment variables, each of the form
// NAME=value, by name or by looks. A target may repeat it, in its logs above all.
func (r *Redactor) AddEnv(env ...string) {
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		r.addNamed(name, value)
	}
}

// AddSettings makes known the values of a private section of a configuration, such as variables or headers. It also
// finds the value in a name that was written as NAME=value.
func (r *Redactor) AddSettings(section map[string]string) {
	for name, value := range section {
		r.addArg(name)
		r.addNamed(name, value)
		if !harmless(name) {
			r.addHeader(name, []string{value})
		}
	}
}

// AddArgs makes known what is secret in the arguments of a command: the values
// of options such as --api-key, of variables and headers, and in URLs, JSON and
// commands of a shell.
func (r *Redactor) AddArgs(args ...string) {
	for i, arg := range args {
		r.addArg(arg)
		if !strings.HasPrefix(arg, "-") || strings.Contains(arg, "=") || i+1 == len(args) ||
			strings.HasPrefix(args[i+1], "-") {
			continue
		}
		switch next := args[i+1]; arg {
		case "-u", "--user", "--proxy-user":
			r.addUser(next)
		default:
			if secretValue(arg) {
				r.addNamed(arg, next)
			}
		}
	}
}

func (r *Redactor) addUser(value string) {
	if user, password, ok := strings.Cut(value, ":"); ok && !ordinary(password) {
		r.Add(password)
		r.Add(basic(user, password)...)
	}
}

func (r *Redactor) addArg(arg string) {
	if name, value, ok := strings.Cut(arg, ":"); ok && secretName(name) && !strings.ContainsAny(name, ` =/"{`) &&
		!strings.HasPrefix(value, "//") {
		r.addHeader(name, []string{value})
		return
	}
	if u, err := url.Parse(arg); err == nil && u.Host != "" {
		r.addURL(u)
		return
	}
	if json.Valid([]byte(arg)) {
		r.addNamed("", arg)
		return
	}
	words := shellWords(arg)
	if len(words) < 2 {
		r.addNamed("", arg)
	}
	if name, value, ok := strings.Cut(arg, "="); ok && !strings.ContainsAny(name, " :/?&") {
		r.addNamed(name, value)
		r.addArg(value)
	}
	if len(words) > 1 {
		r.AddArgs(words...)
	}
}

// shellWords splits what may be a command of a shell.
func shellWords(s string) []string {
	var words []string
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	quote := rune(0)
	for _, c := range s {
		switch {
		case c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '"' || c == '\'' || c == '`':
			quote = c
		case strings.ContainsRune(" \t\n;&|()<>", c):
			end()
		default:
			word.WriteRune(c)
		}
	}
	end()
	return words
}

// AddHead makes known what is secret in the head of a request that somebody else
// has made: credentials in its header and, by their names or looks, in its URL,
// which may be nil. It adds up to a bound, as a peer can make up any number.
func (r *Redactor) AddHead(header http.Header, u *url.URL) {
	if r.full() {
		return
	}
	for name, values := range header {
		if !harmless(name) && secretName(name) {
			r.addHeader(name, values)
		}
	}
	if u == nil {
		return
	}
	r.addUserAndPath(u)
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(value); err == nil {
			r.addNamed(name, plain)
		}
	}
}

// maxLearned bounds the secrets that are taken from heads.
const maxLearned = 1000

func (r *Redactor) full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.secrets) >= maxLearned
}

func (r *Redactor) addHeader(name string, values []string) {
	for _, v := range values {
		v = strings.TrimSpace(v)
		for _, secret := range append(credentials(name, v), v) {
			if !ordinary(secret) && !strings.HasSuffix(secret, " "+Redacted) {
				r.Add(secret)
			}
		}
	}
}

func (r *Redactor) addUserAndPath(u *url.URL) {
	if u.User != nil {
		if password, ok := u.User.Password(); ok && password != Redacted {
			r.Add(password)
			r.Add(basic(u.User.Username(), password)...)
		} else if !ok {
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
}

func (r *Redactor) addURL(u *url.URL) {
	r.addUserAndPath(u)
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, found := strings.Cut(pair, "=")
		if !found {
			value = name
		}
		plain, err := url.QueryUnescape(value)
		if err != nil {
			plain = value
		}
		if !ordinary(plain) && (u.Scheme != "unix" || name != "path") {
			r.Add(plain)
		}
	}
}

// addNamed adds a value if its name or its looks say that it is secret, and
// what is secret in it if it is a URL or a JSON object. A file that holds a
// secret is not one itself.
func (r *Redactor) addNamed(name, value string) {
	if u, err := url.Parse(value); err == nil && u.Host != "" {
		r.addURL(u)
		return
	}
	if strings.HasPrefix(strings.TrimSpace(value), "{") {
		var members map[string]any
		if json.Unmarshal([]byte(value), &members) == nil {
			r.addMembers(members)
		}
	}
	if (secretValue(name) || random(value)) && !ordinary(value) {
		r.addHeader(name, []string{value})
	}
}

// addMembers adds what is secret in a JSON object.
func (r *Redactor) addMembers(members map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		switch v := members[name].(type) {
		case string:
			r.addNamed(name, v)
		case map[string]any:
			r.addMembers(v)
		case []any:
			for _, item := range v {
				r.addMembers(map[string]any{name: item})
			}
		}
	}
}
