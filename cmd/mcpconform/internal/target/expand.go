package target

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/transport"
)

// Expand replaces ${env:NAME}, ${NAME} and ${NAME:-default} in a text with what
// lookup finds. A variable that is not set and has no default is an error that
// names it.
func Expand(text string, lookup func(string) (string, bool)) (string, error) {
	return (&expander{Options: Options{Lookup: lookup}}).expand(text)
}

type expander struct {
	Options
	file    string // "" where there is no workspace
	inputs  map[string]input
	secrets []string // values that were read from files, or asked for
}

// reference matches the references in files of clients: opencode writes {env:NAME} and {file:PATH}, Continue ${{
// secrets.NAME }}, the others ${env:NAME}.
var reference = regexp.MustCompile(`\$\{\{[^{}]*\}\}|\$\{[^{}]*\}|\{(?:env|file):[^{}]*\}`)

func (e *expander) expand(text string) (string, error) {
	var failed error
	expanded := reference.ReplaceAllStringFunc(text, func(found string) string {
		value, err := e.value(strings.TrimSpace(strings.Trim(strings.TrimPrefix(found, "$"), "{}")),
			strings.HasPrefix(found, "${{"))
		if err != nil && failed == nil {
			failed = err
		}
		return value
	})
	return expanded, failed
}

func (e *expander) value(inner string, templated bool) (string, error) {
	if id, ok := strings.CutPrefix(inner, "input:"); ok && e.file != "" {
		return e.input(id)
	}
	if path, ok := strings.CutPrefix(inner, "file:"); ok && e.file != "" {
		return e.content(path)
	}
	if name, ok := strings.CutPrefix(inner, "secrets."); ok && templated {
		return e.secret(name)
	}
	switch {
	case inner == "userHome":
		return os.UserHomeDir()
	case inner == "pathSeparator", inner == "/":
		return string(filepath.Separator), nil
	case e.file != "" && inner == "workspaceFolder":
		return e.workspace(), nil
	case e.file != "" && inner == "workspaceFolderBasename":
		return filepath.Base(e.workspace()), nil
	}
	name, fallback, optional := strings.Cut(strings.TrimPrefix(inner, "env:"), ":-")
	if kind, _, found := strings.Cut(name, ":"); found && transport.IsVariable(kind) {
		return "", fmt.Errorf("only the client can fill in ${%s:…}; write its value, or a variable such as ${env:NAME}",
			kind)
	}
	if v, ok := e.Lookup(name); ok && (v != "" || !optional) {
		return v, nil
	}
	if optional {
		return fallback, nil
	}
	return "", unset(name)
}

// unset returns the error about a variable that is not set, and does not show what cannot be
// the name of one.
func unset(name string) error {
	if !transport.IsVariable(name) {
		return errors.New("the text is not the name of an environment variable; set a variable to the value " +
			"and give its name")
	}
	return fmt.Errorf("the environment variable %s is not set", name)
}

// inputVariable is the environment variable that holds the value of an input.
func inputVariable(id string) string {
	return "MCPCONFORM_INPUT_" + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, id)
}

// input returns a value for which the client asks its user.
func (e *expander) input(id string) (string, error) {
	in, declared := e.inputs[id]
	value, ok := e.Inputs[id]
	if !ok {
		value, ok = e.Lookup(inputVariable(id))
	}
	if !ok && in.hasPreset {
		return in.preset, nil
	}
	if !ok {
		asked := ""
		if in.description != "" {
			asked = fmt.Sprintf(" (%q)", in.description)
		}
		return "",
			fmt.Errorf("${input:%s} is a value that the client asks its user for%s; set the environment variable "+
				"%s, or give --input %s=VALUE",
				id, asked, inputVariable(id), id)
	}
	if in.password || !declared {
		e.secrets = append(e.secrets, value)
	}
	return value, nil
}

// secret returns a value that the client keeps for its user.
func (e *expander) secret(name string) (string, error) {
	v, ok := e.Lookup(name)
	if !ok {
		return "", fmt.Errorf("the client keeps the secret %s; set the environment variable %s", name, name)
	}
	e.secrets = append(e.secrets, v)
	return v, nil
}

// maxContent bounds a file whose content is a value, or a file of variables.
const maxContent = 64 << 10

// content returns what a file holds, without the blanks around it.
func (e *expander) content(path string) (string, error) {
	raw, err := bounded(e.path(path), maxContent)
	if err != nil {
		return "", fmt.Errorf("{file:%s}: %w", path, err)
	}
	text := strings.TrimSpace(string(raw))
	e.secrets = append(e.secrets, text)
	return text, nil
}

// path returns the path of a file that is named relative to the configuration.
func (e *expander) path(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(e.file), name)
}

// workspace returns the folder that the file is about: its own, or the one
// above a client's folder of settings.
func (e *expander) workspace() string {
	dir, err := filepath.Abs(filepath.Dir(e.file))
	if err != nil {
		return filepath.Dir(e.file)
	}
	if slices.Contains(settingsFolders, filepath.Base(dir)) {
		return filepath.Dir(dir)
	}
	return dir
}

// settingsFolders are those of clients, inside of a workspace.
var settingsFolders = []string{".vscode", ".cursor", ".zed", ".codex", ".gemini", ".roo", ".kiro", ".opencode",
	".continue"}

// plainVariable is a whole value in the form of Gemini CLI.
var plainVariable = regexp.MustCompile(`^\$[A-Za-z_][A-Za-z0-9_]*$`)

// fill fills in what the server refers to.
func (s *Server) fill(e *expander, from *entry) error {
	for name, t := range map[string]*string{"url": &s.URL, "cwd": &s.Dir} {
		var err error
		if *t, err = e.expand(*t); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for i := range s.Command {
		var err error
		if s.Command[i], err = e.expand(s.Command[i]); err != nil {
			return fmt.Errorf("command: %w", err)
		}
	}
	for member, values := range map[string]map[string]string{"env": s.Env, "headers": s.Headers} {
		for _, k := range slices.Sorted(maps.Keys(values)) {
			v, err := e.expand(values[k])
			if plainVariable.MatchString(v) {
				if set, ok := e.Lookup(v[1:]); ok {
					v = set
				}
			}
			if err != nil {
				return fmt.Errorf("%s: %s: %w", member, k, err)
			}
			values[k] = v
		}
	}
	if err := s.fillVariables(e, from); err != nil {
		return err
	}
	if s.Dir != "" && !filepath.IsAbs(s.Dir) {
		s.Dir = filepath.Join(e.workspace(), s.Dir)
	}
	s.Secrets = e.secrets
	return nil
}

// fillVariables adds variables that other files or our environment hold.
func (s *Server) fillVariables(e *expander, from *entry) error {
	if from.bearer != "" {
		token, ok := e.Lookup(from.bearer)
		if !ok {
			return fmt.Errorf("bearer_token_env_var: %w", unset(from.bearer))
		}
		addHeader(&s.Headers, "Authorization", "Bearer "+token)
	}
	for _, header := range slices.Sorted(maps.Keys(from.envHeaders)) {
		v, ok := e.Lookup(from.envHeaders[header])
		if !ok {
			return fmt.Errorf("env_http_headers: %w", unset(from.envHeaders[header]))
		}
		addHeader(&s.Headers, header, v)
	}
	add := func(name, value string) {
		if s.Env == nil {
			s.Env = make(map[string]string)
		}
		if _, given := s.Env[name]; !given {
			s.Env[name] = value
		}
	}
	for _, name := range slices.Concat(from.needed, from.passed) {
		v, ok := e.Lookup(name)
		if !ok && slices.Contains(from.needed, name) {
			return fmt.Errorf("env_keys: the client keeps this secret: %w", unset(name))
		}
		if ok {
			add(name, v)
		}
	}
	if from.envFile == "" {
		return nil
	}
	path, err := e.expand(from.envFile)
	if err == nil {
		path = e.path(path)
		var raw []byte
		if raw, err = bounded(path, maxContent); err == nil {
			var values map[string]string
			if values, err = variables(string(raw)); err == nil {
				for name, value := range values {
					add(name, value)
				}
			}
		}
	}
	if err != nil {
		return fmt.Errorf("envFile: %w", err)
	}
	return nil
}

// variables reads a file of lines NAME=value.
func variables(text string) (map[string]string, error) {
	values := make(map[string]string)
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(line, "\ufeff")), "export ")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, found := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); !found || name == "" {
			return nil, fmt.Errorf("line %d is not NAME=value", n)
		}
		value = strings.TrimSpace(value)
		switch quote := value; {
		case len(quote) > 1 && quote[0] == '"' && strings.LastIndexByte(quote, '"') > 0:
			value = strings.NewReplacer(`\n`, "\n", `\"`, `"`, `\\`,
				`\`).Replace(quote[1:strings.LastIndexByte(quote, '"')])
		case len(quote) > 1 && quote[0] == '\'' && strings.LastIndexByte(quote, '\'') > 0:
			value = quote[1:strings.LastIndexByte(quote, '\'')]
		default:
			value, _, _ = strings.Cut(quote, " #")
			value = strings.TrimSpace(value)
		}
		values[name] = value
	}
	return values, nil
}

// plain blanks out what the JSON of such files has beyond JSON: a byte order
// mark, comments, and commas before a closing bracket. Offsets and lines stay.
func plain(raw []byte) []byte {
	out := append([]byte(nil), raw...)
	blank := func(from, to int) {
		for i := from; i < to; i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
	}
	if strings.HasPrefix(string(out), "\ufeff") {
		blank(0, len("\ufeff"))
	}
	comma := -1
	for i := 0; i < len(out); i++ {
		rest := string(out[i:min(i+2, len(out))])
		switch {
		case out[i] == '"':
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
			comma = -1
		case rest == "//":
			end := i
			for end < len(out) && out[end] != '\n' {
				end++
			}
			blank(i, end)
			i = end - 1
		case rest == "/*":
			end := len(out)
			if n := strings.Index(string(out[i+2:]), "*/"); n >= 0 {
				end = i + 2 + n + 2
			}
			blank(i, end)
			i = end - 1
		case out[i] == ',':
			comma = i
		case out[i] == '}', out[i] == ']':
			if comma >= 0 {
				out[comma] = ' '
			}
			comma = -1
		case !strings.ContainsRune(" \t\r\n", rune(out[i])):
			comma = -1
		}
	}
	return out
}

// place adds line and column to an error of the JSON decoder.
func place(raw []byte, err error) error {
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	offset := int64(-1)
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &mismatch):
		offset = mismatch.Offset
	}
	if offset < 0 || offset > int64(len(raw)) {
		return err
	}
	before := string(raw[:offset])
	line := strings.Count(before, "\n") + 1
	column := max(1, len(before)-strings.LastIndex(before, "\n")-1)
	return fmt.Errorf("line %d, column %d: %w", line, column, err)
}
