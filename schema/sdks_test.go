package schema_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/internal/source"
)

// The embedded JSON is what "go generate ./schema" makes of sdks.yaml.
func TestGeneratedKnownFaultsAreCurrent(t *testing.T) {
	want, err := source.KnownFaults(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := schema.Default().KnownFaults()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the faults of SDKs differ from their source: run go generate ./schema (-want +got):\n%s", diff)
	}
}

func TestKnownFaultsAreComplete(t *testing.T) {
	list := schema.Default().KnownFaults()
	if len(list) == 0 {
		t.Fatal("there are no known faults")
	}
	var ids []string
	for _, f := range list {
		if !kebab.MatchString(f.ID) || slices.Contains(ids, f.ID) {
			t.Errorf("the id %q is malformed or not unique", f.ID)
		}
		ids = append(ids, f.ID)
		if f.SDK == "" || f.Versions == "" || f.Says == "" || f.Advice == "" || len(f.Requirements) == 0 {
			t.Errorf("%s lacks something: %+v", f.ID, f)
		}
		if !strings.HasPrefix(f.Thread, "https://github.com/") {
			t.Errorf("%s: %s is no public thread", f.ID, f.Thread)
		}
		if f.Certain && f.Text == "" {
			t.Errorf("%s is certain, and nothing tells the SDK", f.ID)
		}
		for _, id := range f.Requirements {
			if r, ok := schema.Default().Lookup(id); !ok || !r.Observable {
				t.Errorf("%s: %s is no observable requirement", f.ID, id)
			}
		}
	}
}

func TestKnownFaultsFor(t *testing.T) {
	ids := func(requirement, command string, texts ...string) string {
		var found []string
		for _, f := range schema.Default().KnownFaultsFor(requirement, command, texts) {
			found = append(found, f.ID)
		}
		return strings.Join(found, " ")
	}
	const dump = `{"error":{"code":-32603,"message":"[ { \"code\": \"invalid_type\" } ]"}}`
	for _, test := range []struct{ name, got, want string }{
		{"by its text", ids("base.error.invalid-params", "", "other", dump), "typescript-invalid-params"},
		{"without its text", ids("base.error.invalid-params", "node server.js", "error -32603: boom"), ""},
		{"another requirement", ids("base.error.parse-error", "", dump), ""},
		{"by the command", ids("http.server.origin-foreign", "node server.js", "403"), "typescript-origin"},
		{"another command", ids("http.server.origin-foreign", "java -jar server.jar", "403"), ""},
		{"without a command", ids("http.server.origin-foreign", "", "403"), "typescript-origin rust-origin go-origin"},
	} {
		if test.got != test.want {
			t.Errorf("%s: %q, want %q", test.name, test.got, test.want)
		}
	}
}

// The signs of SDKs are those of their source, and the faults name SDKs by the same names.
func TestSignsOfSDKs(t *testing.T) {
	want, err := source.SDKs(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := schema.Default().SDKs()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the signs of SDKs differ from their source: run go generate ./schema (-want +got):\n%s", diff)
	}
	faults := schema.Default().KnownFaults()
	for _, s := range got {
		if len(s.Signs) == 0 || !slices.ContainsFunc(faults, func(f schema.KnownFault) bool { return f.SDK == s.Name }) {
			t.Errorf("%q has no signs, or no faults", s.Name)
		}
	}
}

func TestMendedIn(t *testing.T) {
	for _, test := range []struct {
		mended, version string
		want            bool
	}{
		{"2.0.0", "1.32.2", false},
		{"2.0.0", "2.0.0", true},
		{"2.0.0", "2.1", true},
		{"2.0.0", "2.0.0-alpha.4", true},
		{"1.3.1", "1.3.0", false},
		{"1.3.1", "1.10.0", true},
		{"1.3.1", "", false},
		{"", "9.0.0", false},
	} {
		if got := (schema.KnownFault{Mended: test.mended}).MendedIn(test.version); got != test.want {
			t.Errorf("mended in %q, version %q: %t", test.mended, test.version, got)
		}
	}
}
