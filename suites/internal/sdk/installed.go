package sdk

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	mostFolders = 16      // above the program, in which packages are looked for
	mostJSON    = 1 << 20 // bytes of a package.json
)

// version is what the versions of packages look like.
var version = regexp.MustCompile(`^[0-9]+(\.[0-9]+)+[0-9A-Za-z.+-]{0,40}$`)

// installed returns the first of some packages that is installed beside a program that the
// words of a command name, with its version. It reads nothing but the names and the versions
// of packages.
func installed(command, packages []string) (name, release string) {
	for _, words := range command {
		for _, word := range strings.Fields(words) { // a shell command is one text
			for _, pkg := range packages {
				if v := beside(word, pkg); v != "" {
					return pkg, v
				}
			}
		}
	}
	return "", ""
}

// beside returns the version of a package of npm or PyPI that belongs to a program, or "".
func beside(program, pkg string) string {
	if path, err := exec.LookPath(program); err == nil {
		if v := inEnvironment(path, pkg); v != "" {
			return v
		}
	}
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
// a program is.
func inEnvironment(program, pkg string) string {
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
