package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"path"
)

// launcher runs the program of the platform's package.
//
//go:embed launcher.js
var launcher []byte

// packageReadme is what package registries show.
//
//go:embed package.md
var packageReadme []byte

// npmPackage is a package.json. Its members are in the usual order.
type npmPackage struct {
	Name            string            `json:"name"`
	Version         string            `json:"version"`
	Description     string            `json:"description"`
	Keywords        []string          `json:"keywords,omitempty"`
	Homepage        string            `json:"homepage"`
	Repository      npmRepository     `json:"repository"`
	License         string            `json:"license"`
	Engines         map[string]string `json:"engines,omitempty"`
	Bin             map[string]string `json:"bin,omitempty"`
	Optional        map[string]string `json:"optionalDependencies,omitempty"`
	OS              []string          `json:"os,omitempty"`
	CPU             []string          `json:"cpu,omitempty"`
	PreferUnplugged bool              `json:"preferUnplugged,omitempty"` // Yarn cannot start a program in an archive
}

type npmRepository struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

// npmName is the package that brings the program for a platform.
func (p platform) npmName() string { return "@mcpconform/" + p.npmOS + "-" + p.npmCPU }

// npmPlatform returns the package with the program for a platform, which npm installs
// there alone.
func (s *source) npmPlatform(p platform, program []byte, licenses []file) (file, error) {
	manifest := s.npmPackage(p.npmName(), "The program mcpconform for "+p.String())
	manifest.OS, manifest.CPU = []string{p.npmOS}, []string{p.npmCPU}
	manifest.PreferUnplugged = true
	files := append(licenses, file{"bin/" + p.program(), 0o755, program})
	return s.npm("mcpconform-"+p.npmOS+"-"+p.npmCPU, manifest, files)
}

// npmLauncher returns the package that users name. It depends on those of all platforms,
// and starts the program of the one that was installed.
func (s *source) npmLauncher(platforms []platform, license []byte) (file, error) {
	manifest := s.npmPackage("mcpconform", summary)
	manifest.Keywords = []string{"mcp", "model-context-protocol", "conformance", "testing"}
	manifest.Engines = map[string]string{"node": ">=18"}
	manifest.Bin = map[string]string{"mcpconform": "bin/mcpconform.js"}
	manifest.Optional = make(map[string]string)
	for _, p := range platforms {
		manifest.Optional[p.npmName()] = s.version.npm()
	}
	return s.npm("mcpconform", manifest, []file{
		{"LICENSE", 0o644, license}, {"README.md", 0o644, packageReadme}, {"bin/mcpconform.js", 0o755, launcher},
	})
}

func (s *source) npmPackage(name, description string) npmPackage {
	return npmPackage{
		Name: name, Version: s.version.npm(), Description: description, Homepage: homepage + "#readme",
		Repository: npmRepository{"git", "git+" + homepage + ".git"}, License: "Apache-2.0",
	}
}

// npm returns a package in the form of npm pack.
func (s *source) npm(name string, manifest npmPackage, files []file) (file, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(manifest); err != nil {
		return file{}, err
	}
	packed := []file{{"package/package.json", 0o644, text.Bytes()}}
	for _, f := range files {
		packed = append(packed, file{path.Join("package", f.name), f.mode, f.data})
	}
	data, err := tarGz(s.date, packed)
	return file{name + "-" + s.version.npm() + ".tgz", 0o644, data}, err
}
