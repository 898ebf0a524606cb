package target

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// entry is one server of a file, in the form of any client.
type entry struct {
	members object
	left    object // members that nothing has read yet
	// These values are looked up or read once the server is known to be run.
	envFile        string
	bearer         string            // name of the variable that holds an access token
	envHeaders     map[string]string // name of the variable by header
	passed, needed []string          // names of variables that the server gets; needed ones have to be set
}

// take returns the first of some members that is there.
func (e *entry) take(names ...string) (v any, name string) {
	for _, n := range names {
		if e.members[n] != nil && v == nil {
			v, name = e.members[n], n
		}
		delete(e.left, n)
	}
	return v, name
}

func (e *entry) text(names ...string) (string, error) {
	v, name := e.take(names...)
	if v == nil {
		return "", nil
	}
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("%s: the value is not a text", name)
	}
	return s, nil
}

// flag returns a member that is true or false; given is false if it is not there.
func (e *entry) flag(name string) (value, given bool, err error) {
	v, _ := e.take(name)
	if v == nil {
		return false, false, nil
	}
	value, ok := v.(bool)
	if !ok {
		return false, true, fmt.Errorf("%s: the value is neither true nor false", name)
	}
	return value, true, nil
}

// disabled says by which member the server is disabled, or "".
func (e *entry) disabled() (string, error) {
	because := ""
	for _, name := range []string{"disabled", "enabled", "isActive"} {
		value, given, err := e.flag(name)
		if err != nil {
			return "", err
		}
		if given && value == (name == "disabled") {
			because = fmt.Sprintf("%s: %v", name, value)
		}
	}
	return because, nil
}

// server reads the members. Nothing is filled in yet.
func (e *entry) server() (s Server, err error) {
	if e.members["source"] == "extension" {
		return s,
			errors.New("source: the server comes from an extension of the client, which mcpconform does not " +
				"have; give its command or --url instead of --from")
	}
	if s.Transport, err = e.kind(); err != nil {
		return s, err
	}
	if s.Command, err = e.command(&s); err != nil {
		return s, err
	}
	for _, name := range []string{"url", "serverUrl", "httpUrl", "uri"} {
		u, err := e.text(name)
		if err != nil {
			return s, err
		}
		if s.URL == "" && u != "" {
			s.URL = u
			if name == "httpUrl" {
				s.Transport = "http"
			}
		}
	}
	switch {
	case len(s.Command) == 0 && s.URL == "":
		return s, errNothing
	case len(s.Command) > 0 && s.URL != "":
		return s, errBoth
	}
	if s.Dir, err = e.text("cwd", "workingDirectory"); err != nil {
		return s, err
	}
	if e.envFile, err = e.text("envFile"); err != nil {
		return s, err
	}
	if err := e.variables(&s); err != nil {
		return s, err
	}
	if err := e.headers(&s); err != nil {
		return s, err
	}
	s.Timeout, s.StartTimeout, err = e.timeouts()
	return s, err
}

// kind returns the transport that the entry names, if it is over HTTP.
func (e *entry) kind() (string, error) {
	kind, err := e.text("type")
	over, overErr := e.text("transport")
	if err != nil || overErr != nil {
		return "", errors.New("type: the value is not a text")
	}
	if kind == "" {
		kind = over
	}
	switch strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(kind)) {
	case "sse":
		return "sse", nil
	case "http", "streamablehttp":
		return "http", nil
	case "", "stdio", "local", "remote", "command", "ws", "websocket":
		return "", nil
	}
	return "",
		fmt.Errorf("type: servers of the type %q run inside the client; mcpconform tests those with a command or a url",
			kind)
}

// command returns the program and its arguments.
func (e *entry) command(s *Server) ([]string, error) {
	v, name := e.take("command", "cmd")
	args, given := e.take("args")
	var words []string
	switch v := v.(type) {
	case nil:
	case string:
		if v != "" {
			words = []string{v}
		}
	case []any:
		var err error
		if words, err = strs(v); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	case object: // of earlier versions of Zed
		inner := &entry{members: v, left: maps.Clone(v)}
		path, err := inner.text("path", "command")
		if err != nil || path == "" {
			return nil, fmt.Errorf("%s: the object has no path", name)
		}
		words = []string{path}
		if list, _ := inner.take("args"); list != nil {
			args, given = list, name+".args"
		}
		if err := inner.variables(s); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	default:
		return nil, fmt.Errorf("%s: the value is neither a text nor a list of texts", name)
	}
	if args == nil || len(words) == 0 {
		return words, nil
	}
	list, ok := args.([]any)
	if !ok {
		return nil, fmt.Errorf("%s: the value is not a list", given)
	}
	more, err := strs(list)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", given, err)
	}
	return append(words, more...), nil
}

// variables reads what is added to the environment.
func (e *entry) variables(s *Server) error {
	for _, name := range []string{"env", "environment", "envs"} {
		v, _ := e.take(name)
		if err := addTexts(&s.Env, v); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, name := range []string{"env_keys", "env_vars"} {
		into := &e.passed
		if name == "env_keys" {
			into = &e.needed
		}
		v, _ := e.take(name)
		list, ok := v.([]any)
		if v != nil && !ok {
			return fmt.Errorf("%s: the value is not a list", name)
		}
		for _, item := range list {
			if named, ok := item.(object); ok { // with the place that it comes from
				item = named["name"]
			}
			variable, ok := item.(string)
			if !ok {
				return fmt.Errorf("%s: an item is not the name of a variable", name)
			}
			*into = append(*into, variable)
		}
	}
	return nil
}

// headers reads what is sent with each request.
func (e *entry) headers(s *Server) error {
	for _, name := range []string{"headers", "http_headers", "requestOptions"} {
		v, _ := e.take(name)
		if name == "requestOptions" {
			options, _ := v.(object)
			v = options["headers"]
		}
		if err := addTexts(&s.Headers, v); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	v, _ := e.take("env_http_headers")
	if err := addTexts(&e.envHeaders, v); err != nil {
		return fmt.Errorf("env_http_headers: %w", err)
	}
	key, err := e.text("apiKey")
	if err != nil {
		return err
	}
	if key != "" && s.URL != "" {
		addHeader(&s.Headers, "Authorization", "Bearer "+key)
	}
	e.bearer, err = e.text("bearer_token_env_var")
	return err
}

// addHeader adds a header that is not there yet.
func addHeader(to *map[string]string, name, value string) {
	for given := range *to {
		if strings.EqualFold(given, name) {
			return
		}
	}
	if *to == nil {
		*to = make(map[string]string)
	}
	(*to)[name] = value
}

// timeouts returns the longest time that the client allows for an answer, and that for the start of the
// server; zero if the entry does not say.
func (e *entry) timeouts() (answer, start time.Duration, err error) {
	longer := func(longest *time.Duration, name string, v any, unit time.Duration) error {
		if v == nil {
			return nil
		}
		n, ok := number(v)
		if !ok || n < 0 || n > math.MaxInt32 {
			return fmt.Errorf("%s: the value is not a time", name)
		}
		if unit == 0 { // clients differ in what they count
			if unit = time.Second; n >= 1000 {
				unit = time.Millisecond
			}
		}
		*longest = max(*longest, time.Duration(n*float64(unit)))
		return nil
	}
	for _, m := range []struct {
		name string
		of   *time.Duration
		unit time.Duration
	}{
		{"timeout", &answer, 0}, {"tool_timeout_sec", &answer, time.Second},
		{"startup_timeout_sec", &start, time.Second}, {"startup_timeout_ms", &start, time.Millisecond},
		{"connectionTimeout", &start, time.Millisecond}, {"initTimeout", &start, time.Millisecond},
	} {
		v, _ := e.take(m.name)
		if split, ok := v.(object); ok && m.name == "timeout" {
			for _, part := range slices.Sorted(maps.Keys(split)) {
				of := &answer
				if part == "startup" {
					of = &start
				}
				if err := longer(of, "timeout."+part, split[part], time.Millisecond); err != nil {
					return 0, 0, err
				}
			}
			continue
		}
		if err := longer(m.of, m.name, v, m.unit); err != nil {
			return 0, 0, err
		}
	}
	return answer, start, nil
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case json.Number:
		n, err := v.Float64()
		return n, err == nil
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case int:
		return float64(v), true
	case float64:
		return v, !math.IsNaN(v)
	}
	return 0, false
}

// strs returns a list of texts.
func strs(list []any) ([]string, error) {
	all := make([]string, len(list))
	for i, item := range list {
		s, ok := item.(string)
		if !ok {
			return nil, fmt.Errorf("item %d is not a text", i+1)
		}
		all[i] = s
	}
	return all, nil
}

// addTexts adds the members of an object. Clients take numbers and booleans for texts, too.
func addTexts(to *map[string]string, v any) error {
	members, ok := v.(object)
	if v != nil && !ok {
		return errors.New("the value is not an object")
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		var s string
		switch v := members[name].(type) {
		case nil:
		case string:
			s = v
		case bool:
			s = strconv.FormatBool(v)
		case json.Number:
			s = v.String()
		default:
			n, ok := number(v)
			if !ok {
				return fmt.Errorf("%s: the value is neither text nor number", name)
			}
			s = strconv.FormatFloat(n, 'g', -1, 64)
		}
		if *to == nil {
			*to = make(map[string]string)
		}
		(*to)[name] = s
	}
	return nil
}

// harmless are members that say nothing about how a server is started or reached.
var harmless = []string{
	"name", "title", "description", "display_name", "displayName", "note", "notes", "comment", "tags", "version",
	"icon", "iconUrl", "iconPath", "logoUrl",
	"provider", "providerUrl", "gallery", "registryUrl", "serverInstructions", "instructions", "chatMenu",
	"extensionName", "bundled", "dev", "source", "settings", "remote",
	"autoApprove", "alwaysAllow", "trust", "required", "tools", "includeTools", "excludeTools", "enabledTools",
	"disabledTools", "enabled_tools", "disabled_tools",
	"available_tools", "approval", "default_tools_approval_mode", "supports_parallel_tool_calls", "autoStart",
	"startup", "readOnly", "args", "faviconUrl",
}

// useless are members that mcpconform cannot follow, with what to do instead.
var useless = map[string]string{
	"oauth": signIn, "auth": signIn, "authorization": signIn, "authProviderType": signIn, "scopes": signIn,
	"oauth_resource": signIn, "useOAuth": signIn,
	"headersHelper":   "is a program that makes headers, which is not run; give the headers with --header",
	"bearer_token":    "is not used, as the client refuses it too; name a variable with bearer_token_env_var",
	"sandbox":         unboxed,
	"sandboxEnabled":  unboxed,
	"identity_config": signIn,
}

const (
	signIn = "is not used, because mcpconform logs in by itself; give a client with --client-id, or an access " +
		"token with --bearer-env"
	unboxed = "is not used: the server runs without the sandbox of the client"
)

// unused names the members that nothing has read, with advice.
func (e *entry) unused() []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(e.left)) {
		v := e.left[name]
		switch {
		case slices.Contains(harmless, name), strings.HasPrefix(name, "_"), strings.HasPrefix(name, "$"),
			strings.HasPrefix(name, "//"), v == nil, v == false:
		case useless[name] != "":
			all = append(all, name+" "+useless[name])
		default:
			all = append(all, name+" is not known here and is left out; if the server needs it, give it with a flag")
		}
	}
	return all
}
