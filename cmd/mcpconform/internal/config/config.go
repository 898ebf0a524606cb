// Package config reads mcpconform.yaml: what a project says about the target that it
// tests, and about how to test it. fixtures/config/mcpconform.schema.json describes the
// same file for editors.
package config

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"golang.org/x/net/http/httpguts"

	"github.com/mcpconform/mcpconform/cmd/mcpconform/internal/target"
	"github.com/mcpconform/mcpconform/internal/profile"
	"github.com/mcpconform/mcpconform/internal/yamlfile"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/expected"
	"github.com/mcpconform/mcpconform/suites/result"
)

// DefaultFile is read from the current directory when no other file is named.
const DefaultFile = "mcpconform.yaml"

// Config is the content of the file. Members that the file leaves out are zero.
type Config struct {
	Target Target `yaml:"target"`
	// Revision of the specification; only one is known yet.
	Revision  string         `yaml:"revision"`
	CallTools check.CallMode `yaml:"callTools"`
	// ToolRoles names a call of a tool for each role that the server has one for.
	// Arguments are decoded JSON.
	ToolRoles map[string]Call `yaml:"toolRoles"`
	// TrustedOrigins are web origins that a server over HTTP trusts on purpose:
	// null among them, or * for all.
	TrustedOrigins []string `yaml:"trustedOrigins"`
	// Public says that the server is meant to be reachable from outside.
	Public bool `yaml:"public"`
	// Authorization says how a server over HTTP is protected.
	Authorization Authorization `yaml:"authorization"`
	// Login says how an access token is obtained if that server demands one.
	Login Login `yaml:"login"`
	// Secrets and Personal must not turn up in log messages. Secrets are kept
	// out of reports, too. Variables are expanded.
	Secrets  []string `yaml:"secrets"`
	Personal []string `yaml:"personalData"`
	Limits   Limits   `yaml:"limits"`
	// Sandbox runs the started programs in a sandbox. They may write to the folders of SandboxWrite. These are
	// relative to the folder of the file; Load makes them relative to ours.
	Sandbox      bool     `yaml:"sandbox"`
	SandboxWrite []string `yaml:"sandboxWrite"`
	Select       []string `yaml:"select"`
	Skip         []string `yaml:"skip"`
	// Budget says how much is tried: quick, default or thorough.
	Budget    string `yaml:"budget"`
	Strict    bool   `yaml:"strict"`
	ExpectSDK bool   `yaml:"expectSDK"`
	// Scripts are folders of scripts, relative to that of the file until Load
	// has made them relative to ours.
	Scripts  []string `yaml:"scripts"`
	Expected Expected `yaml:"expectedFailures"`
}

// Target is the server under test: a command over stdio or a URL, both with
// variables expanded.
type Target struct {
	Command []string `yaml:"command"`
	URL     string   `yaml:"url"`
	// Headers of each HTTP request, with variables expanded.
	Headers map[string]string `yaml:"headers"`
	// Env is added to the environment, with variables expanded.
	Env map[string]string `yaml:"env"`
	// Cwd is the working directory, relative to that of the file until Load
	// has made it relative to ours.
	Cwd string `yaml:"cwd"`
	// Start is a shell command that starts the server at the URL.
	Start string `yaml:"start"`
	// TransportCommand is a shell command that leads to a server over a custom transport.
	TransportCommand string `yaml:"transportCommand"`
}

// Call is a tool with the arguments to call it with.
type Call struct {
	Tool      string         `yaml:"tool"`
	Arguments map[string]any `yaml:"arguments"`
}

// Authorization of a server over HTTP, with variables expanded in the tokens.
type Authorization struct {
	Protected     bool     `yaml:"protected"`
	Methods       []string `yaml:"methods"`
	Resource      string   `yaml:"resource"`
	TrailingSlash bool     `yaml:"trailingSlash"`
	Expired       string   `yaml:"expired"`
	OtherAudience string   `yaml:"otherAudience"`
	OtherIssuer   string   `yaml:"otherIssuer"`
	OtherUser     string   `yaml:"otherUser"`
	Narrow        string   `yaml:"narrow"`
	NarrowRequest Request  `yaml:"narrowRequest"`
}

// Login is false in the file, or an object.
type Login struct {
	Off             bool   `yaml:"-"`
	ClientID        string `yaml:"clientId"`
	ClientSecretEnv string `yaml:"clientSecretEnv"` // name of the variable
	Scope           string `yaml:"scope"`
	SecondUser      bool   `yaml:"secondUser"`
}

// UnmarshalYAML reads either form.
func (l *Login) UnmarshalYAML(read func(any) error) error {
	var on any
	if err := read(&on); err != nil {
		return err
	}
	if value, ok := on.(bool); ok {
		l.Off = !value
		return nil
	}
	type object Login
	return read((*object)(l))
}

var _ yaml.InterfaceUnmarshaler = (*Login)(nil)

// Request is a method with its params.
type Request struct {
	Method string         `yaml:"method"`
	Params map[string]any `yaml:"params"`
}

// Limits bound what the target may send and how long it may take. Zero is the default.
type Limits struct {
	Message int           `yaml:"message"` // bytes of one message
	Total   int64         `yaml:"total"`   // bytes of the whole run
	Timeout time.Duration `yaml:"timeout"` // of one answer
	Start   time.Duration `yaml:"startTimeout"`
	Run     time.Duration `yaml:"runTimeout"`
	// Limits of the started programs.
	TargetMemory    Size `yaml:"targetMemory"`
	TargetProcesses int  `yaml:"targetProcesses"`
}

// Expected are the expected failures: a file's name or the entries themselves.
// After Load the entries of the file are there as well.
type Expected struct {
	File    string
	Entries []expected.Entry
}

// UnmarshalYAML reads either form.
func (e *Expected) UnmarshalYAML(read func(any) error) error {
	var file any
	if err := read(&file); err != nil {
		return err
	}
	if name, ok := file.(string); ok {
		e.File = name
		return nil
	}
	return read(&e.Entries)
}

var _ yaml.InterfaceUnmarshaler = (*Expected)(nil)

// Load reads a file. Faults in it are told with line and column. Variables
// are expanded with lookup; see target.Expand. Errors do not show what is secret in the file.
func Load(name string, lookup func(string) (string, bool)) (*Config, error) {
	c := new(Config)
	err := c.load(name, lookup)
	if fault := (*yamlfile.Error)(nil); errors.As(err, &fault) {
		fault.Message = c.redactor().String(fault.Message)
	}
	return c, err
}

// redactor returns one that knows what is secret in the configuration.
func (c *Config) redactor() *transport.Redactor {
	r := transport.NewRedactor(nil, c.Target.URL)
	r.AddSettings(c.Target.Headers)
	r.AddSettings(c.Target.Env)
	r.AddArgs(c.Target.Command...)
	r.AddArgs(c.Target.Start)
	r.AddArgs(c.Target.TransportCommand)
	r.AddArgs(c.TrustedOrigins...)
	r.Add(c.Secrets...)
	r.Add(c.Personal...)
	r.Add(c.Authorization.Settings().Tokens()...)
	return r
}

func (c *Config) load(name string, lookup func(string) (string, bool)) error {
	f, err := yamlfile.Read(name)
	if err != nil {
		return err
	}
	if f.Has("purposes") {
		return f.Errorf([]any{"purposes"}, "purposes is now called toolRoles: rename it")
	}
	if err := f.Decode(c); err != nil {
		return err
	}
	for _, settle := range []func(*yamlfile.File) error{
		func(f *yamlfile.File) error { return c.Target.settle(f, lookup) }, c.settleRun, c.settleToolRoles,
		c.settleSelection, c.settleOrigins,
		func(f *yamlfile.File) error { return c.settleMarkers(f, lookup) },
		func(f *yamlfile.File) error { return c.Authorization.settle(f, lookup) },
	} {
		if err := settle(f); err != nil {
			return err
		}
	}
	dir := filepath.Dir(name)
	if c.Target.Cwd != "" && !filepath.IsAbs(c.Target.Cwd) {
		c.Target.Cwd = filepath.Join(dir, c.Target.Cwd)
	}
	for member, folders := range map[string][]string{"scripts": c.Scripts, "sandboxWrite": c.SandboxWrite} {
		for i, folder := range folders {
			if folder == "" {
				return f.Errorf([]any{member, i}, "the name of the folder is empty")
			}
			if !filepath.IsAbs(folder) {
				folders[i] = filepath.Join(dir, folder)
			}
		}
	}
	return c.settleExpected(f, dir)
}

func (t *Target) settle(f *yamlfile.File, lookup func(string) (string, bool)) error {
	at := func(member ...any) []any { return append([]any{"target"}, member...) }
	switch {
	case len(t.Command) > 0 && t.URL != "":
		return f.Errorf(at("url"),
			"give either command (a server over stdio) or url (a server over HTTP); start is the command that "+
				"starts a server over HTTP")
	case f.Has(at("command")...) && (len(t.Command) == 0 || t.Command[0] == ""):
		return f.Errorf(at("command"), "the command does not name a program")
	case t.TransportCommand != "" && (len(t.Command) > 0 || t.Start != "" || len(t.Headers) > 0):
		return f.Errorf(at("transportCommand"),
			"transportCommand makes the connection itself; command, start and headers cannot be given with it")
	case t.Start != "" && t.URL == "":
		return f.Errorf(at("start"), "start needs url, the address of the server over HTTP")
	case len(t.Headers) > 0 && t.URL == "":
		return f.Errorf(at("headers"), "headers need url, the address of a server over HTTP")
	}
	var err error
	if t.URL, err = target.Expand(t.URL, lookup); err != nil {
		return f.Errorf(at("url"), "%s", err)
	}
	for i, word := range t.Command {
		if t.Command[i], err = target.Expand(word, lookup); err != nil {
			return f.Errorf(at("command", i), "%s", err)
		}
	}
	for member, values := range map[string]map[string]string{"headers": t.Headers, "env": t.Env} {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			v, err := target.Expand(values[name], lookup)
			if err != nil {
				return f.Errorf(at(member, name), "%s", err)
			}
			values[name] = v
		}
	}
	return nil
}

func (c *Config) settleRun(f *yamlfile.File) error {
	if c.Revision != "" {
		if _, err := schema.For(c.Revision); err != nil {
			return f.Errorf([]any{"revision"}, "%s", err)
		}
	}
	switch {
	case c.CallTools != "" && !slices.Contains([]check.CallMode{check.CallNone, check.CallSafe, check.CallAll},
		c.CallTools):
		return f.Errorf([]any{"callTools"}, "callTools is %q; it takes none, safe or all", c.CallTools)
	case c.Budget != "" && !slices.Contains([]string{result.Quick.String(), result.Default.String(),
		result.Thorough.String()}, c.Budget):
		return f.Errorf([]any{"budget"}, "budget is %q; it takes quick, default or thorough", c.Budget)
	}
	for member, positive := range map[string]bool{
		"message": c.Limits.Message > 0, "total": c.Limits.Total > 0, "timeout": c.Limits.Timeout > 0,
		"startTimeout": c.Limits.Start > 0, "runTimeout": c.Limits.Run > 0,
	} {
		if at := []any{"limits", member}; f.Has(at...) && !positive {
			return f.Errorf(at, "the limit must be greater than 0")
		}
	}
	return nil
}

func (c *Config) settleToolRoles(f *yamlfile.File) error {
	for _, name := range slices.Sorted(maps.Keys(c.ToolRoles)) {
		at, call := []any{"toolRoles", name}, c.ToolRoles[name]
		switch {
		case !profile.Known(name):
			var names []string
			for _, p := range profile.Roles() {
				names = append(names, p.Name)
			}
			return f.Errorf(at, "%q is not a tool role; the tool roles are %s", name, strings.Join(names, ", "))
		case call.Tool == "":
			return f.Errorf(at, "the tool role %s does not name a tool", name)
		case call.Arguments == nil:
			continue
		}
		arguments, err := yamlfile.JSON(call.Arguments)
		if err != nil {
			return f.Errorf(append(at, "arguments"), "%s", err)
		}
		call.Arguments = arguments.(map[string]any)
		c.ToolRoles[name] = call
	}
	return nil
}

func (a *Authorization) settle(f *yamlfile.File, lookup func(string) (string, bool)) error {
	at := func(member string) []any { return []any{"authorization", member} }
	for member, token := range map[string]*string{
		"expired": &a.Expired, "otherAudience": &a.OtherAudience, "otherIssuer": &a.OtherIssuer,
		"otherUser": &a.OtherUser, "narrow": &a.Narrow,
	} {
		v, err := target.Expand(*token, lookup)
		switch {
		case err != nil:
			return f.Errorf(at(member), "%s", err)
		case !httpguts.ValidHeaderFieldValue(v):
			return f.Errorf(at(member), "the token contains characters that are not allowed in a header")
		}
		*token = strings.TrimSpace(v)
	}
	u, err := url.Parse(a.Resource)
	switch {
	case a.Resource != "" && (err != nil || u.Host == ""):
		return f.Errorf(at("resource"), "the resource is not a URL with scheme and host")
	case a.Narrow != "" && a.NarrowRequest.Method == "":
		return f.Errorf(at("narrow"), "narrow needs narrowRequest, a request that the token's scope does not allow")
	case a.NarrowRequest.Params == nil:
		return nil
	}
	params, err := yamlfile.JSON(a.NarrowRequest.Params)
	if err != nil {
		return f.Errorf(append(at("narrowRequest"), "params"), "%s", err)
	}
	a.NarrowRequest.Params = params.(map[string]any)
	return nil
}

// Settings returns the section as the settings of a run have it.
func (a Authorization) Settings() check.Authorization {
	return check.Authorization{
		Protected: a.Protected, Methods: a.Methods, Resource: a.Resource, TrailingSlash: a.TrailingSlash,
		Expired: a.Expired, OtherAudience: a.OtherAudience, OtherIssuer: a.OtherIssuer, OtherUser: a.OtherUser,
		Narrow: a.Narrow, NarrowRequest: check.RPC(a.NarrowRequest),
	}
}

func (c *Config) settleSelection(f *yamlfile.File) error {
	for member, patterns := range map[string][]string{"select": c.Select, "skip": c.Skip} {
		for i, p := range patterns {
			// The scripts become known later.
			if err := schema.Default().CheckPattern(p); err != nil && !strings.HasPrefix(p, "script") {
				return f.Errorf([]any{member, i}, "%s", err)
			}
		}
	}
	return nil
}

// ShortestMarker is the length in bytes below which a text may occur in a log message
// by accident.
const ShortestMarker = 6

func (c *Config) settleOrigins(f *yamlfile.File) error {
	for i, origin := range c.TrustedOrigins {
		if u, err := url.Parse(origin); origin != "*" && origin != "null" &&
			(err != nil || u.Scheme == "" || u.Host == "" || origin != u.Scheme+"://"+u.Host) {
			return f.Errorf([]any{"trustedOrigins", i},
				"%q is not an origin such as https://app.example:8443, nor null, nor * for all", origin)
		}
	}
	return nil
}

func (c *Config) settleMarkers(f *yamlfile.File, lookup func(string) (string, bool)) error {
	for member, markers := range map[string][]string{"secrets": c.Secrets, "personalData": c.Personal} {
		for i, text := range markers {
			v, err := target.Expand(text, lookup)
			if err != nil {
				return f.Errorf([]any{member, i}, "%s", err)
			}
			if len(v) < ShortestMarker {
				return f.Errorf([]any{member, i},
					"the text has %d bytes; it needs at least %d to be told from other text", len(v), ShortestMarker)
			}
			markers[i] = v
		}
	}
	return nil
}

func (c *Config) settleExpected(f *yamlfile.File, dir string) error {
	if c.Expected.File == "" {
		return checkExpected(c.Expected.Entries, f, "expectedFailures")
	}
	file := c.Expected.File
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	entries, err := LoadExpected(file)
	if err != nil {
		return fmt.Errorf("%w (named by %w)", err, f.Errorf([]any{"expectedFailures"}, "expectedFailures"))
	}
	c.Expected.Entries = entries
	return nil
}

// Calls returns the tool roles as the settings of a run have them.
func (c *Config) Calls() map[string]check.Call {
	calls := make(map[string]check.Call, len(c.ToolRoles))
	for name, call := range c.ToolRoles {
		calls[name] = check.Call(call)
	}
	return calls
}
