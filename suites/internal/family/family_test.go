package family

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/mcpconform/mcpconform/suites/result"
)

// TestFamilies wants of each family what readers of the files rely on.
func TestFamilies(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../../fixtures/families/*.yaml")
	if err != nil || len(files) != len(all) {
		t.Errorf("%d families are embedded, and %d files are there (%v)", len(all), len(files), err)
	}
	for name, f := range all {
		if f.About == "" {
			t.Errorf("%s does not say what it is about", name)
		}
		is, values := make(map[string]bool), make(map[string]bool)
		for _, m := range f.Members {
			if m.Is == "" || m.Why == "" {
				t.Errorf("%s: the member %s lacks is or why", name, m)
			}
			if is[m.Is] {
				t.Errorf("%s: two members are %s", name, m.Is)
			}
			key := m.Raw()
			if _, ok := m.Value().(string); ok {
				key = "text " + key
			}
			if values[key] {
				t.Errorf("%s: the member %s is there twice", name, m)
			}
			is[m.Is], values[key] = true, true
			if m.Bytes == "" && !utf8.ValidString(m.Raw()) {
				t.Errorf("%s: the member %s is not UTF-8", name, m.Is)
			}
		}
	}
}

func TestDraw(t *testing.T) {
	text := func(s string) *string { return &s }
	family := &Family{Name: "letters", Sample: 3, Members: []Member{{Is: plain, Text: text("plain")}}}
	for _, letter := range "abcdefghij" {
		family.Members = append(family.Members, Member{Is: string(letter), Text: text(string(letter)), Thorough: letter == 'a', Sampled: letter != 'j'})
	}
	for i := range family.Members {
		if err := family.Members[i].settle(); err != nil {
			t.Fatal(err)
		}
	}
	if got := family.draw(Choice{Budget: result.Thorough}, "x"); len(got) != len(family.Members) {
		t.Errorf("a thorough run draws %d of %d members", len(got), len(family.Members))
	}
	drawn := family.draw(Choice{}, "x")
	if len(drawn) != 5 || !drawn[0].Plain() || drawn[4].Is != "j" || !reflect.DeepEqual(drawn, family.draw(Choice{}, "x")) {
		t.Errorf("drew %v", drawn)
	}
	if !slices.IsSortedFunc(drawn[1:], func(a, b Member) int { return int(a.Str()[0]) - int(b.Str()[0]) }) {
		t.Errorf("%v are not in the order of the family", drawn)
	}
	others := 0
	for seed := range uint64(20) {
		got := family.draw(Choice{Seed: seed}, "x")
		if slices.ContainsFunc(got, func(m Member) bool { return m.Thorough }) {
			t.Errorf("seed %d draws a member for thorough runs", seed)
		}
		if !reflect.DeepEqual(got, drawn) {
			others++
		}
	}
	if others < 10 {
		t.Errorf("only %d of 20 seeds draw other members", others)
	}
}

func TestMember(t *testing.T) {
	name := "{known}/x"
	m := Member{Is: "a part more", Text: &name}
	if err := m.settle(); err != nil {
		t.Fatal(err)
	}
	if got := m.With(map[string]string{"known": "echo"}); got.Str() != "echo/x" || got.String() != `"echo/x" (a part more)` {
		t.Errorf("got %s", got)
	}
	number := Member{Is: "large", JSON: "9007199254740993"}
	if err := number.settle(); err != nil || number.ID().String() != "9007199254740993" {
		t.Errorf("got %s, %v", number.ID(), err)
	}
}

func TestFaultyFiles(t *testing.T) {
	for name, text := range map[string]string{
		"no plain member": "about: x\nmembers:\n- {is: odd, text: x, why: y}\n",
		"no value":        "about: x\nmembers:\n- {is: plain, why: y}\n",
		"not JSON":        "about: x\nmembers:\n- {is: plain, json: '{', why: y}\n",
		"unknown member":  "about: x\nplain: y\n",
		"a large sample":  "about: x\nsample: 2\nmembers:\n- {is: plain, text: x, why: y}\n- {is: odd, text: z, why: y, sampled: true}\n",
		"no sample":       "about: x\nmembers:\n- {is: plain, text: x, why: y}\n- {is: odd, text: z, why: y, sampled: true}\n",
	} {
		if _, err := read(fstest.MapFS{"x.yaml": {Data: []byte(text)}}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := read(os.DirFS(t.TempDir())); err != nil {
		t.Error(err)
	}
}
