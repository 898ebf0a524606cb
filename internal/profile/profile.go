// Package profile recognises known sets of fixtures by the names of a server
// and its tools, and says which tool plays which role in checks.
package profile

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/mcpconform/mcpconform/fixtures"
	"github.com/mcpconform/mcpconform/internal/yamlfile"
)

// A Role is what a check needs a tool for.
type Role struct {
	Name string
	Does string // what a tool in this role does
}

// Roles returns all tool roles, those that are cheapest to serve first.
func Roles() []Role {
	return []Role{
		{"structured", "returns structured content"},
		{"image", "returns an image"},
		{"audio", "returns audio"},
		{"resource-link", "returns a link to a resource of the server"},
		{"embedded-resource", "returns an embedded resource"},
		{"mixed-content", "returns content of several kinds"},
		{"error", "fails, with these arguments, for a reason of its own"},
		{"progress", "reports progress"},
		{"log", "sends log messages"},
		{"log-levels", "sends a log message of each level"},
		{"sampling", "asks the client for a completion by its model"},
		{"elicitation", "asks the user for something"},
		{"roots", "asks the client for its roots"},
		{"ping", "pings the client"},
		{"slow", "takes a second or two, and reports progress if it can"},
		{"tools-change", "changes the list of tools"},
		{"resources-change", "changes the list of resources"},
		{"prompts-change", "changes the list of prompts"},
		{"resource-update", "changes the contents of a resource"},
	}
}

// Known reports whether there is a tool role of that name.
func Known(role string) bool {
	return slices.ContainsFunc(Roles(), func(r Role) bool { return r.Name == role })
}

// Call is a tool with the arguments, as decoded JSON, to call it with.
type Call struct {
	Tool      string         `yaml:"tool"`
	Arguments map[string]any `yaml:"arguments"`
}

// Profile is a known set of fixtures. All tools that it names for a role are
// safe to call: they change nothing beyond the server's own fixtures.
type Profile struct {
	Name string `yaml:"name"`
	// Servers are the names (serverInfo) by which it goes; empty for any.
	Servers []string `yaml:"servers"`
	// Tools must all be there for a server to be recognised.
	Tools     []string        `yaml:"tools"`
	ToolRoles map[string]Call `yaml:"toolRoles"`
	// Secrets and Personal are credentials and personal data that the server
	// holds, none of them real.
	Secrets  []string `yaml:"secrets"`
	Personal []string `yaml:"personalData"`
}

var builtIn = sync.OnceValues(func() ([]Profile, error) { return read(fixtures.Profiles()) })

// All returns the built-in profiles in the order of their files. The caller
// must not change them.
func All() ([]Profile, error) { return builtIn() }

func read(fsys fs.FS) ([]Profile, error) {
	names, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("read profiles: %w", err)
	}
	var all []Profile
	for _, name := range names {
		f, err := yamlfile.ReadFS(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("read profile: %w", err)
		}
		p := Profile{}
		if err := f.Decode(&p); err != nil {
			return nil, fmt.Errorf("read profile: %w", err)
		}
		if p.Name == "" {
			p.Name = strings.TrimSuffix(path.Base(name), ".yaml")
		}
		if err := p.settle(f); err != nil {
			return nil, fmt.Errorf("read profile: %w", err)
		}
		all = append(all, p)
	}
	return all, nil
}

// settle checks a profile and makes its arguments decoded JSON.
func (p *Profile) settle(f *yamlfile.File) error {
	if len(p.Tools) == 0 {
		return f.Errorf(nil, "the profile does not name tools by which a server is recognised")
	}
	for role, call := range p.ToolRoles {
		switch {
		case !Known(role):
			return f.Errorf([]any{"toolRoles", role}, "%q is not a tool role", role)
		case call.Tool == "":
			return f.Errorf([]any{"toolRoles", role}, "the tool role does not name a tool")
		case call.Arguments == nil:
			continue
		}
		arguments, err := yamlfile.JSON(call.Arguments)
		if err != nil {
			return f.Errorf([]any{"toolRoles", role, "arguments"}, "%s", err)
		}
		call.Arguments = arguments.(map[string]any)
		p.ToolRoles[role] = call
	}
	return nil
}

// Recognise returns the profile that fits a server best, reduced to the roles whose
// tools the server has. A profile that names the server fits better, then one that
// needs more tools. ok is false if none fits.
func Recognise(profiles []Profile, server string, tools []string) (found Profile, ok bool) {
	has := make(map[string]bool, len(tools))
	for _, name := range tools {
		has[name] = true
	}
	best := -1
	for _, p := range profiles {
		named := slices.Contains(p.Servers, server)
		if len(p.Servers) > 0 && !named || slices.ContainsFunc(p.Tools, func(tool string) bool { return !has[tool] }) {
			continue
		}
		score := len(p.Tools)
		if named {
			score += 1000
		}
		if score > best {
			best, found = score, p
		}
	}
	if best < 0 {
		return Profile{}, false
	}
	present := make(map[string]Call)
	for role, call := range found.ToolRoles {
		if has[call.Tool] {
			present[role] = call
		}
	}
	found.ToolRoles = present
	return found, true
}
