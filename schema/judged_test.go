package schema_test

import (
	"testing"

	"github.com/mcpconform/mcpconform/schema"
)

// judgedFault returns what is wrong with the party that an entry is tried on, or "": nobody
// is accused by a sentence that binds somebody else, or that permits.
func judgedFault(r schema.Requirement) string {
	switch {
	case r.Judged == r.Party:
		return "the judged party is named although it is the bound one"
	case r.Judged != "" && !r.Observable && r.Through == nil:
		return "a judged party is named although nothing can be seen"
	case r.Judged != "" && r.Party != schema.Both && (r.Party != schema.AuthorizationServer || r.Judged != schema.Server):
		return "a party is judged that it does not bind"
	case r.Level == schema.May && r.Observable:
		return "a permission cannot be broken: what it asks of the other side is an obligation of that side"
	case !r.Observable:
		return ""
	}
	switch r.JudgedParty() {
	case schema.Server, schema.Client, schema.Both, schema.AuthorizationServer:
		return ""
	}
	return "it is observable, but at none of the parties that are judged"
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
		level         schema.Level
		want          schema.Party
		good          bool
	}{
		{schema.Server, "", true, schema.Must, schema.Server, true},
		{schema.Both, schema.Client, true, schema.Must, schema.Client, true},
		{schema.AuthorizationServer, schema.Server, true, schema.Must, schema.Server, true},
		{schema.Host, "", false, schema.May, schema.Host, true},
		{schema.Host, "", true, schema.Must, schema.Host, false},
		{schema.Client, schema.Client, true, schema.Must, schema.Client, false},
		{schema.Both, schema.Client, false, schema.Must, schema.Client, false},
		{schema.Server, schema.Client, true, schema.Should, schema.Client, false},
		{schema.AuthorizationServer, schema.Client, true, schema.Must, schema.Client, false},
		{schema.Server, "", true, schema.May, schema.Server, false},
	} {
		r := schema.Requirement{Party: test.party, Judged: test.judged, Observable: test.observable, Level: test.level}
		if got := r.JudgedParty(); got != test.want {
			t.Errorf("%+v: the judged party is %s", test, got)
		}
		if fault := judgedFault(r); (fault == "") != test.good {
			t.Errorf("%+v: got %q", test, fault)
		}
	}
}
