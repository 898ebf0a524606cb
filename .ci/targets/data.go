package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// Data is the content of fixtures/targets/targets.yaml, which describes its own fields.
type Data struct {
	Format   int                 `yaml:"format"`
	Installs map[string]*Install `yaml:"installs"`
	Targets  []*Target           `yaml:"targets"`
}

// Install is a set of programs that one package manager installs from one manifest.
type Install struct {
	Manager      string            `yaml:"manager"`
	Dir          string            `yaml:"dir"`
	Requirements string            `yaml:"requirements"`
	Programs     map[string]string `yaml:"programs"`
	Needs        []string          `yaml:"needs"`
}

// Target is a server, client or tool at one version.
type Target struct {
	Name       string                `yaml:"name"`
	Kind       string                `yaml:"kind"`
	Language   string                `yaml:"language"`
	Install    string                `yaml:"install"`
	Package    string                `yaml:"package"`
	Version    string                `yaml:"version"`
	Revision   string                `yaml:"revision"`
	Contract   bool                  `yaml:"contract"`
	Transports map[string]*Transport `yaml:"transports"`
	Notes      string                `yaml:"notes"`
}

// Transport says how a target is run on one transport; its texts hold placeholders.
type Transport struct {
	Command []string          `yaml:"command"`
	Env     map[string]string `yaml:"env"`
	URL     string            `yaml:"url"`
	Port    int               `yaml:"port"`
	Client  string            `yaml:"client"`
	// Authorizes says that the client obtains an access token where a server demands one.
	Authorizes bool `yaml:"authorizes"`
}

const authorizationServer = "authorization-server"

var (
	kinds      = []string{"server", "client", authorizationServer, "tool"}
	transports = []string{"stdio", "http", "sse", "ws"}
)

// load reads targets.yaml in dir and checks it against the manifests beside it. The
// error joins everything that is wrong.
func load(dir string) (*Data, error) {
	text, err := os.ReadFile(filepath.Join(dir, "targets.yaml"))
	if err != nil {
		return nil, err
	}
	data := new(Data)
	if err := yaml.UnmarshalWithOptions(text, data, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("targets.yaml: %w", err)
	}
	if err := data.check(dir); err != nil {
		return nil, fmt.Errorf("targets.yaml: %w", err)
	}
	return data, nil
}

func (d *Data) check(dir string) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	if d.Format != 1 {
		bad("format %d is not 1", d.Format)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Installs)) {
		install := d.Installs[name]
		if managers[install.Manager] == nil {
			bad("install %s: unknown manager %q", name, install.Manager)
		}
		for _, need := range install.Needs {
			if d.Installs[need] == nil {
				bad("install %s: needs %q, which is not an install", name, need)
			}
		}
	}
	seen := make(map[string]bool)
	for _, t := range d.Targets {
		if t.Name == "" || seen[t.Name] || d.Installs[t.Name] != nil && t.Install != t.Name {
			bad("name %q is empty, used twice or that of another install", t.Name)
		}
		seen[t.Name] = true
		if !slices.Contains(kinds, t.Kind) {
			bad("%s: unknown kind %q", t.Name, t.Kind)
		}
		if len(t.Transports) == 0 {
			bad("%s: no transport", t.Name)
		}
		for _, name := range slices.Sorted(maps.Keys(t.Transports)) {
			if !slices.Contains(transports, name) {
				bad("%s: unknown transport %q", t.Name, name)
			}
			if len(t.Transports[name].Command) == 0 {
				bad("%s: no command for %s", t.Name, name)
			}
			if needsURL := strings.HasSuffix(t.Kind, "server") &&
				name != "stdio"; needsURL != (t.Transports[name].URL != "") {
				bad("%s: servers over HTTP, and only these, have a url: %s", t.Name, name)
			}
		}
		install := d.Installs[t.Install]
		if install == nil {
			bad("%s: unknown install %q", t.Name, t.Install)
			continue
		}
		if m := managers[install.Manager]; m != nil {
			if err := m.pinned(dir, install, t.Package, t.Version); err != nil {
				bad("%s: %w", t.Name, err)
			}
		}
	}
	return errors.Join(errs...)
}

// target returns the target of that name, or nil.
func (d *Data) target(name string) *Target {
	for _, t := range d.Targets {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// selected returns the names of the installs that the given targets and installs need,
// sorted; all of them if no name is given.
func (d *Data) selected(names []string) ([]string, error) {
	if len(names) == 0 {
		return slices.Sorted(maps.Keys(d.Installs)), nil
	}
	chosen := make(map[string]bool)
	var add func(string)
	add = func(name string) {
		if !chosen[name] {
			chosen[name] = true
			for _, need := range d.Installs[name].Needs {
				add(need)
			}
		}
	}
	for _, name := range names {
		switch t := d.target(name); {
		case t != nil:
			add(t.Install)
		case d.Installs[name] != nil:
			add(name)
		default:
			return nil, fmt.Errorf("%q is neither a target nor an install of targets.yaml", name)
		}
	}
	return slices.Sorted(maps.Keys(chosen)), nil
}

// Values are what the placeholders of a Transport stand for. An empty one is an error
// where its placeholder occurs.
type Values struct {
	Cache, Repo, Tmp, Port, Node, URL string
	Server                            []string
}

// Run is a Transport with its placeholders filled in, ready to be started.
type Run struct {
	Command []string          `json:"command"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Client  string            `json:"client,omitempty"` // the id of the client to log in as
	// Authorizes says that the client obtains an access token.
	Authorizes bool `json:"authorizes,omitempty"`
}

// fill returns the transport with its placeholders replaced.
func (t *Transport) fill(v Values) (*Run, error) {
	missing := make(map[string]bool)
	text := func(s string) string {
		for _, p := range []struct{ name, value string }{
			{"{cache}", v.Cache}, {"{repo}", v.Repo}, {"{tmp}", v.Tmp}, {"{port}", v.Port},
			{"{node}", v.Node}, {"{url}", v.URL}, {"{server}", strings.Join(v.Server, " ")},
		} {
			if strings.Contains(s, p.name) {
				missing[p.name] = missing[p.name] || p.value == ""
				s = strings.ReplaceAll(s, p.name, p.value)
			}
		}
		return s
	}
	run := &Run{URL: text(t.URL), Client: t.Client, Authorizes: t.Authorizes}
	for _, argument := range t.Command {
		if argument == "{server}" && len(v.Server) > 0 {
			run.Command = append(run.Command, v.Server...)
			continue
		}
		run.Command = append(run.Command, text(argument))
	}
	for name, value := range t.Env {
		if run.Env == nil {
			run.Env = make(map[string]string)
		}
		run.Env[name] = text(value)
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		if missing[name] {
			return nil, fmt.Errorf("no value for %s", name)
		}
	}
	return run, nil
}

// repository returns the folder at or above dir that holds fixtures/targets.
func repository(dir string) (string, error) {
	for at := dir; ; at = filepath.Dir(at) {
		_, err := os.Stat(filepath.Join(at, "fixtures", "targets", "targets.yaml"))
		if err == nil {
			return at, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not in the repository: no fixtures/targets/targets.yaml above it", dir)
		}
	}
}
