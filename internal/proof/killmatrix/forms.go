package killmatrix

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/result"
)

// Forms are the exceptions from the rule that a fault is found in each of its forms, under
// the requirement that it breaks and, for clients, in its scenario.
type Forms struct {
	// Reasons for which a fault need not be found, by name.
	Reasons map[string]string `yaml:"reasons"`
	Servers []Exception       `yaml:"servers"`
	Clients []Exception       `yaml:"clients"`
}

// Exception is what is different in one form of faults.
type Exception struct {
	Form string `yaml:"form"`
	// Faults by their ids, or patterns of them as in [path.Match].
	Faults []string `yaml:"faults"`
	// Why they need not be found: one of the reasons.
	Why string `yaml:"why"`
	// As is the requirement under which they are found instead of their own.
	As string `yaml:"as"`
	// In is the scenario in which they are found instead of their own.
	In string `yaml:"in"`
}

// formNames are those of the derived forms.
var formNames = []string{"session", "concurrent", "sequence", "in-order"}

var form = flag.String("form", "", "try all faults in this form, also those that are excused: "+
	strings.Join(formNames, ", "))

// ReadForms reads the exceptions.
func ReadForms(t *testing.T, file string) Forms {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var f Forms
	if err := yaml.UnmarshalWithOptions(raw, &f, yaml.DisallowUnknownField()); err != nil {
		t.Fatal(err)
	}
	for _, e := range slices.Concat(f.Servers, f.Clients) {
		if excused := e.Why != ""; excused == (e.As != "" || e.In != "") || excused && f.Reasons[e.Why] == "" {
			t.Errorf("%s %v: it needs a known reason, or where it is found: another requirement, "+
				"another scenario or both",
				e.Form, e.Faults)
		}
	}
	return f
}

// names reports whether the exception is about a form of the fault with an id.
func (e Exception) names(id, form string) bool {
	return e.Form == form && slices.ContainsFunc(e.Faults, func(pattern string) bool {
		ok, err := path.Match(pattern, id)
		return ok && err == nil
	})
}

// exceptionOf returns what is different in a form of the fault with an id, if anything is.
func exceptionOf(all []Exception, id, form string) Exception {
	i := slices.IndexFunc(all, func(e Exception) bool { return e.names(id, form) })
	if i < 0 {
		return Exception{}
	}
	return all[i]
}

// Derived is a fault in one of its forms.
type Derived struct {
	ID          string // of the fault
	Form        string
	Requirement schema.ID
	Summary     string
	Scenario    string // in which it shows, for clients
	// Run tries it, in the scenario.
	Run func(ctx context.Context, scenario string) (*result.Run, error)
	// Selected tries it where nothing but a requirement is selected, which costs little: whatever that tries, Run tries
	// as well. Nil if there is no such run.
	Selected func(ctx context.Context, requirement string) (*result.Run, error)
}

// found returns the requirements that a run found broken, or other than an example has them.
func found(run *result.Run) (ids []string) {
	for _, q := range run.Requirements {
		if q.Verdict == result.Fail || q.Verdict == result.Warn || noted(q) {
			ids = append(ids, q.ID)
		}
	}
	return ids
}

// byChance is the reason for forms that are found now and then.
const byChance = "chance"

// try wants the fault to be found, unless the exceptions have a reason why it need not be. With
// strict, a reason is wrong if the fault is found.
func (d Derived) try(t *testing.T, exceptions []Exception, strict bool) {
	e := exceptionOf(exceptions, d.ID, d.Form)
	if e.Why != "" && !strict {
		return
	}
	wanted := cmp.Or(e.As, d.Requirement)
	if d.Selected != nil && e.Why == "" {
		run, err := d.Selected(t.Context(), wanted)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(found(run), wanted) {
			return
		}
	}
	run, err := d.Run(t.Context(), cmp.Or(e.In, d.Scenario))
	if err != nil {
		t.Fatal(err)
	}
	found := found(run)
	switch is := slices.Contains(found, wanted); {
	case is && e.Why != "" && e.Why != byChance:
		t.Errorf("%s is found, although the exceptions say: %s", wanted, e.Why)
	case !is && e.Why == "":
		t.Errorf("%s is not found, but %v: %s\nmend the check, or state in fixtures/forms.yaml why this form "+
			"need not be found",
			wanted, found, d.Summary)
	}
}

// TryForms tries a part of the forms that have to be found, and a larger part of the cheap ones. With -form or -fault
// it tries all the forms that these name, also the excused ones.
func TryForms(t *testing.T, exceptions []Exception, derived []Derived, cheap bool,
	try func(t *testing.T, test func(t *testing.T))) {
	t.Helper()
	chosen := *form != "" || *only != ""
	derived = slices.DeleteFunc(slices.Clone(derived), func(d Derived) bool {
		return !brief.Begins(d.ID, *only) || *form != "" && d.Form != *form ||
			!chosen && exceptionOf(exceptions, d.ID, d.Form).Why != ""
	})
	if !chosen {
		n := 256 // each takes a whole run
		if cheap {
			n = 32
		}
		derived = brief.Sample(t, derived, n)
	}
	each(derived, func(d Derived) {
		t.Run(d.ID+"/"+d.Form, func(t *testing.T) {
			try(t, func(t *testing.T) { d.try(t, exceptions, chosen) })
		})
	})
}

// CheckExceptions wants each exception to be about forms that there are, and no form to have two.
func CheckExceptions(t *testing.T, exceptions []Exception, derived []Derived) {
	t.Helper()
	for _, e := range exceptions {
		for _, pattern := range e.Faults {
			one := Exception{Form: e.Form, Faults: []string{pattern}}
			if !slices.ContainsFunc(derived, func(d Derived) bool { return one.names(d.ID, d.Form) }) {
				t.Errorf("no fault has the form %s and an id like %s", e.Form, pattern)
			}
		}
	}
	for _, d := range derived {
		n := 0
		for _, e := range exceptions {
			if e.names(d.ID, d.Form) {
				n++
			}
		}
		if n > 1 {
			t.Errorf("%s in the form %s has %d exceptions", d.ID, d.Form, n)
		}
	}
}

// WriteForms writes how many faults have each form, and the exceptions.
func WriteForms(b *bytes.Buffer, reasons map[string]string, exceptions []Exception, derived []Derived) {
	countForms(b, exceptions, derived)
	faultsOf := func(fits func(e Exception) bool) (ids []string) {
		for _, d := range derived {
			if e := exceptionOf(exceptions, d.ID, d.Form); e.Form != "" && fits(e) {
				ids = append(ids, "`"+d.ID+"`")
			}
		}
		return ids
	}
	for _, form := range formNames {
		if !slices.ContainsFunc(exceptions, func(e Exception) bool { return e.Form == form }) {
			continue
		}
		fmt.Fprintf(b, "\nIn the form *%s*:\n\n", form)
		Row(b, []string{"what is different", "faults"})
		b.WriteString("|---|---|\n")
		for _, name := range slices.Sorted(maps.Keys(reasons)) {
			if ids := faultsOf(func(e Exception) bool { return e.Form == form && e.Why == name }); len(ids) > 0 {
				Row(b, []string{"excused: " + reasons[name], strings.Join(ids, ", ")})
			}
		}
		for _, e := range exceptions {
			ids := faultsOf(func(other Exception) bool {
				return other.Form == form && e.Form == form && other.Why == "" && other.As == e.As && other.In == e.In
			})
			where := "found"
			if e.As != "" {
				where += " under `" + e.As + "`"
			}
			if e.In != "" {
				where += " in the scenario " + e.In
			}
			if len(ids) > 0 {
				Row(b, []string{where, strings.Join(ids, ", ")})
			}
		}
	}
}

// countForms writes a table with the number of faults in each form, and of those that are found in another way.
func countForms(b *bytes.Buffer, exceptions []Exception, derived []Derived) {
	Row(b, []string{"form", "faults", "found", "found under another requirement", "found in another scenario",
		"excused", "survivors"})
	b.WriteString("|---|---:|---:|---:|---:|---:|---:|\n")
	for _, form := range formNames {
		var all, as, in, why int
		for _, d := range derived {
			if d.Form != form {
				continue
			}
			all++
			switch e := exceptionOf(exceptions, d.ID, form); {
			case e.As != "":
				as++
			case e.In != "":
				in++
			case e.Why != "":
				why++
			}
		}
		if all > 0 {
			cells := []string{form}
			for _, n := range []int{all, all - as - in - why, as, in, why, 0} {
				cells = append(cells, strconv.Itoa(n))
			}
			Row(b, cells)
		}
	}
}
