package schema_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/internal/source"
)

// The embedded JSON is what "go generate ./schema" makes of advice.yaml and
// consequences.yaml.
func TestGeneratedAdviceIsCurrent(t *testing.T) {
	want, err := source.Advice(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := schema.Default().Advice()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the advice differs from its source: run go generate ./schema (-want +got):\n%s", diff)
	}
	consequences, err := source.Consequences(dir)
	if err != nil {
		t.Fatal(err)
	}
	brings := schema.Default().Consequences()
	for _, c := range consequences {
		if diff := cmp.Diff(c.Brings, brings[c.Cause]); diff != "" {
			t.Errorf("what %s brings differs from its source: run go generate ./schema (-want +got):\n%s", c.Cause, diff)
		}
	}
}

// Every requirement with possible findings has advice, in other words than those of the requirement. Every MUST has
// words of its own.
func TestEveryObservableRequirementHasAdvice(t *testing.T) {
	list := schema.Default().Advice()
	own := make(map[string]bool)
	for _, a := range list {
		own[a.Requirement] = true
	}
	for _, r := range catalogue(t) {
		advice := schema.Default().AdviceFor(r.ID)
		switch {
		case !r.Observable:
			if advice != "" {
				t.Errorf("%s cannot be observed, and has advice", r.ID)
			}
		case advice == "":
			t.Errorf("%s has no advice in advice.yaml", r.ID)
		case !own[r.ID] && strings.HasPrefix(string(r.Level), "MUST"):
			t.Errorf("%s is a %s and has only the advice of its class", r.ID, r.Level)
		case shared(advice, r.Summary) > 0.8:
			t.Errorf("%s: the advice %q says no more than the summary %q", r.ID, advice, r.Summary)
		}
	}
}

// shared is the part of the words of a that b has too.
func shared(a, b string) float64 {
	words := func(s string) []string {
		return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return strings.ContainsRune(" .,:;()", r) })
	}
	in := make(map[string]bool)
	for _, w := range words(b) {
		in[w] = true
	}
	n := 0
	for _, w := range words(a) {
		if in[w] {
			n++
		}
	}
	return float64(n) / float64(len(words(a)))
}

func TestAdviceIsASentenceThatSaysSomething(t *testing.T) {
	list := schema.Default().Advice()
	ids := make(map[string]bool)
	for _, r := range catalogue(t) {
		ids[r.ID] = r.Observable
	}
	seen := make(map[string]bool)
	for _, a := range list {
		if seen[a.Requirement] {
			t.Errorf("%s has two entries", a.Requirement)
		}
		seen[a.Requirement] = true
		if start, class := strings.CutSuffix(a.Requirement, "*"); class {
			used := false
			for id := range ids {
				used = used || strings.HasPrefix(id, start)
			}
			if !used {
				t.Errorf("no requirement begins with %s", start)
			}
		} else if !ids[a.Requirement] {
			t.Errorf("%s is no observable requirement", a.Requirement)
		}
		if !strings.HasSuffix(a.Advice, ".") || len(a.Advice) > 200 || a.Advice != strings.TrimSpace(a.Advice) {
			t.Errorf("%s: %q is no sentence, or a long one", a.Requirement, a.Advice)
		}
		for _, filler := range []string{"nsure ", "omply", "compliance", "onform to the spec", "ollow the spec", "ake sure"} {
			if strings.Contains(a.Advice, filler) {
				t.Errorf("%s: %q is filler in %q", a.Requirement, filler, a.Advice)
			}
		}
	}
}

func TestAdviceOfItsOwnComesFirst(t *testing.T) {
	own, class := schema.Default().AdviceFor("base.error.invalid-params"), schema.Default().AdviceFor("base.error.no-such-requirement")
	if !strings.Contains(own, "-32602") || class != "" {
		t.Errorf("got %q, and %q for what is not in the catalogue", own, class)
	}
}

// Both ends of a consequence can be broken, by the same party.
func TestConsequencesNameRequirements(t *testing.T) {
	brings := schema.Default().Consequences()
	if len(brings) == 0 {
		t.Fatal("there are no causes")
	}
	for cause, ids := range brings {
		c, ok := schema.Default().Lookup(cause)
		if !ok || !c.Observable {
			t.Errorf("the cause %s is no observable requirement", cause)
		}
		for _, id := range ids {
			r, ok := schema.Default().Lookup(id)
			both := r.JudgedParty() == schema.Both || c.JudgedParty() == schema.Both
			if !ok || !r.Observable || id == cause || !both && r.JudgedParty() != c.JudgedParty() {
				t.Errorf("%s cannot bring %s", cause, id)
			}
		}
	}
}
