package schema_test

import (
	"testing"

	"github.com/mcpconform/mcpconform/schema"
)

// judgedFault returns what is wrong with the party that an entry is tried on, or "".
func judgedFault(r schema.Requirement) string {
	switch {
	case r.Judged == r.Party:
		return "the judged party is named although it is the bound one"
	case r.Judged != "" && !r.Observable:
		return "a judged party is named although nothing can be seen"
	case !r.Observable:
		return ""
	}
	switch r.JudgedParty() {
	case schema.Server, schema.Client, schema.Both:
		return ""
	}
	return "it is observable, but neither at a server nor at a client"
}

func TestJudgedParty(t *testing.T) {
	for _, r := range catalogue(t) {
		if fault := judgedFault(r); fault != "" {
			t.Errorf("%s: %s", r.ID, fault)
		}
	}
	for _, test := range []struct {
		party, judged schema.Party
		observable    bool
		want          schema.Party
		good          bool
	}{
		{schema.Server, "", true, schema.Server, true},
		{schema.Server, schema.Client, true, schema.Client, true},
		{schema.AuthorizationServer, schema.Server, true, schema.Server, true},
		{schema.Host, "", false, schema.Host, true},
		{schema.Host, "", true, schema.Host, false},
		{schema.Client, schema.Client, true, schema.Client, false},
		{schema.Server, schema.Client, false, schema.Client, false},
	} {
		r := schema.Requirement{Party: test.party, Judged: test.judged, Observable: test.observable}
		if got := r.JudgedParty(); got != test.want {
			t.Errorf("%+v: the judged party is %s", test, got)
		}
		if fault := judgedFault(r); (fault == "") != test.good {
			t.Errorf("%+v: got %q", test, fault)
		}
	}
}
