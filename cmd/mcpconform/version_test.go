package main

import (
	"bytes"
	"encoding/json"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/schema"
)

func TestBuild(t *testing.T) {
	vcs := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "abc"}}
	for _, tt := range []struct {
		name             string
		info             *debug.BuildInfo
		released, commit string
		wantVersion      string
		wantCommit       string
	}{
		{"release", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "v1.2.3", "def", "v1.2.3", "def"},
		{"release in a checkout", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3+dirty"}, Settings: vcs}, "v1.2.3", "def", "v1.2.3", "def"},
		{"go install", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "", "", "v1.2.3", ""},
		{"go build", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.4-0.2026+dirty"}, Settings: vcs}, "", "", "v1.2.4-0.2026+dirty", "abc"},
		{"tests", &debug.BuildInfo{}, "", "", "(devel)", ""},
		{"nothing known", nil, "", "", "(devel)", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := build{tt.wantVersion, tt.wantCommit, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, []string{schema.DefaultVersion}}
			if diff := cmp.Diff(want, buildOf(tt.info, tt.released, tt.commit)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The command says the same in words and in JSON, and the version that reports name.
func TestVersionCommand(t *testing.T) {
	run := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		cmd := newRoot()
		cmd.SetArgs(args)
		cmd.SetOut(&out)
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	var got build
	if err := json.Unmarshal([]byte(run("version", "--json")), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(thisBuild(), got); diff != "" || got.Version != version() {
		t.Errorf("%s version %s", diff, version())
	}
	text := run("version")
	for _, want := range append(got.Revisions, "mcpconform "+got.Version, got.Go, got.Platform, "commit") {
		if !strings.Contains(text, want) {
			t.Errorf("%q has no %q", text, want)
		}
	}
	if short := run("--version"); !strings.Contains(short, got.Version) {
		t.Errorf("--version says %q, version %q", short, got.Version)
	}
}
