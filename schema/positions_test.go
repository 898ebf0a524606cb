package schema_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/internal/source"
)

func positions(t testing.TB) []schema.Position {
	t.Helper()
	list := schema.Default().Positions()
	if len(list) == 0 {
		t.Fatal("there are no positions")
	}
	return list
}

// The embedded JSON and the document are what "go generate ./schema" makes of
// positions.yaml.
func TestGeneratedPositionsAreCurrent(t *testing.T) {
	list, err := source.Positions(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(list, positions(t)); diff != "" {
		t.Errorf("the positions differ from their source: run go generate ./schema (-want +got):\n%s", diff)
	}
	want, err := source.DescribePositions(list, catalogue(t))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(source.PositionsDocument)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not current: run go generate ./schema (-want +got):\n%s", source.PositionsDocument, diff)
	}
}

// docs/grading.md is what "go generate ./schema" makes of the catalogue.
func TestGradingDocumentIsCurrent(t *testing.T) {
	regradings, err := source.Regradings(dir)
	if err != nil {
		t.Fatal(err)
	}
	want, err := source.DescribeGrading(regradings, catalogue(t))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(source.GradingDocument)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not current: run go generate ./schema (-want +got):\n%s", source.GradingDocument, diff)
	}
}

func TestDescribeGradingRefuses(t *testing.T) {
	list := []schema.Requirement{{ID: "a.b", Level: schema.Should, Basis: schema.ByImplication}}
	for _, g := range []source.Regrading{{ID: "a.none", Before: schema.Must}, {ID: "a.b", Before: schema.Should}} {
		if _, err := source.DescribeGrading([]source.Regrading{g}, list); err == nil {
			t.Errorf("%v is accepted", g)
		}
	}
	if _, err := source.DescribeGrading([]source.Regrading{{ID: "a.b", Before: schema.Must}}, list); err != nil {
		t.Error(err)
	}
}

var kebab = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// positionFaults returns what is wrong with one entry.
func positionFaults(p schema.Position) []string {
	var list []string
	check := func(ok bool, fault string) {
		if !ok {
			list = append(list, fault)
		}
	}
	check(kebab.MatchString(p.ID), "the id is malformed")
	check(p.Title != "" && p.Title == strings.TrimSpace(p.Title) && !strings.HasSuffix(p.Title, "."), "the title is not a heading")
	check(len(p.Requirements) > 0, "it names no requirement")
	seen := map[string]bool{}
	for _, id := range p.Requirements {
		_, ok := schema.Default().Lookup(id)
		check(ok, "there is no requirement "+id)
		check(!seen[id], id+" occurs twice")
		seen[id] = true
	}
	for name, text := range map[string]string{"ambiguity": p.Ambiguity, "position": p.Position, "reason": p.Reason} {
		check(strings.HasSuffix(text, ".") && text == strings.TrimSpace(text), "the "+name+" is not a sentence")
	}
	return list
}

func TestPositions(t *testing.T) {
	ids := map[string]bool{}
	for _, p := range positions(t) {
		if ids[p.ID] {
			t.Errorf("%s occurs twice", p.ID)
		}
		ids[p.ID] = true
		for _, fault := range positionFaults(p) {
			t.Errorf("%s: %s", p.ID, fault)
		}
	}
}

// The checks of entries notice what they are for.
func TestPositionFaults(t *testing.T) {
	good := schema.Position{
		ID: "empty-cursor", Title: "An empty cursor", Requirements: []string{"pagination.operations"},
		Ambiguity: "It is open.", Position: "It passes.", Reason: "It is so.",
	}
	if got := positionFaults(good); got != nil {
		t.Fatalf("a good entry has faults: %v", got)
	}
	for name, spoil := range map[string]func(*schema.Position){
		"id":                  func(p *schema.Position) { p.ID = "Empty cursor" },
		"title":               func(p *schema.Position) { p.Title = "It ends." },
		"no requirement":      func(p *schema.Position) { p.Requirements = nil },
		"unknown requirement": func(p *schema.Position) { p.Requirements = []string{"pagination.operation"} },
		"requirement twice":   func(p *schema.Position) { p.Requirements = []string{"pagination.operations", "pagination.operations"} },
		"ambiguity":           func(p *schema.Position) { p.Ambiguity = "" },
		"position":            func(p *schema.Position) { p.Position = "It passes" },
		"reason":              func(p *schema.Position) { p.Reason = " It is so." },
	} {
		bad := good
		spoil(&bad)
		if len(positionFaults(bad)) != 1 {
			t.Errorf("%s: got %v, want one fault", name, positionFaults(bad))
		}
	}
}

func TestPositionsFor(t *testing.T) {
	var want []string
	for _, p := range positions(t) {
		for _, id := range p.Requirements {
			if id == "base.error.parse-error" {
				want = append(want, p.ID)
			}
		}
	}
	if len(want) < 2 {
		t.Fatalf("the test needs a requirement with several positions, got %v", want)
	}
	var got []string
	for _, p := range schema.Default().PositionsFor("base.error.parse-error") {
		got = append(got, p.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := schema.Default().PositionsFor("base.error"); got != nil {
		t.Errorf("an unknown requirement has positions: %v", got)
	}
}

func TestDescribePositionsRefuses(t *testing.T) {
	list := []schema.Position{{ID: "a", Requirements: []string{"base.none"}}}
	if _, err := source.DescribePositions(list, nil); err == nil {
		t.Error("an unknown requirement is accepted")
	}
}
