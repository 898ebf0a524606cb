package schema_test

import (
	"slices"
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
	for _, r := range catalogue(t) {
		advice := schema.Default().AdviceFor(r.ID)
		switch {
		case !r.Observable:
			if advice != "" || r.Advice != "" {
				t.Errorf("%s cannot be observed, and has advice", r.ID)
			}
		case advice == "":
			t.Errorf("%s has no advice, and no class of advice.yaml fits", r.ID)
		case r.Advice == "" && strings.HasPrefix(string(r.Level), "MUST"):
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
	says := make(map[string]string)
	for _, r := range catalogue(t) {
		if r.Advice != "" {
			says[r.ID] = r.Advice
		}
	}
	for _, a := range schema.Default().Advice() {
		start, class := strings.CutSuffix(a.Requirement, "*")
		if !class || !slices.ContainsFunc(catalogue(t), func(r schema.Requirement) bool {
			return r.Observable && strings.HasPrefix(r.ID, start)
		}) {
			t.Errorf("%s is no class of observable requirements", a.Requirement)
		}
		if says[a.Requirement] != "" {
			t.Errorf("%s has two entries", a.Requirement)
		}
		says[a.Requirement] = a.Advice
	}
	for of, advice := range says {
		if !strings.HasSuffix(advice, ".") || len(advice) > 200 || advice != strings.TrimSpace(advice) {
			t.Errorf("%s: %q is no sentence, or a long one", of, advice)
		}
		for _, filler := range []string{"nsure ", "omply", "compliance", "onform to the spec", "ollow the spec", "ake sure"} {
			if strings.Contains(advice, filler) {
				t.Errorf("%s: %q is filler in %q", of, filler, advice)
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
