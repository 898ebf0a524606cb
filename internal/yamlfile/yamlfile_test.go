package yamlfile

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type sample struct {
	Name  string         `yaml:"name"`
	Count int            `yaml:"count"`
	Sub   map[string]sub `yaml:"sub"`
}

type sub struct {
	A []string `yaml:"a"`
}

func TestDecode(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       string // error, or "" for none
	}{
		{"empty", "", ""},
		{"comment alone", "# nothing\n", ""},
		{"byte order mark", "\ufeffname: a\n", ""},
		{"document marker", "---\nname: a\n", ""},
		{"good", "name: a\ncount: 2\nsub:\n  x: {a: [b]}\n", ""},
		{"unknown member", "name: a\nnam: b\n", `f.yaml:2:1: unknown field "nam"`},
		{"unknown member below", "sub:\n  x:\n    b: 1\n", `f.yaml:3:5: unknown field "b"`},
		{"member twice", "name: a\nname: b\n", `f.yaml:2:1: mapping key "name" already defined at [1:1]`},
		{"wrong type", "name: a\ncount: many\n", "f.yaml:2:8: cannot unmarshal string into Go struct field sample.Count of type int"},
		{"a number that is too large", "name: a\ncount: 99999999999999999999\n", "f.yaml:2:8: the number is too large for a value of the type int"},
		// These messages do not repeat a misplaced value, which may be a secret.
		{"a value instead of a member", "sub:\n  x: {s3cret}\n", "f.yaml:2:7: this value has no name; write the name, a colon and a blank before it"},
		{"an equals sign", "sub:\n  x:\n    a=s3cret: 1\n", `f.yaml:3:5: unknown field "a…" (a name is followed by a colon and a blank)`},
		{"no such alias", "name: *s3cret\n", `f.yaml:1:8: could not find alias "…"`},
		{"nothing to merge", "sub:\n  <<: *s3cret\n", "f.yaml: cannot find anchor by alias name …"},
		{"no block of text", "name: |s3cret\n", `f.yaml:1:7: invalid header option: "…"`},
		{"no boolean", "name: !!bool s3cret\n", `f.yaml:1:13: cannot convert "…" to boolean`},
		{"no version", "%YAML s3cret\n---\nname: a\n", `f.yaml:1:7: unknown YAML version "…"`},
		{"tag without a value", "sub:\n  x:\n    a: ! ", "f.yaml: the YAML cannot be understood (runtime error: invalid memory address or nil pointer dereference)"},
		{"two documents", "name: a\n---\nname: b\n", "f.yaml:3:1: the file holds more than one document"},
		{"no YAML", "name: [a\n", "f.yaml:1:7: sequence end token ']' not found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var v sample
			f, err := Parse("f.yaml", []byte(tt.text))
			if err == nil {
				err = f.Decode(&v)
			}
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got error %q, want %q", got, tt.want)
			}
		})
	}
}

func TestErrorf(t *testing.T) {
	f, err := Parse("f.yaml", []byte("name: a\nsub:\n  x:\n    a:\n      - b\n      - c\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path []any
		want string
		has  bool
	}{
		{[]any{"name"}, "f.yaml:1:7: m 1", true},
		{[]any{"sub", "x", "a", 1}, "f.yaml:6:9: m 1", true},
		{[]any{"sub", "y"}, "f.yaml:3:3: m 1", false},
		{[]any{"other"}, "f.yaml:1:1: m 1", false},
		{nil, "f.yaml:1:1: m 1", true},
	} {
		if got := f.Errorf(tt.path, "m %d", 1).Error(); got != tt.want {
			t.Errorf("%v: got %s, want %s", tt.path, got, tt.want)
		}
		if got := f.Has(tt.path...); got != tt.has {
			t.Errorf("%v: Has is %t", tt.path, got)
		}
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	long := filepath.Join(dir, "long")
	if err := os.WriteFile(long, []byte(strings.Repeat("#", maxBytes+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	var fault *Error
	if _, err := Read(long); !errors.As(err, &fault) {
		t.Errorf("a file that is too long: %v", err)
	}
	if err := os.WriteFile(long, []byte("name: a"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, read := range []func() (*File, error){
		func() (*File, error) { return Read(long) },
		func() (*File, error) { return ReadFS(os.DirFS(dir), "long") },
	} {
		f, err := read()
		if err != nil || !f.Has("name") {
			t.Errorf("got %v, %v", f, err)
		}
	}
}

func TestJSON(t *testing.T) {
	got, err := JSON(map[string]any{"a": []any{uint64(1), int64(-1), 0.5, 2, "x", true, nil}})
	want := map[string]any{"a": []any{json.Number("1"), json.Number("-1"), json.Number("0.5"), json.Number("2"), "x", true, nil}}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []any{math.Inf(1), math.NaN(), []any{struct{}{}}, map[string]any{"a": math.NaN()}} {
		if v, err := JSON(bad); err == nil {
			t.Errorf("%v became %v", bad, v)
		}
	}
}

// The YAML library would take minutes for some of these.
func TestDepth(t *testing.T) {
	for _, deep := range []string{"[", "{a: ", "- ", "? ", "a: ", "- {? ["} {
		_, err := Parse("f.yaml", []byte("b: 1\nc:\n  "+strings.Repeat(deep, 100_000)))
		if err == nil || !strings.HasPrefix(err.Error(), "f.yaml:3:") || !strings.HasSuffix(err.Error(), "nested more than 100 deep") {
			t.Errorf("%q repeated: got %v", deep, err)
		}
	}
	for _, wide := range []string{"- [1, {a: 2, b: 3}]\n", "- - - a\n", "- a: b\n  c: d\n"} {
		if _, err := Parse("f.yaml", []byte(strings.Repeat(wide, 1000))); err != nil {
			t.Errorf("%q repeated: %v", wide, err)
		}
	}
}
