package sdk

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	mostFolders = 16      // above the program, in which packages are looked for
	mostJSON    = 1 << 20 // bytes of a package.json
)

// script matches a word of a command that runs JavaScript: a runtime, or a file of the language.
var script = regexp.MustCompile(`(^|[/\\])(node|nodejs|npm|npx|pnpm|yarn|tsx|ts-node|bun|bunx|deno)(\.exe)?$` +
	`|\.[cm]?[jt]sx?$|node_modules`)

// version is what the versions of packages look like.
var version = regexp.MustCompile(`^[0-9]+(\.[0-9]+)+[0-9A-Za-z.+-]{0,40}$`)

// installed returns the first of some packages that is installed beside a program that the
// words of a command name, with its version. It reads nothing but the names and the versions
// of packages. A program in another language may stand in a folder that has node_modules.
func installed(command, packages []string) (name, release string) {
	words := strings.Fields(strings.Join(command, " ")) // a shell command is one text
	javascript := slices.ContainsFunc(words, script.MatchString)
	for _, word := range words {
		for _, pkg := range packages {
			v := inEnvironment(word, pkg)
			if v == "" && javascript {
				v = inNodeModules(word, pkg)
			}
			if v != "" {
				return pkg, v
			}
		}
	}
	return "", ""
}

// inNodeModules returns the version of a package of npm that is installed beside a program, or "".
func inNodeModules(program, pkg string) string {
	path, err := filepath.Abs(program)
	if err != nil {
		return ""
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "" // no file
	}
	for i, dir := 0, filepath.Dir(path); i < mostFolders; i, dir = i+1, filepath.Dir(dir) {
		if v := fromPackageJSON(filepath.Join(dir, "node_modules", filepath.FromSlash(pkg), "package.json")); v != "" {
			return v
		}
	}
	return ""
}

// inEnvironment returns the version of a package in the virtual environment of Python in which
// a program is, or "".
func inEnvironment(program, pkg string) string {
	program, err := exec.LookPath(program)
	if err != nil {
		return ""
	}
	root := filepath.Dir(filepath.Dir(program))
	if _, err := os.Stat(filepath.Join(root, "pyvenv.cfg")); err != nil || strings.Contains(pkg, "/") {
		return ""
	}
	found, _ := filepath.Glob(filepath.Join(root, "lib", "python3*", "site-packages", pkg+"-*.dist-info"))
	for _, dir := range found {
		v := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(dir), pkg+"-"), ".dist-info")
		if version.MatchString(v) {
			return v
		}
	}
	return ""
}

func fromPackageJSON(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	var pkg struct {
		Version string `json:"version"`
	}
	if json.NewDecoder(io.LimitReader(f, mostJSON)).Decode(&pkg) != nil || !version.MatchString(pkg.Version) {
		return ""
	}
	return pkg.Version
}
