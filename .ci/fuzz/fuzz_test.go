package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a_test.go")
	if err := os.WriteFile(path, []byte("package a\n\nfunc FuzzA(f *testing.F) {\n// func FuzzB(f *testing.F)\nfunc FuzzC(f *testing.F) { g(f) }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := find("example.com/none\nexample.com/a " + path + "\n")
	if diff := cmp.Diff([]target{{"example.com/a", filepath.Dir(path), "FuzzA"}, {"example.com/a", filepath.Dir(path), "FuzzC"}}, got, cmp.AllowUnexported(target{})); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestCount(t *testing.T) {
	if n := count("fuzz: elapsed: 0s, gathering\nfuzz: elapsed: 3s, execs: 120 (40/sec)\nfuzz: elapsed: 4s, execs: 170 (50/sec), new interesting: 3\nPASS\n"); n != 170 {
		t.Error(n)
	}
	if n := count("FAIL"); n != 0 {
		t.Error(n)
	}
}

// TestLate tells a lack of time from a failure.
func TestLate(t *testing.T) {
	for out, want := range map[string]bool{
		"--- FAIL: FuzzX (5.81s)\n    context deadline exceeded\nFAIL\n":                                         true,
		"--- FAIL: FuzzX (5.81s)\n    context deadline exceeded\n    Failing input written to testdata/fuzz/x\n": false,
		"--- FAIL: FuzzX (0.1s)\n    x_test.go:1: wrong\n":                                                       false,
	} {
		if got := late([]byte(out)); got != want {
			t.Errorf("late(%q) = %t", out, got)
		}
	}
}
