// Package target finds a server in the configuration files of MCP clients: those with
// mcpServers (Claude Desktop, Claude Code, Cursor, Windsurf, Gemini CLI, Cline …) and those
// of VS Code, opencode, Zed, Codex, Continue and Goose.
package target

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

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
	// Timeout is how long the client waits for an answer, and StartTimeout how long for the start of
	// the server; zero if the file does not say.
	Timeout, StartTimeout time.Duration
	// Secrets are values that came from other files or were asked for.
	Secrets []string
	// Notes say what of the file is not used, and what to do about it.
	Notes []string
}

// DisabledError reports that the file disables the server.
type DisabledError struct{ File, Name, Because string }

func (e *DisabledError) Error() string {
	return fmt.Sprintf("%s: the file disables the server %q (%s); enable it there, or give its command or --url "+
		"instead of --from",
		e.File, e.Name, e.Because)
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

// Options say where values come from that the file refers to.
type Options struct {
	// Lookup returns a variable of the environment.
	Lookup func(string) (string, bool)
	// Inputs are the values for which a client would ask its user, by id.
	Inputs map[string]string
}

// Load returns the named server of a file, or with an empty name the only one, or the only one that the file does not
// disable. References such as ${env:NAME} or {file:PATH} are filled in. The error is a *DisabledError if the server is
// disabled. It is an *UnnamedError if the name does not settle it. Errors and notes show no secret of the server.
func Load(path, name string, o Options) (Server, error) {
	f, err := read(path)
	if err != nil {
		return Server{}, err
	}
	unnamed := &UnnamedError{File: path, Name: name, Servers: slices.Sorted(maps.Keys(f.servers))}
	if name == "" {
		name = f.only(unnamed.Servers)
	}
	found, ok := f.servers[name]
	if !ok {
		return Server{}, unnamed
	}
	e, because, err := f.entry(name)
	if err == nil && because != "" {
		return Server{}, &DisabledError{path, name, because}
	}
	redactor := transport.NewRedactor(nil, "")
	hide(redactor, found)
	var s Server
	if err == nil {
		s, err = e.server()
	}
	s.Name = name
	if err == nil {
		err = s.fill(&expander{Options: o, file: path, inputs: f.inputs}, e)
	}
	if err != nil {
		return Server{}, fmt.Errorf("%s: %s.%s: %s", path, f.at, name, redactor.String(err.Error()))
	}
	for _, note := range f.notes {
		s.Notes = append(s.Notes, path+": "+note)
	}
	for _, note := range e.unused() {
		s.Notes = append(s.Notes, fmt.Sprintf("%s: %s.%s.%s", path, f.at, name, redactor.String(note)))
	}
	return s, nil
}

// entry returns the entry of a server, and why the file disables the server, or "".
func (f *file) entry(name string) (e *entry, because string, err error) {
	e = &entry{members: f.servers[name], left: maps.Clone(f.servers[name])}
	because, err = e.disabled()
	if slices.Contains(f.excluded, name) {
		because = "it is not among the servers that the member mcp allows"
	}
	return e, because, err
}

// only returns the one of some servers that is taken if none is named: the only one, or the only one that the
// file does not disable; "" if there is none.
func (f *file) only(names []string) string {
	enabled := slices.Clone(names)
	if len(names) > 1 {
		enabled = slices.DeleteFunc(enabled, func(name string) bool {
			_, because, err := f.entry(name)
			return err == nil && because != ""
		})
	}
	if len(enabled) != 1 {
		return ""
	}
	return enabled[0]
}

// private are the members the values of which are not shown, whatever their names are.
var private = []string{"env", "environment", "envs", "headers", "http_headers"}

// hide makes the secrets in an object of a file known. A reference is not a secret.
func hide(r *transport.Redactor, o object) {
	o = maps.Clone(o)
	delete(o, "env_http_headers") // names of variables
	if text, err := json.Marshal(o); err == nil {
		r.AddArgs(string(text)) // all that names or looks tell
	}
	for name, v := range o {
		r.AddArgs(name) // NAME=value for one
		switch v := v.(type) {
		case object:
			if slices.Contains(private, name) {
				section := make(map[string]string, len(v))
				for name, value := range v {
					section[name] = reference.ReplaceAllString(fmt.Sprint(value), "")
				}
				r.AddSettings(section)
			}
			hide(r, v)
		case []any:
			r.AddArgs(wire.Strings(v)...)
		}
	}
}

// Names returns the names of all servers of a file, sorted.
func Names(path string) ([]string, error) {
	f, err := read(path)
	if err != nil {
		return nil, err
	}
	if len(f.servers) == 0 {
		return nil, &UnnamedError{File: path}
	}
	return slices.Sorted(maps.Keys(f.servers)), nil
}

var (
	errNothing = errors.New("the entry has neither a command nor a url")
	errBoth    = errors.New("the entry has both a command and a url")
)
