package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/suites/expected"
)

func TestLoadExpected(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []expected.Entry
		err        string
	}{
		{"empty", "", nil, ""},
		{
			"good", "- id: tools.*\n  reason: known\n  expires: 2026-01-31\n- {id: ping.answered, reason: too}\n",
			[]expected.Entry{{ID: "tools.*", Reason: "known", Expires: "2026-01-31"}, {ID: "ping.answered", Reason: "too"}}, "",
		},
		{"no list", "id: a\nreason: b\n", nil, ":1:3: "},
		{"unknown member", "- id: a\n  reason: b\n  expire: 2026-01-31\n", nil, `:3:3: unknown field "expire"`},
		{"no id", "- reason: b\n", nil, ":1:3: the entry does not name a requirement; its id is missing"},
		{"no pattern", "- id: 'a['\n  reason: b\n", nil, `:1:7: "a[" is not a pattern: syntax error in pattern`},
		{"no reason", "- id: a\n  reason: b\n- id: c\n", nil, ":3:3: the entry for c does not give a reason"},
		{"blank reason", "- id: a\n  reason: ' '\n", nil, ":2:11: the entry for a does not give a reason"},
		{"no date", "- id: a\n  reason: b\n  expires: soon\n", nil, `:3:12: "soon" is not a date; dates are written YYYY-MM-DD`},
		{"no such day", "- id: a\n  reason: b\n  expires: 2026-02-30\n", nil, `:3:12: "2026-02-30" is not a date; dates are written YYYY-MM-DD`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "f.yaml")
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := LoadExpected(file)
			switch {
			case tt.err == "" && err != nil:
				t.Fatal(err)
			case tt.err == "":
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
			case err == nil || !strings.Contains(err.Error(), file+tt.err):
				t.Errorf("got error %v, want %s", err, tt.err)
			}
		})
	}
	if _, err := LoadExpected(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}
