// Command release builds what a release of mcpconform consists of:
//
//	release -version v0.1.0 -out DIR [-platforms linux/amd64,…] [-check]
//
// DIR then has, for each platform, an archive with the program, an npm package and a Python
// wheel that bring it, and its bill of materials; the npm package that chooses among those of
// the platforms; and SHA256SUMS over all of them.
//
// The bytes depend on the commit, the version and the version of Go alone. With -check the
// release is made once more, from a clone elsewhere and with an empty build cache, and
// compared.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	name := flags.String("version", "", "the `version` that is released, such as v0.1.0 or v0.1.0-rc.1")
	to := flags.String("out", "dist", "the `folder` that the files go to; it must be empty or not exist yet")
	only := flags.String("platforms", "", "build only for these `platforms`, such as linux/amd64,windows/arm64")
	check := flags.Bool("check", false, "make the release a second time, elsewhere, and compare the two")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	version, err := parseVersion(*name)
	if err != nil {
		return err
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	if there, err := os.ReadDir(*to); err == nil && len(there) > 0 {
		return fmt.Errorf("%s is not empty: files of another release could be taken for those of this one", *to)
	}
	src, err := checkout(ctx, version)
	if err != nil {
		return err
	}
	start := time.Now()
	files, err := src.make(ctx, chosen)
	if err != nil {
		return err
	}
	if err := write(*to, files); err != nil {
		return err
	}
	for _, f := range files {
		fmt.Fprintf(out, "%9d  %s\n", len(f.data), filepath.Join(*to, f.name))
	}
	fmt.Fprintf(out, "%s of commit %.12s, %d files (%.0f s)\n", version.tag(), src.commit, len(files),
		time.Since(start).Seconds())
	if !*check {
		return nil
	}
	again, err := src.elsewhere(ctx, chosen)
	if err != nil {
		return fmt.Errorf("make the release a second time: %w", err)
	}
	if differ := differences(files, again); len(differ) > 0 {
		return fmt.Errorf("the second time, these files were different: %s", strings.Join(differ, ", "))
	}
	fmt.Fprintf(out, "made a second time, from a clone and with an empty build cache: the same bytes (%.0f s)\n",
		time.Since(start).Seconds())
	return nil
}

// source is what a release is made from.
type source struct {
	repo    string // the checkout
	version version
	commit  string
	date    time.Time // of the commit, and of everything that is released
	env     []string  // for go, in addition to ours
}

// checkout returns the source in the repository of the working directory. Its files have to
// be as they were committed.
func checkout(ctx context.Context, v version) (*source, error) {
	s := &source{repo: ".", version: v}
	top, err := s.git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	s.repo = top
	changed, err := s.git(ctx, "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if changed != "" {
		return nil, fmt.Errorf("a release is made of a commit; commit or stash these changes first:\n%s", changed)
	}
	if s.commit, err = s.git(ctx, "rev-parse", "HEAD"); err != nil {
		return nil, err
	}
	seconds, err := s.git(ctx, "log", "-1", "--format=%ct")
	if err != nil {
		return nil, err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the date of the commit: %w", err)
	}
	s.date = time.Unix(unix, 0).UTC()
	return s, nil
}

func (s *source) git(ctx context.Context, args ...string) (string, error) {
	out, err := s.output(exec.CommandContext(ctx, "git", args...))
	return strings.TrimSpace(string(out)), err
}

// output runs a command in the checkout.
func (s *source) output(cmd *exec.Cmd) ([]byte, error) {
	cmd.Dir = s.repo
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, said.Bytes())
	}
	return out, nil
}

// elsewhere makes the release from a clone in another folder with nothing built before.
func (s *source) elsewhere(ctx context.Context, platforms []platform) (files []file, err error) {
	dir, err := os.MkdirTemp("", "mcpconform-release-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	clone := *s
	clone.repo = filepath.Join(dir, "clone")
	clone.env = append(clone.env, "GOCACHE="+filepath.Join(dir, "cache"))
	if _, err := s.git(ctx, "clone", "--quiet", s.repo, clone.repo); err != nil {
		return nil, err
	}
	if _, err := clone.git(ctx, "checkout", "--quiet", "--detach", s.commit); err != nil {
		return nil, err
	}
	return clone.make(ctx, platforms)
}

// make builds all files of the release, in the order of their names; SHA256SUMS is last.
func (s *source) make(ctx context.Context, platforms []platform) ([]file, error) {
	ours, err := os.ReadFile(filepath.Join(s.repo, "LICENSE"))
	if err != nil {
		return nil, err
	}
	readme, err := os.ReadFile(filepath.Join(s.repo, "README.md"))
	if err != nil {
		return nil, err
	}
	var files []file
	for _, p := range platforms {
		program, err := s.build(ctx, p)
		if err != nil {
			return nil, err
		}
		modules, err := s.linked(ctx, p, program)
		if err != nil {
			return nil, err
		}
		licenses := []file{{"LICENSE", 0o644, ours}, {"THIRD-PARTY-LICENSES.txt", 0o644, thirdParty(modules)}}
		for _, form := range []func(platform, []byte, []file) (file, error){
			func(p platform, program []byte, licenses []file) (file, error) {
				return s.archive(p, program, append(licenses, file{"README.md", 0o644, readme}))
			},
			s.npmPlatform,
			s.wheel,
			func(p platform, program []byte, _ []file) (file, error) {
				return s.billOfMaterials(p, program, modules)
			},
		} {
			f, err := form(p, program, slices.Clone(licenses))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p, err)
			}
			files = append(files, f)
		}
	}
	launcher, err := s.npmLauncher(platforms, ours)
	if err != nil {
		return nil, err
	}
	files = append(files, launcher)
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return append(files, sums(files)), nil
}

// sums lists the checksums of files as sha256sum does.
func sums(files []file) file {
	var b bytes.Buffer
	for _, f := range files {
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(f.data), f.name)
	}
	return file{"SHA256SUMS", 0o644, b.Bytes()}
}

// write puts files into a folder.
func write(dir string, files []file) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.name), f.data, f.mode); err != nil {
			return err
		}
	}
	return nil
}

// differences names the files that are not the same in both.
func differences(a, b []file) []string {
	data := make(map[string][]byte)
	for _, f := range a {
		data[f.name] = f.data
	}
	var differ []string
	for _, f := range b {
		if first, ok := data[f.name]; !ok || !bytes.Equal(first, f.data) {
			differ = append(differ, f.name)
		}
		delete(data, f.name)
	}
	for name := range data {
		differ = append(differ, name)
	}
	slices.Sort(differ)
	return differ
}

// file is a file of the release or of an archive.
type file struct {
	name string // with slashes
	mode fs.FileMode
	data []byte
}
