package mockserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/schema"
)

var faultID = regexp.MustCompile(`^[a-z]+\.[a-z0-9][a-z0-9.-]*[a-z0-9]$`)

func TestCatalogue(t *testing.T) {
	seen := make(map[string]bool)
	for _, f := range mockserver.Catalogue() {
		if seen[f.ID] || !faultID.MatchString(f.ID) {
			t.Errorf("the id %q is taken or has another form", f.ID)
		}
		seen[f.ID] = true
		r, ok := schema.Default().Lookup(f.Requirement)
		switch {
		case !ok:
			t.Errorf("%s: there is no requirement %s", f.ID, f.Requirement)
		case !r.Observable:
			t.Errorf("%s: %s cannot be observed", f.ID, f.Requirement)
		case r.JudgedParty() == schema.Client:
			t.Errorf("%s: %s is not judged on servers", f.ID, f.Requirement)
		}
		if f.WarnOnly && f.Level() != schema.Must && f.Level() != schema.MustNot {
			t.Errorf("%s is only warned of, but %s is not a MUST", f.ID, f.Requirement)
		}
		if f.Summary == "" || strings.Contains(f.Summary, "\n") || !strings.HasSuffix(f.Summary, ".") {
			t.Errorf("%s: the summary is not one sentence: %q", f.ID, f.Summary)
		}
		for i, id := range f.Collateral {
			if _, ok := schema.Default().Lookup(id); !ok || id == f.Requirement || slices.Contains(f.Collateral[:i], id) {
				t.Errorf("%s: the collateral %s is unknown or said already", f.ID, id)
			}
		}
	}
}

// Faults that hook into the same place leave each other alone.
func TestFaultsAddUp(t *testing.T) {
	var o server.Options
	for _, id := range []string{"base.response-twice", "base.jsonrpc-missing", "ping.not-empty", "ping.unknown", "base.error-message-missing"} {
		f, ok := mockserver.Find(id)
		if !ok {
			t.Fatalf("there is no fault %s", id)
		}
		f.Apply(&o)
	}
	var out bytes.Buffer
	stdin := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n")
	if err := server.New(o).RunStdio(context.Background(), stdin, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var lines []map[string]any
	for scanner := bufio.NewScanner(&out); scanner.Scan(); {
		var m map[string]any
		if err := json.Unmarshal(scanner.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, m)
	}
	if len(lines) != 2 {
		t.Fatalf("%d responses, not two: %v", len(lines), lines)
	}
	problem, _ := lines[0]["error"].(map[string]any)
	if _, ok := lines[0]["jsonrpc"]; ok || problem["code"] != -32601.0 || problem["message"] != nil {
		t.Errorf("the response is %v", lines[0])
	}
}

// A fault changes nothing but the options that it is applied to.
func TestFaultsAreIndependent(t *testing.T) {
	for _, f := range mockserver.Catalogue() {
		f.Apply(&server.Options{})
	}
	var out bytes.Buffer
	stdin := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n")
	if err := server.New(server.Options{}).RunStdio(context.Background(), stdin, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if want := `{"id":1,"jsonrpc":"2.0","result":{}}` + "\n"; out.String() != want {
		t.Errorf("the server answers %q, not %q", out.String(), want)
	}
}
