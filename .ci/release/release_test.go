package main

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const repo = "../.."

func TestVersions(t *testing.T) {
	for _, tt := range []struct{ in, npm, python string }{
		{"v0.1.0", "0.1.0", "0.1.0"},
		{"v10.20.30", "10.20.30", "10.20.30"},
		{"v1.2.3-alpha.0", "1.2.3-alpha.0", "1.2.3a0"},
		{"v1.2.3-beta.2", "1.2.3-beta.2", "1.2.3b2"},
		{"v1.2.3-rc.10", "1.2.3-rc.10", "1.2.3rc10"},
	} {
		v, err := parseVersion(tt.in)
		if err != nil || v.tag() != tt.in || v.npm() != tt.npm || v.python() != tt.python {
			t.Errorf("%s: %s, %s, %s, error %v", tt.in, v.tag(), v.npm(), v.python(), err)
		}
	}
	for _, in := range []string{"", "0.1.0", "v1", "v1.2", "v01.2.3", "v1.2.3-rc1", "v1.2.3-dev.1", "v1.2.3+x", "v1.2.3 -X main.commit=x"} {
		if _, err := parseVersion(in); err == nil {
			t.Errorf("%q is accepted", in)
		}
	}
}

func TestChoose(t *testing.T) {
	all, err := choose("")
	if err != nil || len(all) != len(platforms) {
		t.Errorf("%v, error %v", all, err)
	}
	two, err := choose("windows/arm64,linux/amd64")
	if err != nil || fmt.Sprint(two) != "[windows/arm64 linux/amd64]" {
		t.Errorf("%v, error %v", two, err)
	}
	for _, list := range []string{"plan9/amd64", "linux", "linux/amd64,", "linux/amd64,linux/amd64"} {
		if got, err := choose(list); err == nil {
			t.Errorf("%q is %v", list, got)
		}
	}
}

func TestLicense(t *testing.T) {
	const (
		mit    = "Permission is hereby granted, free of\ncharge, to any person obtaining a copy"
		apache = "   Apache License\n  Version 2.0, January 2004"
		two    = "Redistribution and use in source and binary forms, with or without"
		isc    = "Permission to use, copy, modify, and distribute this software for any\npurpose with or without fee is hereby granted"
	)
	for _, tt := range []struct {
		texts []string
		want  string
	}{
		{[]string{mit}, "MIT"},
		{[]string{isc}, "ISC"},
		{[]string{two}, "BSD-2-Clause"},
		{[]string{two + " be used to endorse or promote products derived\n from this software"}, "BSD-3-Clause"},
		{[]string{apache, "PATENTS"}, "Apache-2.0"},
		{[]string{mit, apache}, "Apache-2.0 AND MIT"},
		{[]string{"Mozilla Public License, version 2.0"}, ""},
		{[]string{"All rights reserved"}, ""},
		{nil, ""},
	} {
		var texts []file
		for _, text := range tt.texts {
			texts = append(texts, file{name: "LICENSE", data: []byte(text)})
		}
		if got, err := license(texts); got != tt.want || (err == nil) != (got != "") {
			t.Errorf("%q: %q, error %v, want %q", tt.texts, got, err, tt.want)
		}
	}
}

// host is the platform that the tests run on.
func host(t *testing.T) platform {
	t.Helper()
	p, err := choose(runtime.GOOS + "/" + runtime.GOARCH)
	if err != nil {
		t.Skipf("left out: releases are not built for this system: %v", err)
	}
	return p[0]
}

func sourceIn(dir string) *source {
	return &source{
		repo: dir, version: version{"1.2.3", "rc", "4"}, commit: strings.Repeat("c0ffee", 6),
		date: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC),
	}
}

var (
	madeOnce sync.Once
	made     []file
	madeErr  error
)

// release returns the release for the host, which is made once.
func release(t *testing.T) []file {
	t.Helper()
	if testing.Short() {
		t.Skip("left out with -short: building a release")
	}
	p := host(t)
	madeOnce.Do(func() { made, madeErr = sourceIn(repo).make(t.Context(), []platform{p}) })
	if madeErr != nil {
		t.Fatal(madeErr)
	}
	return made
}

// find returns the only file whose name has an ending.
func find(t *testing.T, files []file, ending string) file {
	t.Helper()
	var found []file
	for _, f := range files {
		if strings.HasSuffix(f.name, ending) {
			found = append(found, f)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d files end in %s", len(found), ending)
	}
	return found[0]
}

// TestReproducible makes the release a second time, in another folder.
func TestReproducible(t *testing.T) {
	first := release(t)
	elsewhere := filepath.Join(t.TempDir(), "another", "folder")
	for _, part := range []string{"cmd", "fixtures", "internal", "mockserver", "reference", "reporters", "schema", "suites"} {
		if err := os.CopyFS(filepath.Join(elsewhere, part), os.DirFS(filepath.Join(repo, part))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"go.mod", "go.sum", "LICENSE", "README.md"} {
		data, err := os.ReadFile(filepath.Join(repo, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(elsewhere, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOFLAGS", "-buildvcs=true -tags=other")
	t.Setenv("TZ", "Asia/Tokyo")
	second, err := sourceIn(elsewhere).make(t.Context(), []platform{host(t)})
	if err != nil {
		t.Fatal(err)
	}
	if differ := differences(first, second); len(differ) > 0 {
		t.Errorf("not the same: %v", differ)
	}
	changed := slices.Clone(second)
	changed[0].data = append(slices.Clone(changed[0].data), ' ')
	if got := differences(first, changed); !slices.Equal(got, []string{first[0].name}) {
		t.Errorf("a changed %s is told as %v", first[0].name, got)
	}
	if got := differences(first, second[1:]); !slices.Equal(got, []string{first[0].name}) {
		t.Errorf("without %s: %v", first[0].name, got)
	}
}

// unpackTar returns what a tar archive has, and fails for what depends on the builder.
func unpackTar(t *testing.T, f file, date time.Time) []file {
	t.Helper()
	compressed, err := gzip.NewReader(bytes.NewReader(f.data))
	if err != nil {
		t.Fatal(err)
	}
	var files []file
	for r := tar.NewReader(compressed); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(date) || h.Uname != "" || h.Uid != 0 {
			t.Errorf("%s: %s of %s, user %d %q", f.name, h.Name, h.ModTime, h.Uid, h.Uname)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file{h.Name, fs.FileMode(h.Mode), data})
	}
}

// unpackZip is unpackTar for a zip archive.
func unpackZip(t *testing.T, f file, date time.Time) []file {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(f.data), int64(len(f.data)))
	if err != nil {
		t.Fatal(err)
	}
	var files []file
	for _, entry := range r.File {
		if !entry.Modified.Equal(date) {
			t.Errorf("%s: %s of %s", f.name, entry.Name, entry.Modified)
		}
		opened, err := entry.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(opened)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file{entry.Name, entry.Mode(), data})
	}
	return files
}

func names(files []file) []string {
	var all []string
	for _, f := range files {
		all = append(all, fmt.Sprintf("%s %o", f.name, f.mode))
	}
	slices.Sort(all)
	return all
}

// program unpacks the archive of the release into a folder.
func program(t *testing.T) (path string, data []byte) {
	t.Helper()
	p, src := host(t), sourceIn(repo)
	archive := find(t, release(t), map[bool]string{true: ".zip", false: ".tar.gz"}[p.os == "windows"])
	unpack := unpackTar
	if p.os == "windows" {
		unpack = unpackZip
	}
	files := unpack(t, archive, src.date)
	want := []string{"LICENSE 644", "README.md 644", "THIRD-PARTY-LICENSES.txt 644", p.program() + " 755"}
	if diff := cmp.Diff(want, names(files)); diff != "" {
		t.Errorf("%s: %s", archive.name, diff)
	}
	dir := t.TempDir()
	if err := write(dir, files); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, p.program()), find(t, files, p.program()).data
}

// builtAs is what mcpconform version --json has to say of the release.
func builtAs(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	src := sourceIn(repo)
	var got struct{ Version, Commit, Platform string }
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &got)
	}
	if err != nil || got.Version != src.version.tag() || got.Commit != src.commit || got.Platform != host(t).String() {
		t.Errorf("%q says %s, error %v", cmd.Args, out, err)
	}
}

func TestArchive(t *testing.T) {
	path, data := program(t)
	builtAs(t, exec.CommandContext(t.Context(), path, "version", "--json"))
	for _, trace := range []string{"/mod/github.com/", "/suites/run.go"} {
		here, err := filepath.Abs(repo)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(here+trace)) {
			t.Errorf("the program names the folder %s in which it was built", here)
		}
	}
}

func TestSums(t *testing.T) {
	files := release(t)
	list := files[len(files)-1]
	if list.name != "SHA256SUMS" {
		t.Fatalf("the last file is %s", list.name)
	}
	var want strings.Builder
	for _, f := range files[:len(files)-1] {
		fmt.Fprintf(&want, "%x  %s\n", sha256.Sum256(f.data), f.name)
	}
	if diff := cmp.Diff(want.String(), string(list.data)); diff != "" || len(files) != 6 {
		t.Errorf("%d files: %s", len(files), diff)
	}
}

// The bill of materials names what is linked in, with licence and checksum, and the
// texts of the licences go with the program.
func TestBillOfMaterials(t *testing.T) {
	path, data := program(t)
	var got bom
	if err := json.Unmarshal(find(t, release(t), ".cdx.json").data, &got); err != nil {
		t.Fatal(err)
	}
	if got.Format != "CycloneDX" || got.Metadata.Component.Hashes[0].Content != fmt.Sprintf("%x", sha256.Sum256(data)) {
		t.Errorf("%s of %v", got.Format, got.Metadata.Component)
	}
	texts, err := os.ReadFile(filepath.Join(filepath.Dir(path), "THIRD-PARTY-LICENSES.txt"))
	if err != nil {
		t.Fatal(err)
	}
	licenses := make(map[string]string)
	for i, c := range got.Components {
		licenses[c.Name] = c.Licenses[0].Expression
		if !strings.Contains(string(texts), c.Name+" "+c.Version+": "+licenses[c.Name]) {
			t.Errorf("the licence of %s is not handed on", c.Name)
		}
		if c.Name != "std" && (len(c.Hashes) != 1 || len(c.Hashes[0].Content) != 64) {
			t.Errorf("the checksum of %s is %v", c.Name, c.Hashes)
		}
		if got.Dependencies[0].DependsOn[i] != c.Ref {
			t.Errorf("%s is not among the dependencies", c.Ref)
		}
	}
	for name, want := range map[string]string{"std": "BSD-3-Clause", "github.com/spf13/cobra": "Apache-2.0", "github.com/onsi/ginkgo/v2": "MIT"} {
		if licenses[name] != want {
			t.Errorf("the licence of %s is %q", name, licenses[name])
		}
	}
}

func TestWheel(t *testing.T) {
	p, src := host(t), sourceIn(repo)
	wheel := find(t, release(t), ".whl")
	files := unpackZip(t, wheel, src.date)
	const base = "mcpconform-1.2.3rc4"
	if diff := cmp.Diff([]string{
		base + ".data/scripts/" + p.program() + " 755",
		base + ".dist-info/METADATA 644",
		base + ".dist-info/RECORD 644",
		base + ".dist-info/WHEEL 644",
		base + ".dist-info/licenses/LICENSE 644",
		base + ".dist-info/licenses/THIRD-PARTY-LICENSES.txt 644",
	}, names(files)); diff != "" {
		t.Error(diff)
	}
	var record strings.Builder
	for _, f := range files[:len(files)-1] {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
	}
	fmt.Fprintf(&record, "%s.dist-info/RECORD,,\n", base)
	if diff := cmp.Diff(record.String(), string(find(t, files, "/RECORD").data)); diff != "" {
		t.Error(diff)
	}
	// The tags of the name and of the file say the same.
	_, tags, _ := strings.Cut(strings.TrimSuffix(wheel.name, ".whl"), "-py3-none-")
	for tag := range strings.SplitSeq(tags, ".") {
		if !strings.Contains(string(find(t, files, "/WHEEL").data), "\nTag: py3-none-"+tag+"\n") {
			t.Errorf("WHEEL has not the tag %s", tag)
		}
	}
}

// tool returns the path of a program that a test needs, or skips it.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path
	case os.Getenv("MCPCONFORM_INTEROP") != "":
		t.Fatalf("MCPCONFORM_INTEROP is set, and %s is needed: %v", name, err)
	}
	t.Skipf("left out: installing the package, which needs %s", name)
	return ""
}

// bare runs a command in an environment with no programs but those at the paths, Go
// above all.
func bare(t *testing.T, dir string, paths ...string) func(name string, args ...string) *exec.Cmd {
	t.Helper()
	bin := t.TempDir()
	for _, path := range paths {
		if err := os.Symlink(path, filepath.Join(bin, filepath.Base(path))); err != nil {
			t.Fatal(err)
		}
	}
	home := t.TempDir()
	return func(name string, args ...string) *exec.Cmd {
		if !strings.Contains(name, string(filepath.Separator)) {
			name = filepath.Join(bin, name)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		t.Cleanup(cancel)
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + bin, "HOME=" + home}
		cmd.WaitDelay = 10 * time.Second // then a process was left behind that holds our pipes
		return cmd
	}
}

// exits fails unless a command ends with an exit code.
func exits(t *testing.T, want int, cmd *exec.Cmd) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
		t.Errorf("%q: %v, want exit code %d\n%s", cmd.Args, err, want, out)
	}
}

// A package that was installed from its file runs without Go: its streams, exit codes
// and signals are those of the program.
func runs(t *testing.T, mcpconform func(args ...string) *exec.Cmd) {
	t.Helper()
	builtAs(t, mcpconform("version", "--json"))
	target := append([]string{"--"}, mcpconform().Args...)
	target[1] = mcpconform().Path
	server := func(args ...string) *exec.Cmd {
		return mcpconform(slices.Concat([]string{"server", "--select", "ping"}, target, args)...)
	}
	exits(t, 0, server("reference", "server"))
	exits(t, 1, server("mock", "--fault", "ping.refused"))
	exits(t, 2, mcpconform("server", "--no-such-flag"))
	exits(t, 3, mcpconform("server", "--", "/no/such/program"))
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		cmd := mcpconform("client", "--serve")
		cmd.Stdout = io.Discard
		out, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() && !strings.Contains(lines.Text(), "http://") {
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		// The pipe ends when all processes that hold it have ended.
		if _, err := io.Copy(io.Discard, out); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 3 {
			t.Errorf("%v: %v, want exit code 3", signal, err)
		}
	}
}

func TestNPM(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("left out: this system sends no signals and has npm as a script")
	}
	node, npm, npx, sh := tool(t, "node"), tool(t, "npm"), tool(t, "npx"), tool(t, "sh")
	p, src, dir := host(t), sourceIn(repo), t.TempDir()
	files := release(t)
	main, ofPlatform := find(t, files, "mcpconform-1.2.3-rc.4.tgz"), find(t, files, "-"+p.npmOS+"-"+p.npmCPU+"-1.2.3-rc.4.tgz")
	if diff := cmp.Diff([]string{
		"package/LICENSE 644", "package/THIRD-PARTY-LICENSES.txt 644", "package/bin/" + p.program() + " 755", "package/package.json 644",
	}, names(unpackTar(t, ofPlatform, src.date))); diff != "" {
		t.Error(diff)
	}
	if err := write(dir, []file{main, ofPlatform}); err != nil {
		t.Fatal(err)
	}
	run := bare(t, dir, node, npm, npx, sh)
	exits(t, 0, run("npm", "install", "--offline", "--no-audit", "--no-fund", "./"+main.name, "./"+ofPlatform.name))
	builtAs(t, run("npx", "--offline", "mcpconform", "version", "--json"))
	installed := filepath.Join(dir, "node_modules", ".bin", "mcpconform")
	runs(t, func(args ...string) *exec.Cmd {
		return run("node", append([]string{installed}, args...)...)
	})

	// Without the package of the platform, the message names it.
	if err := os.RemoveAll(filepath.Join(dir, "node_modules", "@mcpconform")); err != nil {
		t.Fatal(err)
	}
	cmd := run("node", installed, "version")
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), p.npmName()+" is not installed") {
		t.Errorf("without the package: %v %s", cmd.ProcessState, out)
	}
}

func TestPip(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("left out: this system sends no signals")
	}
	python, dir := tool(t, "python3"), t.TempDir()
	wheel := find(t, release(t), ".whl")
	if err := write(dir, []file{wheel}); err != nil {
		t.Fatal(err)
	}
	venv := exec.CommandContext(t.Context(), python, "-m", "venv", filepath.Join(dir, "venv"))
	exits(t, 0, venv)
	run := bare(t, dir)
	exits(t, 0, run(filepath.Join(dir, "venv", "bin", "pip"), "install", "--no-index", "--disable-pip-version-check", wheel.name))
	runs(t, func(args ...string) *exec.Cmd { return run(filepath.Join(dir, "venv", "bin", "mcpconform"), args...) })
}
