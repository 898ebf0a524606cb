package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const fixtures = "../../fixtures/targets"

// TestData holds the committed data to its own rules, among them that targets.yaml and
// the manifests name the same versions.
func TestData(t *testing.T) {
	data, err := load(fixtures)
	if err != nil {
		t.Fatal(err)
	}
	if len(data.Targets) == 0 {
		t.Fatal("no targets")
	}
	for _, target := range data.Targets {
		for name, transport := range target.Transports {
			run, err := transport.fill(Values{
				Cache: "/cache", Repo: "/repo", Tmp: "/tmp", Port: "1", Node: "node", URL: "http://x", Server: []string{"s"},
			})
			if err != nil {
				t.Errorf("%s over %s: %v", target.Name, name, err)
				continue
			}
			for _, text := range append(run.Command, run.URL) {
				if strings.ContainsAny(text, "{}") {
					t.Errorf("%s over %s: %q still holds a placeholder", target.Name, name, text)
				}
				if own, ok := strings.CutPrefix(text, "/repo/"); ok {
					if _, err := os.Stat(filepath.Join("../..", own)); err != nil {
						t.Errorf("%s over %s: %v", target.Name, name, err)
					}
				}
			}
		}
	}
}

// TestNoRegistry keeps lock files free of where a machine gets its packages from.
func TestNoRegistry(t *testing.T) {
	locks, err := filepath.Glob(filepath.Join(fixtures, "*", "package-lock.json"))
	if err != nil || len(locks) == 0 {
		t.Fatalf("found %d lock files, error %v", len(locks), err)
	}
	for _, lock := range locks {
		text, err := os.ReadFile(lock)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), `"resolved"`) {
			t.Errorf("%s holds addresses of packages", lock)
		}
	}
}

func TestPinned(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("npm/package.json", `{"dependencies": {"a": "1.2.3", "b": "^1.2.3", "c": "1.2.3"}}`)
	write("npm/package-lock.json", `{"packages": {
		"node_modules/a": {"version": "1.2.3"}, "node_modules/b": {"version": "1.2.3"}, "node_modules/c": {"version": "1.2.4"}}}`)
	write("go/go.mod", "module m\n\nrequire (\n\texample.com/a v1.2.3 // indirect\n\texample.com/b v1.2.30\n)\n")
	write("pip/r.txt", "a==1.2.3\nb==1.2.30\nc>=1.2.3\n")
	write("cargo/Cargo.toml", "[dependencies]\na = { version = \"=1.2.3\" }\nb = { version = \"1.2.3\" }\n")

	for _, test := range []struct {
		manager, pkg string
		want         bool
	}{
		{"npm", "a", true},
		{"npm", "b", false}, // a range
		{"npm", "c", false}, // another version in the lock file
		{"npm", "d", false}, // absent
		{"go", "example.com/a", true},
		{"go", "example.com/b", false}, // a longer version
		{"pip", "a", true},
		{"pip", "b", false},
		{"pip", "c", false},
		{"cargo", "a", true},
		{"cargo", "b", false}, // a range
	} {
		version := "1.2.3"
		if test.manager == "go" {
			version = "v1.2.3"
		}
		install := &Install{Manager: test.manager, Dir: test.manager, Requirements: "r.txt"}
		err := managers[test.manager].pinned(dir, install, test.pkg, version)
		if got := err == nil; got != test.want {
			t.Errorf("%s pins %s at %s: %t, want %t (%v)", test.manager, test.pkg, version, got, test.want, err)
		}
	}
}

func TestCheck(t *testing.T) {
	const good = `
format: 1
installs:
  py: {manager: pip, dir: py, requirements: r.txt}
targets:
  - name: one
    kind: server
    install: py
    package: a
    version: 1.2.3
    transports:
      stdio: {command: [x]}
`
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "py"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "py", "r.txt"), []byte("a==1.2.3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, old, new, want string }{
		{"good", "", "", ""},
		{"format", "format: 1", "format: 2", "format 2"},
		{"manager", "manager: pip", "manager: pop", `unknown manager "pop"`},
		{"kind", "kind: server", "kind: waiter", `unknown kind "waiter"`},
		{"install", "install: py", "install: px", `unknown install "px"`},
		{"transport", "stdio:", "pigeon:", `unknown transport "pigeon"`},
		{"command", "[x]", "[]", "no command for stdio"},
		{"url", "stdio:", "http:", "have a url"},
		{"version", "1.2.3", "1.2.4", "does not pin a at 1.2.4"},
		{"field", "kind:", "kin: x\n    kind:", "kin"},
		{"needs", "manager: pip,", "manager: pip, needs: [node],", `needs "node"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := strings.Replace(good, test.old, test.new, 1)
			if err := os.WriteFile(filepath.Join(dir, "targets.yaml"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := load(dir)
			switch {
			case test.want == "" && err != nil:
				t.Fatal(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Fatalf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestFill(t *testing.T) {
	transport := &Transport{
		Command: []string{"{node}", "{cache}/x", "{server}", "-s={server}"},
		Env:     map[string]string{"PORT": "{port}"},
		URL:     "http://127.0.0.1:{port}/mcp",
	}
	got, err := transport.fill(Values{Cache: "/c", Node: "/n", Port: "7", Server: []string{"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	want := &Run{
		Command: []string{"/n", "/c/x", "a", "b", "-s=a b"},
		Env:     map[string]string{"PORT": "7"},
		URL:     "http://127.0.0.1:7/mcp",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := transport.fill(Values{Cache: "/c", Node: "/n", Port: "7"}); err == nil {
		t.Error("no error without a server")
	}
}

func TestSelected(t *testing.T) {
	data := &Data{
		Installs: map[string]*Install{"node": {}, "npm": {Needs: []string{"node"}}, "go": {}},
		Targets:  []*Target{{Name: "everything", Install: "npm"}},
	}
	for _, test := range []struct {
		names, want []string
	}{
		{nil, []string{"go", "node", "npm"}},
		{[]string{"everything"}, []string{"node", "npm"}},
		{[]string{"go"}, []string{"go"}},
	} {
		got, err := data.selected(test.names)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.names, diff)
		}
	}
	if _, err := data.selected([]string{"nothing"}); err == nil {
		t.Error("no error for an unknown name")
	}
}

// TestReady proves that a change of a manifest or a lost program asks for installation.
func TestReady(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	for _, at := range []string{filepath.Join(dir, "py"), filepath.Join(cache, "py", "bin")} {
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	in := &installer{dir: dir, cache: cache, data: &Data{
		Installs: map[string]*Install{"py": {Manager: "pip", Dir: "py", Requirements: "r.txt"}},
	}}
	manifest := filepath.Join(dir, "py", "r.txt")
	python := filepath.Join(cache, "py", "bin", "python")
	ready := func() (bool, string) {
		t.Helper()
		ok, stamp, err := in.ready("py")
		if err != nil {
			t.Fatal(err)
		}
		return ok, stamp
	}

	write(manifest, "a==1\n")
	write(python, "")
	ok, stamp := ready()
	if ok {
		t.Error("ready without a stamp")
	}
	write(filepath.Join(cache, "py", stampFile), stamp)
	if ok, _ := ready(); !ok {
		t.Error("not ready with the stamp")
	}
	write(manifest, "a==2\n")
	if ok, _ := ready(); ok {
		t.Error("ready with another manifest")
	}
	write(manifest, "a==1\n")
	if err := os.Remove(python); err != nil {
		t.Fatal(err)
	}
	if ok, _ := ready(); ok {
		t.Error("ready without its program")
	}
}
