package target

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/mcpconform/mcpconform/internal/yamlfile"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// maxBytes bounds a configuration file.
const maxBytes = 4 << 20

// object is a decoded object of a file, whatever its format: strings, bools, []any,
// map[string]any and numbers.
type object = map[string]any

// file is a client's configuration.
type file struct {
	path string
	// at is where the servers are, such as mcpServers, for messages.
	at      string
	servers map[string]object
	inputs  map[string]input // of VS Code, by id
	notes   []string
	// excluded names servers that the file leaves out elsewhere.
	excluded []string
}

// places are the members that hold servers, in the order in which they are looked for.
var places = []string{"mcpServers", "servers", "mcp", "context_servers", "mcp_servers", "amp.mcpServers", "extensions"}

// bounded reads a regular file of at most so many bytes.
func bounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder, not a file", path)
	}
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if int64(len(raw)) > most {
		return nil, fmt.Errorf("%s: the file is longer than %d bytes", path, most)
	}
	return raw, nil
}

// read reads a configuration file. Its errors name the file.
func read(path string) (*file, error) {
	raw, err := bounded(path, maxBytes)
	if err != nil {
		return nil, err
	}
	f := &file{path: path}
	top, err := decode(path, raw)
	if err == nil {
		err = f.find(top)
	}
	if err != nil && !strings.HasPrefix(err.Error(), path) {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return f, err
}

// decode reads TOML or YAML, as the name of the file says, or else JSON, in which comments are allowed.
func decode(path string, raw []byte) (object, error) {
	var top object
	switch strings.ToLower(filepath.Ext(path)) {
	case ".toml":
		err := toml.Unmarshal(raw, &top)
		if at := (*toml.DecodeError)(nil); errors.As(err, &at) {
			line, column := at.Position()
			return nil, fmt.Errorf("line %d, column %d: %w", line, column, err)
		}
		return top, err
	case ".yaml", ".yml":
		f, err := yamlfile.Parse(path, raw)
		if err == nil {
			err = f.Decode(&top)
		}
		return top, err
	}
	raw = plain(raw)
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&top); err != nil {
		return nil, place(raw, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the file has something after its object")
	}
	return top, nil
}

// find finds the servers in the file.
func (f *file) find(top object) error {
	var found []string
	for _, member := range places {
		list, ok := top[member]
		if !ok {
			continue
		}
		servers, at, err := entries(member, list)
		if err != nil {
			return err
		}
		if servers == nil {
			continue
		}
		if found = append(found, at); len(found) > 1 {
			f.notes = append(f.notes,
				fmt.Sprintf("the servers of the member %s are left out, because the file has %s as well", at, found[0]))
			continue
		}
		f.at, f.servers, f.inputs = at, servers, inputs(top["inputs"])
		if settings, ok := list.(object); ok && at == "mcp.servers" {
			f.inputs = inputs(settings["inputs"])
		}
	}
	if len(found) == 0 {
		return fmt.Errorf("the file has none of the members %s and %s; mcpconform looks for servers only in these",
			strings.Join(places[:len(places)-1], ", "), places[len(places)-1])
	}
	f.folder(top)
	// Gemini CLI names servers that it does not start.
	if settings, ok := top["mcp"].(object); ok && f.at == "mcpServers" {
		f.excluded = wire.Strings(settings["excluded"])
		if allowed := wire.Strings(settings["allowed"]); len(allowed) > 0 {
			for name := range f.servers {
				if !slices.Contains(allowed, name) {
					f.excluded = append(f.excluded, name)
				}
			}
		}
	}
	return nil
}

// folder adds the servers that Claude Code keeps for single folders, of which only those of
// the current one are meant.
func (f *file) folder(top object) {
	projects, ok := top["projects"].(object)
	if !ok || f.at != "mcpServers" {
		return
	}
	here, err := os.Getwd()
	if err != nil {
		return
	}
	elsewhere := 0
	for path, project := range projects {
		settings, ok := project.(object)
		if !ok {
			continue
		}
		own, _, err := entries("mcpServers", settings["mcpServers"])
		if err != nil || filepath.Clean(path) != here {
			elsewhere += len(own)
			continue
		}
		for name, server := range own {
			f.servers[name] = server
		}
	}
	if elsewhere > 0 {
		f.notes = append(f.notes,
			fmt.Sprintf("%d servers below projects are left out, because they are those of other folders; run "+
				"mcpconform there",
				elsewhere))
	}
}

// entries returns the servers of a member by name, or nil if it is about something else.
func entries(member string, list any) (servers map[string]object, at string, err error) {
	named, ok := list.(object)
	if !ok {
		if listed, ok := list.([]any); ok {
			return inList(member, listed)
		}
		if list == nil {
			return nil, member, nil
		}
		return nil, member, fmt.Errorf("the member %s is not an object", member)
	}
	if member == "mcp" {
		// Other clients have the list one level below.
		if below, ok := named["servers"].(object); ok && below["type"] == nil {
			return entries("mcp.servers", below)
		}
		if named["allowed"] != nil || named["excluded"] != nil {
			return nil, member, nil // of Gemini CLI
		}
	}
	servers = make(map[string]object, len(named))
	for name, value := range named {
		server, ok := value.(object)
		switch {
		case ok:
			servers[name] = server
		case strings.HasPrefix(name, "$"), strings.HasPrefix(name, "//"), value == nil:
		case member == "mcp" || member == "extensions":
			// A setting beside the servers.
		default:
			return nil, member, fmt.Errorf("%s.%s is not an object", member, name)
		}
	}
	return servers, member, nil
}

// inList returns the servers of a list, which have their names inside.
func inList(member string, list []any) (map[string]object, string, error) {
	servers := make(map[string]object, len(list))
	for i, value := range list {
		server, ok := value.(object)
		if !ok {
			return nil, member, fmt.Errorf("%s[%d] is not an object", member, i)
		}
		name, ok := server["name"].(string)
		if _, twice := servers[name]; !ok || name == "" || twice {
			return nil, member, fmt.Errorf("%s[%d] has no name of its own; give it one with the member name", member, i)
		}
		servers[name] = server
	}
	return servers, member, nil
}

// input is a value for which VS Code asks its user.
type input struct {
	description, preset string
	hasPreset, password bool
}

func inputs(list any) map[string]input {
	all := make(map[string]input)
	items, _ := list.([]any)
	for _, item := range items {
		o, _ := item.(object)
		id, _ := o["id"].(string)
		if id == "" {
			continue
		}
		in := input{}
		in.description, _ = o["description"].(string)
		in.preset, in.hasPreset = o["default"].(string)
		in.password, _ = o["password"].(bool)
		all[id] = in
	}
	return all
}
