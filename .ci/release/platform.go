package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// platform is a system that a release is built for, with its names in other worlds.
type platform struct {
	os, arch string // as Go names them

	npmOS, npmCPU string   // process.platform and process.arch of Node.js
	wheelTags     []string // the platform tags of the wheel
}

// platforms are all that a release is built for. The programs are linked statically, so
// that one runs with either C library of Linux. Go 1.26 needs macOS 12.
var platforms = []platform{
	{"linux", "amd64", "linux", "x64", []string{"manylinux_2_17_x86_64", "manylinux2014_x86_64",
		"musllinux_1_1_x86_64"}},
	{"linux", "arm64", "linux", "arm64", []string{"manylinux_2_17_aarch64", "manylinux2014_aarch64",
		"musllinux_1_1_aarch64"}},
	{"darwin", "amd64", "darwin", "x64", []string{"macosx_12_0_x86_64"}},
	{"darwin", "arm64", "darwin", "arm64", []string{"macosx_12_0_arm64"}},
	{"windows", "amd64", "win32", "x64", []string{"win_amd64"}},
	{"windows", "arm64", "win32", "arm64", []string{"win_arm64"}},
}

func (p platform) String() string { return p.os + "/" + p.arch }

// program is the name of the program there.
func (p platform) program() string {
	if p.os == "windows" {
		return "mcpconform.exe"
	}
	return "mcpconform"
}

// choose returns the platforms that a list names, or all of them.
func choose(list string) ([]platform, error) {
	if list == "" {
		return platforms, nil
	}
	var chosen []platform
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(platforms, func(p platform) bool { return p.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("-platforms: %q is not one of %v", name, platforms)
		}
		if slices.ContainsFunc(chosen, func(p platform) bool { return p.String() == name }) {
			return nil, fmt.Errorf("-platforms: %s is there twice", name)
		}
		chosen = append(chosen, platforms[i])
	}
	return chosen, nil
}

// version is a version in the forms of Go, npm and Python.
type version struct {
	numbers string // 1.2.3
	stage   string // alpha, beta or rc; empty for a final release
	number  string // of the stage
}

var versionForm = regexp.MustCompile(
	`^v((?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*))(?:-(alpha|beta|rc)\.(0|[1-9]\d*))?$`)

func parseVersion(s string) (version, error) {
	m := versionForm.FindStringSubmatch(s)
	if m == nil {
		return version{}, fmt.Errorf("-version is %q; it has to be like v1.2.3 or v1.2.3-rc.1 (alpha, beta or rc)", s)
	}
	return version{m[1], m[2], m[3]}, nil
}

// tag is the version as Go and git name it.
func (v version) tag() string { return "v" + v.npm() }

// npm is the version as npm and the names of files have it.
func (v version) npm() string {
	if v.stage == "" {
		return v.numbers
	}
	return v.numbers + "-" + v.stage + "." + v.number
}

// python is the version in the form of PEP 440.
func (v version) python() string {
	return v.numbers + map[string]string{"": "", "alpha": "a", "beta": "b", "rc": "rc"}[v.stage] + v.number
}
