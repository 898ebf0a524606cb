package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	modulePath = "github.com/mcpconform/mcpconform"
	homepage   = "https://" + modulePath
	summary    = "Test an MCP server or client for conformance to the Model Context Protocol"
	command    = "./cmd/mcpconform"
)

// goCommand runs go in the checkout for a platform. Settings of the builder for other builds do not reach this one.
func (s *source) goCommand(ctx context.Context, p platform, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=-mod=readonly", "GOWORK=off", "GOEXPERIMENT=", "GODEBUG=")
	cmd.Env = append(cmd.Env, s.env...)
	return cmd
}

// build returns the program for a platform.
func (s *source) build(ctx context.Context, p platform) (program []byte, err error) {
	dir, err := os.MkdirTemp("", "mcpconform-build-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, p.program())
	// The version and commit are set here rather than read from git by go build, which
	// would make them depend on the tags and the state of the checkout.
	set := fmt.Sprintf("-s -w -X main.released=%s -X main.commit=%s", s.version.tag(), s.commit)
	if _, err := s.output(s.goCommand(ctx, p, "build", "-trimpath", "-buildvcs=false", "-ldflags", set, "-o", path,
		command)); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// module is a module that is linked into the program, or Go's standard library.
type module struct {
	path, version string
	sum           string // of the module, as go.sum has it; empty for the standard library
	license       string // as an SPDX expression
	texts         []file // its licence and notices
}

// linked returns what is linked into a program, the standard library first.
func (s *source) linked(ctx context.Context, p platform, program []byte) ([]module, error) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return nil, err
	}
	folders, err := s.folders(ctx, p)
	if err != nil {
		return nil, err
	}
	modules := []module{{path: "std", version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			return nil, fmt.Errorf("%s is replaced by %s: nobody could tell what is released", m.Path, m.Replace.Path)
		}
		modules = append(modules, module{path: m.Path, version: m.Version, sum: m.Sum})
	}
	for i := range modules {
		m := &modules[i]
		if m.texts, err = licenseTexts(folders[m.path]); err != nil {
			return nil, fmt.Errorf("the licence of %s: %w", m.path, err)
		}
		if m.license, err = license(m.texts); err != nil {
			return nil, fmt.Errorf("the licence of %s: %w", m.path, err)
		}
	}
	return modules, nil
}

// folders returns where the modules of the program are, by their paths, and the standard
// library.
func (s *source) folders(ctx context.Context, p platform) (map[string]string, error) {
	root, err := s.output(s.goCommand(ctx, p, "env", "GOROOT"))
	if err != nil {
		return nil, err
	}
	folders := map[string]string{"std": strings.TrimSpace(string(root))}
	out, err := s.output(s.goCommand(ctx, p, "list", "-deps", "-json=Module", command))
	if err != nil {
		return nil, err
	}
	for packages := json.NewDecoder(bytes.NewReader(out)); ; {
		var found struct{ Module *struct{ Path, Dir string } }
		if err := packages.Decode(&found); err == io.EOF {
			return folders, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if found.Module != nil {
			folders[found.Module.Path] = found.Module.Dir
		}
	}
}

var legalFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// licenseTexts returns the files of a module's folder that say what is permitted.
func licenseTexts(dir string) ([]file, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var texts []file
	for _, e := range entries {
		if !legalFile.MatchString(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		texts = append(texts, file{e.Name(), 0o644, data})
	}
	return texts, nil
}

// phrases by which licences are recognised. A BSD licence with three clauses has the
// phrase of the one with two as well.
var phrases = []struct{ id, phrase string }{
	{"Apache-2.0", "Apache License Version 2.0"},
	{"BSD-3-Clause", "be used to endorse or promote products derived from this software"},
	{"BSD-2-Clause", "Redistribution and use in source and binary forms"},
	{"ISC", "distribute this software for any purpose with or without fee is hereby granted"},
	{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy"},
}

// license recognises what texts grant, as an SPDX expression. Somebody has to read an unknown license before the
// release.
func license(texts []file) (string, error) {
	var all strings.Builder
	for _, t := range texts {
		all.WriteString(strings.Join(strings.Fields(string(t.data)), " ") + "\n")
	}
	plain := strings.ReplaceAll(all.String(), "License, Version", "License Version")
	var ids []string
	for _, p := range phrases {
		if strings.Contains(plain, p.phrase) && !(p.id == "BSD-2-Clause" && slices.Contains(ids, "BSD-3-Clause")) {
			ids = append(ids, p.id)
		}
	}
	if len(ids) == 0 {
		return "", errors.New("there is none that this program knows")
	}
	return strings.Join(ids, " AND "), nil
}

// thirdParty is the text that hands on the licences of modules.
func thirdParty(modules []module) []byte {
	var b bytes.Buffer
	b.WriteString("The program mcpconform contains code of these modules.\n")
	for _, m := range modules {
		fmt.Fprintf(&b, "\n%s\n%s %s: %s\n", strings.Repeat("=", 78), m.path, m.version, m.license)
		for _, t := range m.texts {
			fmt.Fprintf(&b, "\n--- %s\n\n%s\n", t.name, bytes.TrimSpace(t.data))
		}
	}
	return b.Bytes()
}
