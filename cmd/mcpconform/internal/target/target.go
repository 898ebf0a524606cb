// Package target finds a server in the configuration files of MCP clients:
// mcpServers files (Claude Desktop, Claude Code's .mcp.json, Cursor …), VS Code's
// mcp.json and settings.json, and opencode.json.
package target

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxBytes bounds a file.
const maxBytes = 4 << 20

// Server is how a client starts or reaches one server: with a command over
// stdio or, if Command is empty, at a URL.
type Server struct {
	Name    string
	Command []string          // program and arguments
	Env     map[string]string // added to the environment
	Dir     string            // working directory, or "" for ours
	URL     string
	Headers map[string]string
	// Transport is "http" or "sse" if the file says which is at the URL, else "".
	Transport string
	// Disabled says that the client does not start the server.
	Disabled bool
}

// UnnamedError reports that a file has several servers, or not the one asked for.
type UnnamedError struct {
	File, Name string   // Name is "" if none was asked for
	Servers    []string // that the file has, sorted
}

func (e *UnnamedError) Error() string {
	names := strings.Join(e.Servers, ", ")
	switch {
	case len(e.Servers) == 0:
		return e.File + ": the file does not name a server"
	case e.Name == "":
		return fmt.Sprintf("%s: the file names several servers; choose one with --name: %s", e.File, names)
	}
	return fmt.Sprintf("%s: no server is called %q; the file has %s", e.File, e.Name, names)
}

// Load returns the named server of a file, or with an empty name the only one.
// Variables such as ${env:NAME}, ${NAME} and ${NAME:-default} are expanded with
// lookup. The error is an *UnnamedError if the name does not settle it.
func Load(file, name string, lookup func(string) (string, bool)) (Server, error) {
	servers, err := read(file)
	if err != nil {
		return Server{}, err
	}
	unnamed := &UnnamedError{File: file, Name: name, Servers: slices.Sorted(maps.Keys(servers))}
	if name == "" && len(servers) == 1 {
		name = unnamed.Servers[0]
	}
	raw, ok := servers[name]
	if !ok {
		return Server{}, unnamed
	}
	s, err := parse(raw)
	if err == nil {
		s.Name = name
		err = s.expand(expander{lookup: lookup, file: file})
	}
	if err != nil {
		return Server{}, fmt.Errorf("%s: server %q: %w", file, name, err)
	}
	return s, nil
}

// Names returns the names of all servers of a file, sorted.
func Names(file string) ([]string, error) {
	servers, err := read(file)
	if err != nil {
		return nil, err
	}
	if len(servers) == 0 {
		return nil, &UnnamedError{File: file}
	}
	return slices.Sorted(maps.Keys(servers)), nil
}

// read returns the entries of a file by name.
func read(file string) (map[string]json.RawMessage, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if len(raw) > maxBytes {
		return nil, fmt.Errorf("%s: the file is longer than %d bytes", file, maxBytes)
	}
	servers, err := servers(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return servers, nil
}

// servers returns the entries of a file by name.
func servers(raw []byte) (map[string]json.RawMessage, error) {
	raw = plain(raw)
	var top map[string]json.RawMessage
	if err := json.Unmarshal(raw, &top); err != nil {
		return nil, place(raw, err)
	}
	for _, member := range []string{"mcpServers", "servers", "mcp"} {
		value, ok := top[member]
		if !ok {
			continue
		}
		var entries map[string]json.RawMessage
		if err := json.Unmarshal(value, &entries); err != nil {
			return nil, fmt.Errorf("the member %s is not an object", member)
		}
		// VS Code's settings have the list one level below.
		var below map[string]json.RawMessage
		if member == "mcp" && json.Unmarshal(entries["servers"], &below) == nil && below["type"] == nil {
			return below, nil
		}
		return entries, nil
	}
	return nil, errors.New("the file has none of the members mcpServers, servers and mcp")
}

// entry is an entry of any of the formats.
type entry struct {
	Type        string            `json:"type"`
	Transport   string            `json:"transport"`
	Command     words             `json:"command"`
	Args        []string          `json:"args"`
	Env         map[string]scalar `json:"env"`
	Environment map[string]scalar `json:"environment"`
	Cwd         string            `json:"cwd"`
	URL         string            `json:"url"`
	ServerURL   string            `json:"serverUrl"`
	HTTPURL     string            `json:"httpUrl"`
	Headers     map[string]scalar `json:"headers"`
	Disabled    bool              `json:"disabled"`
	Enabled     *bool             `json:"enabled"` // opencode.json
}

// words is a program's name, or a list of it and its arguments.
type words []string

func (w *words) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*w = nil
		if one != "" {
			*w = words{one}
		}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(w))
}

// scalar is a string; clients take numbers and booleans for one as well.
type scalar string

func (s *scalar) UnmarshalJSON(raw []byte) error {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	switch v := v.(type) {
	case string:
		*s = scalar(v)
	case bool, float64:
		*s = scalar(raw)
	case nil:
		*s = ""
	default:
		return errors.New("a value is neither text nor number")
	}
	return nil
}

func texts(m ...map[string]scalar) map[string]string {
	var all map[string]string
	for _, m := range m {
		for k, v := range m {
			if all == nil {
				all = make(map[string]string)
			}
			all[k] = string(v)
		}
	}
	return all
}

func parse(raw []byte) (Server, error) {
	var e entry
	if err := json.Unmarshal(raw, &e); err != nil {
		return Server{}, err
	}
	s := Server{Env: texts(e.Env, e.Environment), Dir: e.Cwd, Headers: texts(e.Headers), Disabled: e.Disabled || e.Enabled != nil && !*e.Enabled}
	if len(e.Command) > 0 {
		s.Command = append(slices.Clone([]string(e.Command)), e.Args...)
	}
	for _, u := range []string{e.URL, e.ServerURL, e.HTTPURL} {
		if s.URL == "" {
			s.URL = u
		}
	}
	kind := e.Type
	if kind == "" {
		kind = e.Transport
	}
	switch strings.ToLower(kind) {
	case "sse":
		s.Transport = "sse"
	case "http", "streamable-http", "streamablehttp", "streamable_http":
		s.Transport = "http"
	}
	switch {
	case len(s.Command) == 0 && s.URL == "":
		return s, errors.New("the entry has neither a command nor a url")
	case len(s.Command) > 0 && s.URL != "":
		return s, errors.New("the entry has both a command and a url")
	}
	return s, nil
}

func (s *Server) expand(e expander) error {
	texts := []*string{&s.URL, &s.Dir}
	for i := range s.Command {
		texts = append(texts, &s.Command[i])
	}
	for _, t := range texts {
		var err error
		if *t, err = e.expand(*t); err != nil {
			return err
		}
	}
	for _, m := range []map[string]string{s.Env, s.Headers} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			v, err := e.expand(m[k])
			if err != nil {
				return fmt.Errorf("%s: %w", k, err)
			}
			m[k] = v
		}
	}
	if s.Dir != "" && !filepath.IsAbs(s.Dir) {
		s.Dir = filepath.Join(e.workspace(), s.Dir)
	}
	return nil
}
